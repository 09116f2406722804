# SPDX-License-Identifier: Apache-2.0
"""The part `policy` of compare.py: what looking costs and gains, by the server's --poll.

Open loop (exponential gaps, seeded) at three rates, and closed loop at two depths, null backend, a
client that sleeps; a server of each mode in turn, repeatedly. Medians, and ratios of neighbours in
time: adaptive to off in the open loop, adaptive to always in the closed one.
"""
import json
import statistics
import subprocess

import guest as g

MODES = ("off", "adaptive", "always")
WORK = [("100/s", ["--rate", "100"]), ("1,000/s", ["--rate", "1000"]),
        ("10,000/s", ["--rate", "10000"]), ("depth 1", ["--iodepth", "1"]),
        ("depth 32", ["--iodepth", "32"])]


def measure(mode, options, seconds):
    disk = g.Disk("", engine="null", direct="", readonly="", extra=f"size=1G,poll={mode}")
    with g.Server([disk], wrapper=["taskset", "-c", "1"], peer="ringside") as server:
        out = subprocess.run(["taskset", "-c", "0", g.RINGSIDE, "bench",
                              f"vhost-user-blk:{server.disks[0].socket}", "--completion", "sleep",
                              "--runtime", f"{seconds}s", "--json", *options],
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)[0]


def compare(repeats, seconds, results):
    print("\npolicy: --poll off, adaptive, always; null backend, the client sleeps")
    print(f"{'work':10} {'poll':9} {'IOPS':>9} {'p50 us':>8} {'p99 us':>8} {'server CPU us':>13} "
          f"{'kicks':>6} {'calls':>6}  adaptive: median, CPU")
    for name, options in WORK:
        rows = {mode: [] for mode in MODES}
        for _ in range(repeats):
            for mode in MODES:
                rows[mode].append(measure(mode, options, seconds))
        other = "always" if "depth" in name else "off"
        ratios = {key: statistics.median(a[key] / b[key]
                                         for a, b in zip(rows["adaptive"], rows[other]))
                  for key in ("p50_ns", "server_cpu_ns_per_request")}
        for mode in MODES:
            middle = {key: statistics.median(row[key] for row in rows[mode])
                      for key in ("iops", "p50_ns", "p99_ns", "server_cpu_ns_per_request",
                                  "kicks_per_request", "calls_per_request")}
            note = ""
            if mode == "adaptive":
                note = (f"{ratios['p50_ns']:.2f}, {ratios['server_cpu_ns_per_request']:.2f} times "
                        f"those of {other}")
            print(f"{name:10} {mode:9} {middle['iops']:>9,.0f} {middle['p50_ns'] / 1e3:>8.1f} "
                  f"{middle['p99_ns'] / 1e3:>8.1f} "
                  f"{middle['server_cpu_ns_per_request'] / 1e3:>13.2f} "
                  f"{middle['kicks_per_request']:>6.3f} {middle['calls_per_request']:>6.3f}  {note}",
                  flush=True)
        results[f"policy {name}"] = {"rows": rows, "ratios": ratios}
