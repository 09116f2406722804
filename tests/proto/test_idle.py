"""An idle daemon sleeps (fault B54): processor ticks and context switches are counted."""

import contextlib
import resource
import socket
import time

import pytest

import rawclient as rc
from conftest import soak

pytestmark = pytest.mark.ours

SECONDS = soak(2, 10)


def idle(server, seconds=SECONDS):
    """Less than 2 % of a processor and fewer than 50 wake-ups a second, all threads together."""
    time.sleep(0.5)                     # whatever was learnt of the load is forgotten
    cpu, sw = server.cpu_ticks(), server.switches()
    time.sleep(seconds)
    cpu, sw = server.cpu_ticks() - cpu, server.switches() - sw
    assert cpu <= 1 + 2 * seconds, '%d ticks of 10 ms in %d s' % (cpu, seconds)
    assert sw < 50 * seconds, '%d wake-ups in %d s' % (sw, seconds)


def test_b54_ten_disks(serve):
    """b54: ten connected disks that have had some load."""
    s = serve(disks=[{'queues': 4} for _ in range(10)])
    for d in range(10):
        c = s.client(d)
        for q in range(4):
            assert c.start(q).read(0, 512) == bytes(512)
    idle(s)
    for c in s.clients:
        assert c.rings[3].read(0, 512) == bytes(512)


def test_b54_nobody_connected(server):
    idle(server)


def test_b54_after_a_load(serve):
    s = serve(queues=1, engine='null', size='1M')
    ring = s.client().start()
    for _ in range(2000):
        ring.read(0, 512)
    idle(s)


def test_b54_after_stop(server):
    """b54: stopped and disabled rings whose kick descriptors are signalled."""
    c = server.client()
    for q in range(4):
        assert c.start(q).read(0, 512) == bytes(512)
    c.get_vring_base(0)
    c.set_vring_enable(1, 0)
    for q in range(4):
        c.rings[q].kick()
    idle(server)


def test_b54_kick_before_enable(server):
    """b54: a signalled kick of a ring that is not enabled may not spin."""
    c = server.client()
    ring = c.start(enable=False)
    ring.kick()
    idle(server)


def test_b54_broken_ring(server):
    c = server.client()
    ring = c.start(size=16)
    ring.set_avail_idx(17)
    ring.kick()
    assert rc.eventfd_count(ring.err_fd, rc.WAIT)
    ring.kick()
    idle(server)


def test_b54_client_hung_up(server):
    """b54: a half-closed and a closed connection."""
    c = server.client()
    assert c.start().read(0, 512) == bytes(512)
    c.sock.shutdown(socket.SHUT_WR)
    idle(server, 1)
    c.close()
    server.clients.remove(c)
    idle(server)
    assert server.serves()


def test_b54_backend_channel_hung_up(server):
    c = server.client()
    a, b = socket.socketpair()
    c.set_backend_req_fd(b.fileno())
    b.close()
    a.close()
    idle(server)


def test_b54_half_a_message(server):
    c = server.connect()
    c.send_bytes(b'\1\0\0')
    idle(server)


def test_b54_accept_fails(serve):
    """b54: no descriptor left for accept: the daemon waits instead of spinning, then goes on."""
    s = serve(queues=1)
    old = resource.prlimit(s.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (s.fds(), old[1]))
    c = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(OSError):
            c.connect(s.disks[0]['socket'])
        idle(s)
    finally:
        resource.prlimit(s.pid, resource.RLIMIT_NOFILE, old)
        c.close()
    assert s.serves()


def test_b54_poll_always_is_the_exception(serve):
    """poll=always spins by wish: what idle() measures is really measured."""
    s = serve(queues=1, engine='null', size='1M', poll='always')
    ring = s.client().start()
    ring.read(0, 512)
    with pytest.raises(AssertionError):
        idle(s, 1)
