"""SET_CONFIG: only the writeback byte (offset 32) can be written."""

import struct

import pytest

import rawclient as rc

pytestmark = pytest.mark.ours


def test_writeback_off_and_on(client):
    client.set_config(32, b'\0')
    assert client.config().writeback == 0
    client.set_config(32, b'\1')
    assert client.config().writeback == 1


def test_b31_two_bytes_at_writeback(server, client):
    """b31: the byte behind it is not writable: left alone, or the message refused."""
    before = client.get_config_bytes()
    client.send(rc.SET_CONFIG, struct.pack('<III', 32, 2, 0) + b'\0\x55',
                flags=rc.VERSION | rc.NEED_REPLY)
    try:
        refused = struct.unpack('<Q', client.recv().payload)[0]
    except rc.Closed:
        client.close()
        assert server.serves()
        return
    after = client.get_config_bytes()
    assert after[33:] == before[33:] and after[:32] == before[:32]
    assert after[32] == (before[32] if refused else 0)


@pytest.mark.parametrize('offset,data', [(0, bytes(8)), (59, b'\1\1'), (60, b'\1'), (34, b'\1\0'),
                                         (0xFFFFFFFF, b'\1\1'), (33, b'')])
def test_b31_other_fields_stay(server, client, offset, data):
    """b31: refused or ignored; nothing but writeback ever changes."""
    before = client.get_config_bytes()
    client.send(rc.SET_CONFIG, struct.pack('<III', offset, len(data), 0) + data)
    try:
        assert client.get_config_bytes() == before
    except rc.Closed:
        client.close()
        with server.next_client() as c:
            assert c.get_config_bytes() == before
        server.clients.remove(c)
    client.close()
    server.clients.remove(client)
    assert server.serves()


def test_b31_whole_struct(server, client):
    """b31: a front-end may write back all 60 bytes; only writeback is taken."""
    before = client.get_config_bytes()
    new = bytes(0xFF for _ in range(32)) + b'\0' + bytes(0xFF for _ in range(27))
    client.send(rc.SET_CONFIG, struct.pack('<III', 0, 60, 0) + new)
    try:
        after = client.get_config_bytes()
    except rc.Closed:
        client.close()
        assert server.serves()
        return
    assert after[:32] == before[:32] and after[33:] == before[33:]


@pytest.mark.parametrize('size,data', [(60, b''), (2, b'\0'), (0xFFFFFFFF, b'\0'),
                                       (257, bytes(257)), (1, b'\0\0\0\0\0')])
def test_size_field_does_not_fit(server, client, size, data):
    client.send(rc.SET_CONFIG, struct.pack('<III', 32, size, 0) + data)
    try:
        client.get_config_bytes()
    except rc.Closed:
        pass
    client.close()
    assert server.serves()


def test_writeback_returns_for_the_next_client(server, client):
    client.set_config(32, b'\0')
    client.close()
    with server.next_client() as c:
        assert c.config().writeback == 1
    server.clients.remove(c)


def test_needs_the_feature(server):
    """CONFIG_WCE not taken: writeback cannot be changed."""
    c = server.client(without=rc.F_CONFIG_WCE)
    before = c.get_config_bytes()
    refused = c.refused(rc.SET_CONFIG, struct.pack('<III', 32, 1, 0) + b'\0')
    if c.sock and not refused:
        assert c.get_config_bytes() == before
