"""GET_MAX_MEM_SLOTS."""

import pytest

import rawclient as rc


@pytest.mark.ours
def test_509(conn):
    conn.negotiate()
    assert conn.get_max_mem_slots() == 509


def test_at_least_what_a_table_holds(conn):
    conn.negotiate()
    assert conn.protocol & rc.P_CONFIGURE_MEM_SLOTS
    assert conn.get_max_mem_slots() >= 8
