"""QEMU's conventions for vhost-user back-end programs."""

import json
import os
import socket

import pytest

from conftest import BINARY, ROOT, listening, wait_for


@pytest.mark.parametrize('args', [[], ['--nonsense'], ['--socket-path=s', '--fd=3', 'x']])
def test_capabilities(cli, args):
    """Other options are ignored, and nothing else is done."""
    r = cli.run('vhost-user-blk', *args, '--print-capabilities')
    assert (r.returncode, r.stderr) == (0, '')
    assert json.loads(r.stdout) == {'type': 'block', 'features': ['read-only', 'blk-file']}
    assert cli.files() == {}


@pytest.mark.parametrize('form', ['equals', 'words'])
def test_socket_path(cli, form):
    cli.image('a,b=c.img')
    args = [('--socket-path', cli.dir / 's'), ('--blk-file', cli.dir / 'a,b=c.img')]
    args = ['%s=%s' % a for a in args] if form == 'equals' else [x for a in args for x in a]
    d = cli.start(*args, command='vhost-user-blk').wait_listening(cli.dir / 's')
    assert d.stop() == 0
    assert not (cli.dir / 's').exists()


def test_read_only(cli):
    cli.image().chmod(0o444)
    d = cli.start('--socket-path=%s' % (cli.dir / 's'), '--blk-file=%s' % (cli.dir / 'd.img'),
                  '--read-only', command='vhost-user-blk').wait_listening(cli.dir / 's')
    assert 'read-only' in d.log()
    assert d.stop() == 0


def test_listening_fd(cli):
    """A socket that listens already: clients come and go, and its name is not ours to remove."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(cli.dir / 's'))
        s.listen()
        d = cli.start('--fd=%d' % s.fileno(), '--blk-file=%s' % cli.image(),
                      command='vhost-user-blk', pass_fds=[s.fileno()])
    for _ in range(2):
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(str(cli.dir / 's'))
            wait_for(lambda: 'descriptor' in d.log(), 'the announcement')
            wait_for(lambda: d.stats()['exports'][0]['connected'], 'the client')
        wait_for(lambda: not d.stats()['exports'][0]['connected'], 'its end')
    assert d.stop() == 0
    assert (cli.dir / 's').exists()


def test_connected_fd(cli):
    """A connection: the program ends with its client."""
    ours, theirs = socket.socketpair()
    d = cli.start('--fd=%d' % theirs.fileno(), '--blk-file=%s' % cli.image(),
                  command='vhost-user-blk', pass_fds=[theirs.fileno()])
    theirs.close()
    wait_for(lambda: 'descriptor' in d.log(), 'the announcement')
    # GET_FEATURES, version 1
    ours.sendall((1).to_bytes(4, 'little') + (1).to_bytes(4, 'little') + bytes(4))
    assert len(ours.recv(64)) == 20
    ours.close()
    assert d.wait() == 0


def test_connected_fd_and_signal(cli):
    ours, theirs = socket.socketpair()
    d = cli.start('--fd=%d' % theirs.fileno(), '--blk-file=%s' % cli.image(),
                  command='vhost-user-blk', pass_fds=[theirs.fileno()])
    theirs.close()
    wait_for(lambda: 'descriptor' in d.log(), 'the announcement')
    assert d.stop() == 0
    assert ours.recv(1) == b''


@pytest.mark.parametrize('args,says', [
    ([], '--blk-file'),
    (['--blk-file=d.img'], '--socket-path'),
    (['--socket-path=s'], '--blk-file'),
    (['--socket-path=s', '--blk-file='], '--blk-file'),
    (['--socket-path=', '--blk-file=d.img'], '--socket-path'),
    (['--socket-path=s', '--blk-file=none.img'], 'none.img'),
    (['--socket-path=s', '--blk-file=.'], 'a directory'),
    (['--socket-path=s', '--blk-file=d.img', '--blk-file=d.img'], 'twice'),
    (['--socket-path=s', '--fd=0', '--blk-file=d.img'], '--fd'),
    (['--fd=0', '--blk-file=d.img'], '--fd'),
    (['--fd=777', '--blk-file=d.img'], '777'),
    (['--fd=-1', '--blk-file=d.img'], '--fd'),
    (['--fd=x', '--blk-file=d.img'], '--fd'),
    (['--fd', '--blk-file=d.img'], '--fd'),
    (['--socket-path=s', '--blk-file=d.img', '--readonly'], '--readonly'),
    (['--socket-path=s', '--blk-file=d.img', '--read-only=on'], '--read-only'),
    (['--socket-path=s', '--blk-file=d.img', 'x'], "'x'"),
])
def test_wrong_use(cli, args, says):
    cli.image()
    cli.refused('vhost-user-blk', *args, says=says)


def test_pipe_as_fd(cli):
    cli.image()
    r, w = os.pipe()
    cli.refused('vhost-user-blk', '--fd=%d' % r, '--blk-file=d.img', says='not a Unix',
                pass_fds=[r])
    os.close(r)
    os.close(w)


def test_link_with_the_name_of_the_command(cli):
    """QEMU's descriptor names a program without arguments."""
    link = cli.dir / 'vhost-user-blk'
    link.symlink_to(BINARY)
    d = cli.start('--socket-path=%s' % (cli.dir / 's'), '--blk-file=%s' % cli.image(),
                  program=str(link))
    wait_for(lambda: listening(cli.dir / 's') or d.proc.poll() is not None, 'the socket')
    assert d.stop() == 0


def test_descriptor():
    text = (ROOT / 'share' / 'qemu' / 'vhost-user' / '50-ringside-blk.json.in').read_text()
    j = json.loads(text.replace('@BINARY@', '/usr/libexec/ringside/vhost-user-blk'))
    assert set(j) == {'description', 'type', 'binary'}
    assert j['type'] == 'block'
