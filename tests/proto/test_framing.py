"""Malformed messages: the connection is closed with one line in the log, the descriptors are
closed, and the daemon serves the next client."""

import os
import socket
import struct
import time

import pytest

import rawclient as rc
from conftest import soak

pytestmark = pytest.mark.ours

H = rc.Connection.header
CASES = {
    'version 0': (H(rc.GET_FEATURES, 0, 0), 0),
    'version 2': (H(rc.GET_FEATURES, 0, 2), 0),
    'version 3': (H(rc.GET_FEATURES, 0, 3), 0),
    'size 4 GiB': (H(rc.SET_FEATURES, 0xFFFFFFFF) + bytes(8), 0),
    'size 1 MiB': (H(rc.SET_FEATURES, 1 << 20) + bytes(8), 0),
    'size 4096': (H(rc.SET_FEATURES, 4096) + bytes(4096), 0),
    'payload too long': (H(rc.SET_FEATURES, 16) + bytes(16), 0),
    'payload too short': (H(rc.SET_FEATURES, 7) + bytes(7), 0),
    'no payload': (H(rc.SET_VRING_NUM, 0), 0),
    'payload where none belongs': (H(rc.SET_OWNER, 64) + bytes(64), 0),
    'one surplus descriptor': (H(rc.SET_OWNER, 0), 1),
    'descriptor with GET_FEATURES': (H(rc.GET_FEATURES, 0), 1),
    'many surplus descriptors': (H(rc.SET_FEATURES, 8) + bytes(8), 16),
    '200 descriptors': (H(rc.SET_FEATURES, 8) + bytes(8), 200),
    'descriptors with an unknown message': (H(200, 0), 3),
    'text': (b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 0),
    'all ones': (b'\xff' * 64, 0),
}


def check_log(server):
    server.wait_line()
    time.sleep(0.05)
    lines = server.new_lines()
    bad = [x for x in lines if 'disconnect' not in x.lower() and 'gone' not in x.lower()]
    assert len(bad) <= 1 and 1 <= len(lines) <= 2, lines


@pytest.mark.parametrize('name', CASES)
def test_malformed(server, name):
    data, fds = CASES[name]
    before = server.fds()
    c = server.connect()
    c.alive()
    server.mark_log()
    r, w = os.pipe()
    c.send_bytes(data, [w] * fds)
    os.close(r)
    os.close(w)
    assert c.closed_by_server()
    check_log(server)
    c.close()
    server.clients.remove(c)
    server.wait_fds(before)
    assert server.serves()


@pytest.mark.parametrize('count', [1, 4, 11, 12, 15])
def test_truncated_then_closed(server, count):
    before = server.fds()
    c = server.connect()
    c.alive()
    fd = os.eventfd(0)
    c.send_bytes((H(rc.SET_FEATURES, 8) + bytes(8))[:count], [fd])
    os.close(fd)
    c.close()
    server.clients.remove(c)
    server.wait_fds(before)
    assert server.serves()


def test_reply_bit_in_a_request(server, conn):
    """A reply where a request belongs: closed or taken, not a crash."""
    conn.send(rc.GET_FEATURES, flags=rc.VERSION | rc.REPLY)
    try:
        conn.recv()
    except rc.Closed:
        pass
    conn.close()
    assert server.serves()


def test_byte_by_byte(server, conn):
    """A stream has no message borders."""
    raw = H(rc.GET_FEATURES, 0) + H(rc.SET_OWNER, 0) + H(rc.GET_PROTOCOL_FEATURES, 0)
    for i in range(len(raw)):
        conn.send_bytes(raw[i:i + 1])
        if i % 6 == 0:
            time.sleep(0.002)
    assert conn.recv().request == rc.GET_FEATURES
    assert conn.recv().request == rc.GET_PROTOCOL_FEATURES


def test_many_messages_in_one_write(conn):
    conn.send_bytes(H(rc.GET_FEATURES, 0) * 50)
    for _ in range(50):
        assert conn.recv().request == rc.GET_FEATURES


def test_descriptors_belong_to_their_message(server):
    """Kick and call of four rings in one go, each with its own descriptor."""
    c = server.client()
    rings = [c.make_ring(i) for i in range(4)]
    for r in rings:
        c.set_vring_num(r.index, r.size)
        c.set_vring_base(r.index, 0)
        c.send_addr(r)
    for r in rings:
        c.send(rc.SET_VRING_CALL, struct.pack('<Q', r.index), [r.call_fd])
        c.send(rc.SET_VRING_KICK, struct.pack('<Q', r.index), [r.kick_fd])
        c.send(rc.SET_VRING_ENABLE, struct.pack('<II', r.index, 1))
    for r in rings:
        assert r.read(0, 512) == bytes(512)


def test_slow_peer_does_not_hold_the_others(serve):
    """Half a header on one socket: the other disk's client is served meanwhile."""
    s = serve(disks=[{'queues': 1}, {'queues': 1}])
    c = s.connect(0)
    c.send_bytes(b'\1\0')
    d = s.client(1)
    assert d.start().read(0, 512) == bytes(512)
    c.send_bytes(H(rc.GET_FEATURES, 0)[2:])
    assert c.recv().request == rc.GET_FEATURES


def test_peer_that_does_not_read_its_answers(serve):
    """The answers fill the socket: the other disk's client is served meanwhile."""
    s = serve(disks=[{'queues': 1}, {'queues': 1}])
    c = s.connect(0)
    c.sock.settimeout(0.3)
    try:
        for _ in range(20000):
            c.sock.send(H(rc.GET_FEATURES, 0))
    except (TimeoutError, BrokenPipeError, ConnectionResetError):
        pass
    d = s.client(1)
    assert d.start().read(0, 512) == bytes(512)
    c.close()
    s.clients.remove(c)
    assert s.serves(0)


def test_random_bytes(server, rng):
    """Noise with a good header now and then."""
    before = server.fds()
    for _ in range(soak(150, 20000)):
        c = server.connect()
        server.clients.remove(c)
        fds = []
        for _ in range(rng.randrange(1, 6)):
            size = rng.choice([0, 1, 8, 12, 16, 40, 72, 264])
            body = bytes(rng.randrange(256) for _ in range(size))
            fds = [os.eventfd(0) for _ in range(rng.choice([0, 0, 0, 1, 2, 8]))]
            try:
                c.send_bytes(H(rng.randrange(45), size, rng.choice([1, 1, 1, 9])) + body, fds)
            except rc.Closed:
                pass
            for fd in fds:
                os.close(fd)
        c.close()
        assert server.alive()
    server.wait_fds(before)
    assert server.serves()


def test_connect_and_go(server):
    before = server.fds()
    for _ in range(soak(200, 20000)):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            s.connect(server.disks[0]['socket'])
        except BlockingIOError:
            pass
        s.close()
    server.wait_fds(before)
    assert server.serves()
