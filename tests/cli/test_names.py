"""Paths that are hard to write (B60)."""

import json
import stat

import pytest

from conftest import disk

NAMES = ['a,b.img', 'a=b', 'nbd:x', 'a"b', ' lead', 'trail ', "it's", 'ä€', ',', '=', '[x]@{y}',
         'a\\b', 'tab\there', 'new\nline', '{', 'path=x']


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('form', ['list', 'json'])
def test_names(cli, name, form):
    image = cli.image(name)
    sock = cli.dir / ('s' + name)
    if form == 'list':
        args = [disk(path=image, socket=sock)]
    else:
        args = ['--disk', json.dumps({'path': str(image), 'socket': str(sock)})]
    d = cli.start(*args)
    if '\n' in name:
        from conftest import wait_for
        wait_for(sock.exists, 'the socket')
    else:
        d.wait_listening(sock)
    assert stat.S_ISSOCK(sock.lstat().st_mode)
    assert d.stats()['exports'][0]['path'] == str(image)
    assert d.stop() == 0
    assert not sock.exists()


def test_bytes_that_are_no_utf8(cli):
    """Statistics stay JSON."""
    import os
    raw = os.fsencode(cli.dir) + b'/\xff\xfe.img'
    with open(raw, 'wb') as f:
        f.truncate(1 << 20)
    d = cli.serve('--disk=path=%s,socket=%s' % (os.fsdecode(raw), cli.dir / 's'))
    assert d.stats()['exports'][0]['path'].endswith('/??.img')
    assert d.stop() == 0


def test_relative_and_symlink(cli):
    (cli.dir / 'd.img').symlink_to(cli.image('real.img'))
    d = cli.serve(disk(path='../d.img', socket=cli.dir / 's'))
    assert d.stop() == 0
