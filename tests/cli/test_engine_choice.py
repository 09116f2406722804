"""engine=auto where the kernel refuses what an engine needs (B52)."""

import os
import shutil
import signal
import subprocess

import pytest

from conftest import BINARY, background, disk, listening, wait_for

pytestmark = pytest.mark.skipif(not shutil.which('strace'), reason='needs strace')

URING = 'io_uring_setup:error=EPERM'
AIO = 'io_setup:error=EAGAIN'


def strace(*inject):
    argv = ['strace', '-f', '-qq', '-e', 'trace=io_uring_setup,io_setup', '-o', '/dev/null',
            '-E', 'ASAN_OPTIONS=detect_leaks=0']  # leaks cannot be looked for under ptrace
    for i in inject:
        argv += ['-e', 'inject=' + i]
    return argv


@pytest.mark.parametrize('inject,engine,reasons', [
    ((URING,), 'linux-aio', ['io_uring']),
    ((URING, AIO), 'threads', ['io_uring', 'linux-aio']),
])
def test_b52_auto_takes_the_next(cli, inject, engine, reasons):
    """The disk is served, and one line says by which engine and why."""
    args = [BINARY, 'serve', disk(path=cli.image(), socket=cli.dir / 's')]
    with open(cli.dir / 'log', 'w') as err, background(strace(*inject) + args, stderr=err) as p:
        wait_for(lambda: listening(cli.dir / 's') or p.poll() is not None, 'the socket')
        wait_for(lambda: ', socket ' in (cli.dir / 'log').read_text(), 'the announcement')
        lines = (cli.dir / 'log').read_text().splitlines()
        with open('/proc/%d/task/%d/children' % (p.pid, p.pid)) as f:
            os.kill(int(f.read().split()[0]), signal.SIGTERM)
        assert p.wait(60) == 0
    assert len(lines) == 2, lines
    assert 'engine ' + engine in lines[0] and 'engine ' + engine in lines[1]
    for reason in reasons:
        assert reason in lines[0]


@pytest.mark.parametrize('inject,engine', [(URING, 'io_uring'), (AIO, 'linux-aio')])
def test_b52_an_engine_by_name_is_refused(cli, inject, engine):
    args = [BINARY, 'serve', disk(path=cli.image(), socket=cli.dir / 's', engine=engine)]
    r = subprocess.run(strace(inject) + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=60)
    assert r.returncode == 1
    assert len(r.stderr.splitlines()) == 1 and "'disk1'" in r.stderr and engine in r.stderr
    assert not (cli.dir / 's').exists()
