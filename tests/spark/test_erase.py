"""Keys of a person are erased from every layer: nothing brings them back, and everything goes on."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from chain import CLUSTER, TOPIC_ID, Chain, table_of  # type: ignore[import-not-found]
from orders import (  # type: ignore[import-not-found]
    OLD,
    TOPIC,
    know,
    notes,
    order,
    tombstone,
)
from repairs import carry_out, error_of, make_plan, take_step  # type: ignore[import-not-found]

from cases.case_file import CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE, ExitCode, TableResult, TableStatus
from cdc_lakehouse.debezium.operations import ERASED
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, Retention, TopicFacts
from cdc_lakehouse.lake.quarantine import open_cases
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.repair import erase
from cdc_lakehouse.repair.erase import Erase
from cdc_lakehouse.repair.erasure import erasing
from cdc_lakehouse.repair.rebuild import Rebuild
from cdc_lakehouse.run_modes import RepairStep
from cdc_lakehouse.silver import applying, table_merge
from cdc_lakehouse.silver.history import upkeep

ORDERS = table_of("orders", history=True, raw="always")
SECRET = "a name nobody may read"
KEYS = {"keys": '{"id": 7}'}
LAYERS = ("bronze", "silver", "history", "tombstones")


def half_aged_out(application: Application, topics: Collection[str]) -> ClusterFacts:
    retention = Retention(milliseconds=7 * 86_400_000, size_bytes=None)
    topic = TopicFacts(TOPIC, TOPIC_ID, {0: PartitionOffsets(5, 99)}, retention)
    return ClusterFacts(CLUSTER, {TOPIC: topic})


ERASE = Erase(half_aged_out)


def changed_key(offset: int, old: int, new: int, note: str) -> list[KafkaRecord]:
    """What Debezium sends for an update of a key: delete, tombstone and create, at one place of the log."""
    lsn = 1000 + 10 * offset
    place = SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn, order=1)
    leaves = CaseEvent(at=f"0@{offset}", op="d", key={"id": old}, position=place, headers={"new": SECRET})
    comes = CaseEvent(
        at=f"0@{offset + 2}", op="c", key={"id": new}, after={"id": new, "note": note}, position=place
    )
    return [OLD.record(leaves), tombstone(offset + 1, old), OLD.record(comes)]


def undecodable(offset: int, number: int) -> KafkaRecord:
    sound = order(offset, number, note=SECRET)
    return replace(sound, value=sound.value[:-3])


BATCH = [
    order(0, 1, note="one"),
    order(1, 7, note=SECRET),
    order(2, 2, note="two"),
    order(3, 7, op="u", note=SECRET + "!"),
    *changed_key(4, 7, 8, SECRET),  # 4 to 6
    undecodable(7, 8),
    order(8, 9, note=SECRET),
    order(9, 9, op="d"),
    order(10, 1, op="u", note="newer"),
]


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("erase").as_uri())
    know(chain)
    chain.ingest(ORDERS, BATCH)
    chain.merge(ORDERS)
    return chain


@pytest.fixture
def merged(template: Chain, tmp_path: Path) -> Chain:
    """Keys 7 and 8 are of one person, 9 of another one, who was deleted; 1 and 2 stay."""
    return template.copied_to(tmp_path)


def acted(chain: Chain, plan: TableResult, table: Table = ORDERS, **options: str) -> TableResult:
    digest = plan.plan["digest"]
    result: TableResult = take_step(chain, table, ERASE, RepairStep.ACT, digest=digest, options=options)
    return result


def verified(chain: Chain, plan: TableResult, table: Table = ORDERS) -> TableResult:
    digest = plan.plan["digest"]
    result: TableResult = take_step(chain, table, ERASE, RepairStep.VERIFY, digest=digest)
    return result


def uri_of(chain: Chain, layer: str) -> str:
    lake = chain.lake
    uris: dict[str, str] = {
        "bronze": lake.bronze("orders"),
        "silver": lake.silver("orders"),
        "history": lake.history("orders"),
        "tombstones": lake.tombstones("orders"),
    }
    return uris[layer]


def everything(chain: Chain) -> str:
    """Return all rows of all layers as text, bytes too."""
    rows = [row for layer in LAYERS for row in chain.rows(uri_of(chain, layer))]
    return " ".join(f"{row}" for row in rows)


def text_of_files(chain: Chain) -> list[str]:
    """Return the data files of the newest versions in which the secret stands, hidden rows included."""
    found = []
    for layer in LAYERS:
        snapshot = newest_snapshot(uri_of(chain, layer))
        assert snapshot is not None
        for file in snapshot.files:
            path = Path(urlsplit(uri_of(chain, layer)).path) / file.path
            if SECRET in str(pq.ParquetFile(path).read().to_pylist()):
                found.append(f"{layer}/{file.path}")
    return found


def records_of(chain: Chain) -> str:
    """Return all texts beside the tables: records of repairs and logs."""
    root = Path(urlsplit(chain.root).path)
    return " ".join(path.read_text() for path in (root / "_ops").rglob("*.json"))


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def test_a_person_is_erased_under_every_key_from_every_layer_and_nothing_else_is(merged: Chain):
    bronze_before = {row["offset"]: row for row in merged.bronze(ORDERS)}

    plan = make_plan(merged, ORDERS, ERASE, KEYS)
    first, second = acted(merged, plan), acted(merged, plan)
    checked = verified(merged, plan)

    effects = {name: count for name, count in plan.counts.items() if count}
    assert effects == {
        "keys_named": 1,
        "keys_followed": 1,
        "bronze_rows": 6,
        "silver_rows": 1,
        "history_rows": 3,
        "tombstones_rows": 1,
        "quarantined_records": 1,
        "kafka_records": 3,
    }
    assert first.counts == {"bronze_rows": 6, "silver_rows": 1, "history_rows": 3, "tombstones_rows": 1}
    assert (second.status, checked.error, checked.counts) == (TableStatus.IDLE, None, {"rows_left": 0})
    rows = {row["offset"]: row for row in merged.bronze(ORDERS)}
    assert [offset for offset, row in rows.items() if row["op"] == ERASED] == [1, 3, 4, 5, 6, 7]
    emptied = ("key", "before", "after", "headers", "decode_error", "raw_key", "raw_value")
    assert {row[name] for row in rows.values() if row["op"] == ERASED for name in emptied} == {None}
    assert rows[3]["position"] == bronze_before[3]["position"]
    assert {offset: rows[offset] for offset in (0, 2, 8, 9, 10)} == {
        offset: bronze_before[offset] for offset in (0, 2, 8, 9, 10)
    }
    assert (notes(merged.silver(ORDERS)), open_cases(uri_of(merged, "bronze"))) == ({1: "newer", 2: "two"}, 0)
    assert ids(merged.history(ORDERS)) == [1, 1, 2, 9]
    assert ids(merged.rows(uri_of(merged, "tombstones"))) == [9]
    for layer in ("bronze", "silver"):
        state = read_state(uri_of(merged, layer), table="orders")
        assert state is not None
        assert state.ledger is not None
        assert (state.step, state.ledger.decisions["repair"]["plan"]) == (
            state.ledger.seq,
            plan.plan["digest"],
        )


def test_no_file_of_the_newest_versions_and_no_record_of_the_run_holds_a_value(merged: Chain):
    both = {"keys": '{"id": 7}\n{"id": 9}\n'}
    merged.ingest(ORDERS, [order(11, 8, op="u", note=SECRET + "?")])
    merged.merge(ORDERS)  # hides an older row of silver behind a deletion vector

    plan = make_plan(merged, ORDERS, ERASE, both)
    acted(merged, plan)
    verified(merged, plan)

    assert SECRET not in everything(merged)
    assert text_of_files(merged) == []
    assert SECRET not in records_of(merged)
    assert '"id\\": 7' not in records_of(merged)


def test_merges_and_rebuilds_behind_an_erasure_bring_nothing_back(merged: Chain):
    acted(merged, make_plan(merged, ORDERS, ERASE, KEYS))
    versions = ids(merged.history(ORDERS))

    idle = merged.merge(ORDERS)
    rebuild = make_plan(merged, ORDERS, Rebuild())
    merged.ingest(ORDERS, [order(11, 3, note="three"), order(12, 2, op="d")])
    merged.merge(ORDERS)

    assert idle.status is TableStatus.IDLE
    assert (rebuild.status, rebuild.plan["is_needed"], rebuild.error) == (TableStatus.IDLE, False, None)
    assert notes(merged.silver(ORDERS)) == {1: "newer", 3: "three"}
    assert ids(merged.history(ORDERS)) == sorted([*versions, 3])


def test_an_undo_of_a_rebuild_from_before_an_erasure_is_refused(merged: Chain):
    rebuild = make_plan(merged, ORDERS, Rebuild())
    carry_out(merged, ORDERS, Rebuild(), rebuild)
    acted(merged, make_plan(merged, ORDERS, ERASE, KEYS))

    undo = make_plan(merged, ORDERS, Rebuild(), {"undo": rebuild.plan["digest"]})

    assert "keys were erased from the table since" in error_of(undo).sentence


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (erasing.Erasure, "delete_from_silver"),
        (erasing, "delete_step"),
        (erase, "purge"),
        (erase, "_delete_copies"),
    ],
)
def test_an_erasure_that_was_killed_between_two_commits_is_finished_behind_a_merge(
    merged: Chain, place: Any, name: str, monkeypatch: pytest.MonkeyPatch
):
    plan = make_plan(merged, ORDERS, ERASE, KEYS)

    def die(*_arguments: object, **_facts: object) -> None:
        raise SupersededError(table="orders", seq=0, attempt="killed")

    with monkeypatch.context() as patch:
        patch.setattr(place, name, die)
        killed = acted(merged, plan)
    early = verified(merged, plan)
    merged.ingest(ORDERS, [order(11, 3, note="three"), order(12, 1, op="u", note="newest")])
    merged.merge(ORDERS)
    finished, checked = acted(merged, plan), verified(merged, plan)
    rebuild = make_plan(merged, ORDERS, Rebuild())

    assert (error_of(killed).exit_code, error_of(early).code) == (ExitCode.RETRY, "PLAN_CHANGED")
    assert (finished.status, checked.error) == (TableStatus.REPAIRED, None)
    assert notes(merged.silver(ORDERS)) == {1: "newest", 2: "two", 3: "three"}
    assert ids(merged.history(ORDERS)) == [1, 1, 1, 2, 3, 9]
    assert ids(merged.rows(uri_of(merged, "tombstones"))) == [9]
    assert rebuild.plan["is_needed"] is False


def test_an_unfinished_erasure_refuses_an_undo_and_has_deleted_the_copies(
    merged: Chain, monkeypatch: pytest.MonkeyPatch
):
    rebuild = make_plan(merged, ORDERS, Rebuild())
    carry_out(merged, ORDERS, Rebuild(), rebuild)
    plan = make_plan(merged, ORDERS, ERASE, KEYS)
    copy = Path(urlsplit(merged.lake.shadows("orders")).path) / "copy"
    copy.mkdir(parents=True)

    def die(*_arguments: object) -> None:
        raise SupersededError(table="orders", seq=0, attempt="killed")

    with monkeypatch.context() as patch:
        patch.setattr(erasing.Erasure, "delete_from_silver", die)
        killed = acted(merged, plan)
    undo = make_plan(merged, ORDERS, Rebuild(), {"undo": rebuild.plan["digest"]})

    assert (error_of(killed).code, copy.exists()) == ("SUPERSEDED", False)
    assert "erase of plan" in error_of(undo).sentence
    assert "is not finished" in error_of(undo).sentence


def test_a_merge_that_read_the_values_before_they_were_erased_is_refused(
    merged: Chain, monkeypatch: pytest.MonkeyPatch
):
    merged.ingest(ORDERS, [order(11, 8, op="u", note=SECRET), order(12, 3, note="three")])
    plan = make_plan(merged, ORDERS, ERASE, KEYS)
    real = applying.apply_changes

    def erase_first(*arguments: Any, **facts: Any) -> Any:
        acted(merged, plan)
        return real(*arguments, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(table_merge, "apply_changes", erase_first)
        with pytest.raises(SupersededError):
            merged.merge(ORDERS)
    merged.merge(ORDERS)

    assert verified(merged, plan).error is None
    assert notes(merged.silver(ORDERS)) == {1: "newer", 2: "two", 3: "three"}
    assert SECRET not in " ".join(row["note"] or "" for row in merged.history(ORDERS) if row["id"] != 9)


@pytest.mark.parametrize(
    ("place", "name", "caller"),
    [
        (applying, "apply_changes", table_merge),
        (upkeep, "merge_history", upkeep),
        (applying, "_applied", applying),
    ],
)
def test_a_merge_in_flight_commits_no_value_of_a_key_that_silver_does_not_have_yet(
    merged: Chain, place: Any, name: str, caller: Any, monkeypatch: pytest.MonkeyPatch
):
    merged.ingest(ORDERS, [order(11, 50, note=SECRET), order(12, 3, note="three")])
    plan = make_plan(merged, ORDERS, ERASE, {"keys": '{"id": 50}'})
    real, erasures = getattr(place, name), []

    def erase_first(*arguments: Any, **facts: Any) -> Any:
        erasures.append(acted(merged, plan))
        return real(*arguments, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(caller, name, erase_first)
        with pytest.raises(SupersededError):
            merged.merge(ORDERS)
    ids_between = [ids(merged.rows(uri_of(merged, layer))) for layer in ("silver", "history")]
    merged.merge(ORDERS)

    assert [erasure.error for erasure in erasures] == [None]
    assert [50 in numbers for numbers in ids_between] == [False, False]
    assert verified(merged, plan).error is None
    assert notes(merged.silver(ORDERS)) == {1: "newer", 2: "two", 3: "three", 8: SECRET}
    assert 50 not in ids(merged.history(ORDERS))


@pytest.mark.parametrize("killed_at", [None, "delete_step"])
def test_a_history_without_rows_of_the_keys_is_not_recut_by_the_next_merge(
    merged: Chain, killed_at: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    merged.ingest(ORDERS, [undecodable(11, 50)])
    merged.merge(ORDERS)
    plan = make_plan(merged, ORDERS, ERASE, {"keys": '{"id": 50}'})

    def die(*_arguments: object, **_facts: object) -> None:
        raise SupersededError(table="orders", seq=0, attempt="killed")

    if killed_at is not None:
        with monkeypatch.context() as patch:
            patch.setattr(erasing, killed_at, die)
            killed = [acted(merged, plan), acted(merged, plan)]
        assert [error_of(result).code for result in killed] == ["SUPERSEDED", "SUPERSEDED"]
    done = acted(merged, plan)
    merged.ingest(ORDERS, [order(12, 3, note="three")])
    with caplog.at_level("INFO"):
        merged.merge(ORDERS)

    assert (plan.counts["bronze_rows"], done.error) == (1, None)
    assert [vars(line)["cut_anew"] for line in caplog.records if line.message == "history committed"] == [
        False
    ]
    assert ids(merged.history(ORDERS)) == [1, 1, 2, 3, 7, 7, 8, 9]


def test_keys_may_be_chosen_by_a_condition_on_silver_or_by_a_file_that_goes_afterwards(merged: Chain):
    folder = Path(urlsplit(f"{merged.lake.operations}/erase").path)
    folder.mkdir(parents=True)
    file = folder / "request-17.jsonl"
    file.write_text('{"id": 2}\n')

    by_condition = make_plan(merged, ORDERS, ERASE, {"where": f"note LIKE '{SECRET}%'"})
    by_file = make_plan(merged, ORDERS, ERASE, {"keys_file": "request-17.jsonl"})
    done = acted(merged, by_file, keys_file="request-17.jsonl")
    checked = verified(merged, by_file)
    again = verified(merged, by_file)

    # 7, 8 and 9 had the note; the history knows it of those that silver has no more.
    assert (by_condition.counts["keys_named"], by_condition.counts["bronze_rows"]) == (3, 8)
    assert SECRET not in records_of(merged)
    assert (done.counts["silver_rows"], checked.error, again.error) == (1, None, None)
    assert (file.exists(), ids(merged.silver(ORDERS))) == (False, [1, 8])


def test_bad_input_is_refused_without_a_value_in_the_sentence(merged: Chain):
    plan = make_plan(merged, ORDERS, ERASE, KEYS)

    def refusal(**options: str) -> str:
        return str(error_of(make_plan(merged, ORDERS, ERASE, options)).sentence)

    sentences = [
        refusal(),
        refusal(keys='{"id": 7}', where="id = 7"),
        refusal(keys=SECRET),
        refusal(keys=json.dumps({"name": SECRET})),
        refusal(keys=json.dumps({"id": SECRET})),
        refusal(where=f"name = '{SECRET}'"),
        refusal(where="id = 12345"),
        refusal(keys_file="../../orders.yaml"),
        refusal(keys_file="missing.jsonl"),
    ]
    other = acted(merged, plan, keys='{"id": 1}')

    assert SECRET not in " ".join(sentences)
    assert [sentence.partition("cannot be done: ")[2][:40] for sentence in sentences] == [
        "one of its options keys, keys_file and w",
        "its options keys and where name keys; on",
        "line 1 of its keys is no JSON object of ",
        "a key is a JSON object with id, as the s",
        "1 of the keys have a value that is NULL ",
        "`where` is no condition on the columns o",
        "no row of silver or its history satisfie",
        "`keys_file` names a file of the folder f",
        "there is no file " + merged.lake.root[:23],
    ]
    assert error_of(other).code == "PLAN_CHANGED"
    assert ids(merged.silver(ORDERS)) == [1, 2, 8]


def test_a_table_made_by_other_settings_or_without_a_column_of_the_key_is_refused(merged: Chain):
    plan = make_plan(merged, ORDERS, ERASE, KEYS)
    renamed = table_of("orders", history=True, raw="always", columns={"rename": {"id": "person"}})

    planned, carried_out = make_plan(merged, renamed, ERASE, KEYS), acted(merged, plan, renamed)
    merged.forget(uri_of(merged, "history"))
    merged.session.range(1).toDF("person").write.format("delta").save(uri_of(merged, "history"))
    lacking = make_plan(merged, ORDERS, ERASE, KEYS)

    sentences = [error_of(result).sentence for result in (planned, carried_out, lacking)]
    assert {error_of(result).code for result in (planned, carried_out, lacking)} == {"REPAIR_REFUSED"}
    assert [sentence.partition("cannot be done: ")[2] for sentence in sentences] == [
        "its silver was made by other `columns`, `filter`, `key` or `topic_column` than the pipeline file "
        "has; rebuild it first",
        "its silver was made by other `columns`, `filter`, `key` or `topic_column` than the pipeline file "
        "has; rebuild it first",
        "its history lacks id, so rows of the keys cannot be found there; rebuild it first",
    ]
    assert ids(merged.silver(ORDERS)) == [1, 2, 8]


def test_verification_fails_while_a_row_is_left_and_tells_of_rows_that_came_since(merged: Chain):
    plan = make_plan(merged, ORDERS, ERASE, KEYS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erasing.Erasure, "delete_from_silver", lambda *_arguments: {})
        acted(merged, plan)
    wrong = verified(merged, plan)

    assert error_of(wrong).code == "REPAIR_NOT_VERIFIED"
    assert "1 row(s) of silver, 3 row(s) of history" in error_of(wrong).sentence


def test_events_that_come_behind_an_erasure_are_new_ones(merged: Chain):
    plan = make_plan(merged, ORDERS, ERASE, KEYS)
    acted(merged, plan)
    merged.ingest(ORDERS, [order(11, 7, note="again")])
    merged.merge(ORDERS)

    checked = verified(merged, plan)

    assert checked.error is None
    assert checked.counts == {
        "rows_left": 0,
        "bronze_came_since": 1,
        "silver_came_since": 1,
        "history_came_since": 1,
    }
    assert notes(merged.silver(ORDERS)) == {1: "newer", 2: "two", 7: "again"}


def test_a_key_that_silver_hashes_and_renames_is_named_as_the_source_names_it(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
):
    masked = table_of("orders", columns={"mask": {"id": "hash"}, "rename": {"id": "person"}})
    connection = {"extra": {"root": "file:///lake", "mask_secret": "a secret that nobody may ever read"}}
    monkeypatch.setenv(ENV_CONNECTION_STORAGE, json.dumps(connection))
    know(chain)
    chain.ingest(masked, [order(0, 1, note="one"), order(1, 7, note=SECRET), *changed_key(2, 7, 8, SECRET)])
    chain.merge(masked)

    by_key, by_condition = (
        make_plan(chain, masked, ERASE, {"keys": '{"id": 8}'}),
        make_plan(chain, masked, ERASE, {"where": f"note = '{SECRET}'"}),
    )
    acted(chain, by_key, masked)

    assert by_condition.counts["bronze_rows"] == by_key.counts["bronze_rows"]
    assert (by_key.counts["keys_followed"], by_key.counts["bronze_rows"]) == (1, 4)
    assert verified(chain, by_key, masked).error is None
    assert [row["note"] for row in chain.silver(masked)] == ["one"]


def test_a_silver_that_was_masked_with_another_secret_is_refused(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
):
    masked = table_of("orders", columns={"mask": {"id": "hash"}})

    def use_secret(secret: str) -> None:
        connection = {"extra": {"root": "file:///lake", "mask_secret": secret}}
        monkeypatch.setenv(ENV_CONNECTION_STORAGE, json.dumps(connection))

    know(chain)
    use_secret("a secret that nobody may ever read")
    chain.ingest(masked, [order(0, 7, note=SECRET)])
    chain.merge(masked)
    use_secret("another secret that nobody may read")

    plan = make_plan(chain, masked, ERASE, KEYS)

    assert "its silver was masked with another secret" in error_of(plan).sentence


def test_a_silver_that_is_made_behind_an_erasure_does_not_fail_its_verification(chain: Chain):
    know(chain)
    chain.ingest(ORDERS, BATCH)
    plan = make_plan(chain, ORDERS, ERASE, KEYS)
    acted(chain, plan)
    chain.merge(ORDERS)

    checked = verified(chain, plan)

    assert (checked.error, checked.counts) == (None, {"rows_left": 0})
    assert notes(chain.silver(ORDERS)) == {1: "newer", 2: "two"}


def test_a_key_of_the_tables_own_is_followed_through_the_images_of_its_updates(chain: Chain):
    own = table_of("orders", key=["note"])

    def event(offset: int, op: str, before: str | None, after: str | None, number: int = 1) -> KafkaRecord:
        lsn = 1000 + 10 * offset
        images = [None if note is None else {"id": number, "note": note} for note in (before, after)]
        place = SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn, order=1)
        facts = {"op": op, "key": {"id": number}, "before": images[0], "after": images[1], "position": place}
        return OLD.record(CaseEvent(at=f"0@{offset}", **facts))

    know(chain)
    batch = [
        event(0, "c", None, "ann"),
        event(1, "u", "ann", "anna"),
        event(2, "d", "anna", None),
        tombstone(3, 1),
        event(4, "c", None, "bob", number=2),
    ]
    chain.ingest(own, batch)
    chain.merge(own)

    plan = make_plan(chain, own, ERASE, {"keys": '{"note": "ann"}'})
    acted(chain, plan, own)

    assert (plan.counts["keys_followed"], plan.counts["bronze_rows"]) == (1, 4)
    assert verified(chain, plan, own).error is None
    assert [row["offset"] for row in chain.bronze(own) if row["op"] == ERASED] == [0, 1, 2, 3]
    assert [row["note"] for row in chain.silver(own)] == ["bob"]


def test_rows_of_a_table_without_a_key_are_named_by_any_of_its_columns(chain: Chain):
    chain.registry.register(TOPIC, keys={}, values={OLD.value_id: OLD.schemas[OLD.value_id]})
    plain = table_of("orders")
    records = [order(0, 1, note="one"), order(1, 2, note=SECRET), order(2, 3, note=SECRET)]
    chain.ingest(plain, [replace(record, key=None) for record in records])
    chain.merge(plain)

    refused = make_plan(chain, plain, ERASE, {"where": "id = 2"})
    plan = make_plan(chain, plain, ERASE, {"keys": json.dumps({"note": SECRET})})
    acted(chain, plan, plain)

    assert "it has no key" in error_of(refused).sentence
    assert (plan.counts["bronze_rows"], plan.counts["silver_rows"]) == (2, 2)
    assert verified(chain, plan, plain).error is None
    assert notes(chain.silver(plain)) == {1: "one"}
