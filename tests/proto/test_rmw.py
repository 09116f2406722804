"""Writes smaller than the disk's block (fault B40): no lost update."""

import os
import struct
import time

import pytest

import rawclient as rc
from conftest import soak

pytestmark = pytest.mark.ours


def hammer(rings, rng, seconds, base=64, discards=False):
    """Eight owners of one sector each, all in the same 4096 bytes, write counters at once.

    The neighbour block is written whole at the same time. Everything outstanding overlaps in
    time; what an owner reads back is what it wrote last.
    """
    mem = rings[0].mem
    value = [0] * 8
    end = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < end:
        mark = mem.mark()
        counts = [0] * len(rings)
        order = list(range(8))
        rng.shuffle(order)
        for k in order:
            value[k] += 1
            q = rng.randrange(len(rings))
            # odd alignment in guest memory: a bounce with O_DIRECT
            rings[q].blk(rc.T_OUT, base + k, out=struct.pack('<Q', value[k] << 8 | k) * 64,
                         align=rng.choice([1, 16, 512]))
            counts[q] += 1
        q = rng.randrange(len(rings))
        whole = os.urandom(4096)
        rings[q].blk(rc.T_OUT, base + 8, out=whole, align=4096)
        counts[q] += 1
        if discards:
            q = rng.randrange(len(rings))
            rings[q].blk(rc.T_WRITE_ZEROES, out=struct.pack('<QII', base + 16, 5, 0))
            counts[q] += 1
        for q, r in enumerate(rings):
            r.submit()
        for q, r in enumerate(rings):
            assert all(n == 1 for _, n in r.wait(counts[q], poll=True))
        got = rings[0].read(base, 4096 + 4096)
        for k in range(8):
            want = struct.pack('<Q', value[k] << 8 | k) * 64
            assert got[k * 512:(k + 1) * 512] == want, 'round %d: lost update of %d' % (rounds, k)
        assert got[4096:] == whole
        mem.release(mark)
        rounds += 1
    assert rounds >= 10


@pytest.mark.parametrize('queues', [1, 2])
@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads'])
@pytest.mark.parametrize('direct', ['on', 'off'])
def test_b40_sectors_of_one_block(serve, rng, engine, direct, queues):
    """b40: on the file system of the tests."""
    s = serve(disks=[{'engine': engine, 'direct': direct, 'queues': queues, 'block_size': 512}],
              args=['--iothreads', '2'])
    c = s.client()
    hammer([c.start(i) for i in range(queues)], rng, soak(0.4, 60), discards=True)


@pytest.mark.parametrize('queues', [1, 2])
@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads'])
def test_b40_on_a_4k_device(serve, rng, loop4k, engine, queues):
    """b40: block-size=512 over a device of 4096-byte sectors with O_DIRECT."""
    s = serve(disks=[{'path': loop4k, 'engine': engine, 'direct': 'on', 'queues': queues,
                      'block_size': 512}], args=['--iothreads', '2'])
    c = s.client()
    rings = [c.start(i) for i in range(queues)]
    assert rings[0].read(0, 512) == b'\xaa' * 512
    hammer(rings, rng, soak(0.6, 60), discards=True)
    assert rings[0].read(1000, 512) == b'\xaa' * 512
