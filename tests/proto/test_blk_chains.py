"""Bad chains: the head always comes back, the ring goes on (fault B16)."""

import os
import struct

import pytest

import rawclient as rc

pytestmark = pytest.mark.ours

W = rc.D_WRITE


class Box:
    """Good pieces to build bad chains of."""

    def __init__(self, ring):
        self.ring = ring
        mem = self.mem = ring.mem
        self.hdr = mem.alloc(16)
        self.data = mem.alloc(4096, 4096)
        self.status = mem.alloc(16)
        self.table = mem.alloc(16 * 64)
        self.reset()

    def reset(self, rtype=rc.T_IN, sector=0):
        self.mem.write(self.hdr, struct.pack('<IIQ', rtype, 0, sector))
        self.mem.write(self.data, b'\xcc' * 4096)
        self.mem.write(self.status, b'\xee' * 16)

    def st(self):
        return self.mem.read(self.status, 1)[0]


@pytest.fixture
def box(ring):
    return Box(ring)


def send(ring, descs):
    """One chain; returns the used length."""
    head = ring.add_chain(descs)
    ring.submit()
    (got, length), = ring.wait()
    assert got == head
    return length


def good(box):
    """The ring still serves."""
    assert box.ring.read(0, 512) == bytes(512)


H, D, S = 'hdr', 'data', 'status'
UNMAPPED = 0x700000000000

# name: (descriptors, a status byte can be found)
CHAINS = {
    'header only': (lambda b: [(b.hdr, 16, 0)], False),
    'header 15 bytes': (lambda b: [(b.hdr, 15, 0), (b.data, 512, W), (b.status, 1, W)], True),
    'header 15 bytes alone': (lambda b: [(b.hdr, 15, 0)], False),
    'header 1 byte': (lambda b: [(b.hdr, 1, 0), (b.status, 1, W)], True),
    'header empty': (lambda b: [(b.hdr, 0, 0), (b.data, 512, W), (b.status, 1, W)], True),
    'header writable': (lambda b: [(b.hdr, 16, W), (b.data, 512, W), (b.status, 1, W)], True),
    'header writable alone': (lambda b: [(b.hdr, 16, W)], True),
    'no header': (lambda b: [(b.status, 1, W)], True),
    'status read-only': (lambda b: [(b.hdr, 16, 0), (b.data, 512, W), (b.status, 1, 0)], None),
    'status read-only alone': (lambda b: [(b.hdr, 16, 0), (b.status, 1, 0)], False),
    'status length 0': (lambda b: [(b.hdr, 16, 0), (b.status, 0, W)], False),
    'status missing after out data': (lambda b: [(b.hdr, 16, 0), (b.data, 512, 0)], False),
    'readable after writable': (lambda b: [(b.hdr, 16, 0), (b.data, 512, W), (b.data, 512, 0),
                                           (b.status, 1, W)], True),
    'writable before header': (lambda b: [(b.data, 512, W), (b.hdr, 16, 0), (b.status, 1, W)],
                               True),
    'header unmapped': (lambda b: [(UNMAPPED, 16, 0), (b.data, 512, W), (b.status, 1, W)], True),
    'data unmapped': (lambda b: [(b.hdr, 16, 0), (UNMAPPED, 512, W), (b.status, 1, W)], True),
    'status unmapped': (lambda b: [(b.hdr, 16, 0), (b.data, 512, W), (UNMAPPED, 1, W)], False),
    'data beyond the region': (lambda b: [(b.hdr, 16, 0), (b.data, 0x7FFFFE00, W),
                                          (b.status, 1, W)], True),
    'data 4 GiB': (lambda b: [(b.hdr, 16, 0), (b.data, 0xFFFFFE00, W), (b.status, 1, W)], True),
    'address + length wraps': (lambda b: [(b.hdr, 16, 0), (0xFFFFFFFFFFFFFE00, 512, W),
                                          (b.status, 1, W)], True),
    'address + length wraps to a good one': (lambda b: [(b.hdr, 16, 0),
                                                        (0xFFFFFFFFFFFFFF00, 8192, W),
                                                        (b.status, 1, W)], True),
    'address is the last byte': (lambda b: [(b.hdr, 16, 0), (0xFFFFFFFFFFFFFFFF, 512, W),
                                            (b.status, 1, W)], True),
    'header wraps': (lambda b: [(0xFFFFFFFFFFFFFFF8, 16, 0), (b.data, 512, W), (b.status, 1, W)],
                     True),
    'status wraps': (lambda b: [(b.hdr, 16, 0), (b.data, 512, W), (0xFFFFFFFFFFFFFFFF, 2, W)],
                     False),
}


@pytest.mark.parametrize('name', CHAINS)
def test_b16_bad_chain(box, name):
    """b16: an error status where a status byte can be found, else used length 0."""
    make, has_status = CHAINS[name]
    ring = box.ring
    for _ in range(3):
        box.reset()
        length = send(ring, make(box))
        st = box.st()
        if name in ('header writable alone', 'header writable', 'no header'):
            assert length in (0, 1)
        elif has_status is True:
            assert (st, length) in ((rc.S_IOERR, 1), (rc.S_UNSUPP, 1)), name
        elif has_status is False:
            assert length == 0
            assert st == 0xEE
        else:
            assert length in (0, 1)
        if name not in ('readable after writable',):
            assert box.mem.read(box.data, 511) == b'\xcc' * 511
        good(box)


def test_status_descriptor_bigger_than_a_byte(box):
    """The status is the last byte of the device-writable part, not its first."""
    length = send(box.ring, [(box.hdr, 16, 0), (box.data, 512, W), (box.status, 8, W)])
    last = box.mem.read(box.status, 8)
    assert last[7] in (rc.S_OK, rc.S_IOERR) and length in (520, 1)
    good(box)


def test_out_data_with_a_longer_status(box):
    """OUT: the writable part is the status alone; its last byte counts."""
    box.reset(rc.T_OUT)
    length = send(box.ring, [(box.hdr, 16, 0), (box.data, 512, 0), (box.status, 4, W)])
    assert box.mem.read(box.status, 4)[3] in (rc.S_OK, rc.S_IOERR)
    assert length >= 1
    box.ring.write(0, bytes(512))
    good(box)


def test_empty_descriptors_between(box):
    """Length 0 in the data part is legal noise: OK or IOERR."""
    send(box.ring, [(box.hdr, 16, 0), (box.data, 0, W), (box.data, 512, W), (box.data, 0, W),
                    (box.status, 1, W)])
    assert box.st() in (rc.S_OK, rc.S_IOERR)
    good(box)




@pytest.mark.parametrize('length', [1, 2, 3, 16])
def test_descriptor_loop(box, length):
    """The chain comes back to itself: one chain lost, no endless loop."""
    ring = box.ring
    ids = [ring.free.pop() for _ in range(length)]
    for k, i in enumerate(ids):
        ring.write_desc(i, box.hdr if k == 0 else box.data, 16 if k == 0 else 512,
                        rc.D_NEXT | (W if k else 0), ids[(k + 1) % length])
    ring.chains[ids[0]] = ids
    ring.push_head(ids[0])
    ring.submit()
    (head, used), = ring.wait()
    assert head == ids[0] and used in (0, 1)
    good(box)


@pytest.mark.parametrize('nxt', [128, 129, 32767, 65535])
def test_next_out_of_range(box, nxt):
    ring = box.ring
    i = ring.free.pop()
    ring.write_desc(i, box.hdr, 16, rc.D_NEXT, nxt)
    ring.chains[i] = [i]
    ring.push_head(i)
    ring.submit()
    assert ring.wait() == [(i, 0)]
    good(box)


def indirect(box, raw, length=None, flags=0, gpa=None, more=()):
    box.mem.write(box.table, raw)
    return [(box.table if gpa is None else gpa, len(raw) if length is None else length,
             rc.D_INDIRECT | flags)] + list(more)


def table_of(box):
    return (struct.pack('<QIHH', box.hdr, 16, rc.D_NEXT, 1) +
            struct.pack('<QIHH', box.data, 512, rc.D_NEXT | W, 2) +
            struct.pack('<QIHH', box.status, 1, W, 0))


@pytest.mark.parametrize('length', [0, 1, 15, 17, 31, 47, 49])
def test_indirect_table_of_odd_length(box, length):
    used = send(box.ring, indirect(box, table_of(box), length))
    assert used in (0, 1)
    assert box.mem.read(box.data, 512) == b'\xcc' * 512
    good(box)


@pytest.mark.parametrize('gpa', [UNMAPPED, 0xFFFFFFFFFFFFFFF0, 0])
def test_indirect_table_unmapped(box, gpa):
    assert send(box.ring, indirect(box, table_of(box), gpa=gpa)) == 0
    good(box)


def test_indirect_table_huge(box):
    """4 GiB of table: nobody reads it."""
    assert send(box.ring, indirect(box, table_of(box), 0xFFFFFFF0)) in (0, 1)
    good(box)


def test_indirect_in_indirect(box):
    raw = struct.pack('<QIHH', box.table, 48, rc.D_INDIRECT, 0)
    assert send(box.ring, indirect(box, raw)) == 0
    raw = (struct.pack('<QIHH', box.hdr, 16, rc.D_NEXT, 1) +
           struct.pack('<QIHH', box.table, 48, rc.D_INDIRECT, 0))
    assert send(box.ring, indirect(box, raw)) == 0
    good(box)


@pytest.mark.parametrize('nxt', [3, 4, 100, 65535])
def test_indirect_next_out_of_range(box, nxt):
    raw = struct.pack('<QIHH', box.hdr, 16, rc.D_NEXT, nxt) + table_of(box)[16:]
    assert send(box.ring, indirect(box, raw)) == 0
    good(box)


def test_indirect_loop(box):
    raw = (struct.pack('<QIHH', box.hdr, 16, rc.D_NEXT, 1) +
           struct.pack('<QIHH', box.data, 512, rc.D_NEXT | W, 2) +
           struct.pack('<QIHH', box.data, 512, rc.D_NEXT | W, 1))
    assert send(box.ring, indirect(box, raw)) in (0, 1)
    good(box)


def test_indirect_with_next_flag(box):
    """INDIRECT and NEXT together: bad chain; the used length says so."""
    used = send(box.ring, indirect(box, table_of(box), more=[(box.status, 1, W)]))
    assert used in (0, 1)
    good(box)


def test_indirect_write_flag_is_ignored(box):
    """virtio 2.7.5.3.2: the write flag of the descriptor that points to the table means nothing."""
    used = send(box.ring, indirect(box, table_of(box), flags=W))
    assert (box.st(), used) == (rc.S_OK, 513)


def test_indirect_not_negotiated(server):
    """The flag without the feature: not followed."""
    c = server.client(without=rc.F_INDIRECT)
    ring = c.start()
    box = Box(ring)
    used = send(ring, indirect(box, table_of(box)))
    assert used in (0, 1, 513)
    good(box)


def test_unknown_descriptor_flags(box):
    used = send(box.ring, [(box.hdr, 16, 0x8), (box.data, 512, W | 0x8000), (box.status, 1, W)])
    assert used in (0, 1, 513)
    good(box)


def test_b16_three_rings_full_of_header_only(server, client):
    """b16: three times the ring of bad chains among good reads: every head comes back."""
    ring = client.start(size=16)
    box = Box(ring)
    back = 0
    for i in range(48):
        head = ring.add_chain([(box.hdr, 16, 0)])
        req = ring.blk(rc.T_IN, i, in_len=512)
        ring.submit()
        for h, n in ring.wait(2):
            if h == head:
                assert n == 0
                back += 1
            else:
                req.finish(n)
                assert h == req.head and req.status == rc.S_OK and n == 513
    assert back == 48
    lines = [x for x in server.log().splitlines() if x.strip()]
    assert len(lines) < 40, 'the log is not rate-limited: %d lines' % len(lines)


@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads'])
@pytest.mark.parametrize('segments', [127, 129, 515, 1022])
def test_b24_long_chains(serve, rng, engine, segments):
    """b24: more segments than seg_max: any legal chain is taken and split."""
    s = serve(engine=engine, queues=1)
    c = s.client()
    ring = c.start(size=1024)
    for shape in ('512', '4096', 'odd'):
        if shape == 'odd':
            cuts = [rng.randrange(1, 1500) for _ in range(segments - 1)]
            cuts.append(512 - sum(cuts) % 512 or 512)
        else:
            cuts = [int(shape)] * segments
        total = sum(cuts)
        data = os.urandom(total)
        for indirect_ in (False, True):
            align = 1 if shape == 'odd' else 512
            req = ring.do(rc.T_OUT, 8, out=data, segs=cuts, align=align, indirect=indirect_)
            assert (req.status, req.used_len) == (rc.S_OK, 1)
            req = ring.do(rc.T_IN, 8, in_len=total, segs=cuts, align=align, indirect=indirect_)
            assert (req.status, req.used_len) == (rc.S_OK, total + 1)
            assert req.data == data


@pytest.mark.parametrize('direct', ['on', 'off'])
def test_b24_long_chains_direct(serve, direct):
    """b24: 515 segments of mixed odd sizes at a file with O_DIRECT and without."""
    s = serve(direct=direct, queues=1)
    ring = s.client().start(size=1024)
    cuts = [1, 511, 3, 1021, 4097, 77, 2] * 73
    total = sum(cuts)
    cuts.append(512 - total % 512)
    total = sum(cuts)
    data = os.urandom(total)
    ring.write(3, data, segs=cuts, align=1)
    assert ring.read(3, total, segs=list(reversed(cuts)), align=1) == data


def test_chain_as_long_as_the_ring(server):
    c = server.client()
    ring = c.start(size=16)
    data = os.urandom(14 * 512)
    ring.write(0, data, segs=(512,) * 14)
    assert ring.read(0, len(data), segs=(512,) * 14) == data


def test_big_request(serve):
    """8 MiB in one descriptor."""
    ring = serve(queues=1).client().start()
    data = os.urandom(8 << 20)
    ring.write(0, data)
    assert ring.read(0, len(data)) == data
