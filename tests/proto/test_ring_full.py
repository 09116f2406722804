"""A ring that is completely full is not empty (fault B09)."""

import pytest

import rawclient as rc


@pytest.mark.ours
@pytest.mark.parametrize('event_idx', [True, False])
@pytest.mark.parametrize('size', [1, 2, 128, 32768])
def test_b09_full_ring(serve, size, event_idx):
    """b09: `size` heads with one index update and one kick, also across 65535 -> 0."""
    s = serve(engine='null', size='1M', queues=1)
    base = (65536 - size // 2 - 1) & 0xFFFF
    c = s.connect().setup(without=0 if event_idx else rc.F_EVENT_IDX,
                          mem=rc.default_memory(48 << 20))
    ring = c.start(size=size, base=base)
    mark = c.mem.mark()
    rounds = 3 if size < 1000 else 2
    for _ in range(rounds):
        hdr = c.mem.alloc(16)
        c.mem.write(hdr, rc.struct.pack('<IIQ', rc.T_IN, 0, 0))
        data = c.mem.alloc(512)
        st = c.mem.alloc(size)
        c.mem.write(st, b'\xee' * size)
        tables = c.mem.alloc(48 * size)
        for i in range(size):
            ring.write_table(tables + 48 * i, [(hdr, 16, 0), (data, 512, rc.D_WRITE),
                                               (st + i, 1, rc.D_WRITE)])
            ring.add_chain([(tables + 48 * i, 48, rc.D_INDIRECT)])
        ring.publish()
        ring.kick()
        done = ring.wait(size, timeout=60)
        assert sorted(h for h, _ in done) == list(range(size))
        assert all(n == 513 for _, n in done)
        assert c.mem.read(st, size) == bytes(size)
        c.mem.release(mark)
    assert c.get_vring_base(0) == (base + rounds * size) & 0xFFFF


@pytest.mark.ours
@pytest.mark.parametrize('size', [2, 16])
def test_b09_with_a_file(server, size):
    c = server.client()
    ring = c.start(size=size, base=65535)
    for _ in range(20):
        mark = c.mem.mark()
        reqs = [ring.blk(rc.T_IN, i, in_len=512, indirect=True) for i in range(size)]
        ring.submit()
        ring.wait(size)
        assert all(r.peek_status() == rc.S_OK for r in reqs)
        c.mem.release(mark)
