"""GET_PROTOCOL_FEATURES."""

import pytest

import rawclient as rc


@pytest.mark.ours
def test_exactly_ours(conn):
    assert conn.get_protocol_features() == rc.P_OURS


def test_contains_what_front_ends_need(conn):
    assert conn.get_features() & rc.F_PROTOCOL
    got = conn.get_protocol_features()
    for bit in (rc.P_MQ, rc.P_REPLY_ACK, rc.P_CONFIG):
        assert got & bit


def test_before_set_features(conn):
    """The spec lets a front-end ask before it has acked bit 30."""
    conn.get_features()
    assert conn.get_protocol_features() == conn.get_protocol_features()


@pytest.mark.ours
def test_no_postcopy_no_log_no_inflight(conn):
    assert not conn.get_protocol_features() & (rc.P_PAGEFAULT | rc.P_LOG_SHMFD |
                                               rc.P_INFLIGHT_SHMFD | rc.P_INBAND_NOTIFICATIONS)
