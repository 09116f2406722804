"""What the program says about itself."""

import re
import subprocess

import pytest

from conftest import BINARY, ROOT

KEYS = ['path', 'socket', 'id', 'engine', 'direct', 'readonly', 'queues', 'block-size', 'serial',
        'discard', 'poll', 'fixed-buffers', 'lock', 'share', 'size']


@pytest.mark.parametrize('args', [['--version'], ['version']])
def test_version(cli, args):
    r = cli.run(*args)
    version = re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text()).group(1)
    assert (r.returncode, r.stdout, r.stderr) == (0, 'ringside %s\n' % version, '')


@pytest.mark.parametrize('args', [['--help'], ['help'], ['-h']])
def test_help(cli, args):
    r = cli.run(*args)
    assert (r.returncode, r.stderr) == (0, '')
    assert 'serve' in r.stdout and 'vhost-user-blk' in r.stdout


@pytest.mark.parametrize('args', [['help', 'serve'], ['serve', '--help'],
                                  ['serve', '--disk', 'nonsense', '--help']])
def test_help_of_serve_names_every_key(cli, args):
    r = cli.run(*args)
    assert (r.returncode, r.stderr) == (0, '')
    for key in KEYS:
        assert re.search(r'^  %s=' % key, r.stdout, re.M), key
    for option in ('--disk', '--iothreads', '--poll'):
        assert option in r.stdout
    assert max(len(line) for line in r.stdout.splitlines()) <= 100


def test_help_of_vhost_user_blk(cli):
    r = cli.run('help', 'vhost-user-blk')
    assert (r.returncode, r.stderr) == (0, '')
    for option in ('--socket-path', '--fd', '--blk-file', '--read-only', '--print-capabilities'):
        assert option in r.stdout


@pytest.mark.parametrize('args', [[], ['sreve'], ['help', 'sreve'], ['--disk'], ['']])
def test_no_such_command(cli, args):
    cli.refused(*args, says='ringside help')


def test_output_that_cannot_be_written(cli):
    with open('/dev/full', 'w') as full:
        r = subprocess.run([BINARY, '--help'], stdout=full, stderr=subprocess.PIPE, text=True)
    assert r.returncode == 1 and len(r.stderr.splitlines()) == 1


def test_man_pages_name_every_key_and_option():
    page = (ROOT / 'man' / 'ringside-serve.1').read_text().replace('\\-', '-')
    for key in KEYS + ['--disk', '--iothreads', '--poll']:
        assert key in page, key
    page = (ROOT / 'man' / 'ringside-vhost-user-blk.1').read_text().replace('\\-', '-')
    for option in ('--socket-path', '--fd', '--blk-file', '--read-only', '--print-capabilities'):
        assert option in page
