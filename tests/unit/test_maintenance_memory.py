"""What maintenance remembers from night to night, and what it makes of a file that is no memory."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest

from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.maintenance.memory import Memory, read_memories, write_memories

MONDAY, TUESDAY = date(2026, 1, 5), date(2026, 1, 6)
SILVER = "silver/shop/orders"


@pytest.fixture
def uri(tmp_path) -> str:
    return Lake(root=tmp_path.as_uri(), pipeline="shop").maintenance("optimize", "orders")


def test_a_memory_is_read_as_it_was_written(uri, tmp_path):
    memory = Memory(2, TUESDAY, datetime(2026, 1, 4, 3, tzinfo=UTC))

    write_memories(uri, {SILVER: memory})

    assert read_memories(uri) == {SILVER: memory}
    assert json.loads((tmp_path / "_ops/shop/maintenance/optimize/orders.json").read_text()) == {
        "v": 1,
        "tables": {
            SILVER: {
                "conflict_nights": 2,
                "last_conflict": "2026-01-06",
                "last_full_vacuum": "2026-01-04T03:00:00+00:00",
            }
        },
    }


def test_two_conflicts_in_one_night_count_once():
    memory = Memory().with_conflict(MONDAY).with_conflict(MONDAY)

    assert memory.conflict_nights == 1


def test_conflicts_of_two_nights_count_twice():
    memory = Memory().with_conflict(MONDAY).with_conflict(TUESDAY)

    assert (memory.conflict_nights, memory.last_conflict) == (2, TUESDAY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\0",
        "[]",
        '{"v": 2, "tables": {"silver/shop/orders": {"conflict_nights": 3}}}',
        '{"v": 1, "tables": {"silver/shop/orders": {"last_conflict": "soon"}}}',
        '{"v": 1, "tables": {"silver/shop/orders": {"last_full_vacuum": "2026-01-04T03:00:00"}}}',
    ],
)
def test_a_file_that_is_no_memory_is_an_empty_one(uri, tmp_path, text):
    file = tmp_path / "_ops/shop/maintenance/optimize/orders.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)

    assert read_memories(uri) == {}


def test_a_table_without_a_file_has_no_memory(uri):
    assert read_memories(uri) == {}
