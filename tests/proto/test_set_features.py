"""SET_FEATURES: refusals, features that are not taken, and features sent again."""

import os

import pytest

import rawclient as rc


@pytest.mark.ours
@pytest.mark.parametrize('bit', [rc.F_RING_PACKED, rc.F_IN_ORDER, rc.F_ACCESS_PLATFORM,
                                 rc.F_LOG_ALL, rc.F_RING_RESET, 1 << 63])
def test_unoffered_bit_is_refused(server, conn, bit):
    conn.negotiate()
    assert conn.refused(rc.SET_FEATURES, (conn.offered | bit).to_bytes(8, 'little'))
    conn.close()
    assert server.serves()


@pytest.mark.parametrize('without', [rc.F_EVENT_IDX, rc.F_INDIRECT,
                                     rc.F_EVENT_IDX | rc.F_INDIRECT,
                                     rc.F_FLUSH | rc.F_CONFIG_WCE, rc.F_MQ | rc.F_SEG_MAX])
def test_subsets(server, without):
    ring = server.client(without=without).start()
    data = os.urandom(4096)
    ring.write(8, data)
    for _ in range(300):
        assert ring.read(8, 512) == data[:512]


@pytest.mark.ours
def test_without_version_1(server):
    """A legacy driver: served (little-endian hosts see no difference) or refused, not hung."""
    c = server.connect()
    try:
        c.setup(without=rc.F_VERSION_1)
    except (rc.Refused, rc.Closed):
        c.close()
        assert server.serves()
        return
    assert c.start().read(0, 512) == bytes(512)


def test_without_protocol_features_rings_start_enabled(server):
    """b28: no bit 30, so no ENABLE: the kick descriptor alone starts the ring."""
    c = server.client(without=rc.F_PROTOCOL)
    ring = c.start()
    data = os.urandom(512)
    ring.write(1, data)
    assert ring.read(1, 512) == data


def test_without_protocol_features_second_queue(server):
    c = server.client(without=rc.F_PROTOCOL)
    rings = [c.start(i) for i in range(2)]
    for r in rings:
        assert r.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_b28_sent_again_while_rings_run(server):
    """b28: QEMU sends SET_FEATURES again with rings running; nothing may be lost."""
    c = server.client()
    ring = c.start()
    for i in range(50):
        reqs = [ring.blk(rc.T_IN, k, in_len=512) for k in range(8)]
        ring.submit()
        c.set_features(c.features)
        ring.wait(8)
        assert all(r.peek_status() == rc.S_OK for r in reqs)
        c.mem.release([r.bump for r in c.mem.regions])
    assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_b28_features_after_everything_else(server):
    """b28: the features may come when the rings are already described and kicked."""
    c = server.connect()
    offered = c.get_features()
    c.set_protocol_features(c.get_protocol_features() & rc.P_OURS)
    c.set_owner()
    c.mem = rc.default_memory()
    c.set_mem_table()
    ring = c.make_ring(event_idx=True)
    c.features = 0
    c.start_ring(ring, enable=False)
    c.set_features(offered)
    c.set_vring_enable(0, 1)
    assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_event_idx_is_dropped_with_the_client(server):
    """The next client's features are its own: here flag mode after EVENT_IDX."""
    with server.client() as c:
        c.start().read(0, 512)
    c = server.next_client(without=rc.F_EVENT_IDX)
    ring = c.start()
    for _ in range(50):
        ring.read(0, 512)


def test_short_payload_closes(server, conn):
    conn.get_features()
    conn.send(rc.SET_FEATURES, bytes(4))
    assert conn.closed_by_server()
    conn.close()
    assert server.serves()
