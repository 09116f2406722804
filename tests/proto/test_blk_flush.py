"""FLUSH, and when writes are stable (fault B43)."""

import os
import re
import shutil
import subprocess

import pytest

import rawclient as rc


def test_flush(ring):
    ring.write(0, b'x' * 512)
    ring.flush()


def test_flush_with_a_sector(ring):
    """The sector of a flush means nothing (old drivers leave it set)."""
    req = ring.do(rc.T_FLUSH, sector=0)
    assert req.status == rc.S_OK


@pytest.mark.ours
def test_flush_ignores_the_sector(ring):
    assert ring.do(rc.T_FLUSH, sector=1 << 60).status == rc.S_OK


def test_many_flushes_between_writes(ring):
    reqs = []
    for i in range(20):
        reqs.append(ring.blk(rc.T_OUT, i, out=bytes(512)))
        reqs.append(ring.blk(rc.T_FLUSH))
    ring.submit()
    assert all(n == 1 for _, n in ring.wait(40))
    assert all(r.peek_status() == rc.S_OK for r in reqs)


def can_trace():
    if not shutil.which('strace'):
        return False
    return subprocess.run(['strace', '-o', '/dev/null', 'true'],
                          stderr=subprocess.DEVNULL).returncode == 0


SYNC = re.compile(r'\b(fdatasync|fsync)\(|\bpwritev2\(.*RWF_D?SYNC|sync_file_range')
REAL = re.compile(r'\b(fdatasync|fsync)\(\d+\)? *(=|<unfinished|\) *=)|pwritev2\(.*RWF_D?SYNC')


@pytest.fixture
def traced(serve):
    """A server under strace (threads engine: every request is a system call of its own)."""
    if not can_trace():
        pytest.skip('cannot trace here')
    trace = serve.dir / 'trace'

    def make(**kw):
        s = serve(queues=1, engine='threads', direct='off',
                  wrapper=['strace', '-f', '-qq', '-o', str(trace), '-e',
                           'trace=fdatasync,fsync,sync_file_range,pwritev2,pwrite64,pwritev,'
                           'fallocate,ftruncate'],
                  env={'ASAN_OPTIONS': 'detect_leaks=0'},   # it does not work under ptrace
                  **kw)

        def syncs():
            return sum(bool(REAL.search(x)) for x in trace.read_text().splitlines())
        s.syncs = syncs
        s.trace = trace
        return s
    return make


@pytest.mark.ours
def test_b43_flush_is_an_fdatasync(traced):
    """b43: one that starts after the write before it and ends before the used entry."""
    s = traced()
    ring = s.client().start()
    for i in range(3):
        ring.write(i, os.urandom(512))
        n = s.syncs()
        ring.flush()
        assert s.syncs() >= n + 1, s.trace.read_text()
    lines = [x for x in s.trace.read_text().splitlines()
             if 'pwrite' in x or REAL.search(x)]
    kinds = ['w' if 'pwrite' in x and not REAL.search(x) else 's' for x in lines]
    assert re.fullmatch('(w+s+){3,}', ''.join(kinds)), lines


@pytest.mark.ours
def test_b43_writes_without_a_flush_are_not_synced(traced):
    s = traced()
    ring = s.client().start()
    for i in range(10):
        ring.write(i, bytes(512))
    assert s.syncs() == 0


@pytest.mark.ours
@pytest.mark.parametrize('how', ['no FLUSH', 'writeback off'])
def test_b43_writethrough(traced, how):
    """b43: FLUSH not negotiated, or writeback=0: each write is stable when it is answered."""
    s = traced()
    if how == 'no FLUSH':
        c = s.client(without=rc.F_FLUSH | rc.F_CONFIG_WCE)
    else:
        c = s.client()
        c.set_config(32, b'\0')
    ring = c.start()
    for i in range(5):
        n = s.syncs()
        ring.write(i, bytes(512))
        assert s.syncs() >= n + 1, s.trace.read_text()


@pytest.mark.ours
def test_b43_writethrough_zeroes(traced):
    """b43: WRITE_ZEROES is a write: stable too."""
    s = traced()
    c = s.client()
    c.set_config(32, b'\0')
    ring = c.start()
    n = s.syncs()
    req = ring.do(rc.T_WRITE_ZEROES, out=rc.struct.pack('<QII', 0, 8, 0))
    assert req.status == rc.S_OK
    assert s.syncs() >= n + 1, s.trace.read_text()


@pytest.mark.ours
@pytest.mark.parametrize('engine', ['io_uring', 'linux-aio', 'threads', 'null', 'memory'])
def test_every_engine_flushes(serve, engine):
    s = serve(engine=engine, **({'size': '1M'} if engine in ('null', 'memory') else {}))
    ring = s.client().start()
    ring.write(0, b'x' * 4096)
    ring.flush()
