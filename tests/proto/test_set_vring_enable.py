"""SET_VRING_ENABLE."""

import struct
import time

import pytest

import rawclient as rc


@pytest.mark.ours
def test_ring_starts_disabled(server, client):
    """With PROTOCOL_FEATURES a kicked ring does nothing until it is enabled."""
    ring = client.start(enable=False)
    ring.blk(rc.T_IN, 0, in_len=512)
    ring.publish()
    ring.kick()
    time.sleep(0.3)
    assert ring.used_idx() == 0
    client.set_vring_enable(0, 1)
    assert ring.wait()[0][1] == 513


@pytest.mark.ours
def test_b04_enable_looks_at_the_ring(server, client):
    """b04: what came while it was disabled is seen, without a kick."""
    ring = client.start(enable=False)
    for i in range(10):
        ring.blk(rc.T_IN, i, in_len=512)
    ring.publish()
    client.set_vring_enable(0, 1)
    ring.wait(10)


@pytest.mark.ours
def test_off_and_on_again(server, client):
    ring = client.start()
    for i in range(20):
        ring.read(0, 512)
        client.set_vring_enable(0, 0)
        ring.blk(rc.T_IN, 0, in_len=512)
        ring.publish()
        ring.kick()
        if i == 0:
            time.sleep(0.2)
            assert ring.used_idx() == ring.last_used
        client.set_vring_enable(0, 1)
        ring.wait()


@pytest.mark.ours
def test_disable_keeps_the_index(server, client):
    ring = client.start()
    for _ in range(5):
        ring.read(0, 512)
    client.set_vring_enable(0, 0)
    client.set_vring_enable(0, 1)
    assert ring.read(0, 512) == bytes(512)
    assert client.get_vring_base(0) == 6


def test_twice(client):
    ring = client.start()
    client.set_vring_enable(0, 1)
    client.set_vring_enable(0, 1)
    assert ring.read(0, 512) == bytes(512)


@pytest.mark.ours
def test_before_everything(server):
    """cloud-hypervisor enables rings before it describes them, QEMU after."""
    c = server.client()
    for i in range(4):
        c.set_vring_enable(i, 1)
    for i in range(4):
        assert c.start(i, enable=False).read(0, 512) == bytes(512)


@pytest.mark.ours
def test_disable_of_a_ring_never_started(client):
    for i in range(4):
        client.set_vring_enable(i, 0)
    assert client.alive()


@pytest.mark.ours
@pytest.mark.parametrize('index', [4, 0x100, 0x10000, 0xFFFFFFFF])
def test_b32_index_is_checked_at_full_width(server, client, index):
    assert client.refused(rc.SET_VRING_ENABLE, struct.pack('<II', index, 1))
    client.close()
    assert server.serves()


@pytest.mark.ours
def test_value_other_than_0_and_1(server, client):
    """Refused, or taken as one of the two."""
    client.refused(rc.SET_VRING_ENABLE, struct.pack('<II', 0, 2))
    client.close()
    assert server.serves()
