"""The columnar fold, merge by merge, against the specification: no Spark, no disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cases.case_file import Case, applied_cases, historic_cases  # type: ignore[import-not-found]
from cases.encoding import COMMIT_MILLIS, records, writers  # type: ignore[import-not-found]
from cases.rows import (  # type: ignore[import-not-found]
    in_coordinate_order,
    in_key_order,
    in_version_order,
    millis_of,
    specified_silver,
    told_bronze,
    told_history,
    told_silver,
)
from cdc_lakehouse.debezium.bronze import bronze_schema
from cdc_lakehouse.debezium.columns import TableColumns, columns_of, evolve_leniently
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.incompatible import with_side_columns
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.fold.folded_keys import FoldedKeys, fold
from cdc_lakehouse.fold.inputs import EPOCH, Clearings, Ending, Events, StoredRows, StoredVersions, Tombstones
from cdc_lakehouse.fold.places import FIELDS
from cdc_lakehouse.fold.row_versions import VersionRules, cut_versions
from cdc_lakehouse.fold.timeline import Timeline, arrange
from cdc_lakehouse.lake.place import Place
from epochs_oracle import Epochs  # type: ignore[import-not-found]
from history_oracle import history_of  # type: ignore[import-not-found]
from oracle import clearings, decodable, event_of, silver_of, with_one_commit_per_transaction  # type: ignore[import-not-found]
from spark.made_up_source import MadeUpSource, batches, drains, made_up_case  # type: ignore[import-not-found]
from unit.test_silver_cases import kafka_batch  # type: ignore[import-not-found]

Row = dict[str, Any]
POSITION = pa.struct([(name, pa.int64()) for name in FIELDS])
ID = itemgetter("id")


@dataclass
class LakeInMemory:
    """Silver, its tombstones and all of bronze, as Arrow; merges as a job would do them."""

    columns: TableColumns
    deletes: str = "hard"
    bronze: pa.Table | None = None
    silver: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    tombstones: list[Row] = field(default_factory=list)
    cleared: Place | None = None
    met: set[Place] = field(default_factory=set)
    timeline: Timeline | None = None
    """The steps of the last merge."""
    again: set[Any] = field(default_factory=set)
    """Keys that the last merge folded from all of bronze."""

    @property
    def keys(self) -> list[str]:
        return [column.name for column in self.columns.key]

    def merge(self, rows: pa.Table, cleared: Sequence[Place]) -> None:
        """`cleared` are all clearings so far, oldest first."""
        self.bronze = rows if self.bronze is None else pa.concat_tables([self.bronze, rows])
        events = Events.from_bronze(rows).with_one_commit()
        timeline, is_stale = arrange(
            events, self.stored(), self.buried(), Clearings(cleared, applied=self.cleared)
        )
        self.timeline = timeline
        folded, late = fold(timeline), events.key.filter(pa.array(is_stale))
        new, self.cleared = set(cleared) - self.met, cleared[-1] if cleared else None
        self.met |= new
        incomplete = {key for key, row in self.silver.items() if row["_cdc_incomplete"]}
        crossed = {key for key, row in self.silver.items() if new and place_of(row).is_after(min(new))}
        again = self.with_followers(incomplete | crossed | keys_in(late) | keys_in(folded.open_keys()))
        self.again = again
        self.write(folded, but=again)
        if again:
            self.write(self.fold_all(cleared), only=again, replaces=True)

    def fold_all(self, cleared: Sequence[Place]) -> FoldedKeys:
        assert self.bronze is not None
        events = Events.from_bronze(self.bronze).with_one_commit()
        nothing = StoredRows.from_silver(self.table({}), self.keys)
        return fold(arrange(events, nothing, self.buried(none=True), Clearings(cleared))[0])

    def write(
        self,
        folded: FoldedKeys,
        *,
        only: set[Any] | None = None,
        but: Iterable[Any] = (),
        replaces: bool = False,
    ) -> None:
        rows = folded.to_rows(self.columns, with_deleted=True).to_pylist()
        for row, changed, cleared in zip(rows, folded.is_changed, folded.is_cleared, strict=True):
            key = tuple(row[name] for name in self.keys)
            if not changed or key in but or (only is not None and key not in only):
                continue
            if self.deletes == "soft" or not row["_cdc_deleted"]:
                self.silver[key] = row
                continue
            self.silver.pop(key, None)
            if not cleared:
                self.tombstones.append(
                    {name: row[name] for name in (*self.keys, "_cdc_position", "_cdc_tx_id")}
                )

    def with_followers(self, keys: set[Any]) -> set[Any]:
        """Add the keys that rows of these keys got later."""
        assert self.bronze is not None
        events = [row for row in self.bronze.to_pylist() if row["decode_error"] is None]
        left = {change_of(row): tuple(row["key"].values()) for row in events if row["op"] == "d"}
        moves = [
            (left.get(change_of(row)), tuple(row["key"].values()))
            for row in events
            if row["op"] == "c" and row["unavailable"]
        ]
        found = set(keys)
        while further := {new for old, new in moves if old in found} - found:
            found |= further
        return found

    def stored(self) -> StoredRows:
        return StoredRows.from_silver(self.table(self.silver), self.keys)

    def buried(self, *, none: bool = False) -> Tombstones:
        fields = [
            *((column.name, column.type) for column in self.columns.key),
            ("_cdc_position", POSITION),
            ("_cdc_tx_id", pa.int64()),
        ]
        return Tombstones.from_table(
            pa.Table.from_pylist([] if none else self.tombstones, pa.schema(fields)), self.keys
        )

    def table(self, rows: dict[Any, Row]) -> pa.Table:
        system = [
            ("_cdc_op", pa.string()),
            ("_cdc_position", POSITION),
            ("_cdc_tx_id", pa.int64()),
            ("_cdc_commit_ts", pa.timestamp("us", tz="UTC")),
            ("_cdc_incomplete", pa.list_(pa.string())),
            ("_cdc_deleted", pa.bool_()),
        ]
        own = [(column.name, column.type) for column in self.columns.row]
        return pa.Table.from_pylist(list(rows.values()), pa.schema([*own, *system]))


def whole_history(
    columns: TableColumns, bronze: pa.Table, endings: Sequence[Ending], tracked: Sequence[str] | None
) -> list[Row]:
    """Return the versions that all of bronze makes."""
    lake = LakeInMemory(columns, bronze=bronze)
    events = Events.from_bronze(bronze).with_one_commit()
    places = Clearings([ending.place for ending in endings])
    timeline, _ = arrange(events, lake.stored(), lake.buried(), places)
    versions = cut_versions(timeline, endings, no_versions(columns), VersionRules(columns, tracked))
    rows: list[Row] = versions.rows.to_pylist()
    return rows


def no_versions(columns: TableColumns) -> StoredVersions:
    return stored_versions(columns, [])


def stored_versions(columns: TableColumns, rows: list[Row]) -> StoredVersions:
    """Return what the history has of some keys."""
    time = pa.timestamp("us", tz="UTC")
    system = {"_cdc_from": POSITION, "_cdc_to": POSITION, "_cdc_tx_id": pa.int64(), "_cdc_op": pa.string()}
    times = {"_cdc_from_ts": time, "_cdc_to_ts": time}
    keys = {column.name: column.type for column in columns.key}
    table = pa.Table.from_pylist(rows, pa.schema({**keys, **system, **times}))
    return StoredVersions.from_history(table, list(keys))


def change_of(row: Row) -> tuple[Any, ...]:
    """Return what the delete and the create of one changed key have in common."""
    return row["topic"], row[EPOCH], row["source"]["tx_id"], row["position"]["row"]


def place_of(row: Row) -> Place:
    return Place(tuple(row["_cdc_position"].values()), row["_cdc_tx_id"])


def keys_in(keys: pa.StructArray) -> set[Any]:
    return {tuple(key.values()) for key in keys.to_pylist()}


@dataclass
class MadeUpTable:
    """Decodes what a made-up source sends, and knows what silver has to be after each batch."""

    case: Case
    epochs: Epochs = field(default_factory=Epochs)
    specified: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.writer = writers(self.case, first_id=10)[1]
        (_, key), (_, value) = self.writer.schemas.items()
        self.columns = columns_of(key, value, table=self.case.name)

    def read(self, batch: list[Any]) -> pa.Table:
        """Return the rows of bronze with their epochs."""
        plans = DecodePlans(table=self.case.name, columns=self.columns, schemas=self.writer.schemas)
        rows = decode(kafka_batch([self.writer.record(event) for event in batch]), plans)
        assert rows.schema.equals(bronze_schema(self.columns))
        return self.with_epochs(pa.Table.from_batches([rows]))

    def with_epochs(self, rows: pa.Table) -> pa.Table:
        told = []
        for row in rows.to_pylist():
            source = row["source"] or {}
            more = {
                "snapshot": source.get("snapshot"),
                "ts": millis_of(source.get("ts")) or 0,
                "topic": row["topic"],
            }
            told.append({**told_bronze(self.case, row), **more})
        drained = {(row["topic"], row["at"]): row for row in self.epochs.drain(in_coordinate_order(told))}
        self.specified += drained.values()
        epochs = [
            drained[row["topic"], f"{row['partition']}@{row['offset']}"].get("epoch", 0)
            for row in rows.select(["topic", "partition", "offset"]).to_pylist()
        ]
        return rows.append_column(EPOCH, pa.array(epochs, pa.int64()))

    def clearings(self) -> list[Place]:
        events = with_one_commit_per_transaction(
            [event_of(row) for row in decodable(self.specified) if row["op"] not in (None, "m")]
        )
        return sorted(
            {
                Place(each.place, each.tx if each.op == "t" and each.key is None and each.place[1] else None)
                for each in clearings(events)
            },
            key=lambda place: place.position,
        )

    def endings(self) -> list[Ending]:
        events = with_one_commit_per_transaction(
            [event_of(row) for row in decodable(self.specified) if row["op"] not in (None, "m")]
        )
        found = {
            each.place: Ending(Place(each.place, each.tx), 1000 * (COMMIT_MILLIS + each.row.get("ts", 0)))
            for each in clearings(events)
        }
        return [ending for _, ending in sorted(found.items())]

    def history(self, tracked: Sequence[str] | None) -> list[Row]:
        rows = [told_history(self.case, row) for row in history_of(self.specified, tracked=tracked)]
        return sorted(rows, key=lambda row: (row["id"], row["_cdc_from"]))

    def silver(self, *, deletes: str) -> list[Row]:
        return sorted(
            (specified_silver(self.case, row) for row in silver_of(self.specified, deletes=deletes).values()),
            key=ID,
        )


@pytest.mark.parametrize("deletes", ["hard", "soft"])
@pytest.mark.parametrize("seed", range(100))
def test_rows_of_a_made_up_source_are_as_specified_after_every_merge(seed, deletes):
    random = Random(seed)  # noqa: S311 - a seed, no secret
    source, table = MadeUpSource(random), MadeUpTable(made_up_case("made_up"))
    read_again = random.choice((0.0, 0.1))
    source.run(60, read_again=read_again)
    lake = LakeInMemory(table.columns, deletes)
    some = drains(source, random, count=3) if read_again else batches(source, random, count=4)
    for number, batch in enumerate(some):
        if batch:
            lake.merge(table.read(batch), table.clearings())

            silver = sorted((told_silver(table.case, row) for row in lake.silver.values()), key=ID)
            assert silver == table.silver(deletes=deletes), (seed, number)


@pytest.mark.parametrize("tracked", [None, ["note"]], ids=["every_event", "tracked"])
@pytest.mark.parametrize("seed", range(50))
def test_versions_of_all_events_of_a_made_up_source_are_as_specified(seed, tracked):
    random = Random(seed)  # noqa: S311 - a seed, no secret
    source, table = MadeUpSource(random), MadeUpTable(made_up_case("made_up"))
    source.run(60, read_again=random.choice((0.0, 0.1)))
    bronze = pa.concat_tables([table.read(batch) for batch in drains(source, random, count=3)])

    versions = [
        told_history(table.case, row)
        for row in whole_history(table.columns, bronze, table.endings(), tracked)
    ]
    assert sorted(versions, key=lambda row: (row["id"], row["_cdc_from"])) == table.history(tracked)


@pytest.mark.parametrize("tracked", [None, ["note"]], ids=["every_event", "tracked"])
@pytest.mark.parametrize("deletes", ["hard", "soft"])
@pytest.mark.parametrize("seed", range(25))
def test_versions_are_as_specified_after_every_merge(seed, deletes, tracked):
    random = Random(seed)  # noqa: S311 - a seed, no secret
    source, table = MadeUpSource(random), MadeUpTable(made_up_case("made_up"))
    source.run(60)
    lake, history, known = LakeInMemory(table.columns, deletes), list[Row](), list[Ending]()
    for number, batch in enumerate(batches(source, random, count=4)):
        if batch:
            lake.merge(table.read(batch), table.clearings())
            history = next_history(lake, history, table.endings(), known, tracked)
            known = table.endings()

            versions = [told_history(table.case, row) for row in history]
            versions.sort(key=lambda row: (row["id"], row["_cdc_from"]))
            assert versions == table.history(tracked), (seed, number)


def next_history(
    lake: LakeInMemory,
    history: list[Row],
    endings: Sequence[Ending],
    known: Sequence[Ending],
    tracked: Sequence[str] | None,
) -> list[Row]:
    """Return the history after the last merge of the lake.

    Some keys are cut again: those that it folded from all of bronze, those of versions that miss values of
    another key, and those of closed versions during which, as is known by now, the table was cleared.
    """
    assert lake.timeline is not None
    assert lake.bronze is not None
    rules = VersionRules(lake.columns, tracked)
    cut = cut_versions(lake.timeline, endings, stored_versions(lake.columns, history), rules)
    unfinished = {(row["id"],) for row in history if row["_cdc_incomplete"] and row["_cdc_op"] == "c"}
    crossed = {
        (row["id"],)
        for row in history
        for ending in endings
        if ending not in known and row["_cdc_to"] is not None and is_during(ending, row)
    }
    again = lake.with_followers(lake.again | unfinished | crossed | keys_in(cut.open_keys))
    touched = {row["id"] for row in cut.rows.to_pylist()}
    kept = [row for row in history if row["_cdc_to"] is not None or row["id"] not in touched]
    whole = whole_history(lake.columns, lake.bronze, endings, tracked)
    return [
        *(row for row in (*kept, *cut.rows.to_pylist()) if (row["id"],) not in again),
        *(row for row in whole if (row["id"],) in again),
    ]


def is_during(ending: Ending, version: Row) -> bool:
    start = Place(tuple(version["_cdc_from"].values()), version["_cdc_tx_id"])
    end = Place(tuple(version["_cdc_to"].values()), version["_cdc_to_tx_id"])
    return ending.place.is_after(start) and end.is_after(ending.place)


def is_folded_as_it_is(case: Case) -> bool:
    """Return whether silver of the case is its events folded, without a rule, policy or default."""
    table = case.table
    other = (
        table.own_key or table.filter or table.topic_column or case.drops_columns or table.added_with_default
    )
    return table.mode == "upsert" and not other


class CaseTable(MadeUpTable):
    """The same for the records of a case file."""

    def __post_init__(self) -> None:
        self.writers = writers(self.case, first_id=10)
        columns: TableColumns | None = None
        self.texts = {}
        for writer in self.writers.values():
            key = next(iter(writer.keys.values()), None)
            new = columns_of(key, *writer.values.values(), table=self.case.name)
            grown = with_side_columns if self.case.table.side_columns else evolve_leniently
            columns = new if columns is None else grown(columns, new)
            self.texts.update(writer.schemas)
        assert columns is not None
        self.columns = columns

    def decode(self, batch: int) -> pa.Table:
        plans = DecodePlans(table=self.case.name, columns=self.columns, schemas=self.texts)
        return pa.Table.from_batches(
            [decode(kafka_batch(records(self.case, self.writers, batch=batch)), plans)]
        )


@pytest.mark.parametrize("at_once", [False, True], ids=["by_batch", "at_once"])
@pytest.mark.parametrize(
    "case", [case for case in applied_cases() if is_folded_as_it_is(case)], ids=lambda case: case.name
)
def test_rows_of_a_case_are_as_it_says(case, at_once):
    table = CaseTable(case)
    lake = LakeInMemory(table.columns, case.table.deletes)
    read = []
    for batch in range(1, case.batches + 1):
        read.append(table.with_epochs(table.decode(batch)))
        if not at_once:
            lake.merge(read[-1], table.clearings())
    if at_once:
        lake.merge(pa.concat_tables(read), table.clearings())

    assert list(in_key_order(case, [told_silver(case, row) for row in lake.silver.values()])) == list(
        case.silver
    )


@pytest.mark.parametrize(
    "case", [case for case in historic_cases() if is_folded_as_it_is(case)], ids=lambda case: case.name
)
def test_versions_of_a_case_are_as_it_says(case):
    table = CaseTable(case)
    bronze = pa.concat_tables(
        [table.with_epochs(table.decode(batch)) for batch in range(1, case.batches + 1)]
    )

    versions = whole_history(table.columns, bronze, table.endings(), case.table.tracked)

    assert list(in_version_order(case, [told_history(case, row) for row in versions])) == list(case.history)
