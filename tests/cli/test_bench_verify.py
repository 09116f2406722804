"""ringside bench --verify: silent over every engine of ours, and loud when a byte is wrong."""

import subprocess

import pytest

from conftest import BINARY, MIB, disk, wait_for


def target(cli):
    return 'vhost-user-blk:%s' % (cli.dir / 's')


def serve(cli, engine, **keys):
    if engine == 'memory':
        return cli.serve(disk(engine=engine, size='8M', socket=cli.dir / 's'))
    d = disk(path=cli.image(size=8 * MIB), engine=engine, socket=cli.dir / 's', **keys)
    probe = cli.run('serve', d.replace('socket=', 'socket=/none'))
    if 'not offered' in probe.stderr or 'not permitted' in probe.stderr:
        pytest.skip(probe.stderr)
    return cli.serve(d)


@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads', 'memory'])
@pytest.mark.parametrize('rw', ['write', 'randwrite', 'randrw'])
def test_good(cli, engine, rw):
    serve(cli, engine)
    r = cli.run('bench', target(cli), '--verify', '--destroy-data', '--rw', rw, '--bs', '4k,32k',
                '--iodepth', 16, '--jobs', 2, '--count', 5000)
    assert (r.returncode, r.stderr) == (0, '')


def test_again_over_what_an_earlier_run_left(cli):
    serve(cli, 'memory')
    for _ in range(2):
        r = cli.run('bench', target(cli), '--verify', '--destroy-data', '--count', 4000,
                    '--seed', 7)
        assert (r.returncode, r.stderr) == (0, '')


def test_disk_that_forgets(cli):
    cli.serve(disk(engine='null', size='8M', socket=cli.dir / 's'))
    r = cli.run('bench', target(cli), '--verify', '--destroy-data', '--rw', 'write', '--count', 10)
    assert r.returncode == 1
    assert len(r.stderr.splitlines()) == 1 and 'data at byte ' in r.stderr


@pytest.mark.parametrize('change,says', [
    (lambda d: d[:1000] + bytes([d[1000] ^ 4]) + d[1001:], 'torn data at byte 512: generation 1'),
    (lambda d: bytes(len(d)), 'foreign data at byte 0: generation 1'),
    (lambda d: d[512:1024] + d[512:], 'misplaced data at byte 0: generation 1'),
], ids=['flipped', 'zeroed', 'moved'])
def test_changed_under_it(cli, change, says):
    """The first block is written once and then changed behind the server's back; the others are
    being written meanwhile, and the last pass, after opening the target again, finds it."""
    serve(cli, 'threads', direct='off')
    image = cli.dir / 'd.img'
    with subprocess.Popen([BINARY, 'bench', target(cli), '--verify', '--destroy-data', '--rw',
                           'write', '--rate', '300', '--count', '600', '--iodepth', '1'],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        def first_block():
            with open(image, 'rb') as f:
                data = f.read(4096)
            return data if data[3584:3592] == b'Ringside' else None

        data = wait_for(first_block, 'the first block')
        with open(image, 'r+b') as f:
            f.write(change(data))
        out, err = p.communicate(timeout=60)
    assert p.returncode == 1
    assert len(err.splitlines()) == 1 and says in err, err
    assert 'IOPS' in out


def test_size_bounds_it(cli):
    image = cli.image(size=8 * MIB)
    with open(image, 'r+b') as f:
        f.seek(MIB)
        f.write(b'precious')
    cli.serve(disk(path=image, socket=cli.dir / 's'))
    r = cli.run('bench', target(cli), '--verify', '--destroy-data', '--size', '1M', '--count', 2000)
    assert (r.returncode, r.stderr) == (0, '')
    with open(image, 'rb') as f:
        f.seek(MIB)
        assert f.read(8) == b'precious'
