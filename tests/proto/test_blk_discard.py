"""DISCARD and WRITE_ZEROES, one code of segments for both (fault B42)."""

import os
import struct

import pytest

import rawclient as rc
from conftest import disk_bytes, make_image

UNMAP = 1


def seg(sector, count, flags=0):
    return struct.pack('<QII', sector, count, flags)


@pytest.fixture
def aa(serve):
    """A file of 0xAA."""
    path = make_image(serve.dir / 'aa.img', fill=0xAA, size=4 << 20)
    return serve(path=path, queues=1, direct='off')


@pytest.fixture
def aring(aa):
    return aa.client().start()


@pytest.mark.parametrize('unmap', [0, UNMAP])
@pytest.mark.parametrize('sector,count', [(0, 1), (1, 1), (7, 2), (3, 17), (8, 8), (5, 3),
                                          (4096, 1024), (8191, 1)])
def test_b42_write_zeroes(aa, aring, sector, count, unmap):
    """b42: reads zero, and the neighbours are intact."""
    req = aring.do(rc.T_WRITE_ZEROES, out=seg(sector, count, unmap))
    assert (req.status, req.used_len) == (rc.S_OK, 1)
    whole = disk_bytes(aa.image(), 0, 4 << 20)
    a, b = sector * 512, (sector + count) * 512
    assert whole[a:b] == bytes(b - a)
    assert whole[:a] == b'\xaa' * a and whole[b:] == b'\xaa' * (len(whole) - b)
    assert aring.read(sector, min(count, 8) * 512) == bytes(min(count, 8) * 512)


@pytest.mark.parametrize('sector,count', [(0, 1), (1, 1), (7, 2), (3, 17), (8, 8), (4096, 1024)])
def test_b42_discard(aa, aring, sector, count):
    """b42: a hint; what it touches is zero or as before, its neighbours are intact."""
    req = aring.do(rc.T_DISCARD, out=seg(sector, count))
    assert (req.status, req.used_len) == (rc.S_OK, 1)
    whole = disk_bytes(aa.image(), 0, 4 << 20)
    a, b = sector * 512, (sector + count) * 512
    for off in range(a, b, 512):
        assert whole[off:off + 512] in (bytes(512), b'\xaa' * 512)
    assert whole[:a] == b'\xaa' * a and whole[b:] == b'\xaa' * (len(whole) - b)


def test_discard_frees_space(aa, aring):
    before = os.stat(aa.image()).st_blocks
    assert aring.do(rc.T_DISCARD, out=seg(0, 4096)).status == rc.S_OK
    assert os.stat(aa.image()).st_blocks <= before - 2048


@pytest.mark.ours
def test_unmap_is_honoured(aa, aring):
    before = os.stat(aa.image()).st_blocks
    assert aring.do(rc.T_WRITE_ZEROES, out=seg(0, 4096, UNMAP)).status == rc.S_OK
    freed = os.stat(aa.image()).st_blocks
    assert freed <= before - 2048
    assert aring.do(rc.T_WRITE_ZEROES, out=seg(0, 4096, 0)).status == rc.S_OK
    assert os.stat(aa.image()).st_blocks >= freed, 'without unmap the space must stay'


@pytest.mark.ours
def test_without_unmap_space_stays_allocated(aa, aring):
    before = os.stat(aa.image()).st_blocks
    assert aring.do(rc.T_WRITE_ZEROES, out=seg(0, 4096, 0)).status == rc.S_OK
    assert os.stat(aa.image()).st_blocks >= before


@pytest.mark.parametrize('rtype', [rc.T_DISCARD, rc.T_WRITE_ZEROES])
@pytest.mark.parametrize('flags', [2, 0x80000000, 3, 0xFFFFFFFF])
def test_b42_reserved_flags(aa, aring, rtype, flags):
    """b42: UNSUPP, and the disk is as it was."""
    req = aring.do(rtype, out=seg(0, 8, flags))
    assert (req.status, req.used_len) == (rc.S_UNSUPP, 1)
    assert disk_bytes(aa.image(), 0, 8192) == b'\xaa' * 8192


@pytest.mark.ours
def test_unmap_flag_with_discard(aa, aring):
    """virtio 5.2.6.2: unmap in a discard segment is for UNSUPP."""
    assert aring.do(rc.T_DISCARD, out=seg(0, 8, UNMAP)).status == rc.S_UNSUPP
    assert disk_bytes(aa.image(), 0, 8192) == b'\xaa' * 8192


@pytest.mark.ours
@pytest.mark.parametrize('rtype', [rc.T_DISCARD, rc.T_WRITE_ZEROES])
def test_b42_max_segments(aa, rtype):
    """b42: as many as the configuration says; each is done, nothing between them."""
    c = aa.client()
    cfg = c.config()
    n = cfg.max_discard_seg if rtype == rc.T_DISCARD else cfg.max_write_zeroes_seg
    assert 1 <= n
    n = min(n, 1024)
    ring = c.start()
    req = ring.do(rtype, out=b''.join(seg(i * 4, 1) for i in range(n)))
    assert req.status == rc.S_OK
    data = disk_bytes(aa.image(), 0, n * 2048)
    for i in range(n):
        if rtype == rc.T_WRITE_ZEROES:
            assert data[i * 2048:i * 2048 + 512] == bytes(512)
        assert data[i * 2048 + 512:(i + 1) * 2048] == b'\xaa' * 1536


@pytest.mark.ours
@pytest.mark.parametrize('rtype', [rc.T_DISCARD, rc.T_WRITE_ZEROES])
def test_b42_too_many_segments(aa, rtype):
    """b42: one more than allowed: refused as a whole."""
    c = aa.client()
    cfg = c.config()
    n = (cfg.max_discard_seg if rtype == rc.T_DISCARD else cfg.max_write_zeroes_seg) + 1
    ring = c.start()
    if n * 16 > 1 << 20:
        pytest.skip('no small limit')
    req = ring.do(rtype, out=b''.join(seg(i * 4 % 8000, 1) for i in range(n)))
    assert req.status in (rc.S_UNSUPP, rc.S_IOERR)
    assert disk_bytes(aa.image(), 0, 4096) == b'\xaa' * 4096


@pytest.mark.ours
@pytest.mark.parametrize('rtype', [rc.T_DISCARD, rc.T_WRITE_ZEROES])
@pytest.mark.parametrize('segs', [(1,), (16, 1), (5, 11), (20,)])
def test_segments_cut_anywhere(aa, aring, rtype, segs):
    """The table of segments can lie over any descriptors."""
    req = aring.do(rtype, out=seg(8, 2) + seg(16, 2) + seg(32, 4), segs=segs)
    assert req.status == rc.S_OK
    if rtype == rc.T_WRITE_ZEROES:
        d = disk_bytes(aa.image(), 0, 40 * 512)
        for s, n in ((8, 2), (16, 2), (32, 4)):
            assert d[s * 512:(s + n) * 512] == bytes(n * 512)


@pytest.mark.ours
@pytest.mark.parametrize('rtype', [rc.T_DISCARD, rc.T_WRITE_ZEROES])
@pytest.mark.parametrize('size', [0, 1, 15, 17, 31])
def test_table_of_a_wrong_size(aa, aring, rtype, size):
    req = aring.do(rtype, out=(seg(0, 8) * 2)[:size])
    assert req.status in (rc.S_IOERR, rc.S_UNSUPP)
    assert req.used_len == 1
    assert disk_bytes(aa.image(), 0, 8192) == b'\xaa' * 8192


@pytest.mark.ours
@pytest.mark.parametrize('rtype', [rc.T_DISCARD, rc.T_WRITE_ZEROES])
@pytest.mark.parametrize('sector,count', [(8192, 1), (8191, 2), (0, 8193), (1 << 55, 8),
                                          ((1 << 64) - 1, 2), ((1 << 64) - 8, 16),
                                          (0, 0xFFFFFFFF), (1, 0xFFFFFFFF)])
def test_out_of_range(aa, aring, rtype, sector, count):
    """IOERR and not a byte is touched, also when a good segment stands before it."""
    req = aring.do(rtype, out=seg(sector, count))
    assert (req.status, req.used_len) == (rc.S_IOERR, 1)
    req = aring.do(rtype, out=seg(0, 8) + seg(sector, count))
    assert req.status == rc.S_IOERR
    assert disk_bytes(aa.image(), 0, 4 << 20) == b'\xaa' * (4 << 20)


@pytest.mark.ours
@pytest.mark.parametrize('rtype', [rc.T_DISCARD, rc.T_WRITE_ZEROES])
def test_zero_sectors(aa, aring, rtype):
    """An empty segment does nothing: OK or refused, the disk is as it was."""
    req = aring.do(rtype, out=seg(0, 0))
    assert req.status in (rc.S_OK, rc.S_IOERR, rc.S_UNSUPP)
    assert disk_bytes(aa.image(), 0, 8192) == b'\xaa' * 8192


@pytest.mark.ours
def test_more_than_the_sector_limit(serve):
    """max_*_sectors is a promise of the driver; beyond it the answer is a status."""
    c = serve(engine='null', size='16T').client()
    ring = c.start()
    cfg = c.config()
    if cfg.max_write_zeroes_sectors < 0xFFFFFFFF:
        assert ring.do(rc.T_WRITE_ZEROES, out=seg(0, cfg.max_write_zeroes_sectors + 1)).status \
            in (rc.S_OK, rc.S_IOERR, rc.S_UNSUPP)
    assert ring.do(rc.T_WRITE_ZEROES, out=seg(0, cfg.max_write_zeroes_sectors)).status == rc.S_OK
    assert ring.do(rc.T_DISCARD, out=seg(0, cfg.max_discard_sectors)).status == rc.S_OK


@pytest.mark.ours
def test_discard_off_is_unsupp(serve):
    ring = serve(discard='off').client().start()
    assert ring.do(rc.T_DISCARD, out=seg(0, 8)).status == rc.S_UNSUPP


@pytest.mark.ours
@pytest.mark.parametrize('where', ['ext4', 'tmpfs', 'loop4k'])
@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads'])
@pytest.mark.parametrize('direct', ['on', 'off'])
def test_b42_engines_and_file_systems(serve, request, engine, where, direct):
    """b42: every engine on every kind of file: the same answers, the neighbours intact."""
    if where == 'loop4k':
        path = request.getfixturevalue('loop4k')
    elif where == 'tmpfs':
        path = '/dev/shm/%s.img' % serve.dir.name
        make_image(path, fill=0xAA, size=1 << 20)
        request.addfinalizer(lambda: os.unlink(path))
    else:
        path = make_image(serve.dir / 'e.img', fill=0xAA, size=1 << 20)
    s = serve(path=path, engine=engine, queues=1, block_size=512,
              **({} if where == 'tmpfs' else {'direct': direct}))
    c = s.client()
    if not c.offered & rc.F_WRITE_ZEROES:
        pytest.fail('WRITE_ZEROES is not offered')
    ring = c.start()
    model = bytearray(b'\xaa' * (1 << 18))
    for i, (sector, count, unmap) in enumerate([(1, 1, 0), (9, 17, 1), (40, 8, 0), (64, 8, 1),
                                                (127, 2, 0), (200, 3, 1), (255, 16, 1)]):
        req = ring.do(rc.T_WRITE_ZEROES, out=seg(sector, count, unmap))
        assert req.status == rc.S_OK, (sector, count)
        model[sector * 512:(sector + count) * 512] = bytes(count * 512)
    for off in range(0, len(model), 65536):
        assert ring.read(off // 512, 65536) == model[off:off + 65536]
    assert ring.do(rc.T_DISCARD, out=seg(301, 5)).status == rc.S_OK
    assert ring.do(rc.T_DISCARD, out=seg(304, 8)).status == rc.S_OK
    assert ring.read(296, 5 * 512) == b'\xaa' * 5 * 512
    assert ring.read(312, 8 * 512) == b'\xaa' * 8 * 512
