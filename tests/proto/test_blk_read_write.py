"""virtio-blk IN and OUT: data, status, used length, every descriptor layout."""

import os

import pytest

import rawclient as rc
from conftest import disk_bytes

LAYOUTS = {
    'plain': {},
    'header-1-7-8': {'hdr_cut': (1, 7, 8)},
    'header-bytes': {'hdr_cut': (1,) * 16},
    'segments': {'segs': (512, 1024, 4096)},
    'odd-segments': {'segs': (1, 511, 3, 1000, 33)},
    'unaligned': {'align': 1, 'hdr_cut': (3, 13), 'segs': (7, 505)},
    'indirect': {'indirect': True, 'segs': (512, 1024)},
    'indirect-header-bytes': {'indirect': True, 'hdr_cut': (1,) * 16, 'align': 1},
    'mixed-indirect': {'indirect': 'mixed', 'segs': (512, 1024)},
}


# virtio 2.7.5.3.2: normal descriptors may come before the indirect one; the peer cannot do it.
PARAMS = [pytest.param(n, marks=pytest.mark.ours) if n == 'mixed-indirect' else n
          for n in LAYOUTS]


@pytest.mark.parametrize('name', PARAMS)
def test_write_then_read(server, ring, name):
    data = os.urandom(8192)
    ring.write(8, data, **LAYOUTS[name])
    assert disk_bytes(server.image(), 8 * 512, 8192) == data
    assert ring.read(8, 8192, **LAYOUTS[name]) == data
    assert ring.read(0, 4096) == bytes(4096)


def test_header_and_data_in_one_descriptor(server, ring):
    data = os.urandom(1024)
    req = ring.do(rc.T_OUT, 4, out=data, join_hdr=True)
    assert (req.status, req.used_len) == (rc.S_OK, 1)
    assert ring.read(4, 1024) == data
    data = os.urandom(1024)
    req = ring.do(rc.T_OUT, 4, out=data, join_hdr=True, hdr_cut=(5, 20, 300))
    assert req.status == rc.S_OK
    assert disk_bytes(server.image(), 4 * 512, 1024) == data


@pytest.mark.parametrize('indirect', [False, True])
def test_status_is_last_byte_of_data_descriptor(server, ring, indirect):
    data = os.urandom(4096)
    ring.write(16, data)
    req = ring.do(rc.T_IN, 16, in_len=4096, segs=(512,), tail_status=True, indirect=indirect)
    assert (req.status, req.used_len) == (rc.S_OK, 4097)
    assert req.data == data


def test_buffers_span_two_regions(server):
    """Header, data, status and the indirect table each cross the border of two regions."""
    c = server.connect()
    a = rc.Region(0x100000, 1 << 20)
    b = rc.Region(0x200000, 1 << 20)
    c.setup(mem=rc.Memory([a, b]))
    ring = c.start(size=16)
    border = 0x200000
    data = os.urandom(4096)
    for off in (1, 8, 15):
        mem = c.mem
        hdr = border - off
        mem.write(hdr, b'\x01\0\0\0\0\0\0\0' + (32).to_bytes(8, 'little'))
        buf = mem.alloc(4096)
        mem.write(buf, data)
        st = mem.alloc(1)
        mem.write(st, b'\xee')
        ring.add_chain([(hdr, 16, 0), (buf, 4096, 0), (st, 1, rc.D_WRITE)])
        ring.submit()
        assert ring.wait()[0][1] == 1
        assert mem.read(st, 1) == b'\0'
    hdr = c.mem.alloc(16)
    for off in (1, 512, 4095):
        c.mem.write(hdr, bytes(8) + (32).to_bytes(8, 'little'))
        c.mem.write(border - 8192, bytes(16384))
        buf = border - off
        ring.add_chain([(hdr, 16, 0), (buf, 4096, rc.D_WRITE), (st, 1, rc.D_WRITE)])
        ring.submit()
        assert ring.wait()[0][1] == 4097
        assert c.mem.read(buf, 4096) == data
        assert c.mem.read(border - 8192, 8192 - off) == bytes(8192 - off)
    # The status byte behind the border, after a data part before it.
    c.mem.write(hdr, bytes(8) + (32).to_bytes(8, 'little'))
    ring.add_chain([(hdr, 16, 0), (border - 512, 513, rc.D_WRITE)])
    c.mem.write(border, b'\xee')
    ring.submit()
    assert ring.wait()[0][1] == 513
    assert c.mem.read(border - 512, 513) == data[:512] + b'\0'


@pytest.mark.ours
def test_indirect_table_spans_two_regions(server):
    c = server.connect()
    c.setup(mem=rc.Memory([rc.Region(0x100000, 1 << 20), rc.Region(0x200000, 1 << 20)]))
    ring = c.start(size=16)
    hdr = c.mem.alloc(16)
    c.mem.write(hdr, bytes(16))
    buf = c.mem.alloc(512)
    st = c.mem.alloc(1)
    for off in (8, 16, 24, 40):
        c.mem.write(st, b'\xee')
        n = ring.write_table(0x200000 - off, [(hdr, 16, 0), (buf, 512, rc.D_WRITE),
                                              (st, 1, rc.D_WRITE)])
        ring.add_chain([(0x200000 - off, n, rc.D_INDIRECT)])
        ring.submit()
        assert ring.wait()[0][1] == 513
        assert c.mem.read(st, 1) == b'\0'


def test_depth(ring):
    """A full ring of different requests in one publish: each gets its own data."""
    blocks = [os.urandom(512) for _ in range(32)]
    reqs = [ring.blk(rc.T_OUT, i * 3, out=blocks[i]) for i in range(32)]
    ring.submit()
    done = dict(ring.wait(32))
    assert sorted(done) == sorted(r.head for r in reqs)
    reqs = {r.head: (i, r) for i, r in
            ((i, ring.blk(rc.T_IN, i * 3, in_len=512)) for i in range(32))}
    ring.submit()
    for head, length in ring.wait(32):
        i, r = reqs[head]
        r.finish(length)
        assert r.status == rc.S_OK and r.data == blocks[i]


def test_last_sector(client):
    ring = client.start()
    last = client.config().capacity - 1
    data = os.urandom(512)
    ring.write(last, data)
    assert ring.read(last, 512) == data


def test_ioprio_is_ignored(ring):
    req = ring.do(rc.T_IN, 0, in_len=512, ioprio=0xFFFFFFFF)
    assert req.status == rc.S_OK


def test_adjacent_requests_keep_their_data(server, ring):
    """Requests that touch are merged inside; nobody may see it."""
    reqs = [ring.blk(rc.T_OUT, 64 + i, out=bytes([i + 1]) * 512) for i in range(16)]
    ring.submit()
    for head, length in ring.wait(16):
        assert length == 1
    assert all(r.peek_status() == rc.S_OK for r in reqs)
    want = b''.join(bytes([i + 1]) * 512 for i in range(16))
    assert disk_bytes(server.image(), 64 * 512, 8192) == want
    ring2 = [ring.blk(rc.T_IN, 64 + i, in_len=512) for i in range(16)]
    ring.submit()
    used = dict(ring.wait(16))
    for i, r in enumerate(ring2):
        r.finish(used[r.head])
        assert r.used_len == 513 and r.data == bytes([i + 1]) * 512
