"""SET_VRING_ERR: signalled when a ring is broken."""

import os
import struct

import pytest

import rawclient as rc

pytestmark = pytest.mark.ours


def break_ring(ring):
    ring.set_avail_idx(ring.avail_idx + ring.size + 1)
    ring.kick()


def test_signalled(server, client):
    ring = client.start(size=16)
    assert ring.read(0, 512) == bytes(512)
    assert rc.eventfd_count(ring.err_fd) == 0
    break_ring(ring)
    assert rc.eventfd_count(ring.err_fd, rc.WAIT) == 1


def test_only_its_own(server, client):
    rings = [client.start(i, size=16) for i in range(3)]
    break_ring(rings[1])
    assert rc.eventfd_count(rings[1].err_fd, rc.WAIT) == 1
    assert rc.eventfd_count(rings[0].err_fd, 0.1) == 0
    assert rings[0].read(0, 512) == bytes(512)
    assert rings[2].read(0, 512) == bytes(512)


def test_without_descriptor(server, client):
    """Bit 8: nobody is told, nothing else changes."""
    ring = client.start(size=16, err=False)
    server.mark_log()
    break_ring(ring)
    server.wait_line()
    assert client.start(1).read(0, 512) == bytes(512)


def test_never_sent(server, client):
    ring = client.make_ring(size=16)
    client.set_vring_num(0, 16)
    client.set_vring_base(0, 0)
    client.send_addr(ring)
    client.set_vring_call(0, ring.call_fd)
    client.set_vring_kick(0, ring.kick_fd)
    client.set_vring_enable(0)
    assert ring.read(0, 512) == bytes(512)
    server.mark_log()
    break_ring(ring)
    server.wait_line()
    assert client.alive()


def test_replaced(server, client):
    ring = client.start(size=16)
    n = server.settled_fds()
    old = ring.err_fd
    ring.err_fd = os.eventfd(0, os.EFD_NONBLOCK)
    client.set_vring_err(0, ring.err_fd)
    assert server.fds() == n
    break_ring(ring)
    assert rc.eventfd_count(ring.err_fd, rc.WAIT) == 1
    assert rc.eventfd_count(old) == 0
    os.close(old)


def test_flag_is_not_part_of_the_index(client):
    client.set(rc.SET_VRING_ERR, struct.pack('<Q', 0x102))
    assert client.alive()
