"""RESET_DEVICE: all rings stop, the device is as new; the memory stays shared."""

import os
import time

import pytest

import rawclient as rc
from conftest import slow

pytestmark = pytest.mark.ours


def test_rings_stop(client):
    ring = client.start()
    ring.read(0, 512)
    client.reset_device()
    ring.blk(rc.T_IN, 0, in_len=512)
    ring.publish()
    ring.kick()
    time.sleep(0.2)
    assert ring.used_idx() == 1


def test_start_again(client):
    for _ in range(5):
        ring = client.start()
        for _ in range(20):
            assert ring.read(0, 512) == bytes(512)
        client.reset_device()
        client.set_features(client.features)


def test_status_is_reset_and_writeback_stays(client):
    """QEMU goes on showing its guest the writeback that was last written (b43)."""
    client.set_status(rc.STATUS_ACKNOWLEDGE | rc.STATUS_DRIVER)
    client.set_config(32, b'\0')
    client.reset_device()
    assert client.get_status() == 0
    assert client.config().writeback == 0


def test_broken_ring_works_again(server, client):
    ring = client.start(size=16)
    ring.set_avail_idx(17)
    ring.kick()
    assert rc.eventfd_count(ring.err_fd, rc.WAIT)
    assert client.get_status() & rc.STATUS_NEEDS_RESET
    client.reset_device()
    assert not client.get_status() & rc.STATUS_NEEDS_RESET
    client.set_features(client.features)
    assert client.start(size=16).read(0, 512) == bytes(512)


def test_without_rings(client):
    client.reset_device()
    assert client.alive()
    client.set_features(client.features)
    assert client.start().read(0, 512) == bytes(512)


def test_with_requests_in_flight(server, client):
    for _ in range(20):
        ring = client.start()
        for i in range(32):
            ring.blk(rc.T_IN, i * 8, in_len=4096)
        ring.submit()
        client.reset_device()
        snapshot = os.pread(client.mem.regions[0].fd, 1 << 20, 0)
        time.sleep(0.01)
        assert os.pread(client.mem.regions[0].fd, 1 << 20, 0) == snapshot
        client.set_features(client.features)
        client.mem.release([0])


@pytest.mark.faults
@pytest.mark.parametrize('how', ['reset', 'base'])
@pytest.mark.parametrize('engine', ['threads', 'linux-aio', 'io_uring'])
def test_b49_nothing_is_written_after_the_answer(serve, how, engine):
    """b49: slow reads in the kernel; after the acknowledgement the page is the client's again."""
    s = serve(queues=1, engine=engine, env=slow(1000))
    with open(s.image(), 'r+b') as f:
        f.write(b'\x11' * 65536)
    c = s.client()
    ring = c.start()
    req = ring.blk(rc.T_IN, 0, in_len=65536, align=4096)
    ring.submit()
    time.sleep(0.1)
    if how == 'reset':
        c.reset_device()
    else:
        c.get_vring_base(0)
    page = req.in_descs[0][0]
    c.mem.write(page, b'\x5a' * 65536)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert c.mem.read(page, 65536) == b'\x5a' * 65536
        time.sleep(0.05)


@pytest.mark.faults
def test_b49_nothing_is_written_after_a_disconnect(serve):
    """b49: when the next client is served, the old one's memory is left alone."""
    s = serve(queues=1, engine='threads', env=slow(500))
    with open(s.image(), 'r+b') as f:
        f.write(b'\x11' * 65536)
    c = s.client()
    mem = c.mem
    req = c.start().blk(rc.T_IN, 0, in_len=65536, align=4096)
    c.rings[0].submit()
    time.sleep(0.1)
    c.mem = None
    c.close()
    s.serves()
    page = req.in_descs[0][0]
    mem.write(page, b'\x5a' * 65536)
    time.sleep(1)
    assert mem.read(page, 65536) == b'\x5a' * 65536
    mem.close()
