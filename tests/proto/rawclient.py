"""A raw vhost-user front-end.

It sends any bytes and any file descriptors, keeps guest memory in memfds and writes split
virtqueues by hand, so that a test can also be wrong on purpose. It knows nothing of the server.

Two rules about memory that Python hides:

* Indexes that the device reads while we write them (avail idx, used_event) go through a
  memoryview cast to 'H', which is one 16-bit store; struct's '<H' stores byte by byte.
* A full barrier is the pair of locked instructions of an uncontended threading.Lock (sem_t in
  CPython): fence() is needed between our index store and the load of the other side's event index.
"""

import array
import collections
import ctypes
import mmap
import os
import select
import socket
import struct
import threading
import time

# Requests of the front-end (vhost-user spec, "Front-end message types").
GET_FEATURES = 1
SET_FEATURES = 2
SET_OWNER = 3
RESET_OWNER = 4
SET_MEM_TABLE = 5
SET_LOG_BASE = 6
SET_LOG_FD = 7
SET_VRING_NUM = 8
SET_VRING_ADDR = 9
SET_VRING_BASE = 10
GET_VRING_BASE = 11
SET_VRING_KICK = 12
SET_VRING_CALL = 13
SET_VRING_ERR = 14
GET_PROTOCOL_FEATURES = 15
SET_PROTOCOL_FEATURES = 16
GET_QUEUE_NUM = 17
SET_VRING_ENABLE = 18
SEND_RARP = 19
NET_SET_MTU = 20
SET_BACKEND_REQ_FD = 21
IOTLB_MSG = 22
SET_VRING_ENDIAN = 23
GET_CONFIG = 24
SET_CONFIG = 25
CREATE_CRYPTO_SESSION = 26
CLOSE_CRYPTO_SESSION = 27
POSTCOPY_ADVISE = 28
POSTCOPY_LISTEN = 29
POSTCOPY_END = 30
GET_INFLIGHT_FD = 31
SET_INFLIGHT_FD = 32
GPU_SET_SOCKET = 33
RESET_DEVICE = 34
VRING_KICK = 35
GET_MAX_MEM_SLOTS = 36
ADD_MEM_REG = 37
REM_MEM_REG = 38
SET_STATUS = 39
GET_STATUS = 40
GET_SHARED_OBJECT = 41
SET_DEVICE_STATE_FD = 42
CHECK_DEVICE_STATE = 43

VERSION = 1
REPLY = 1 << 2
NEED_REPLY = 1 << 3
NOFD = 1 << 8                   # SET_VRING_KICK/CALL/ERR: no descriptor comes with it

# Protocol feature bits.
P_MQ = 1 << 0
P_LOG_SHMFD = 1 << 1
P_RARP = 1 << 2
P_REPLY_ACK = 1 << 3
P_MTU = 1 << 4
P_BACKEND_REQ = 1 << 5
P_CROSS_ENDIAN = 1 << 6
P_CRYPTO = 1 << 7
P_PAGEFAULT = 1 << 8
P_CONFIG = 1 << 9
P_BACKEND_SEND_FD = 1 << 10
P_HOST_NOTIFIER = 1 << 11
P_INFLIGHT_SHMFD = 1 << 12
P_RESET_DEVICE = 1 << 13
P_INBAND_NOTIFICATIONS = 1 << 14
P_CONFIGURE_MEM_SLOTS = 1 << 15
P_STATUS = 1 << 16
P_OURS = (P_MQ | P_REPLY_ACK | P_BACKEND_REQ | P_CONFIG | P_RESET_DEVICE |
          P_CONFIGURE_MEM_SLOTS | P_STATUS)

# Device feature bits.
F_SIZE_MAX = 1 << 1
F_SEG_MAX = 1 << 2
F_GEOMETRY = 1 << 4
F_RO = 1 << 5
F_BLK_SIZE = 1 << 6
F_SCSI = 1 << 7
F_FLUSH = 1 << 9
F_TOPOLOGY = 1 << 10
F_CONFIG_WCE = 1 << 11
F_MQ = 1 << 12
F_DISCARD = 1 << 13
F_WRITE_ZEROES = 1 << 14
F_SECURE_ERASE = 1 << 16
F_NOTIFY_ON_EMPTY = 1 << 24
F_LOG_ALL = 1 << 26
F_INDIRECT = 1 << 28
F_EVENT_IDX = 1 << 29
F_PROTOCOL = 1 << 30
F_VERSION_1 = 1 << 32
F_ACCESS_PLATFORM = 1 << 33
F_RING_PACKED = 1 << 34
F_IN_ORDER = 1 << 35
F_ORDER_PLATFORM = 1 << 36
F_SR_IOV = 1 << 37
F_NOTIFICATION_DATA = 1 << 38
F_NOTIF_CONFIG_DATA = 1 << 39
F_RING_RESET = 1 << 40

# virtio-blk request types and statuses.
T_IN = 0
T_OUT = 1
T_FLUSH = 4
T_GET_ID = 8
T_GET_LIFETIME = 10
T_DISCARD = 11
T_WRITE_ZEROES = 13
T_SECURE_ERASE = 14
S_OK = 0
S_IOERR = 1
S_UNSUPP = 2
S_UNTOUCHED = 0xEE              # what we write into the status byte before a request

STATUS_ACKNOWLEDGE = 1
STATUS_DRIVER = 2
STATUS_DRIVER_OK = 4
STATUS_FEATURES_OK = 8
STATUS_NEEDS_RESET = 0x40

D_NEXT = 1
D_WRITE = 2
D_INDIRECT = 4

SECTOR = 512
UVA_OFFSET = 0x7F5500000000     # user address = guest address + this: never equal to it
WAIT = float(os.environ.get('RINGSIDE_WAIT', 20))     # generous: the end of it is a hang

Message = collections.namedtuple('Message', 'request flags payload fds')


class Closed(Exception):
    """The server closed the connection."""


class Refused(Exception):
    """The server answered a need_reply request with a non-zero value."""


class LostWakeup(AssertionError):
    """The used ring moved, or should have, and no call came."""


_fence_lock = threading.Lock()


def fence():
    """Full memory barrier; see the top of the file."""
    _fence_lock.acquire()
    _fence_lock.release()


def readable(fd, timeout):
    """Whether fd can be read within the time-out; select() ends at descriptor 1023."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


def need_event(event, new, old):
    return ((new - event - 1) & 0xFFFF) < ((new - old) & 0xFFFF)


# ------------------------------------------------------------------ messages


class Connection:
    """The socket: messages as bytes."""

    def __init__(self, path, timeout=WAIT):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.backend_sock = None

    def close(self):
        if self.sock is not None:
            self.sock.close()
            self.sock = None
        if self.backend_sock is not None:
            self.backend_sock.close()
            self.backend_sock = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def send_bytes(self, data, fds=()):
        anc = []
        if fds:
            anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))]
        try:
            sent = self.sock.sendmsg([data], anc)
            if sent < len(data):
                self.sock.sendall(data[sent:])
        except (BrokenPipeError, ConnectionResetError) as e:
            raise Closed() from e

    @staticmethod
    def header(request, size, flags=VERSION):
        return struct.pack('<III', request, flags, size)

    def send(self, request, payload=b'', fds=(), flags=VERSION, size=None):
        size = len(payload) if size is None else size
        self.send_bytes(self.header(request, size, flags) + payload, fds)

    def _read(self, count):
        data = b''
        while len(data) < count:
            try:
                part, anc, _, _ = self.sock.recvmsg(count - len(data), 4096)
            except (ConnectionResetError, BrokenPipeError) as e:
                raise Closed() from e
            for level, kind, raw in anc:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds = array.array('i')
                    fds.frombytes(raw[:len(raw) - len(raw) % 4])
                    self._fds.extend(fds)
            if not part:
                raise Closed()
            data += part
        return data

    def recv(self):
        self._fds = []
        request, flags, size = struct.unpack('<III', self._read(12))
        payload = self._read(size) if size else b''
        return Message(request, flags, payload, self._fds)

    def get(self, request, payload=b'', fds=(), flags=VERSION):
        """A request that always has an answer."""
        self.send(request, payload, fds, flags)
        msg = self.recv()
        assert msg.request == request, 'asked %d, answered %d' % (request, msg.request)
        assert msg.flags & 3 == VERSION and msg.flags & REPLY, 'reply flags 0x%x' % msg.flags
        return msg

    def get_u64(self, request, payload=b''):
        msg = self.get(request, payload)
        assert len(msg.payload) == 8
        return struct.unpack('<Q', msg.payload)[0]

    def set_ack(self, request, payload=b'', fds=()):
        """A request with need_reply (REPLY_ACK must be negotiated)."""
        self.send(request, payload, fds, VERSION | NEED_REPLY)
        msg = self.recv()
        assert msg.request == request
        assert msg.flags & 3 == VERSION and msg.flags & REPLY
        value = struct.unpack('<Q', msg.payload)[0]
        if value:
            raise Refused(value)

    def refused(self, request, payload=b'', fds=()):
        """True when the server answers need_reply with an error or closes the connection."""
        try:
            self.set_ack(request, payload, fds)
        except (Refused, Closed):
            return True
        return False

    def closed_by_server(self, timeout=WAIT):
        """True when the server hangs up, whatever it says before."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if not readable(self.sock, max(0, end - time.monotonic())):
                return False
            try:
                if not self.sock.recv(65536):
                    return True
            except (ConnectionResetError, BrokenPipeError):
                return True
        return False

    def alive(self):
        """A round trip works."""
        try:
            self.get_u64(GET_FEATURES)
        except Closed:
            return False
        return True


# -------------------------------------------------------------- guest memory


class Region:
    def __init__(self, gpa, size, uva=None, offset=0, seal=False, fd=None):
        self.gpa = gpa
        self.size = size
        self.uva = gpa + UVA_OFFSET if uva is None else uva
        self.offset = offset
        if fd is None:
            fd = os.memfd_create('guest', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, size + offset)
        self.fd = fd
        self.map = mmap.mmap(fd, size + offset)
        view = memoryview(self.map)[offset:offset + size]
        self.b = view
        self.h = view[:size & ~1].cast('H')
        self.bump = 0

    def entry(self):
        return struct.pack('<QQQQ', self.gpa, self.size, self.uva, self.offset)

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Memory:
    """Guest memory: regions, and a bump allocator over them (the first region by default)."""

    def __init__(self, regions):
        self.regions = list(regions)

    def find(self, gpa, size=1):
        for r in self.regions:
            if r.gpa <= gpa and gpa + size <= r.gpa + r.size:
                return r, gpa - r.gpa
        raise ValueError('guest address 0x%x+%d is not in one region' % (gpa, size))

    def alloc(self, size, align=16, region=0):
        r = self.regions[region]
        start = (r.bump + align - 1) & ~(align - 1)
        if start + size > r.size:
            raise MemoryError('guest memory is full')
        r.bump = start + size
        return r.gpa + start

    def mark(self):
        return [r.bump for r in self.regions]

    def release(self, mark):
        for r, b in zip(self.regions, mark):
            r.bump = b

    def write(self, gpa, data):
        data = memoryview(data)
        while len(data):
            r, off = self.find(gpa)
            n = min(len(data), r.size - off)
            r.b[off:off + n] = data[:n]
            gpa += n
            data = data[n:]

    def read(self, gpa, size):
        out = b''
        while size:
            r, off = self.find(gpa)
            n = min(size, r.size - off)
            out += bytes(r.b[off:off + n])
            gpa += n
            size -= n
        return out

    def uva(self, gpa):
        r, off = self.find(gpa)
        return r.uva + off

    def table(self):
        return (struct.pack('<II', len(self.regions), 0) +
                b''.join(r.entry() for r in self.regions)), [r.fd for r in self.regions]

    def close(self):
        for r in self.regions:
            r.close()


MIB = 1 << 20


def default_memory(size=32 * MIB, gpa=0x100000):
    return Memory([Region(gpa, size)])


# ---------------------------------------------------------------------- ring


class Ring:
    """The driver half of a split virtqueue, by hand.

    Fields are public on purpose: hostile tests write what they like.
    """

    def __init__(self, mem, index=0, size=128, base=0, event_idx=True, region=0,
                 call=True, kick=True, err=True, gpas=None):
        self.mem = mem
        self.index = index
        self.size = size
        self.event_idx = event_idx
        if gpas:
            self.desc, self.avail, self.used = gpas
        else:
            self.desc = mem.alloc(16 * size, 16, region)
            self.avail = mem.alloc(6 + 2 * size, 2, region)
            self.used = mem.alloc(6 + 8 * size, 4, region)
        self.base = base
        self.avail_idx = base           # free-running, what we published
        self.next_idx = base            # free-running, what we filled
        self.last_used = base
        self.kicks = 0                  # kicks that the device asked for
        self.calls = 0                  # calls that we saw
        self.call_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) if call else -1
        self.kick_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) if kick else -1
        self.err_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) if err else -1
        self.free = list(range(size - 1, -1, -1))
        self.chains = {}                # head -> descriptors to free
        self.reqs = {}                  # head -> BlkReq
        self._views()
        self.zero(base)

    def _views(self):
        r, off = self.mem.find(self.avail, 6 + 2 * self.size)
        self._ah, self._ao = r.h, off // 2
        r, off = self.mem.find(self.used, 6 + 8 * self.size)
        self._uh, self._uo = r.h, off // 2
        self._ub, self._ubo = r.b, off
        r, off = self.mem.find(self.desc, 16 * self.size)
        self._db, self._do = r.b, off

    def zero(self, idx):
        self.mem.write(self.desc, bytes(16 * self.size))
        self.mem.write(self.avail, bytes(6 + 2 * self.size))
        self.mem.write(self.used, bytes(6 + 8 * self.size))
        self.set_avail_idx(idx)
        self._uh[self._uo + 1] = idx & 0xFFFF
        self.set_avail_event(idx)       # as a ring that goes on from `idx` has it

    def close(self):
        for name in ('call_fd', 'kick_fd', 'err_fd'):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)

    # the shared words
    def set_avail_idx(self, idx):
        self._ah[self._ao + 1] = idx & 0xFFFF

    def set_avail_flags(self, flags):
        self._ah[self._ao] = flags

    def set_avail_ring(self, slot, head):
        self._ah[self._ao + 2 + slot % self.size] = head

    def set_used_event(self, idx):
        self._ah[self._ao + 2 + self.size] = idx & 0xFFFF

    def used_idx(self):
        return self._uh[self._uo + 1]

    def used_flags(self):
        return self._uh[self._uo]

    def used_elem(self, idx):
        return struct.unpack_from('<II', self._ub, self._ubo + 4 + 8 * (idx % self.size))

    def avail_event(self):
        return self._uh[self._uo + 2 + 4 * self.size]

    def set_avail_event(self, idx):
        self._uh[self._uo + 2 + 4 * self.size] = idx & 0xFFFF

    # descriptors
    def write_desc(self, i, gpa, length, flags=0, nxt=0):
        struct.pack_into('<QIHH', self._db, self._do + 16 * i, gpa, length, flags, nxt)

    def write_table(self, gpa, descs):
        """An indirect table; descs are (gpa, len, flags)."""
        raw = b''
        for i, (a, n, f) in enumerate(descs):
            last = i == len(descs) - 1
            raw += struct.pack('<QIHH', a, n, f if last else f | D_NEXT, 0 if last else i + 1)
        self.mem.write(gpa, raw)
        return len(raw)

    def add_chain(self, descs):
        """Write a direct chain of (gpa, len, flags); returns its head. Not yet published."""
        if len(descs) > len(self.free):
            raise RuntimeError('ring is full')
        ids = [self.free.pop() for _ in descs]
        for k, (gpa, length, flags) in enumerate(descs):
            last = k == len(descs) - 1
            self.write_desc(ids[k], gpa, length, flags if last else flags | D_NEXT,
                            0 if last else ids[k + 1])
        self.chains[ids[0]] = ids
        self.push_head(ids[0])
        return ids[0]

    def add_indirect(self, descs):
        table = self.mem.alloc(16 * max(1, len(descs)), 16)
        length = self.write_table(table, descs)
        return self.add_chain([(table, length, D_INDIRECT)])

    def push_head(self, head):
        self.set_avail_ring(self.next_idx, head)
        self.next_idx = (self.next_idx + 1) & 0xFFFF

    def publish(self):
        """Store avail idx; returns whether the device wants a kick."""
        old = self.avail_idx
        self.avail_idx = self.next_idx
        self.set_avail_idx(self.avail_idx)
        fence()
        if self.event_idx:
            return need_event(self.avail_event(), self.avail_idx, old)
        return not self.used_flags() & 1

    def kick(self):
        if self.kick_fd >= 0:
            try:
                os.eventfd_write(self.kick_fd, 1)
            except BlockingIOError:
                pass                    # full: it is signalled anyway

    def submit(self):
        """Publish and kick by the rules."""
        if self.publish():
            self.kicks += 1
            self.kick()

    # completions
    def pop_used(self):
        """(head, len) or None."""
        if self.used_idx() == self.last_used:
            return None
        head, length = self.used_elem(self.last_used)
        self.last_used = (self.last_used + 1) & 0xFFFF
        for i in reversed(self.chains.pop(head, ())):
            self.free.append(i)
        return head, length

    def arm(self):
        """Ask for a call for the next completion; full fence; caller looks again."""
        if self.event_idx:
            self.set_used_event(self.last_used)
        else:
            self.set_avail_flags(0)
        fence()

    def disarm(self):
        if self.event_idx:
            self.set_used_event(self.last_used - 1)
        else:
            self.set_avail_flags(1)

    def drain_call(self):
        try:
            self.calls += os.eventfd_read(self.call_fd)
        except BlockingIOError:
            pass

    def wait_call(self, timeout=WAIT):
        """Sleep on the call eventfd; False on a time-out."""
        if not readable(self.call_fd, timeout):
            return False
        self.drain_call()
        return True

    def wait(self, count=1, timeout=WAIT, poll=None):
        """Collect `count` completions.

        With a call eventfd this sleeps on it and on nothing else, so that a lost call is a
        failure, also when the used ring has moved. poll=True looks at the ring instead.
        """
        poll = self.call_fd < 0 if poll is None else poll
        done = []
        end = time.monotonic() + timeout
        spins = 0
        while len(done) < count:
            u = self.pop_used()
            if u:
                done.append(u)
                continue
            if poll:
                spins += 1
                if time.monotonic() > end:
                    raise TimeoutError('%d of %d completions' % (len(done), count))
                if spins > 200:
                    time.sleep(0.0005)
                continue
            self.arm()
            if self.used_idx() != self.last_used:
                continue
            if not self.wait_call(max(0, end - time.monotonic())):
                if self.used_idx() != self.last_used:
                    raise LostWakeup('used idx moved and no call came')
                raise TimeoutError('%d of %d completions' % (len(done), count))
        return done

    # virtio-blk
    def blk(self, rtype, sector=0, out=b'', in_len=0, **layout):
        """Build a request and put it in the ring (not yet published)."""
        req = BlkReq(self, rtype, sector, out, in_len, **layout)
        req.put()
        return req

    def do(self, rtype, sector=0, out=b'', in_len=0, timeout=WAIT, poll=None, **layout):
        """One request, from building to completion; the BlkReq with its results copied out."""
        mark = self.mem.mark()
        req = self.blk(rtype, sector, out, in_len, **layout)
        self.submit()
        (head, length), = self.wait(1, timeout, poll)
        assert head == req.head, 'used head %d, sent %d' % (head, req.head)
        req.finish(length)
        self.mem.release(mark)
        return req

    def read(self, sector, length, **layout):
        req = self.do(T_IN, sector, in_len=length, **layout)
        assert req.status == S_OK, 'read status %d' % req.status
        assert req.used_len == length + 1, 'used len %d' % req.used_len
        return req.data

    def write(self, sector, data, **layout):
        req = self.do(T_OUT, sector, out=data, **layout)
        assert req.status == S_OK, 'write status %d' % req.status
        assert req.used_len == 1, 'used len %d' % req.used_len

    def flush(self):
        req = self.do(T_FLUSH)
        assert req.status == S_OK
        assert req.used_len == 1


def cut(total, sizes):
    """Cut `total` bytes into the sizes given; the rest is the last piece."""
    out = []
    for s in sizes:
        s = min(s, total)
        if s:
            out.append(s)
        total -= s
    if total:
        out.append(total)
    return out


class BlkReq:
    """A virtio-blk request in any descriptor layout.

    hdr_cut     sizes of the header's descriptors, such as (1, 7, 8)
    segs        sizes of the data segments (the rest is a last one)
    join_hdr    the out data follow the header in the header's last descriptor
    tail_status the status byte is the last byte of the last device-writable descriptor
    indirect    the chain is in an indirect table; 'mixed': direct descriptors, then a table
    align       alignment of the data segments in guest memory
    raw_hdr     these bytes instead of the header
    status_len  length of the status descriptor
    """

    def __init__(self, ring, rtype, sector=0, out=b'', in_len=0, hdr_cut=(), segs=(),
                 join_hdr=False, tail_status=False, indirect=False, align=16, raw_hdr=None,
                 region=0, ioprio=0):
        self.ring = ring
        mem = self.mem = ring.mem
        self.in_len = in_len
        self.indirect = indirect
        hdr = struct.pack('<IIQ', rtype, ioprio, sector) if raw_hdr is None else raw_hdr
        self.out_descs = []
        self.in_descs = []
        lead = hdr + bytes(out) if join_hdr else hdr
        for part in _parts(lead, hdr_cut):
            gpa = mem.alloc(len(part), 1, region)
            mem.write(gpa, part)
            self.out_descs.append((gpa, len(part), 0))
        self.hdr_gpa = self.out_descs[0][0] if self.out_descs else 0
        if out and not join_hdr:
            for part in _parts(out, segs):
                gpa = mem.alloc(len(part), align, region)
                mem.write(gpa, part)
                self.out_descs.append((gpa, len(part), 0))
        sizes = cut(in_len, segs) if in_len else []
        if tail_status and sizes:
            sizes[-1] += 1
        for s in sizes:
            gpa = mem.alloc(s, align, region)
            self.in_descs.append((gpa, s, D_WRITE))
        if tail_status and sizes:
            self.status_gpa = gpa + s - 1
        else:
            self.status_gpa = mem.alloc(1, 1, region)
            self.in_descs.append((self.status_gpa, 1, D_WRITE))
        self.reset()
        self.head = None
        self.status = None
        self.used_len = None
        self.data = None

    def reset(self):
        self.mem.write(self.status_gpa, bytes([S_UNTOUCHED]))

    def descs(self):
        return self.out_descs + self.in_descs

    def put(self):
        ring = self.ring
        descs = self.descs()
        if self.indirect == 'mixed' and len(descs) > 1:
            table = ring.mem.alloc(16 * (len(descs) - 1), 16)
            length = ring.write_table(table, descs[1:])
            self.head = ring.add_chain([descs[0], (table, length, D_INDIRECT)])
        elif self.indirect:
            self.head = ring.add_indirect(descs)
        else:
            self.head = ring.add_chain(descs)
        return self.head

    def peek_status(self):
        return self.mem.read(self.status_gpa, 1)[0]

    def finish(self, used_len):
        self.used_len = used_len
        self.status = self.peek_status()
        self.data = b''.join(self.mem.read(g, n) for g, n, _ in self.in_descs)[:self.in_len]
        return self


def _parts(data, sizes):
    off = 0
    for s in cut(len(data), sizes):
        yield bytes(data[off:off + s])
        off += s


# -------------------------------------------------------------------- client


Config = collections.namedtuple('Config', (
    'capacity size_max seg_max cylinders heads sectors blk_size physical_block_exp '
    'alignment_offset min_io_size opt_io_size writeback num_queues max_discard_sectors '
    'max_discard_seg discard_sector_alignment max_write_zeroes_sectors max_write_zeroes_seg '
    'write_zeroes_may_unmap'))
CONFIG_FORMAT = '<QIIHBBIBBHIBxHIIIIIB3x'
CONFIG_SIZE = struct.calcsize(CONFIG_FORMAT)
assert CONFIG_SIZE == 60


class Client(Connection):
    """A connection with guest memory and rings; every message has a helper."""

    def __init__(self, path, timeout=WAIT):
        super().__init__(path, timeout)
        self.mem = None
        self.rings = {}
        self.features = 0
        self.protocol = 0
        self.offered = 0

    def close(self):
        super().close()
        for ring in self.rings.values():
            ring.close()
        self.rings = {}
        if self.mem:
            self.mem.close()
            self.mem = None

    # With REPLY_ACK every set message is confirmed, which makes errors point at their cause.
    def set(self, request, payload=b'', fds=()):
        if self.protocol & P_REPLY_ACK:
            self.set_ack(request, payload, fds)
        else:
            self.send(request, payload, fds)

    def set_u64(self, request, value, fds=()):
        self.set(request, struct.pack('<Q', value), fds)

    def set_state(self, request, index, num):
        self.set(request, struct.pack('<II', index, num))

    # one helper a message
    def get_features(self):
        return self.get_u64(GET_FEATURES)

    def set_features(self, features):
        self.features = features
        self.set_u64(SET_FEATURES, features)

    def get_protocol_features(self):
        return self.get_u64(GET_PROTOCOL_FEATURES)

    def set_protocol_features(self, features):
        # REPLY_ACK counts from the next message on.
        self.send(SET_PROTOCOL_FEATURES, struct.pack('<Q', features))
        self.protocol = features

    def set_owner(self):
        self.set(SET_OWNER)

    def reset_owner(self):
        self.set(RESET_OWNER)

    def set_mem_table(self, mem=None):
        table, fds = (mem or self.mem).table()
        self.set(SET_MEM_TABLE, table, fds)

    def get_max_mem_slots(self):
        return self.get_u64(GET_MAX_MEM_SLOTS)

    def add_mem_reg(self, region):
        self.set(ADD_MEM_REG, struct.pack('<Q', 0) + region.entry(), [region.fd])

    def rem_mem_reg(self, region, fds=()):
        self.set(REM_MEM_REG, struct.pack('<Q', 0) + region.entry(), fds)

    def set_vring_num(self, index, num):
        self.set_state(SET_VRING_NUM, index, num)

    def set_vring_base(self, index, base):
        self.set_state(SET_VRING_BASE, index, base)

    def set_vring_enable(self, index, on=1):
        self.set_state(SET_VRING_ENABLE, index, on)

    def set_vring_addr(self, index, desc, used, avail, flags=0, log=0):
        self.set(SET_VRING_ADDR, struct.pack('<IIQQQQ', index, flags, desc, used, avail, log))

    def _set_vring_fd(self, request, index, fd):
        if fd is None or fd < 0:
            self.set_u64(request, index | NOFD)
        else:
            self.set_u64(request, index, [fd])

    def set_vring_kick(self, index, fd=None):
        self._set_vring_fd(SET_VRING_KICK, index, fd)

    def set_vring_call(self, index, fd=None):
        self._set_vring_fd(SET_VRING_CALL, index, fd)

    def set_vring_err(self, index, fd=None):
        self._set_vring_fd(SET_VRING_ERR, index, fd)

    def send_get_vring_base(self, index):
        self.send(GET_VRING_BASE, struct.pack('<II', index, 0))

    def recv_vring_base(self, index):
        msg = self.recv()
        assert msg.request == GET_VRING_BASE
        idx, num = struct.unpack('<II', msg.payload)
        assert idx == index
        return num

    def get_vring_base(self, index):
        self.send_get_vring_base(index)
        return self.recv_vring_base(index)

    def get_queue_num(self):
        return self.get_u64(GET_QUEUE_NUM)

    def get_config_raw(self, offset=0, size=CONFIG_SIZE, flags=0):
        msg = self.get(GET_CONFIG, struct.pack('<III', offset, size, flags) + bytes(size))
        return msg.payload

    def get_config_bytes(self, offset=0, size=CONFIG_SIZE):
        raw = self.get_config_raw(offset, size)
        roff, rsize, _ = struct.unpack_from('<III', raw)
        assert (roff, rsize) == (offset, size)
        assert len(raw) == 12 + size
        return raw[12:]

    def config(self):
        return Config(*struct.unpack(CONFIG_FORMAT, self.get_config_bytes()))

    def set_config(self, offset, data, flags=0):
        self.set(SET_CONFIG, struct.pack('<III', offset, len(data), flags) + data)

    def reset_device(self):
        self.set(RESET_DEVICE)

    def get_status(self):
        return self.get_u64(GET_STATUS)

    def set_status(self, status):
        self.set_u64(SET_STATUS, status)

    def set_backend_req_fd(self, fd):
        self.set(SET_BACKEND_REQ_FD, b'', [fd])

    # composed
    def negotiate(self, without=0, features=None, protocol=None):
        self.offered = self.get_features()
        if features is None:
            features = self.offered & ~(without | F_NOTIFY_ON_EMPTY)
        if features & F_PROTOCOL:
            offered = self.get_protocol_features()
            want = offered & P_OURS if protocol is None else offered & protocol
            self.set_protocol_features(want)
        self.set_owner()
        self.set_features(features)

    def setup(self, without=0, mem=None, features=None, protocol=None):
        """Negotiate and share memory; rings come by start()."""
        self.negotiate(without, features, protocol)
        self.mem = mem or default_memory()
        self.set_mem_table()
        return self

    def make_ring(self, index=0, size=128, base=0, **kw):
        kw.setdefault('event_idx', bool(self.features & F_EVENT_IDX))
        if index in self.rings:
            self.rings[index].close()
        self.rings[index] = Ring(self.mem, index, size, base, **kw)
        return self.rings[index]

    def start(self, index=0, size=128, base=0, enable=True, **kw):
        """Make a ring and start it the way QEMU does."""
        ring = self.make_ring(index, size, base, **kw)
        self.start_ring(ring, enable)
        return ring

    def start_ring(self, ring, enable=True, base=None):
        i = ring.index
        self.set_vring_num(i, ring.size)
        self.set_vring_base(i, ring.base if base is None else base)
        self.send_addr(ring)
        self.set_vring_err(i, ring.err_fd)
        self.set_vring_call(i, ring.call_fd)
        self.set_vring_kick(i, ring.kick_fd)
        if enable and self.features & F_PROTOCOL:
            self.set_vring_enable(i, 1)

    def send_addr(self, ring):
        u = self.mem.uva
        self.set_vring_addr(ring.index, u(ring.desc), u(ring.used), u(ring.avail))

    def stop_ring(self, ring):
        """GET_VRING_BASE; remembers the index for the next start."""
        ring.base = self.get_vring_base(ring.index)
        return ring.base


def memory_words(mem, gpa, size):
    """A ctypes view for threads that scribble over shared memory."""
    r, off = mem.find(gpa, size)
    return (ctypes.c_uint8 * size).from_buffer(r.map, r.offset + off)


def eventfd_count(fd, timeout=0):
    """Value of an eventfd, 0 when it is not signalled within the time-out."""
    if not readable(fd, timeout):
        return 0
    return os.eventfd_read(fd)
