"""Broken rings: what a driver can do to its own ring, and that it harms nobody else (B13)."""

import time

import pytest

import rawclient as rc

pytestmark = pytest.mark.ours


def broken(server, client, ring):
    """The three signs of a broken ring, one log line, and nothing served any more."""
    assert rc.eventfd_count(ring.err_fd, rc.WAIT) == 1
    assert client.get_status() & rc.STATUS_NEEDS_RESET
    server.wait_line()
    n = ring.used_idx()
    for _ in range(5):
        ring.kick()
    time.sleep(0.1)
    assert ring.used_idx() == n
    assert rc.eventfd_count(ring.err_fd) == 0, 'reported more than once'
    assert len(server.new_lines()) == 1, server.new_lines()


@pytest.mark.parametrize('recover', ['reset', 'reconnect', 'restart'])
@pytest.mark.parametrize('jump', [17, 32768, 65535])
def test_b13_avail_jump(serve, jump, recover):
    """b13: avail idx ahead by more than the size."""
    s = serve(disks=[{'queues': 2}, {'queues': 1}])
    c = s.client(0)
    ring, other = c.start(0, size=16), c.start(1)
    neighbour = s.client(1).start()
    for i in range(5):
        ring.read(i, 512)
    for i in range(4):                          # four good heads among the rubbish
        ring.blk(rc.T_IN, i, in_len=512)
    s.mark_log()
    ring.set_avail_idx(ring.avail_idx + jump)
    ring.kick()
    broken(s, c, ring)
    assert (ring.used_idx() - ring.last_used) & 0xFFFF <= 16
    for _ in range(50):
        assert other.read(0, 512) == bytes(512)
        assert neighbour.read(0, 512) == bytes(512)
    if recover == 'reset':
        c.reset_device()
        c.set_features(c.features)
        ring = c.start(0, size=16)
        assert not c.get_status() & rc.STATUS_NEEDS_RESET
    elif recover == 'reconnect':
        c.close()
        c = s.next_client(0)
        ring = c.start(0, size=16)
        assert not c.get_status() & rc.STATUS_NEEDS_RESET
    else:
        c.get_vring_base(0)
        ring = c.start(0, size=16)
    for i in range(40):
        assert ring.read(i, 512) == bytes(512)
    assert neighbour.read(0, 512) == bytes(512)


@pytest.mark.parametrize('jump', [17, 65535])
@pytest.mark.parametrize('poll', ['off', 'adaptive', 'always'])
def test_b13_avail_jump_in_every_poll_mode(serve, poll, jump):
    """b13: the pollers look at `broken` too."""
    s = serve(queues=2, poll=poll)
    c = s.client()
    ring, other = c.start(0, size=16), c.start(1)
    assert ring.read(0, 512) == bytes(512)
    s.mark_log()
    ring.set_avail_idx(ring.avail_idx + jump)
    ring.kick()
    broken(s, c, ring)
    assert other.read(0, 512) == bytes(512)


@pytest.mark.parametrize('jump', [17, 32768, 65535])
def test_b13_at_the_start_of_the_ring(serve, jump):
    """b13: the ring is broken before it begins."""
    s = serve(queues=2)
    c = s.client()
    ring = c.make_ring(size=16)
    ring.set_avail_idx(jump)
    s.mark_log()
    c.start_ring(ring)
    ring.kick()
    broken(s, c, ring)
    assert c.start(1).read(0, 512) == bytes(512)


def test_b13_without_kick_descriptor(serve):
    """b13: a polled ring."""
    s = serve(queues=2)
    c = s.client()
    ring = c.start(0, size=16, kick=False)
    assert ring.read(0, 512) == bytes(512)
    s.mark_log()
    ring.set_avail_idx(ring.avail_idx + 17)
    broken(s, c, ring)
    assert c.start(1).read(0, 512) == bytes(512)


@pytest.mark.parametrize('head', [16, 17, 32768, 65535])
def test_head_not_below_the_size(serve, head):
    s = serve(queues=2)
    c = s.client()
    ring, other = c.start(0, size=16), c.start(1)
    assert ring.read(0, 512) == bytes(512)
    s.mark_log()
    ring.push_head(head)
    ring.publish()
    ring.kick()
    broken(s, c, ring)
    assert other.read(0, 512) == bytes(512)
    c.reset_device()
    c.set_features(c.features)
    assert c.start(0, size=16).read(0, 512) == bytes(512)


def test_good_heads_before_a_bad_one(serve):
    """What was taken before the bad head is completed, or nothing of the batch is."""
    s = serve(queues=1)
    c = s.client()
    ring = c.start(size=16)
    for i in range(3):
        ring.blk(rc.T_IN, i, in_len=512)
    ring.push_head(99)
    ring.publish()
    ring.kick()
    assert rc.eventfd_count(ring.err_fd, rc.WAIT) == 1
    time.sleep(0.1)
    assert 0 <= ring.used_idx() <= 3


def test_one_head_twice(server):
    """The same descriptor offered twice: two completions, no crash."""
    c = server.client()
    ring = c.start(size=16)
    req = ring.blk(rc.T_IN, 0, in_len=512)
    ring.push_head(req.head)
    ring.submit()
    assert [h for h, _ in ring.wait(2)] == [req.head] * 2


def test_used_idx_overwritten_by_the_driver(server):
    """The used ring is ours: what the driver writes there changes nothing for the daemon."""
    c = server.client()
    ring = c.start(size=16)
    for i in range(10):
        assert ring.read(0, 512) == bytes(512)
    c.mem.write(ring.used, b'\xff' * (6 + 8 * 16))
    ring.blk(rc.T_IN, 0, in_len=512)
    ring.publish()
    ring.kick()
    time.sleep(0.1)
    assert server.alive()
    c.close()
    assert server.serves()


def test_random_rings(server, rng):
    """Rubbish in every byte of the ring: the daemon lives; the next client is served."""
    from conftest import soak
    for _ in range(soak(60, 5000)):
        c = server.connect_retry().setup()
        for q in range(4):
            ring = c.start(q, size=16, enable=False)
            raw = bytes(rng.randrange(256) for _ in range(16 * 16))
            c.mem.write(ring.desc, raw)
            for i in range(16):             # now and then something that leads somewhere
                if rng.random() < 0.7:
                    ring.write_desc(i, ring.desc + rng.randrange(4096), rng.randrange(5000),
                                    rng.randrange(8), rng.randrange(17))
                ring.set_avail_ring(i, rng.randrange(17))
            ring.set_avail_idx(rng.randrange(18))
            c.set_vring_enable(q)
            ring.kick()
        assert c.alive()
        c.close()
        server.clients.remove(c)
        assert server.alive()
    assert server.serves()
