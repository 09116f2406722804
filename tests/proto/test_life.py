"""Clients and daemons that come and go under load (fault B50 as far as virtio-blk goes)."""

import os
import signal
import stat
import time

import pytest

import rawclient as rc
from conftest import make_image, soak

pytestmark = pytest.mark.ours


@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads', 'null', 'memory'])
def test_b50_disconnect_at_depth_64(serve, rng, engine):
    """b50: the client goes at a random moment with 64 requests outstanding; again and again."""
    extra = {'size': '16M'} if engine in ('null', 'memory') else {}
    s = serve(queues=2, engine=engine, **extra)
    before = s.fds()
    for _ in range(soak(25, 1000)):
        c = s.connect_retry().setup()
        rings = [c.start(i) for i in range(2)]
        for r in rings:
            for i in range(32):
                if i % 2:
                    r.blk(rc.T_IN, i * 8, in_len=4096)
                else:
                    r.blk(rc.T_OUT, i * 8, out=bytes(4096))
            r.submit()
        for _ in range(rng.randrange(0, 3000)):
            pass
        c.close()
        s.clients.remove(c)
    s.wait_fds(before)
    assert s.serves()


@pytest.mark.parametrize('step', range(9))
def test_b50_disconnect_at_every_step(server, step):
    """b50: the handshake ends after each of its messages."""
    before = server.fds()
    c = server.connect()
    try:
        todo = [c.get_features, lambda: c.set_protocol_features(rc.P_OURS), c.set_owner,
                lambda: c.set_features(c.get_features()), None, None, None, None, None]
        c.mem = rc.default_memory(1 << 20)
        ring = c.make_ring(event_idx=True)
        todo[4:] = [c.set_mem_table, lambda: c.set_vring_num(0, ring.size),
                    lambda: c.send_addr(ring), lambda: c.set_vring_kick(0, ring.kick_fd),
                    lambda: c.set_vring_enable(0)]
        for t in todo[:step + 1]:
            t()
    finally:
        c.close()
        server.clients.remove(c)
    server.wait_fds(before)
    assert server.serves()


@pytest.mark.parametrize('sig', [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads'])
def test_stop_under_load(serve, engine, sig):
    """SIGTERM and SIGINT drain: what was taken is completed, exit 0."""
    s = serve(queues=1, engine=engine)
    c = s.client()
    ring = c.start()
    data = os.urandom(4096)
    reqs = [ring.blk(rc.T_OUT, i * 8, out=data) for i in range(40)]
    ring.submit()
    code = s.stop(sig)
    assert code == 0, s.log()
    for _ in range(40):
        if ring.pop_used() is None:
            break
    done = [r for r in reqs if r.peek_status() == rc.S_OK]
    assert len(done) == (ring.used_idx() - ring.base) & 0xFFFF
    with open(s.image(), 'rb') as f:
        for r in done:
            f.seek(reqs.index(r) * 4096)
            assert f.read(4096) == data


def test_socket_mode_and_removal(serve):
    s = serve(queues=1)
    path = s.disks[0]['socket']
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert s.stop() == 0
    assert not os.path.exists(path)


def test_stale_socket_is_replaced_live_one_refused(serve):
    sock = str(serve.dir / 'sock')
    img = [make_image(serve.dir / ('i%d' % i), 1 << 20) for i in range(2)]
    one = serve(path=img[0], socket=sock)
    two = serve(path=img[1], socket=sock, expect_fail=True)
    assert two.proc.wait(20) == 1
    two.proc = None
    assert one.serves()
    one.stop(signal.SIGKILL)
    one.proc = None
    assert os.path.exists(sock)
    two = serve(path=img[0], socket=sock)
    assert two.serves()


def test_killed_daemon_leaves_no_lock(serve):
    path = make_image(serve.dir / 'l.img', 1 << 20)
    one = serve(path=path)
    one.stop(signal.SIGKILL)
    assert serve(path=path).serves()


def test_many_disks_one_daemon(serve):
    """64 disks of four queues: each its own data."""
    n = soak(16, 64)
    s = serve(disks=[{'queues': 4, 'image_size': 1 << 20} for _ in range(n)])
    for d in range(n):
        c = s.connect(d).setup(mem=rc.default_memory(1 << 20))
        c.start(d % 4).write(0, bytes([d]) * 512)
    for d in range(n):
        assert s.clients[d].rings[d % 4].read(0, 512) == bytes([d]) * 512


@pytest.mark.faults
def test_slow_disk_does_not_hold_another(serve):
    """Disk 0's requests wait in the engine; disk 1 on the same iothread is served."""
    from conftest import slow
    s = serve(disks=[{'queues': 1, 'engine': 'threads'},
                     {'queues': 1, 'engine': 'null', 'size': '1M'}],
              args=['--iothreads', '1'], env=slow(2000))
    a, b = s.client(0).start(), s.client(1).start()
    for i in range(8):
        a.blk(rc.T_IN, i, in_len=512)
    a.submit()
    time.sleep(0.1)
    for _ in range(5):
        b.blk(rc.T_IN, 0, in_len=512)
    b.submit()
    b.wait(5)
    a.wait(8)
