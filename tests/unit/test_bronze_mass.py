"""Undecodable records in mass stop a table before they are committed; single ones never do."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.bronze.mass import LEAST, refuse_in_mass, share_after
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
    [(2, 3), (LEAST - 1, LEAST), (LEAST, 2 * LEAST), (1000, 10**6)],
    ids=["beside a good one", "too few for a share", "just the share", "just the number"],
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


@pytest.mark.parametrize("count", [2, LEAST - 1])
def test_a_run_of_nothing_but_undecodable_records_stops_however_few_they_are(count):
    with pytest.raises(QuarantineLimitError) as caught:
        refuse_in_mass(run(count, count), LIMIT, table="orders")

    assert (caught.value.bad, caught.value.rows, caught.value.when) == (count, count, "in this run")


def test_the_rest_of_such_a_run_may_be_better():
    refuse_in_mass(run(2, 2), LIMIT, table="orders", ends=False)


def test_a_share_of_all_takes_such_a_run():
    refuse_in_mass(run(LEAST, LEAST), QuarantineLimit(share=1), table="orders")


def test_records_that_fit_no_column_are_no_company_for_undecodable_ones():
    beside = Added(
        rows=5,
        errors_by_code={"truncated": 2, "incompatible_schema": 3},
        bad_rows={"truncated": (BadRow("t", 0, 1, key_schema_id=None, value_schema_id=None),)},
    )

    with pytest.raises(QuarantineLimitError):
        refuse_in_mass(beside, LIMIT, table="orders")


def runs_until_refused(*, bad: int, rows: int, limit: QuarantineLimit = LIMIT) -> int:
    """Of twenty; the number of the first that is refused."""
    before = (0, 0)
    for number in range(1, 21):
        try:
            refuse_in_mass(run(bad, rows), limit, table="orders", before=before)
        except QuarantineLimitError:
            return number
        before = share_after(run(bad, rows), limit, before=before)
    return 0


@pytest.mark.parametrize(("bad", "rows", "number"), [(99, 100, 2), (50, 70, 2), (10, 19, 10), (50, 100, 0)])
def test_undecodable_records_of_several_runs_add_up(bad, rows, number):
    assert runs_until_refused(bad=bad, rows=rows) == number


def test_it_says_how_many_are_of_this_run():
    with pytest.raises(QuarantineLimitError) as caught:
        refuse_in_mass(run(50, 60), LIMIT, table="orders", before=(60, 70))

    assert str(caught.value) == (
        "110 of 130 record(s) of orders in this run and the ones before it, 50 of them in this run, "
        "cannot be decoded (bad_frame 1, truncated 49), first shop.orders/3@4711"
    )


def test_a_run_without_any_is_never_refused_for_those_before_it():
    refuse_in_mass(Added(rows=1), LIMIT, table="orders", before=(900, 1000))


@pytest.mark.parametrize(
    ("bad", "rows", "before", "after"),
    [
        (10, 20, (0, 0), (10, 20)),
        (10, 180, (10, 20), (0, 0)),
        (10, 179, (10, 20), (20, 199)),
        (120, 200, (0, 0), (120, 200)),
    ],
    ids=["few say nothing", "the share is kept", "by too few to know", "the share is not kept"],
)
def test_counting_begins_again_once_the_share_is_kept(bad, rows, before, after):
    assert share_after(run(bad, rows), LIMIT, before=before) == after
