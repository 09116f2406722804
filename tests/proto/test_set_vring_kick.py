"""SET_VRING_KICK."""

import os
import struct
import time

import pytest

import rawclient as rc


@pytest.mark.ours
def test_b34_polled_ring_without_kick(server):
    """b34: bit 8 and no descriptor: the server polls the ring."""
    c = server.client()
    ring = c.start(kick=False)
    for _ in range(20):
        assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_b34_neither_kick_nor_call(server):
    c = server.client()
    ring = c.start(kick=False, call=False)
    for _ in range(20):
        assert ring.read(0, 512) == bytes(512)
    time.sleep(0.3)
    assert ring.read(1, 512) == bytes(512)


@pytest.mark.ours
def test_b34_flag_is_not_part_of_the_index(server):
    """b34: 0x102 is ring 2 without a descriptor."""
    c = server.client()
    ring = c.make_ring(2, kick=False)
    c.set_vring_num(2, ring.size)
    c.set_vring_base(2, 0)
    c.send_addr(ring)
    c.set_vring_call(2, ring.call_fd)
    c.set(rc.SET_VRING_KICK, struct.pack('<Q', 0x102))
    c.set_vring_enable(2)
    assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
@pytest.mark.parametrize('request_', [rc.SET_VRING_KICK, rc.SET_VRING_CALL, rc.SET_VRING_ERR])
@pytest.mark.parametrize('value', [4, 0xFF, 0x1FF, 0x200, 0x10000, 0x10000 | 0x100,
                                   0x100000000, 1 << 63])
def test_b32_value_is_checked_at_full_width(server, client, request_, value):
    """b32: bits beyond the flag are not ignored (0x10000 is not ring 0)."""
    before = server.fds()
    fd = os.eventfd(0)
    fds = [] if value & rc.NOFD else [fd]
    assert client.refused(request_, struct.pack('<Q', value), fds)
    os.close(fd)
    client.close()
    server.clients.remove(client)
    assert server.serves()
    server.wait_fds_most(before)


@pytest.mark.ours
@pytest.mark.parametrize('request_', [rc.SET_VRING_KICK, rc.SET_VRING_CALL, rc.SET_VRING_ERR])
@pytest.mark.parametrize('value,count', [(0, 0), (0, 2), (0x100, 1), (0, 8)])
def test_descriptor_count(server, client, request_, value, count):
    """Missing and surplus descriptors end the connection; none is kept."""
    before = server.fds()
    fd = os.eventfd(0)
    client.send(request_, struct.pack('<Q', value), [fd] * count)
    assert client.closed_by_server()
    os.close(fd)
    client.close()
    server.clients.remove(client)
    assert server.serves()
    server.wait_fds_most(before)


@pytest.mark.ours
@pytest.mark.parametrize('kind', ['file', 'closed pipe', 'socket'])
def test_not_an_eventfd(server, client, kind, tmp_path):
    """Some other descriptor for a kick: refused or useless, but never a spinning daemon."""
    import socket
    extra = []
    if kind == 'file':
        fd = os.open(tmp_path / 'f', os.O_CREAT | os.O_RDWR)
    elif kind == 'closed pipe':
        fd, w = os.pipe()
        os.close(w)
    else:
        a, b = socket.socketpair()
        b.close()
        extra = [a]
        fd = os.dup(a.fileno())
    ring = client.make_ring()
    try:
        client.set_vring_num(0, ring.size)
        client.set_vring_base(0, 0)
        client.send_addr(ring)
        client.set_vring_call(0, ring.call_fd)
        client.set_vring_kick(0, fd)
        client.set_vring_enable(0)
    except (rc.Refused, rc.Closed):
        pass
    os.close(fd)
    for a in extra:
        a.close()
    time.sleep(0.3)
    t = server.cpu_ticks()
    time.sleep(1)
    assert server.cpu_ticks() - t < 30, 'spins on a descriptor that is not an eventfd'
    client.close()
    assert server.serves()


@pytest.mark.ours
def test_blocking_eventfd(server):
    """The front-end's eventfd need not be non-blocking: the server never blocks on it."""
    c = server.client()
    ring = c.make_ring()
    os.close(ring.kick_fd)
    ring.kick_fd = os.eventfd(0)
    c.start_ring(ring)
    other = c.start(1)
    for _ in range(50):
        assert ring.read(0, 512) == bytes(512)
        assert other.read(0, 512) == bytes(512)


def test_spurious_kicks(client):
    ring = client.start()
    for _ in range(200):
        ring.kick()
    assert ring.read(0, 512) == bytes(512)
    for _ in range(200):
        ring.kick()
    assert client.alive()
    assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_kick_counter_full(client):
    """An eventfd at its largest value is one kick like another."""
    ring = client.start()
    os.eventfd_write(ring.kick_fd, 0xFFFFFFFFFFFFFFFE)
    assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_replaced_while_ring_runs(server, client):
    ring = client.start()
    assert ring.read(0, 512) == bytes(512)
    n = server.fds()
    for _ in range(20):
        old = ring.kick_fd
        ring.kick_fd = os.eventfd(0, os.EFD_NONBLOCK)
        client.set_vring_kick(0, ring.kick_fd)
        os.close(old)
        assert ring.read(0, 512) == bytes(512)
    server.wait_fds_most(n + 1)


@pytest.mark.ours
def test_b04_requests_are_there_before_the_kick_descriptor(server):
    """b04: N requests in the ring before it starts, and never a kick."""
    c = server.client()
    ring = c.make_ring()
    reqs = [ring.blk(rc.T_IN, i, in_len=512) for i in range(20)]
    ring.publish()
    c.start_ring(ring)
    ring.wait(20)
    assert all(r.peek_status() == rc.S_OK for r in reqs)


@pytest.mark.ours
@pytest.mark.parametrize('event', [1, 1000, 65535])
def test_b04_stale_avail_event(server, event):
    """b04: the driver obeys an avail_event from an earlier life and so does not kick."""
    c = server.client()
    ring = c.make_ring(base=500)
    ring.set_avail_event(500 + event)
    reqs = [ring.blk(rc.T_IN, i, in_len=512) for i in range(3)]
    ring.publish()
    c.start_ring(ring)
    ring.wait(3)
    assert all(r.peek_status() == rc.S_OK for r in reqs)
    assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_b04_without_protocol_features(server):
    c = server.client(without=rc.F_PROTOCOL)
    ring = c.make_ring()
    reqs = [ring.blk(rc.T_IN, i, in_len=512) for i in range(20)]
    ring.publish()
    c.start_ring(ring)
    ring.wait(20)
    assert all(r.peek_status() == rc.S_OK for r in reqs)


@pytest.mark.ours
def test_b04_after_stop_and_start(server):
    """b04: requests added while the ring is stopped are seen at the start."""
    c = server.client()
    ring = c.start()
    for i in range(30):
        ring.read(0, 512)
        c.stop_ring(ring)
        ring.blk(rc.T_IN, i, in_len=512)
        ring.publish()
        c.start_ring(ring)
        ring.wait()


@pytest.mark.ours
def test_b04_after_the_daemon_was_replaced(serve):
    """b04: the same ring at a new daemon, with one request outstanding and no kick."""
    path = str(serve.dir / 'disk.img')
    from conftest import make_image
    make_image(path)
    one = serve(path=path)
    c = one.client()
    ring = c.start()
    for _ in range(10):
        ring.read(0, 512)
    c.stop_ring(ring)
    mem, c.mem, c.rings = c.mem, None, {}
    c.close()
    one.finish()
    two = serve(path=path)
    c = two.connect()
    c.setup(mem=mem)
    c.rings[0] = ring
    ring.blk(rc.T_IN, 0, in_len=512)
    ring.publish()
    c.start_ring(ring)
    assert ring.wait()[0][1] == 513
