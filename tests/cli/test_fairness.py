# SPDX-License-Identifier: Apache-2.0
"""B57: a queue whose driver never stops giving does not keep another one from being served."""
import json
import signal
import subprocess

from conftest import BINARY, disk, wait_for


def requests(server, export):
    return sum(q['requests'] for q in server.stats()['exports'][export]['queues'])


def test_b57_greedy_queue(cli):
    """Two disks on one iothread: one driver keeps 1,024 requests going, the other sends one at a
    time. Both get on."""
    server = cli.serve(disk(socket=cli.dir / 'a', engine='null', size='1G', id='greedy'),
                       disk(socket=cli.dir / 'b', engine='null', size='1G', id='modest'),
                       '--iothreads', '1')
    greedy = subprocess.Popen([BINARY, 'bench', 'vhost-user-blk:%s' % (cli.dir / 'a'), '--iodepth',
                               '1024', '--completion', 'poll', '--runtime', '600s'],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: requests(server, 0) > 10000, 'the greedy one to be at it')
        before = requests(server, 0)
        r = cli.run('bench', 'vhost-user-blk:%s' % (cli.dir / 'b'), '--count', '2000', '--completion',
                    'sleep', '--json')
        assert r.returncode == 0 and json.loads(r.stdout)[0]['errors'] == 0
        assert greedy.poll() is None
        assert requests(server, 1) >= 2000
        assert requests(server, 0) > before
    finally:
        greedy.send_signal(signal.SIGKILL)
        greedy.wait()
