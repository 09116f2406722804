"""GET_STATUS."""

import pytest

import rawclient as rc

pytestmark = pytest.mark.ours


def test_zero_at_first(conn):
    conn.negotiate()
    assert conn.get_status() == 0


def test_what_was_set(conn):
    conn.negotiate()
    for s in (1, 3, 11, 15):
        conn.set_status(s)
        assert conn.get_status() == s


def test_needs_reset_after_a_broken_ring(client):
    client.set_status(15)
    ring = client.start(size=16)
    assert client.get_status() == 15
    ring.set_avail_idx(17)
    ring.kick()
    assert rc.eventfd_count(ring.err_fd, rc.WAIT)
    assert client.get_status() == 15 | rc.STATUS_NEEDS_RESET


def test_new_client_new_status(server, conn):
    conn.negotiate()
    conn.set_status(15)
    conn.close()
    c = server.next_client()
    assert c.get_status() == 0
