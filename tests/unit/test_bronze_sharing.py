"""Which tables are read by one query, and whose records are whose: decisions on values."""

from __future__ import annotations

from dataclasses import replace

from orders_in_kafka import CLUSTER, ledger, topic  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.fill_plan import FillPlan
from cdc_lakehouse.bronze.plan import DrainPlan, plan_drain
from cdc_lakehouse.bronze.sharing import FEW, MOST_RECORDS, SharedPlan, share_out
from cdc_lakehouse.kafka.facts import ClusterFacts


def plan(name: str, *ends: int, partitions: int = 1) -> DrainPlan:
    """A table that was never read; `ends` of its topics, each partition as long."""
    topics = {
        f"{name}.{place}": topic(*[(0, end)] * partitions, name=f"{name}.{place}", topic_id=f"id-{name}")
        for place, end in enumerate(ends)
    }
    empty = replace(ledger(), table=name)
    return plan_drain(empty, tuple(topics), facts=ClusterFacts(CLUSTER, topics))


def shared(*plans: DrainPlan, at_once: int = 500_000) -> list[list[str]]:
    return [[each.table for each in group.plans] for group in share_out((each, at_once) for each in plans)]


def test_small_tables_share_a_query_and_large_ones_do_not():
    assert shared(plan("a", 10), plan("b", FEW + 1), plan("c", FEW), plan("d", 1, 2)) == [["a", "c", "d"]]


def test_a_small_table_alone_has_a_query_of_its_own():
    assert shared(plan("a", 10), plan("b", FEW + 1)) == []
    assert shared() == []


def test_a_table_that_wants_smaller_commits_has_a_query_of_its_own():
    assert shared(plan("a", 10), plan("b", 11), plan("c", 9), at_once=10) == [["a", "c"]]


def test_a_table_that_only_amends_its_ledger_needs_no_query():
    amends = replace(plan("b", 0), amends=True)

    assert shared(plan("a", 10), amends, plan("c", 9)) == [["a", "c"]]


def test_a_table_whose_gaps_are_filled_first_has_a_query_of_its_own():
    fills = replace(plan("b", 5), fill=FillPlan(asked=True, held={"b.0@id-b": {0: ((0, 2),)}}))

    assert shared(plan("a", 10), fills, plan("c", 9)) == [["a", "c"]]


def test_a_query_has_no_more_records_than_fit_into_one_batch():
    count = MOST_RECORDS // FEW
    tables = [plan(f"t{number}", FEW) for number in range(count + 2)]

    assert [len(group) for group in shared(*tables)] == [count, 2]


def test_the_ranges_of_a_batch_are_those_of_each_table():
    found = SharedPlan((plan("a", 10, 20), plan("b", 5, partitions=2)))
    end = {"a.0": {0: 10}, "a.1": {0: 0}, "b.0": {0: 5, 1: 3}}

    added = found.added(found.start, end)

    assert found.start == {"a.0": {0: 0}, "a.1": {0: 0}, "b.0": {0: 0, 1: 0}}
    assert found.by_table(added) == {
        "a": {"a.0@id-a": {0: (0, 10)}},
        "b": {"b.0@id-b": {0: (0, 5), 1: (0, 3)}},
    }
