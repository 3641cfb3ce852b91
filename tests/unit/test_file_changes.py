"""A commit of new files and deletion vectors, as another engine reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from cdc_lakehouse.lake.delta_transaction import DataFile
from cdc_lakehouse.lake.rows import rows_of
from cdc_lakehouse.lake.snapshot import Snapshot, newest_snapshot
from cdc_lakehouse.silver.columnar.file_changes import delete_rows, write_rows
from cdc_lakehouse.silver.columnar.stored_rows import find_rows

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("note", pa.string()),
        ("at", pa.struct([("epoch", pa.int64())])),
        ("tags", pa.list_(pa.string())),
    ]
)


def rows(*ids: int, note: str = "old") -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": number, "note": note, "at": {"epoch": number}, "tags": [note]} for number in ids], SCHEMA
    )


class Table:
    """A table whose versions are committed without a check, which a test needs no engine for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.uri = folder, folder.as_uri()
        write_deltalake(self.uri, rows(*range(10)))
        self._allow_vectors()
        write_deltalake(self.uri, rows(*range(10, 13)), mode="append")

    def _allow_vectors(self) -> None:
        """Declare the one feature that the table has; the writer would declare others with it."""
        first = self.folder / f"_delta_log/{0:020d}.json"
        actions = [json.loads(line) for line in first.read_text().splitlines()]
        features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
        protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
        others = [action for action in actions if "protocol" not in action]
        first.write_text("\n".join(json.dumps(action) for action in (protocol, *others)))

    def forget_statistics(self) -> None:
        for commit in (self.folder / "_delta_log").glob("*.json"):
            actions = [json.loads(line) for line in commit.read_text().splitlines()]
            for action in actions:
                action.get("add", {}).pop("stats", None)
            commit.write_text("\n".join(map(json.dumps, actions)))

    def snapshot(self) -> Snapshot:
        snapshot = newest_snapshot(self.uri)
        assert snapshot is not None
        return snapshot

    def commit(self, added: Sequence[DataFile], actions: Sequence[dict[str, Any]]) -> None:
        lines = [json.dumps(action) for action in (*(file.action() for file in added), *actions)]
        version = self.snapshot().version + 1
        (self.folder / f"_delta_log/{version:020d}.json").write_text("\n".join(lines))

    def replace(self, *ids: int, note: str) -> list[dict[str, Any]]:
        """Give these keys another note; return the actions that took the old rows away."""
        new = rows(*ids, note=note)
        keys = pa.StructArray.from_arrays([new["id"].combine_chunks()], names=["id"])
        actions = delete_rows(self.uri, find_rows(self.snapshot(), keys, []))
        self.commit(write_rows(self.uri, new, keys=["id"], attempt="attempt"), actions)
        return actions

    def notes(self) -> dict[int, str]:
        found = rows_of(self.snapshot())
        assert len(set(found["id"].to_pylist())) == len(found)
        return dict(zip(found["id"].to_pylist(), found["note"].to_pylist(), strict=True))

    def notes_of_another_engine(self) -> dict[int, str]:
        query = QueryBuilder().register("t", DeltaTable(self.uri)).execute("SELECT id, note FROM t")
        found = pa.table(query.read_all())
        assert len(set(found["id"].to_pylist())) == len(found)
        return dict(zip(found["id"].to_pylist(), found["note"].to_pylist(), strict=True))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_rows_that_were_replaced_twice_are_the_newest_ones(table: Table):
    table.replace(3, 4, 11, 99, note="new")
    table.replace(4, 5, note="newer")

    expected = dict.fromkeys(range(13), "old") | {3: "new", 4: "newer", 5: "newer", 11: "new", 99: "new"}
    assert table.notes() == expected
    assert table.notes_of_another_engine() == expected


def test_vectors_that_are_too_long_for_the_log_are_read_from_their_file(table: Table):
    table.commit(write_rows(table.uri, rows(*range(100, 20_000)), keys=["id"], attempt="attempt"), [])
    actions = table.replace(*range(100, 20_000, 3), note="new")

    vectors = [action["add"]["deletionVector"]["storageType"] for action in actions if "add" in action]
    expected = dict.fromkeys((*range(13), *range(100, 20_000)), "old") | dict.fromkeys(
        range(100, 20_000, 3), "new"
    )
    assert vectors == ["u"]
    assert table.notes() == expected
    assert table.notes_of_another_engine() == expected


def test_a_file_without_rows_goes_as_a_whole(table: Table):
    actions = table.replace(10, 11, 12, note="new")

    assert [list(action) for action in actions] == [["remove"]]
    assert table.notes() == dict.fromkeys(range(10), "old") | dict.fromkeys((10, 11, 12), "new")


def test_a_file_with_a_vector_keeps_what_the_log_says_of_it(table: Table):
    before = {file.path: file.action for file in table.snapshot().files}
    actions = table.replace(3, note="new")

    changed = next(action["add"] for action in actions if "add" in action)
    kept = before[changed["path"]]
    statistics = json.loads(changed.pop("stats"))
    assert changed.pop("deletionVector")["cardinality"] == 1
    assert changed == {name: value for name, value in kept.items() if name != "stats"}
    assert statistics == {**json.loads(kept["stats"]), "tightBounds": False}


def test_a_file_without_statistics_keeps_its_other_rows(table: Table):
    """Others may write files so; Delta asks for the number of rows where a file has a vector."""
    table.forget_statistics()
    actions = table.replace(3, note="new")

    changed = [action["add"] for action in actions if "add" in action]
    assert [json.loads(add["stats"]) for add in changed] == [{"numRecords": 10, "tightBounds": False}]
    assert table.notes() == dict.fromkeys(range(13), "old") | {3: "new"}


def test_rows_are_written_in_the_order_of_their_keys(table: Table):
    files = write_rows(table.uri, rows(5, 3, 4), keys=["id"], attempt="attempt")
    table.commit(files, [])

    (file,) = (each for each in table.snapshot().files if each.path == files[0].name)
    assert (file.oldest["id"], file.newest["id"], file.rows) == (3, 5, 3)
    assert file.newest["at"] == {"epoch": 5}


def test_no_rows_make_no_file(table: Table):
    assert write_rows(table.uri, rows(), keys=["id"], attempt="attempt") == []
    assert delete_rows(table.uri, []) == []
