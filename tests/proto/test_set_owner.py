"""SET_OWNER."""

import pytest

import rawclient as rc


def test_ack(conn):
    conn.get_features()
    conn.set_protocol_features(rc.P_REPLY_ACK)
    conn.set_ack(rc.SET_OWNER)


def test_first_of_all(server):
    c = server.connect()
    c.send(rc.SET_OWNER)
    c.setup()
    assert c.start().read(0, 512) == bytes(512)


@pytest.mark.ours
def test_not_at_all(server):
    """Nothing depends on it: libblkio and others differ in where they send it."""
    c = server.connect()
    c.mem = rc.default_memory()
    c.features = c.get_features()
    c.set_protocol_features(c.get_protocol_features() & rc.P_OURS)
    c.set_features(c.features)
    c.set_mem_table()
    assert c.start().read(0, 512) == bytes(512)


@pytest.mark.ours
def test_twice_does_no_harm(server, client):
    ring = client.start()
    client.send(rc.SET_OWNER)
    assert client.alive()
    assert ring.read(0, 512) == bytes(512)
