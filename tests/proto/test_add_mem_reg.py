"""ADD_MEM_REG."""

import os
import struct

import pytest

import rawclient as rc

MIB = rc.MIB


def payload(gpa, size, uva, offset=0):
    return struct.pack('<QQQQQ', 0, gpa, size, uva, offset)


@pytest.fixture
def slots(server):
    """Negotiated, no memory yet."""
    c = server.connect()
    c.negotiate()
    return c


def test_memory_by_slots_alone(slots):
    c = slots
    c.mem = rc.Memory([rc.Region(0x100000 + i * 2 * MIB, MIB) for i in range(4)])
    for r in c.mem.regions:
        c.add_mem_reg(r)
    ring = c.start()
    data = os.urandom(4096)
    for i in range(4):
        ring.write(8 * i, data, region=i)
        assert ring.read(8 * i, 4096, region=i) == data


def test_added_while_ring_runs(client):
    ring = client.start()
    assert ring.read(0, 512) == bytes(512)
    r = rc.Region(0x40000000, MIB)
    client.add_mem_reg(r)
    client.mem.regions.append(r)
    ring.write(1, b'\x11' * 512, region=1)
    assert ring.read(1, 512, region=1) == b'\x11' * 512


@pytest.mark.ours
def test_509_slots_and_no_more(server, slots):
    c = slots
    before = server.fds()
    fd = os.memfd_create('slots')
    os.ftruncate(fd, 509 * 4096 + 4096)
    for i in range(509):
        c.set_ack(rc.ADD_MEM_REG, payload(i * 8192, 4096, 0x7F0000000000 + i * 8192, i * 4096),
                  [fd])
    assert c.refused(rc.ADD_MEM_REG, payload(509 * 8192, 4096, 0x7F0000000000 + 509 * 8192,
                                             509 * 4096), [fd])
    os.close(fd)
    c.close()
    server.wait_fds(before - 1)
    assert server.serves()


@pytest.mark.ours
def test_all_slots_serve(slots):
    c = slots
    c.mem = rc.Memory([rc.Region(0x100000, MIB)] +
                      [rc.Region(0x10000000 + i * 8192, 4096) for i in range(508)])
    for r in c.mem.regions:
        c.add_mem_reg(r)
    ring = c.start()
    ring.write(0, b'\x77' * 512)
    for i in (1, 100, 254, 255, 256, 507, 508):
        assert ring.do(rc.T_IN, 0, in_len=512, region=i).data == b'\x77' * 512


@pytest.mark.ours
@pytest.mark.parametrize('gpa,size,uva,offset', [
    (0x100000, MIB, 0x7F9000000000, 0),             # the same guest address
    (0x100000 + 4096, MIB, 0x7F9000000000, 0),      # inside
    (0x100000 - 4096, 8192, 0x7F9000000000, 0),     # across the beginning
    (0x90000000, 0, 0x7F9000000000, 0),             # empty
    (0xFFFFFFFFFFFFF000, MIB, 0x7F9000000000, 0),   # wraps
    (0x90000000, MIB, 0xFFFFFFFFFFFFF000, 0),       # user address wraps
    (0x90000000, 64 * MIB, 0x7F9000000000, 0),      # b48: larger than the file
    (0x90000000, MIB, 0x7F9000000000, 64 * MIB),
    (0x90000000, MIB, 0x7F9000000000, 0xFFFFFFFFFFFFF000),
])
def test_bad_region(server, client, gpa, size, uva, offset):
    ring = client.start()
    fd = os.memfd_create('m')
    os.ftruncate(fd, 2 * MIB)
    assert client.refused(rc.ADD_MEM_REG, payload(gpa, size, uva, offset), [fd])
    os.close(fd)
    assert server.alive()
    try:
        assert client.alive()
    except OSError:
        pass
    else:
        if client.alive():
            assert ring.read(0, 512) == bytes(512)
    client.close()
    assert server.serves()


@pytest.mark.ours
@pytest.mark.parametrize('fds', [0, 2])
def test_descriptor_count(server, client, fds):
    before = server.fds()
    fd = os.memfd_create('m')
    os.ftruncate(fd, MIB)
    client.send(rc.ADD_MEM_REG, payload(0x90000000, MIB, 0x7F9000000000), [fd] * fds)
    assert client.closed_by_server()
    os.close(fd)
    client.close()
    server.clients.remove(client)
    assert server.serves()
    server.wait_fds_most(before)
