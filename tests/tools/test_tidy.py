# SPDX-License-Identifier: Apache-2.0
"""Every rule of tools/tidy.py is broken once and found; the tree itself has none broken."""
import pathlib
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n/* What it is for. */\n"
LONG = "void f(void)\n{\n" + "\tg();\n" * 71 + "}\n"

BROKEN = [
    ("src/ring/a.c", '#include "block/disk.h"\n', "may not know block/disk.h"),
    ("src/device/a.c", '#include "loop/loop.h"\n', "may not know loop/loop.h"),
    ("src/engine/a.c", '#include "block/disk.h"\n', "may not know block/disk.h"),
    ("src/transport/x/a.c", '#include "device/virtio_blk.h"\n', "may not know device/virtio_blk.h"),
    ("src/block/a.c", '#include "daemon/options.h"\n', "may not know daemon/options.h"),
    ("src/device/a.c", "#include <unistd.h>\n", "makes no system call"),
    ("src/device/a.c", '#include "base/clock.h"\n', "reads no clock"),
    ("src/attic/a.c", "", "not in the include table"),
    ("src/base/a.c", '#include "b.c"\n', "includes the source file"),
    ("src/base/a.c", "\tstrcat(a, b);\n", "strcat() is banned"),
    ("src/ring/virtq.c", "\tfree(p);\n", "free() on the data path"),
    ("src/base/a.c", "typedef struct x x;\n", "typedef of a struct"),
    ("src/base/a.c", "/* TODO: more */\n", "something left to do"),
    ("src/base/a.c", "        return;\n", "spaces where a tab belongs"),
    ("src/base/a.c", LONG, "function of 71 lines"),
    ("src/base/a.c", "int x;\n" * 801, "800 is the end"),
    ("src/base/a.c", "\n" * 30 + "\tatomic_load_relaxed(&x);\n", "why relaxed is enough"),
    ("src/base/a.c", "\n" * 30 + "\tatomic_fence_full();\n", "without the tag"),
    ("src/base/a.c", "\tatomic_fence_full(); /* [NEW1] */\n", "not in docs/memory-ordering.md"),
]


def tidy(root):
    return subprocess.run([sys.executable, TOP / "tools" / "tidy.py", "--root", root],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)


@pytest.mark.parametrize("name,text,complaint", BROKEN)
def test_broken_rule_is_found(tmp_path, name, text, complaint):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(HEAD + text)
    done = tidy(tmp_path)
    assert done.returncode == 1 and complaint in done.stdout


def test_clean_file(tmp_path):
    path = tmp_path / "src/ring/a.c"
    path.parent.mkdir(parents=True)
    path.write_text(HEAD + '#include "base/list.h"\n#include "spec/virtio.h"\n')
    assert tidy(tmp_path).returncode == 0


def test_missing_licence(tmp_path):
    path = tmp_path / "src/base/a.c"
    path.parent.mkdir(parents=True)
    path.write_text("int x;\n")
    assert "no SPDX line" in tidy(tmp_path).stdout


def test_tag_that_nobody_uses(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/memory-ordering.md").write_text("| [OLD1] | a | b |\n")
    assert "is in no source file" in tidy(tmp_path).stdout


def test_this_tree():
    done = tidy(TOP)
    assert done.returncode == 0, done.stdout
