"""Rule 2.1: one total order from what connectors say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lakehouse.debezium.position import Position, position_of
from cdc_lakehouse.debezium.source import Source

PG = Source(connector="postgresql", snapshot="false", sequence='["200","300"]', lsn=250, tx_id=9)
MYSQL = Source(connector="mysql", file="binlog.000012", pos=154, row=3)


def at(source: Source | None, *, op: str = "u", order: int | None = None) -> Any:
    return position_of(source, op=op, total_order=order, kafka_offset=42)


def test_a_streamed_postgresql_event():
    assert at(PG, order=4) == Position(phase=1, commit=200, streamed=1, row=250, order_in_tx=4, kind=1)


def test_no_earlier_commit_counts_as_zero():
    assert at(replace(PG, sequence='[null,"300"]')).commit == 0


@pytest.mark.parametrize(
    "snapshot", ["first", "first_in_data_collection", "true", "last_in_data_collection", "last"]
)
def test_a_streamed_event_with_a_smaller_lsn_beats_every_full_snapshot_row(snapshot):
    taken = at(replace(PG, snapshot=snapshot, sequence='[null,"900"]', lsn=900), op="r")
    assert at(replace(PG, sequence=None, lsn=800)).is_after(taken)


def test_an_incremental_snapshot_row_stands_at_the_stream_position():
    found = at(replace(PG, snapshot="incremental", lsn=None, tx_id=None), op="r")
    assert found == Position(phase=1, commit=200, streamed=0, row=300, order_in_tx=0, kind=1)


def test_the_create_of_a_key_change_stands_after_its_delete():
    assert at(PG, op="c").is_after(at(PG, op="d"))


def test_commit_order_wins_over_lsn():
    committed_later = at(replace(PG, sequence='["260","260"]', lsn=100))
    assert committed_later.is_after(at(replace(PG, sequence='["200","999"]', lsn=999)))


def test_log_positions_compare_as_numbers():
    assert at(replace(PG, sequence='["1000","1"]')).is_after(at(replace(PG, sequence='["999","1"]')))


def test_a_mysql_event_stands_in_its_binlog():
    assert at(MYSQL, order=8) == Position(phase=1, commit=12, streamed=1, row=154, order_in_tx=3, kind=1)


def test_a_source_without_log_position_uses_the_kafka_offset():
    assert at(Source(connector="mongodb")).row == 42


@pytest.mark.parametrize(
    "source",
    [
        None,
        replace(PG, lsn=None, sequence=None),
        replace(PG, sequence="[" * 100_000),
        replace(PG, sequence='["99999999999999999999","1"]'),
        replace(PG, sequence="[1,2]"),
        replace(PG, sequence='"ab"'),
        replace(MYSQL, file="binlog"),
        replace(MYSQL, pos=None),
    ],
)
def test_an_event_that_does_not_say_where_it_stands_has_no_position(source):
    assert at(source) is None


def test_an_equal_position_is_not_after():
    assert not at(PG).is_after(at(PG))


numbers = st.integers(-2, 2)
positions = st.builds(
    Position,
    epoch=numbers,
    phase=numbers,
    commit=numbers,
    streamed=numbers,
    row=numbers,
    order_in_tx=numbers,
    kind=numbers,
)


@given(positions, positions, positions)
def test_positions_are_totally_ordered(a, b, c):
    assert a.is_after(b) + b.is_after(a) + (a == b) == 1
    assert a.is_after(c) or not (a.is_after(b) and b.is_after(c))


@given(positions, positions)
def test_the_epoch_stands_above_everything(a, b):
    assert replace(a, epoch=1).is_after(replace(b, epoch=0))
