# SPDX-License-Identifier: Apache-2.0
"""Report pages in a browser: no script errors, every plot drawn, nothing cut off or overlapping.

RINGSIDE      the program (default build/ringside); its report of a real run is looked at, too
MAKE_REPORT   makes pages with made-up figures (default build/tests/report/make_report)
SCREENSHOTS   a folder: leave a picture of each page there, for a person to look at
"""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RINGSIDE = os.environ.get('RINGSIDE') or str(ROOT / 'build' / 'ringside')
MAKE_REPORT = os.environ.get('MAKE_REPORT') or str(ROOT / 'build/tests/report/make_report')
SCREENSHOTS = os.environ.get('SCREENSHOTS')
PROBE = pathlib.Path(__file__).with_name('probe.js').read_text(encoding='utf-8')
TIMEOUT = 120

CATCH = """<script>
window.errors = [];
window.onerror = function (message) { window.errors.push(String(message)); };
document.addEventListener('securitypolicyviolation', function (e) {
  window.errors.push('policy: ' + e.violatedDirective + ' ' + e.blockedURI); });
</script>"""

# What is on each page; a kind as often as it is cut into plots.
PLOTS = {
    'one': ['Latency', 'Throughput', 'Notifications a request', 'CPU a request'],
    'two': ['Latency', 'Throughput', 'Notifications a request', 'CPU a request'],
    'depths': ['Latency', 'Throughput over queue depth', 'Notifications a request',
               'CPU a request'],
    'blocks': ['Latency', 'Throughput over block size', 'Notifications a request',
               'CPU a request'],
    'matrix': ['Latency', 'Throughput over block size', 'Notifications a request',
               'CPU a request'],
    'strange': ['Latency', 'Throughput', 'Notifications a request', 'CPU a request'],
    'nothing': [],
}


def browser(folder, *args):
    """Chromium, run to its end; as root it needs --no-sandbox."""
    program = shutil.which('chromium-headless-shell') or shutil.which('chromium')
    assert program, 'no browser: install the packages of packages.txt'
    return subprocess.run(
        [program, '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
         '--disable-dev-shm-usage', '--enable-logging=stderr', f'--user-data-dir={folder}/profile',
         *args], timeout=TIMEOUT, check=True, capture_output=True, text=True, errors='replace')


def look(folder, page, width, dark):
    """What the probe says of the page in a window of that width."""
    text = page.read_text(encoding='utf-8', errors='replace')
    probed = folder / f'{page.stem}-probed.html'
    probed.write_text(text.replace('<head>', '<head>' + CATCH, 1).replace(
        '</body>', f'<script>{PROBE}</script></body>'), encoding='utf-8')
    view = [f'--window-size={width},900',
            f'--blink-settings=preferredColorScheme={0 if dark else 1}']
    run = browser(folder, *view, '--dump-dom', probed.as_uri())
    if SCREENSHOTS:
        name = f'{page.stem}-{width}-{"dark" if dark else "light"}.png'
        view[0] = f'--window-size={width},{5000 if width < 800 else 3000}'
        browser(folder, *view, f'--screenshot={pathlib.Path(SCREENSHOTS).resolve() / name}',
                page.as_uri())
    found = re.search(r'<pre id="probe">(.*?)</pre>', run.stdout, re.S)
    assert found, 'the probe did not come to its end'
    seen = json.loads(html.unescape(found.group(1)))
    seen['console'] = [line for line in run.stderr.splitlines() if 'CONSOLE' in line]
    assert seen['width'] == width
    assert seen['dark'] == dark
    return seen


def check(seen):
    assert seen['console'] == []
    assert seen['errors'] == []
    assert seen['wrong'] == []
    assert seen['title'] == 'ringside bench'


@pytest.fixture(scope='module', name='folder')
def make_folder():
    folder = pathlib.Path(tempfile.mkdtemp(prefix='rs-report-', dir='/tmp'))
    subprocess.run([MAKE_REPORT, str(folder)], check=True, timeout=TIMEOUT)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize('dark', [False, True], ids=['light', 'dark'])
@pytest.mark.parametrize('width', [360, 1280])
@pytest.mark.parametrize('name', PLOTS)
def test_page(folder, name, width, dark):
    seen = look(folder, folder / f'{name}.html', width, dark)
    check(seen)
    assert list(dict.fromkeys(seen['plots'])) == PLOTS[name]
    for plot, lines, bars in zip(seen['plots'], seen['lines'], seen['bars']):
        if plot == 'Latency' or ' over ' in plot:
            assert lines and not bars
        else:
            assert bars and not lines


def test_the_probe_finds_what_is_wrong(folder):
    """A probe that finds nothing ever would be worth nothing."""
    text = (folder / 'two.html').read_text(encoding='utf-8', errors='replace')
    for old, new in (
            ('<h1>', '<img src="http://192.0.2.1/x.png"><h1>'),
            ('</body>', '<p style="width:3000px">wide</p>'
                        '<script>throw new Error("thrown")</script></body>'),
            ('d="M50.0', 'd="MNaN'),
            ('--soft:#59616b', '--soft:#ccc'),
            ('>99.9</text>', '>99.9, and more than there is room for</text>'),
            (' x="2.0"', ' x="-20"')):
        assert old in text
        text = text.replace(old, new)
    page = folder / 'broken.html'
    page.write_text(text, encoding='utf-8')
    seen = look(folder, page, 360, False)
    assert any('thrown' in line for line in seen['console'])
    assert any('thrown' in error for error in seen['errors'])
    # Refused by the page's own policy.
    assert any('192.0.2.1' in line and 'Policy' in line for line in seen['console'])
    wrong = '\n'.join(seen['wrong'])
    for what in ('MNaN', 'the page is ', ' is on "', ' is cut off', ' is hard to see'):
        assert what in wrong


def test_a_real_run(folder):
    """`ringside bench` against a server of ours, and the page that it leaves."""
    socket, page = folder / 'null.sock', folder / 'real.html'
    with subprocess.Popen([RINGSIDE, 'serve', '--disk', f'socket={socket},engine=null,size=1G'],
                          stderr=subprocess.PIPE, text=True) as server:
        try:
            while ', socket ' not in server.stderr.readline():
                assert server.poll() is None
            subprocess.run([RINGSIDE, 'bench', f'vhost-user-blk:{socket}', '--count', '2000',
                            '--iodepth', '1,4', '--completion', 'sleep,hybrid', '--report',
                            str(page)], check=True, timeout=TIMEOUT, stdout=subprocess.DEVNULL)
        finally:
            server.terminate()
            server.wait(TIMEOUT)
    seen = look(folder, page, 360, False)
    check(seen)
    assert seen['plots'] == ['Latency', 'Throughput over queue depth', 'Notifications a request',
                             'CPU a request']
    assert seen['lines'] == [4, 2, 0, 0]
    assert seen['bars'] == [0, 0, 8, 8]
