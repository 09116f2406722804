"""Lost kicks and calls (B02), and how many there are when nobody sleeps (B55)."""

import time

import pytest

import rawclient as rc
from conftest import soak


class Spare:
    """A request that is built once and sent again and again."""

    def __init__(self, ring, sector=0, length=512):
        self.req = ring.blk(rc.T_IN, sector, in_len=length, indirect=True)
        self.ring = ring
        self.head = self.req.head
        self.ids = ring.chains[self.head]

    def again(self):
        self.ring.chains[self.head] = self.ids
        self.ring.free.remove(self.head)
        self.ring.push_head(self.head)


@pytest.mark.parametrize('poll', [pytest.param('adaptive', marks=pytest.mark.ours),
                                  pytest.param('off', marks=pytest.mark.ours),
                                  pytest.param('1us', marks=pytest.mark.ours),
                                  pytest.param('20us', marks=pytest.mark.ours), None])
@pytest.mark.parametrize('event_idx', [True, False])
def test_b02_kick_while_the_device_goes_to_sleep(serve, rng, poll, event_idx):
    """b02: one request, kicked by the rules only, with delays that fall into the re-arm window.

    The driver polls for the completion, so only a lost kick can hold it up.
    """
    s = serve(engine='null', size='1M', queues=1, **({'poll': poll} if poll else {}))
    c = s.client(without=0 if event_idx else rc.F_EVENT_IDX)
    ring = c.start(size=16, base=65530)
    spare = Spare(ring)
    ring.publish()
    ring.kick()
    end = time.monotonic() + soak(1.5, 120)
    count = 0
    kicks = 0
    delays = [rng.randrange(0, 60) for _ in range(997)]
    pop = ring.pop_used
    used_idx = ring.used_idx
    while time.monotonic() < end:
        for k in delays:
            limit = None
            last = ring.last_used
            spins = 0
            while used_idx() == last:
                spins += 1
                if spins % 100000 == 0:
                    limit = limit or time.monotonic() + rc.WAIT
                    assert time.monotonic() < limit, 'request %d hangs: a kick was lost' % count
            pop()
            count += 1
            for _ in range(k):
                pass
            spare.again()
            if ring.publish():
                kicks += 1
                ring.kick()
    assert count > 1000
    ring.wait(1, poll=True)
    print('%d requests, %d kicks' % (count, kicks))


@pytest.mark.parametrize('event_idx', [True, False])
def test_b02_both_sides_sleep(serve, rng, event_idx):
    """b02: the same with a driver that sleeps on the call: a lost call hangs it too."""
    s = serve(engine='null', size='1M', queues=1)
    c = s.client(without=0 if event_idx else rc.F_EVENT_IDX)
    ring = c.start(size=16, base=65530)
    spare = Spare(ring)
    ring.publish()
    ring.kick()
    end = time.monotonic() + soak(1.5, 120)
    count = 0
    while time.monotonic() < end:
        for k in range(200):
            ring.wait(1)
            count += 1
            for _ in range(rng.randrange(0, 40)):
                pass
            spare.again()
            ring.submit()
    ring.wait(1)
    assert count > 1000


def busy(c, ring, depth, total):
    """Keep `depth` requests in the ring without ever sleeping; kicks by the rules."""
    spares = {}
    for _ in range(depth):
        sp = Spare(ring)
        spares[sp.head] = sp
    ring.disarm()
    ring.submit()
    done = 0
    end = time.monotonic() + 120
    while done < total:
        n = 0
        while True:
            u = ring.pop_used()
            if u is None:
                break
            spares[u[0]].again()
            n += 1
        if n:
            done += n
            ring.disarm()           # the driver looks by itself: no call wanted
            ring.submit()
        elif time.monotonic() > end:
            raise TimeoutError('%d of %d' % (done, total))
    ring.drain_call()
    return done


@pytest.mark.ours
@pytest.mark.parametrize('poll', ['adaptive', 'always'])
def test_b55_few_notifications_while_busy(serve, poll):
    """b55: depth 32 on the null engine: kicks asked for + calls < 5 % of the requests."""
    s = serve(engine='null', size='1M', queues=1, poll=poll)
    c = s.client()
    ring = c.start(size=128)
    ring.kicks = ring.calls = 0
    done = busy(c, ring, 32, soak(60000, 1000000))
    print('%d requests, %d kicks, %d calls' % (done, ring.kicks, ring.calls))
    assert ring.kicks + ring.calls < done * 0.05
    if poll == 'always':
        assert ring.kicks <= 8
    q = s.queue_stats()
    assert q['requests'] >= done
    assert q['kicks_received'] <= ring.kicks + 8
    assert q['calls_sent'] <= ring.calls + 1
    assert q['errors'] == 0


@pytest.mark.ours
def test_b55_one_index_store_a_batch(serve):
    """b55: a full ring in one kick is few batches and at most a few calls."""
    s = serve(engine='null', size='1M', queues=1)
    c = s.client()
    ring = c.start(size=128)
    for _ in range(20):
        mark = c.mem.mark()
        for i in range(64):
            ring.blk(rc.T_IN, 0, in_len=512, indirect=True)
        ring.submit()
        ring.wait(64)
        c.mem.release(mark)
    q = s.queue_stats()
    assert q['requests'] == 1280
    assert q['calls_sent'] <= 200, q
    assert q['kicks_received'] <= 60, q


@pytest.mark.ours
def test_statistics(serve):
    """SIGUSR1: one JSON object with true numbers."""
    s = serve(queues=2)
    c = s.client()
    a, b = c.start(0), c.start(1)
    for i in range(10):
        a.read(i, 4096)
    b.write(0, bytes(512))
    b.do(rc.T_IN, 1 << 40, in_len=512)
    one, two = s.queue_stats(0, 0), s.queue_stats(0, 1)
    assert one['requests'] == 10 and one['bytes'] == 40960 and one['errors'] == 0
    assert two['requests'] == 2 and two['errors'] == 1 and two['bytes'] == 512
    for key in ('batches', 'merged', 'kicks_received', 'calls_sent', 'calls_suppressed',
                'spin_hits', 'spin_misses', 'time_spun_ns', 'time_slept_ns'):
        assert one[key] >= 0
    assert 1 <= one['batches'] <= 10
    assert 'latency' in one
