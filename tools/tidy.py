#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that a compiler does not check.

    tools/tidy.py [--root DIR]    include table, sizes, banned calls, barrier tags
    tools/tidy.py --headers       each header compiles alone, with gcc and clang
    tools/tidy.py --format        clang-format has nothing to say

Prints file:line: what, and exits 1 if there was anything.
"""
import argparse
import pathlib
import re
import subprocess
import sys

# Room -> what it may include: a room, or a single header.
TABLE = {
    "base": set(),
    "spec": set(),
    "mem": set(),
    "loop": set(),
    "proto": {"spec"},
    "ring": {"spec", "mem"},
    "block": {"loop"},
    "engine": {"loop", "block/engine.h", "block/request.h"},
    "scsi": {"spec", "block"},
    "device": {"spec", "mem", "ring", "block", "scsi"},
    "transport": {"spec", "proto", "mem", "loop", "ring", "device/virtio_device.h",
                  "device/pci_device.h"},
    "control": {"loop", "ring/queue.h", "block/channel.h"},
    "daemon": {"spec", "mem", "loop", "proto", "ring", "block", "engine", "scsi", "device",
               "transport", "control"},
    "driver": {"spec", "proto", "mem", "loop/poll_policy.h", "ring"},
    "bench": {"base/histogram.h", "base/clock.h"},
    "cli": {"daemon", "control"},
}
# A pure device, and a ring but for its notifier, makes no system call and reads no clock.
NO_SYSTEM = re.compile(r"(unistd|fcntl|poll|pthread|signal|sys/(?!uio|types)\w+)\.h")
BANNED = re.compile(r"\b(strcat|sprintf|vsprintf|gets|alloca|atoi|atol|strtok|system|rand|assert)\s*\(")
# What the data path never does, and the files that are nothing but data path.
NOT_ON_DATA_PATH = re.compile(r"\b(malloc|calloc|realloc|free|log_\w+|pthread_mutex_\w+|usleep)\s*\(")
DATA_PATH = {"src/ring/service.c", "src/ring/virtq.c", "src/ring/virtq_chain.c",
             "src/device/virtio_blk_request.c", "src/block/merge.c", "src/block/channel_merge.c",
             "src/block/bounce.c", "src/block/io.c", "src/block/fallback.c",
             "src/transport/queue_poller.c"}
TAG = re.compile(r"\[([A-Z]+[0-9]+)\]")
RELAXED = re.compile(r"\batomic_(load|store)_relaxed\(")
ORDERED = re.compile(r"\b(atomic_(load_acquire|load_seq_cst|store_release|store_seq_cst|fence_full|"
                     r"xchg|cmpxchg)|ring_fence)\(")
FILE_LINES, FUNCTION_LINES = 800, 70


class Report:
    def __init__(self):
        self.count = 0

    def say(self, path, line, what):
        self.count += 1
        print(f"{path}:{line}: {what}")


def sources(root, *folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h"):
                yield path


def check_includes(report, name, room, lines):
    allowed = TABLE.get(room)
    if allowed is None:
        report.say(name, 1, f"room '{room}' is not in the include table of tools/tidy.py")
        return
    for number, line in enumerate(lines, 1):
        match = re.match(r'#include ["<]([^">]+)[">]', line)
        if not match:
            continue
        header = match.group(1)
        if header.endswith(".c"):
            report.say(name, number, f"includes the source file {header}")
        other = header.split("/")[0]
        if line.startswith('#include "') and other in TABLE and other != room:
            if other != "base" and other not in allowed and header not in allowed:
                report.say(name, number, f"room '{room}' may not know {header}")
        if room in ("device", "scsi", "ring") and NO_SYSTEM.fullmatch(header):
            report.say(name, number, f"<{header}>: room '{room}' makes no system call")
        if room in ("device", "scsi") and header == "base/clock.h":
            report.say(name, number, "a pure device reads no clock")


def check_functions(report, name, lines):
    """A function begins with '{' in the first column and ends with '}' there."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start - 1 > FUNCTION_LINES:
                report.say(name, start, f"function of {number - start - 1} lines, "
                                        f"{FUNCTION_LINES} is the end")
            start = None


def near(lines, index, before, pattern):
    return any(re.search(pattern, line) for line in lines[max(0, index - before):index + 2])


def check_atomics(report, name, lines, tags):
    opening = "\n".join(lines[:20])
    for index, line in enumerate(lines):
        for tag in TAG.findall(line):
            if re.search(r"/\*|\*|//", line):
                tags.setdefault(tag, (name, index + 1))
        if line.lstrip().startswith(("#define", "*", "/*")) or name == "src/base/atomic.h":
            continue
        if RELAXED.search(line) and not comment_says_relaxed(lines, index, opening):
            report.say(name, index + 1, "a relaxed access that does not say why relaxed is enough")
        if ORDERED.search(line) and not near(lines, index, 4, TAG.pattern + "|relaxed would do"):
            report.say(name, index + 1, "an ordered access without the tag of its pair")


def comment_says_relaxed(lines, index, opening):
    window = lines[max(0, index - 10):index + 3]
    return "relaxed" in opening or any(
        re.search(r"(/\*|^\s*\*|//).*relaxed", line, re.I) for line in window)


def check_file(report, root, path, tags):
    name = str(path.relative_to(root))
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    if len(lines) - 1 > FILE_LINES:
        report.say(name, len(lines), f"{len(lines) - 1} lines, {FILE_LINES} is the end")
    if not lines[0].startswith("/* SPDX-License-Identifier: Apache-2.0"):
        report.say(name, 1, "no SPDX line")
    check_functions(report, name, lines)
    for number, line in enumerate(lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            report.say(name, number, "something left to do: finish it")
        if re.search(r"\btypedef\s+struct\b", line):
            report.say(name, number, "a typedef of a struct")
        if re.match(r" {8,}[^ \\]", line):
            report.say(name, number, "spaces where a tab belongs")
        if name.startswith("src/"):
            match = BANNED.search(line)
            if match and not line.lstrip().startswith(("*", "/*")):
                report.say(name, number, f"{match.group(1)}() is banned")
            match = NOT_ON_DATA_PATH.search(line)
            if match and name in DATA_PATH and not line.lstrip().startswith(("*", "/*")):
                report.say(name, number, f"{match.group(1)}() on the data path")
    if name.startswith("src/"):
        check_includes(report, name, name.split("/")[1], lines)
        check_atomics(report, name, lines, tags)


def check_tags(report, root, tags):
    document = root / "docs" / "memory-ordering.md"
    known = set()
    if document.exists():
        known = set(re.findall(r"^\| \[([A-Z]+[0-9]+)\] \|", document.read_text(), re.M))
    for tag, (name, line) in sorted(tags.items()):
        if tag not in known:
            report.say(name, line, f"[{tag}] is not in docs/memory-ordering.md")
    for tag in sorted(known - set(tags)):
        report.say("docs/memory-ordering.md", 1, f"[{tag}] is in no source file")


def check_headers(report, root):
    for path in sources(root, "src", "include"):
        if path.suffix != ".h":
            continue
        for compiler in ("gcc", "clang"):
            done = subprocess.run(
                [compiler, "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                 "-Wno-unused-parameter", "-Wno-unused-function", "-Isrc", "-Iinclude",
                 "-fsyntax-only", "-x", "c", "-include", str(path), "/dev/null"],
                cwd=root, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                report.say(path.relative_to(root), 1,
                           f"does not compile alone with {compiler}:\n{done.stderr[:600]}")


def check_format(report, root):
    files = [str(p.relative_to(root)) for p in sources(root, "src", "tests", "include", "bench")]
    done = subprocess.run(["clang-format", "--dry-run", "-Werror"] + files, cwd=root,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        report.count += 1
        print(done.stderr[:4000])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", default=str(pathlib.Path(__file__).resolve().parent.parent))
    parser.add_argument("--headers", action="store_true")
    parser.add_argument("--format", action="store_true")
    args = parser.parse_args()
    root = pathlib.Path(args.root)
    report = Report()
    if args.headers:
        check_headers(report, root)
    elif args.format:
        check_format(report, root)
    else:
        tags = {}
        for path in sources(root, "src", "include", "tests", "bench"):
            check_file(report, root, path, tags)
        check_tags(report, root, tags)
    if report.count:
        print(f"{report.count} complaints", file=sys.stderr)
    return 1 if report.count else 0


if __name__ == "__main__":
    sys.exit(main())
