"""REM_MEM_REG."""

import time

import pytest

import rawclient as rc
from conftest import slow

MIB = rc.MIB


@pytest.fixture
def two(server):
    """A ring in region 0; region 1 came by ADD_MEM_REG."""
    c = server.connect()
    c.negotiate()
    c.mem = rc.Memory([rc.Region(0x100000, 4 * MIB), rc.Region(0x40000000, MIB)])
    for r in c.mem.regions:
        c.add_mem_reg(r)
    c.start()
    return c


def mapped(server):
    with open('/proc/%d/maps' % server.pid) as f:
        return sum('memfd:guest' in line for line in f)


def test_removed_region_is_gone(server, two):
    ring = two.rings[0]
    assert ring.read(0, 512, region=1) == bytes(512)
    n = mapped(server)
    two.rem_mem_reg(two.mem.regions[1])
    assert ring.read(0, 512) == bytes(512)
    assert mapped(server) == n - 1


@pytest.mark.ours
def test_request_into_removed_region_fails(two):
    ring = two.rings[0]
    two.rem_mem_reg(two.mem.regions[1])
    buf = two.mem.alloc(512, region=1)
    hdr = two.mem.alloc(16)
    two.mem.write(hdr, bytes(16))
    st = two.mem.alloc(1)
    two.mem.write(st, b'\xee')
    ring.add_chain([(hdr, 16, 0), (buf, 512, rc.D_WRITE), (st, 1, rc.D_WRITE)])
    ring.submit()
    ring.wait()
    assert two.mem.read(st, 1)[0] == rc.S_IOERR
    assert ring.read(0, 512) == bytes(512)


def test_add_and_remove_many_times(server, two):
    ring = two.rings[0]
    region = two.mem.regions[1]
    n = server.fds()
    for _ in range(30):
        two.rem_mem_reg(region)
        two.add_mem_reg(region)
        assert ring.read(0, 512, region=1) == bytes(512)
    server.wait_fds_most(n + 1)


@pytest.mark.ours
def test_with_a_descriptor(server, two):
    """The spec tolerates one descriptor: closed without being used."""
    n = server.fds()
    fd = two.mem.regions[1].fd
    two.rem_mem_reg(two.mem.regions[1], [fd])
    assert two.alive()
    server.wait_fds_most(n)
    two.add_mem_reg(two.mem.regions[1])
    assert two.rings[0].read(0, 512, region=1) == bytes(512)


@pytest.mark.ours
def test_user_address_and_size_decide(server, two):
    """Guest address, user address and size name a region; the offset does not count."""
    r = two.mem.regions[1]
    two.set_ack(rc.REM_MEM_REG, bytes(8) + rc.struct.pack('<QQQQ', r.gpa, r.size, r.uva, 12345))
    assert two.rings[0].read(0, 512) == bytes(512)


@pytest.mark.ours
@pytest.mark.parametrize('change', ['gpa', 'size', 'uva'])
def test_unknown_region_is_refused(server, two, change):
    r = two.mem.regions[1]
    old = getattr(r, change)
    setattr(r, change, old + 4096)
    raw = r.entry()
    setattr(r, change, old)
    assert two.refused(rc.REM_MEM_REG, bytes(8) + raw)
    two.close()
    assert server.serves()


@pytest.mark.ours
def test_twice(server, two):
    r = two.mem.regions[1]
    two.rem_mem_reg(r)
    assert two.refused(rc.REM_MEM_REG, bytes(8) + r.entry())
    two.close()
    assert server.serves()


@pytest.mark.ours
def test_region_of_the_ring(server, two):
    """The running ring goes with its memory: refused, or the ring is broken; others go on."""
    try:
        two.rem_mem_reg(two.mem.regions[0])
        two.rings[0].blk(rc.T_IN, 0, in_len=512)
        two.rings[0].publish()
        two.rings[0].kick()
        assert two.alive()
    except (rc.Refused, rc.Closed):
        pass
    two.close()
    assert server.serves()


@pytest.mark.ours
@pytest.mark.faults
def test_answered_when_its_last_request_has_ended(serve):
    """A slow read into the region: the answer comes after it, and the other ring goes on."""
    s = serve(queues=2, engine='threads', env=slow(700))
    c = s.connect()
    c.negotiate()
    c.mem = rc.Memory([rc.Region(0x100000, 4 * MIB), rc.Region(0x40000000, MIB)])
    for r in c.mem.regions:
        c.add_mem_reg(r)
    ring = c.start()
    req = ring.blk(rc.T_IN, 0, in_len=4096, region=1)
    buf = req.in_descs[0][0]
    ring.submit()
    time.sleep(0.1)
    c.rem_mem_reg(c.mem.regions[1])
    c.mem.write(buf, b'\x5a' * 4096)        # ours again: nobody may write here now
    assert ring.wait()[0] == (req.head, 4097)
    time.sleep(1)
    assert c.mem.read(buf, 4096) == b'\x5a' * 4096
