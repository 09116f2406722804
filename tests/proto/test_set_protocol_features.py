"""SET_PROTOCOL_FEATURES."""

import pytest

import rawclient as rc


@pytest.mark.ours
def test_no_reply_before_reply_ack(conn):
    """need_reply means nothing until REPLY_ACK is negotiated."""
    conn.get_features()
    conn.send(rc.SET_OWNER, flags=rc.VERSION | rc.NEED_REPLY)
    assert conn.get(rc.GET_FEATURES).request == rc.GET_FEATURES


def test_reply_with_reply_ack(conn):
    conn.get_features()
    conn.set_protocol_features(rc.P_REPLY_ACK)
    conn.set_ack(rc.SET_OWNER)


def test_no_reply_without_the_flag(conn):
    conn.get_features()
    conn.set_protocol_features(rc.P_REPLY_ACK)
    conn.send(rc.SET_OWNER)
    assert conn.get(rc.GET_FEATURES).request == rc.GET_FEATURES


@pytest.mark.ours
@pytest.mark.parametrize('bit', [rc.P_LOG_SHMFD, rc.P_PAGEFAULT, rc.P_INFLIGHT_SHMFD,
                                 rc.P_INBAND_NOTIFICATIONS, 1 << 40, 1 << 63])
def test_unoffered_bit_is_refused(server, conn, bit):
    conn.get_features()
    conn.set_protocol_features(rc.P_REPLY_ACK)
    assert conn.refused(rc.SET_PROTOCOL_FEATURES,
                        (rc.P_REPLY_ACK | bit).to_bytes(8, 'little'))
    conn.close()
    assert server.serves()


def test_none_at_all(server):
    """Bit 30 with an empty set: ENABLE works, the rest is the old protocol."""
    c = server.connect().setup(protocol=0)
    assert c.start().read(0, 512) == bytes(512)


def test_get_with_need_reply_has_one_answer(conn):
    """A request with an answer of its own is not answered twice."""
    conn.negotiate()
    msg = conn.get(rc.GET_FEATURES, flags=rc.VERSION | rc.NEED_REPLY)
    assert len(msg.payload) == 8
    assert conn.get(rc.GET_QUEUE_NUM).request == rc.GET_QUEUE_NUM
