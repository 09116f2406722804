#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what a compiler does not: who may include whom, what may not be called, and the style.

    tools/tidy.py              the rules of this file; a second
    tools/tidy.py --headers    every header compiles alone, with gcc and clang
    tools/tidy.py --format     clang-format would change nothing

One line a complaint, `file:line: what: why`; exit 1 if there is any. The rules are tables at the
top. They are explained in docs/architecture.md (rooms), docs/memory-ordering.md (tags, relaxed)
and CONTRIBUTING.md (style).
"""
import argparse
import bisect
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

# ---- who may include whom: a room, or one header of it

ROOMS = {
    'base': [],
    'spec': ['base'],
    'mem': ['base'],
    'loop': ['base'],
    'proto': ['base', 'spec'],
    'ring': ['base', 'spec', 'mem'],
    'block': ['base', 'loop'],
    'engine': ['base', 'loop', 'block/engine.h', 'block/request.h'],
    'scsi': ['base', 'spec', 'block'],
    'device': ['base', 'spec', 'mem', 'ring', 'block', 'scsi'],
    'transport': ['base', 'spec', 'proto', 'mem', 'loop', 'ring', 'device/virtio_device.h',
                  'device/pci_device.h'],
    # Of ring and block the structs of statistics only.
    'control': ['base', 'loop', 'ring/queue.h', 'block/channel.h'],
    'daemon': ['base', 'spec', 'mem', 'loop', 'proto', 'ring', 'block', 'engine', 'scsi', 'device',
               'transport', 'control', 'ringside'],
    'driver': ['base', 'spec', 'proto', 'mem', 'loop/poll_policy.h', 'loop/wake_cost.h',
               'ring/virtq_driver.h',
               'ring/nvme_qpair.h', 'ring/event_idx.h', 'ring/notifier.h', 'ringside'],
    'bench': ['ringside', 'base'],
    'cli': ['base', 'ringside', 'daemon/commands.h', 'bench/bench.h', 'control/client.h'],
    'ringside': [],
}
# Files that may more than their room.
ALSO = {'src/driver/inproc': ['loop', 'block', 'engine']}
# A device has no clock, descriptor, socket or log line of its own, though base has them.
NOT = {
    'device': ['base/clock.h', 'base/fd.h', 'base/unix_socket.h'],
    'scsi': ['base/clock.h', 'base/fd.h', 'base/unix_socket.h', 'base/log.h'],
}

PURE = (r'(unistd|fcntl|poll|pthread|threads|signal|sched|time|spawn|dirent|libaio|liburing)\.h|'
        r'sys/(?!uio\.h|types\.h).*')
NO_NETWORK = r'sys/(socket|un|epoll|poll|timerfd|signalfd)\.h|(poll|pthread|netdb)\.h|netinet/.*'
SYSTEM_HEADERS = {  # room: (headers it may not include, why)
    'device': (PURE, 'a device is pure: it makes no system call and starts no thread'),
    'scsi': (PURE, 'a device is pure: it makes no system call and starts no thread'),
    'proto': (PURE, 'a codec turns bytes into structs; descriptors are the session\'s'),
    'spec': (PURE, 'wire formats only'),
    'ring': (NO_NETWORK, 'a ring knows no loop, socket or thread'),
    'block': (r'sys/(socket|un)\.h|libaio\.h|liburing\.h', 'the block layer names no engine'),
    'control': (r'pthread\.h', 'statistics know no thread'),
}

# ---- what may not be called

BANNED = [  # where (prefix of the path), names, why
    ('src', 'strcpy|strcat|strncpy|strncat|stpcpy|sprintf|vsprintf|gets', 'no bound, or no end'),
    ('src', 'strtok|asctime|ctime|gmtime|localtime|readdir_r|tmpnam|tempnam|mktemp|rand|srand',
     'one state for all threads, or a race'),
    ('src', 'alloca|setjmp|longjmp', 'the stack is not for that'),
    ('src', 'atoi|atol|atoll', 'takes anything for a number; see daemon/values.h'),
    ('src', 'system|popen', 'a shell between us and the program'),
    ('src', 'signal', 'use sigaction or a signalfd'),
    ('src', 'assert', 'use ASSERT, which stays in release builds'),
    ('src', 'select|FD_SET', 'fails above 1024 descriptors'),
    ('src', 'abort|exit|_exit', 'one client\'s fault must not end the daemon'),
    ('src/device', r'clock_\w+|time|gettimeofday|pthread_\w+|eventfd_\w+|syscall|read|write|open|'
     r'close|ioctl|mmap|munmap', 'a device is pure: no system call, no clock, no thread'),
    ('src/scsi', r'clock_\w+|pthread_\w+|eventfd_\w+|syscall|log_\w+', 'the target is pure'),
]
BANNED_BUT = {  # file: names that it may call
    'src/base/log.c': ['abort'],
    'src/base/unix_socket.c': ['strcpy'],  # the line above it checks the length
    'src/daemon/daemon.c': ['_exit'],  # a second signal; a thread stuck in write(2)
    'src/daemon/signals.c': ['signal'],  # to SIG_DFL and SIG_IGN only
    'src/loop/wake_cost.c': ['abort'],
}

# The data path: no allocation, no lock, no log line, but in the functions named (start and end).
DATA_PATH_BAN = (r'malloc|calloc|realloc|reallocarray|posix_memalign|aligned_alloc|free|strdup|'
                 r'asprintf|log_\w+|pthread_mutex_\w+|pthread_cond_\w+|usleep|nanosleep')
DATA_PATH = {
    'src/base/defer.c': '',
    'src/base/mpsc.h': '',
    'src/ring/service.c': '',
    'src/ring/virtq.c': '',
    'src/ring/virtq_chain.c': '',
    'src/ring/virtq_driver.c': 'virtq_driver_init|virtq_driver_fini',
    'src/device/virtio_blk_request.c': '',
    'src/transport/queue_poller.c': '',
    'src/loop/loop_poll.c': '',
    'src/loop/poll_policy.c': '',
    'src/block/merge.c': '',
    'src/block/channel.c': r'channel_create|channel_destroy|\w+_init',
    'src/block/channel_merge.c': '',
    'src/block/io.c': '',
    'src/block/bounce.c': 'bounce_init',
    'src/block/fallback.c': '',
    'src/engine/io_uring_submit.c': '',
    'src/bench/job.c': 'job_init|job_fini',
    'src/bench/verify.c': 'verify_region_init|verify_region_fini',
}

# ---- atomics

ATOMIC_HOME = 'src/base/atomic.h'
ORDERED = re.compile(r'\b(atomic_(load_acquire|load_seq_cst|store_release|store_seq_cst|xchg|'
                     r'cmpxchg|fetch_\w+_(acquire|release|acq_rel|seq_cst)|fence_\w+)|ring_fence)'
                     r'\s*\(')
RELAXED = re.compile(r'\b(atomic_(load|store)_relaxed)\s*\(')
TAG = re.compile(r'\[([A-Z]+[0-9]+)\]')

MAX_FILE, MAX_FUNCTION, MAX_COLUMNS = 800, 70, 100

# ---- reading C

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


class Source:
    """A C file: its lines, the same without comments and strings, and its comments by line."""

    def __init__(self, root, path):
        self.name = path.relative_to(root).as_posix()
        self.text = path.read_text(errors='replace')
        self.lines = self.text.split('\n')
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.comments = {}
        code, end = [], 0
        for m in TOKEN.finditer(self.text):
            code.append(self.text[end:m.start()])
            end = m.end()
            if m[0].startswith('/'):
                for i, part in enumerate(m[0].split('\n')):
                    n = self.line_of(m.start()) + i
                    self.comments[n] = self.comments.get(n, '') + part
                code.append(re.sub(r'[^\n]', ' ', m[0]))
            else:
                code.append(m[0][0] + re.sub(r'[^\n]', ' ', m[0][1:-1]) + m[0][-1])
        code.append(self.text[end:])
        self.code = ''.join(code)
        self.code_lines = self.code.split('\n')

    def line_of(self, offset):
        return bisect.bisect_right(self.starts, offset)

    def comment_near(self, line, above, below=0):
        return ' '.join(self.comments.get(n, '') for n in range(line - above, line + below + 1))

    def opening(self):
        """The comments before the first line of code, without the licence line."""
        text = ''
        for n, line in enumerate(self.code_lines, 1):
            if line.strip():
                break
            text += self.comments.get(n, '') + ' '
        return re.sub(r'/\*\s*SPDX-License-Identifier: \S+\s*\*/', '', text)

    def functions(self):
        """(name, first line, last line) of every function: its brace stands alone in column 0."""
        found, start = [], None
        for n, line in enumerate(self.code_lines, 1):
            if line == '{':
                start = n - 1
                while start > 1 and not re.search(r'[;}]\s*$|^\s*$|^#', self.code_lines[start - 2]):
                    start -= 1
                head = ' '.join(self.code_lines[start - 1:n - 1])
                names = [x for x in re.findall(r'(\w+)\s*\(', head)
                         if not re.match(r'__attribute__|cleanup|aligned|printf_like', x)]
                name = names[0] if names else '?'
            elif line.startswith('}') and start:
                found.append((name, start, n))
                start = None
        return found


class Tidy:
    def __init__(self, root):
        self.root = root
        self.complaints = []
        self.sources = [Source(root, p) for p in c_files(root)]
        self.names = {s.name for s in self.sources}

    def say(self, name, line, what, why):
        self.complaints.append((name, line, f'{name}:{line}: {what}: {why}'))

    def run(self):
        self.used_tags = set()
        self.known_tags = self.tag_table()
        for s in self.sources:
            self.whole_file(s)
            self.includes(s)
            self.calls(s)
            if s.name.startswith('src/') and s.name != ATOMIC_HOME:
                self.atomics(s)
        for tag, line in self.known_tags.items():
            if tag not in self.used_tags:
                self.say('docs/memory-ordering.md', line, f'tag [{tag}]', 'not used in src')
        self.open_ends()

    # -- the file as such
    def whole_file(self, s):
        if not s.lines[0].startswith('/* SPDX-License-Identifier: Apache-2.0 */'):
            self.say(s.name, 1, 'no licence line', 'the first line names the licence (SPDX)')
        if not self.is_explained(s):
            self.say(s.name, 2, 'no opening comment', 'a file begins with what it is for')
        if len(s.lines) - 1 > MAX_FILE:
            self.say(s.name, len(s.lines), f'{len(s.lines) - 1} lines', f'{MAX_FILE} is the end')
        for name, first, last in s.functions():
            if last - first + 1 > MAX_FUNCTION:
                self.say(s.name, first, f'{name}() has {last - first + 1} lines',
                         f'{MAX_FUNCTION} is the end')
        if s.name.endswith('.h'):
            self.guard(s)
        for n, line in enumerate(s.lines, 1):
            if re.match(r' {4,}[^ \\]', line):
                self.say(s.name, n, 'indented with spaces', 'C is indented with tabs')
            if line != line.rstrip():
                self.say(s.name, n, 'blanks at the end of the line', 'noise in every later change')
            if '"' not in line and len(line.expandtabs(8)) > MAX_COLUMNS:
                self.say(s.name, n, f'{len(line.expandtabs(8))} columns', f'{MAX_COLUMNS} at most')
        if s.text and not s.text.endswith('\n'):
            self.say(s.name, len(s.lines), 'no line feed at the end', 'a text file has one')
        for m in re.finditer(r'\btypedef\s+(struct|union)\b', s.code):
            self.say(s.name, s.line_of(m.start()), f'typedef {m[1]}', 'a struct is called struct')

    def is_explained(self, s):
        """By itself, by its header, or, a unit test, by the name that it shares with a module."""
        if len(re.sub(r'[\s/*]', '', s.opening())) >= 12:
            return True
        path = pathlib.PurePosixPath(s.name)
        if path.suffix == '.c' and str(path.with_suffix('.h')) in self.names:
            return True
        module = re.match(r'tests/unit/test_(\w+)\.c$', s.name)
        return bool(module) and any(n.endswith(f'/{module[1]}.h') for n in self.names)

    def guard(self, s):
        want = '[A-Z0-9_]+_H'
        if s.name.startswith(('src/', 'include/')):
            want = re.sub(r'\W', '_', s.name.split('/', 1)[1]).upper()
        if not re.search(rf'^#ifndef ({want})\n#define \1$', s.code, re.M):
            self.say(s.name, 1, 'no include guard', f'{want}, made from the path, cannot collide')

    # -- rooms
    def includes(self, s):
        parts = s.name.split('/')
        room = parts[1] if parts[0] in ('src', 'include') else None
        if parts[0] == 'src' and (room not in ROOMS or len(parts) < 3):
            self.say(s.name, 1, 'no such room', 'tools/tidy.py has the table of rooms')
            return
        for n, line in enumerate(s.lines, 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not m:
                continue
            kind, header = m.groups()
            if header.endswith('.c'):
                self.say(s.name, n, f'includes {header}', 'a .c file is compiled, not included')
            elif room and (kind == '"' or header.startswith('ringside/')):
                self.included(s, n, room, header)
            elif room in SYSTEM_HEADERS and re.fullmatch(SYSTEM_HEADERS[room][0], header):
                self.say(s.name, n, f'{room} includes <{header}>', SYSTEM_HEADERS[room][1])
            elif header == 'stdatomic.h':
                self.say(s.name, n, 'includes <stdatomic.h>', f'atomics come from {ATOMIC_HOME}')

    def included(self, s, n, room, header):
        other = header.split('/')[0]
        if other not in ROOMS or '/' not in header:
            self.say(s.name, n, f'includes "{header}"', 'headers are named by their path in src')
            return
        allowed = [room] + ROOMS[room]
        for prefix, more in ALSO.items():
            if s.name.startswith(prefix):
                allowed = allowed + more
        if header in NOT.get(room, []):
            self.say(s.name, n, f'{room} includes {header}', f'{room} has no use for that: it is pure')
        elif other not in allowed and header not in allowed:
            self.say(s.name, n, f'{room} includes {header}',
                     f'{room} may include {", ".join(ROOMS[room]) or "nothing"}')

    # -- calls
    def calls(self, s):
        for where, names, why in BANNED:
            if s.name.startswith(where):
                but = BANNED_BUT.get(s.name, [])
                for m in re.finditer(rf'(?<![\w.>])({names})\s*\(', s.code):
                    if m[1] not in but:
                        self.say(s.name, s.line_of(m.start()), f'{m[1]}()', why)
        if s.name not in DATA_PATH:
            return
        exempt = [(a, b) for name, a, b in s.functions()
                  if re.fullmatch(DATA_PATH[s.name] or '-', name)]
        for m in re.finditer(rf'(?<![\w.>])({DATA_PATH_BAN})\s*\(', s.code):
            line = s.line_of(m.start())
            if not any(a <= line <= b for a, b in exempt):
                self.say(s.name, line, f'{m[1]}()',
                         'the data path does not allocate, lock, log or sleep')

    # -- atomics and their tags
    def tag_table(self):
        doc = self.root / 'docs' / 'memory-ordering.md'
        if not doc.exists():
            self.say('docs/memory-ordering.md', 1, 'missing', 'it lists the tags of barriers')
            return {}
        rows = re.finditer(r'^\|\s*\[([A-Z]+[0-9]+)\]', doc.read_text(), re.M)
        return {m[1]: doc.read_text().count('\n', 0, m.start()) + 1 for m in rows}

    def atomics(self, s):
        for n, comment in s.comments.items():
            for tag in TAG.findall(comment):
                self.used_tags.add(tag)
                if tag not in self.known_tags:
                    self.say(s.name, n, f'tag [{tag}]', 'not in the table of memory-ordering.md')
        for m in re.finditer(r'(__atomic_\w+|__sync_\w+|\b_Atomic\b)|(?<!__asm__ )\bvolatile\b',
                             s.code):
            self.say(s.name, s.line_of(m.start()), m[0], f'atomics come from {ATOMIC_HOME}')
        opening, functions = s.opening(), s.functions()
        for m in ORDERED.finditer(s.code):
            n = s.line_of(m.start())
            if not re.search(TAG.pattern + '|relaxed would do', s.comment_near(n, 4, 1)):
                self.say(s.name, n, f'{m[1]}() without a tag',
                         'an order has a partner; name it, such as [VQ1]')
        for m in RELAXED.finditer(s.code):
            n = s.line_of(m.start())
            above = max([4] + [n - first for _, first, last in functions if first <= n <= last])
            if not re.search('relaxed', s.comment_near(n, above) + opening, re.I):
                self.say(s.name, n, f'{m[1]}() without a reason',
                         'say why relaxed is enough, in the function above it')

    # -- all text files
    def open_ends(self):
        word = re.compile(r'\b(TO' + r'DO|FIX' + r'ME|XX' + r'X)\b')
        for path in text_files(self.root):
            for n, line in enumerate(path.read_text(errors='replace').split('\n'), 1):
                m = word.search(line)
                if m:
                    self.say(path.relative_to(self.root).as_posix(), n, m[1],
                             'do it, or say what is missing where users look')


def walk(root, tops, suffixes):
    for top in tops:
        base = root / top
        for folder, folders, files in os.walk(base):
            folders[:] = sorted(f for f in folders if not f.startswith(('.', '__pycache__')))
            for name in sorted(files):
                if name.endswith(suffixes):
                    yield pathlib.Path(folder, name)


def c_files(root):
    return list(walk(root, ('src', 'include', 'tests', 'bench', 'examples', 'tools'), ('.c', '.h')))


def text_files(root):
    yield from walk(root, ('src', 'include', 'tests', 'bench', 'examples', 'tools', 'man', 'share',
                           '.ci'),
                    ('.c', '.h', '.py', '.sh', '.pml', '.build', '.in', '.1', 'run', 'init'))
    for name in ('Makefile', 'meson.build', 'meson_options.txt'):
        if (root / name).exists():
            yield root / name


def in_parallel(commands):
    """Runs [(key, argv, stdin)], as many at a time as there are cores; yields (key, result)."""
    def one(job):
        return job[0], subprocess.run(job[1], input=job[2], capture_output=True, text=True,
                                      check=False)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(one, commands)


def check_headers(root):
    """Each header twice in a file of its own: it includes what it needs, and its guard works."""
    flags = ('-x c -fsyntax-only -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Wstrict-prototypes '
             '-Werror -Wno-unused-parameter -Isrc -Iinclude -Itests -').split()
    jobs = []
    for path in c_files(root):
        name = path.relative_to(root).as_posix()
        if name.endswith('.h'):
            text = f'#include "{root / name}"\n' * 2
            jobs += [((name, cc), [cc, '-I' + str(path.parent)] * (name.startswith('tests/')) or
                      [cc], text) for cc in ('gcc', 'clang')]
    jobs = [(key, argv + flags, text) for key, argv, text in jobs]
    os.chdir(root)
    for (name, cc), result in in_parallel(jobs):
        for line in result.stderr.splitlines():
            m = re.match(r'(\S+?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)', line)
            if m:
                where = os.path.relpath(m[1], root) if m[1].startswith('/') else m[1]
                yield f'{where}:{m[2]}: {m[3]}: {name} alone, with {cc}'
        if result.returncode and 'error:' not in result.stderr:
            yield f'{name}:1: {cc}: {result.stderr.strip()[:200]}'


def check_format(root):
    jobs = []
    for path in c_files(root):
        jobs.append((path.relative_to(root).as_posix(),
                     ['clang-format', '--dry-run', '-Werror', str(path)], None))
    for name, result in in_parallel(jobs):
        places = re.findall(r':(\d+):\d+: error: code should be clang-formatted', result.stderr)
        if places:
            yield f'{name}:{places[0]}: format: clang-format -i would change {len(places)} places'
        elif result.returncode:
            yield f'{name}:1: format: {result.stderr.strip()[:200]}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--headers', action='store_true', help='every header compiles alone')
    parser.add_argument('--format', action='store_true', help='clang-format changes nothing')
    parser.add_argument('--root', type=pathlib.Path, help='the tree (default: this one)',
                        default=pathlib.Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    root = args.root.resolve()
    if args.headers:
        lines = list(check_headers(root))
    elif args.format:
        lines = list(check_format(root))
    else:
        tidy = Tidy(root)
        tidy.run()
        lines = [text for _, _, text in sorted(tidy.complaints)]
        if not tidy.sources:
            lines.append(f'{root}:1: no C files: this is not the tree')
    for line in dict.fromkeys(lines):
        print(line)
    if lines:
        print(f'tidy: {len(dict.fromkeys(lines))} complaints', file=sys.stderr)
    return 1 if lines else 0


if __name__ == '__main__':
    sys.exit(main())
