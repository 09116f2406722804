"""GET_VRING_BASE: stops the ring, answers when its requests have ended, with the true index."""

import os
import struct
import time

import pytest

import rawclient as rc
from conftest import slow


def test_true_index(client):
    ring = client.start(base=65530)
    for _ in range(17):
        ring.read(0, 512)
    assert client.get_vring_base(0) == (65530 + 17) & 0xFFFF


def test_b34_rings_never_started(server, client):
    """b34: answered for every ring, whatever has been started."""
    client.start(2).read(0, 512)
    for i in range(4):
        assert client.get_vring_base(i) == (1 if i == 2 else 0)


@pytest.mark.ours
def test_base_of_a_ring_never_started_is_what_was_set(client):
    client.set_vring_base(1, 77)
    assert client.get_vring_base(1) == 77


@pytest.mark.ours
def test_stopped_ring_does_nothing(client):
    ring = client.start()
    ring.read(0, 512)
    client.stop_ring(ring)
    ring.blk(rc.T_IN, 0, in_len=512)
    ring.publish()
    ring.kick()
    time.sleep(0.2)
    assert ring.used_idx() == 1
    assert client.get_vring_base(0) == 1


@pytest.mark.ours
def test_b33_all_requests_before_the_answer(server, client):
    """b33: when the answer is there, used idx is final and equals the base."""
    ring = client.start(size=256)
    for _ in range(20):
        mark = client.mem.mark()
        reqs = [ring.blk(rc.T_OUT, i * 8, out=bytes(4096)) for i in range(40)]
        ring.submit()
        base = client.stop_ring(ring)
        assert ring.used_idx() == base
        done = (base - ring.last_used) & 0xFFFF
        heads = [h for h, _ in ring.wait(done, poll=True)]
        for r in reqs:
            if r.head in heads:
                assert r.peek_status() == rc.S_OK
            else:
                assert r.peek_status() == rc.S_UNTOUCHED
        client.start_ring(ring)             # the rest is served after the start
        ring.wait(40 - done, poll=True)
        assert all(r.peek_status() == rc.S_OK for r in reqs)
        client.mem.release(mark)


@pytest.mark.ours
@pytest.mark.faults
def test_b33_slow_engine(serve):
    """b33: eight writes held by the engine: the answer waits, a second VM does not."""
    s = serve(disks=[{'queues': 2, 'engine': 'threads'}, {'engine': 'null', 'size': '1M'}],
              env=slow(3000))
    c = s.client(0)
    ring = c.start()
    reqs = [ring.blk(rc.T_OUT, i * 16, out=os.urandom(512)) for i in range(8)]
    ring.submit()
    time.sleep(0.2)
    assert ring.used_idx() == 0, 'the fault layer does not delay'
    c.send_get_vring_base(0)
    other = s.client(1)                 # connects and negotiates while the first one waits
    assert other.config().capacity == 2048
    base = c.recv_vring_base(0)
    assert base == 8
    assert ring.used_idx() == 8, 'answered before its requests had ended'
    assert all(r.peek_status() == rc.S_OK for r in reqs)


@pytest.mark.ours
@pytest.mark.faults
def test_b33_disconnect_with_slow_requests(serve):
    """b33: the client goes instead: late completions find their memory; the next is served."""
    s = serve(queues=2, engine='threads', env=slow(500))
    c = s.client()
    ring = c.start()
    data = os.urandom(512)
    for i in range(8):
        ring.blk(rc.T_OUT, i, out=data)
    ring.submit()
    time.sleep(0.1)
    c.close()
    n = s.next_client()
    got = n.start().read(0, 8 * 512)
    assert got in (data * 8,)           # accepted writes are on the disk before the next reads


@pytest.mark.ours
@pytest.mark.parametrize('index', [4, 0x100, 0x10000, 0x10002, 0xFFFFFFFF])
def test_b32_index_is_checked_at_full_width(server, client, index):
    client.send(rc.GET_VRING_BASE, struct.pack('<II', index, 0))
    assert client.closed_by_server()
    client.close()
    assert server.serves()


@pytest.mark.ours
def test_twice(client):
    ring = client.start()
    ring.read(0, 512)
    assert client.get_vring_base(0) == 1
    assert client.get_vring_base(0) == 1


@pytest.mark.ours
def test_stop_and_start_many_times(server, client):
    """Descriptors and the serial number outlive a restart."""
    ring = client.start()
    n = None
    for i in range(50):
        assert ring.read(0, 512) == bytes(512)
        client.stop_ring(ring)
        client.start_ring(ring)
        n = server.fds() if n is None else n
    server.wait_fds_most(n)


@pytest.mark.ours
def test_other_rings_go_on(client):
    a, b = client.start(0), client.start(1)
    for _ in range(10):
        b.blk(rc.T_IN, 0, in_len=512)
        b.submit()
        client.stop_ring(a)
        client.start_ring(a)
        b.wait()
        assert a.read(0, 512) == bytes(512)
