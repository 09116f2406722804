"""Serves disk images and boots guests on them, for the tests, the demo and the benchmark.

    with Server([Disk(path)]) as server, Guest("mount /dev/vda /mnt", server.disks) as guest:
        guest.finish()
        print(guest.output)

Server runs `ringside serve`; another vhost-user-blk server can stand in for it (RINGSIDE_PEER=qsd:
Debian 12's qemu-storage-daemon, qsd11: that of QEMU 11.1), which tells a fault of a test from a
fault of ours. Guest boots Debian's cloud kernel in QEMU on an emulated processor (ACCEL=kvm in the
environment chooses another accelerator).

Everything is a child of the caller and is killed by its process id; every file and socket is in a
temporary folder of its own, so that any number of them run side by side.
"""
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
RINGSIDE = os.environ.get("RINGSIDE", str(TOP / "build" / "ringside"))
PEER = os.environ.get("RINGSIDE_PEER", "ringside")
ACCEL = os.environ.get("ACCEL", "tcg")
# Only a hang should reach a time-out: a busy machine is no failure.
TIMEOUT = float(os.environ.get("RINGSIDE_TIMEOUT", "300"))

QEMU_7 = {name: [name] for name in ("qemu-system-x86_64", "qemu-img", "qemu-io",
                                    "qemu-storage-daemon")}


class Failure(Exception):
    """A server or a guest did not do what it should; the message holds its last words."""


def qemu11(program):
    """The command line that starts a program of QEMU 11.1."""
    return [str(HERE / "qemu11"), program]


def have_qemu11():
    return subprocess.run([TOP / "tools" / "chroot.sh", "--check"],
                          stdout=subprocess.DEVNULL, check=False).returncode == 0


def program(name, version="7.2"):
    return QEMU_7[name] if version == "7.2" else qemu11(name)


def temp_folder():
    """Short, as the path of a socket must fit in 107 bytes; in memory it would hide O_DIRECT."""
    return pathlib.Path(tempfile.mkdtemp(prefix="ringside-", dir=os.environ.get("TMPDIR", "/var/tmp")))


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def tail(path, lines=25):
    try:
        text = pathlib.Path(path).read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def wait_for(what, condition, timeout=TIMEOUT, interval=0.02):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        answer = condition()
        if answer:
            return answer
        time.sleep(interval)
    raise Failure(f"{what}: nothing after {timeout:.0f} s")


@dataclasses.dataclass
class Disk:
    """One --disk of the server, and how the guest's device is set up."""
    path: str
    engine: str = "auto"
    direct: str = "on"
    readonly: str = "off"
    queues: int = 0           # 0: the server's default
    block_size: int = 0
    serial: str = ""
    discard: str = ""
    extra: str = ""           # more keys for ringside, "key=value,..."
    num_queues: int = 1       # the guest's device
    device: str = ""          # more properties of the guest's device
    socket: str = ""          # given by Server when empty
    id: str = ""

    def ringside_option(self):
        keys = {"path": self.path.replace(",", ",,"), "socket": self.socket, "engine": self.engine,
                "direct": self.direct, "readonly": self.readonly, "queues": self.queues,
                "block-size": self.block_size, "serial": self.serial, "discard": self.discard,
                "id": self.id}
        option = ",".join(f"{key}={value}" for key, value in keys.items() if value)
        return option + (f",{self.extra}" if self.extra else "")

    def qsd_options(self, number):
        """The nearest that qemu-storage-daemon has; it knows no serial."""
        aio = {"linux-aio": "native", "io_uring": "io_uring"}.get(self.engine, "threads")
        if aio == "native" and self.direct == "off":
            aio = "threads"
        node = {"driver": "file", "node-name": f"n{number}", "filename": self.path, "aio": aio,
                "discard": "unmap", "cache": {"direct": self.direct == "on"},
                "read-only": self.readonly == "on"}
        export = {"type": "vhost-user-blk", "id": self.id or f"e{number}",
                  "node-name": f"n{number}", "addr": {"type": "unix", "path": self.socket},
                  "writable": self.readonly != "on", "num-queues": self.queues or 16}
        if self.block_size:
            export["logical-block-size"] = self.block_size
        return ["--blockdev", json.dumps(node), "--export", json.dumps(export)]


class Process:
    """A child with its output in files of a folder that goes away with it."""

    def __init__(self):
        self.folder = temp_folder()
        self.process = None

    def spawn(self, command, **streams):
        files = {name: open(self.folder / path, "ab") for name, path in streams.items()}
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                            preexec_fn=_die_with_parent, **files)
        finally:
            for file in files.values():
                file.close()

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.kill()
            self.process.wait()

    def text(self, name):
        try:
            return (self.folder / name).read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self


class Server(Process):
    """`ringside serve`, or its stand-in, with some disks."""

    def __init__(self, disks, args=(), peer=None, wrapper=()):
        super().__init__()
        self.peer = peer or PEER
        self.args = list(args)
        self.wrapper = list(wrapper)
        self.disks = list(disks)
        self.read_stats = 0
        for number, disk in enumerate(self.disks):
            disk.path = str(disk.path)
            disk.socket = disk.socket or str(self.folder / f"d{number}.sock")

    def command(self):
        if self.peer == "ringside":
            options = [word for disk in self.disks for word in ("--disk", disk.ringside_option())]
            return self.wrapper + [RINGSIDE, "serve"] + options + self.args
        start = {"qsd": ["qemu-storage-daemon"],
                 "qsd11": qemu11("qemu-storage-daemon")}[self.peer]
        options = [word for number, disk in enumerate(self.disks)
                   for word in disk.qsd_options(number)]
        return self.wrapper + start + options

    def start(self):
        self.spawn(self.command(), stdout="stdout", stderr="stderr")
        for disk in self.disks:
            wait_for("server's socket", lambda d=disk: self._listening(d.socket), timeout=60)
        return self

    def _listening(self, path):
        if not self.alive():
            raise Failure(f"server ended with {self.process.returncode}:\n{self.text('stderr')}")
        # Looking into the kernel's table tells it without being a client.
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
            return any(line.split()[-1] == path and line.split()[3] == "00010000"
                       for line in table)

    def stats(self):
        """What SIGUSR1 makes ringside print: the newest document on its standard output."""
        self.process.send_signal(signal.SIGUSR1)

        def newest():
            text = self.text("stdout")[self.read_stats:]
            start = text.find("{")
            if start < 0:
                return None
            try:
                document, end = json.JSONDecoder().raw_decode(text, start)
            except json.JSONDecodeError:
                return None  # the rest is still to come
            self.read_stats += end
            return document
        return wait_for("statistics", newest, timeout=60)

    def finish(self, timeout=60):
        """Ends it as an administrator would; it must end clean."""
        if self.process.poll() is not None:
            raise Failure(f"server died with {self.process.returncode}:\n{self.text('stderr')}")
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"server did not end on SIGTERM:\n{self.text('stderr')}") from None
        errors = self.text("stderr")
        if status != 0 or re.search(r"Sanitizer|runtime error|WARNING: ThreadSan", errors):
            raise Failure(f"server ended with {status}:\n{errors}")

    def __exit__(self, kind, value, trace):
        try:
            if kind is None and self.alive():
                self.finish()
            elif kind is not None:
                print(f"server's messages:\n{tail(self.folder / 'stderr')}")
        finally:
            self.close()


def _cpio(files):
    """A cpio archive (newc) of {name: (mode, bytes)}, as the kernel unpacks it."""
    out = bytearray()
    for number, (name, (mode, data)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))]):
        fields = [number + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08X" % field for field in fields)
        out += name.encode() + b"\0"
        out += b"\0" * (-len(out) % 4) + data
        out += b"\0" * (-len(out) % 4)
    out += b"\0" * (-len(out) % 512)
    return bytes(out)


def initramfs(script, path, fio=False, files=None):
    """Writes the guest's root file system with the script as /run.sh."""
    parts = subprocess.run([HERE / "initramfs.sh"] + (["fio"] if fio else []), check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    extra = {"run.sh": (0o100755, script.encode())}
    for name, data in (files or {}).items():
        extra[name] = (0o100644, data)
    with open(path, "wb") as out:
        for part in parts:
            with open(part, "rb") as source:
                shutil.copyfileobj(source, out, 1 << 20)
        out.write(_cpio(extra))


def kernel():
    return subprocess.run([HERE / "kernel.sh"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.splitlines()[0]


class Guest(Process):
    """One virtual machine that runs a shell script as its only program."""

    CMDLINE = "console=ttyS0 quiet panic=0 mitigations=off random.trust_cpu=on"

    def __init__(self, script, disks=(), qemu="7.2", cpus=1, memory_mb=256, cmdline="", fio=False,
                 files=None, args=(), direct_boot=True, may_reboot=False):
        super().__init__()
        self.script = script
        self.disks = list(disks)
        self.qemu = qemu
        self.cpus = cpus
        # fio's libraries are 80 MB, and are there twice while the kernel unpacks them.
        self.memory_mb = max(memory_mb, 512) if fio else memory_mb
        self.cmdline = cmdline
        self.fio = fio
        self.files = files
        self.args = list(args)
        self.direct_boot = direct_boot
        self.may_reboot = may_reboot

    def command(self):
        command = program("qemu-system-x86_64", self.qemu) + [
            "-nodefaults", "-no-user-config", "-display", "none",
            "-machine", f"q35,accel={ACCEL},memory-backend=mem",
            "-object", f"memory-backend-memfd,id=mem,size={self.memory_mb}M,share=on",
            "-m", f"{self.memory_mb}M", "-smp", str(self.cpus),
            "-chardev", f"file,id=console,path={self.folder}/console", "-serial", "chardev:console",
            "-chardev", f"file,id=output,path={self.folder}/output", "-serial", "chardev:output"]
        if ACCEL == "kvm":
            command += ["-cpu", "host"]
        if not self.may_reboot:
            command += ["-no-reboot"]
        if self.direct_boot:
            command += ["-kernel", kernel(), "-initrd", f"{self.folder}/initrd",
                        "-append", f"{self.CMDLINE} {self.cmdline}"]
        for number, disk in enumerate(self.disks):
            more = f",{disk.device}" if disk.device else ""
            command += ["-chardev", f"socket,id=disk{number},path={disk.socket}",
                        "-device", f"vhost-user-blk-pci,id=blk{number},chardev=disk{number},"
                        f"num-queues={disk.num_queues}{more}"]
        return command + self.args

    def start(self):
        if self.direct_boot:
            initramfs(self.script, self.folder / "initrd", self.fio, self.files)
        self.spawn(self.command(), stdout="qemu", stderr="qemu")
        return self

    @property
    def output(self):
        """What the script wrote, without the markers."""
        return "\n".join(line for line in self.text("output").splitlines()
                         if not re.fullmatch(r"@@(start|exit \d+)@@", line))

    @property
    def status(self):
        found = re.search(r"^@@exit (\d+)@@", self.text("output"), re.M)
        return int(found.group(1)) if found else None

    def last_words(self):
        return (f"--- qemu\n{tail(self.folder / 'qemu')}\n--- console\n"
                f"{tail(self.folder / 'console')}\n--- output\n{tail(self.folder / 'output')}")

    def check(self):
        if re.search(r"Kernel panic|BUG: |Oops:", self.text("console")):
            raise Failure(f"the guest's kernel failed\n{self.last_words()}")
        if not self.alive() and self.status is None:
            raise Failure(f"QEMU ended with {self.process.returncode}\n{self.last_words()}")

    def wait_output(self, pattern, timeout=TIMEOUT):
        """Waits until the script wrote something, so that the host can act in the middle of it."""
        def look():
            found = re.search(pattern, self.text("output"), re.M)
            if not found:
                self.check()
                if self.status is not None:
                    raise Failure(f"the script ended without {pattern!r}\n{self.last_words()}")
            return found
        return wait_for(f"guest's output {pattern!r}", look, timeout)

    def finish(self, timeout=TIMEOUT, status=0):
        """Waits until the script ended and the machine switched itself off."""
        def ended():
            self.check()
            return not self.alive()
        try:
            wait_for("end of the guest", ended, timeout)
        except Failure as failure:
            raise Failure(f"{failure}\n{self.last_words()}") from None
        if status is not None and self.status != status:
            raise Failure(f"the script ended with {self.status}\n{self.last_words()}")
        if self.process.returncode != 0:
            raise Failure(f"QEMU ended with {self.process.returncode}\n{self.last_words()}")
        return self.output

    def __exit__(self, kind, value, trace):
        self.close()


def run_guest(script, disks, **options):
    """Boots, waits for the end, and gives what the script wrote."""
    with Guest(script, disks, **options) as guest:
        return guest.finish()
