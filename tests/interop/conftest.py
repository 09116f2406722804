# SPDX-License-Identifier: Apache-2.0
"""Tests with other projects' clients; tools/guest/guest.py serves and boots."""
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "guest"))
import guest as g  # noqa: E402  pylint: disable=wrong-import-position


@pytest.fixture
def folder():
    """A folder on a real file system, so that O_DIRECT is O_DIRECT."""
    path = g.temp_folder()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def need(qemu):
    if qemu == "11.1" and not g.have_qemu11():
        pytest.skip("QEMU 11.1 is not to be had (tools/chroot.sh)")
