# SPDX-License-Identifier: Apache-2.0
"""A Linux guest on a disk of ours: file systems, reboots, drivers that come and go."""
import hashlib
import itertools
import os
import re
import subprocess

import pytest

import guest as g
from conftest import need

FULL = os.environ.get("RINGSIDE_FULL") == "1"

# qemu, queues, poll_queues, direct, engine. The short list has every pair of values once.
MATRIX = list(itertools.product(("7.2", "11.1"), (1, 4), (0, 1), ("on", "off"),
                                ("io_uring", "linux-aio"))) if FULL else [
    ("7.2", 1, 0, "on", "io_uring"),
    ("11.1", 4, 1, "off", "io_uring"),
    ("7.2", 4, 1, "on", "linux-aio"),
    ("11.1", 4, 0, "on", "linux-aio"),
    ("7.2", 4, 0, "off", "io_uring"),
    ("11.1", 1, 1, "on", "linux-aio"),
    ("7.2", 1, 1, "off", "linux-aio"),
]

FILES = """set -e
mkdir -p /mnt
mkfs.ext4 -q -F /dev/vda
mount -t ext4 /dev/vda /mnt
i=0
while [ $i -lt 40 ]; do
    dd if=/dev/urandom of=/mnt/f$i bs=$((511 + i * 997)) count=40 2>/dev/null
    i=$((i + 1))
done
sync
echo 3 > /proc/sys/vm/drop_caches
(cd /mnt && sha256sum f*)
umount /mnt
"""


def image(path, size="192M"):
    subprocess.run(["truncate", "-s", size, path], check=True)
    return path


def check_files(path, output, folder):
    """The host finds in the image what the guest says it wrote."""
    subprocess.run(["e2fsck", "-f", "-n", path], check=True, stdout=subprocess.DEVNULL)
    sums = re.findall(r"^([0-9a-f]{64})  (f\d+)$", output, re.M)
    assert len(sums) == 40
    for digest, name in sums:
        out = folder / name
        subprocess.run(["debugfs", "-R", f"dump {name} {out}", path], check=True,
                       stderr=subprocess.DEVNULL)
        assert hashlib.sha256(out.read_bytes()).hexdigest() == digest, name


@pytest.mark.parametrize("qemu,queues,polls,direct,engine", MATRIX)
def test_file_system(folder, qemu, queues, polls, direct, engine):
    need(qemu)
    path = image(folder / "disk.img")
    cpus = max(1, queues // 2)
    disk = g.Disk(path, engine=engine, direct=direct, num_queues=queues + polls)
    with g.Server([disk], args=["--iothreads", "2"]) as server:
        out = g.run_guest(FILES, server.disks, qemu=qemu, cpus=cpus,
                          cmdline=f"virtio_blk.poll_queues={polls}")
        stats = server.stats()["exports"][0]["queues"]
        assert sum(q["bytes"] for q in stats) > 1 << 20
        assert sum(q["errors"] for q in stats) == 0
    check_files(path, out, folder)


def test_b27_ten_reboots_on_one_daemon(folder):
    """b27: firmware and kernel are two drivers, ten times over, one after the other."""
    path = image(folder / "disk.img", "64M")
    script = """set -e
dd if=/dev/vda of=/count bs=512 count=1 2>/dev/null
n=$(tr -d '\\0' < /count); n=$((${n:-0} + 1))
echo "boot $n serial $(cat /sys/block/vda/serial)"
printf '%-512s' "$n" | tr ' ' '\\0' > /count
dd if=/count of=/dev/vda bs=512 count=1 conv=fsync 2>/dev/null
[ $n -ge 10 ] || { sleep 0.2; reboot -f; sleep 100; }
"""
    disk = g.Disk(path, engine="io_uring", serial="ten-times", device="bootindex=1")
    with g.Server([disk]) as server:
        with g.Guest(script, server.disks, may_reboot=True) as vm:
            out = vm.finish()
        for n in range(1, 11):
            assert f"boot {n} serial ten-times" in out
        assert server.alive()
    assert path.read_bytes()[:16].rstrip(b"\0") == b"10"


def test_b27_unbind_and_bind_under_load(folder):
    """b27: the driver of one disk comes and goes while the other disk works."""
    rounds = 100 if FULL else 20
    paths = [image(folder / f"{n}.img", "64M") for n in "ab"]
    script = f"""set -e
(while [ ! -e /stop ]; do dd if=/dev/vdb of=/dev/null bs=64k count=200 iflag=direct 2>/dev/null; done) &
before=$(cat /sys/block/vda/serial /sys/block/vda/size /sys/block/vda/queue/logical_block_size)
dev=$(basename $(readlink -f /sys/block/vda/device))
i=0
while [ $i -lt {rounds} ]; do
    dd if=/dev/vda of=/dev/null bs=4k count=50 2>/dev/null
    echo $dev > /sys/bus/virtio/drivers/virtio_blk/unbind
    echo $dev > /sys/bus/virtio/drivers/virtio_blk/bind
    after=$(cat /sys/block/vda/serial /sys/block/vda/size /sys/block/vda/queue/logical_block_size)
    [ "$before" = "$after" ]
    i=$((i + 1))
done
touch /stop; wait
echo "rounds $i"
"""
    disks = [g.Disk(p, engine=e, serial=s) for p, e, s in
             zip(paths, ("io_uring", "linux-aio"), ("first", "second"))]
    with g.Server(disks) as server:
        assert f"rounds {rounds}" in g.run_guest(script, server.disks, cpus=2)


def test_b44_read_only_disk(folder):
    path = folder / "disk.img"
    path.write_bytes(os.urandom(1 << 20))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.chmod(0o444)
    script = """cat /sys/block/vda/ro
sha256sum /dev/vda
dd if=/dev/zero of=/dev/vda bs=4k count=1 conv=fsync 2>/dev/null && echo wrote
blockdev --flushbufs /dev/vda && echo flushed
"""
    with g.Server([g.Disk(path, readonly="on")]) as server:
        out = g.run_guest(script, server.disks)
    assert out.startswith("1") and digest in out and "flushed" in out and "wrote" not in out
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


def test_b42_discard_frees_space(folder):
    """b42: fstrim, blkdiscard and blkdiscard -z reach the host's file system."""
    path = image(folder / "disk.img", "128M")
    script = """set -e
dd if=/dev/urandom of=/dev/vda bs=1M count=64 conv=fsync 2>/dev/null; echo "@written"; read_go() { sleep 2; }
read_go
/usr/sbin/blkdiscard -o 0 -l 33554432 /dev/vda; echo "@discarded"; sleep 2
dd if=/dev/urandom of=/dev/vda bs=1M count=4 conv=fsync 2>/dev/null
/usr/sbin/blkdiscard -z -o 4096 -l 8192 /dev/vda
dd if=/dev/vda bs=4k skip=1 count=2 iflag=direct 2>/dev/null | tr -d '\\0' | wc -c
mkdir -p /mnt; /usr/sbin/mkfs.ext4 -q -F -E nodiscard /dev/vda; mount -t ext4 /dev/vda /mnt
dd if=/dev/urandom of=/mnt/f bs=1M count=50 2>/dev/null; sync; rm /mnt/f; sync
/usr/sbin/fstrim -v /mnt; umount /mnt
"""
    with g.Server([g.Disk(path)]) as server, g.Guest(script, server.disks) as vm:
        def used():
            return os.stat(path).st_blocks * 512
        vm.wait_output("@written")
        full = used()
        assert full >= 64 << 20
        vm.wait_output("@discarded")
        assert used() <= full - (30 << 20)
        out = vm.finish()
        assert re.search(r"^0$", out, re.M), out
        assert used() < 48 << 20


def test_b34_fewer_processors_than_queues_by_ovmf(folder):
    """b34: one processor, four queues; and the firmware is UEFI."""
    path = image(folder / "disk.img", "64M")
    with g.Server([g.Disk(path, num_queues=4)]) as server:
        out = g.run_guest("dd if=/dev/vda of=/dev/null bs=1M count=8 2>&1; cat /sys/block/vda/size",
                          server.disks, args=["-bios", "/usr/share/ovmf/OVMF.fd"], memory_mb=384)
    assert "131072" in out
