"""Whether silver has a row per key or per event: what the file says, and what both layers allow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from cdc_lakehouse.config.models import Mode, Table
from cdc_lakehouse.errors import InvalidShapeError, KeylessUpsertError, KeySchemaDriftError, ModeChangedError
from cdc_lakehouse.silver.mode import mode_of

ID = pa.struct([("id", pa.int64())])


def columns(*names: str) -> pa.Schema:
    return pa.schema([(name, ID if name == "key" else pa.string()) for name in names])


KEYED = columns("op", "key", "after", "attempt")
KEYLESS = columns("op", "after", "attempt")
KEYED_LATER = columns("op", "after", "attempt", "key")
ROWS = columns("id", "_cdc_op", "_cdc_incomplete")
EVENTS = columns("id", "_cdc_op", "_cdc_unavailable")


def table(mode: str | None = None) -> Table:
    return Table.model_validate({"name": "orders", "topics": ["t"], "mode": mode})


@pytest.mark.parametrize(
    ("mode", "bronze", "silver", "expected"),
    [
        (None, KEYED, None, Mode.UPSERT),
        (None, KEYLESS, None, Mode.APPEND),
        (None, KEYLESS, EVENTS, Mode.APPEND),
        (None, KEYED_LATER, ROWS, Mode.UPSERT),
        ("append", KEYED, None, Mode.APPEND),
        ("append", KEYED_LATER, EVENTS, Mode.APPEND),
        ("upsert", KEYED, ROWS, Mode.UPSERT),
    ],
)
def test_the_file_decides_and_otherwise_the_key(mode, bronze, silver, expected):
    assert mode_of(table(mode), bronze=bronze, silver=silver) is expected


def test_without_a_key_there_is_no_row_per_key():
    with pytest.raises(KeylessUpsertError) as caught:
        mode_of(table("upsert"), bronze=KEYLESS, silver=None)

    assert caught.value.table == "orders"


@pytest.mark.parametrize(
    ("mode", "bronze", "silver", "modes"),
    [
        (None, KEYED, EVENTS, ("append", "upsert")),
        ("upsert", KEYED, EVENTS, ("append", "upsert")),
        ("upsert", KEYED_LATER, EVENTS, ("append", "upsert")),
        ("append", KEYED, ROWS, ("upsert", "append")),
        (None, KEYLESS, ROWS, ("upsert", "append")),
    ],
)
def test_rows_of_the_other_mode_are_not_gone_on_with(mode, bronze: pa.Schema, silver, modes: Sequence[str]):
    with pytest.raises(ModeChangedError) as caught:
        mode_of(table(mode), bronze=bronze, silver=silver)

    assert (caught.value.was, caught.value.now) == modes


def test_a_key_that_came_later_is_another_key():
    with pytest.raises(KeySchemaDriftError) as caught:
        mode_of(table(), bronze=KEYED_LATER, silver=EVENTS)

    assert (caught.value.was, caught.value.now) == ("no columns", "id int64")


@pytest.mark.parametrize(
    ("setting", "choice"), [("columns", {"mask": {"note": "null"}}), ("filter", "note IS NULL")]
)
def test_a_row_per_event_is_not_chosen_from_because_a_mask_would_be_forgotten(setting, choice):
    chosen = Table.model_validate({"name": "orders", "topics": ["t"], "mode": "append", setting: choice})

    with pytest.raises(InvalidShapeError) as caught:
        mode_of(chosen, bronze=columns("key"), silver=None)

    assert caught.value.setting == setting
