"""What the batches of a run added, told together."""

from __future__ import annotations

from datetime import UTC, datetime

from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.bronze.written_file import BAD_ROWS_SHOWN, BadRow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def bad(offset: int) -> BadRow:
    return BadRow("t", 0, offset, key_schema_id=1, value_schema_id=None)


def test_batches_add_up_and_examples_stay_few():
    first = Added(
        rows=5,
        errors_by_code={"bad_frame": 2},
        bad_rows={"bad_frame": (bad(1), bad(2))},
        key_ids=frozenset({1}),
        value_ids=frozenset({9, 10}),
        seen_through=NOON,
    )
    second = Added(
        rows=7,
        errors_by_code={"bad_frame": 6, "truncated": 1},
        bad_rows={"bad_frame": (bad(11), bad(12), bad(13)), "truncated": (bad(14),)},
        key_ids=frozenset({1}),
        value_ids=frozenset({2}),
    )

    both = Added.together([first, second])

    assert (both.rows, both.seen_through) == (12, NOON)
    assert both.errors_by_code == {"bad_frame": 8, "truncated": 1}
    assert both.schema_ids() == {"key": [1], "value": [2, 9, 10]}
    assert BAD_ROWS_SHOWN == 3
    told = both.bad_rows_by_code()
    assert {code: [row["offset"] for row in rows] for code, rows in told.items()} == {
        "bad_frame": [1, 2, 11],
        "truncated": [14],
    }
    assert told["truncated"] == [
        {"topic": "t", "partition": 0, "offset": 14, "key_schema_id": 1, "value_schema_id": None}
    ]


def test_a_run_without_batches_added_nothing():
    assert Added.together([]) == Added()
