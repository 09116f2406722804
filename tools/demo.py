#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make demo: a Linux guest on a disk that Ringside serves, and what it cost in notifications."""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "guest"))
import guest as g  # noqa: E402

SCRIPT = """set -e
mkdir -p /mnt
echo "guest: $(uname -sr), /dev/vda of $(($(cat /sys/block/vda/size) / 2048)) MiB, serial $(cat /sys/block/vda/serial)"
mkfs.ext4 -q -F /dev/vda
mount -t ext4 /dev/vda /mnt
dd if=/dev/urandom of=/mnt/file bs=1M count=64 2>/dev/null
sha256sum /mnt/file > /mnt/sum
sync
echo 3 > /proc/sys/vm/drop_caches
echo "guest: wrote 64 MiB, read it back: $(sha256sum -c /mnt/sum)"
fio --name=demo --filename=/mnt/file --ioengine=libaio --direct=1 --rw=randrw --bs=4k --iodepth=32 \
    --runtime=5 --time_based=1 --output-format=terse --terse-version=3 > /out
awk -F';' '{ printf "guest: fio, 4 KiB random reads and writes at depth 32: %d reads/s, %d writes/s\\n", $8, $49 }' /out
umount /mnt
"""


def main():
    folder = g.temp_folder()
    try:
        image = folder / "demo.img"
        subprocess.run(["truncate", "-s", "1G", image], check=True)
        with g.Server([g.Disk(image, serial="ringside-demo", id="demo")], peer="ringside") as server:
            print("$ " + " ".join(server.command()), flush=True)
            print("booting a guest (emulated, so give it a few seconds) ...", flush=True)
            with g.Guest(SCRIPT, server.disks, fio=True) as vm:
                for line in vm.finish().splitlines():
                    print("  " + line)
            report(server.stats())
        subprocess.run(["e2fsck", "-f", "-n", image], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        used = image.stat().st_blocks * 512 >> 20
        print(f"host: the image is a clean ext4 file system, {used} MiB of it allocated")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(stats):
    export = stats["exports"][0]
    total = {}
    for queue in export["queues"]:
        for key, value in queue.items():
            if isinstance(value, (int, float)):
                total[key] = total.get(key, 0) + value
    latency = max((q["latency"] for q in export["queues"]), key=lambda l: l["count"])
    n = max(1, total["requests"])
    print(f"ringside ({export['engine']}): {total['requests']} requests, "
          f"{total['bytes'] >> 20} MiB, {total['errors']} errors, {total['merged']} merged; "
          f"median {latency['p50_ns'] / 1000:.0f} us, 99 % within {latency['p99_ns'] / 1000:.0f} us")
    print(f"notifications: {total['kicks_received']} kicks ({total['kicks_received'] / n:.3f} a "
          f"request), {total['calls_sent']} calls ({total['calls_sent'] / n:.3f} a request), "
          f"{total['calls_suppressed']} calls not needed")
    if "--json" in sys.argv:
        print(json.dumps(stats))


if __name__ == "__main__":
    try:
        main()
    except g.Failure as failure:
        sys.exit(f"demo: {failure}")
