"""One client a socket; the next when it has left."""

import os
import signal

import pytest

import rawclient as rc

pytestmark = pytest.mark.ours


def test_refused_beside_a_live_one(server, client):
    ring = client.start()
    before = server.fds()
    for _ in range(10):
        c = server.connect()
        assert c.closed_by_server()
        c.close()
        server.clients.remove(c)
        assert ring.read(0, 512) == bytes(512)
    server.wait_fds(before)


def test_refused_although_it_talks_first(server, client):
    ring = client.start()
    c = server.connect()
    try:
        c.send(rc.GET_FEATURES)
        c.recv()
        raise AssertionError('answered')
    except rc.Closed:
        pass
    assert ring.read(0, 512) == bytes(512)


def test_next_is_taken_after_the_first(server, client):
    data = os.urandom(512)
    client.start().write(0, data)
    client.close()
    c = server.next_client()
    assert c.start().read(0, 512) == data


def test_twenty_one_after_the_other(server):
    before = server.fds()
    for i in range(20):
        with server.next_client() as c:
            for q in range(1 + i % 4):
                assert c.start(q).read(0, 512) == bytes(512)
        server.clients.remove(c)
    server.wait_fds(before)


def test_socket_of_another_disk(serve):
    s = serve(disks=[{'queues': 1}, {'queues': 1}])
    a, b = s.client(0), s.client(1)
    a.start().write(0, b'a' * 512)
    b.start().write(0, b'b' * 512)
    assert a.rings[0].read(0, 512) == b'a' * 512
    assert b.rings[0].read(0, 512) == b'b' * 512


def test_two_sockets_of_one_disk(serve):
    """share=on: the same disk, one lock, two clients."""
    d = serve.dir / 'shared.img'
    d.write_bytes(bytes(1 << 20))
    s = serve(disks=[{'path': str(d), 'id': 'x'}, {'id': 'x', 'share': 'on'}])
    a, b = s.client(0), s.client(1)
    a.start().write(0, b'a' * 512)
    assert b.start().read(0, 512) == b'a' * 512
    a.close()
    assert b.rings[0].read(0, 512) == b'a' * 512


def test_client_killed_under_load(server):
    """A VM that is killed: its requests end, the next one starts clean."""
    import subprocess
    import sys
    from conftest import HERE
    code = ('import sys; sys.path.insert(0, %r)\n'
            'import rawclient as rc\n'
            'c = rc.Client(%r).setup(); r = c.start()\n'
            'print("x", flush=True)\n'
            'while True:\n'
            '    for i in range(32): r.blk(rc.T_IN, i, in_len=512)\n'
            '    r.submit(); r.wait(32); c.mem.release([1 << 16])\n'
            % (str(HERE), server.disks[0]['socket']))
    before = server.fds()
    for _ in range(3):
        p = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE)
        try:
            assert p.stdout.read(1) == b'x'
            assert server.fds() > before
        finally:
            p.send_signal(signal.SIGKILL)
            p.wait()
            p.stdout.close()
        server.wait_fds(before)
    assert server.serves()
