"""Messages that belong to features which are not offered, and numbers that are no message."""

import os
import struct

import pytest

import rawclient as rc

pytestmark = pytest.mark.ours

NAMES = {
    'SET_LOG_BASE': (rc.SET_LOG_BASE, bytes(16)), 'SET_LOG_FD': (rc.SET_LOG_FD, bytes(8)),
    'SEND_RARP': (rc.SEND_RARP, bytes(8)), 'NET_SET_MTU': (rc.NET_SET_MTU, bytes(8)),
    'IOTLB_MSG': (rc.IOTLB_MSG, bytes(40)), 'SET_VRING_ENDIAN': (rc.SET_VRING_ENDIAN, bytes(8)),
    'CREATE_CRYPTO_SESSION': (rc.CREATE_CRYPTO_SESSION, bytes(64)),
    'CLOSE_CRYPTO_SESSION': (rc.CLOSE_CRYPTO_SESSION, bytes(8)),
    'POSTCOPY_ADVISE': (rc.POSTCOPY_ADVISE, b''), 'POSTCOPY_LISTEN': (rc.POSTCOPY_LISTEN, b''),
    'POSTCOPY_END': (rc.POSTCOPY_END, b''), 'GET_INFLIGHT_FD': (rc.GET_INFLIGHT_FD, bytes(24)),
    'SET_INFLIGHT_FD': (rc.SET_INFLIGHT_FD, bytes(24)),
    'GPU_SET_SOCKET': (rc.GPU_SET_SOCKET, b''),
    'VRING_KICK': (rc.VRING_KICK, bytes(8)), 'GET_SHARED_OBJECT': (rc.GET_SHARED_OBJECT, bytes(16)),
    'SET_DEVICE_STATE_FD': (rc.SET_DEVICE_STATE_FD, bytes(8)),
    'CHECK_DEVICE_STATE': (rc.CHECK_DEVICE_STATE, b''),
    'NONE': (0, b''), '44': (44, b''), '255': (255, b''), '0xFFFFFFFF': (0xFFFFFFFF, bytes(8)),
}


@pytest.mark.parametrize('with_fd', [False, True])
@pytest.mark.parametrize('name', NAMES)
def test_refused(server, client, name, with_fd):
    """Refused or the connection closed; never obeyed, never a crash, descriptors closed."""
    request, payload = NAMES[name]
    before = server.fds()
    r, w = os.pipe()
    try:
        client.send(request, payload, [w] if with_fd else [], rc.VERSION | rc.NEED_REPLY)
        msg = client.recv()
        assert msg.request == request
        assert len(msg.payload) != 8 or struct.unpack('<Q', msg.payload)[0] != 0
        assert not msg.fds
        assert client.alive()
    except rc.Closed:
        pass
    os.close(r)
    os.close(w)
    client.close()
    server.clients.remove(client)
    assert server.serves()
    server.wait_fds_most(before)
