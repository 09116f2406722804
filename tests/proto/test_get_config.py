"""GET_CONFIG: the fields, and the sizes and offsets that front-ends ask for."""

import struct

import pytest

import rawclient as rc


def test_fields(server, client):
    cfg = client.config()
    assert cfg.capacity == 16 * 2048
    assert cfg.blk_size == 512
    assert cfg.num_queues == 4
    assert cfg.seg_max == 126
    assert cfg.max_discard_sectors and cfg.max_discard_seg
    assert cfg.max_write_zeroes_sectors and cfg.max_write_zeroes_seg


@pytest.mark.ours
def test_writeback_is_told(client):
    assert client.config().writeback == 1


@pytest.mark.ours
def test_block_size_4096(serve):
    c = serve(block_size=4096).client()
    cfg = c.config()
    assert cfg.blk_size == 4096
    assert cfg.capacity == 16 * 2048        # always in 512-byte sectors
    ring = c.start()
    assert ring.read(8, 4096) == bytes(4096)


@pytest.mark.ours
def test_topology_of_a_4k_device(serve, loop4k):
    c = serve(path=loop4k, block_size=512, direct='on').client()
    cfg = c.config()
    assert cfg.blk_size << cfg.physical_block_exp == 4096
    assert cfg.alignment_offset == 0


@pytest.mark.parametrize('size', [8, 36, 60])
def test_b31_prefixes(client, size):
    """b31: QEMU asks for a prefix that depends on the features; the answer has that size."""
    assert client.get_config_bytes(0, size) == client.get_config_bytes(0, 60)[:size]


@pytest.mark.ours
@pytest.mark.parametrize('size', [1, 64, 256])
def test_b31_other_sizes(client, size):
    """b31: beyond our fields there are zeroes."""
    whole = client.get_config_bytes(0, 60)
    assert client.get_config_bytes(0, size) == (whole + bytes(256))[:size]


@pytest.mark.ours
def test_b31_cloud_hypervisor_offset(client):
    """b31: Cloud Hypervisor asks at offset 0x100 for the whole."""
    assert client.get_config_bytes(0x100, 60) == client.get_config_bytes(0, 60)


@pytest.mark.ours
@pytest.mark.parametrize('offset,size', [(8, 8), (20, 4), (32, 1), (34, 2), (59, 1)])
def test_b31_inner_fields(client, offset, size):
    assert client.get_config_bytes(offset, size) == \
        client.get_config_bytes(0, 60)[offset:offset + size]


@pytest.mark.ours
@pytest.mark.parametrize('offset,size', [(0, 257), (0, 4096), (0xFFFFFFFF, 2), (0xFFFFFFF0, 60),
                                         (0x80000000, 60)])
def test_b31_out_of_bounds(server, client, offset, size):
    """b31: an error is an empty payload or the end of the connection; never memory of ours."""
    try:
        msg = client.get(rc.GET_CONFIG, struct.pack('<III', offset, size, 0) + bytes(size))
        assert len(msg.payload) == 0 or not any(msg.payload[12:])
    except rc.Closed:
        pass
    client.close()
    assert server.serves()


@pytest.mark.ours
def test_size_field_beyond_the_payload(server, client):
    """The size in the payload says 60, the message ends before."""
    client.send(rc.GET_CONFIG, struct.pack('<III', 0, 60, 0) + bytes(8))
    try:
        msg = client.recv()
        assert len(msg.payload) in (0, 72)
    except rc.Closed:
        pass
    client.close()
    assert server.serves()


@pytest.mark.ours
def test_header_only_request(server, client):
    """Some front-ends send the 12 bytes without room for the answer, others are malformed."""
    client.send(rc.GET_CONFIG, struct.pack('<II', 0, 60))
    try:
        assert len(client.recv().payload) in (0, 72)
    except rc.Closed:
        pass
    client.close()
    assert server.serves()


def test_while_rings_run(client):
    ring = client.start()
    for i in range(20):
        ring.blk(rc.T_IN, i, in_len=512)
    ring.submit()
    assert client.config().capacity == 16 * 2048
    ring.wait(20)


@pytest.mark.ours
@pytest.mark.parametrize('size,sectors', [(512, 1), (513, 1), (4095, 7), (4096, 8),
                                          ((1 << 20) + 1, 2048)])
def test_b45_size_not_a_multiple_of_the_block(serve, size, sectors):
    """b45: rounded down, never up; a line names what is lost; the last full sector reads."""
    try:
        s = serve(image_size=size)
    except RuntimeError as e:
        assert size % 512 and 'ended with 1' in str(e)      # refusing at open is the other way
        return
    c = s.client()
    assert c.config().capacity == sectors
    ring = c.start()
    assert ring.read(sectors - 1, 512) == bytes(512)
    req = ring.do(rc.T_IN, sectors, in_len=512)
    assert req.status == rc.S_IOERR
    if size % 512:
        assert [x for x in s.log().splitlines() if str(size % 512) in x], s.log()


@pytest.mark.ours
@pytest.mark.parametrize('size', [4096, 4095 + 4096, (1 << 20) + 512])
def test_b45_size_not_a_multiple_of_4096(serve, size):
    try:
        s = serve(image_size=size, block_size=4096)
    except RuntimeError as e:
        assert size % 4096 and 'ended with 1' in str(e)
        return
    c = s.client()
    assert c.config().capacity == size // 4096 * 8
    assert c.start().read(size // 4096 * 8 - 8, 4096) == bytes(4096)


@pytest.mark.ours
@pytest.mark.parametrize('size', [0, 1, 511])
def test_b45_less_than_a_sector(serve, size):
    """b45: refused at open with exit 1, or a disk of capacity 0."""
    try:
        s = serve(image_size=size)
    except RuntimeError as e:
        assert 'ended with 1' in str(e)
        return
    c = s.client()
    assert c.config().capacity == 0
    assert c.start().do(rc.T_IN, 0, in_len=512).status == rc.S_IOERR
