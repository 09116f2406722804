#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ringside beside qemu-storage-daemon, in one run on the same work.

    bench/compare.py [--repeats N] [--only driver|policy|sweep|client|guest|idle] [--json FILE]

Comparisons, each interleaved and repeated, because a machine is noisy and only the ratio of
neighbours in time means something:

driver  our own client (`ringside bench`) against both servers, polling and sleeping, null and file
        backends; writes docs/benchmarks.md with pages of plots beside it (compare_driver.py).
policy  what looking costs and gains by the server's --poll, open and closed loop (compare_policy.py).
sweep   depth, block size, queues and iothreads: is there a cliff (compare_sweep.py).
client  qemu-img bench through libblkio (a foreign client that sleeps on its completions), null
        backend, 4 KiB reads, depth 1 and 64; the client on one processor, the server on the other.
guest   a Linux guest with two virtual CPUs and fio, two jobs at depth 32, one iothread, null and
        file backends: I/O, median latency, server CPU, interrupts and kicks a request.
idle    the CPU of a daemon with 64 connected idle disks of four queues, and the memory it holds.

The peer is qemu-storage-daemon 11.1 from tools/chroot.sh. Interrupts are counted by the guest
(/proc/interrupts). Kicks are counted at the server's eventfds: Ringside counts them itself; for
both servers the number of read system calls (/proc/PID/io), which holds them, is printed, too.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tools" / "guest"))
import guest as g  # noqa: E402
import compare_driver  # noqa: E402
import compare_policy  # noqa: E402
import compare_sweep  # noqa: E402

CLOCK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK


def system_calls(pid):
    text = pathlib.Path(f"/proc/{pid}/io").read_text()
    return {key: int(re.search(rf"^{key}: (\d+)", text, re.M).group(1))
            for key in ("syscr", "syscw")}


class Target(g.Server):
    """A server of one disk: ours or the peer, with a null or a file backend."""

    def __init__(self, which, backend, path=None, cpu=None, poll=None):
        super().__init__([g.Disk(path=path or "", num_queues=2)],
                         peer="ringside" if which == "ringside" else "qsd11",
                         wrapper=["taskset", "-c", str(cpu)] if cpu is not None else [])
        self.backend = backend
        self.path = path
        self.poll = poll

    def command(self):
        sock = self.disks[0].socket
        if self.peer == "ringside":
            disk = f"socket={sock},id=d"
            disk += ",engine=null,size=8G" if self.backend == "null" else f",path={self.path}"
            if self.poll:
                disk += f",poll={self.poll}"
            return self.wrapper + [g.RINGSIDE, "serve", "--disk", disk]
        node = {"driver": "null-co", "node-name": "n", "size": 8 << 30}
        if self.backend == "file":
            node = {"driver": "file", "node-name": "n", "filename": self.path, "aio": "io_uring",
                    "cache": {"direct": True}}
        export = {"type": "vhost-user-blk", "id": "e", "node-name": "n", "writable": True,
                  "addr": {"type": "unix", "path": sock}, "num-queues": 2, "iothread": "io0"}
        return self.wrapper + g.qemu11("qemu-storage-daemon") + [
            "--object", "iothread,id=io0", "--blockdev", json.dumps(node),
            "--export", json.dumps(export)]


def queue_sums(server):
    sums = {"requests": 0, "kicks_received": 0, "calls_sent": 0, "calls_suppressed": 0}
    for export in server.stats()["exports"]:
        for queue in export["queues"]:
            for key in sums:
                sums[key] += queue[key]
    return sums


# ---- a foreign client ----

def run_client(which, depth, count):
    with Target(which, "null", cpu=1) as server:
        image = f"driver=virtio-blk-vhost-user,path={server.disks[0].socket},cache.direct=on"
        command = ["taskset", "-c", "0"] + g.qemu11("qemu-img") + [
            "bench", "-t", "none", "-c", str(count), "-d", str(depth), "--image-opts", image]
        before = cpu_seconds(server.pid)
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        seconds = float(re.search(r"in ([0-9.]+) seconds", out).group(1))
        row = {"iops": count / seconds, "latency_us": seconds / count * 1e6 * depth,
               "server_cpu_us": (cpu_seconds(server.pid) - before) / count * 1e6}
        if which == "ringside":
            sums = queue_sums(server)
            row["kicks"] = sums["kicks_received"] / sums["requests"]
            row["calls"] = sums["calls_sent"] / sums["requests"]
        return row


def median(rows, key):
    values = [row[key] for row in rows if key in row]
    return statistics.median(values) if values else None


def text(value, form):
    return format(value, form) if value is not None else "-"


def compare_client(repeats, results):
    print("client: qemu-img bench (libblkio, sleeps on completions), null backend, 4 KiB reads")
    print(f"{'depth':>5} {'server':22} {'IOPS':>10} {'mean us':>8} {'CPU us/req':>10} "
          f"{'kicks/req':>9} {'calls/req':>9}  ratio (spread)")
    for depth, count in ((1, 20000), (64, 500000)):
        rows = {"qemu-storage-daemon": [], "ringside": []}
        for _ in range(repeats):
            for which, list_ in rows.items():
                list_.append(run_client(which, depth, count))
        ratios = [ours["iops"] / theirs["iops"]
                  for ours, theirs in zip(rows["ringside"], rows["qemu-storage-daemon"])]
        for which, list_ in rows.items():
            ratio = ""
            if which == "ringside":
                ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
            print(f"{depth:>5} {which:22} {median(list_, 'iops'):>10,.0f} "
                  f"{median(list_, 'latency_us'):>8.1f} {median(list_, 'server_cpu_us'):>10.2f} "
                  f"{text(median(list_, 'kicks'), '.4f'):>9} "
                  f"{text(median(list_, 'calls'), '.4f'):>9}  {ratio}", flush=True)
        results[f"client depth {depth}"] = {"rows": rows, "ratio": statistics.median(ratios)}


# ---- a guest ----

FIO = """[global]
ioengine=libaio
direct=1
rw=randread
bs=4k
iodepth=32
filename=/dev/vda
runtime={seconds}
time_based=1
group_reporting=1
thread=1
[a]
numjobs=2
"""

SCRIPT = """count() { awk '/virtio0-req/ { for (i = 2; i <= 3; i++) n += $i } END { print n + 0 }' \
    /proc/interrupts; }
cat > /job <<'END'
""" + FIO + """END
echo "@@ready@@"
read_cpu() { cat /proc/uptime; }
i=$(count)
fio --output-format=json --output=/out /job || exit 1
j=$(count)
echo "@@done@@"
echo "interrupts $((j - i))"
cat /out
"""


def run_guest(which, backend, path, seconds):
    with Target(which, backend, path) as server:
        with g.Guest(SCRIPT.replace("{seconds}", str(seconds)), server.disks, cpus=2, fio=True) as vm:
            vm.wait_output("@@ready@@")
            before = cpu_seconds(server.pid), system_calls(server.pid)
            sums = queue_sums(server) if which == "ringside" else None
            vm.wait_output("@@done@@")
            after = cpu_seconds(server.pid), system_calls(server.pid)
            if sums:
                now = queue_sums(server)
                sums = {key: now[key] - sums[key] for key in sums}
            out = vm.finish()
    fio = json.loads(out[out.index("{"):out.rindex("}") + 1])["jobs"][0]["read"]
    requests = fio["total_ios"]
    row = {"iops": fio["iops"],
           "p50_us": fio["clat_ns"]["percentile"]["50.000000"] / 1000,
           "p99_us": fio["clat_ns"]["percentile"]["99.000000"] / 1000,
           "server_cpu_us": (after[0] - before[0]) / requests * 1e6,
           "interrupts": int(re.search(r"interrupts (\d+)", out).group(1)) / requests,
           "reads": (after[1]["syscr"] - before[1]["syscr"]) / requests,
           "writes": (after[1]["syscw"] - before[1]["syscw"]) / requests}
    if sums:
        row["kicks"] = sums["kicks_received"] / requests
        row["calls"] = sums["calls_sent"] / requests
    return row


def compare_guest(repeats, seconds, results):
    folder = g.temp_folder()
    image = str(folder / "image")
    try:
        subprocess.run(["fallocate", "-l", "1G", image], check=True)
        subprocess.run(["dd", "if=/dev/zero", f"of={image}", "bs=1M", "count=1024",
                        "oflag=direct", "conv=notrunc", "status=none"], check=True)
        print("\nguest: 2 virtual CPUs (emulated), fio libaio, 2 jobs x depth 32, 4 KiB random reads")
        print(f"{'backend':>7} {'server':22} {'IOPS':>8} {'p50 us':>8} {'p99 us':>8} "
              f"{'CPU us/req':>10} {'intr/req':>8} {'kicks/req':>9} {'calls/req':>9} "
              f"{'read()/req':>10} {'write()/req':>11}")
        for backend in ("null", "file"):
            rows = {"qemu-storage-daemon": [], "ringside": []}
            for _ in range(repeats):
                for which, list_ in rows.items():
                    list_.append(run_guest(which, backend, image, seconds))
            for which, list_ in rows.items():
                print(f"{backend:>7} {which:22} {median(list_, 'iops'):>8,.0f} "
                      f"{median(list_, 'p50_us'):>8.0f} {median(list_, 'p99_us'):>8.0f} "
                      f"{median(list_, 'server_cpu_us'):>10.2f} "
                      f"{median(list_, 'interrupts'):>8.4f} "
                      f"{text(median(list_, 'kicks'), '.4f'):>9} "
                      f"{text(median(list_, 'calls'), '.4f'):>9} "
                      f"{median(list_, 'reads'):>10.4f} {median(list_, 'writes'):>11.4f}",
                      flush=True)
            results[f"guest {backend}"] = {"rows": rows}
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=False)


# ---- nobody calls ----

def resident_mb(pid):
    """Private memory only: what the client shares is the guest's."""
    text_ = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(re.search(rf"^{key}:\s+(\d+)", text_, re.M).group(1))
               for key in ("Private_Clean", "Private_Dirty")) / 1024


def run_idle(disks, seconds=10):
    sys.path.insert(0, str(TOP / "tests" / "proto"))
    import rawclient as rc  # pylint: disable=import-outside-toplevel
    with g.Server([g.Disk("", engine="null", direct="", readonly="", extra="size=1G",
                          id=f"d{i}") for i in range(disks)], peer="ringside") as server:
        clients = []
        for disk in server.disks:
            client = rc.Client(disk.socket)
            clients.append(client)
            client.setup(mem=rc.default_memory(4 << 20))
            for queue in range(4):
                client.start(queue).read(0, 4096)
        time.sleep(1)
        before = cpu_seconds(server.pid), switches(server.pid)
        time.sleep(seconds)
        row = {"cpu_percent": (cpu_seconds(server.pid) - before[0]) / seconds * 100,
               "switches": switches(server.pid) - before[1],
               "resident_mb": resident_mb(server.pid)}
        for client in clients:
            client.close()
        return row


def switches(pid):
    return sum(int(n) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
               for n in re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text()))


def compare_idle(results):
    print("\nidle: connected disks of four started queues that nobody uses, for 10 s")
    for disks in (1, 64):
        row = run_idle(disks)
        results[f"idle {disks}"] = row
        print(f"  {disks:>2} disks: {row['cpu_percent']:.2f} % of a processor, {row['switches']} "
              f"context switches, {row['resident_mb']:.1f} MiB resident without guest memory",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="of fio in a guest")
    parser.add_argument("--only", choices=("driver", "policy", "sweep", "client", "guest",
                                           "idle"))
    parser.add_argument("--json", help="write every figure to this file")
    args = parser.parse_args()
    if args.only != "idle" and not g.have_qemu11():
        subprocess.run([TOP / "tools" / "chroot.sh"], check=True)
    results = {}
    start = time.monotonic()
    if args.only in (None, "driver"):
        compare_driver.compare(args.repeats, 1, results)
    if args.only in (None, "policy"):
        compare_policy.compare(args.repeats, 2, results)
    if args.only in (None, "sweep"):
        compare_sweep.compare(max(1, args.repeats // 2), results)
    if args.only in (None, "client"):
        compare_client(args.repeats, results)
    if args.only in (None, "guest"):
        compare_guest(max(1, args.repeats // 2), args.seconds, results)
    if args.only in (None, "idle"):
        compare_idle(results)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1))
    print(f"\n{time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    main()
