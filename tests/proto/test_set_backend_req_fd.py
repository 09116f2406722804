"""SET_BACKEND_REQ_FD."""

import select
import socket

import pytest

import rawclient as rc


@pytest.mark.ours
def test_taken_and_closed_with_the_client(server):
    before = server.settled_fds()
    c = server.client()
    n = server.settled_fds()
    a, b = socket.socketpair()
    c.set_backend_req_fd(b.fileno())
    assert server.fds() == n + 1
    b.close()
    assert c.start().read(0, 512) == bytes(512)
    c.close()
    server.clients.remove(c)
    server.wait_fds(before)
    assert select.select([a], [], [], rc.WAIT)[0] and a.recv(1) == b'', 'the channel stays open'
    a.close()


@pytest.mark.ours
def test_replaced(server, client):
    a, b = socket.socketpair()
    client.set_backend_req_fd(b.fileno())
    n = server.settled_fds()
    for _ in range(10):
        client.set_backend_req_fd(b.fileno())
    assert server.fds() == n
    a.close()
    b.close()


@pytest.mark.ours
def test_other_end_hangs_up(server, client):
    """Nobody reads the channel any more: no spin, no end."""
    a, b = socket.socketpair()
    client.set_backend_req_fd(b.fileno())
    a.close()
    b.close()
    assert client.start().read(0, 512) == bytes(512)


@pytest.mark.ours
@pytest.mark.parametrize('count', [0, 2])
def test_descriptor_count(server, client, count):
    before = server.fds()
    a, b = socket.socketpair()
    client.send(rc.SET_BACKEND_REQ_FD, b'', [a.fileno()] * count)
    assert client.closed_by_server()
    a.close()
    b.close()
    client.close()
    server.clients.remove(client)
    assert server.serves()
    server.wait_fds_most(before)


@pytest.mark.ours
def test_u64_payload_is_tolerated_or_refused(server, client):
    """QEMU sends no payload; a rust-vmm front-end did send a u64."""
    a, b = socket.socketpair()
    client.send(rc.SET_BACKEND_REQ_FD, bytes(8), [b.fileno()])
    try:
        client.get_u64(rc.GET_FEATURES)
    except rc.Closed:
        pass
    a.close()
    b.close()
    client.close()
    assert server.serves()
