"""A merge without Spark, from bronze on disk to silver on disk, against the specification."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from cases.case_file import CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.rows import told_history, told_silver  # type: ignore[import-not-found]
from cdc_lakehouse.config.models import Mode, Table
from cdc_lakehouse.fold.inputs import EPOCH, Clearings, Events, StoredRows
from cdc_lakehouse.fold.row_versions import VersionRules, cut_versions
from cdc_lakehouse.fold.timeline import arrange
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.delta_transaction import removal_of
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Kind, Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.rows import rows_of
from cdc_lakehouse.lake.snapshot import Snapshot, newest_snapshot
from cdc_lakehouse.lake.state import STEPS_ID
from cdc_lakehouse.silver.columnar.file_changes import delete_rows, write_rows
from cdc_lakehouse.silver.columnar.news import GeneralMergeNeededError, read_news
from cdc_lakehouse.silver.columnar.news_fold import fold_news
from cdc_lakehouse.silver.columnar.small_merge import plan_ledger
from cdc_lakehouse.silver.history.upkeep import RULES
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.plan import first_ledger, next_ledger, plan_work, standing_on
from spark.made_up_source import MadeUpSource, batches, made_up_case  # type: ignore[import-not-found]
from unit.test_fold import ID, LakeInMemory, MadeUpTable, no_versions  # type: ignore[import-not-found]

FEATURES = {
    "readerFeatures": ["deletionVectors", "timestampNtz"],
    "writerFeatures": ["deletionVectors", "timestampNtz"],
}


def commit(
    uri: str,
    *actions: Mapping[str, Any],
    ledger: Ledger | None = None,
    note: Mapping[str, Any] | None = None,
) -> None:
    """Write the next commit of a log; nobody else writes it here."""
    folder = Path(uri.removeprefix("file://")) / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    version = len(list(folder.glob("*.json")))
    info: dict[str, Any] = {"operation": "STREAMING UPDATE", "timestamp": version}
    lines = list(actions)
    if ledger is not None:
        info["userMetadata"] = ledger.to_json()
        lines.append({"txn": {"appId": APPLICATION_ID, "version": ledger.seq}})
    if note is not None:
        info["userMetadata"] = json.dumps({"cdc_lakehouse_step": note})
        lines.append({"txn": {"appId": STEPS_ID, "version": note["number"]}})
    lines.insert(0, {"commitInfo": info})
    (folder / f"{version:020d}.json").write_text("\n".join(json.dumps(line) for line in lines))


def create(uri: str, schema: pa.Schema) -> None:
    metadata = {
        "id": uri,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [delta_field(field) for field in schema]}),
        "partitionColumns": [],
        "configuration": {"delta.enableDeletionVectors": "true"},
        "createdTime": 0,
    }
    commit(
        uri, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **FEATURES}}, {"metaData": metadata}
    )


def delta_field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": delta_type(field.type), "nullable": True, "metadata": {}}


def delta_type(type_: pa.DataType) -> Any:
    if pa.types.is_struct(type_):
        return {"type": "struct", "fields": [delta_field(field) for field in type_]}
    if pa.types.is_list(type_):
        return {"type": "array", "elementType": delta_type(type_.value_type), "containsNull": True}
    names = {"int64": "long", "int32": "integer", "string": "string", "bool": "boolean", "binary": "binary"}
    return "timestamp" if pa.types.is_timestamp(type_) else names[str(type_)]


class LakeOnDisk:
    """Bronze and silver of one table, written without an engine."""

    def __init__(self, folder: Path, table: MadeUpTable, *, deletes: str, history: Any = None) -> None:
        self.lake = Lake(root=folder.as_uri(), pipeline="shop")
        self.expected = LakeInMemory(table.columns, deletes)
        self.made_up = table
        self.table = Table.model_validate(
            {"name": "made_up", "topics": ("cases.made_up",), "deletes": deletes, "history": history}
        )
        self.held = Ledger(kind=Kind.BRONZE, pipeline="shop", table="made_up", cluster_id="cluster")
        self.before: Ledger | None = None
        self.kinds: Counter[str] = Counter()
        self.numbers: Counter[str] = Counter()

    def ingest(self, rows: pa.Table) -> None:
        assert set(rows[EPOCH].to_pylist()) <= {0}
        rows = rows.drop_columns([EPOCH])
        uri = self.lake.bronze("made_up")
        if self.held.seq == 0:
            create(uri, rows.schema)
        ends: dict[int, int] = {}
        for row in rows.select(["partition", "offset"]).to_pylist():
            ends[row["partition"]] = max(ends.get(row["partition"], 0), row["offset"] + 1)
        source = f"{rows['topic'][0].as_py()}@{rows['topic_id'][0].as_py()}"
        added = {source: {p: (self.held.end(source, p) or 0, end) for p, end in ends.items()}}
        before = self.held
        self.held = before.advanced(added, attempt=f"i{before.seq}", seen_through=None)
        files = write_rows(uri, rows, keys=["offset"], attempt="i")
        commit(uri, *(file.action() for file in files), ledger=self.held)

    def merge(self, rows: pa.Table, cleared: Sequence[Place]) -> None:
        self.expected.merge(rows, cleared)
        before = self.before or first_ledger(self.held)
        task = self.task(before)
        try:
            news = read_news(self.lake, task)
            changes = fold_news(self.lake, task, news)
        except GeneralMergeNeededError as exc:
            self.kinds[str(exc)] += 1
            self.before = self.write_all(before, cleared)
            return
        self.kinds["small"] += 1
        application = SimpleNamespace(lake=self.lake, attempt=f"m{before.seq}")
        self.before, _ = plan_ledger(application, task, news)  # type: ignore[arg-type]
        if changes.history is not None:
            self.write(
                "history", changes.history.rows, delete_rows(self.uri("history"), changes.history.found)
            )
        self.write("tombstones", changes.tombstones)
        self.write("silver", changes.rows, delete_rows(self.uri("silver"), changes.found), ledger=self.before)

    def uri(self, layer: str) -> str:
        return {
            "silver": self.lake.silver("made_up"),
            "history": self.lake.history("made_up"),
            "tombstones": self.lake.tombstones("made_up"),
        }[layer]

    def write(
        self,
        layer: str,
        rows: pa.Table,
        removals: Sequence[Mapping[str, Any]] = (),
        *,
        ledger: Ledger | None = None,
    ) -> None:
        """Commit as the merge does; a table without a ledger says for which step of silver it was written."""
        assert self.before is not None
        files = write_rows(self.uri(layer), rows, keys=self.expected.keys, attempt="m")
        step = {} if ledger is not None else self.step(layer)
        commit(self.uri(layer), *removals, *(file.action() for file in files), ledger=ledger, **step)

    def step(self, layer: str) -> dict[str, Any]:
        assert self.before is not None
        self.numbers[layer] += 1
        note = {
            "number": self.numbers[layer],
            "attempt": self.before.attempt,
            "silver": self.before.seq,
            "behind": None,
            "life": self.lake.silver("made_up"),
            "rules": RULES,
        }
        return {"note": note}

    def task(self, before: Ledger) -> MergeTask:
        bronze = snapshot(self.lake.bronze("made_up"))
        is_there = DeltaTable.is_deltatable(self.lake.silver("made_up"))
        version = snapshot(self.lake.silver("made_up")).version if is_there else 0
        return MergeTask(
            self.table,
            mode=Mode.UPSERT,
            bronze_version=bronze.version,
            stated=bronze.version,
            held=self.held,
            before=before,
            follows=version,
            silver_stated=version or None,
            work=plan_work(self.held, before),
            open_cases=0,
            late={},
            read_again={},
            redo=(),
            holds=False,
            releases=False,
            small=True,
        )

    def write_all(self, before: Ledger, cleared: Sequence[Place]) -> Ledger:
        """Replace silver and its tombstones by what the specification says, as the general merge would."""
        rows = self.expected.table(self.expected.silver)
        rows = rows if self.expected.deletes == "soft" else rows.drop_columns(["_cdc_deleted"])
        tombstones = pa.Table.from_pylist(self.expected.tombstones, self.tombstone_schema(rows))
        assert self.expected.bronze is not None
        is_event = pc.is_in(self.expected.bronze["op"], pa.array(["c", "u", "d", "r"]))
        commits = pc.struct_field(self.expected.bronze.filter(is_event)["position"], "commit")
        applied = Applied(
            cleared=cleared[-1] if cleared else None,
            reached=(0, pc.max(commits).as_py()) if len(commits) else None,
            unfilled=any(row["_cdc_incomplete"] for row in self.expected.silver.values()),
            follows=self.task(before).follows,
        )
        work = plan_work(self.held, before)
        after = next_ledger(
            before, self.held, work, attempt=f"m{before.seq}", seen_through=None, applied=applied
        )
        after = standing_on(self.held, after, version=0, undecodable={}, read_again={})
        self.before = after
        layers = {"tombstones": tombstones, "silver": rows}
        if self.table.history is not None:
            layers["history"] = self.whole_history()
        for layer, new in layers.items():
            if not DeltaTable.is_deltatable(self.uri(layer)):
                create(self.uri(layer), new.schema)
            removals = [{"remove": removal_of(file.action, at=0)} for file in snapshot(self.uri(layer)).files]
            self.write(layer, new, removals, ledger=after if layer == "silver" else None)
        return after

    def whole_history(self) -> pa.Table:
        assert self.table.history is not None
        assert self.expected.bronze is not None
        columns, endings = self.made_up.columns, self.made_up.endings()
        events = Events.from_bronze(self.expected.bronze).with_one_commit()
        clearings = Clearings([ending.place for ending in endings])
        nothing = StoredRows.from_silver(self.expected.table({}), self.expected.keys)
        timeline, _ = arrange(events, nothing, self.expected.buried(none=True), clearings)
        rules = VersionRules(columns, self.table.history.columns)
        return cut_versions(timeline, endings, no_versions(columns), rules).rows

    def history(self) -> list[dict[str, Any]]:
        found = [
            told_history(self.made_up.case, row) for row in rows_of(snapshot(self.uri("history"))).to_pylist()
        ]
        return sorted(found, key=lambda row: (row["id"], row["_cdc_from"]))

    def tombstone_schema(self, rows: pa.Table) -> pa.Schema:
        return pa.schema(
            [rows.schema.field(name) for name in (*self.expected.keys, "_cdc_position", "_cdc_tx_id")]
            + [("_cdc_commit_ts", rows.schema.field("_cdc_commit_ts").type)]
        )

    def rows(self) -> list[dict[str, Any]]:
        case = self.made_up.case
        found = rows_of(snapshot(self.lake.silver("made_up"))).to_pylist()
        return sorted((told_silver(case, row) for row in found), key=ID)


def snapshot(uri: str) -> Snapshot:
    found = newest_snapshot(uri)
    assert found is not None
    return found


class OnePartition(MadeUpSource):  # type: ignore[misc]
    """What most merges get: one partition in its order, which is now and then sent again in part."""

    def run(self, transactions: int, *, read_again: float = 0.0) -> None:
        self.partitions = 1
        for _ in range(transactions):
            self.transaction()
            if self.random.random() < 0.02:
                self.crash()


@pytest.mark.parametrize(
    ("deletes", "history"),
    [("hard", None), ("soft", None), ("hard", True), ("soft", {"columns": ["note"]})],
    ids=["hard", "soft", "history", "soft_tracked_history"],
)
def test_rows_of_made_up_sources_are_as_specified_after_every_merge(
    tmp_path: Path, deletes: str, history: Any
):
    kinds: Counter[str] = Counter()
    tracked = history["columns"] if isinstance(history, dict) else None
    for seed in range(10):
        random = Random(seed)  # noqa: S311 - a seed, no secret
        source, made_up = OnePartition(random), MadeUpTable(made_up_case("made_up"))
        source.run(60)
        lake = LakeOnDisk(tmp_path / str(seed), made_up, deletes=deletes, history=history)
        for number, batch in enumerate(batches(source, random, count=10)):
            if batch:
                rows = made_up.read(batch)
                lake.ingest(rows)
                lake.merge(rows, made_up.clearings())

                assert lake.rows() == made_up.silver(deletes=deletes), (seed, number, lake.kinds)
                if history:
                    assert lake.history() == made_up.history(tracked), (seed, number, lake.kinds)
        kinds.update(lake.kinds)
    assert kinds["small"] > 30, kinds


def test_a_batch_of_tombstones_alone_moves_the_ledger_on_and_no_row(tmp_path: Path):
    made_up = MadeUpTable(made_up_case("made_up"))
    lake = LakeOnDisk(tmp_path, made_up, deletes="hard", history=True)
    row, place = {"id": 1, "note": "one", "big": "b"}, SourcePosition(sequence=(90, 100), lsn=100, tx=7)
    batches = [
        [CaseEvent(at="0@0", op="c", key={"id": 1}, after=row, position=place)],
        [CaseEvent(at="0@1", key={"id": 2})],
    ]
    for batch in batches:
        rows = made_up.read(batch)
        lake.ingest(rows)
        lake.merge(rows, made_up.clearings())

    assert lake.kinds["small"] == 1
    assert [row["id"] for row in lake.rows()] == [1]
    assert lake.before is not None
    assert plan_work(lake.held, lake.before) == {}
