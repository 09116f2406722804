"""Fixtures of the command line tests: the program run to its end, and daemons.

RINGSIDE   the program to test (default build/ringside of this checkout)
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get('RINGSIDE') or str(ROOT / 'build' / 'ringside')
MIB = 1 << 20
TIMEOUT = 60
SANITIZER = re.compile(r'(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:)')


def disk(**keys):
    """--disk in its key=value form; a trailing underscore and inner ones are for Python."""
    return '--disk=' + ','.join('%s=%s' % (k.strip('_').replace('_', '-'),
                                           str(v).replace(',', ',,')) for k, v in keys.items())


def listening(path):
    """Seen in /proc, without taking the place of a client."""
    with open('/proc/net/unix', errors='replace') as f:
        for line in f:
            w = line.split(None, 7)
            if len(w) == 8 and w[7].rstrip('\n') == str(path) and w[3] == '00010000':
                return True
    return False


def wait_for(condition, what, timeout=TIMEOUT):
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, 'waited in vain for ' + what
        time.sleep(0.005)


class Daemon:
    def __init__(self, directory, args, command='serve', program=None, **popen):
        self.dir = pathlib.Path(directory)
        self.out_path, self.err_path = self.dir / 'stdout', self.dir / 'stderr'
        popen.setdefault('stdout', open(self.out_path, 'ab'))
        argv = [program] if program else [BINARY, command]
        with open(self.err_path, 'ab') as err:
            self.proc = subprocess.Popen(argv + [str(a) for a in args], stderr=err,
                                         stdin=subprocess.DEVNULL, cwd=self.dir, **popen)
        if hasattr(popen['stdout'], 'close'):
            popen['stdout'].close()

    def log(self):
        return self.err_path.read_text(errors='replace')

    def wait_listening(self, *paths):
        for p in paths:
            wait_for(lambda: self.proc.poll() is not None or listening(p), 'socket %s' % p)
            assert self.proc.poll() is None, self.log()
        # the announcement is the last thing before the loop runs
        wait_for(lambda: self.log().count(', socket ') >= len(paths), 'the announcement')
        return self

    def send(self, sig):
        self.proc.send_signal(sig)

    def wait(self):
        return self.proc.wait(TIMEOUT)

    def stop(self, sig=signal.SIGTERM):
        self.send(sig)
        return self.wait()

    def stats(self):
        before = len(self.out_path.read_text().splitlines())
        self.send(signal.SIGUSR1)
        wait_for(lambda: self.out_path.read_text().count('\n') > before, 'statistics')
        return json.loads(self.out_path.read_text().splitlines()[before])


class Cli:
    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.daemons = []

    def image(self, name='d.img', size=MIB):
        path = self.dir / name
        with open(path, 'wb') as f:
            f.truncate(size)
        return path

    def run(self, *args, **kw):
        """The program, run to its end."""
        kw.setdefault('timeout', TIMEOUT)
        return subprocess.run([BINARY] + [str(a) for a in args], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors='replace', cwd=self.dir, **kw)

    def refused(self, *args, says=(), **kw):
        """One line on stderr that says all of `says`, exit 1, and nothing has been touched."""
        before = self.files()
        r = self.run(*args, **kw)
        lines = r.stderr.splitlines()
        assert r.returncode == 1, (r.returncode, r.stderr)
        assert len(lines) == 1, r.stderr
        assert lines[0].startswith('ringside: error: '), r.stderr
        assert r.stdout == ''
        for text in [says] if isinstance(says, str) else says:
            assert text in lines[0], r.stderr
        assert self.files() == before
        return lines[0]

    def files(self):
        """What there is, by name, kind, size, inode and time of change."""
        found = {}
        for p in self.dir.rglob('*'):
            if p.name not in ('stdout', 'stderr') and '.out' not in p.name:
                s = p.lstat()
                found[str(p)] = (s.st_mode, s.st_size, s.st_ino, s.st_mtime_ns)
        return found

    def start(self, *args, **kw):
        d = self.dir / ('d%d.out' % len(self.daemons))
        d.mkdir()
        daemon = Daemon(d, args, **kw)
        self.daemons.append(daemon)
        return daemon

    def serve(self, *args, **kw):
        """A daemon that listens; `args` as for the command line."""
        sockets = []
        for a in args:
            m = re.search(r'(?:^|,|=)socket=((?:[^,]|,,)*)', str(a))
            if m:
                sockets.append(m.group(1).replace(',,', ','))
        return self.start(*args, **kw).wait_listening(*sockets)


@pytest.fixture
def cli():
    d = tempfile.mkdtemp(prefix='rs-', dir='/tmp')
    c = Cli(d)
    yield c
    logs = ''
    for daemon in c.daemons:
        if daemon.proc.poll() is None:
            daemon.stop()
        logs += daemon.log()
    shutil.rmtree(d, ignore_errors=True)
    assert not SANITIZER.search(logs), logs


@contextlib.contextmanager
def background(argv, **kw):
    p = subprocess.Popen(argv, **kw)
    try:
        yield p
    finally:
        p.kill()
        p.wait()
