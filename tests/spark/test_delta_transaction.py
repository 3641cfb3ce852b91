"""What we rely on in Delta's own transaction, which Delta does not promise: each law by its name."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from cdc_lakehouse.errors import NotSupportedYetError
from cdc_lakehouse.lake.delta_transaction import DataFile, DeltaTransaction, Refusal, refusal_of, why
from cdc_lakehouse.lake.parquet_files import OpenParquetFile, ParquetLayout
from cdc_lakehouse.lake.tables import create_if_missing

ROWS = pa.schema([("id", pa.int64()), ("after", pa.struct([("n", pa.int32())]))])
WIDER = pa.schema([("id", pa.int64()), ("after", pa.struct([("n", pa.int64()), ("note", pa.string())]))])


@pytest.fixture
def session(engine) -> SparkSession:
    found: SparkSession = engine.isolated()
    return found


@pytest.fixture
def uri(session, tmp_path: Path) -> str:
    return created(session, tmp_path, ROWS)


def created(session: SparkSession, folder: Path, schema: pa.Schema, *, widening: bool = True) -> str:
    found = (folder / "table").as_uri()
    properties = {"delta.dataSkippingStatsColumns": "id"}
    if widening:
        properties["delta.enableTypeWidening"] = "true"
    create_if_missing(session, found, schema=from_arrow_schema(schema), properties=properties)
    return found


def written(uri: str, rows: list[dict[str, Any]], schema: pa.Schema = ROWS) -> DataFile:
    file = OpenParquetFile.create(uri, schema, attempt="a", layout=ParquetLayout())
    file.add(pa.RecordBatch.from_pylist(rows, schema))
    found = file.close()
    ids = [row["id"] for row in rows]
    statistics = {"numRecords": len(rows), "minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}}
    statistics["nullCount"] = {"id": 0}
    return DataFile(found.name, found.size, found.modified, statistics)


def row(number: int, n: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": number, "after": {"n": n, **more}}


def commit(transaction: DeltaTransaction, *files: DataFile, ids: dict[str, int] | None = None) -> int:
    return transaction.commit(files, ids or {"app": 1}, metadata="{}", step=1)


def ids_in(session: SparkSession, uri: str) -> list[int]:
    return sorted(row["id"] for row in session.read.format("delta").load(uri).collect())


def refused(session: SparkSession, transaction: DeltaTransaction, uri: str) -> tuple[Refusal, str]:
    """What `commit` of one row raises; the row must not have arrived."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its kind is what is tested
        commit(transaction, written(uri, [row(99)]))
    assert 99 not in ids_in(session, uri)
    return refusal_of(caught.value), why(caught.value).partition(":")[0]


def test_files_ids_and_metadata_are_one_commit(session, uri):
    transaction = DeltaTransaction.start(session, uri)
    files = [written(uri, [row(1), row(2)]), written(uri, [row(3)])]

    version = transaction.commit(files, {"app": 7, "topic@id/0": 42}, metadata='{"v": 1}', step=7)

    log = Path(urlsplit(uri).path) / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted(next(iter(action)) for action in actions) == ["add", "add", "commitInfo", "txn", "txn"]
    delta = DeltaTable(uri)
    assert (delta.version(), delta.history(1)[0]["userMetadata"]) == (version, '{"v": 1}')
    assert delta.history(1)[0]["operation"] == "STREAMING UPDATE"
    assert (delta.transaction_version("app"), delta.transaction_version("topic@id/0")) == (7, 42)
    assert ids_in(session, uri) == [1, 2, 3]


def test_a_commit_without_files_sets_ids(session, uri):
    commit(DeltaTransaction.start(session, uri), ids={"app": 3})

    again = DeltaTransaction.start(session, uri)
    assert (again.versions_of(["app", "other"]), again.read_version) == ({"app": 3, "other": None}, 1)


def test_an_id_that_was_asked_for_is_a_lock(session, uri):
    slow = DeltaTransaction.start(session, uri)
    assert slow.versions_of(["app"]) == {"app": None}
    commit(DeltaTransaction.start(session, uri), ids={"app": 1})

    assert refused(session, slow, uri) == (Refusal.CHANGED, "ConcurrentTransactionException")


def test_an_append_in_between_is_noticed(session, uri):
    slow = DeltaTransaction.start(session, uri)
    session.createDataFrame([(5, None)], "id LONG, after STRUCT<n: INT>").write.format("delta").mode(
        "append"
    ).save(uri)

    refusal, _ = refused(session, slow, uri)
    assert refusal is Refusal.CHANGED


@pytest.mark.parametrize(
    "statement", ["DELETE FROM {t} WHERE id = 1", "OPTIMIZE {t}", "RESTORE TABLE {t} TO 1"]
)
def test_a_removal_in_between_is_noticed(session, uri, statement):
    for number in (1, 2):
        commit(DeltaTransaction.start(session, uri), written(uri, [row(number)]))
    slow = DeltaTransaction.start(session, uri)
    session.sql(statement.format(t=f"delta.`{uri}`").replace("TO 1", "TO VERSION AS OF 1"))

    refusal, _ = refused(session, slow, uri)
    assert refusal is Refusal.CHANGED


def test_a_change_of_schema_in_between_is_noticed(session, uri):
    slow = DeltaTransaction.start(session, uri)
    session.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMNS (extra STRING)")

    assert refused(session, slow, uri) == (Refusal.CHANGED, "MetadataChangedException")


def test_columns_are_added_and_types_widened_with_the_rows_that_need_it(session, uri):
    commit(DeltaTransaction.start(session, uri), written(uri, [row(1, n=7)]))
    transaction = DeltaTransaction.start(session, uri)

    assert transaction.evolve(from_arrow_schema(WIDER))
    version = commit(transaction, written(uri, [row(2, n=2**40, note="new")], WIDER))

    assert version == 2
    told = {each["id"]: each["after"].asDict() for each in session.read.format("delta").load(uri).collect()}
    assert told == {1: {"n": 7, "note": None}, 2: {"n": 2**40, "note": "new"}}
    (as_of,) = session.read.format("delta").option("versionAsOf", 1).load(uri).collect()
    assert as_of["after"].asDict() == {"n": 7}


def test_a_schema_that_fits_changes_nothing(session, uri):
    transaction = DeltaTransaction.start(session, uri)
    transaction.evolve(from_arrow_schema(WIDER))
    commit(transaction)

    again = DeltaTransaction.start(session, uri)
    assert not again.evolve(from_arrow_schema(WIDER))
    assert not again.evolve(from_arrow_schema(pa.schema([("id", pa.int64())])))


@pytest.mark.parametrize("type_", [pa.string(), pa.int32()], ids=["another", "narrower"])
def test_a_schema_that_does_not_fit_is_refused(session, uri, type_):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its kind is what is tested
        DeltaTransaction.start(session, uri).evolve(from_arrow_schema(pa.schema([("id", type_)])))

    assert refusal_of(caught.value) is Refusal.SCHEMA


def test_a_store_that_fails_is_told_from_the_rest(session, uri):
    transaction = DeltaTransaction.start(session, uri)
    log = Path(urlsplit(uri).path) / "_delta_log"
    log.rename(log.with_name("gone"))
    log.write_text("no folder")

    with pytest.raises(Exception) as caught:  # noqa: PT011 - its kind is what is tested
        commit(transaction)

    assert refusal_of(caught.value) is Refusal.STORAGE


@pytest.mark.parametrize(
    ("properties", "named"),
    [("'delta.columnMapping.mode' = 'name'", "columnMapping"), ("'delta.enableRowTracking' = 'true'", None)],
)
def test_a_table_whose_features_our_files_do_not_know_is_refused(session, uri, properties, named):
    session.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ({properties})")

    if named is None:
        commit(DeltaTransaction.start(session, uri), written(uri, [row(1)]))
        assert ids_in(session, uri) == [1]
        return
    with pytest.raises(NotSupportedYetError) as caught:
        DeltaTransaction.start(session, uri)
    assert named in caught.value.feature


def test_statistics_keep_a_reader_from_opening_a_file(session, uri):
    hidden, seen = written(uri, [row(1)]), written(uri, [row(5)])
    commit(DeltaTransaction.start(session, uri), hidden, seen)
    (Path(urlsplit(uri).path) / hidden.name).unlink()

    assert [r["id"] for r in session.read.format("delta").load(uri).where("id > 3").collect()] == [5]


def test_optimize_takes_our_files_and_keeps_the_ids(session, uri):
    for number in (1, 2):
        commit(DeltaTransaction.start(session, uri), written(uri, [row(number)]), ids={"app": number})
    session.sql(f"OPTIMIZE delta.`{uri}`")

    assert len(DeltaTable(uri).file_uris()) == 1
    assert ids_in(session, uri) == [1, 2]
    assert DeltaTransaction.start(session, uri).versions_of(["app"]) == {"app": 2}


UTC = dt.UTC
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, None]),
    "int16": (pa.int16(), [-(2**15), None]),
    "int32": (pa.int32(), [2**31 - 1, None]),
    "int64": (pa.int64(), [-(2**63), None]),
    "float": (pa.float32(), [1.5, None]),
    "double": (pa.float64(), [-1e300, None]),
    "text": (pa.string(), ["größer 🙂", None]),
    "bytes": (pa.binary(), [b"\x00\xff", None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), None]),
    "local": (
        pa.timestamp("us"),
        [dt.datetime(1582, 10, 4, 23, 59, 59, 999_999, UTC).replace(tzinfo=None), None],
    ),
    "instant": (pa.timestamp("us", tz="UTC"), [dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), None]),
    "small_decimal": (pa.decimal128(9, 2), [Decimal("-1234567.89"), None]),
    "decimal": (pa.decimal128(18, 4), [Decimal("12345678901234.5678"), None]),
    "large_decimal": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789"), None]),
    "list": (pa.list_(pa.string()), [["a", None], []]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], None]),
    "structs": (
        pa.list_(pa.struct([("x", pa.int32()), ("when", pa.timestamp("us", tz="UTC"))])),
        [[{"x": 1, "when": dt.datetime(2024, 2, 29, 12, tzinfo=UTC)}, None], None],
    ),
    "nested": (
        pa.struct([("inner", pa.struct([("d", pa.decimal128(10, 3)), ("l", pa.list_(pa.date32()))]))]),
        [{"inner": {"d": Decimal("1.250"), "l": [dt.date(2024, 1, 1), None]}}, {"inner": None}],
    ),
}


def test_every_type_is_read_back_exactly_by_spark_and_without_a_jvm(session, tmp_path):
    schema = pa.schema([("id", pa.int64()), *((name, type_) for name, (type_, _) in VALUES.items())])
    columns = [pa.array([1, 2]), *(pa.array(values, type_) for type_, values in VALUES.values())]
    table = pa.Table.from_arrays(columns, schema=schema)
    uri = created(session, tmp_path, schema, widening=False)  # which not every reader knows

    commit(DeltaTransaction.start(session, uri), written(uri, table.to_pylist(), schema))

    by_spark = session.read.format("delta").load(uri).orderBy("id").toArrow()
    without = DeltaTable(uri).to_pyarrow_table().sort_by("id")
    assert by_spark.cast(schema).to_pylist() == table.to_pylist()
    assert without.cast(schema).to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("narrow", "wide", "value"),
    [
        (pa.int16(), pa.int32(), -7),
        (pa.int32(), pa.int64(), 2**31 - 1),
        (pa.float32(), pa.float64(), 1.5),
        (pa.decimal128(5, 2), pa.decimal128(12, 4), Decimal("-123.45")),
        (pa.decimal128(12, 2), pa.decimal128(30, 2), Decimal("1234567890.12")),
    ],
    ids=str,
)
def test_older_files_are_read_after_their_columns_were_widened(session, tmp_path, narrow, wide, value):
    before, after = (pa.schema([("id", pa.int64()), ("c", type_)]) for type_ in (narrow, wide))
    uri = created(session, tmp_path, before)
    commit(DeltaTransaction.start(session, uri), written(uri, [{"id": 1, "c": value}], before))
    transaction = DeltaTransaction.start(session, uri)

    assert transaction.evolve(from_arrow_schema(after))
    commit(transaction, written(uri, [{"id": 2, "c": value}], after))

    assert [each["c"] for each in session.read.format("delta").load(uri).collect()] == [value, value]


def test_a_version_comes_back_with_its_deletion_vectors_and_no_file_is_written(session, uri, tmp_path: Path):
    session.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    kept, packed = written(uri, [row(n) for n in range(1, 5)]), written(uri, [row(5)])
    commit(DeltaTransaction.start(session, uri), kept, packed)
    session.sql(f"DELETE FROM delta.`{uri}` WHERE id = 2")
    version = DeltaTable(uri).version()
    session.sql(f"DELETE FROM delta.`{uri}` WHERE id = 3")
    session.sql(f"OPTIMIZE delta.`{uri}`")
    commit(DeltaTransaction.start(session, uri), written(uri, [row(6)]))
    data = sorted(file.name for file in (tmp_path / "table").iterdir())

    transaction = DeltaTransaction.start(session, uri)
    actions = transaction.actions_back_to(version)
    transaction.commit([], {"app": 2}, metadata="{}", step=2, more=actions)

    assert ids_in(session, uri) == [1, 3, 4, 5]
    assert sorted(file.name for file in (tmp_path / "table").iterdir()) == data
    assert {"add", "remove"} == {next(iter(action)) for action in actions}
    session.sql(f"DELETE FROM delta.`{uri}` WHERE id = 5")
    assert ids_in(session, uri) == [1, 3, 4]


def test_a_commit_in_between_is_noticed_by_one_that_goes_back(session, uri):
    for number in (1, 2):
        commit(DeltaTransaction.start(session, uri), written(uri, [row(number)]))
    slow = DeltaTransaction.start(session, uri)
    commit(DeltaTransaction.start(session, uri), written(uri, [row(3)]))

    with pytest.raises(Exception) as caught:  # noqa: PT011 - its kind is what is tested
        slow.commit([], {"app": 2}, metadata="{}", step=2, more=slow.actions_back_to(1))

    assert (refusal_of(caught.value), ids_in(session, uri)) == (Refusal.CHANGED, [1, 2, 3])
