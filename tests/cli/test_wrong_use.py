"""Every wrong use gets one clear line and exit 1, and leaves nothing behind (B60)."""

import os
import socket

import pytest

from conftest import disk

AS_ROOT = os.geteuid() == 0


@pytest.mark.parametrize('args,says', [
    ([], 'no disk'),
    (['x'], "'x'"),
    (['--disk'], '--disk'),
    (['--iothreads', '0'], '--iothreads'),
    (['--poll', 'sometimes'], '--poll'),
    (['--daemonize'], '--daemonize'),
])
def test_options(cli, args, says):
    cli.refused('serve', *args, says=says)


@pytest.mark.parametrize('text,says', [
    ('', 'path'),
    ('path=d.img', 'socket'),
    ('socket=s', 'path'),
    ('path=d.img,socket=s,x=1', "'x'"),
    ('path=d.img,socket=s,path=d.img', 'twice'),
    ('path=d.img,socket=s,', 'comma'),
    ('path=d.img,socket=s,queues=0', 'queues'),
    ('path=d.img,socket=s,queues=1025', 'queues'),
    ('path=d.img,socket=s,block-size=513', 'block-size'),
    ('path=d.img,socket=s,engine=fast', 'engine'),
    ('path=d.img,socket=s,serial=123456789012345678901', 'serial'),
    ('path=d.img,socket=s,direct=maybe', 'direct'),
    ('path=d.img,socket=s,poll=5', 'poll'),
    ('path=d.img,socket=s,size=1M', 'size'),
    ('engine=null,socket=s', 'size'),
    ('engine=null,socket=s,size=1.5G', 'size'),
    ('engine=null,socket=s,size=16E', 'size'),
    ('engine=null,socket=s,size=0', ''),
    ('engine=null,socket=s,size=511', ''),
    ('engine=memory,socket=s,size=4095,block-size=4096', ''),
    ('engine=memory,socket=s,size=8388607T', ''),
    ('id=a,share=on,socket=s', 'id=a'),
    ('{"path": 1, "socket": "s"}', 'path'),
    ('{"path": "d.img"', 'JSON'),
    ('path=d.img,socket=a\nb,x\ny=1', 'unknown key'),
])
def test_keys(cli, text, says):
    cli.image()
    cli.refused('serve', '--disk', text, says=['--disk number 1' if says else '', says])


def test_missing_file(cli):
    cli.refused('serve', disk(path='none.img', socket='s'), says=["'none.img'", 'create it first'])


def test_missing_directory(cli):
    cli.refused('serve', disk(path='no/none.img', socket='s'), says="'no/none.img'")


def test_directory(cli):
    cli.refused('serve', disk(path='.', socket='s'), says=["'.'", 'a directory'])
    cli.refused('serve', disk(path='.', socket='s', readonly='on'), says=["'.'", 'a directory'])


@pytest.mark.parametrize('path', ['/dev/null', '/dev/tty'])
def test_character_device(cli, path):
    cli.refused('serve', disk(path=path, socket='s'), says=[path, 'a character device'])


def test_pipe(cli):
    os.mkfifo(cli.dir / 'p')
    cli.refused('serve', disk(path='p', socket='s'), says=['a pipe'])


@pytest.mark.parametrize('size,block,ok', [
    (0, 512, False), (1, 512, False), (511, 512, False), (512, 512, True), (513, 512, True),
    (4095, 4096, False), (4096, 4096, True), (4097, 4096, True), ((1 << 20) + 1, 4096, True),
])
def test_b45_sizes(cli, size, block, ok):
    """b45: a tail is left out with a warning that tells the bytes; less than a block is refused."""
    cli.image(size=size)
    d = disk(path=cli.dir / 'd.img', socket=cli.dir / 's', block_size=block)
    if not ok:
        cli.refused('serve', d, says="'disk1'")
        return
    warned = [x for x in cli.serve(d).log().splitlines() if 'warning' in x]
    assert len(warned) == (1 if size % block else 0), warned
    if size % block:
        assert str(size % block) in warned[0]


def test_no_permission(cli):
    cli.image().chmod(0o400)
    cli.image('e.img').chmod(0)
    kw = {}
    if AS_ROOT:
        cli.dir.chmod(0o777)
        kw['preexec_fn'] = lambda: os.setresuid(65534, 65534, 65534)
        os.chown(cli.dir / 'd.img', 65534, -1)
        try:
            cli.run('--version', **kw)
        except PermissionError:
            pytest.skip('the program is not for everybody')
    cli.refused('serve', disk(path='d.img', socket='s'), says=['d.img', 'readonly=on'], **kw)
    cli.refused('serve', disk(path='e.img', socket='s', readonly='on'), says='e.img', **kw)


def test_direct_that_cannot_be(cli):
    """proc has no O_DIRECT."""
    cli.refused('serve', disk(path='/proc/self/status', socket='s', readonly='on', direct='on'),
                says=['direct=off'])


def test_second_disk_wrong_first_untouched(cli):
    """All disks are opened before any socket is made."""
    cli.image()
    cli.refused('serve', disk(path='d.img', socket='s1'), disk(path='none.img', socket='s2'),
                says=["'disk2'", 'none.img'])


def test_one_image_twice(cli):
    cli.image()
    os.link(cli.dir / 'd.img', cli.dir / 'e.img')
    cli.refused('serve', disk(path='d.img', socket='s1'), disk(path='e.img', socket='s2'),
                says=['share=on', "'disk1'", "'disk2'"])


def test_one_socket_twice(cli):
    cli.image()
    cli.image('e.img')
    cli.refused('serve', disk(path='d.img', socket='s'), disk(path='e.img', socket='s'), says="'s'")


@pytest.mark.parametrize('path,says', [
    ('no/s', 'no/s'),
    ('x' * 108, 'bytes'),
    ('file', 'file'),
    ('.', '.'),
])
def test_sockets(cli, path, says):
    cli.image()
    (cli.dir / 'file').write_text('precious')
    cli.refused('serve', disk(path='d.img', socket=path), says=says)
    assert (cli.dir / 'file').read_text() == 'precious'


def test_second_socket_wrong_first_removed(cli):
    cli.image()
    cli.image('e.img')
    cli.refused('serve', disk(path='d.img', socket='s1'), disk(path='e.img', socket='no/s2'),
                says='no/s2')


def test_live_socket(cli):
    """A socket that somebody listens on is refused, whoever it is, and is not disturbed."""
    cli.image()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(cli.dir / 's'))
        s.listen()
        cli.refused('serve', disk(path='d.img', socket='s'), says="'s'")
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(str(cli.dir / 's'))


def test_out_of_descriptors(cli):
    """b52: a clear line, not a crash."""
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))

    disks = []
    for i in range(16):
        cli.image('i%d' % i)
        disks.append(disk(path='i%d' % i, socket='s%d' % i))
    cli.refused('serve', *disks, says='open files', preexec_fn=limit)


def test_many_disks_need_more_than_the_soft_limit(cli):
    """b52: the soft limit is raised to the hard one."""
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 4096))

    disks = []
    for i in range(64):
        cli.image('i%d' % i)
        disks.append(disk(path=cli.dir / ('i%d' % i), socket=cli.dir / ('s%d' % i)))
    assert cli.serve(*disks, preexec_fn=limit).stop() == 0
