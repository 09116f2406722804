# SPDX-License-Identifier: Apache-2.0
"""Every rule of tools/tidy.py is broken once and found; the tree itself has none broken."""
import pathlib
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n/* What this file is for. */\n"
LONG = "void f(void)\n{\n" + "\tg();\n" * 68 + "}\n"
DOC = "| tag | one side | other side |\n|---|---|---|\n| [VQ1] | a | b |\n"
USES_TAG = HEAD + "void f(void)\n{\n\tatomic_store_release(p, 1); /* [VQ1] */\n}\n"
AFTER = "\n" * 12  # out of sight of the opening comment

INCLUDES = [
    # the file, what it includes, allowed
    ("src/base/a.c", "spec/virtio.h", False),
    ("src/mem/a.c", "base/list.h", True),
    ("src/mem/a.c", "loop/loop.h", False),
    ("src/loop/a.c", "block/disk.h", False),
    ("src/proto/a.c", "spec/virtio.h", True),
    ("src/proto/a.c", "mem/guest_memory.h", False),
    ("src/ring/a.c", "mem/guest_memory.h", True),
    ("src/ring/a.c", "block/request.h", False),
    ("src/block/a.c", "loop/loop.h", True),
    ("src/block/a.c", "engine/fault.h", False),
    ("src/block/a.c", "daemon/options.h", False),
    ("src/engine/a.c", "block/engine.h", True),
    ("src/engine/a.c", "block/request.h", True),
    ("src/engine/a.c", "block/disk.h", False),
    ("src/scsi/a.c", "ring/virtq.h", False),
    ("src/device/a.c", "block/channel.h", True),
    ("src/device/a.c", "loop/loop.h", False),
    ("src/device/a.c", "transport/queue_poller.h", False),
    ("src/device/nvme/a.c", "base/unix_socket.h", False),
    ("src/device/a.c", "base/clock.h", False),
    ("src/transport/x/a.c", "device/virtio_device.h", True),
    ("src/transport/x/a.c", "device/pci_device.h", True),
    ("src/transport/x/a.c", "device/virtio_blk.h", False),
    ("src/transport/x/a.c", "block/disk.h", False),
    ("src/control/a.c", "ring/queue.h", True),
    ("src/control/a.c", "ring/virtq.h", False),
    ("src/daemon/a.c", "engine/fault.h", True),
    ("src/daemon/a.c", "driver/client.h", False),
    ("src/driver/a.c", "loop/poll_policy.h", True),
    ("src/driver/a.c", "loop/loop.h", False),
    ("src/driver/a.c", "ring/virtq.h", False),
    ("src/driver/inproc.c", "block/disk.h", True),
    ("src/bench/a.c", "base/histogram.h", True),
    ("src/bench/a.c", "ring/virtq.h", False),
    ("src/cli/a.c", "daemon/commands.h", True),
    ("src/cli/a.c", "daemon/daemon.h", False),
    ("tests/unit/a.c", "daemon/daemon.h", True),
    ("include/ringside/a.h", "base/list.h", False),
]

BROKEN = [
    ("src/attic/a.c", "", "no such room"),
    ("src/a.c", "", "no such room"),
    ("src/ring/a.c", '#include "virtq.h"\n', "named by their path"),
    ("src/base/a.c", '#include "base/b.c"\n', "is compiled, not included"),
    ("tests/unit/a.c", '#include "ring/virtq.c"\n', "is compiled, not included"),
    ("src/device/a.c", "#include <unistd.h>\n", "no system call"),
    ("src/device/a.c", "#include <sys/mman.h>\n", "no system call"),
    ("src/device/a.c", "#include <pthread.h>\n", "starts no thread"),
    ("src/ring/a.c", "#include <sys/epoll.h>\n", "knows no loop, socket or thread"),
    ("src/ring/a.c", "#include <sys/socket.h>\n", "knows no loop, socket or thread"),
    ("src/loop/a.c", "#include <stdatomic.h>\n", "atomics come from"),
    ("src/device/a.c", "\tnow = clock_now_ns();\n", "no clock"),
    ("src/base/a.c", "\tstrcat(a, b);\n", "strcat()"),
    ("src/base/a.c", "\tsprintf(a, b);\n", "sprintf()"),
    ("src/base/a.c", "\tn = atoi(a);\n", "atoi()"),
    ("src/base/a.c", "\tsignal(SIGTERM, f);\n", "signal()"),
    ("src/base/a.c", "\tsystem(a);\n", "system()"),
    ("src/base/a.c", "\tp = alloca(n);\n", "alloca()"),
    ("src/base/a.c", "\tassert(x);\n", "use ASSERT"),
    ("src/mem/a.c", "\texit(1);\n", "must not end the daemon"),
    ("src/ring/virtq.c", "\tfree(p);\n", "the data path does not"),
    ("src/ring/virtq_driver.c", "void f(void)\n{\n\tfree(p);\n}\n", "the data path does not"),
    ("src/device/virtio_blk_request.c", "\tlog_warn(p);\n", "the data path does not"),
    ("src/block/merge.c", "\tpthread_mutex_lock(p);\n", "the data path does not"),
    ("src/base/a.c", "typedef struct x x_t;\n", "a struct is called struct"),
    ("src/base/a.c", "/* TO" "DO: more */\n", "say what is missing"),
    ("tools/a.py", "# FIX" "ME\n", "say what is missing"),
    ("src/base/a.c", "        return;\n", "indented with tabs"),
    ("src/base/a.c", "int x; \n", "blanks at the end"),
    ("src/base/a.c", "int x; /* " + "x" * 100 + " */\n", "100 at most"),
    ("src/base/a.c", "int x;", "no line feed at the end"),
    ("src/base/a.c", LONG, "f() has 71 lines"),
    ("src/base/a.c", "int x;\n" * 801, "800 is the end"),
    ("src/base/a.h", "int x;\n", "no include guard"),
    ("src/base/a.c", AFTER + "\tatomic_load_relaxed(&x);\n", "why relaxed is enough"),
    ("src/base/a.c", AFTER + '\tf("relaxed", atomic_load_relaxed(&x));\n', "why relaxed is enough"),
    ("src/base/a.c", AFTER + "\tatomic_fence_full();\n", "without a tag"),
    ("src/base/a.c", AFTER + "\tx = atomic_load_acquire(&y);\n", "without a tag"),
    ("src/base/a.c", AFTER + "\tatomic_fetch_sub_acq_rel(&y, 1);\n", "without a tag"),
    ("src/base/a.c", "\tatomic_fence_full(); /* [NEW1] */\n", "not in the table"),
    ("src/base/a.c", "\t__atomic_load_n(&x, 0);\n", "atomics come from"),
    ("src/base/a.c", "\tvolatile int x;\n", "atomics come from"),
]

FINE = [
    ("src/base/a.c", "/* never strcat() */\n\tf(\"strcat(a)\");\n"),
    ("src/base/a.c", LONG.replace("\tg();\n", "", 1)),
    ("src/base/a.c", "int x;\n" * 798),
    ("src/base/a.c", AFTER + "\t/* relaxed: a statistic */\n\tatomic_load_relaxed(&x);\n"),
    ("src/base/a.c", AFTER + "\t/* [VQ1] pairs */\n\tatomic_fence_full();\n"),
    ("src/base/a.c", '\t__asm__ volatile("" ::: "memory");\n'),
    ("src/ring/virtq_driver.c", "void virtq_driver_fini(void)\n{\n\tfree(p);\n}\n"),
    ("src/device/a.c", "#include <sys/uio.h>\n\tops->read(x);\n"),
    ("src/base/a.h", "#ifndef BASE_A_H\n#define BASE_A_H\n#endif\n"),
    ("src/base/d.c", '#define A \\\n                    \\\n\tb\n'),
]


def make(root, name, text):
    """A tree that is in order, and one more file."""
    files = {"docs/memory-ordering.md": DOC, "src/base/used.c": USES_TAG, name: text}
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


def tidy(root, *args):
    return subprocess.run([sys.executable, TOP / "tools" / "tidy.py", "--root", root, *args],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)


def found(root, name, complaint, *args):
    """That complaint, about that file, and no other."""
    done = tidy(root, *args)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and len(lines) >= 1, done
    assert all(line.startswith(name + ":") and complaint in line for line in lines), lines


@pytest.mark.parametrize("name,header,allowed", INCLUDES)
def test_include_table(tmp_path, name, header, allowed):
    text = HEAD + f'#include "{header}"\n'
    if name.endswith(".h"):
        text = HEAD + f'#ifndef RINGSIDE_A_H\n#define RINGSIDE_A_H\n#include "{header}"\n#endif\n'
    make(tmp_path, name, text)
    if allowed:
        assert tidy(tmp_path).returncode == 0
    else:
        found(tmp_path, name, f"includes {header}")


@pytest.mark.parametrize("name,text,complaint", BROKEN)
def test_broken_rule_is_found(tmp_path, name, text, complaint):
    make(tmp_path, name, HEAD + text)
    found(tmp_path, name, complaint)


@pytest.mark.parametrize("name,text", FINE)
def test_what_is_fine(tmp_path, name, text):
    make(tmp_path, name, HEAD + text)
    done = tidy(tmp_path)
    assert done.returncode == 0, done.stdout


def test_no_licence(tmp_path):
    make(tmp_path, "src/base/a.c", "/* What this file is for. */\nint x;\n")
    found(tmp_path, "src/base/a.c", "no licence line")


def test_no_opening_comment(tmp_path):
    """A .c file may leave it to its header."""
    make(tmp_path, "src/base/a.c", HEAD.split("\n", maxsplit=1)[0] + "\nint x;\n")
    found(tmp_path, "src/base/a.c", "no opening comment")
    make(tmp_path, "src/base/a.h", HEAD + "#ifndef BASE_A_H\n#define BASE_A_H\n#endif\n")
    assert tidy(tmp_path).returncode == 0


def test_tag_that_nobody_uses(tmp_path):
    make(tmp_path, "docs/memory-ordering.md", DOC + "| [OLD1] | a | b |\n")
    found(tmp_path, "docs/memory-ordering.md", "not used in src")


def test_empty_tree(tmp_path):
    assert tidy(tmp_path).returncode == 1


def test_headers(tmp_path):
    guarded = "#ifndef BASE_A_H\n#define BASE_A_H\n%s\n#endif\n"
    make(tmp_path, "src/base/a.h", HEAD + guarded % "uint32_t f(void);")
    found(tmp_path, "src/base/a.h", "src/base/a.h alone, with", "--headers")
    make(tmp_path, "src/base/a.h", HEAD + guarded % "#include <stdint.h>\nuint32_t f(void);")
    assert tidy(tmp_path, "--headers").returncode == 0
    make(tmp_path, "src/base/a.h", HEAD + "struct a {\n\tint b;\n};\n")
    found(tmp_path, "src/base/a.h", "redefinition", "--headers")


def test_format(tmp_path):
    make(tmp_path, ".clang-format", (TOP / ".clang-format").read_text())
    assert tidy(tmp_path, "--format").returncode == 0
    make(tmp_path, "src/base/a.c", HEAD + "int  f( void );\n")
    found(tmp_path, "src/base/a.c", "clang-format -i would change", "--format")


@pytest.mark.parametrize("args", [[], ["--headers"], ["--format"]])
def test_this_tree(args):
    done = tidy(TOP, *args)
    assert done.returncode == 0, done.stdout
