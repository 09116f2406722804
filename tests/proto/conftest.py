"""Fixtures: a server process a test, clients, images.

RINGSIDE        the program to test (default build/ringside of this checkout)
RINGSIDE_PEER   "qemu-storage-daemon": run the tests against that server instead, where it can;
                tests marked `ours` say what only our server promises and are skipped there
                (RINGSIDE_PEER_ALL=1 runs them all the same, to see what the peer does)
RINGSIDE_SOAK   1: long sizes of the stresses, all permutations
"""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import rawclient as rc  # noqa: E402

BINARY = os.environ.get('RINGSIDE') or str(ROOT / 'build' / 'ringside')
PEER = os.environ.get('RINGSIDE_PEER', '')
PEER_ALL = os.environ.get('RINGSIDE_PEER_ALL') == '1'
SOAK = os.environ.get('RINGSIDE_SOAK') == '1'
MIB = 1 << 20
STOP_TIMEOUT = 60

SANITIZER = re.compile(
    r'(ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|WARNING: MemorySanitizer|'
    r'runtime error:|SUMMARY: \w+Sanitizer)')


def pytest_configure(config):
    config.addinivalue_line('markers', 'ours: a promise of our server; skipped with a peer')
    config.addinivalue_line('markers', 'faults: needs a build with -Dfaults=true')


def pytest_collection_modifyitems(config, items):
    peer = pytest.mark.skip(reason='not promised by the peer')
    nofaults = pytest.mark.skip(reason='needs a build with -Dfaults=true')
    have = have_faults()
    for item in items:
        if PEER and not PEER_ALL and item.get_closest_marker('ours'):
            item.add_marker(peer)
        if not have and item.get_closest_marker('faults'):
            item.add_marker(nofaults)


def have_faults():
    """The fault layer is compiled in when the program knows the variable's name."""
    if PEER:
        return False
    try:
        with open(BINARY, 'rb') as f:
            return b'RINGSIDE_FAULTS' in f.read()
    except OSError:
        return False


def slow(milliseconds, ops='all'):
    """Environment for an engine that holds every completion for this long.

    The grammar of RINGSIDE_FAULTS is known here and nowhere else in this folder.
    """
    return {'RINGSIDE_FAULTS': 'delay=%dms' % milliseconds}


def soak(ci, long):
    return long if SOAK else ci


class Sanitizer(AssertionError):
    pass


class Server:
    """One server process. `disks` are dicts of --disk keys; `socket` and `path` are filled in."""

    def __init__(self, directory, disks, args=(), env=None, wrapper=()):
        self.dir = pathlib.Path(directory)
        self.disks = disks
        self.args = list(args)
        self.env = dict(os.environ, **(env or {}))
        self.env.pop('RINGSIDE_SOAK', None)
        self.wrapper = list(wrapper)
        self.proc = None
        self.clients = []
        self.log_mark = 0
        for i, d in enumerate(disks):
            d.setdefault('socket', str(self.dir / ('s%d' % i)))
            if (d.get('engine') not in ('null', 'memory') and 'path' not in d
                    and d.get('share') != 'on'):
                d['path'] = make_image(self.dir / ('d%d.img' % i), d.pop('image_size', 16 * MIB))
            d.pop('image_size', None)

    # -- life
    def command(self):
        if PEER:
            return self.peer_command()
        cmd = [BINARY, 'serve']
        for d in self.disks:
            cmd += ['--disk', ','.join('%s=%s' % (k.replace('_', '-'), str(v).replace(',', ',,'))
                                       for k, v in d.items())]
        return cmd + self.args

    def peer_command(self):
        cmd = ['qemu-storage-daemon']
        unknown = set(self.args)
        for i, d in enumerate(self.disks):
            d = dict(d)
            export = 'vhost-user-blk,id=e%d,node-name=f%d,addr.type=unix,addr.path=%s' % (
                i, i, d.pop('socket'))
            ro = d.pop('readonly', 'off') == 'on'
            export += ',writable=' + ('off' if ro else 'on')
            export += ',num-queues=%d' % d.pop('queues', 128)
            export += ',logical-block-size=%d' % d.pop('block_size', 512)
            engine = d.pop('engine', 'auto')
            direct = d.pop('direct', 'off')
            if engine == 'null':
                node = 'null-co,node-name=f%d,size=%d' % (i, parse_size(d.pop('size', 16 * MIB)))
            else:
                node = 'file,node-name=f%d,filename=%s,discard=unmap,cache.direct=%s,read-only=%s' \
                    % (i, d.pop('path'), direct, 'on' if ro else 'off')
            d.pop('lock', None)
            d.pop('discard', None)
            unknown |= set(d)
            cmd += ['--blockdev', node, '--export', export]
        if unknown:
            pytest.skip('the peer has no %s' % ', '.join(sorted(unknown)))
        return cmd

    def start(self, expect_fail=False):
        self.out_path = self.dir / 'stdout'
        self.err_path = self.dir / 'stderr'
        with open(self.out_path, 'ab') as out, open(self.err_path, 'ab') as err:
            self.proc = subprocess.Popen(self.wrapper + self.command(), stdin=subprocess.DEVNULL,
                                         stdout=out, stderr=err, env=self.env)
        if expect_fail:
            return self
        end = time.monotonic() + 20
        for d in self.disks:
            while not self._listening(d['socket']):
                if self.proc.poll() is not None:
                    raise RuntimeError('server ended with %s:\n%s' % (self.proc.returncode,
                                                                       self.log()))
                if time.monotonic() > end:
                    raise RuntimeError('no socket:\n' + self.log())
                time.sleep(0.002)
        return self

    def _listening(self, path):
        """Listening is seen in /proc, without taking the place of a client."""
        try:
            with open('/proc/net/unix') as f:
                for line in f:
                    w = line.split()
                    if len(w) >= 8 and w[7] == path and w[3] == '00010000':
                        return True
        except OSError:
            pass
        return False

    @property
    def pid(self):
        """Of the server itself, also under a wrapper."""
        if self.wrapper:
            kids = pathlib.Path('/proc/%d/task/%d/children' % (self.proc.pid, self.proc.pid))
            for kid in kids.read_text().split():
                return int(kid)
        return self.proc.pid

    def stop(self, sig=signal.SIGTERM):
        """Ends the server and returns its exit status."""
        if self.proc is None:
            return 0
        if self.proc.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)
            try:
                self.proc.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
                raise AssertionError('server did not end on signal %d' % sig)
        code = self.proc.returncode
        self.proc = None
        return code

    def finish(self):
        """Teardown: the connections go, SIGTERM, exit 0, no sanitizer report."""
        for c in self.clients:
            c.close()
        if self.proc is not None:
            early = self.proc.poll()
            assert early is None, 'server died with status %s:\n%s' % (early, self.log()[-4000:])
            code = self.stop()
            log = self.log()
            assert code == 0, 'exit status %s:\n%s' % (code, log[-4000:])
        self.check_sanitizer()

    def check_sanitizer(self):
        log = self.log()
        hit = SANITIZER.search(log)
        if hit:
            raise Sanitizer(log[max(0, hit.start() - 200):hit.start() + 4000])

    # -- looking at it
    def log(self):
        try:
            return self.err_path.read_text(errors='replace')
        except FileNotFoundError:
            return ''

    def mark_log(self):
        self.log_mark = len(self.log())

    def new_lines(self):
        return [x for x in self.log()[self.log_mark:].splitlines() if x.strip()]

    def wait_line(self, pattern=r'.', timeout=10):
        """A line since mark_log() that matches; they come a moment after the event."""
        end = time.monotonic() + timeout
        while True:
            for line in self.new_lines():
                if re.search(pattern, line, re.I):
                    return line
            assert time.monotonic() < end, 'no line %r in:\n%s' % (pattern, self.log()[-2000:])
            time.sleep(0.01)

    def fds(self):
        return len(os.listdir('/proc/%d/fd' % self.pid))

    def settled_fds(self):
        """fds() when what the start or an earlier session had open is closed."""
        last, same = self.fds(), 0
        while same < 5:
            time.sleep(0.05)
            now = self.fds()
            last, same = now, same + 1 if now == last else 0
        return last

    def wait_fds_most(self, count, timeout=10):
        """A closed session gives its descriptors back a moment after its socket."""
        end = time.monotonic() + timeout
        while self.fds() > count and time.monotonic() < end:
            time.sleep(0.01)
        assert self.fds() <= count

    def wait_fds(self, count, timeout=10):
        """The number of open descriptors comes back to `count`."""
        end = time.monotonic() + timeout
        while self.fds() > count:
            if time.monotonic() > end:
                links = []
                for n in os.listdir('/proc/%d/fd' % self.pid):
                    with contextlib.suppress(OSError):
                        links.append(os.readlink('/proc/%d/fd/%s' % (self.pid, n)))
                raise AssertionError('%d descriptors, expected %d: %s' %
                                     (self.fds(), count, sorted(links)))
            time.sleep(0.01)

    def alive(self):
        return self.proc.poll() is None

    def cpu_ticks(self):
        f = pathlib.Path('/proc/%d/stat' % self.pid).read_text().rsplit(')', 1)[1].split()
        return int(f[11]) + int(f[12])

    def switches(self):
        """Voluntary context switches of all threads: how often any of them went to sleep."""
        total = 0
        for task in pathlib.Path('/proc/%d/task' % self.pid).iterdir():
            with contextlib.suppress(FileNotFoundError):
                m = re.search(r'^voluntary_ctxt_switches:\s*(\d+)', (task / 'status').read_text(),
                              re.M)
                total += int(m.group(1))
        return total

    def stats(self):
        """SIGUSR1 and the JSON object that it prints."""
        before = self.out_path.read_text().count('\n')
        os.kill(self.pid, signal.SIGUSR1)
        end = time.monotonic() + 10
        while True:
            lines = self.out_path.read_text().split('\n')
            if len(lines) - 1 > before:
                return json.loads(lines[-2])
            assert time.monotonic() < end, 'no statistics'
            time.sleep(0.01)

    def queue_stats(self, export=0, queue=0):
        for q in self.stats()['exports'][export]['queues']:
            if q['index'] == queue:
                return q
        raise AssertionError('no statistics of queue %d' % queue)

    # -- clients
    def connect(self, disk=0):
        c = rc.Client(self.disks[disk]['socket'])
        self.clients.append(c)
        return c

    def connect_retry(self, disk=0, timeout=10):
        """A connection that is taken: the one before may still be on its way out."""
        end = time.monotonic() + timeout
        while True:
            c = self.connect(disk)
            try:
                c.get_features()
                return c
            except rc.Closed:
                c.close()
                self.clients.remove(c)
                assert self.alive(), self.log()[-4000:]
                if time.monotonic() > end:
                    raise
                time.sleep(0.002)

    def next_client(self, disk=0, timeout=10, **kw):
        """A set-up client, as soon as the server has let the one before go."""
        return self.connect_retry(disk, timeout).setup(**kw)

    def client(self, disk=0, **kw):
        return self.connect(disk).setup(**kw)

    def serves(self, disk=0):
        """The next client gets a working disk; then it leaves."""
        with self.next_client(disk) as c:
            c.start().read(0, 512)
        self.clients.remove(c)
        return True

    def image(self, disk=0):
        return self.disks[disk]['path']


def parse_size(s):
    s = str(s)
    return int(s[:-1]) << {'K': 10, 'M': 20, 'G': 30, 'T': 40}[s[-1]] if s[-1] in 'KMGT' else int(s)


def make_image(path, size=16 * MIB, fill=None):
    """An image; sparse zeroes, or the repeated byte `fill`."""
    with open(path, 'wb') as f:
        if fill is None:
            f.truncate(size)
        else:
            chunk = bytes([fill]) * MIB
            left = size
            while left > 0:
                f.write(chunk[:left])
                left -= MIB
    return str(path)


@pytest.fixture
def tmpdir_short():
    d = tempfile.mkdtemp(prefix='rs-', dir='/tmp')
    yield pathlib.Path(d)
    shutil.rmtree(d, ignore_errors=True)


@pytest.fixture
def serve(tmpdir_short):
    """serve(disk_key=..., ...) or serve(disks=[{...}, ...], args=[...]); many a test."""
    servers = []

    def factory(disks=None, args=(), env=None, wrapper=(), expect_fail=False, **disk):
        d = tmpdir_short / ('v%d' % len(servers))
        d.mkdir()
        s = Server(d, [dict(x) for x in disks] if disks else [disk], args, env, wrapper)
        servers.append(s)
        try:
            return s.start(expect_fail)
        except RuntimeError:
            s.proc = None               # it has ended, and the test may want just that
            raise

    factory.dir = tmpdir_short
    yield factory
    errors = []
    for s in servers:
        try:
            s.finish()
        except AssertionError as e:
            errors.append(e)
            if s.proc and s.proc.poll() is None:
                s.proc.kill()
                s.proc.wait()
    if errors:
        raise errors[0]


@pytest.fixture
def server(serve):
    """One file disk of 16 MiB with 4 queues, through the page cache."""
    return serve(queues=4, direct='off')


@pytest.fixture
def conn(server):
    """A bare connection: nothing has been sent."""
    return server.connect()


@pytest.fixture
def client(server):
    """Negotiated, with memory; no ring."""
    return server.client()


@pytest.fixture
def ring(client):
    """Ring 0, 128 entries, started."""
    return client.start()


@pytest.fixture
def rng(request):
    """Random numbers with the seed in the report of a failure."""
    seed = int(os.environ.get('RINGSIDE_SEED', '0')) or random.SystemRandom().randrange(1 << 32)
    print('RINGSIDE_SEED=%d' % seed)
    return random.Random(seed)


def loop_device(path, sector=4096):
    """Attach a loop device of the given sector size; None where that is not allowed."""
    r = subprocess.run(['losetup', '-f', '--show', '-b', str(sector), path],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return r.stdout.strip() if r.returncode == 0 else None


@pytest.fixture
def loop4k(tmpdir_short):
    """A loop device with 4096-byte sectors over a 16 MiB file of 0xAA."""
    if os.geteuid() or not shutil.which('losetup'):
        pytest.skip('needs root for a loop device')
    dev = loop_device(make_image(tmpdir_short / 'loop.img', fill=0xAA))
    if not dev:
        pytest.skip('no loop device here')
    yield dev
    subprocess.run(['losetup', '-d', dev], check=False)


def disk_bytes(path, offset, size):
    """What the host sees; the page cache is coherent with the server's writes."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, size, offset)
    finally:
        os.close(fd)

