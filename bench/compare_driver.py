# SPDX-License-Identifier: Apache-2.0
"""The part `driver` of compare.py: our own client, `ringside bench`, against both servers.

The client is on processor 0, the servers on processor 1. Both servers are there all the time, and the
client goes from one to the other and back, repeatedly: the ratio of neighbours in time is the result.
Writes docs/benchmarks.md, with the pages of plots beside it.
"""
import datetime
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

import guest as g

DOCS = g.TOP / "docs"
DEPTHS = "1,32"
WAYS = "poll,sleep"
IMAGE_BYTES = 1 << 30

QSD, QSD7 = "qemu-storage-daemon", "qemu-storage-daemon-7.2"
OURS, INPROC = "ringside", "in-process"


def taskset(cpu):
    return ["taskset", "-c", str(cpu)]


class Server(g.Server):
    """One server of one disk on processor 1: a null or a file backend."""

    def __init__(self, which, folder, path=None):
        socket = str(folder / f"{which}.sock")
        super().__init__([g.Disk(path=path or "", socket=socket)], wrapper=taskset(1),
                         peer={QSD: "qsd11", QSD7: "qsd", OURS: "ringside"}[which])
        self.path = path

    def command(self):
        socket = self.disks[0].socket
        if self.peer == "ringside":
            backend = f"path={self.path},engine=io_uring,direct=on" if self.path else \
                "engine=null,size=8G"
            return self.wrapper + [g.RINGSIDE, "serve", "--disk",
                                   f"socket={socket},id=d,readonly=on,{backend}"]
        node = {"driver": "null-co", "node-name": "n", "size": 8 << 30, "read-only": True}
        if self.path:
            node = {"driver": "file", "node-name": "n", "filename": self.path, "aio": "io_uring",
                    "cache": {"direct": True}, "read-only": True}
        export = {"type": "vhost-user-blk", "id": "e", "node-name": "n", "writable": False,
                  "addr": {"type": "unix", "path": socket}, "iothread": "io0"}
        program = g.qemu11("qemu-storage-daemon") if self.peer == "qsd11" else \
            ["qemu-storage-daemon"]
        return self.wrapper + program + [
            "--object", "iothread,id=io0", "--blockdev", json.dumps(node),
            "--export", json.dumps(export)]

    def shown(self):
        """The command as a person would type it, without the ways of this machine."""
        words = self.command()
        if self.peer == "qsd11":
            words = self.wrapper + ["qemu-storage-daemon"] + words[len(self.wrapper) + 2:]
        return shlex.join(words).replace(str(g.TOP) + "/", "")


class Run:
    """One command of `ringside bench`, and what came of it."""

    def __init__(self, targets, repeats, seconds, page):
        self.names = list(targets)
        self.page = page
        self.words = taskset(0) + [g.RINGSIDE, "bench", *targets.values(), "--rw", "randread",
                                   "--bs", "4k", "--iodepth", DEPTHS, "--completion", WAYS,
                                   "--cpu", "0", "--repeats", str(repeats),
                                   "--runtime", f"{seconds}s", "--json", "--report", str(page)]
        self.points = {}

    def shown(self):
        return shlex.join(self.words).replace(str(g.TOP) + "/", "")

    def go(self):
        done = subprocess.run(self.words, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"{self.shown()}\nended with {done.returncode}")
        targets = {}
        for point in json.loads(done.stdout):
            # Targets come in the order in which they were given, each combination once.
            name = self.names[targets.setdefault(point["target"], len(targets))]
            self.points[name, point["iodepth"], point["completion"]] = point
        return self

    def get(self, name, depth, way):
        return self.points.get((name, depth, way))


def measure_floor():
    out = subprocess.run([g.RINGSIDE, "bench", "--floor", "--json"], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)[0]["floor"]


def inproc_target(path):
    """The engine in this process, or None where this build has no file: targets."""
    target = f"file:{path}?engine=io_uring&direct=on&readonly=on"
    done = subprocess.run([g.RINGSIDE, "bench", target, "--count", "1", "--json"], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"driver: no file: target here: {done.stderr.strip()}")
        return None
    return target


def make_image(path):
    subprocess.run(["dd", "if=/dev/urandom", f"of={path}", "bs=1M", "oflag=direct", "status=none",
                    f"count={IMAGE_BYTES >> 20}"], check=True)


# ---- words ----

def micro(ns):
    return f"{ns / 1000:.2f}" if ns is not None else "–"


def kilo(iops):
    return f"{iops / 1000:,.0f}k" if iops >= 10000 else f"{iops:,.0f}"


def ratio(point, first):
    if first or point.get("ratio") is None:
        return "1" if first else "–"
    return f"{point['ratio']:.2f} ({point['ratio_min']:.2f}–{point['ratio_max']:.2f})"


def table(run, floor):
    yield ("| depth | client | server | IOPS | ratio | p50 µs | p99 µs | kicks | calls | client CPU "
           "µs | server CPU µs | cache lines |")
    yield "|" + "---|" * 3 + "---:|" * 9
    line = floor["cache_line_ns"]
    for depth in map(int, DEPTHS.split(",")):
        for way in WAYS.split(","):
            for name in run.names:
                point = run.get(name, depth, way)
                yield (f"| {depth} | {way} | {name} | {kilo(point['iops'])} "
                       f"| {ratio(point, name == run.names[0])} "
                       f"| {micro(point['p50_ns'])} | {micro(point['p99_ns'])} "
                       f"| {point['kicks_per_request']:.3f} | {point['calls_per_request']:.3f} "
                       f"| {micro(point['client_cpu_ns_per_request'])} "
                       f"| {micro(point['server_cpu_ns_per_request'])} "
                       f"| {1e9 / point['iops'] / line:.2f} |")


MEANING = """\
- *client*: what it does while it waits: `poll` looks at the ring and makes no system call, `sleep`
  arms the notification and sleeps in the kernel. The servers decide for themselves (their defaults).
- *IOPS*: requests answered in a second, the median of the repeats.
- *ratio*: IOPS over those of the first server of the table, measured just before or after; the median
  of the repeats, and the smallest and the largest. The machine is noisy; this is the result.
- *p50, p99*: half of the requests, and 99 of 100, took at most so long, from putting a request to
  taking its completion.
- *kicks, calls*: notifications of the server and by the server, for each request. Each costs both
  sides system calls, and a sleeper a context switch.
- *CPU*: processor time of each side for each request, with what it spends looking in vain.
- *cache lines*: the time for each request (1 / IOPS) in round trips of a cache line between the two
  cores. A bare split ring with nothing around it needs about 3 at depth 1.
"""


def criterion(text, value, at_least=None, at_most=None):
    if value is None:
        return f"| {text} | – | not measured |"
    good = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
    aim = f"at least {at_least}" if at_least is not None else f"at most {at_most}"
    return f"| {text} | {value:.2f} | {aim}: {'reached' if good else 'not reached'} |"


def quotient(run, a, b):
    """IOPS of one (name, depth, way) over another's, of the medians."""
    x, y = run.get(*a), run.get(*b)
    return x["iops"] / y["iops"] if x and y else None


def summary(null, file, floor):
    line = floor["cache_line_ns"]

    def of(depth, way):
        return null.get(OURS, depth, way)

    yield "| what | measured | aim |"
    yield "|---|---:|---|"
    yield criterion("null, depth 1, both polling: times qemu-storage-daemon",
                    of(1, "poll")["ratio"], at_least=20)
    yield criterion("null, depth 1, both polling: cache-line round trips for a request",
                    1e9 / of(1, "poll")["iops"] / line, at_most=4)
    yield criterion("null, depth 32, polling: times qemu-storage-daemon",
                    of(32, "poll")["ratio"], at_least=3)
    yield criterion("null, depth 32, polling: requests for each cache-line round trip",
                    of(32, "poll")["iops"] * line / 1e9, at_least=1.25)
    yield criterion("null, depth 1, client sleeping: times qemu-storage-daemon",
                    of(1, "sleep")["ratio"], at_least=2.5)
    yield criterion("file, depth 32, polling: of the engine in-process, polling",
                    quotient(file, (OURS, 32, "poll"), (INPROC, 32, "poll")), at_least=0.97)
    yield criterion("file, depth 1 polled: times the in-process engine that sleeps",
                    quotient(file, (OURS, 1, "poll"), (INPROC, 1, "sleep")), at_least=1.5)
    yield criterion("file, depth 1 polled: of the in-process engine that polls",
                    quotient(file, (OURS, 1, "poll"), (INPROC, 1, "poll")), at_least=0.95)


def machine(page):
    found = re.search(r'<p class="machine">(.*?)</p>', page.read_text(encoding="utf-8"))
    return found.group(1).replace("&#39;", "'").replace("&amp;", "&")


def text_of(null, file, floor, servers, repeats):
    today = datetime.date.today().isoformat()
    yield "# Benchmarks"
    yield ""
    yield (f"Written by `make bench` on {today}: our own client against qemu-storage-daemon 11.1 (and "
           f"7.2) and Ringside in one run, 4 KiB random reads, {repeats} repeats of each, the client on one "
           "processor and the servers on the other. The plots are in "
           "[benchmarks.html](benchmarks.html) (null) and "
           "[benchmarks-file.html](benchmarks-file.html) (file). Another part of `make bench` looks for "
           "cliffs: [benchmarks-depth.html](benchmarks-depth.html) and "
           "[benchmarks-size.html](benchmarks-size.html).")
    yield ""
    yield f"The machine: {machine(null.page)}."
    yield ""
    yield (f"Its floor: a cache-line round trip {floor['cache_line_ns']:.0f} ns, an eventfd round trip "
           f"{floor['eventfd_ns'] / 1000:.1f} µs, an empty system call {floor['system_call_ns']:.0f} "
           "ns.")
    yield ""
    yield "## What is aimed at"
    yield ""
    yield from summary(null, file, floor)
    yield ""
    yield "## Null backend"
    yield ""
    yield "No I/O is done: what remains is the ring, the notifications and the block layer."
    yield ""
    yield from table(null, floor)
    yield ""
    yield "## File, O_DIRECT, io_uring"
    yield ""
    yield "A file of 1 GiB on this machine's disk, the same one for all."
    if INPROC in file.names:
        yield ("*in-process* is Ringside's engine without a server, on the client's processor: what "
               "it costs to serve it to somebody else is the distance.")
    yield ""
    yield from table(file, floor)
    yield ""
    yield "## What the figures mean"
    yield ""
    yield MEANING
    yield "## Commands"
    yield ""
    yield "```sh"
    for server in servers:
        yield server.shown()
    yield null.shown()
    yield file.shown()
    yield "build/ringside bench --floor"
    yield "```"


def compare(repeats, seconds, results, docs=DOCS):
    # Names that can be read on the pages; /tmp may be memory, which has no O_DIRECT.
    folder, image = pathlib.Path("/tmp/ringside-bench"), pathlib.Path("/var/tmp/ringside-bench/image")
    for place in (folder, image.parent):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
    start = time.monotonic()
    try:
        make_image(image)
        floor = measure_floor()
        servers = []
        runs = []
        for path, page in ((None, "benchmarks.html"), (str(image), "benchmarks-file.html")):
            with Server(QSD, folder, path) as qsd, Server(QSD7, folder, path) as qsd7, \
                    Server(OURS, folder, path) as ours:
                servers += [qsd, qsd7, ours]
                targets = {s: f"vhost-user-blk:{folder}/{s}.sock" for s in (QSD, QSD7, OURS)}
                inproc = inproc_target(path) if path else None
                if inproc:
                    targets[INPROC] = inproc
                run = Run(targets, repeats, seconds, docs / page)
                print(f"\ndriver: {run.shown()}", flush=True)
                runs.append(run.go())
                print("\n".join(table(run, floor)), flush=True)
        null, file = runs
        print()
        print("\n".join(summary(null, file, floor)))
        (docs / "benchmarks.md").write_text(
            "\n".join(text_of(null, file, floor, servers, repeats)) + "\n", encoding="utf-8")
        print(f"driver: {docs / 'benchmarks.md'}, {time.monotonic() - start:.0f} s")
        results["driver"] = {"floor": floor,
                             "null": list(null.points.values()), "file": list(file.points.values())}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(image.parent, ignore_errors=True)
