"""Undecodable records in mass stop a table before they are committed; single ones never do."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.bronze.mass import LEAST, refuse_in_mass
from cdc_lakehouse.bronze.written_file import BadRow
from cdc_lakehouse.config.models import QuarantineLimit
from cdc_lakehouse.errors import QuarantineLimitError

LIMIT = QuarantineLimit(records=1000, share=0.5)


def run(bad: int, rows: int) -> Added:
    first = BadRow("shop.orders", 3, 4711, key_schema_id=1, value_schema_id=2)
    return Added(
        rows=rows, errors_by_code={"truncated": bad - 1, "bad_frame": 1}, bad_rows={"truncated": (first,)}
    )


@pytest.mark.parametrize(
    ("bad", "rows"),
    [(1, 1), (LEAST - 1, LEAST - 1), (LEAST, 2 * LEAST), (1000, 10**6)],
    ids=["a single record", "too few for a share", "just the share", "just the number"],
)
def test_below_the_limits_a_run_goes_on(bad, rows):
    refuse_in_mass(run(bad, rows), LIMIT, table="orders")


def test_no_bad_record_is_no_question():
    refuse_in_mass(Added(rows=5), QuarantineLimit(records=0), table="orders")


@pytest.mark.parametrize(("bad", "rows"), [(LEAST, 2 * LEAST - 1), (1001, 10**6)])
def test_above_one_of_them_it_stops_and_says_what_and_where(bad, rows):
    with pytest.raises(QuarantineLimitError) as caught:
        refuse_in_mass(run(bad, rows), LIMIT, table="orders")

    assert str(caught.value) == (
        f"{bad} of {rows} record(s) of orders in this run cannot be decoded "
        f"(bad_frame 1, truncated {bad - 1}), first shop.orders/3@4711"
    )
    assert "quarantine_limit" in caught.value.advice


def test_values_that_fit_no_column_are_taken_in_any_number():
    misfits = Added(rows=10**6, errors_by_code={"incompatible_schema": 10**6}, bad_rows={})

    refuse_in_mass(misfits, LIMIT, table="orders")
