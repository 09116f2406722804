# SPDX-License-Identifier: Apache-2.0
"""The part `sweep` of compare.py: is there a cliff anywhere?

Our own client against Ringside, null backend: depth 1 to 256 and block size 512 to 1M, polling, and 1
to 8 queues on one and on two iothreads, sleeping, as there may be more of them than processors. A cliff is a step at which throughput (requests, or bytes for
the block sizes) falls below four fifths of the best before it. The plots are in docs/benchmarks-depth.html and
docs/benchmarks-size.html.
"""
import json
import subprocess

import guest as g

DOCS = g.TOP / "docs"
DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
SIZES = ["512", "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k", "1M"]


def bench(iothreads, options, page=None, completion="poll"):
    disk = g.Disk("", engine="null", direct="", readonly="", extra="size=8G")
    words = ["taskset", "-c", "1"] if iothreads == 1 else []
    with g.Server([disk], wrapper=words, peer="ringside",
                  args=["--iothreads", str(iothreads)]) as server:
        out = subprocess.run([g.RINGSIDE, "bench", f"vhost-user-blk:{server.disks[0].socket}",
                              "--completion", completion, "--runtime", "500ms", "--json", *options] +
                             (["--report", str(page)] if page else []),
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)


def show(name, points, key, unit):
    best, cliffs = 0, []
    print(f"\nsweep: {name}")
    for label, point in points:
        value = point[key]
        if value < best * 0.8:
            cliffs.append(label)
        best = max(best, value)
        print(f"  {label:>12} {value / unit[0]:>10.1f} {unit[1]}  p50 {point['p50_ns'] / 1e3:8.2f} us"
              f"  client {point['client_cpu_ns_per_request'] / 1e3:7.2f} us"
              f"  server {point['server_cpu_ns_per_request'] / 1e3:7.2f} us"
              f"  kicks {point['kicks_per_request']:.4f}  calls {point['calls_per_request']:.4f}")
    print("  no cliff" if not cliffs else f"  less than before at {', '.join(map(str, cliffs))}", flush=True)
    return {"points": [[label, point] for label, point in points], "cliffs": cliffs}


def compare(repeats, results):
    many = ["--repeats", str(repeats)]
    depths = bench(1, ["--cpu", "0", "--iodepth", ",".join(map(str, DEPTHS)), *many],
                   DOCS / "benchmarks-depth.html")
    results["sweep depth"] = show("depth, 4 KiB", [(p["iodepth"], p) for p in depths], "iops",
                                  (1e3, "k IOPS"))
    sizes = bench(1, ["--cpu", "0", "--iodepth", "32", "--bs", ",".join(SIZES), *many],
                  DOCS / "benchmarks-size.html")
    results["sweep size"] = show("block size at depth 32", [(p["bs"], p) for p in sizes],
                                 "bytes_per_s", (1e9, "GB/s"))
    for iothreads in (1, 2):
        points = []
        for jobs in (1, 2, 4, 8):
            point, = bench(iothreads, ["--jobs", str(jobs), "--iodepth", "32", *many],
                           completion="sleep")
            points.append((jobs, point))
        results[f"sweep queues on {iothreads}"] = show(
            f"queues at depth 32, {iothreads} iothread(s), client and server share the processors",
            points, "iops", (1e3, "k IOPS"))
