"""SET_MEM_TABLE."""

import os
import struct
import time

import pytest

import rawclient as rc

MIB = rc.MIB


def entry(gpa, size, uva, offset=0):
    return struct.pack('<QQQQ', gpa, size, uva, offset)


def table(*entries, count=None):
    return struct.pack('<II', len(entries) if count is None else count, 0) + b''.join(entries)


def test_eight_regions(server):
    """Each ring part, header, data and status can be anywhere."""
    c = server.connect()
    c.setup(mem=rc.Memory([rc.Region(0x100000 + i * 4 * MIB, MIB) for i in range(8)]))
    ring = c.start()
    data = os.urandom(4096)
    for i in range(8):
        ring.write(i * 8, data, region=i)
        assert ring.read(i * 8, 4096, region=i) == data


def test_mmap_offset(server):
    """The region begins inside its file, as QEMU's below-4G and above-4G parts do."""
    c = server.connect()
    c.setup(mem=rc.Memory([rc.Region(0, MIB, offset=2 * MIB),
                           rc.Region(4 * MIB, MIB, offset=4096)]))
    ring = c.start()
    data = os.urandom(512)
    ring.write(0, data, region=1)
    assert ring.read(0, 512, region=0) == data


def test_guest_address_zero_and_high(server):
    c = server.connect()
    c.setup(mem=rc.Memory([rc.Region(0, MIB), rc.Region((1 << 46), MIB)]))
    ring = c.start()
    ring.write(3, b'\x5a' * 512, region=1)
    assert ring.read(3, 512) == b'\x5a' * 512


def test_user_addresses_not_in_guest_order(server):
    c = server.connect()
    c.setup(mem=rc.Memory([rc.Region(0x100000, MIB, uva=0x7F0000800000),
                           rc.Region(0x400000, MIB, uva=0x7F0000100000)]))
    for i in range(2):
        assert c.start(i, region=i).read(0, 512, region=1 - i) == bytes(512)


@pytest.mark.ours
def test_replaced_while_ring_runs(server):
    """The same memory again, with a region more: the ring goes on."""
    c = server.client()
    ring = c.start()
    assert ring.read(0, 512) == bytes(512)
    c.mem.regions.append(rc.Region(0x40000000, MIB))
    for _ in range(20):
        reqs = [ring.blk(rc.T_IN, i, in_len=512) for i in range(8)]
        ring.submit()
        c.set_mem_table()
        ring.wait(8)
        assert all(r.peek_status() == rc.S_OK for r in reqs)
    data = os.urandom(4096)
    ring.write(0, data, region=1)
    assert ring.read(0, 4096, region=1) == data


@pytest.mark.ours
def test_ring_moves_with_its_region(server):
    """A new table puts the same file at other user addresses; VRING_ADDR follows."""
    c = server.client()
    ring = c.start()
    assert ring.read(0, 512) == bytes(512)
    c.stop_ring(ring)
    c.mem.regions[0].uva += 0x100000000
    c.set_mem_table()
    c.start_ring(ring)
    assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_replaced_regions_are_unmapped(server):
    c = server.client()
    maps = '/proc/%d/maps' % server.pid

    def guest_maps():
        with open(maps) as f:
            return sum('memfd:guest' in line for line in f)

    c.start().read(0, 512)
    assert guest_maps() >= 1
    for _ in range(20):
        c.set_mem_table()
    assert guest_maps() == 1
    c.close()
    server.clients.remove(c)
    assert server.serves()
    end = time.monotonic() + 10
    while guest_maps() and time.monotonic() < end:
        time.sleep(0.01)
    assert guest_maps() == 0


@pytest.mark.ours
def test_descriptors_are_not_kept_for_ever(server):
    before = server.fds()
    c = server.client()
    one = server.fds()
    for _ in range(50):
        c.set_mem_table()
    server.wait_fds_most(one + 1)
    c.close()
    server.clients.remove(c)
    server.wait_fds(before)


BAD = {
    'size zero': (entry(0, 0, 0x7F0000000000), 1),
    'guest address wraps': (entry(0xFFFFFFFFFFFFF000, 2 * MIB, 0x7F0000000000), 1),
    'user address wraps': (entry(0, 2 * MIB, 0xFFFFFFFFFFFFF000), 1),
    'offset plus size wraps': (entry(0, 2 * MIB, 0x7F0000000000, 0xFFFFFFFFFFFFF000), 1),
    'b48 larger than the file': (entry(0, 64 * MIB, 0x7F0000000000), 1),
    'b48 offset behind the file': (entry(0, MIB, 0x7F0000000000, 64 * MIB), 1),
    'size near 2^64': (entry(0, 0xFFFFFFFFFFFFF000, 0x7F0000000000), 1),
}


@pytest.mark.ours
@pytest.mark.parametrize('name', BAD)
def test_bad_region(server, conn, name):
    conn.negotiate()
    before = server.fds()
    raw, _ = BAD[name]
    fd = os.memfd_create('small')
    os.ftruncate(fd, 2 * MIB)
    assert conn.refused(rc.SET_MEM_TABLE, table(raw), [fd])
    os.close(fd)
    conn.close()
    server.wait_fds(before - 1)
    assert server.serves()


@pytest.mark.ours
@pytest.mark.parametrize('what', ['guest', 'user'])
def test_overlap(server, conn, what):
    conn.negotiate()
    fd = os.memfd_create('m')
    os.ftruncate(fd, 2 * MIB)
    a = entry(0, 2 * MIB, 0x7F0000000000)
    b = entry(MIB, 2 * MIB, 0x7F1000000000) if what == 'guest' else \
        entry(8 * MIB, 2 * MIB, 0x7F0000100000)
    refused = conn.refused(rc.SET_MEM_TABLE, table(a, b), [fd, fd])
    os.close(fd)
    assert refused
    conn.close()
    assert server.serves()


@pytest.mark.ours
@pytest.mark.parametrize('count,entries,fds', [(1, 1, 0), (2, 2, 1), (1, 1, 2), (1, 1, 8),
                                               (2, 1, 2), (9, 9, 9), (0xFFFFFFFF, 1, 1), (0, 1, 1)])
def test_counts_that_do_not_fit(server, conn, count, entries, fds):
    """Regions, bytes and descriptors must agree; nothing leaks."""
    conn.negotiate()
    before = server.fds()
    fd = os.memfd_create('m')
    os.ftruncate(fd, 16 * MIB)
    raw = table(*[entry(i * MIB, MIB, 0x7F0000000000 + i * MIB, i * MIB) for i in range(entries)],
                count=count)
    assert conn.refused(rc.SET_MEM_TABLE, raw, [fd] * fds)
    os.close(fd)
    conn.close()
    server.wait_fds(before - 1)
    assert server.serves()


@pytest.mark.ours
def test_not_a_memory_descriptor(server, conn):
    """A pipe, a socket and a directory cannot be mapped."""
    conn.negotiate()
    r, w = os.pipe()
    assert conn.refused(rc.SET_MEM_TABLE, table(entry(0, 4096, 0x7F0000000000)), [r])
    os.close(r)
    os.close(w)
    conn.close()
    assert server.serves()


@pytest.mark.ours
def test_read_only_descriptor(server, conn, tmp_path):
    """Guest memory that we cannot write is of no use: refused, or requests fail; no crash."""
    p = tmp_path / 'm'
    p.write_bytes(bytes(MIB))
    conn.negotiate()
    with open(p, 'rb') as f:
        conn.refused(rc.SET_MEM_TABLE, table(entry(0, MIB, 0x7F0000000000)), [f.fileno()])
    conn.close()
    assert server.serves()


@pytest.mark.ours
def test_ring_memory_gone(server, client):
    """The new table does not hold the running ring any more: that ring is broken, no more."""
    ring = client.start()
    assert ring.read(0, 512) == bytes(512)
    old = client.mem
    client.mem = rc.Memory([rc.Region(0x80000000, 4 * MIB)])
    try:
        client.set_mem_table()
        ring.blk(rc.T_IN, 0, in_len=512)
        ring.publish()
        ring.kick()
        other = client.make_ring(1)
        client.start_ring(other)
        assert other.read(0, 512) == bytes(512)
        assert ring.used_idx() == ring.last_used
    except (rc.Refused, rc.Closed):
        pass
    client.close()
    old.close()
    assert server.serves()
