"""ringside bench on file: targets: our engines in the benchmark's own process.

As in test_bench.py nothing is said of times and rates.
"""

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

from conftest import BINARY, MIB, Cli, disk, wait_for

ENGINES = ['auto', 'io_uring', 'linux-aio', 'threads']
NULL = 'file:?engine=null&size=1G'
MEMORY = 'file:?engine=memory&size=8M'


@pytest.fixture
def image():
    """An image of 8 MiB on a disk file system, so that O_DIRECT works."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='rs-', dir=os.environ.get('TMPDIR', '/var/tmp')))
    yield Cli(folder).image(size=8 * MIB)
    shutil.rmtree(folder)


def target(path, **keys):
    return 'file:%s?%s' % (path, '&'.join('%s=%s' % (k.replace('_', '-'), v)
                                          for k, v in keys.items()))


def good(cli, *args):
    r = cli.run('bench', *args)
    if 'io_uring: not permitted' in r.stderr or 'linux-aio: not available' in r.stderr:
        pytest.skip(r.stderr)
    lines = [x for x in r.stderr.splitlines() if 'linux-aio is asynchronous with O_DIRECT' not in x]
    assert (r.returncode, lines) == (0, [])
    return r.stdout


def points(cli, *args):
    return json.loads(good(cli, '--json', *args))


def failed(cli, *args, says):
    """One line, nothing measured."""
    r = cli.run('bench', *args)
    assert (r.returncode, r.stdout, len(r.stderr.splitlines())) == (1, '', 1), r.stderr
    assert r.stderr.startswith('ringside: error: ') and says in r.stderr, r.stderr


# ---- what it prints

@pytest.mark.parametrize('completion', ['sleep', 'poll', 'hybrid'])
@pytest.mark.parametrize('name', [NULL, MEMORY])
def test_without_a_file(cli, name, completion):
    p, = points(cli, name, '--count', 2000, '--iodepth', 8, '--jobs', 2, '--completion',
                completion)
    assert (p['target'], p['errors'], p['completion']) == (name, 0, completion)
    assert p['server_cpu_ns_per_request'] is None
    assert p['client_cpu_ns_per_request'] > 0
    # There is no ring, and so nobody is notified; and such an engine asks nothing of the kernel.
    assert p['kicks_per_request'] == p['calls_per_request'] == 0
    assert p['system_calls_per_request'] == 0


@pytest.mark.parametrize('direct', ['on', 'off'])
@pytest.mark.parametrize('engine', ENGINES)
def test_engines(cli, image, engine, direct):
    name = target(image, engine=engine, direct=direct)
    for completion in 'sleep', 'poll', 'hybrid':
        p, = points(cli, name, '--count', 400, '--iodepth', 16, '--jobs', 2, '--completion',
                    completion)
        assert (p['target'], p['errors'], p['completion']) == (name, 0, completion)
        assert p['server_cpu_ns_per_request'] is None
        assert p['iops'] > 0 and p['bytes_per_s'] == pytest.approx(p['iops'] * 4096, rel=1e-6)
        assert 0 < p['p50_ns'] <= p['max_ns']
        assert p['system_calls_per_request'] > 0
        assert p['kicks_per_request'] == p['calls_per_request'] == 0


@pytest.mark.parametrize('rw', ['read', 'write', 'randread', 'randwrite', 'randrw', 'flush',
                                'discard'])
@pytest.mark.parametrize('engine', ENGINES + ['null', 'memory'])
def test_patterns(cli, image, engine, rw):
    name = target(image, engine=engine) if engine in ENGINES else \
        target('', engine=engine, size='8M')
    p, = points(cli, name, '--rw', rw, '--count', 101, '--jobs', 2, '--iodepth', 4,
                '--destroy-data')
    assert (p['rw'], p['errors']) == (rw, 0)
    assert (p['bytes_per_s'] == 0) == (rw == 'flush')


def test_table(cli):
    """There is no server, and the table does not invent one."""
    out = good(cli, NULL, '--count', 100).splitlines()
    assert out[0].startswith(NULL + ': randread, 4k, depth 1')
    head, row = out[-2:]
    assert re.search(r'\bIOPS\b', head) and re.search(r'\bclient\b', head)
    column = head.index('server') + len('server')
    assert row[:column].endswith(' -')


def test_rate_and_runtime(cli):
    p, = points(cli, NULL, '--rate', 2000, '--count', 200)
    assert (p['rate'], p['errors']) == (2000, 0)
    p, = points(cli, NULL, '--runtime', '50ms')
    assert p['iops'] > 0


def test_report_and_matrix(cli, image):
    good(cli, target(image), '--count', 50, '--report', cli.dir / 'r.html')
    assert target(image).replace('&', '&amp;') in (cli.dir / 'r.html').read_text()
    out = good(cli, NULL, '--matrix', '--runtime', '10ms', '--destroy-data')
    assert len(re.findall(r'^\w+ +(?:4k|16k|64k|128k) .*[+-]\d+ %', out, re.M)) == 16


# ---- beside a server

def test_beside_a_server(cli, image):
    """A ratio to the first target; the server's CPU time only of the one that has a server."""
    cli.serve(disk(engine='null', size='1G', socket=cli.dir / 's'))
    server = 'vhost-user-blk:%s' % (cli.dir / 's')
    names = [server, NULL, target(image, engine='threads')]
    p = points(cli, *names, '--count', 200, '--size', '8M', '--repeats', 2)
    assert [x['target'] for x in p] == names
    assert [x['errors'] for x in p] == [0, 0, 0]
    assert p[0]['ratio'] == 1
    assert all(0 < x['ratio_min'] <= x['ratio'] <= x['ratio_max'] for x in p[1:])
    assert [x['server_cpu_ns_per_request'] is None for x in p] == [False, True, True]
    # Either may be the first.
    p = points(cli, NULL, server, '--count', 200)
    assert (p[0]['ratio'], p[0]['server_cpu_ns_per_request']) == (1, None)
    assert p[1]['ratio'] > 0 and p[1]['server_cpu_ns_per_request'] >= 0
    assert 'ratio' in good(cli, NULL, server, '--count', 50)


def test_engines_side_by_side(cli):
    p = points(cli, NULL, MEMORY, NULL, '--count', 500, '--size', '1M')
    assert [x['target'] for x in p] == [NULL, MEMORY, NULL]
    assert all(x['ratio'] > 0 for x in p)


def test_one_file_with_each_engine(cli, image):
    """In turn: the lock of one is gone before the next is opened."""
    names = [target(image, engine=e) for e in ('threads', 'linux-aio', 'io_uring')]
    p = points(cli, *names, '--count', 100, '--repeats', 2)
    assert [(x['target'], x['errors']) for x in p] == [(n, 0) for n in names]


# ---- verification

@pytest.mark.parametrize('direct', ['on', 'off'])
@pytest.mark.parametrize('rw', ['write', 'randwrite', 'randrw'])
@pytest.mark.parametrize('engine', ENGINES)
def test_verify(cli, image, engine, rw, direct):
    good(cli, target(image, engine=engine, direct=direct), '--verify', '--destroy-data', '--rw',
         rw, '--bs', '4k,32k', '--iodepth', 16, '--jobs', 2, '--count', 1000)


def test_verify_memory(cli):
    good(cli, MEMORY, '--verify', '--destroy-data', '--rw', 'randrw', '--jobs', 2, '--iodepth', 8,
         '--count', 2000)


def test_verify_disk_that_forgets(cli):
    r = cli.run('bench', 'file:?engine=null&size=8M', '--verify', '--destroy-data', '--rw',
                'write', '--count', 10)
    assert r.returncode == 1
    assert len(r.stderr.splitlines()) == 1 and 'data at byte ' in r.stderr


# ---- what it refuses

@pytest.mark.parametrize('engine', ENGINES)
def test_data_is_not_destroyed(cli, image, engine):
    with open(image, 'r+b') as f:
        f.seek(8 * MIB - 1)
        f.write(b'x')
    before = image.read_bytes()
    good(cli, target(image, engine=engine), '--count', 10)
    failed(cli, target(image, engine=engine), '--rw', 'write', '--count', 10,
           says='holds data (at byte %d)' % (8 * MIB - 1))
    assert image.read_bytes() == before
    good(cli, target(image, engine=engine), '--rw', 'write', '--count', 10, '--destroy-data')
    assert image.read_bytes() != before


def test_read_only(cli, image):
    image.chmod(0o400)
    good(cli, target(image, readonly='on'), '--count', 10)
    failed(cli, target(image, readonly='on'), '--rw', 'write', '--destroy-data',
           says='it is read-only')


@pytest.mark.parametrize('name,says', [
    ('file:none.img', "cannot open 'none.img'"),
    ('file:.', 'is a directory'),
    ('file:', 'needs a path'),
    ('file:?engine=null', 'needs a size='),
    ('file:d.img?engine=null&size=1M', 'has no file'),
    ('file:d.img?size=1M', 'takes its size from the file'),
    ('file:d.img?engine=fast', "'fast' is no engine"),
    ('file:d.img?color=red', "there is no option 'color'"),
    ('file:?engine=null&size=1.5G', 'size=1.5G is not a number'),
    ('file:d.img?block-size=1000', 'block-size is 512 or 4096'),
])
def test_wrong_targets(cli, name, says):
    cli.image('d.img')
    failed(cli, name, '--count', 10, says=says)


def test_in_use(cli, image):
    """A daemon serves it: nobody else writes, or measures, what changes."""
    cli.serve(disk(path=image, socket=cli.dir / 's'))
    failed(cli, target(image), '--count', 10, says='is in use')
    cli.daemons[0].stop()
    good(cli, target(image), '--count', 10)


def test_one_file_twice_at_once(cli, image):
    with subprocess.Popen([BINARY, 'bench', target(image), '--runtime', '100s', '--json'],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        try:
            wait_for(lambda: cli.run('bench', target(image), '--count', 1).returncode == 1,
                     'its lock')
            failed(cli, target(image), '--count', 1, says='is in use')
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=60)
        finally:
            p.kill()
    assert (p.returncode, err) == (0, '')
    assert [x['target'] for x in json.loads(out)] in ([target(image)], [])


@pytest.mark.parametrize('completion', ['sleep', 'poll', 'hybrid'])
@pytest.mark.parametrize('engine', ENGINES)
def test_interrupted(cli, image, engine, completion):
    """It ends at once, and what it held is free: closed by a thread that did not use it."""
    name = target(image, engine=engine)
    with subprocess.Popen([BINARY, 'bench', name, '--runtime', '100s', '--iodepth', '32', '--jobs',
                           '2', '--completion', completion, '--json'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        try:
            wait_for(lambda: len(os.listdir('/proc/%d/task' % p.pid)) > 2, 'its threads')
            p.send_signal(signal.SIGTERM)
            out, err = p.communicate(timeout=60)
        finally:
            p.kill()
    if 'not permitted' in err or 'not available' in err:
        pytest.skip(err)
    assert (p.returncode, err) == (0, '')
    assert [x['target'] for x in json.loads(out)] in ([name], [])
    good(cli, name, '--count', 10)


def test_file_that_shrinks(cli, image):
    """What is behind its end fails, is counted, and told."""
    name = target(image, engine='threads', direct='off')
    with subprocess.Popen([BINARY, 'bench', name, '--rw', 'read', '--rate', '500', '--runtime',
                           '100s', '--json'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as p:
        try:
            wait_for(lambda: len(os.listdir('/proc/%d/task' % p.pid)) > 2, 'its threads')
            os.truncate(image, 4096)
            time.sleep(1)
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=60)
        finally:
            p.kill()
    assert p.returncode == 1
    assert 'requests failed, the first at byte ' in err
    assert json.loads(out)[0]['errors'] > 0
