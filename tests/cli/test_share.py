"""share=on: one disk, one lock, several sockets."""

import socket

from conftest import disk


def test_one_lock_two_sockets(cli):
    d = cli.serve(disk(path=cli.image(), socket=cli.dir / 's', id='a'),
                  disk(id='a', share='on', socket=cli.dir / 't', queues=2))
    exports = d.stats()['exports']
    assert [e['id'] for e in exports] == ['a', 'a']
    assert [e['path'] for e in exports] == [str(cli.dir / 'd.img')] * 2
    assert [e['socket'] for e in exports] == [str(cli.dir / 's'), str(cli.dir / 't')]
    for name in ('s', 't'):
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(str(cli.dir / name))
    cli.refused('serve', disk(path='d.img', socket='u'), says='in use')
    assert d.stop() == 0
    assert not (cli.dir / 's').exists() and not (cli.dir / 't').exists()


def test_memory_disk(cli):
    d = cli.serve(disk(engine='memory', size='4M', socket=cli.dir / 's', id='a'),
                  disk(id='a', share='on', socket=cli.dir / 't', readonly='on'))
    assert len(d.stats()['exports']) == 2
    assert d.stop() == 0


def test_two_readers_in_one_daemon(cli):
    """Two read-only disks of one image need no share=on; lock=off leaves it to the user."""
    image = cli.image()
    d = cli.serve(disk(path=image, socket=cli.dir / 's', readonly='on'),
                  disk(path=image, socket=cli.dir / 't', readonly='on'))
    assert d.stop() == 0
    d = cli.serve(disk(path=image, socket=cli.dir / 's', lock='off'),
                  disk(path=image, socket=cli.dir / 't', lock='off'))
    assert d.stop() == 0
