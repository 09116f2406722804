"""RESET_OWNER: deprecated; some front-ends send it before they leave, some to disable rings."""

import pytest

import rawclient as rc


@pytest.mark.ours
def test_ack_and_alive(server, client):
    client.start().read(0, 512)
    client.reset_owner()
    assert client.alive()


@pytest.mark.ours
def test_device_can_be_started_again(server, client):
    client.start().read(0, 512)
    client.reset_owner()
    client.set_owner()
    client.set_features(client.features)
    client.set_mem_table()
    assert client.start().read(0, 512) == bytes(512)


def test_then_leave(server):
    c = server.client()
    c.start().read(0, 512)
    c.send(rc.RESET_OWNER)
    c.close()
    server.clients.remove(c)
    assert server.serves()


@pytest.mark.ours
def test_with_requests_in_the_ring(server, client):
    ring = client.start()
    for i in range(32):
        ring.blk(rc.T_IN, i, in_len=512)
    ring.submit()
    client.reset_owner()
    assert client.alive()
    client.close()
    server.clients.remove(client)
    assert server.serves()
