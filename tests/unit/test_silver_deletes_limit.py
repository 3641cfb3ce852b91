"""How much a merge may remove, and what a decision about it says."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_lakehouse.config.models import DeletesLimit
from cdc_lakehouse.errors import DecisionOutdatedError, DeletesLimitError
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.silver.deletes_limit import AcceptedDeletes, Brake, Removal

ACCEPTED = AcceptedDeletes(step=7, bronze=40, rows=3000)


def brake(accepted: AcceptedDeletes | None = None, **limit: Any) -> Brake:
    return Brake("orders", DeletesLimit(**limit), step=7, bronze=40, accepted=accepted)


def silver(seq: int, *, stands_on: int) -> Ledger:
    return Ledger(
        kind=Kind.SILVER,
        pipeline="shop",
        table="orders",
        cluster_id="c",
        seq=seq,
        stands_on=(stands_on, "attempt"),
    )


@pytest.mark.parametrize(
    ("rows", "of", "exceeds"),
    [(1000, 1000, False), (1001, 1001, True), (1001, 5005, False), (1002, 5005, True), (0, 0, False)],
)
def test_a_removal_exceeds_the_limit_where_it_exceeds_rows_and_share(rows, of, exceeds):
    assert Removal(rows, of).exceeds(DeletesLimit()) is exceeds


def test_with_a_share_of_one_nothing_is_ever_stopped():
    assert not Removal(10**9, 10**9).exceeds(DeletesLimit(rows=0, share=1))


def test_with_nothing_allowed_one_row_is_stopped():
    assert Removal(1, 10**9).exceeds(DeletesLimit(rows=0, share=0))


def test_the_error_prints_the_value_that_lets_the_removal_pass():
    with pytest.raises(DeletesLimitError) as caught:
        brake().refuse(Removal(3000, 4000, causes=("1 TRUNCATE",)))

    assert brake(ACCEPTED).refuse(Removal(3000, 4000)) == ACCEPTED
    assert caught.value.decision == "orders=step7@v40:3000rows"


def test_a_removal_within_the_limit_needs_no_decision():
    assert brake(ACCEPTED, share=1).refuse(Removal(3000, 4000)) is None
    assert brake(ACCEPTED).refuse(Removal(9, 4000)) is None


def test_a_decision_about_another_removal_is_refused_with_the_value_of_now():
    with pytest.raises(
        DecisionOutdatedError, match=r"`orders=step7@v40:3000rows`, but .*`orders=step7@v40:3001rows`"
    ):
        brake(ACCEPTED).refuse(Removal(3001, 4000))


def test_a_decision_is_read_as_it_is_printed():
    assert AcceptedDeletes.about("orders", ["clicks=step1@v1:9rows", f"orders={ACCEPTED}"]) == ACCEPTED
    assert AcceptedDeletes.about("orders", ["clicks=step1@v1:9rows"]) is None


@pytest.mark.parametrize(
    "lines", [["orders"], ["orders="], ["orders=3000"], [f"orders={ACCEPTED}", "orders=step1@v1:9rows"]]
)
def test_a_decision_that_names_no_removal_is_refused(lines):
    with pytest.raises(DecisionOutdatedError):
        AcceptedDeletes.about("orders", lines)


def test_a_decision_is_done_once_silver_has_passed_its_step_and_its_bronze():
    ACCEPTED.refuse_unless_carried_out(silver(8, stands_on=40))
    ACCEPTED.refuse_unless_carried_out(silver(12, stands_on=44))


@pytest.mark.parametrize(("seq", "stands_on"), [(7, 40), (6, 44), (8, 39)])
def test_a_decision_about_another_step_is_refused(seq, stands_on):
    with pytest.raises(DecisionOutdatedError):
        ACCEPTED.refuse_unless_carried_out(silver(seq, stands_on=stands_on))
