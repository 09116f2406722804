# SPDX-License-Identifier: Apache-2.0
"""qemu-img with libblkio's virtio-blk-vhost-user driver: a client that is not ours."""
import os
import subprocess

import pytest

import guest as g
from conftest import need


def run(*words, check=True):
    return subprocess.run(g.qemu11("qemu-img") + [str(w) for w in words], check=check,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)


def exported(server):
    return f"driver=virtio-blk-vhost-user,path={server.disks[0].socket},cache.direct=on"


@pytest.mark.parametrize("engine,direct", [("io_uring", "on"), ("linux-aio", "on"),
                                           ("threads", "off")])
def test_compare_and_convert(folder, engine, direct):
    """What it reads is the file, and what it writes is in the file."""
    need("11.1")
    path, source = folder / "disk.img", folder / "source.img"
    path.write_bytes(os.urandom(24 << 20))
    source.write_bytes(os.urandom(24 << 20))
    raw = f"driver=raw,file.driver=file,file.filename={path},file.locking=off"
    with g.Server([g.Disk(path, engine=engine, direct=direct)]) as server:
        assert "identical" in run("compare", "--image-opts", exported(server), raw).stdout
        run("convert", "-n", "-f", "raw", "--target-image-opts", source, exported(server))
        assert "identical" in run("compare", "--image-opts", exported(server), raw).stdout
    assert path.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("depth", [1, 64])
@pytest.mark.parametrize("write", [False, True])
def test_bench(folder, depth, write):
    """Every request is answered, and few notifications are needed (b55)."""
    need("11.1")
    path = folder / "disk.img"
    path.write_bytes(bytes(16 << 20))
    with g.Server([g.Disk(path)]) as server:
        words = ["-w"] if write else []
        assert "Run completed" in run("bench", "-t", "none", "-c", 3000, "-d", depth, *words,
                                      "--image-opts", exported(server)).stdout
        queue = server.stats()["exports"][0]["queues"][0]
        assert queue["requests"] >= 3000 and queue["errors"] == 0
        if depth == 64:
            assert queue["kicks_received"] < queue["requests"] / 2
