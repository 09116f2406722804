"""SET_VRING_ADDR: user addresses, not guest addresses."""

import struct
import time

import pytest

import rawclient as rc

MIB = rc.MIB


def test_parts_in_different_regions(server):
    c = server.connect()
    c.setup(mem=rc.Memory([rc.Region(0x100000 + i * 4 * MIB, MIB) for i in range(3)]))
    mem = c.mem
    gpas = (mem.alloc(16 * 16, 16, 0), mem.alloc(6 + 32, 2, 1), mem.alloc(6 + 128, 4, 2))
    ring = c.start(size=16, gpas=gpas)
    for _ in range(40):
        assert ring.read(0, 512) == bytes(512)


def test_at_the_very_end_of_a_region(server):
    """The last byte of the used ring (with its event index) is the last byte of the region."""
    c = server.connect()
    c.setup(mem=rc.Memory([rc.Region(0x100000, MIB), rc.Region(0x400000, 8192)]))
    used_size = 6 + 8 * 15 + 8      # 16 entries: flags, idx, ring, avail_event
    end = 0x402000
    gpas = (0x400000, 0x401000, (end - used_size) & ~3)
    ring = c.start(size=16, gpas=gpas)
    for _ in range(40):
        assert ring.read(0, 512) == bytes(512)


def test_moved_ring(server):
    c = server.client()
    ring = c.start(size=16)
    assert ring.read(0, 512) == bytes(512)
    c.stop_ring(ring)
    for _ in range(3):
        base = ring.base
        ring = c.start(size=16, base=base)
        assert ring.read(0, 512) == bytes(512)
        c.stop_ring(ring)


@pytest.mark.ours
def test_guest_addresses_are_not_taken(server, client):
    """User and guest addresses differ here; the guest's own are unmapped."""
    ring = client.make_ring()
    try:
        client.set_vring_num(0, ring.size)
        client.set_vring_base(0, 0)
        client.set_vring_addr(0, ring.desc, ring.used, ring.avail)
        client.set_vring_call(0, ring.call_fd)
        client.set_vring_kick(0, ring.kick_fd)
        client.set_vring_enable(0)
    except (rc.Refused, rc.Closed):
        client.close()
        assert server.serves()
        return
    ring.blk(rc.T_IN, 0, in_len=512)
    ring.publish()
    ring.kick()
    time.sleep(0.2)
    assert ring.used_idx() == 0
    client.close()
    assert server.serves()


@pytest.mark.ours
@pytest.mark.parametrize('part', ['desc', 'avail', 'used'])
@pytest.mark.parametrize('addr', ['zero', 'unmapped', 'end', 'wrap', 'misaligned'])
def test_bad_address(server, client, part, addr):
    """Refused at once or when the ring starts; then the ring is broken and nothing is written."""
    ring = client.make_ring(size=16)
    u = client.mem.uva
    a = {p: u(getattr(ring, p)) for p in ('desc', 'avail', 'used')}
    region = client.mem.regions[0]
    a[part] = {'zero': 0, 'unmapped': 0x7FFFFFFF0000, 'end': region.uva + region.size - 16,
               'wrap': 0xFFFFFFFFFFFFFFF0, 'misaligned': a[part] + 1}[addr]
    try:
        client.set_vring_num(0, 16)
        client.set_vring_base(0, 0)
        client.set_vring_addr(0, a['desc'], a['used'], a['avail'])
        client.set_vring_call(0, ring.call_fd)
        client.set_vring_err(0, ring.err_fd)
        client.set_vring_kick(0, ring.kick_fd)
        client.set_vring_enable(0)
        ring.blk(rc.T_IN, 0, in_len=512)
        ring.publish()
        ring.kick()
        time.sleep(0.1)
        assert ring.used_idx() == 0, 'a ring at a bad address was served'
        other = client.start(1)
        assert other.read(0, 512) == bytes(512)
    except (rc.Refused, rc.Closed):
        pass
    client.close()
    assert server.serves()


@pytest.mark.ours
@pytest.mark.parametrize('index', [4, 0x100, 0x10000, 0xFFFFFFFF])
def test_b32_index_is_checked_at_full_width(server, client, index):
    ring = client.make_ring()
    u = client.mem.uva
    assert client.refused(rc.SET_VRING_ADDR, struct.pack(
        '<IIQQQQ', index, 0, u(ring.desc), u(ring.used), u(ring.avail), 0))
    client.close()
    assert server.serves()


@pytest.mark.ours
def test_log_flag_without_logging(server, client):
    """VHOST_VRING_F_LOG without LOG_ALL: refused or ignored, and the log address never used."""
    ring = client.make_ring()
    u = client.mem.uva
    try:
        client.set_vring_num(0, ring.size)
        client.set_vring_base(0, 0)
        client.set_vring_addr(0, u(ring.desc), u(ring.used), u(ring.avail), 1, 0xDEAD0000)
        client.set_vring_call(0, ring.call_fd)
        client.set_vring_kick(0, ring.kick_fd)
        client.set_vring_enable(0)
        assert ring.read(0, 512) == bytes(512)
    except (rc.Refused, rc.Closed):
        pass
    client.close()
    assert server.serves()


@pytest.mark.ours
def test_sent_again_while_ring_runs(client):
    """QEMU sends it again when logging changes: the same addresses, no harm."""
    ring = client.start()
    for _ in range(20):
        reqs = [ring.blk(rc.T_IN, i, in_len=512) for i in range(8)]
        ring.submit()
        client.send_addr(ring)
        ring.wait(8)
        assert all(r.peek_status() == rc.S_OK for r in reqs)
