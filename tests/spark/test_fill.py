"""Gaps that are filled: bronze as if nothing had been missing, and silver as if nothing had come late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from chain import BY, TOPIC_ID, Chain, kafka_rows  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import NEW, ORDERS, SOURCE, TOPIC, acknowledging, know, order, planned  # type: ignore[import-not-found]

from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.errors import BatchMisfitError, SupersededError, TopicRecreatedError
from cdc_lakehouse.lake.progress import Log, Progress
from cdc_lakehouse.lake.state import TableState, read_state

FILL = Decided(fill_gaps=True)
KAFKA = [
    order(0, 1, note="one"),
    order(1, 2, note="two"),
    order(2, 1, op="u", note="one, changed"),  # missing, and the last word about its row
    order(3, 3, note="three"),  # missing, and deleted behind
    order(4, 2, op="u", note="two, changed"),  # missing, and older than what silver has
    order(6, 4, note="four"),  # missing; offset 5 is a marker of a transaction
    order(7, 2, op="u", note="newest"),
    order(8, 3, op="d"),
    order(9, 5, note="five"),  # missing
    order(10, 6, note="six"),
]
MISSING = ((2, 7), (9, 10))
OFFSETS = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
WHOLE = {1: "one, changed", 2: "newest", 4: "four", 5: "five", 6: "six"}
IN_PARTS = ORDERS.model_copy(update={"max_offsets_per_trigger": 2})


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("fill").as_uri())
    know(chain)
    chain.ingest(ORDERS, KAFKA)
    chain.sql("DELETE FROM {t} WHERE offset IN (2, 3, 4, 6, 9)", uri(chain))
    ingest(chain, acknowledging(chain))
    chain.merge(ORDERS)
    return chain


@pytest.fixture
def holed(template: Chain, tmp_path: Path) -> Chain:
    """Rows were deleted by hand from bronze, that was acknowledged, and silver was merged without them."""
    return template.copied_to(tmp_path)


def uri(chain: Chain) -> str:
    return str(chain.lake.bronze("orders"))


def plan(chain: Chain, decided: Decided, *, held: tuple[int, int] = (0, 11), **what: str) -> DrainPlan:
    found: DrainPlan = planned(chain, decided, held=held, **what)
    return found


def ingest(
    chain: Chain,
    decided: Decided = FILL,
    *,
    table: Table = ORDERS,
    kafka: list[KafkaRecord] = KAFKA,
    planned: DrainPlan | None = None,
    held: tuple[int, int] = (0, 11),
) -> TableResult:
    planned = planned or plan(chain, decided, held=held)
    start = planned.start[TOPIC][0]
    new = [each for each in kafka if each.offset >= start]
    result: TableResult = chain.ingest(table, new, plan=planned, kafka=kafka)
    return result


def state(chain: Chain, layer: str = "bronze") -> TableState:
    found = read_state(getattr(chain.lake, layer)("orders"), table="orders")
    assert found is not None
    return found


def progress(chain: Chain, layer: str = "bronze") -> Progress:
    ledger = state(chain, layer).ledger
    assert ledger is not None
    return ledger.sources[SOURCE][0]


def offsets(chain: Chain) -> list[int]:
    return [row["offset"] for row in chain.bronze(ORDERS)]


def silver(chain: Chain) -> dict[int, str]:
    return {row["id"]: row["note"] for row in chain.silver(ORDERS)}


def test_bronze_and_silver_know_what_is_missing_before(holed):
    assert offsets(holed) == [0, 1, 7, 8, 10]
    assert progress(holed).gaps == progress(holed, "silver").gaps == MISSING
    assert silver(holed) == {1: "one", 2: "newest", 6: "six"}


def test_a_fill_brings_every_offset_back_once_and_moves_nothing_else(holed):
    before = holed.bronze(ORDERS)

    result = ingest(holed)

    assert offsets(holed) == OFFSETS
    assert [row for row in holed.bronze(ORDERS) if row["offset"] not in {2, 3, 4, 6, 9}] == before
    assert progress(holed) == Progress(
        floor=0, end=11, log=Log(1100, knows_past=True, last=(1090, 1100)), reached=((0, 1100),)
    )
    assert {row["topic_id"] for row in holed.bronze(ORDERS)} == {TOPIC_ID}
    assert (result.status, result.counts["appended"]) == (TableStatus.ADVANCED, 5)
    assert (result.ranges, result.gaps) == ({}, {})
    filled = {"filled": {SOURCE: {"0": [[2, 7], [9, 10]]}}, "left": {}}
    assert result.decisions == {"fill_gaps": filled, "decided_by": BY}


def test_rows_and_ledger_of_a_fill_are_one_commit(holed):
    version = DeltaTable(uri(holed)).version()

    ingest(holed)

    table = DeltaTable(uri(holed))
    assert table.version() == version + 1
    ledger = state(holed).ledger
    assert ledger is not None
    assert (ledger.added, ledger.gaps()) == ({}, {})
    assert ledger.decisions == {"fill_gaps": {SOURCE: {"0": [[2, 7], [9, 10]]}}, "decided_by": BY}


def test_rows_that_came_late_find_their_place_in_silver(holed):
    ingest(holed)

    result = holed.merge(ORDERS)

    assert silver(holed) == WHOLE
    assert (result.counts["events"], result.counts["late_offsets"]) == (5, 6)
    assert progress(holed, "silver") == Progress(floor=0, end=11)
    assert holed.merge(ORDERS).status is TableStatus.IDLE
    holed.forget_silver(ORDERS)
    holed.merge(ORDERS)
    assert silver(holed) == WHOLE


def test_new_records_and_filled_ones_are_applied_by_one_merge(holed):
    more = [*KAFKA, order(11, 3, note="three again")]

    result = ingest(holed, kafka=more, held=(0, 12))
    merged = holed.merge(ORDERS)

    assert (result.counts["appended"], result.ranges) == (6, {TOPIC: {"0": (11, 12)}})
    assert silver(holed) == {**WHOLE, 3: "three again"}
    assert merged.counts["read"] == 6


def test_a_second_fill_finds_nothing(holed):
    ingest(holed)
    before = state(holed)

    assert plan(holed, FILL).is_idle
    assert ingest(holed).status is TableStatus.IDLE
    assert state(holed) == before


def test_a_change_by_hand_is_acknowledged_and_filled_by_one_run(holed):
    holed.sql("DELETE FROM {t} WHERE offset = 10", uri(holed))

    ingest(holed, acknowledging(holed, fill_gaps=True))
    holed.merge(ORDERS)

    assert offsets(holed) == OFFSETS
    assert silver(holed) == WHOLE


def test_what_kafka_no_longer_holds_stays_a_gap(holed):
    result = ingest(holed, held=(4, 11))
    holed.merge(ORDERS)

    assert offsets(holed) == [0, 1, 4, 6, 7, 8, 9, 10]
    assert progress(holed).gaps == progress(holed, "silver").gaps == ((2, 4),)
    assert result.decisions["fill_gaps"]["left"] == {SOURCE: {"0": [[2, 4]]}}
    assert result.gaps == {TOPIC: {"0": [[2, 4]]}}
    assert silver(holed) == {**WHOLE, 1: "one"}


def test_a_gap_is_filled_in_batches_of_the_tables_size(holed):
    result = ingest(holed, table=IN_PARTS)
    holed.merge(ORDERS)

    assert result.batches == 3
    assert progress(holed).gaps == ()
    assert silver(holed) == WHOLE


@pytest.mark.parametrize(("part", "left"), [((2, 4), ((4, 7),)), ((5, 6), ((2, 5), (6, 7)))])
def test_a_fill_that_ended_half_way_is_gone_on_with(holed, part, left):
    planned = plan(holed, FILL)
    half = replace(planned, fill=replace(planned.fill, held={SOURCE: {0: (part,)}}))
    ingest(holed, planned=half)
    holed.merge(ORDERS)
    assert progress(holed).gaps == progress(holed, "silver").gaps == (*left, (9, 10))

    ingest(holed)
    holed.merge(ORDERS)

    assert offsets(holed) == OFFSETS
    assert silver(holed) == WHOLE


def test_a_refold_takes_nothing_back_that_bronze_lost_after_silver_had_it(holed):
    holed.sql("DELETE FROM {t} WHERE offset = 7", uri(holed))
    ingest(holed, acknowledging(holed))
    planned = plan(holed, FILL)
    ingest(holed, planned=replace(planned, fill=replace(planned.fill, held={SOURCE: {0: ((4, 5),)}})))
    holed.merge(ORDERS)
    assert silver(holed)[2] == "newest"
    assert progress(holed).gaps == progress(holed, "silver").gaps == ((2, 4), (5, 8), (9, 10))

    ingest(holed)
    holed.merge(ORDERS)

    assert silver(holed) == WHOLE


def test_a_fill_that_was_overtaken_changes_nothing(holed):
    stale = plan(holed, FILL)
    ingest(holed, kafka=[*KAFKA, order(11, 7)], planned=plan(holed, Decided(), held=(0, 12)))
    before = holed.bronze(ORDERS)

    with pytest.raises(SupersededError):
        ingest(holed, planned=stale)

    assert holed.bronze(ORDERS) == before
    assert progress(holed).gaps == MISSING


def test_of_two_fills_at_once_one_fills(holed):
    one, other = plan(holed, FILL), plan(holed, FILL)
    ingest(holed, planned=one)

    with pytest.raises(SupersededError):
        ingest(holed, planned=other)

    assert offsets(holed) == OFFSETS


def test_a_topic_that_was_made_again_is_not_filled_from(holed):
    with pytest.raises(TopicRecreatedError):
        plan(holed, FILL, topic_id="topic-2")

    again = plan(holed, Decided(fill_gaps=True, source_epoch=1), topic_id="topic-2")
    assert (again.fill.held, again.fill.gone) == ({}, {SOURCE: {0: MISSING}})


def test_a_record_beside_the_gap_commits_nothing(holed, monkeypatch):
    before = state(holed)
    monkeypatch.setattr("chain.rows_again", lambda session, kafka, spans: kafka_rows(session, kafka))

    with pytest.raises(BatchMisfitError):
        ingest(holed)

    assert state(holed) == before


def test_a_filled_record_may_bring_a_column_of_its_own(holed):
    holed.registry.hidden = NEW.schemas
    other = [*KAFKA[:2], order(2, 1, op="u", note="one, changed", priority=7, writer=NEW), *KAFKA[3:]]

    ingest(holed, kafka=other)
    holed.merge(ORDERS)

    found = {row["id"]: row["priority"] for row in holed.silver(ORDERS)}
    assert found == {1: 7, **dict.fromkeys([2, 4, 5, 6])}


def test_a_gap_that_a_restore_brought_back_comes_to_silver_too(holed):
    """Not a fill: the rows are there again because somebody went back to before they were deleted."""
    holed.sql("RESTORE TABLE {t} TO VERSION AS OF 1", uri(holed))
    ingest(holed, acknowledging(holed))

    holed.merge(ORDERS)

    assert progress(holed).gaps == progress(holed, "silver").gaps == ()
    assert silver(holed) == WHOLE
