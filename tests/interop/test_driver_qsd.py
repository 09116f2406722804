# SPDX-License-Identifier: Apache-2.0
"""The driver library against qemu-storage-daemon of QEMU 11.1: a server that is not ours.

The library is loaded as another language would load it; what it reads and writes is compared with
the file that the other server serves.
"""
import ctypes as c
import json
import os
import pathlib
import subprocess
import threading

import pytest

import guest as g
from conftest import need

BUILD = pathlib.Path(g.RINGSIDE).parent
MIB = 1 << 20
pytestmark = pytest.mark.skipif(not (BUILD / "src" / "libringside.so").exists(),
                                reason="the library has not been built")


class Options(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t), ("queues", c.c_uint), ("depth", c.c_uint),
                ("max_segments", c.c_uint), ("timeout_ms", c.c_uint), ("hugepages", c.c_bool)]


class Info(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t), ("capacity_bytes", c.c_uint64),
                ("block_bytes", c.c_uint32), ("max_segments", c.c_uint32),
                ("max_transfer_bytes", c.c_uint64), ("max_discard_bytes", c.c_uint64),
                ("max_write_zeroes_bytes", c.c_uint64), ("read_only", c.c_bool),
                ("flush", c.c_bool), ("discard", c.c_bool), ("write_zeroes", c.c_bool),
                ("hugepages", c.c_bool), ("event_idx", c.c_bool), ("indirect", c.c_bool),
                ("queues", c.c_uint), ("depth", c.c_uint), ("server_pid", c.c_int)]


class Completion(c.Structure):
    _fields_ = [("cookie", c.c_void_p), ("result", c.c_int)]


class Iovec(c.Structure):
    _fields_ = [("base", c.c_void_p), ("len", c.c_size_t)]


class Stats(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t)] + [
        (name, c.c_uint64) for name in (
            "requests", "completions", "errors", "bytes", "kicks_sent", "kicks_suppressed",
            "calls_received", "sleeps", "spins_hit", "spins_missed", "system_calls")]


def load():
    lib = c.CDLL(str(BUILD / "src" / "libringside.so"))
    lib.ringside_queue.restype = c.c_void_p
    lib.ringside_tell.restype = c.c_bool
    lib.ringside_arm.restype = c.c_bool
    return lib


class Device:
    """A target, opened; memory is one piece that is lent."""

    def __init__(self, target, queues=1, depth=64, segments=16, memory=4 * MIB):
        self.lib = load()
        self.dev, err = c.c_void_p(), c.create_string_buffer(512)
        options = Options(c.sizeof(Options), queues, depth, segments, 20000, False)
        status = self.lib.ringside_open(target.encode(), c.byref(options), c.byref(self.dev), err)
        assert status == 0, err.value
        base = c.c_void_p()
        assert self.lib.ringside_memory_alloc(self.dev, c.c_size_t(memory), c.byref(base), err) == 0
        self.base = base.value
        self.memory = (c.c_char * memory).from_address(self.base)
        self.queues = [Queue(self, i) for i in range(queues)]

    @property
    def info(self):
        info = Info(c.sizeof(Info))
        self.lib.ringside_info(self.dev, c.byref(info))
        return info

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.ringside_close(self.dev)


class Queue:
    def __init__(self, device, index):
        self.device, self.lib = device, device.lib
        self.q = c.c_void_p(self.lib.ringside_queue(device.dev, index))
        assert self.q

    def put(self, what, *args):
        """One request; `args` as for the function, the cookie last."""
        return getattr(self.lib, "ringside_" + what)(self.q, *args)

    def transfer(self, what, at, offset, length, cookie=0):
        return self.put(what, c.c_uint64(at), c.c_void_p(self.device.base + offset),
                        c.c_size_t(length), c.c_void_p(cookie))

    def vector(self, what, at, parts):
        iov = (Iovec * len(parts))(*[(self.device.base + o, n) for o, n in parts])
        return self.put(what, c.c_uint64(at), iov, len(parts), None)

    def submit(self):
        self.lib.ringside_submit(self.q)

    def collect(self, n, how="wait"):
        """Results of n requests, by cookie."""
        done, results = (Completion * n)(), {}
        while len(results) < n:
            most = n - len(results)
            got = (self.lib.ringside_poll(self.q, done, most) if how == "poll" else
                   getattr(self.lib, "ringside_" + how)(self.q, done, most, most,
                                                        c.c_int64(20 * 10**9)))
            assert got >= 0 and (got or how == "poll"), (how, got)
            results.update((d.cookie or 0, d.result) for d in done[:got])
        return results

    def finish(self):
        self.submit()
        return self.collect(1).popitem()[1]

    def stats(self):
        stats = Stats(c.sizeof(Stats))
        self.lib.ringside_queue_stats(self.q, c.byref(stats))
        return stats


class Peer(g.Server):
    """qemu-storage-daemon 11.1 with one export."""

    def __init__(self, node, **export):
        super().__init__([g.Disk("unused")], peer="qsd11")
        self.node, self.export = node, export

    def command(self):
        export = {"type": "vhost-user-blk", "id": "e", "node-name": "n", "writable": True,
                  "addr": {"type": "unix", "path": self.disks[0].socket}, **self.export}
        return g.qemu11("qemu-storage-daemon") + [
            "--blockdev", json.dumps({"node-name": "n", **self.node}),
            "--export", json.dumps(export)]

    @property
    def target(self):
        return "vhost-user-blk:" + self.disks[0].socket


def null():
    return Peer({"driver": "null-co", "size": 1 << 30, "read-zeroes": True}, **{"num-queues": 4})


def file(path, **export):
    return Peer({"driver": "file", "filename": str(path), "discard": "unmap", "locking": "off"},
                **{"num-queues": 2, **export})


@pytest.fixture
def image(folder):
    path = folder / "disk.img"
    path.write_bytes(os.urandom(8 * MIB))
    return path


@pytest.fixture(autouse=True)
def peer():
    need("11.1")


def test_what_it_is(image):
    with file(image, **{"logical-block-size": 4096}) as server, Device(server.target, 2) as dev:
        info = dev.info
        assert info.capacity_bytes == 8 * MIB and info.block_bytes == 4096
        assert info.queues == 2 and info.server_pid == server.pid
        assert info.flush and info.discard and info.write_zeroes and not info.read_only
        assert info.event_idx and info.indirect


@pytest.mark.parametrize("how", ["wait", "poll", "hybrid"])
@pytest.mark.parametrize("segments", [1, 2, 16])
def test_reads_and_writes_the_file(image, how, segments):
    before = image.read_bytes()
    with file(image) as server, Device(server.target, segments=segments) as dev:
        q = dev.queues[0]
        for i in range(32):
            assert q.transfer("read", i * 65536, i * 65536, 65536, i) == 0
        q.submit()
        assert q.collect(32, how) == dict.fromkeys(range(32), 0)
        assert dev.memory[:2 * MIB] == before[:2 * MIB]
        fresh = os.urandom(MIB)
        dev.memory[:MIB] = fresh
        # Parts that end within a block, the last as long as what is left.
        parts = [(i * 1000, 1000) for i in range(segments - 1)]
        parts.append(((segments - 1) * 1000, MIB - (segments - 1) * 1000))
        assert q.vector("writev", 3 * MIB, parts) == 0
        assert q.finish() == 0
        assert q.put("flush", None) == 0
        assert q.finish() == 0
        assert q.stats().errors == 0
    expected = before[:3 * MIB] + fresh + before[4 * MIB:]
    assert image.read_bytes() == expected


def test_discard_and_zeroes(image):
    before = image.read_bytes()
    with file(image) as server, Device(server.target) as dev:
        q = dev.queues[0]
        for at, what, more in [(MIB, "write_zeroes", (False,)), (2 * MIB, "write_zeroes", (True,)),
                               (3 * MIB, "discard", ())]:
            assert q.put(what, c.c_uint64(at), c.c_uint64(65536), *more, None) == 0
            assert q.finish() == 0
        assert q.put("get_id", c.c_void_p(dev.base), None) == 0
        assert q.finish() == 0
    expected = bytearray(before)
    for at in (MIB, 2 * MIB, 3 * MIB):
        expected[at:at + 65536] = bytes(65536)
    assert image.read_bytes() == expected


def test_read_only(image):
    before = image.read_bytes()
    with file(image, writable=False) as server, Device(server.target) as dev:
        q = dev.queues[0]
        assert dev.info.read_only
        assert q.transfer("write", 0, 0, 512) == -30  # EROFS
        assert q.transfer("read", 512, 0, 512) == 0
        assert q.finish() == 0
        assert dev.memory[:512] == before[512:1024]
    assert image.read_bytes() == before


def test_queues_on_threads(image):
    wrong = []

    def work(q, half):
        for i in range(200):
            if q.transfer("read", half * 4 * MIB + i * 4096, half * MIB + i * 4096, 4096):
                wrong.append((half, i))
            q.submit()
            if q.collect(1, ("wait", "poll", "hybrid")[i % 3]) != {0: 0}:
                wrong.append((half, i))

    with file(image) as server, Device(server.target, 2) as dev:
        threads = [threading.Thread(target=work, args=(dev.queues[i], i)) for i in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        data = image.read_bytes()
        assert not wrong
        for half in range(2):
            at = half * 4 * MIB
            assert dev.memory[half * MIB:half * MIB + 200 * 4096] == data[at:at + 200 * 4096]


def test_batches_over_null():
    """Many requests, more than an index counts to; a batch is one kick at most."""
    with null() as server, Device(server.target, depth=128) as dev:
        q, batches = dev.queues[0], 600
        dev.memory[:4096] = b"x" * 4096
        for _ in range(batches):
            for i in range(128):
                assert q.transfer("read", i * 4096, 0, 4096, i) == 0
            assert q.transfer("read", 0, 0, 4096) == -11  # EAGAIN
            q.submit()
            assert set(q.collect(128, "poll").values()) == {0}
        assert dev.memory[:4096] == bytes(4096)
        stats = q.stats()
        assert stats.requests == stats.completions == batches * 128
        assert stats.kicks_sent <= batches and stats.sleeps == 0


def test_server_is_killed():
    """Each request in flight has its error, and so has what comes later."""
    with null() as server, Device(server.target) as dev:
        q = dev.queues[0]
        assert q.transfer("read", 0, 0, 4096) == 0
        assert q.finish() == 0
        server.kill()
        for i in range(5):
            assert q.transfer("read", 0, 0, 4096, i) == 0
        q.submit()
        assert q.collect(5) == dict.fromkeys(range(5), -107)  # ENOTCONN
        assert q.transfer("read", 0, 0, 4096) == -107


def test_memory_comes_and_goes(image):
    """While the queue runs, as many pieces as the server takes."""
    data, err = image.read_bytes(), c.create_string_buffer(512)
    with file(image) as server, Device(server.target) as dev:
        q, pieces = dev.queues[0], []
        for i in range(16):
            base = c.c_void_p()
            assert dev.lib.ringside_memory_alloc(dev.dev, c.c_size_t(65536), c.byref(base),
                                                 err) == 0, err.value
            pieces.append(base.value)
            assert q.transfer("read", i * 4096, base.value - dev.base, 4096) == 0
            assert q.finish() == 0
            assert c.string_at(base.value, 4096) == data[i * 4096:(i + 1) * 4096]
        for base in pieces:
            assert dev.lib.ringside_memory_free(dev.dev, c.c_void_p(base), err) == 0, err.value
            assert q.transfer("read", 0, base - dev.base, 4096) == -14  # EFAULT
            assert q.transfer("read", 4096, 0, 4096) == 0
            assert q.finish() == 0
            assert dev.memory[:4096] == data[4096:8192]


def test_reconnect(image):
    with file(image) as server:
        for i in range(10):
            with Device(server.target, 1 + i % 2) as dev:
                dev.memory[:512] = bytes([i]) * 512
                assert dev.queues[-1].transfer("write", i * 512, 0, 512) == 0
                assert dev.queues[-1].finish() == 0
    assert image.read_bytes()[:5120] == b"".join(bytes([i]) * 512 for i in range(10))


def run(*words):
    return subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, text=True, timeout=120,
                          stderr=subprocess.STDOUT, check=True).stdout


@pytest.mark.skipif(not (BUILD / "examples" / "minimal").exists(), reason="not built")
def test_minimal_example(image):
    before = image.read_bytes()
    with file(image) as server:
        assert run(BUILD / "examples" / "minimal", server.target).startswith("ok; 2 requests")
    assert image.read_bytes() == b"r" * 512 + before[512:]
    with null() as server:  # it forgets what is written
        words = [str(BUILD / "examples" / "minimal"), server.target]
        r = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
        assert r.returncode == 1 and r.stdout.startswith("NOT what was written")


def bench(server, *words):
    return json.loads(run(g.RINGSIDE, "bench", server.target, "--json", *words))[0]


@pytest.mark.parametrize("completion", ["sleep", "poll", "hybrid"])
def test_bench(image, completion):
    words = ["--completion", completion, "--count", 5000, "--iodepth", 16]
    with null() as server:
        result = bench(server, *words)
        assert result["errors"] == 0 and result["iops"] > 0
        assert result["kicks_per_request"] <= 1
    before = image.read_bytes()
    with file(image) as server:
        assert bench(server, *words)["errors"] == 0
        assert image.read_bytes() == before
        assert bench(server, *words, "--rw", "randrw", "--verify", "--destroy-data")["errors"] == 0
    assert image.read_bytes() != before
