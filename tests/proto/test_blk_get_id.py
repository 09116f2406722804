"""GET_ID: 20 bytes, padded with zeroes."""

import pytest

import rawclient as rc


@pytest.mark.ours
@pytest.mark.parametrize('serial', ['x', 'VOL-1234', 'a' * 19, 'b' * 20])
def test_serial(serve, serial):
    ring = serve(serial=serial).client().start()
    req = ring.do(rc.T_GET_ID, in_len=20)
    assert (req.status, req.used_len) == (rc.S_OK, 21)
    assert req.data == serial.encode().ljust(20, b'\0')


def test_default_serial(ring):
    req = ring.do(rc.T_GET_ID, in_len=20)
    assert req.status == rc.S_OK
    assert len(req.data) == 20


@pytest.mark.ours
def test_b27_serial_after_restart_of_the_ring(serve):
    """b27: the string is there for every driver, not for the first alone."""
    s = serve(serial='again')
    c = s.client()
    for _ in range(3):
        ring = c.start()
        assert ring.do(rc.T_GET_ID, in_len=20).data.rstrip(b'\0') == b'again'
        c.stop_ring(ring)
    c.reset_device()
    c.set_features(c.features)
    assert c.start().do(rc.T_GET_ID, in_len=20).data.rstrip(b'\0') == b'again'
    c.close()
    c = s.next_client()
    assert c.start().do(rc.T_GET_ID, in_len=20).data.rstrip(b'\0') == b'again'


@pytest.mark.ours
def test_split_buffer(serve):
    ring = serve(serial='0123456789abcdefghij').client().start()
    req = ring.do(rc.T_GET_ID, in_len=20, segs=(1, 3, 7))
    assert (req.status, req.used_len) == (rc.S_OK, 21)
    assert req.data == b'0123456789abcdefghij'


@pytest.mark.ours
def test_longer_buffer(serve):
    """No more than 20 bytes are the identifier."""
    ring = serve(serial='abc').client().start()
    req = ring.do(rc.T_GET_ID, in_len=64)
    if req.status == rc.S_OK:
        assert req.data[:20] == b'abc'.ljust(20, b'\0')
    else:
        assert req.status == rc.S_IOERR
    assert ring.do(rc.T_GET_ID, in_len=20).status == rc.S_OK


@pytest.mark.ours
@pytest.mark.parametrize('size', [0, 1, 19])
def test_shorter_buffer(serve, size):
    """Cut or refused; nothing is written behind it."""
    ring = serve(serial='0123456789abcdefghij').client().start()
    mem = ring.mem
    buf = mem.alloc(64)
    mem.write(buf, b'\xcc' * 64)
    hdr = mem.alloc(16)
    mem.write(hdr, rc.struct.pack('<IIQ', rc.T_GET_ID, 0, 0))
    st = mem.alloc(1)
    mem.write(st, b'\xee')
    chain = [(hdr, 16, 0)] + ([(buf, size, rc.D_WRITE)] if size else []) + [(st, 1, rc.D_WRITE)]
    ring.add_chain(chain)
    ring.submit()
    ring.wait()
    assert mem.read(st, 1)[0] in (rc.S_OK, rc.S_IOERR)
    assert mem.read(buf + size, 64 - size) == b'\xcc' * (64 - size)
    if mem.read(st, 1)[0] == rc.S_OK:
        assert mem.read(buf, size) == b'0123456789abcdefghij'[:size]
