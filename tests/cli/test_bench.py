"""ringside bench against our own server: what it prints, what it refuses, how it ends.

No test asserts a time or a rate: only counts, keys, and who is compared with whom.
"""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import pytest

from conftest import BINARY, MIB, ROOT, disk, wait_for

OPTIONS = ['rw', 'bs', 'iodepth', 'jobs', 'completion', 'count', 'runtime', 'rate', 'rwmix', 'batch',
           'size', 'seed', 'cpu', 'hugepages', 'repeats', 'verify', 'destroy-data', 'json',
           'report', 'matrix', 'floor', 'help']
NUMBERS = ['iops', 'bytes_per_s', 'mean_ns', 'p50_ns', 'p99_ns', 'p999_ns', 'max_ns',
           'kicks_per_request', 'calls_per_request', 'system_calls_per_request',
           'client_cpu_ns_per_request']
KEYS = NUMBERS + ['target', 'rw', 'bs', 'iodepth', 'jobs', 'completion', 'rate', 'repeats',
                  'server_cpu_ns_per_request', 'errors']


@pytest.fixture
def null(cli):
    """A server of two disks that have no storage."""
    cli.server = cli.serve(disk(engine='null', size='1G', socket=cli.dir / 's'),
                           disk(engine='null', size='1G', socket=cli.dir / 't'))
    return cli


def target(cli, name='s'):
    return 'vhost-user-blk:%s' % (cli.dir / name)


def requests(daemon, export=0):
    return sum(q['requests'] for q in daemon.stats()['exports'][export]['queues'])


def good(cli, *args):
    r = cli.run('bench', *args)
    assert (r.returncode, r.stderr) == (0, '')
    return r.stdout


def points(cli, *args):
    return json.loads(good(cli, '--json', *args))


class Running:
    """A benchmark in the background that has begun: the server has seen requests."""

    def __init__(self, cli, *args, export=0):
        self.proc = subprocess.Popen([BINARY, 'bench'] + [str(a) for a in args], cwd=cli.dir,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
        if export is not None:
            wait_for(lambda: requests(cli.server, export) > 100, 'requests')

    def end(self, sig=None):
        if sig:
            self.proc.send_signal(sig)
        try:
            self.out, self.err = self.proc.communicate(timeout=60)
        finally:
            self.proc.kill()
        return self.proc.returncode


# ---- what it prints

def test_table(null):
    out = good(null, target(null), '--count', 100).splitlines()
    assert out[0] == target(null) + ': randread, 4k, depth 1, hybrid, 1 job, 1 run'
    head, row = out[-2:]
    for word in ('IOPS', 'bandwidth', 'mean', 'p50', 'p99', 'p99.9', 'max', 'client', 'server',
                 'kicks', 'calls', 'syscalls'):
        assert re.search(r'(^| )%s( |$)' % re.escape(word), head), word
    for word in ('ratio', 'errors', 'target', 'depth'):
        assert word not in head
    assert len(head) == len(row)


def test_table_of_a_sweep(null):
    out = good(null, target(null), target(null, 't'), '--count', 50, '--bs', '4k,64k',
               '--iodepth', '1,8', '--completion', 'sleep,poll', '--repeats', 2).splitlines()
    assert out[:2] == ['target 1: ' + target(null), 'target 2: ' + target(null, 't')]
    head = next(i for i, line in enumerate(out) if 'IOPS' in line and 'bandwidth' in line)
    assert out[head].split()[:4] == ['target', 'bs', 'depth', 'completion']
    assert 'ratio' in out[head]
    rows = [line.split()[:4] for line in out[head + 1:]]
    assert len(rows) == 16
    assert rows == [[t, bs, d, c] for bs in ('4k', '64k') for d in ('1', '8')
                    for c in ('sleep', 'poll') for t in ('1', '2')]


def test_json(null):
    p, = points(null, target(null), '--count', 1000, '--iodepth', 4, '--jobs', 2, '--bs', '8k',
                '--completion', 'poll')
    assert set(p) == set(KEYS)
    for key in NUMBERS:
        assert isinstance(p[key], (int, float)) and p[key] >= 0, key
    assert isinstance(p['server_cpu_ns_per_request'], (int, float))
    assert p['rate'] is None
    assert {k: p[k] for k in ('target', 'rw', 'bs', 'iodepth', 'jobs', 'completion', 'errors')} == \
        {'target': target(null), 'rw': 'randread', 'bs': 8192, 'iodepth': 4, 'jobs': 2,
         'completion': 'poll', 'errors': 0}
    assert p['p50_ns'] <= p['p99_ns'] <= p['p999_ns'] <= p['max_ns']
    assert p['bytes_per_s'] == pytest.approx(p['iops'] * 8192, rel=1e-6)


def test_ratios(null):
    p = points(null, target(null), target(null, 't'), '--count', 500)
    assert [x['target'] for x in p] == [target(null), target(null, 't')]
    assert all(set(x) == set(KEYS) | {'ratio', 'ratio_min', 'ratio_max'} for x in p)
    assert (p[0]['ratio'], p[0]['ratio_min'], p[0]['ratio_max']) == (1, 1, 1)
    assert 0 < p[1]['ratio_min'] <= p[1]['ratio'] <= p[1]['ratio_max']
    assert [x['repeats'] for x in p] == [3, 3]


@pytest.mark.parametrize('completion', ['sleep', 'poll', 'hybrid'])
@pytest.mark.parametrize('rw', ['read', 'write', 'randread', 'randwrite', 'randrw', 'flush',
                                'discard'])
def test_patterns_and_completions(null, rw, completion):
    """Every pattern in every way: no error, and nothing is said."""
    r = Running(null, target(null), '--rw', rw, '--count', 1001, '--jobs', 2, '--iodepth', 8,
                '--destroy-data', '--completion', completion, '--json', export=None)
    assert r.end() == 0 and r.err == ''
    p, = json.loads(r.out)
    assert (p['rw'], p['completion'], p['errors']) == (rw, completion, 0)
    assert (p['bytes_per_s'] == 0) == (rw == 'flush')


def test_polling_is_not_called(null):
    p, = points(null, target(null), '--count', 20000, '--completion', 'poll')
    assert p['calls_per_request'] < 0.01


def test_batch(null):
    p, = points(null, target(null), '--count', 3200, '--iodepth', 32, '--batch', 32,
                '--completion', 'sleep')
    assert p['kicks_per_request'] <= 1 / 32


def test_rate(null):
    p, = points(null, target(null), '--rate', 2000, '--count', 400)
    assert (p['rate'], p['iodepth'], p['errors']) == (2000, 128, 0)


def test_runtime(null):
    p, = points(null, target(null), '--runtime', '100ms')
    assert p['iops'] > 0


def test_matrix(null):
    out = good(null, target(null), '--matrix', '--runtime', '10ms')
    rows = re.findall(r'^(read|randread) +(4k|16k|64k|128k) .*[+-]\d+ %', out, re.M)
    assert rows == [(rw, bs) for rw in ('randread', 'read') for bs in ('4k', '16k', '64k', '128k')]
    assert 'run with --destroy-data' in out
    out = good(null, target(null), '--matrix', '--runtime', '10ms', '--destroy-data')
    assert len(re.findall(r'^\w+ +(?:4k|16k|64k|128k) .*[+-]\d+ %', out, re.M)) == 16


def test_floor(null):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip('one processor')
    out = good(null, target(null), '--count', 100, '--floor')
    assert out.startswith('floor: cache line ') and 'mean/line' in out
    p, = points(null, target(null), '--count', 100, '--floor')
    assert set(p['floor']) == {'cache_line_ns', 'eventfd_ns', 'system_call_ns'}
    p, = points(null, '--floor')
    assert list(p) == ['floor']


def test_report(null):
    good(null, target(null), '--count', 100, '--report', null.dir / 'r.html')
    page = (null.dir / 'r.html').read_text()
    assert page.startswith('<!') and 'ringside bench vhost-user-blk:' in page


def test_progress_on_a_terminal(null):
    master, slave = pty.openpty()
    r = subprocess.Popen([BINARY, 'bench', target(null), '--runtime', '1s'], stderr=slave,
                         stdout=subprocess.PIPE, text=True)
    os.close(slave)
    out = r.communicate(timeout=60)[0]
    seen = ''
    while not seen.endswith('\r\x1b[K') or 'IOPS' not in seen:
        try:
            seen += os.read(master, 65536).decode()
        except OSError:  # the other end is closed, and all is read
            break
    os.close(master)
    assert r.returncode == 0 and 'IOPS' in out
    assert re.search(r'\r\x1b\[K\[1/1\] .* IOPS', seen), seen
    assert seen.endswith('\r\x1b[K')


def test_output_that_cannot_be_written(null):
    with open('/dev/full', 'w') as full:
        r = subprocess.run([BINARY, 'bench', target(null), '--count', '10', '--json'], stdout=full,
                           stderr=subprocess.PIPE, text=True, timeout=60)
    assert r.returncode == 1 and len(r.stderr.splitlines()) == 1


# ---- what it refuses

@pytest.mark.parametrize('args,says', [
    ([], 'no target'),
    (['here'], "'here' is not a target"),
    (['nvme:/x'], "'nvme:/x'"),
    (['vhost-user-blk:none'], "'vhost-user-blk:none'"),
    (['vhost-user-blk:none', '--fast'], '--fast'),
    (['vhost-user-blk:none', '--bs', '4K,x'], "--bs: 'x'"),
    (['vhost-user-blk:none', '--verify'], '--destroy-data'),
])
def test_wrong_use(cli, args, says):
    cli.refused('bench', *args, says=says)


@pytest.mark.parametrize('args,says', [
    (['--bs', '1000'], '--bs 1000'),
    (['--size', '2G'], '--size'),
    (['--bs', '1M', '--size', '1M', '--jobs', '2'], 'each of the jobs'),
    (['--report', 'no/such/r.html', '--count', '1'], 'no/such/r.html'),
])
def test_impossible(null, args, says):
    r = null.run('bench', target(null), *args)
    assert r.returncode == 1 and len(r.stderr.splitlines()) == 1
    assert says in r.stderr and r.stderr.startswith('ringside: error: ')


def test_second_target_wrong(null):
    """All targets are looked at before the first is measured."""
    r = null.run('bench', target(null), 'vhost-user-blk:none', '--count', '10')
    assert r.returncode == 1 and 'none' in r.stderr and r.stdout == ''


@pytest.mark.parametrize('where', [0, MIB - 1, 3 * MIB, 4 * MIB - 1])
@pytest.mark.parametrize('rw', ['write', 'randrw', 'discard'])
def test_data_is_not_destroyed(cli, where, rw):
    image = cli.image(size=4 * MIB)
    with open(image, 'r+b') as f:
        f.seek(where)
        f.write(b'x')
    before = image.read_bytes()
    cli.serve(disk(path=image, socket=cli.dir / 's', direct='off'))
    r = cli.run('bench', target(cli), '--rw', rw, '--count', 10)
    assert r.returncode == 1 and r.stdout == ''
    assert 'holds data (at byte %d)' % where in r.stderr and '--destroy-data' in r.stderr
    assert len(r.stderr.splitlines()) == 1
    assert image.read_bytes() == before
    good(cli, target(cli), '--rw', 'read', '--count', 10)
    good(cli, target(cli), '--rw', rw, '--count', 10, '--destroy-data')


def test_read_only(cli):
    cli.serve(disk(path=cli.image(), socket=cli.dir / 's', readonly='on'))
    r = cli.run('bench', target(cli), '--rw', 'write', '--destroy-data')
    assert r.returncode == 1 and 'read-only' in r.stderr
    good(cli, target(cli), '--count', 10)


# ---- how it ends

@pytest.mark.parametrize('completion', ['sleep', 'poll', 'hybrid'])
@pytest.mark.parametrize('depth', [1, 16])
def test_server_is_killed(null, completion, depth):
    r = Running(null, target(null), '--runtime', '100s', '--completion', completion, '--iodepth',
                depth, '--jobs', 2)
    null.server.send(signal.SIGKILL)
    assert r.end() == 1
    assert r.err == "ringside: error: target '%s': its server has gone\n" % target(null)
    assert 'IOPS' in r.out
    null.server.wait()


def test_server_is_killed_in_an_open_loop(null):
    r = Running(null, target(null), '--runtime', '100s', '--rate', 500, '--json')
    null.server.send(signal.SIGKILL)
    assert r.end() == 1 and 'its server has gone' in r.err
    assert len(json.loads(r.out)) == 1
    null.server.wait()


@pytest.mark.parametrize('sig', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('args', [[], ['--rate', '500'], ['--completion', 'poll'],
                                  ['--count', '1000000000000']])
def test_interrupted(null, sig, args):
    """What there is is printed: of the second target nothing."""
    if '--count' not in args:
        args = args + ['--runtime', '100s']
    r = Running(null, target(null), target(null, 't'), '--json', *args)
    # The ramp is not counted; a run in it has nothing to say.
    before = requests(null.server)
    wait_for(lambda: requests(null.server) > before + 200, 'more of them')
    assert r.end(sig) == 0 and r.err == ''
    p = json.loads(r.out)
    assert [x['target'] for x in p] in ([target(null)], [])


def test_interrupted_while_the_server_stands_still(null):
    r = Running(null, target(null), '--runtime', '100s')
    null.server.send(signal.SIGSTOP)
    tasks = list(pathlib.Path('/proc/%d/task' % null.server.proc.pid).iterdir())
    wait_for(lambda: all((t / 'stat').read_text().rsplit(')', 1)[1].split()[0] == 'T'
                         for t in tasks), 'every thread of the server to stand still')
    time.sleep(1)  # the client may be between two requests, and not have run since
    assert r.end(signal.SIGINT) == 1
    assert 'no request completes any more' in r.err
    null.server.send(signal.SIGCONT)


def test_errors_of_requests(cli):
    """A disk that shrinks under the server: what is behind its end fails, is counted, and told."""
    image = cli.image(size=4 * MIB)
    cli.serve(disk(path=image, socket=cli.dir / 's', direct='off'))
    os.truncate(image, MIB)
    r = cli.run('bench', target(cli), '--rw', 'read', '--count', 1024, '--json')
    assert r.returncode == 1
    p, = json.loads(r.stdout)
    assert p['errors'] == 768
    assert '768 requests failed, the first at byte %d' % MIB in r.stderr


# ---- documents

@pytest.mark.parametrize('args', [['help', 'bench'], ['bench', '--help'],
                                  ['bench', '--nonsense', '--help']])
def test_help(cli, args):
    out = cli.run(*args)
    assert (out.returncode, out.stderr) == (0, '')
    for option in OPTIONS:
        assert re.search(r'^  --%s ' % option, out.stdout, re.M), option
    assert max(len(line) for line in out.stdout.splitlines()) <= 100


def test_man_page():
    page = (ROOT / 'man' / 'ringside-bench.1').read_text().replace('\\-', '-')
    for option in OPTIONS:
        assert '--' + option in page, option
    for key in KEYS:
        assert key in page, key
