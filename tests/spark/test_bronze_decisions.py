"""Losses, restores and lost documents on real Delta tables: nothing is doubled, nothing lost in silence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from chain import BY, TOPIC_ID, Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import EMPTY, ORDERS, SOURCE, TOPIC, acknowledging, know, notes, order, planned  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import NOTHING, Decided
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.bronze.planning import standing
from cdc_lakehouse.bronze.start import Start
from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.errors import (
    DecisionOutdatedError,
    ForeignCommitError,
    ForeignRowsError,
    LedgerLostError,
    WrongTableError,
)
from cdc_lakehouse.lake.progress import Log, Progress
from cdc_lakehouse.lake.state import read_state

RECORDS = [order(offset, offset + 1, note=f"note {offset}") for offset in range(6)]
UP_TO_3, UP_TO_5 = Log(1030, True, last=(1020, 1030)), Log(1050, True, last=(1040, 1050))
"""What `order` says of the log."""


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("decisions").as_uri())
    know(chain)
    chain.ingest(ORDERS, RECORDS[:2])
    chain.ingest(ORDERS, RECORDS[2:4])
    return chain


@pytest.fixture
def stocked(template: Chain, tmp_path: Path) -> Chain:
    """Version 1 holds offsets 0 and 1, version 2 those up to 3."""
    return template.copied_to(tmp_path)


def uri(chain: Chain) -> str:
    return str(chain.lake.bronze("orders"))


def progress(chain: Chain) -> Progress:
    state = read_state(uri(chain), table="orders")
    assert state is not None
    assert state.ledger is not None
    return state.ledger.sources[SOURCE][0]


def plan(
    chain: Chain, decided: Decided = NOTHING, *, kafka: tuple[int, int] = (0, 6), **what: str
) -> DrainPlan:
    found: DrainPlan = planned(chain, decided, held=kafka, **what)
    return found


def ingest(chain: Chain, planned: DrainPlan):
    start = planned.start[TOPIC][0]
    return chain.ingest(ORDERS, [each for each in RECORDS if each.offset >= start], plan=planned)


def give_up(start: int, until: int) -> Decided:
    return Decided(accept_gap=frozenset({f"{TOPIC}/0:{start}-{until}"}))


def everything(chain: Chain) -> bool:
    return bool(notes(chain.bronze(ORDERS)) == {offset: f"note {offset}" for offset in range(6)})


def test_an_accepted_gap_is_a_commit_of_its_own_and_stays_known(stocked):
    result = ingest(stocked, plan(stocked, give_up(4, 5), kafka=(5, 6)))

    assert progress(stocked) == Progress(floor=0, end=6, gaps=((4, 5),), log=UP_TO_5, reached=((0, 1050),))
    assert set(notes(stocked.bronze(ORDERS))) == {0, 1, 2, 3, 5}
    assert result.decisions == {"accept_gap": {SOURCE: {"0": [4, 5]}}, "decided_by": BY}
    assert result.gaps == {TOPIC: {"0": [[4, 5]]}}
    assert DeltaTable(uri(stocked)).version() == 4


def test_a_gap_with_nothing_behind_it_is_committed_too(stocked):
    result = ingest(stocked, plan(stocked, give_up(4, 9), kafka=(9, 9)))

    assert (result.status, result.versions, result.batches) == (TableStatus.ADVANCED, {"bronze": 3}, 0)
    assert progress(stocked) == Progress(floor=0, end=9, gaps=((4, 9),), log=UP_TO_3, reached=((0, 1030),))


def test_a_topic_that_was_made_again_has_rows_of_its_own(stocked):
    stocked.merge(ORDERS)
    again = plan(stocked, Decided(source_epoch=1), kafka=(0, 6), topic_id="topic-2")
    stocked.ingest(ORDERS, [order(0, 1, note="again"), order(1, 9, note="new")], plan=again)

    rows = [(row["topic_id"], row["offset"]) for row in stocked.bronze(ORDERS)]
    assert sorted(rows) == [(TOPIC_ID, n) for n in range(4)] + [("topic-2", 0), ("topic-2", 1)]
    merged = stocked.merge(ORDERS)
    assert merged.counts["read"] == 2
    assert notes(stocked.silver(ORDERS)) == {
        1: "again", 2: "note 1", 3: "note 2", 4: "note 3", 9: "new"
    }  # fmt: skip
    positions = {row["id"]: row["_cdc_position"]["epoch"] for row in stocked.silver(ORDERS)}
    assert positions == {1: 1, 2: 0, 3: 0, 4: 0, 9: 1}


def test_a_table_restored_by_hand_is_refused_then_healed_without_a_doubled_or_lost_row(stocked):
    stocked.merge(ORDERS)
    stocked.sql("RESTORE TABLE {t} TO VERSION AS OF 1", uri(stocked))

    with pytest.raises(ForeignCommitError) as caught:
        plan(stocked)
    result = ingest(stocked, plan(stocked, acknowledging(stocked)))

    assert (caught.value.version, caught.value.operation, caught.value.ours) == (3, "RESTORE", 2)
    assert everything(stocked)
    assert progress(stocked) == Progress(floor=0, end=6, log=UP_TO_5, reached=((0, 1050),))
    assert result.decisions["acknowledge_foreign"] == [{"version": 3, "operation": "RESTORE"}]
    assert plan(stocked).is_idle
    assert stocked.merge(ORDERS).counts["read"] == 2


def test_a_table_restored_to_a_time_is_healed_from_its_rows(stocked):
    commit = DeltaTable(uri(stocked)).history()[1]
    moment = datetime.fromtimestamp(commit["timestamp"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    stocked.sql(f"RESTORE TABLE {{t}} TO TIMESTAMP AS OF '{moment}'", uri(stocked))

    ingest(stocked, plan(stocked, acknowledging(stocked)))

    assert everything(stocked)


def test_what_was_acknowledged_on_monday_covers_nothing_that_somebody_does_on_friday(stocked):
    stocked.sql("DELETE FROM {t} WHERE offset = 1", uri(stocked))
    monday = acknowledging(stocked)
    ingest(stocked, plan(stocked, monday))
    is_done = plan(stocked, monday).is_idle
    stocked.sql("DELETE FROM {t} WHERE offset = 3", uri(stocked))

    with pytest.raises(DecisionOutdatedError) as caught:
        plan(stocked, monday)

    assert is_done
    assert (caught.value.named, caught.value.standing) == ("`orders=v3@step2`", "`orders=v6@step4`")
    assert acknowledging(stocked).acknowledge_foreign == {"v6@step4"}


@pytest.mark.parametrize(
    "named", [frozenset(), {"v2@step2"}, {"v3@step1"}, {"yes"}, {"v3@step2", "v4@step2"}]
)
def test_a_change_by_hand_is_acknowledged_by_its_name_only(stocked, named):
    stocked.sql("DELETE FROM {t} WHERE offset = 1", uri(stocked))

    with pytest.raises(DecisionOutdatedError) as caught:
        plan(stocked, Decided(acknowledge_foreign=frozenset(named)))

    assert caught.value.standing == "`orders=v3@step2`"


@pytest.mark.parametrize(
    ("named", "is_done"),
    [({"v3@step1"}, True), ({"v3@step2"}, False), ({"v3@step1", "yes"}, False), (set(), False)],
)
def test_an_acknowledgement_of_nothing_is_done_only_where_its_step_is_passed(stocked, named, is_done):
    decided = Decided(acknowledge_foreign=frozenset(named))

    if is_done:
        assert plan(stocked, decided, kafka=(0, 4)).is_idle
        return
    with pytest.raises(DecisionOutdatedError, match="but the decision that is open is nothing"):
        plan(stocked, decided, kafka=(0, 4))


def test_rows_deleted_by_hand_are_gaps_once_that_is_acknowledged(stocked):
    stocked.sql("DELETE FROM {t} WHERE offset IN (1, 2)", uri(stocked))

    result = ingest(stocked, plan(stocked, acknowledging(stocked)))

    assert set(notes(stocked.bronze(ORDERS))) == {0, 3, 4, 5}
    assert progress(stocked) == Progress(floor=0, end=6, gaps=((1, 3),), log=UP_TO_5, reached=((0, 1050),))
    assert result.gaps == {TOPIC: {"0": [[1, 3]]}}


def test_rows_doubled_by_hand_are_never_acknowledged(stocked):
    stocked.sql("INSERT INTO {t} SELECT * FROM {t} WHERE offset = 1", uri(stocked))

    with pytest.raises(ForeignRowsError) as caught:
        plan(stocked, acknowledging(stocked))

    assert (caught.value.ours, caught.value.problem) == (2, "1 row(s) are not ours, or are there twice")


def without_documents(chain: Chain) -> None:
    """As log cleanup leaves it: a checkpoint has ids and files, and the commits that said more are gone."""
    DeltaTable(uri(chain)).create_checkpoint()
    log = Path(uri(chain).removeprefix("file://")) / "_delta_log"
    chain.sql("ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'somebody')", uri(chain))
    for commit in range(3):
        (log / f"{commit:020}.json").unlink()
    (log / f"{2:020}.json.crc").unlink(missing_ok=True)


def test_a_lost_document_is_made_again_from_rows_and_steps_go_on(stocked):
    without_documents(stocked)
    with pytest.raises(LedgerLostError):
        read_state(uri(stocked), table="orders")

    result = ingest(stocked, plan(stocked))

    state = read_state(uri(stocked), table="orders")
    assert state is not None
    assert everything(stocked)
    assert (state.seq, result.decisions) == (4, {"recovered": "from rows"})


def test_who_only_looks_leaves_a_lost_document_to_the_job(stocked):
    without_documents(stocked)

    with pytest.raises(LedgerLostError):
        standing(uri(stocked), EMPTY, decided=NOTHING, session=None)


def test_a_swapped_folder_is_not_read_as_ones_own(stocked):
    other = replace(EMPTY, pipeline="another")

    with pytest.raises(WrongTableError, match=r"holds bronze of cases\.orders"):
        standing(uri(stocked), other, decided=NOTHING, session=None)


def test_a_start_is_stated_without_a_schema_and_records_behind_it_find_their_table(chain):
    chain.registry.away = True
    begins = Start("latest", {TOPIC: {0: 2}}, is_final=True)
    stated = chain.ingest(ORDERS, [], plan=planned(chain, held=(0, 2), start=begins))
    unread = chain.merge(ORDERS)
    chain.registry.away = False
    know(chain)
    chain.ingest(ORDERS, RECORDS[2:4], plan=planned(chain, held=(0, 4), start=begins))

    assert (stated.status, stated.versions, stated.counts["appended"]) == (
        TableStatus.ADVANCED,
        {"bronze": 1},
        0,
    )
    assert unread.status is TableStatus.IDLE
    assert notes(chain.bronze(ORDERS)) == {2: "note 2", 3: "note 3"}
    assert progress(chain).floor == 2
    assert chain.merge(ORDERS).counts["read"] == 2
    assert notes(chain.silver(ORDERS)) == {3: "note 2", 4: "note 3"}
