"""GET_FEATURES: what is offered, and what must not be."""

import pytest

import rawclient as rc

WANTED = {
    'VERSION_1': rc.F_VERSION_1, 'INDIRECT_DESC': rc.F_INDIRECT, 'EVENT_IDX': rc.F_EVENT_IDX,
    'PROTOCOL_FEATURES': rc.F_PROTOCOL, 'SEG_MAX': rc.F_SEG_MAX, 'BLK_SIZE': rc.F_BLK_SIZE,
    'FLUSH': rc.F_FLUSH, 'TOPOLOGY': rc.F_TOPOLOGY, 'CONFIG_WCE': rc.F_CONFIG_WCE,
    'MQ': rc.F_MQ, 'DISCARD': rc.F_DISCARD, 'WRITE_ZEROES': rc.F_WRITE_ZEROES,
}

UNWANTED = {
    'RING_RESET': rc.F_RING_RESET, 'RING_PACKED': rc.F_RING_PACKED,
    'ACCESS_PLATFORM': rc.F_ACCESS_PLATFORM, 'IN_ORDER': rc.F_IN_ORDER,
    'NOTIFICATION_DATA': rc.F_NOTIFICATION_DATA, 'NOTIF_CONFIG_DATA': rc.F_NOTIF_CONFIG_DATA,
    'SR_IOV': rc.F_SR_IOV, 'LOG_ALL': rc.F_LOG_ALL, 'SECURE_ERASE': rc.F_SECURE_ERASE,
    'SCSI': rc.F_SCSI, 'GEOMETRY': rc.F_GEOMETRY, 'NOTIFY_ON_EMPTY': rc.F_NOTIFY_ON_EMPTY,
}


@pytest.mark.parametrize('name', WANTED)
def test_offered(conn, name):
    assert conn.get_features() & WANTED[name]


@pytest.mark.ours
def test_not_offered(conn):
    offered = conn.get_features()
    assert [n for n, bit in UNWANTED.items() if offered & bit] == []


@pytest.mark.ours
def test_nothing_else(conn):
    allowed = rc.F_SIZE_MAX
    for bit in WANTED.values():
        allowed |= bit
    assert conn.get_features() & ~allowed == 0


def test_readonly_disk_says_so(serve):
    assert serve(readonly='on').connect().get_features() & rc.F_RO


def test_writable_disk_does_not(conn):
    assert not conn.get_features() & rc.F_RO


@pytest.mark.ours
def test_readonly_disk_still_offers_flush(serve):
    """b44: drivers and firmware flush read-only disks."""
    assert serve(readonly='on').connect().get_features() & rc.F_FLUSH


@pytest.mark.ours
def test_discard_off(serve):
    offered = serve(discard='off').connect().get_features()
    assert not offered & rc.F_DISCARD


@pytest.mark.ours
@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads'])
def test_b42_every_engine_offers_discard_and_zeroes(serve, engine):
    """b42: an offered bit has limits in the configuration; no engine loses the bits."""
    c = serve(engine=engine).connect()
    offered = c.get_features()
    assert offered & rc.F_DISCARD and offered & rc.F_WRITE_ZEROES
    c.negotiate()
    cfg = c.config()
    assert cfg.max_discard_sectors and cfg.max_discard_seg and cfg.discard_sector_alignment
    assert cfg.max_write_zeroes_sectors and cfg.max_write_zeroes_seg


def test_same_answer_again(conn):
    first = conn.get_features()
    conn.set_features(first & ~rc.F_EVENT_IDX)
    assert conn.get_features() == first
