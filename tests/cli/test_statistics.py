"""SIGUSR1: one line of JSON."""

from conftest import disk

EXPORT = {'id', 'path', 'engine', 'socket', 'connected', 'queues'}
IOTHREAD = {'index', 'passes', 'sleeps', 'spin_hits', 'spin_misses', 'time_spun_ns',
            'time_slept_ns'}


def test_shape(cli):
    d = cli.serve(disk(path=cli.image(), socket=cli.dir / 's'),
                  disk(engine='null', size='1M', id='zero', socket=cli.dir / 't'),
                  '--iothreads=3')
    s = d.stats()
    assert set(s) == {'version', 'exports', 'iothreads'}
    assert [set(e) for e in s['exports']] == [EXPORT, EXPORT]
    assert [e['id'] for e in s['exports']] == ['disk1', 'zero']
    assert [e['path'] for e in s['exports']] == [str(cli.dir / 'd.img'), None]
    assert [e['socket'] for e in s['exports']] == [str(cli.dir / 's'), str(cli.dir / 't')]
    assert [e['connected'] for e in s['exports']] == [False, False]
    assert [e['queues'] for e in s['exports']] == [[], []]
    assert [set(t) for t in s['iothreads']] == [IOTHREAD] * 3
    assert [t['index'] for t in s['iothreads']] == [0, 1, 2]
    assert all(isinstance(v, int) for t in s['iothreads'] for v in t.values())
    assert d.stop() == 0


def test_again_and_again(cli):
    d = cli.serve(disk(engine='null', size='1M', socket=cli.dir / 't'))
    for _ in range(50):
        d.stats()
    lines = d.out_path.read_text().splitlines()
    assert len(lines) == 50
    assert d.stop() == 0
