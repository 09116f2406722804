"""A driver that changes descriptors and headers while we read them (fault B23).

The flipper is a thread of C speed: memset on shared memory through ctypes drops the GIL.
"""

import ctypes
import threading
import time

import pytest

import rawclient as rc
from conftest import soak

pytestmark = pytest.mark.ours


class Flipper(threading.Thread):
    """Writes the values into one place, round and round."""

    def __init__(self, mem, gpa, values):
        super().__init__(daemon=True)
        self.view = rc.memory_words(mem, gpa, len(values[0]))
        self.values = [ctypes.create_string_buffer(v, len(v)) for v in values]
        self.size = len(values[0])
        self.stop = False

    def run(self):
        memmove = ctypes.memmove
        view, size, values = self.view, self.size, self.values
        while not self.stop:
            for _ in range(50):
                for v in values:
                    memmove(view, v, size)


D = '<QIHH'
P = rc.struct.pack
WILD = 0x700000000000


def flips(ring, req):
    """Place and values of each flip."""
    hdr, data, st = req.descs()
    table = req.table
    good = P(D, data[0], 512, rc.D_NEXT | rc.D_WRITE, 2)
    return {
        'desc len': (table + 24, [P('<I', 512), P('<I', 0xFFFFFE00), P('<I', 1 << 24)]),
        'desc addr': (table + 16, [P('<Q', data[0]), P('<Q', WILD), P('<Q', (1 << 64) - 256)]),
        'desc flags': (table + 28, [P('<H', 3), P('<H', 4), P('<H', 1), P('<H', 0)]),
        'desc next': (table + 30, [P('<H', 2), P('<H', 60000), P('<H', 1), P('<H', 0)]),
        'desc all': (table + 16, [good, P(D, WILD, 0xFFFFFFFF, 7, 0xFFFF)]),
        'header type': (hdr[0], [P('<I', 0), P('<I', 1), P('<I', 4), P('<I', 8), P('<I', 13)]),
        'header sector': (hdr[0] + 8, [P('<Q', 0), P('<Q', 1 << 62), P('<Q', 32767)]),
        'indirect len': (ring.desc + 16 * req.head + 8, [P('<I', 48), P('<I', 0xFFFFFFF0),
                                                         P('<I', 16)]),
        'indirect addr': (ring.desc + 16 * req.head, [P('<Q', table), P('<Q', WILD)]),
        'indirect flags': (ring.desc + 16 * req.head + 12, [P('<H', 4), P('<H', 0), P('<H', 1)]),
        'avail ring': (ring.avail + 4, [P('<H', req.head), P('<H', req.head)]),
    }


NAMES = ['desc len', 'desc addr', 'desc flags', 'desc next', 'desc all', 'header type',
         'header sector', 'indirect len', 'indirect addr', 'indirect flags', 'avail ring']


@pytest.mark.parametrize('name', NAMES)
def test_b23_flipper(serve, name):
    """b23: the daemon lives, every head comes back, statuses are those of the spec."""
    s = serve(queues=2, direct='off')
    c = s.client()
    ring, other = c.start(0, size=16), c.start(1)
    req = rc.BlkReq(ring, rc.T_IN, 0, in_len=512)
    req.table = c.mem.alloc(16 * 3)
    n = ring.write_table(req.table, req.descs())
    head = req.head = ring.add_chain([(req.table, n, rc.D_INDIRECT)])
    ids = ring.chains[head]
    gpa, values = flips(ring, req)[name]
    f = Flipper(c.mem, gpa, values)
    seen = set()
    first = True
    f.start()
    end = time.monotonic() + soak(1.0, 120)
    count = 0
    try:
        while time.monotonic() < end:
            for _ in range(50):
                if not first:
                    ring.chains[head] = ids
                    ring.free.remove(head)
                    ring.push_head(head)
                first = False
                req.reset()
                ring.publish()
                ring.kick()
                (got, length), = ring.wait(1, poll=True)
                assert got == head
                seen.add(req.peek_status())
                count += 1
    finally:
        f.stop = True
        f.join()
    assert seen <= {rc.S_OK, rc.S_IOERR, rc.S_UNSUPP, rc.S_UNTOUCHED, 0xFF}, seen
    assert count >= 50
    assert other.read(100, 512) == bytes(512)
    c.close()
    assert s.serves()


def test_b23_avail_idx(serve):
    """b23: the index itself jumps: the ring may break, the daemon and the other ring go on."""
    s = serve(queues=2)
    c = s.client()
    ring, other = c.start(0, size=16), c.start(1)
    ring.blk(rc.T_IN, 0, in_len=512)
    f = Flipper(c.mem, ring.avail + 2, [P('<H', v) for v in (0, 1, 40000, 16, 3)])
    f.start()
    end = time.monotonic() + soak(0.7, 60)
    try:
        while time.monotonic() < end:
            ring.kick()
            assert other.read(0, 512) == bytes(512)
    finally:
        f.stop = True
        f.join()
    c.close()
    assert s.serves()
