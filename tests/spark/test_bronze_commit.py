"""Rows and ledger reach bronze in one commit, and each step has one winner (`guarantees` §2)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from chain import CLUSTER, PIPELINE, Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import (  # type: ignore[import-not-found]
    NEW,
    OLD,
    ORDERS,
    SOURCE,
    TOPIC,
    know,
    notes,
    order,
    tombstone,
)

from cdc_lakehouse.bronze.table_decoder import TableDecoder
from cdc_lakehouse.contract import ExitCode, TableStatus
from cdc_lakehouse.errors import (
    ForeignCommitError,
    RegistryUnavailableError,
    SchemaConflictError,
    SupersededError,
    UnknownSchemaError,
    UnprovenSourceError,
)
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Kind, Ledger
from cdc_lakehouse.lake.progress import Log, Progress
from cdc_lakehouse.lake.state import TableState, read_state


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("bronze").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    return chain


@pytest.fixture
def stocked(template: Chain, tmp_path: Path) -> Chain:
    """Bronze holds offsets 0 and 1."""
    return template.copied_to(tmp_path)


def bronze_uri(chain: Chain) -> str:
    return str(chain.lake.bronze("orders"))


def bronze_state(chain: Chain) -> TableState:
    state = read_state(bronze_uri(chain), table="orders")
    assert state is not None
    return state


def ledger_of(chain: Chain) -> Ledger:
    ledger = bronze_state(chain).ledger
    assert ledger is not None
    return ledger


def test_a_connector_that_was_never_proven_is_neither_read_nor_merged_unless_accepted(engine, tmp_path):
    chain = Chain(engine, root=tmp_path.as_uri())
    (key_id, key), (value_id, value) = OLD.schemas.items()
    value = value.replace("io.debezium.connector.postgresql", "io.debezium.connector.mariadb")
    chain.registry.register(TOPIC, keys={key_id: key}, values={value_id: value})

    with pytest.raises(UnprovenSourceError, match="mariadb"):
        chain.ingest(ORDERS, [order(0, 1)])
    assert not (tmp_path / "bronze").exists()

    accepting = replace(chain, options={"unproven_source": True})
    assert accepting.ingest(ORDERS, [order(0, 1)]).unproven_source == "mariadb"
    with pytest.raises(UnprovenSourceError, match="mariadb"):
        chain.merge(ORDERS)
    assert not (tmp_path / "silver").exists()
    assert accepting.merge(ORDERS).unproven_source == "mariadb"


def test_rows_and_ledger_are_one_commit(stocked):
    delta = DeltaTable(bronze_uri(stocked))
    (write, create) = delta.history()
    ledger = ledger_of(stocked)

    assert (create["operation"], write["operation"]) == ("CREATE TABLE", "STREAMING UPDATE")
    assert (ledger.seq, ledger.kind, ledger.pipeline, ledger.cluster_id) == (
        1,
        Kind.BRONZE,
        PIPELINE,
        CLUSTER,
    )
    assert ledger.sources == {
        SOURCE: {
            0: Progress(
                floor=0, end=2, log=Log(1010, knows_past=True, last=(1000, 1010)), reached=((0, 1010),)
            )
        }
    }
    assert delta.transaction_version(APPLICATION_ID) == 1
    assert notes(stocked.bronze(ORDERS)) == {0: "one", 1: "two"}


def test_a_result_tells_what_its_commit_added(stocked):
    result = stocked.ingest(ORDERS, [order(2, 3, note="three"), tombstone(3, 3)])

    assert result.status is TableStatus.ADVANCED
    assert result.ranges == {TOPIC: {"0": (2, 4)}}
    assert result.counts == {"appended": 2, "undecodable": 0, "out_of_range": 0}
    assert result.versions == {"bronze": 2}
    assert result.seen_through == "2023-11-14T22:13:20.123000+00:00"


def test_a_zombie_writes_nothing_into_a_step_that_was_taken(stocked):
    plan = stocked.plan(ORDERS, [order(2, 3)])
    stocked.ingest(ORDERS, [order(2, 3, note="winner")], plan=plan)

    with pytest.raises(SupersededError) as caught:
        stocked.ingest(ORDERS, [order(2, 3, note="zombie")], plan=plan)

    assert (caught.value.table, caught.value.seq) == ("orders", 1)
    assert notes(stocked.bronze(ORDERS)) == {0: "one", 1: "two", 2: "winner"}
    assert bronze_state(stocked).version == 2


def test_a_zombie_that_goes_on_later_still_writes_nothing(stocked):
    plan = stocked.plan(ORDERS, [order(2, 3)])
    stocked.ingest(ORDERS, [order(2, 3, note="winner")], plan=plan)
    stocked.ingest(ORDERS, [order(3, 4, note="next")])

    with pytest.raises(SupersededError):
        stocked.ingest(ORDERS, [order(2, 3, note="zombie")], plan=plan)

    assert notes(stocked.bronze(ORDERS)) == {0: "one", 1: "two", 2: "winner", 3: "next"}


def test_a_range_without_records_advances_the_ledger(stocked):
    plan = stocked.plan(ORDERS, [order(4, 1)])

    result = stocked.ingest(ORDERS, [], plan=plan)

    assert result.counts == {"appended": 0, "undecodable": 0, "out_of_range": 0}
    assert ledger_of(stocked).end(SOURCE, 0) == 5
    assert ledger_of(stocked).seq == 2


@pytest.mark.parametrize(
    ("statement", "operation"),
    [
        ("DELETE FROM {t} WHERE offset = 0", "DELETE"),
        ("RESTORE TABLE {t} TO VERSION AS OF 0", "RESTORE"),
    ],
)
def test_a_commit_that_is_not_ours_and_changes_data_stops_the_table(stocked, statement, operation):
    stocked.sql(statement, bronze_uri(stocked))

    with pytest.raises(ForeignCommitError) as caught:
        stocked.plan(ORDERS, [order(2, 3)])

    assert (caught.value.table, caught.value.version, caught.value.operation) == ("orders", 2, operation)


def test_commits_that_keep_the_data_do_not_disturb(stocked):
    stocked.sql("OPTIMIZE {t}", bronze_uri(stocked))
    stocked.sql("VACUUM {t}", bronze_uri(stocked))
    stocked.sql("ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'somebody')", bronze_uri(stocked))
    stocked.ingest(ORDERS, [order(2, 3, note="three")])

    assert ledger_of(stocked).seq == 2
    assert notes(stocked.bronze(ORDERS)) == {0: "one", 1: "two", 2: "three"}


def test_a_schema_that_a_worker_meets_first_is_resolved_and_the_same_batch_written(stocked):
    stocked.registry.hidden = NEW.schemas

    result = stocked.ingest(
        ORDERS, [order(2, 3, note="old"), order(3, 4, note="new", priority=7, writer=NEW)]
    )

    assert stocked.registry.asked == [NEW.value_id]
    assert result.counts == {"appended": 2, "undecodable": 0, "out_of_range": 0}
    assert [row["after"].get("priority") for row in stocked.bronze(ORDERS)] == [None, None, None, 7]
    assert ledger_of(stocked).seq == 2


def test_a_schema_that_nobody_knows_fails_the_batch_and_quarantines_nothing(stocked):
    with pytest.raises(UnknownSchemaError) as caught:
        stocked.ingest(ORDERS, [order(2, 3, priority=7, writer=NEW)])

    assert caught.value.exit_code is ExitCode.RETRY
    assert str(NEW.value_id) in caught.value.schemas
    assert caught.value.records == f"{TOPIC}/0 [2, 3)"
    assert ledger_of(stocked).seq == 1
    assert len(stocked.bronze(ORDERS)) == 2


def test_a_registry_that_is_away_stops_nothing_that_was_archived(stocked):
    stocked.registry.away = True

    result = stocked.ingest(ORDERS, [order(2, 3, note="three")])

    assert (result.status, result.counts["appended"]) == (TableStatus.ADVANCED, 1)
    assert result.registry["source"] == "archive"
    assert notes(stocked.bronze(ORDERS)) == {0: "one", 1: "two", 2: "three"}


def test_a_schema_that_is_new_while_the_registry_is_away_writes_nothing(stocked):
    stocked.registry.hidden = NEW.schemas
    stocked.registry.away = True

    with pytest.raises(RegistryUnavailableError):
        stocked.ingest(ORDERS, [order(2, 3, note="old"), order(3, 4, priority=7, writer=NEW)])

    assert ledger_of(stocked).seq == 1
    assert len(stocked.bronze(ORDERS)) == 2


def test_an_id_that_means_another_schema_now_writes_nothing(stocked):
    stocked.registry.values[TOPIC] = {OLD.value_id: NEW.schemas[NEW.value_id]}

    with pytest.raises(SchemaConflictError) as caught:
        stocked.ingest(ORDERS, [order(2, 3)])

    assert (caught.value.exit_code, caught.value.schema) == (ExitCode.DATA, str(OLD.value_id))
    assert ledger_of(stocked).seq == 1


def test_workers_that_do_not_find_what_they_were_sent_end_the_run(stocked, monkeypatch):
    """Instead of the same pass for ever."""
    plans = TableDecoder.plans
    monkeypatch.setattr(TableDecoder, "plans", lambda self, ids: replace(plans(self, ids), schemas={}))

    with pytest.raises(RuntimeError, match="which they were sent"):
        stocked.ingest(ORDERS, [order(2, 3)])

    assert ledger_of(stocked).seq == 1


def test_a_result_tells_schemas_decoding_and_batches(stocked):
    stocked.registry.hidden = NEW.schemas

    result = stocked.ingest(ORDERS, [order(2, 3), order(3, 4, priority=7, writer=NEW)])

    key_id = next(iter(OLD.schemas))
    assert result.schema_ids == {"key": [key_id], "value": sorted([OLD.value_id, NEW.value_id])}
    assert (result.batches, result.registry["source"], result.bad_rows) == (1, "registry", {})
    assert result.decode_seconds is not None
    assert 0 < result.decode_seconds < 60
    assert result.decoded_per_second is not None
    assert result.decoded_per_second > 0


def test_a_result_names_the_first_bad_rows_of_each_code(stocked):
    records = [
        *(replace(order(offset, 1), value=b"junk") for offset in range(2, 7)),
        replace(order(7, 1), value=order(7, 1).value + b"?"),
    ]

    result = stocked.ingest(ORDERS, records)

    assert result.errors_by_code == {"bad_frame": 5, "trailing_bytes": 1}
    key_id = next(iter(OLD.schemas))
    place = {"topic": TOPIC, "partition": 0, "key_schema_id": key_id}
    assert result.bad_rows == {
        "bad_frame": [{**place, "offset": offset, "value_schema_id": None} for offset in (2, 3, 4)],
        "trailing_bytes": [{**place, "offset": 7, "value_schema_id": OLD.value_id}],
    }
