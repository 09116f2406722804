"""Image locks, among us and with QEMU (B59).

The table says what a second user gets while a first one holds the image. What is expected of us is
what QEMU's own virtio-blk device gets, which the tests ask QEMU, too.
"""

import contextlib
import os
import shutil
import signal
import subprocess

import pytest

from conftest import background, disk, wait_for

QEMU = shutil.which('qemu-system-x86_64')
needs_tools = pytest.mark.skipif(not shutil.which('qemu-io') or not shutil.which('qemu-img'),
                                 reason='needs qemu-utils')

# holder -> takers that are let in
TABLE = {
    'rw': {'qemu-io ro', 'qemu-io force-share', 'qemu-img info'},
    'ro': {'ro', 'qemu-io ro', 'qemu-io force-share', 'qemu-img info'},
    'qemu-io rw': {'qemu-io rw', 'qemu-io ro', 'qemu-io force-share', 'qemu-img info',
                   'qemu-img write'},
    'qemu-io ro': {'rw', 'ro', 'qemu-io rw', 'qemu-io ro', 'qemu-io force-share', 'qemu-img info',
                   'qemu-img write'},
    'qemu-io force-share': {'rw', 'ro', 'qemu-io rw', 'qemu-io ro', 'qemu-io force-share',
                            'qemu-img info', 'qemu-img write'},
}
TOOLS = ['qemu-io rw', 'qemu-io ro', 'qemu-io force-share', 'qemu-img info', 'qemu-img write']
TOOL_COMMANDS = {
    'qemu-io rw': ['qemu-io', '-f', 'raw', '-c', 'read 0 512'],
    'qemu-io ro': ['qemu-io', '-f', 'raw', '-r', '-c', 'read 0 512'],
    'qemu-io force-share': ['qemu-io', '-f', 'raw', '-r', '-U', '-c', 'read 0 512'],
    'qemu-img info': ['qemu-img', 'info', '-f', 'raw'],
    'qemu-img write': ['qemu-img', 'bench', '-f', 'raw', '-w', '-c', '1'],
}


def locked(image):
    """Somebody holds a lock on the image."""
    node = ':%d ' % image.stat().st_ino
    with open('/proc/locks') as f:
        return any(node in line for line in f)


@contextlib.contextmanager
def hold(cli, image, who, vm):
    """`who` has the image while the block runs. vm: rw and ro are QEMU's device instead of us."""
    if who.startswith('qemu-io'):
        argv = TOOL_COMMANDS[who][:-2] + [str(image)]
        with background(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL):
            wait_for(lambda: locked(image), 'the lock of ' + who)
            yield
    elif vm:
        with background(vm_command(image, who), stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL):
            wait_for(lambda: locked(image), 'the lock of QEMU')
            yield
    else:
        d = cli.serve(disk(path=image, socket=cli.dir / 'holder',
                           readonly='on' if who == 'ro' else 'off'))
        yield
        assert d.stop() == 0


def vm_command(image, who):
    return [QEMU, '-S', '-nodefaults', '-display', 'none', '-monitor', 'none',
            '-machine', 'q35,accel=tcg', '-m', '64', '-device', 'virtio-blk-pci,drive=f',
            '-blockdev', 'file,node-name=f,filename=%s,read-only=%s' % (
                image, 'on' if who == 'ro' else 'off')]


def take(cli, image, who, vm):
    """Is `who` let in?"""
    if who in TOOL_COMMANDS:
        r = subprocess.run(TOOL_COMMANDS[who] + [str(image)], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=60)
        assert r.returncode == 0 or 'lock' in r.stdout, r.stdout
        return r.returncode == 0
    if vm:
        r = subprocess.run(vm_command(image, who) + ['-qmp', 'stdio'], text=True, timeout=60,
                           input='{"execute": "qmp_capabilities"}{"execute": "quit"}',
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert r.returncode == 0 or 'lock' in r.stdout, r.stdout
        return r.returncode == 0
    args = [disk(path=image, socket=cli.dir / 'taker', readonly='on' if who == 'ro' else 'off')]
    d = cli.start(*args)
    wait_for(lambda: d.proc.poll() is not None or ', socket ' in d.log(), 'the second daemon')
    if d.proc.poll() is None:
        assert d.stop() == 0
        return True
    assert d.proc.returncode == 1
    assert len(d.log().splitlines()) == 1 and 'in use' in d.log(), d.log()
    return False


def table(cli, holder, vm):
    image = cli.image()
    takers = ['rw', 'ro'] + (TOOLS if shutil.which('qemu-io') else [])
    with hold(cli, image, holder, vm):
        got = {who for who in takers if take(cli, image, who, vm)}
    # and nothing stays locked behind them
    assert take(cli, image, 'rw', vm)
    return got


@needs_tools
@pytest.mark.parametrize('holder', TABLE)
def test_ours(cli, holder):
    assert table(cli, holder, vm=False) == TABLE[holder]


@needs_tools
@pytest.mark.skipif(not QEMU, reason='needs qemu-system-x86')
@pytest.mark.parametrize('holder', TABLE)
def test_b59_table_is_that_of_qemu(cli, holder):
    assert table(cli, holder, vm=True) == TABLE[holder]


@pytest.mark.skipif(not QEMU, reason='needs qemu-system-x86')
@pytest.mark.parametrize('mine', ['rw', 'ro'])
@pytest.mark.parametrize('theirs', ['rw', 'ro'])
def test_b59_with_a_virtual_machine(cli, mine, theirs):
    """Ours beside QEMU's device, either first: only two readers go together."""
    image = cli.image()
    with hold(cli, image, theirs, vm=True):
        assert take(cli, image, mine, vm=False) == (mine == theirs == 'ro')
    with hold(cli, image, mine, vm=False):
        assert take(cli, image, theirs, vm=True) == (mine == theirs == 'ro')


def test_b59_killed_holder(cli):
    image = cli.image()
    d = cli.serve(disk(path=image, socket=cli.dir / 's'))
    assert not take(cli, image, 'rw', vm=False)
    d.send(signal.SIGKILL)
    d.wait()
    assert take(cli, image, 'rw', vm=False)


def test_b59_lock_off(cli):
    image = cli.image()
    d = cli.serve(disk(path=image, socket=cli.dir / 's'))
    e = cli.serve(disk(path=image, socket=cli.dir / 't', lock='off'))
    assert e.stop() == 0
    assert not take(cli, image, 'rw', vm=False)
    assert d.stop() == 0
    e = cli.serve(disk(path=image, socket=cli.dir / 't', lock='off'))
    assert take(cli, image, 'rw', vm=False)
    assert e.stop() == 0


def loop_device(image):
    r = subprocess.run(['losetup', '-f', '--show', str(image)], stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL, text=True) if shutil.which('losetup') else None
    return r.stdout.strip() if r and r.returncode == 0 else None


def test_b59_block_device(cli):
    dev = loop_device(cli.image())
    if not dev:
        pytest.skip('no loop device to be had')
    try:
        d = cli.serve(disk(path=dev, socket=cli.dir / 's'))
        assert not take(cli, dev, 'rw', vm=False)
        # another name of the same device
        os.symlink(dev, cli.dir / 'link')
        assert not take(cli, cli.dir / 'link', 'ro', vm=False)
        if shutil.which('qemu-io'):
            assert not take(cli, dev, 'qemu-io rw', vm=False)
            assert take(cli, dev, 'qemu-io ro', vm=False)
        assert d.stop() == 0
        assert take(cli, dev, 'rw', vm=False)
    finally:
        subprocess.run(['losetup', '-d', dev], check=True)
