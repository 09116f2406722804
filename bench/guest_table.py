#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The gain of polled completions, from a real Linux guest.

    bench/guest_table.py [--seconds N] [--json FILE]

Four patterns and four block sizes, fio io_uring (one request at a time in each of two jobs), with and
without hipri, in one guest with one ordinary and one polled queue (virtio_blk.poll_queues=1), on the
memory engine. The guest is emulated: the notifications and the gain say something, the absolute
figures do not. (pvsync2 would not do: since Linux 5.19 a synchronous read or write is never polled.)
Kicks and calls are counted by the server.
"""
import argparse
import json
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tools" / "guest"))
import guest as g  # noqa: E402

PATTERNS = ("randread", "randwrite", "read", "write")
SIZES = ("4k", "16k", "64k", "128k")

SCRIPT = """run() {{ # HIPRI
    for rw in {patterns}; do
        for bs in {sizes}; do
            fio --name=x --ioengine=io_uring --iodepth=1 --hipri=$1 --direct=1 --rw=$rw --bs=$bs --numjobs=2 \
                --thread --filename=/dev/vda --size=64M --time_based=1 --runtime={seconds} \
                --group_reporting --output-format=json --output=/out || exit 1
            echo "@@result $1 $rw $bs@@"
            cat /out
            echo "@@end@@"
        done
    done
}}
echo "poll queues: $(dmesg | grep -o '[0-9]*/[0-9]*/[0-9]* default/read/poll queues' | head -n 1)"
echo "@@sleep@@"
run 0
echo "@@poll@@"
run 1
echo "@@done@@"
"""


def sums(server):
    total = {"requests": 0, "kicks_received": 0, "calls_sent": 0}
    for export in server.stats()["exports"]:
        for queue in export["queues"]:
            for key in total:
                total[key] += queue[key]
    return total


def measure(seconds):
    script = SCRIPT.format(patterns=" ".join(PATTERNS), sizes=" ".join(SIZES), seconds=seconds)
    disk = g.Disk("", engine="memory", direct="", readonly="", extra="size=128M", num_queues=2)
    with g.Server([disk], peer="ringside") as server:
        with g.Guest(script, server.disks, cpus=2, fio=True,
                     cmdline="virtio_blk.poll_queues=1") as vm:
            marks = []
            for mark in ("@@sleep@@", "@@poll@@", "@@done@@"):
                vm.wait_output(mark)
                marks.append(sums(server))
            out = vm.finish()
    return out, [{key: after[key] - before[key] for key in after}
                 for before, after in zip(marks, marks[1:])]


def results(out):
    found = {}
    for part in out.split("@@result ")[1:]:
        head, rest = part.split("@@", 1)
        hipri, rw, size = head.split()
        text = rest.split("@@end@@", 1)[0]
        job = json.loads(text[text.index("{"):text.rindex("}") + 1])["jobs"][0]
        found[hipri, rw, size] = job["write" if "write" in rw else "read"]["iops"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=int, default=2, help="of fio for each figure")
    parser.add_argument("--json", help="write every figure to this file")
    args = parser.parse_args()
    out, notifications = measure(args.seconds)
    found = results(out)
    print(out.splitlines()[0])
    print("IOPS without and with polled completions, in a guest with two emulated processors")
    print(f"{'':10}" + "".join(f"{size:>26}" for size in SIZES))
    for rw in PATTERNS:
        cells = []
        for size in SIZES:
            without, with_ = found["0", rw, size], found["1", rw, size]
            cells.append(f"{without:>9,.0f} {with_:>8,.0f} {(with_ / without - 1) * 100:>+6.0f}%")
        print(f"{rw:10}" + "".join(f"{cell:>26}" for cell in cells))
    for name, n in zip(("without", "with"), notifications):
        print(f"{name:8}: {n['requests']} requests, {n['kicks_received'] / n['requests']:.4f} kicks "
              f"and {n['calls_sent'] / n['requests']:.4f} calls a request")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(
            {"iops": {" ".join(key): value for key, value in found.items()},
             "notifications": notifications}, indent=1))


if __name__ == "__main__":
    main()
