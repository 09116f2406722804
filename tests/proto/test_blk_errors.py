"""Requests that are answered by a status: unknown types, bad ranges and lengths, read-only."""

import hashlib
import os
import struct

import pytest

import rawclient as rc
from conftest import disk_bytes, make_image


def digest(server):
    with open(server.image(), 'rb') as f:
        return hashlib.sha256(f.read()).hexdigest()


@pytest.mark.parametrize('rtype', [2, 3, 5, 6, 7, 9, 10, 12, 14, 15, 16, 255, 0x100, 0x80000002,
                                   0xFFFFFFFF])
def test_unsupported_type(server, ring, rtype):
    before = digest(server)
    for layout in ({'in_len': 512}, {'out': b'x' * 512}, {}):
        req = ring.do(rtype, 0, **layout)
        assert req.status == rc.S_UNSUPP
        assert req.used_len >= 1
    assert digest(server) == before
    assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_unsupported_type_writes_one_byte(ring):
    """used.len counts what was written: the status alone."""
    assert ring.do(200, 0, in_len=4096).used_len == 1


CAP = 16 * 2048
RANGES = [(CAP, 512), (CAP - 1, 1024), (CAP + 1, 512), (1 << 40, 512), ((1 << 55) - 1, 512),
          (1 << 55, 512), ((1 << 55) + 1, 512), ((1 << 64) - 1, 512), ((1 << 64) - 1, 1024),
          ((1 << 64) - 8, 8192), ((1 << 63), 512)]


@pytest.mark.parametrize('sector,length', RANGES)
def test_out_of_range(server, ring, sector, length):
    before = digest(server)
    assert ring.do(rc.T_IN, sector, in_len=length).status == rc.S_IOERR
    assert ring.do(rc.T_OUT, sector, out=b'x' * length).status == rc.S_IOERR
    assert digest(server) == before
    assert os.stat(server.image()).st_size == CAP * 512


@pytest.mark.ours
@pytest.mark.parametrize('sector,length', RANGES)
def test_out_of_range_writes_one_byte(ring, sector, length):
    req = ring.do(rc.T_IN, sector, in_len=length)
    assert req.used_len == 1
    assert not any(req.data)


@pytest.mark.parametrize('length', [1, 511, 513, 1023, 4095])
def test_misaligned_length(server, ring, length):
    """b45: not a multiple of 512: IOERR without touching the disk."""
    before = digest(server)
    assert ring.do(rc.T_IN, 0, in_len=length).status == rc.S_IOERR
    assert ring.do(rc.T_OUT, 0, out=b'x' * length).status == rc.S_IOERR
    assert digest(server) == before


@pytest.mark.ours
def test_b45_zero_length(server, ring):
    """b45: no data at all: OK or IOERR, no more."""
    for rtype in (rc.T_IN, rc.T_OUT):
        req = ring.do(rtype, 0)
        assert req.status in (rc.S_OK, rc.S_IOERR) and req.used_len == 1


@pytest.mark.ours
@pytest.mark.parametrize('sector,length', [(1, 4096), (8, 512), (0, 2048), (7, 4096)])
def test_misaligned_to_a_block_of_4096(serve, sector, length):
    """block-size=4096: the driver promised whole blocks; else IOERR."""
    s = serve(block_size=4096)
    ring = s.client().start()
    before = digest(s)
    assert ring.do(rc.T_IN, sector, in_len=length).status == rc.S_IOERR
    assert ring.do(rc.T_OUT, sector, out=b'x' * length).status == rc.S_IOERR
    assert digest(s) == before


@pytest.fixture
def ro(serve):
    path = make_image(serve.dir / 'ro.img', fill=0x33, size=1 << 20)
    os.chmod(path, 0o444)
    return serve(path=path, readonly='on', queues=1, direct='off')


@pytest.mark.parametrize('ack', [True, False])
def test_b44_read_only(ro, ack):
    """b44: also for a driver that did not take RO: every write is IOERR, FLUSH is fine."""
    before = digest(ro)
    ring = ro.client(without=0 if ack else rc.F_RO).start()
    assert ring.do(rc.T_OUT, 0, out=b'x' * 512).status == rc.S_IOERR
    assert ring.do(rc.T_OUT, 0, out=b'x' * 65536, segs=(4096,)).status == rc.S_IOERR
    assert ring.read(0, 512) == b'\x33' * 512
    assert digest(ro) == before


@pytest.mark.ours
@pytest.mark.parametrize('ack', [True, False])
def test_b44_read_only_other_requests(ro, ack):
    before = digest(ro)
    ring = ro.client(without=0 if ack else rc.F_RO).start()
    for rtype in (rc.T_DISCARD, rc.T_WRITE_ZEROES):
        req = ring.do(rtype, out=struct.pack('<QII', 0, 8, 0))
        assert (req.status, req.used_len) in ((rc.S_IOERR, 1), (rc.S_UNSUPP, 1))
        if ring.do(rtype, out=struct.pack('<QII', 0, 8, 0)).status == rc.S_UNSUPP:
            # only when the feature is not offered on a read-only disk
            f = rc.F_DISCARD if rtype == rc.T_DISCARD else rc.F_WRITE_ZEROES
            assert not ro.clients[0].offered & f
    assert ring.do(rc.T_FLUSH).status == rc.S_OK
    assert ring.do(rc.T_GET_ID, in_len=20).status == rc.S_OK
    assert digest(ro) == before


@pytest.mark.ours
def test_b44_two_readers_of_one_image(serve):
    """b44: a shared lock: another read-only user is welcome."""
    path = make_image(serve.dir / 'r.img', fill=0x33, size=1 << 20)
    a = serve(path=path, readonly='on')
    b = serve(path=path, readonly='on')
    for s in (a, b):
        assert s.client().start().read(0, 512) == b'\x33' * 512


@pytest.mark.ours
def test_b44_image_in_use(serve):
    """A writer beside it is refused with one line and exit 1."""
    path = make_image(serve.dir / 'r.img', size=1 << 20)
    a = serve(path=path)
    with pytest.raises(RuntimeError, match='ended with 1'):
        serve(path=path)
    with pytest.raises(RuntimeError, match='ended with 1'):
        serve(path=path, readonly='on')
    assert a.serves()


@pytest.mark.ours
@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads'])
def test_image_that_was_truncated(serve, engine):
    """The image shrinks under us: an error or zeroes, never a hang or success with rubbish."""
    s = serve(engine=engine, direct='off')
    with open(s.image(), 'r+b') as f:
        f.write(b'\x44' * (1 << 20))
    ring = s.client().start()
    assert ring.read(0, 512) == b'\x44' * 512
    os.truncate(s.image(), 512)
    req = ring.do(rc.T_IN, 1000, in_len=4096)
    assert req.status == rc.S_IOERR or not any(req.data)
    req = ring.do(rc.T_IN, 0, in_len=4096)
    assert req.status == rc.S_IOERR or req.data == b'\x44' * 512 + bytes(3584)
    assert ring.do(rc.T_IN, 0, in_len=512).status == rc.S_OK


def test_disk_bytes_sees_writes(server, ring):
    """The helper of these tests is not blind."""
    a = digest(server)
    ring.write(3, b'q' * 512)
    assert digest(server) != a
    assert disk_bytes(server.image(), 1536, 512) == b'q' * 512
