"""Start, signals, end."""

import os
import signal
import socket
import stat
import subprocess
import time

import pytest

from conftest import BINARY, MIB, disk, listening, wait_for


def one(cli, **keys):
    keys.setdefault('socket', cli.dir / 's')
    if keys.get('engine') not in ('null', 'memory'):
        keys.setdefault('path', cli.dir / 'd.img')
        if not keys['path'].exists():
            cli.image()
    return disk(**keys)


@pytest.mark.parametrize('sig', [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_in_order(cli, sig):
    d = cli.serve(one(cli))
    assert d.stop(sig) == 0
    assert not (cli.dir / 's').exists()


def test_sigint_that_the_shell_ignored(cli):
    """A shell starts background jobs with SIGINT ignored."""
    d = cli.serve(one(cli), preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert d.stop(signal.SIGINT) == 0


def test_signals_blocked_by_the_parent(cli):
    d = cli.serve(one(cli), preexec_fn=lambda: signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1, signal.SIGINT}))
    d.stats()
    assert d.stop() == 0


def test_signal_with_a_client(cli):
    """A client that is connected does not keep the daemon, and sees the connection end."""
    d = cli.serve(one(cli))
    with socket.socket(socket.AF_UNIX) as c:
        c.settimeout(30)
        c.connect(str(cli.dir / 's'))
        wait_for(lambda: d.stats()['exports'][0]['connected'], 'the client')
        assert d.stop() == 0
        assert c.recv(1) == b''


def test_many_signals(cli):
    """A second signal may cut the end short, and nothing else."""
    d = cli.serve(one(cli))
    for _ in range(20):
        d.send(signal.SIGTERM)
        d.send(signal.SIGINT)
    assert d.wait() in (0, 1)
    assert not (cli.dir / 's').exists()


def test_does_not_daemonise(cli):
    d = cli.serve(one(cli))
    assert d.proc.poll() is None
    assert os.getsid(d.proc.pid) == os.getsid(0)


def test_sigpipe(cli):
    """stdout and stderr whose readers are gone."""
    r, w = os.pipe()
    d = cli.start(one(cli), stdout=w)
    os.close(w)
    os.close(r)
    d.wait_listening(cli.dir / 's')
    for _ in range(3):
        d.send(signal.SIGUSR1)
        time.sleep(0.05)
    assert d.proc.poll() is None
    assert d.stop() == 0


def test_stdout_that_nobody_reads(cli):
    """A full pipe stops neither the daemon nor its end."""
    r, w = os.pipe()
    os.set_blocking(w, False)
    try:
        while True:
            os.write(w, b'x' * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(w, True)
    d = cli.start(one(cli), stdout=w)
    os.close(w)
    d.wait_listening(cli.dir / 's')
    for _ in range(3):
        d.send(signal.SIGUSR1)
        time.sleep(0.02)
    assert d.stop() == 0
    assert not (cli.dir / 's').exists()
    os.close(r)


def test_statistics_then_end(cli):
    """A line that was asked for is written before the end."""
    d = cli.serve(one(cli))
    d.send(signal.SIGUSR1)
    wait_for(lambda: d.out_path.read_text().endswith('\n'), 'statistics')
    assert d.stop() == 0


def test_closed_stdio(cli):
    """b61: descriptors 0, 1 and 2 are closed: no socket or image may end up there."""
    cli.image()
    p = subprocess.Popen(['sh', '-c', 'exec "$0" "$@" <&- >&- 2>&-', BINARY, 'serve', one(cli)])
    try:
        wait_for(lambda: listening(cli.dir / 's') or p.poll() is not None, 'the socket')
        assert p.poll() is None
        for fd in (0, 1, 2):
            assert os.readlink('/proc/%d/fd/%d' % (p.pid, fd)) == '/dev/null'
        p.terminate()
        assert p.wait(30) == 0
    finally:
        p.kill()
        p.wait()
    assert (cli.dir / 'd.img').stat().st_size == MIB


# ---- sockets

def test_mode(cli):
    """0600 under any umask."""
    for mask in (0, 0o22, 0o777):
        d = cli.serve(one(cli), preexec_fn=lambda: os.umask(mask))
        assert stat.S_IMODE((cli.dir / 's').lstat().st_mode) == 0o600
        assert d.stop() == 0


def test_live_one_refused(cli):
    d = cli.serve(one(cli))
    cli.image('e.img')
    cli.refused('serve', disk(path='e.img', socket='s'), says="'s'")
    with socket.socket(socket.AF_UNIX) as c:
        c.connect(str(cli.dir / 's'))
    assert d.stop() == 0


def test_stale_one_replaced(cli):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(cli.dir / 's'))
    d = cli.serve(one(cli))
    assert d.stop() == 0
    assert not (cli.dir / 's').exists()


def test_kill_and_restart(cli):
    """After kill -9 neither the socket nor the lock is in the way."""
    for _ in range(3):
        d = cli.serve(one(cli))
        d.send(signal.SIGKILL)
        assert d.wait() == -signal.SIGKILL
        assert (cli.dir / 's').exists()
    d = cli.serve(one(cli))
    assert d.stop() == 0


def test_a_foreign_socket_is_left_alone(cli):
    """Somebody replaced our socket: ours to remove it is no longer."""
    d = cli.serve(one(cli))
    (cli.dir / 's').unlink()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(cli.dir / 's'))
        assert d.stop() == 0
        assert (cli.dir / 's').exists()


def test_deleted_socket(cli):
    d = cli.serve(one(cli))
    (cli.dir / 's').unlink()
    assert d.stop() == 0


# ---- engines and images

@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads', 'null', 'memory'])
def test_engines(cli, engine):
    extra = {'size': '1M'} if engine in ('null', 'memory') else {}
    d = cli.serve(one(cli, engine=engine, **extra))
    assert 'engine %s' % engine in d.log()
    assert d.stats()['exports'][0]['engine'] == engine
    assert d.stop() == 0


def test_auto_says_which(cli):
    d = cli.serve(one(cli))
    lines = [x for x in d.log().splitlines() if "disk 'disk1': " in x and 'engine ' in x]
    assert any(e in lines[-1] for e in ('io_uring', 'linux-aio', 'threads'))
    assert d.stop() == 0


@pytest.mark.parametrize('direct', ['on', 'off'])
def test_direct(cli, direct):
    d = cli.serve(one(cli, direct=direct))
    assert 'direct ' + direct in d.log()
    opened = []
    for fd in os.listdir('/proc/%d/fd' % d.proc.pid):
        if os.readlink('/proc/%d/fd/%s' % (d.proc.pid, fd)) == str(cli.dir / 'd.img'):
            info = open('/proc/%d/fdinfo/%s' % (d.proc.pid, fd)).read()
            opened.append(int(info.split('flags:')[1].split()[0], 8))
    assert opened
    for flags in opened:
        assert bool(flags & os.O_DIRECT) == (direct == 'on')
        assert flags & os.O_CLOEXEC
    assert d.stop() == 0


def test_nothing_is_written(cli):
    """Serving and ending changes neither the image's bytes nor its times."""
    image = cli.image()
    before = image.stat()
    d = cli.serve(one(cli))
    assert d.stop() == 0
    after = image.stat()
    assert (before.st_mtime_ns, before.st_blocks) == (after.st_mtime_ns, after.st_blocks)


def test_sixty_four_disks(cli):
    disks = []
    for i in range(64):
        cli.image('i%d' % i)
        disks.append(disk(path=cli.dir / ('i%d' % i), socket=cli.dir / ('s%d' % i), queues=4))
    d = cli.serve(*disks, '--iothreads=2')
    assert len(d.stats()['exports']) == 64
    assert d.stop() == 0
    assert not list(cli.dir.glob('s*'))


def rss_mib(pid):
    """Anonymous memory and what of files is mapped in."""
    for line in open('/proc/%d/status' % pid):
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) / 1024
    raise AssertionError('no VmRSS')


@pytest.mark.skipif(bool(os.environ.get('RINGSIDE_SANITIZED')), reason='sanitizers take more')
@pytest.mark.parametrize('disks,limit', [(1, 16), (64, 64)])
def test_idle_memory(cli, disks, limit):
    args = []
    for i in range(disks):
        cli.image('i%d' % i)
        args.append(disk(path=cli.dir / ('i%d' % i), socket=cli.dir / ('s%d' % i), queues=4))
    d = cli.serve(*args)
    assert rss_mib(d.proc.pid) < limit
    assert d.stop() == 0


def test_no_descriptor_is_left(cli):
    """What is open with one client, and after it left, is the same."""
    d = cli.serve(one(cli))
    before = sorted(os.listdir('/proc/%d/fd' % d.proc.pid))
    for _ in range(10):
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(str(cli.dir / 's'))
            c.sendall(b'\0' * 11)
    wait_for(lambda: sorted(os.listdir('/proc/%d/fd' % d.proc.pid)) == before, 'descriptors')
    assert d.stop() == 0
