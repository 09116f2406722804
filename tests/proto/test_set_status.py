"""SET_STATUS: never starts a ring; FEATURES_OK is echoed; 0 is a reset."""

import struct
import time

import pytest

import rawclient as rc

pytestmark = pytest.mark.ours


def test_features_ok_is_echoed(conn):
    conn.negotiate()
    s = rc.STATUS_ACKNOWLEDGE | rc.STATUS_DRIVER | rc.STATUS_FEATURES_OK
    conn.set_status(s)
    assert conn.get_status() == s


def test_rings_start_without_driver_ok(client):
    """QEMU 7.2 never sends DRIVER_OK here."""
    assert client.start().read(0, 512) == bytes(512)
    assert client.get_status() == 0


def test_driver_ok_starts_nothing(client):
    ring = client.start(enable=False)
    ring.blk(rc.T_IN, 0, in_len=512)
    ring.publish()
    client.set_status(15)
    ring.kick()
    time.sleep(0.2)
    assert ring.used_idx() == 0
    client.set_vring_enable(0)
    ring.wait()


def test_zero_resets(client):
    """Rings stop, and a driver may begin again."""
    client.set_status(15)
    ring = client.start()
    ring.read(0, 512)
    client.set_status(0)
    assert client.get_status() == 0
    client.set_features(client.features)
    client.set_status(15)
    assert client.start().read(0, 512) == bytes(512)


def test_zero_mends_a_broken_ring(client):
    ring = client.start(size=16)
    ring.set_avail_idx(17)
    ring.kick()
    assert rc.eventfd_count(ring.err_fd, rc.WAIT)
    client.set_status(0)
    assert client.get_status() == 0
    client.set_features(client.features)
    assert client.start(size=16).read(0, 512) == bytes(512)


def test_driver_cannot_set_needs_reset_for_ever(client):
    """FAILED and odd bits do no harm; bits above the byte are refused or cut."""
    client.set_status(0x80 | 15)
    assert client.alive()
    refused = client.refused(rc.SET_STATUS, struct.pack('<Q', 0x1FF))
    if not refused:
        assert client.get_status() <= 0xFF


def test_short_payload(server, client):
    client.send(rc.SET_STATUS, b'\x01')
    assert client.closed_by_server()
    client.close()
    assert server.serves()
