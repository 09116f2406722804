# SPDX-License-Identifier: Apache-2.0
"""What `make install` puts where others build on it: library, header, pkg-config file, pages."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import BINARY, ROOT, disk

BUILD = pathlib.Path(BINARY).parent
NO_LIBRARY = ('liburing', 'libaio', 'libjansson', 'libcmocka')

if os.environ.get('RINGSIDE_SANITIZED'):
    pytest.skip('a library with a sanitizer is not for others', allow_module_level=True)
if not (BUILD / 'build.ninja').exists():
    pytest.skip('%s is not where meson builds' % BUILD, allow_module_level=True)


def run(*words, **kw):
    r = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=300, check=False, **kw)
    assert r.returncode == 0, r.stdout
    return r.stdout


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """The installed tree, and the environment in which its pkg-config file is found."""
    tree = tmp_path_factory.mktemp('installed')
    run('meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', tree, '--quiet')
    found = list(tree.rglob('ringside.pc'))
    assert len(found) == 1, found
    env = dict(os.environ, PKG_CONFIG_PATH=str(found[0].parent),
               PKG_CONFIG_SYSROOT_DIR=str(tree), LC_ALL='C')
    return tree, env


def one(tree, name):
    found = [p for p in tree.rglob(name) if not p.is_symlink()]
    assert len(found) == 1, (name, found)
    return found[0]


def flags(env, *words):
    return run('pkg-config', *words, 'ringside', env=env).split()


def library_path(tree):
    return str(one(tree, 'libringside.so.*').parent)


def test_version(installed):
    _, env = installed
    version = re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text()).group(1)
    assert run('pkg-config', '--modversion', 'ringside', env=env).strip() == version
    assert 'lringside' in run('pkg-config', '--libs', 'ringside', env=env)


def test_example_is_built_as_it_says(installed, cli):
    """With nothing but pkg-config, and without a warning; then it is run."""
    tree, env = installed
    example, out = ROOT / 'examples' / 'minimal.c', cli.dir / 'minimal'
    assert len(example.read_text().splitlines()) < 60
    run('cc', '-std=c99', '-Wall', '-Wextra', '-Wpedantic', '-Werror', example, '-o', out,
        *flags(env, '--cflags', '--libs'), env=env)
    socket = cli.dir / 's'
    cli.serve(disk(engine='memory', size='1M', socket=socket))
    env = dict(env, LD_LIBRARY_PATH=library_path(tree))
    printed = run(out, 'vhost-user-blk:%s' % socket, env=env)
    assert re.fullmatch(r'ok; 2 requests, [012] kicks, \d+ calls\n', printed)
    # And when it cannot: one line, and the exit status.
    for words, says in [(['vhost-user-blk:/nowhere'], '/nowhere'), (['x'], 'SCHEME:PATH'),
                        ([], 'usage')]:
        r = subprocess.run([out] + words, env=env, stderr=subprocess.PIPE, text=True, check=False,
                           timeout=60)
        assert r.returncode == 1 and says in r.stderr and len(r.stderr.splitlines()) == 1


def test_example_of_the_build(cli):
    minimal = BUILD / 'examples' / 'minimal'
    if not minimal.exists():
        pytest.skip('not built')
    socket = cli.dir / 's'
    cli.serve(disk(engine='memory', size='1M', block_size=4096, socket=socket))
    assert run(minimal, 'vhost-user-blk:%s' % socket).startswith('ok; 2 requests')


@pytest.mark.parametrize('compiler,options', [
    ('cc', ['-x', 'c', '-std=c99']), ('cc', ['-x', 'c', '-std=gnu17']),
    ('clang', ['-x', 'c', '-std=c11']),
    ('g++', ['-x', 'c++', '-std=c++11']), ('g++', ['-x', 'c++', '-std=c++20']),
    ('clang++', ['-x', 'c++', '-std=c++17'])])
def test_header_in_every_language(installed, cli, compiler, options):
    """It needs nothing before it, and is linked by C++ as C."""
    if not shutil.which(compiler):
        pytest.skip('%s is not there' % compiler)
    tree, env = installed
    source, out = cli.dir / 'use.source', cli.dir / 'use'
    source.write_text('#include <ringside/driver.h>\n'
                      'int main(void)\n{\n'
                      '\tstruct ringside_options o = RINGSIDE_OPTIONS_INIT;\n'
                      '\tstruct ringside_device *dev;\n\tstruct ringside_error err;\n'
                      '\tif (ringside_open("file", &o, &dev, &err) == 0)\n\t\treturn 1;\n'
                      '\tringside_close(dev);\n\treturn err.text[0] == 0;\n}\n')
    # A designated initializer is an extension before C++20, and no more than that.
    more = ['-Wno-missing-field-initializers'] + (
        [] if options[1] == 'c' else ['-Wno-pedantic', '-Wno-c++20-designator'])
    run(compiler, *options, '-Wall', '-Wextra', '-Werror', *more, source, '-x', 'none', '-o', out,
        *flags(env, '--cflags', '--libs'), env=env)
    run(out, env=dict(env, LD_LIBRARY_PATH=library_path(tree)))


def declared(header):
    """Names of the functions of the public header."""
    text = re.sub(r'/\*.*?\*/', '', header.read_text(), flags=re.S)
    return set(re.findall(r'RINGSIDE_API[^;(]*?\b(ringside_\w+)\(', text))


def exported(library):
    lines = run('nm', '-D', '--defined-only', library).splitlines()
    return {line.split()[-1].split('@')[0] for line in lines if ' A ' not in line}


def test_exports_are_the_header(installed):
    """Every function that the header declares, and not one name more."""
    tree, _ = installed
    names = declared(one(tree, 'driver.h'))
    assert len(names) > 20
    assert exported(one(tree, 'libringside.so.*')) == names


def test_needs_little(installed):
    """A program that talks to a server needs none of what serves."""
    tree, _ = installed
    library = one(tree, 'libringside.so.*')
    needed = re.findall(r'\(NEEDED\).*\[(.*)\]', run('readelf', '-d', library))
    assert needed and not [n for n in needed if n.startswith(NO_LIBRARY)], needed
    soname = re.search(r'\(SONAME\).*\[(.*)\]', run('readelf', '-d', library)).group(1)
    assert soname == 'libringside.so.0'
    assert (library.parent / soname).exists() and (library.parent / 'libringside.so').exists()
    # Nothing is wanted that is not there.
    assert 'undefined symbol' not in run('ldd', '-r', library)
    assert library.stat().st_size < 2 << 20


def test_stack_and_writable_code(installed):
    """No executable stack, and no text that is relocated."""
    tree, _ = installed
    out = run('readelf', '-dlW', one(tree, 'libringside.so.*'))
    assert 'TEXTREL' not in out
    assert re.search(r'GNU_STACK.*\bRW\b', out)


def test_pages(installed):
    """Each function has a page, which leads to the library's, and there it is described."""
    tree, env = installed
    pages = {p.name: p for p in tree.rglob('*.3')}
    page = pages.pop('ringside_driver.3')
    text = page.read_text()
    names = declared(one(tree, 'driver.h'))
    assert set(pages) == {name + '.3' for name in names}
    for name in names:
        assert pages[name + '.3'].read_text() == '.so man3/ringside_driver.3\n'
        # In the synopsis, and once more.
        assert len(re.findall(r'\b%s\b' % name, text)) >= 2, name
    for error in re.findall(r'-(E[A-Z]+)\b', one(tree, 'driver.h').read_text()):
        assert error in text, error
    if shutil.which('man'):
        r = subprocess.run(['man', '--warnings', '-l', page], env=dict(env, LC_ALL='C.UTF-8'),
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           check=False, timeout=60)
        assert (r.returncode, r.stderr) == (0, '')
