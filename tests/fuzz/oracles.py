"""What is held against the columns: the strict reader row by row, and fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa
from debezium_damage import FASTAVRO_IS_LAX  # type: ignore[import-not-found]
from debezium_records import raw_schema  # type: ignore[import-not-found]

from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.frames import parse_frame
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.avro.unknown import UnknownSchemaIdsError
from cdc_lakehouse.avro.writer import writer_schema

NO_LIMIT_OF_FASTAVRO = {"map with a key twice, inside a recursive type"}


class Disagreement(Exception):  # noqa: N818 - what a fuzzer looks for is a find, not an error
    pass


@contextmanager
def small_groups(module: Any, rows: int) -> Iterator[None]:
    """Groups of fewer rows are read one by one: 1 for columns always, very many for never."""
    usual = module.SMALL_GROUP
    module.SMALL_GROUP = rows
    try:
        yield
    finally:
        module.SMALL_GROUP = usual


def found(decode: Callable[[], pa.RecordBatch]) -> pa.RecordBatch | str:
    """The batch, or why there is none: strange schemas stop it, both ways."""
    try:
        return decode()
    except UnknownSchemaIdsError as exc:
        return f"{type(exc).__name__} {exc.args}"


def require_same(by_columns: pa.RecordBatch | str, one_by_one: pa.RecordBatch | str) -> None:
    if isinstance(by_columns, str) or isinstance(one_by_one, str):
        if by_columns != one_by_one:
            raise Disagreement("the schemas of the batch are known to one of the two only")
        return
    by_columns.validate(full=True)
    if by_columns.equals(one_by_one):
        return
    if by_columns.schema != one_by_one.schema or len(by_columns) != len(one_by_one):
        raise Disagreement("another schema or number of rows")
    for row in range(len(by_columns)):
        one, other = by_columns.slice(row, 1), one_by_one.slice(row, 1)
        if not one.equals(other):  # a NaN never equals itself
            (this,), (that,) = one.to_pylist(), other.to_pylist()
            wrong = [name for name in this if repr(this[name]) != repr(that[name])]
            if wrong:
                pairs = {name: (this[name], that[name]) for name in wrong}
                raise Disagreement(f"row {row}, columns {wrong}: {pairs!r}"[:4000])


def require_fastavro(
    schemas: Any, data: bytes, header: bytes | None, *, same: Callable[[Any, Any], bool] | None
) -> tuple[SchemaRef, bytes] | None:
    """The schema and the payload of a record that both take; their raw values must be the `same`."""
    try:
        ref, payload = parse_frame(data, header)
    except RecordFault:
        return None
    if ref not in schemas:
        return None
    ours, fault = _strictly(schemas[ref], payload)
    theirs, takes = _by_fastavro(schemas[ref], payload)
    if fault is None and not takes:
        raise Disagreement(f"taken, but not by fastavro: {payload!r}")
    if fault is not None:
        if takes and not _is_lax(fault):
            raise Disagreement(f"taken by fastavro, but not here: {fault}: {payload!r}")
        return None
    if same is not None and not same(ours, theirs):
        raise Disagreement(f"fastavro reads {theirs!r} and not {ours!r}"[:4000])
    return ref, payload


def _is_lax(fault: RecordFault) -> bool:
    detail = fault.detail.split(": ")[-1]
    return fault.code == AvroFault.TOO_LARGE or detail in FASTAVRO_IS_LAX | NO_LIMIT_OF_FASTAVRO


def _strictly(text: str, payload: bytes) -> tuple[Any, RecordFault | None]:
    try:
        return writer_schema(text).read(payload), None
    except RecordFault as fault:
        return None, fault


def _by_fastavro(text: str, payload: bytes) -> tuple[Any, bool]:
    stream = io.BytesIO(payload)
    try:
        value = fastavro.schemaless_reader(stream, _parsed(text))
    except Exception:  # noqa: BLE001 - it raises whatever comes
        return None, False
    return value, stream.tell() == len(payload)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    return fastavro.parse_schema(raw_schema(json.loads(text)))
