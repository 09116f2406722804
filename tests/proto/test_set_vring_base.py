"""SET_VRING_BASE."""

import struct

import pytest

import rawclient as rc


@pytest.mark.parametrize('base', [0, 1, 127, 128, 32767, 32768, 65530, 65535])
@pytest.mark.parametrize('event_idx', [True, False])
def test_index_wraps(server, base, event_idx):
    """The ring begins anywhere in the 16 bits and goes through 65535 -> 0."""
    c = server.client(without=0 if event_idx else rc.F_EVENT_IDX)
    ring = c.start(size=16, base=base)
    for _ in range(40):
        assert ring.read(0, 512) == bytes(512)
    assert ring.used_idx() == (base + 40) & 0xFFFF
    assert c.get_vring_base(0) == (base + 40) & 0xFFFF


@pytest.mark.ours
@pytest.mark.parametrize('gap', [0, 1, 7, 300])
def test_b27_used_index_is_read_from_the_ring(server, gap):
    """b27: a new driver's ring has its own used idx; it goes on from there, not from the old."""
    c = server.client()
    ring = c.start(size=16)
    for _ in range(23):
        ring.read(0, 512)
    c.stop_ring(ring)
    ring = c.make_ring(size=16, base=0)
    ring.set_avail_idx(0)
    ring._uh[ring._uo + 1] = gap        # such as after a restore: not the same as avail
    ring.last_used = gap
    c.start_ring(ring)
    for _ in range(20):
        assert ring.read(0, 512) == bytes(512)
    assert ring.used_idx() == gap + 20


@pytest.mark.parametrize('rounds', [3])
def test_b27_new_driver_from_zero(server, rounds):
    """b27: firmware, boot loader and kernel: a fresh zero ring each, base 0."""
    c = server.client()
    for size in (16, 128, 256) * rounds:
        ring = c.start(size=size, base=0)
        for i in range(10):
            assert ring.read(i, 512) == bytes(512)
        c.stop_ring(ring)


@pytest.mark.ours
@pytest.mark.parametrize('index', [4, 0x100, 0x10000, 0xFFFFFFFF])
def test_b32_index_is_checked_at_full_width(server, client, index):
    assert client.refused(rc.SET_VRING_BASE, struct.pack('<II', index, 0))
    client.close()
    assert server.serves()


@pytest.mark.ours
@pytest.mark.parametrize('num', [0x10000, 0xFFFFFFFF])
def test_number_beyond_16_bits(server, client, num):
    """Never more than an index: refused, or cut to 16 bits and the ring works from there."""
    ring = client.make_ring(base=num & 0xFFFF)
    try:
        client.start_ring(ring, base=num)
    except (rc.Refused, rc.Closed):
        client.close()
        assert server.serves()
        return
    assert ring.read(0, 512) == bytes(512)
