"""Guest memory that shrinks under us (fault B48): one VM's loss, not the daemon's."""

import os
import time

import pytest

import rawclient as rc

pytestmark = pytest.mark.ours


@pytest.fixture
def pair(serve):
    """Two VMs on one daemon: the one that goes wrong, and the neighbour."""
    s = serve(disks=[{'queues': 2, 'id': 'badvm'}, {'queues': 1, 'id': 'goodvm'}])
    return s


def neighbour_goes_on(s, ring):
    for i in range(20):
        assert ring.read(i, 512) == bytes(512)
    assert s.alive()


@pytest.mark.parametrize('poll', ['off', 'adaptive', 'always'])
def test_b48_ring_memory(serve, poll):
    """b48: the rings are in the file that is cut to nothing."""
    s = serve(disks=[{'queues': 2, 'id': 'badvm', 'poll': poll}, {'queues': 1, 'id': 'goodvm'}])
    good = s.client(1).start()
    c = s.client(0)
    ring = c.start()
    assert ring.read(0, 512) == bytes(512)
    kick = ring.kick_fd
    s.mark_log()
    os.ftruncate(c.mem.regions[0].fd, 0)
    for _ in range(3):
        os.eventfd_write(kick, 1)
        time.sleep(0.02)
    neighbour_goes_on(s, good)
    s.wait_line('badvm')
    c.close()
    s.clients.remove(c)
    assert s.serves(0)
    neighbour_goes_on(s, good)


@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads', 'memory', 'null'])
@pytest.mark.parametrize('rtype', [rc.T_IN, rc.T_OUT, rc.T_GET_ID])
def test_b48_data_buffers(serve, engine, rtype):
    """b48: the ring is whole, the buffers are gone: an error status, or that device ends."""
    extra = {'size': '1M'} if engine in ('memory', 'null') else {}
    s = serve(disks=[{'queues': 1, 'engine': engine, 'id': 'badvm', **extra},
                     {'queues': 1, 'id': 'goodvm'}])
    good = s.client(1).start()
    c = s.connect(0)
    c.setup(mem=rc.Memory([rc.Region(0x100000, 4 << 20), rc.Region(0x40000000, 1 << 20)]))
    ring = c.start()
    hdr = c.mem.alloc(16)
    c.mem.write(hdr, rc.struct.pack('<IIQ', rtype, 0, 0))
    buf = c.mem.alloc(4096, 4096, region=1)
    st = c.mem.alloc(1)
    size = 20 if rtype == rc.T_GET_ID else 4096
    for cut in (False, True):
        c.mem.write(st, b'\xee')
        if cut:
            os.ftruncate(c.mem.regions[1].fd, 0)
        ring.add_chain([(hdr, 16, 0), (buf, size, 0 if rtype == rc.T_OUT else rc.D_WRITE),
                        (st, 1, rc.D_WRITE)])
        ring.submit()
        if not cut:
            ring.wait()
            assert c.mem.read(st, 1) == b'\0'
    end = time.monotonic() + 5
    while ring.used_idx() == ring.last_used and time.monotonic() < end and \
            not rc.eventfd_count(ring.err_fd) and not c.closed_by_server(0.01):
        pass
    if ring.used_idx() != ring.last_used and engine not in ('null', 'memory'):
        assert c.mem.read(st, 1)[0] != rc.S_UNTOUCHED
    neighbour_goes_on(s, good)
    c.close()
    s.clients.remove(c)
    assert s.serves(0)


def test_b48_header_and_status(pair):
    """b48: the header's page is gone."""
    s = pair
    good = s.client(1).start()
    c = s.connect(0)
    c.setup(mem=rc.Memory([rc.Region(0x100000, 4 << 20), rc.Region(0x40000000, 1 << 20)]))
    ring = c.start()
    ring.blk(rc.T_IN, 0, in_len=512, region=1)
    os.ftruncate(c.mem.regions[1].fd, 0)
    ring.submit()
    time.sleep(0.3)
    neighbour_goes_on(s, good)
    c.close()
    s.clients.remove(c)
    assert s.serves(0)


def test_b48_shrinks_under_load(pair):
    s = pair
    good = s.client(1).start()
    for _ in range(5):
        c = s.connect_retry(0).setup()
        rings = [c.start(i) for i in range(2)]
        for r in rings:
            for i in range(32):
                r.blk(rc.T_IN, i * 8, in_len=4096)
        for r in rings:
            r.publish()
        os.eventfd_write(rings[0].kick_fd, 1)
        os.eventfd_write(rings[1].kick_fd, 1)
        os.ftruncate(c.mem.regions[0].fd, 0)
        os.eventfd_write(rings[0].kick_fd, 1)
        neighbour_goes_on(s, good)
        c.close()
        s.clients.remove(c)
    assert s.serves(0)


def test_b48_grows_back(pair):
    """Cut and made long again: whatever the device does, the daemon and the next client live."""
    s = pair
    c = s.client(0)
    ring = c.start()
    ring.read(0, 512)
    size = c.mem.regions[0].size
    kick = ring.kick_fd
    os.ftruncate(c.mem.regions[0].fd, 0)
    os.eventfd_write(kick, 1)
    time.sleep(0.1)
    os.ftruncate(c.mem.regions[0].fd, size)
    os.eventfd_write(kick, 1)
    time.sleep(0.1)
    assert s.alive()
    c.close()
    s.clients.remove(c)
    assert s.serves(0)
