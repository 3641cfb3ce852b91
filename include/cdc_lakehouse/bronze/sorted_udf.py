"""The Avro UDF over the records of several tables: each to the decoder and the folder of its own.

What stops one table there is told by a line, as its files are, and costs the others nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame

from cdc_lakehouse.bronze.decode_udf import decoded, file_schema, files_of, for_python, stamp_of
from cdc_lakehouse.bronze.worker_garbage import spare_loaded_modules
from cdc_lakehouse.bronze.worker_versions import installed, refuse_other_versions
from cdc_lakehouse.bronze.written_file import WrittenFile
from cdc_lakehouse.debezium.plans import DecodePlans

_LINES = pa.schema([("table", pa.string()), ("file", pa.string()), ("failure", pa.string())])
_GATHERED_BYTES = 32 * 2**20
"""Of records that wait, so that those of one table are decoded together and are in one file."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Of the records of one table: its topics are those that `plans` has ids of."""

    plans: DecodePlans
    folder: str


@dataclass(frozen=True, slots=True)
class Sorted:
    """What became of the records of several tables."""

    files: dict[str, list[WrittenFile]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Table -> the class of what stopped it; its files are not all of its records."""


def write_files_by_table(records: DataFrame, destinations: Sequence[Destination], *, attempt: str) -> Sorted:
    """As `decode_udf.write_files` for each of the tables, in one pass; other topics are passed over."""
    shared = records.sparkSession.sparkContext.broadcast(tuple(destinations))
    write = _writer(shared, stamp_of(attempt), attempt=attempt)
    found = Sorted()
    # Limited by bytes: a table with wide records must not cost the others their pass.
    for line in (
        for_python(records, wide=True)
        .mapInArrow(write, "table STRING, file STRING, failure STRING")
        .collect()
    ):
        if line["failure"] is not None:
            found.failures[line["table"]] = line["failure"]
        else:
            found.files.setdefault(line["table"], []).append(WrittenFile.from_json(line["file"]))
    return found


def _writer(
    shared: Broadcast[tuple[Destination, ...]], stamp: Mapping[str, pa.Scalar], *, attempt: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    driver = installed()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_other_versions(driver, worker=installed())
        spare_loaded_modules()
        failed: set[str] = set()
        for records in gathered(batches):
            for destination, own in by_destination(records, shared.value):
                table = destination.plans.table
                if table in failed:
                    continue
                lines = _lines_of(own, destination, stamp, attempt=attempt)
                failed |= {table for line in lines if line["failure"] is not None}
                yield pa.RecordBatch.from_pylist(lines, _LINES)

    return write


def _lines_of(
    records: pa.RecordBatch, destination: Destination, stamp: Mapping[str, pa.Scalar], *, attempt: str
) -> list[dict[str, str | None]]:
    plans, folder = destination.plans, destination.folder
    try:
        rows = decoded(iter([records]), plans, stamp=stamp)
        files = list(files_of(rows, file_schema(plans, stamp), folder=folder, attempt=attempt))
    except Exception as exc:  # noqa: BLE001 - a table's failure, of whatever kind, is its own
        return [{"table": plans.table, "file": None, "failure": type(exc).__name__}]
    return [{"table": plans.table, "file": file.to_json(), "failure": None} for file in files]


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As few batches as memory allows; Spark cuts them wherever they have so many rows."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if waiting and size + batch.nbytes > _GATHERED_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
        waiting.append(batch)
        size += batch.nbytes
    if waiting:
        yield pa.concat_batches(waiting)


def by_destination(
    records: pa.RecordBatch, destinations: Sequence[Destination]
) -> Iterator[tuple[Destination, pa.RecordBatch]]:
    """The records of each table in their order; those of topics without a destination are left out."""
    places = {topic: place for place, each in enumerate(destinations) for topic in each.plans.topic_ids}
    topics = records.column("topic").dictionary_encode()
    known = np.array([places.get(topic, -1) for topic in topics.dictionary.to_pylist()], np.int64)
    of_row = known[topics.indices.to_numpy(zero_copy_only=False)]
    order = np.argsort(of_row, kind="stable")
    found, starts = np.unique(of_row[order], return_index=True)
    for place, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        if place >= 0:
            yield destinations[place], records.take(pa.array(rows))
