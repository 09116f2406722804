"""Orders of messages: the front-ends that exist, and all the legal ones (fault B28)."""

import itertools
import struct

import pytest

import rawclient as rc
from conftest import SOAK

STEPS = ('FEATURES', 'MEM_TABLE', 'NUM', 'BASE', 'ADDR', 'CALL', 'KICK', 'ENABLE')


def legal(order):
    """Addresses need memory before them, ENABLE needs bit 30; the rest is free."""
    at = order.index
    return at('MEM_TABLE') < at('ADDR') and at('FEATURES') < at('ENABLE')


def run(server, order, protocol=True):
    """The messages in this order; then one read by the rules."""
    c = server.connect_retry()
    try:
        offered = c.get_features()
        features = offered & ~rc.F_NOTIFY_ON_EMPTY
        if protocol:
            c.set_protocol_features(c.get_protocol_features() & rc.P_OURS)
        else:
            features &= ~rc.F_PROTOCOL
        c.set_owner()
        c.mem = rc.default_memory(1 << 20)
        ring = c.rings[0] = rc.Ring(c.mem, 0, 16, event_idx=True)
        u = c.mem.uva
        todo = {
            'FEATURES': lambda: c.set_features(features),
            'MEM_TABLE': c.set_mem_table,
            'NUM': lambda: c.set_vring_num(0, 16),
            'BASE': lambda: c.set_vring_base(0, 0),
            'ADDR': lambda: c.set_vring_addr(0, u(ring.desc), u(ring.used), u(ring.avail)),
            'CALL': lambda: c.set_vring_call(0, ring.call_fd),
            'KICK': lambda: c.set_vring_kick(0, ring.kick_fd),
            'ENABLE': lambda: c.set_vring_enable(0, 1),
        }
        for step in order:
            todo[step]()
        assert ring.read(0, 512) == bytes(512), order
        assert c.get_vring_base(0) == 1
    except Exception as e:
        raise AssertionError('order %s: %r' % (' '.join(order), e)) from e
    finally:
        c.close()
        server.clients.remove(c)


QEMU = ('FEATURES', 'MEM_TABLE', 'NUM', 'BASE', 'ADDR', 'KICK', 'CALL', 'ENABLE')


def test_the_order_of_the_peer(server):
    run(server, QEMU)


@pytest.mark.ours
@pytest.mark.parametrize('protocol', [True, False])
def test_b28_permutations(server, rng, protocol):
    """b28: a sample in CI, all of them in the soak; one read at the end of each."""
    steps = STEPS if protocol else STEPS[:-1]
    orders = [o for o in itertools.permutations(steps)
              if legal(o if protocol else o + ('ENABLE',))]
    assert len(orders) == (40320 // 4 if protocol else 5040 // 2)
    if not SOAK:
        orders = rng.sample(orders, 300 if protocol else 100)
    for o in orders:
        run(server, o, protocol)


@pytest.mark.ours
def test_b28_illegal_orders_harm_nobody(server, rng):
    """b28: addresses before memory, ENABLE before the features: served or refused, never dead."""
    orders = [o for o in itertools.permutations(STEPS) if not legal(o)]
    for o in (orders if SOAK else rng.sample(orders, 60)):
        c = server.connect_retry()
        ok = True
        try:
            c.set_protocol_features(rc.P_OURS)
            c.mem = rc.default_memory(1 << 20)
            ring = c.rings[0] = rc.Ring(c.mem, 0, 16)
            u = c.mem.uva
            todo = {
                'FEATURES': lambda: c.set_features(c.get_features()),
                'MEM_TABLE': c.set_mem_table,
                'NUM': lambda: c.set_vring_num(0, 16),
                'BASE': lambda: c.set_vring_base(0, 0),
                'ADDR': lambda: c.set_vring_addr(0, u(ring.desc), u(ring.used), u(ring.avail)),
                'CALL': lambda: c.set_vring_call(0, ring.call_fd),
                'KICK': lambda: c.set_vring_kick(0, ring.kick_fd),
                'ENABLE': lambda: c.set_vring_enable(0, 1),
            }
            for step in o:
                todo[step]()
        except (rc.Refused, rc.Closed):
            ok = False
        if ok:
            assert c.alive(), o
        c.close()
        server.clients.remove(c)
        assert server.alive()
    assert server.serves()


# ------------------------------------------------- front-ends, as far as we know their orders


def qemu72(c, mem, queues=2):
    """QEMU 7.2 vhost-user-blk-pci: realize, then vhost_dev_start at DRIVER_OK."""
    c.features = c.get_u64(rc.GET_FEATURES)
    p = c.get_u64(rc.GET_PROTOCOL_FEATURES)
    p &= rc.P_OURS
    c.set_protocol_features(p)
    assert c.get_queue_num() >= queues
    if p & rc.P_CONFIGURE_MEM_SLOTS:
        c.get_max_mem_slots()
    if p & rc.P_BACKEND_REQ:
        import socket
        c.backend_sock, far = socket.socketpair()
        c.send(rc.SET_BACKEND_REQ_FD, b'', [far.fileno()], rc.VERSION | rc.NEED_REPLY)
        assert c.recv().payload == bytes(8)
        far.close()
    c.send(rc.SET_OWNER)
    c.get_u64(rc.GET_FEATURES)
    fds = []
    for q in range(queues):                 # vhost_virtqueue_init: call descriptors at realize
        fd = rc.os.eventfd(0)
        fds.append(fd)
        c.send(rc.SET_VRING_CALL, struct.pack('<Q', q), [fd])
        efd = rc.os.eventfd(0)
        fds.append(efd)
        c.send(rc.SET_VRING_ERR, struct.pack('<Q', q), [efd])
    assert len(c.get_config_bytes(0, 60)) == 60
    # DRIVER_OK in the guest
    c.send(rc.SET_FEATURES, struct.pack('<Q', c.features & ~rc.F_NOTIFY_ON_EMPTY),
           flags=rc.VERSION)
    c.mem = mem
    for r in mem.regions:
        if p & rc.P_CONFIGURE_MEM_SLOTS:
            c.add_mem_reg(r)
    if not p & rc.P_CONFIGURE_MEM_SLOTS:
        c.set_mem_table()
    for q in range(queues):
        ring = c.make_ring(q)
        c.send(rc.SET_VRING_NUM, struct.pack('<II', q, ring.size))
        c.send(rc.SET_VRING_BASE, struct.pack('<II', q, 0))
        u = mem.uva
        c.send(rc.SET_VRING_ADDR, struct.pack('<IIQQQQ', q, 0, u(ring.desc), u(ring.used),
                                              u(ring.avail), ring.used), flags=9)
        assert c.recv().payload == bytes(8)
        c.send(rc.SET_VRING_KICK, struct.pack('<Q', q), [ring.kick_fd])
        c.send(rc.SET_VRING_CALL, struct.pack('<Q', q), [ring.call_fd])
    for q in range(queues):
        c.send(rc.SET_VRING_ENABLE, struct.pack('<II', q, 1))
    for fd in fds:
        rc.os.close(fd)


def qemu72_stop(c, queues=2):
    for q in range(queues):
        c.send(rc.SET_VRING_ENABLE, struct.pack('<II', q, 0))
    return [c.get_vring_base(q) for q in range(queues)]


def cloud_hypervisor(c, mem, queues=2):
    """cloud-hypervisor: enables every queue last, each ring complete before the next."""
    c.send(rc.SET_OWNER)
    f = c.get_u64(rc.GET_FEATURES)
    c.features = f & ~(rc.F_NOTIFY_ON_EMPTY | rc.F_WRITE_ZEROES)
    p = c.get_u64(rc.GET_PROTOCOL_FEATURES) & rc.P_OURS & ~rc.P_STATUS
    c.send(rc.SET_PROTOCOL_FEATURES, struct.pack('<Q', p))
    c.protocol = p
    assert c.get_queue_num() >= queues
    c.get_config_raw(0x100, 60)
    c.set_features(c.features)
    c.mem = mem
    c.set_mem_table()
    for q in range(queues):
        ring = c.make_ring(q)
        c.set_vring_num(q, ring.size)
        c.send_addr(ring)
        c.set_vring_base(q, 0)
        c.set_vring_call(q, ring.call_fd)
        c.set_vring_kick(q, ring.kick_fd)
    for q in range(queues):
        c.set_vring_enable(q, 1)


def crosvm(c, mem, queues=2):
    """crosvm: owner and features first, no NEED_REPLY unless agreed, base after the address."""
    c.send(rc.SET_OWNER)
    f = c.get_u64(rc.GET_FEATURES)
    c.features = f & ~rc.F_NOTIFY_ON_EMPTY
    c.send(rc.SET_FEATURES, struct.pack('<Q', c.features & ~rc.F_EVENT_IDX))
    p = c.get_u64(rc.GET_PROTOCOL_FEATURES) & (rc.P_MQ | rc.P_CONFIG | rc.P_BACKEND_REQ)
    c.set_protocol_features(p)
    c.get_queue_num()
    c.get_config_bytes(0, 60)
    c.mem = mem
    c.send(rc.SET_FEATURES, struct.pack('<Q', c.features))     # again at activation
    c.set_mem_table()
    for q in range(queues):
        ring = c.make_ring(q)
        c.set_vring_num(q, ring.size)
        c.send_addr(ring)
        c.set_vring_base(q, 0)
        c.set_vring_call(q, ring.call_fd)
        c.set_vring_kick(q, ring.kick_fd)
        c.set_vring_enable(q, 1)


def firecracker(c, mem, queues=1):
    """firecracker: CONFIG only, one queue."""
    c.send(rc.SET_OWNER)
    f = c.get_u64(rc.GET_FEATURES)
    c.features = f & (rc.F_VERSION_1 | rc.F_EVENT_IDX | rc.F_PROTOCOL | rc.F_RO | rc.F_FLUSH)
    p = c.get_u64(rc.GET_PROTOCOL_FEATURES) & rc.P_CONFIG
    c.set_protocol_features(p)
    c.get_config_bytes(0, 60)
    c.send(rc.SET_FEATURES, struct.pack('<Q', c.features))
    c.mem = mem
    c.set_mem_table()
    for q in range(queues):
        ring = c.make_ring(q)
        c.set_vring_num(q, ring.size)
        c.send_addr(ring)
        c.set_vring_base(q, 0)
        c.set_vring_call(q, ring.call_fd)
        c.set_vring_kick(q, ring.kick_fd)
        c.set_vring_enable(q, 1)


def libblkio(c, mem, queues=2):
    """libblkio virtio-blk-vhost-user: memory added last, region by region; polling queues."""
    f = c.get_u64(rc.GET_FEATURES)
    c.features = f & ~rc.F_NOTIFY_ON_EMPTY
    p = c.get_u64(rc.GET_PROTOCOL_FEATURES) & rc.P_OURS & ~rc.P_STATUS
    c.set_protocol_features(p)
    c.set_owner()
    c.get_queue_num()
    if p & rc.P_CONFIGURE_MEM_SLOTS:
        c.get_max_mem_slots()
    c.set_features(c.features)
    c.get_config_bytes(0, 60)
    c.mem = mem
    for r in mem.regions:
        c.add_mem_reg(r)
    for q in range(queues):
        ring = c.make_ring(q)
        c.set_vring_num(q, ring.size)
        c.set_vring_base(q, 0)
        c.send_addr(ring)
        c.set_vring_kick(q, ring.kick_fd)
        c.set_vring_call(q, ring.call_fd)
        c.set_vring_enable(q, 1)


FRONT_ENDS = {'qemu-7.2': qemu72, 'cloud-hypervisor': cloud_hypervisor, 'crosvm': crosvm,
              'firecracker': firecracker, 'libblkio': libblkio}
PEER_OK = ('crosvm', 'firecracker', 'libblkio')


@pytest.mark.parametrize('name', [pytest.param(n, marks=() if n in PEER_OK else pytest.mark.ours)
                                  for n in FRONT_ENDS])
def test_b28_front_end(server, name):
    """b28: the messages of a front-end that is known; then reads and a stop, twice."""
    for _ in range(2):
        c = server.connect_retry()
        FRONT_ENDS[name](c, rc.default_memory())
        for q, ring in sorted(c.rings.items()):
            ring.event_idx = bool(c.features & rc.F_EVENT_IDX)
            for i in range(40):
                assert ring.read(i, 512) == bytes(512)
        if name == 'qemu-7.2':
            assert qemu72_stop(c) == [40, 40]
            for ring in c.rings.values():           # reboot: a new driver with a fresh ring
                ring.zero(0)
                ring.base = ring.avail_idx = ring.next_idx = ring.last_used = 0
                c.start_ring(ring)
                assert ring.read(0, 512) == bytes(512)
        for q in sorted(c.rings):
            assert c.get_vring_base(q) in (1, 40)
        c.close()
        server.clients.remove(c)
