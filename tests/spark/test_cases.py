"""Every case file through the decoder in Spark, bronze and silver in Delta.

Cases that are applied share one table per kind of key: each has a topic of its own, and its name is
the first column of its key. A case that stops silver or opens a source epoch has a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]

from cases.case_file import (  # type: ignore[import-not-found]
    Case,
    applied_cases,
    historic_cases,
    refused_cases,
)
from cases.encoding import records, writers  # type: ignore[import-not-found]
from cases.rows import (  # type: ignore[import-not-found]
    expected_bronze,
    in_coordinate_order,
    in_key_order,
    in_version_order,
    told_bronze,
    told_history,
    told_silver,
)
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.errors import DataError

Rows = list[dict[str, Any]]
IDS_PER_CASE = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    bronze: Rows
    silver: Rows
    """After one merge behind every batch; at once: after one of all batches together."""
    history: Rows
    """None of its tables has one: no rows."""
    at_once: Callable[[], Outcome]
    """Silver is made anew, from all that bronze holds."""


def by_name(case: Case) -> str:
    return str(case.name)


def first_id(case: Case) -> int:
    return IDS_PER_CASE * (1 + (*applied_cases(), *refused_cases()).index(case))


def key_kind(case: Case) -> str:
    """Who opens a source epoch, clears the table or has an option does so for all of it, and has its own."""
    own = case.table
    alters = own.key_widens or case.drops_columns or own.added_with_default
    if case.concerns_the_table or own.side_columns or own.tracked or alters:
        return str(case.name)
    kind = "keyed_by_" + "_".join(case.table.key)
    kind = f"{kind}_and_{'_'.join(case.table.own_key)}" if case.table.own_key else kind
    kind = kind if case.history is None else f"historic_{kind}"
    kind = kind if case.table.deletes == "hard" else f"soft_{kind}"
    return kind if case.table.mode == "upsert" else f"append_{kind}"


def ingest_batch(chain: Chain, table: Table, cases: list[Case], *, batch: int, tag: bool) -> None:
    """The registry learns the schemas of a batch with it, as it would from the connector."""
    sent = []
    for case in cases:
        by_batch = writers(case, first_id=first_id(case), tag=tag)
        if batch in by_batch:
            for topic in case.topics:
                chain.registry.register(topic, keys=by_batch[batch].keys, values=by_batch[batch].values)
            sent += records(case, by_batch, batch=batch)
    chain.ingest(table, sent)


class Outcomes:
    """Kind of key -> what became of its cases; tried when first asked for, and once, also if that fails."""

    def __init__(self, trial: Callable[[str, list[Case]], Outcome]) -> None:
        self._trial = trial
        self._known: dict[str, Future[Outcome]] = {}

    def __getitem__(self, kind: str) -> Outcome:
        if kind not in self._known:
            self._known[kind] = Future()
            try:
                cases = [case for case in applied_cases() if key_kind(case) == kind]
                self._known[kind].set_result(self._trial(kind, cases))
            except Exception as exc:  # noqa: BLE001 - each of its cases is told
                self._known[kind].set_exception(exc)
        return self._known[kind].result()


@pytest.fixture(scope="module")
def outcomes(engine, tmp_path_factory) -> Outcomes:
    return Outcomes(partial(outcome_of, engine, tmp_path_factory))


def outcome_of(engine, tmp_path_factory, kind: str, cases: list[Case]) -> Outcome:
    stepwise = Chain(engine, root=tmp_path_factory.mktemp(kind).as_uri())
    policy = "side_column" if any(case.table.side_columns for case in cases) else "evolve"
    first = cases[0].table
    options = {"mode": first.mode, "deletes": first.deletes, "filter": first.filter or None}
    options |= {"on_schema_change": policy, "history": cases[0].history_option}
    options |= {"key": ("case", *first.own_key) if first.own_key else None}
    options |= {"on_dropped_column": first.on_dropped_column}
    options |= {"topic_column": first.topic_column or None, "shared_keys": first.shared_keys}
    table = table_of(kind, *(topic for case in cases for topic in case.topics), **options)
    for batch in range(1, max(case.batches for case in cases) + 1):
        ingest_batch(stepwise, table, cases, batch=batch, tag=True)
        stepwise.merge(table)
    bronze, silver = stepwise.bronze(table), stepwise.silver(table)
    history = stepwise.history(table)

    @cache
    def at_once() -> Outcome:
        stepwise.forget_silver(table)
        stepwise.merge(table)
        return Outcome(bronze, stepwise.silver(table), stepwise.history(table), at_once)

    return Outcome(bronze, silver, history, at_once)


def bronze_of(case: Case, rows: Rows) -> Rows:
    return [told_bronze(case, row) for row in rows if row["topic"] in case.topics]


def silver_of(case: Case, rows: Rows) -> Rows:
    """A truncate that is a row tells no column, and has a table of its own."""
    own = [told_silver(case, row) for row in rows if row["case"] in (case.name, None)]
    return list(in_key_order(case, own))


def history_of(case: Case, rows: Rows) -> Rows:
    own = [told_history(case, row) for row in rows if row["case"] == case.name]
    return list(in_version_order(case, own))


@pytest.mark.parametrize("case", applied_cases(), ids=by_name)
def test_bronze_holds_the_rows_of_the_case(case, outcomes):
    expected = expected_bronze(case, first_id=first_id(case), tag=True)

    assert bronze_of(case, outcomes[key_kind(case)].bronze) == in_coordinate_order(expected)


@pytest.mark.parametrize("case", applied_cases(), ids=by_name)
def test_silver_holds_the_rows_of_the_case(case, outcomes):
    assert silver_of(case, outcomes[key_kind(case)].silver) == list(case.silver)


@pytest.mark.long
@pytest.mark.parametrize("case", applied_cases(), ids=by_name)
def test_batches_merged_at_once_make_the_same_rows(case, outcomes):
    assert silver_of(case, outcomes[key_kind(case)].at_once().silver) == list(case.silver)


@pytest.mark.parametrize("case", historic_cases(), ids=by_name)
def test_history_holds_the_rows_of_the_case(case, outcomes):
    assert history_of(case, outcomes[key_kind(case)].history) == list(case.history)


@pytest.mark.long
@pytest.mark.parametrize("case", historic_cases(), ids=by_name)
def test_a_history_of_batches_at_once_has_the_same_rows(case, outcomes):
    assert history_of(case, outcomes[key_kind(case)].at_once().history) == list(case.history)


@pytest.mark.parametrize("case", refused_cases(), ids=by_name)
def test_bronze_holds_what_silver_refuses(case, chain):
    table = table_of(case.name, *case.topics, key=case.table.own_key or None)
    for batch in range(1, case.batches + 1):
        ingest_batch(chain, table, [case], batch=batch, tag=False)

    with pytest.raises(DataError) as caught:
        chain.merge(table)

    assert caught.value.code == case.silver.error
    assert bronze_of(case, chain.bronze(table)) == expected_bronze(case, first_id=first_id(case))
