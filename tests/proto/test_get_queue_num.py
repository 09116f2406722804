"""GET_QUEUE_NUM."""

import pytest

import rawclient as rc


@pytest.mark.parametrize('queues', [1, 4, 64])
def test_number_of_queues(serve, queues):
    c = serve(queues=queues).connect()
    c.negotiate()
    assert c.get_queue_num() == queues
    assert c.config().num_queues == queues


@pytest.mark.ours
def test_default_is_enough_for_qemu(serve):
    """QEMU asks for one queue a virtual CPU and refuses a server with fewer."""
    c = serve().connect()
    c.negotiate()
    assert c.get_queue_num() == 128


def test_first_and_last_queue_work(serve):
    c = serve(queues=16).client()
    for i in (0, 15):
        assert c.start(i).read(0, 512) == bytes(512)


@pytest.mark.ours
def test_queue_behind_the_last_is_refused(server, client):
    assert client.refused(rc.SET_VRING_NUM, (4).to_bytes(4, 'little') + (128).to_bytes(4, 'little'))
    client.close()
    assert server.serves()
