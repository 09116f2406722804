"""SET_VRING_CALL, and when a call is due."""

import os
import struct
import time

import pytest

import rawclient as rc
from conftest import soak


@pytest.mark.ours
def test_b34_no_call_descriptor(server):
    """b34: a polling driver: nothing is signalled, the used ring moves."""
    c = server.client()
    ring = c.start(call=False)
    for _ in range(50):
        assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_b34_flag_is_not_part_of_the_index(server):
    """b34: 0x102 takes the call away from ring 2 and from no other."""
    c = server.client()
    rings = [c.start(i) for i in range(4)]
    for r in rings:
        rc.eventfd_count(r.call_fd)     # a start may call once
    c.set(rc.SET_VRING_CALL, struct.pack('<Q', 0x102))
    for i, r in enumerate(rings):
        if i == 2:
            assert r.read(0, 512, poll=True) == bytes(512)
            assert rc.eventfd_count(r.call_fd, 0.1) == 0
        else:
            assert r.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_b34_only_ring_two_is_started(server):
    """b34: each ring stands alone; the others were never started and answer all the same."""
    c = server.client()
    ring = c.start(2)
    assert ring.read(0, 512) == bytes(512)
    assert [c.get_vring_base(i) for i in range(4)] == [0, 0, 1, 0]


@pytest.mark.ours
def test_replaced_while_ring_runs(server, client):
    """QEMU swaps the call descriptor when the guest masks and unmasks its vector."""
    ring = client.start()
    n = server.settled_fds()
    for _ in range(30):
        ring.blk(rc.T_IN, 0, in_len=512)
        ring.submit()
        old = ring.call_fd
        ring.call_fd = os.eventfd(0, os.EFD_NONBLOCK)
        client.set_vring_call(0, ring.call_fd)
        # The completion may have gone to either; look at the ring, as the guest's irqfd would.
        ring.wait(poll=True)
        os.close(old)
        client.mem.release([client.mem.regions[0].bump])
        assert ring.read(0, 512) == bytes(512)
    server.wait_fds_most(n + 1)


@pytest.mark.parametrize('event_idx', [True, False])
def test_suppressed_calls_do_not_come(server, event_idx):
    c = server.client(without=0 if event_idx else rc.F_EVENT_IDX)
    ring = c.start()
    ring.read(0, 512)           # the first call after a start is free
    time.sleep(0.05)
    ring.drain_call()
    for _ in range(20):
        ring.disarm()
        rc.fence()
        ring.blk(rc.T_IN, 0, in_len=512)
        ring.submit()
        ring.wait(poll=True)
    time.sleep(0.1)
    assert rc.eventfd_count(ring.call_fd) == 0


def test_used_event_is_obeyed(server):
    """One call when the used idx passes used_event, none before."""
    c = server.client()
    ring = c.start()
    ring.read(0, 512)
    time.sleep(0.05)
    ring.drain_call()
    ring.set_used_event(ring.last_used + 7)
    rc.fence()
    for i in range(8):
        assert rc.eventfd_count(ring.call_fd, 0.02) == 0
        ring.blk(rc.T_IN, i, in_len=512)
        ring.submit()
        ring.wait(poll=True)
    assert rc.eventfd_count(ring.call_fd, rc.WAIT) == 1


@pytest.mark.ours
@pytest.mark.parametrize('used_idx', [0, 1, 40, 65535])
@pytest.mark.parametrize('when', ['before', 'after'])
def test_b11_restarted_ring_calls_once(server, used_idx, when):
    """b11: suppressed, stopped and started again: the first completion after it calls."""
    c = server.client()
    ring = c.start(base=(used_idx - 40) & 0xFFFF)
    ring.set_used_event(ring.base + 20000)
    for _ in range(40):
        ring.blk(rc.T_IN, 0, in_len=512)
        ring.submit()
        ring.wait(poll=True)
    assert ring.used_idx() == used_idx
    if when == 'before':
        ring.set_used_event(ring.used_idx())
    c.stop_ring(ring)
    assert ring.base == used_idx
    ring.drain_call()
    c.start_ring(ring)
    if when == 'after':
        ring.set_used_event(ring.used_idx())
    rc.fence()
    ring.blk(rc.T_IN, 0, in_len=512)
    ring.submit()
    assert ring.wait_call(), 'the completion was not signalled'
    ring.wait()


@pytest.mark.ours
@pytest.mark.parametrize('used_idx', [0, 1, 40, 65535])
def test_b11_new_daemon_calls_once(serve, used_idx):
    """b11: the same with the daemon killed and started in between."""
    from conftest import make_image
    path = make_image(serve.dir / 'disk.img')
    one = serve(path=path)
    c = one.client()
    ring = c.start(base=(used_idx - 40) & 0xFFFF)
    ring.set_used_event(ring.base + 20000)
    for _ in range(40):
        ring.blk(rc.T_IN, 0, in_len=512)
        ring.submit()
        ring.wait(poll=True)
    c.stop_ring(ring)
    one.stop(9)
    mem, c.mem, c.rings = c.mem, None, {}
    c.close()
    two = serve(path=path)
    c = two.connect()
    c.setup(mem=mem)
    c.rings[0] = ring
    ring.drain_call()
    c.start_ring(ring)
    ring.set_used_event(ring.used_idx())
    rc.fence()
    ring.blk(rc.T_IN, 0, in_len=512)
    ring.submit()
    assert ring.wait_call()
    ring.wait()


@pytest.mark.ours
def test_call_eventfd_full(server):
    """A call eventfd that nobody reads fills up: the server neither blocks nor ends."""
    c = server.client(without=rc.F_EVENT_IDX)
    ring = c.start()
    other = c.start(1)
    ring.read(0, 512)
    ring.drain_call()
    os.eventfd_write(ring.call_fd, 0xFFFFFFFFFFFFFFF0)     # full some calls later
    for _ in range(40):
        ring.blk(rc.T_IN, 0, in_len=512)
        ring.submit()
        ring.wait(poll=True)
    assert other.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_blocking_call_eventfd_full(server):
    """The same with a blocking eventfd (QEMU's are not always non-blocking)."""
    c = server.client(without=rc.F_EVENT_IDX)
    ring = c.make_ring()
    os.close(ring.call_fd)
    ring.call_fd = os.eventfd(0)
    c.start_ring(ring)
    other = c.start(1)
    rc.eventfd_count(ring.call_fd)      # a start may call once
    os.eventfd_write(ring.call_fd, 0xFFFFFFFFFFFFFFFE)
    for _ in range(5):
        ring.blk(rc.T_IN, 0, in_len=512)
        ring.submit()
        try:
            ring.wait(poll=True, timeout=5)
        except TimeoutError:
            os.eventfd_read(ring.call_fd)       # let it go, so that the teardown works
            raise
    assert other.read(0, 512) == bytes(512)
    os.eventfd_read(ring.call_fd)


@pytest.mark.parametrize('event_idx', [True, False])
def test_every_wait_is_woken(server, event_idx):
    """Arm, fence, look again, sleep on the call: no completion may be missed."""
    c = server.client(without=0 if event_idx else rc.F_EVENT_IDX)
    ring = c.start(size=128, base=65530)
    mark = c.mem.mark()
    for n in range(soak(1500, 200000)):
        depth = 1 + n % 7
        for i in range(depth):
            ring.blk(rc.T_IN, i, in_len=512)
        ring.submit()
        ring.wait(depth)
        c.mem.release(mark)
