"""SET_VRING_NUM."""

import struct

import pytest

import rawclient as rc


@pytest.mark.parametrize('size', [2, 4, 128, 1024])
def test_sizes(server, size):
    c = server.client()
    ring = c.start(size=size)
    for _ in range(size + 3):
        assert ring.read(0, 512, indirect=size < 4) == bytes(512)


@pytest.mark.ours
@pytest.mark.parametrize('size', [1, 2048, 4096, 8192, 16384, 32768])
def test_other_legal_sizes(server, size):
    c = server.client()
    ring = c.start(size=size)
    for _ in range(5):
        assert ring.read(0, 512, indirect=size == 1) == bytes(512)


@pytest.mark.ours
@pytest.mark.parametrize('size', [0, 32769, 65535, 65536, 65536 + 128, 0x80000000, 0xFFFFFFFF])
def test_bad_size(server, client, size):
    assert client.refused(rc.SET_VRING_NUM, struct.pack('<II', 0, size))
    client.close()
    assert server.serves()


@pytest.mark.ours
def test_not_a_power_of_two(server, client):
    """Illegal for a split ring: refused, or taken at its word."""
    if client.refused(rc.SET_VRING_NUM, struct.pack('<II', 0, 100)):
        client.close()
        assert server.serves()
        return
    ring = client.start(size=100)
    for _ in range(250):
        assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
@pytest.mark.parametrize('index', [4, 128, 255, 256, 0x100, 0x10000, 0x10001, 0xFFFFFFFF])
def test_b32_index_is_checked_at_full_width(server, client, index):
    """b32: a 32-bit index cut to 16 (or 8) bits would be ring 0."""
    assert client.refused(rc.SET_VRING_NUM, struct.pack('<II', index, 16))
    client.close()
    assert server.serves()


def test_changed_between_starts(server):
    """Firmware uses one size, the kernel another."""
    c = server.client()
    for size in (16, 128, 8, 256):
        ring = c.start(size=size)
        for _ in range(size + 1):
            assert ring.read(0, 512) == bytes(512)
        c.stop_ring(ring)
