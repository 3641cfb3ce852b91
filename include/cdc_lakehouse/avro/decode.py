"""Frames of any schemas into one typed column: for whoever has Avro without change events.

    plans = FramePlans.of({7: '{"type": "record", …}', 9: …})
    rows = decode_frames(pa.record_batch({"frame": frames}), plans)

`frames` holds records in the Confluent wire format, of format 0 (`0x00`, schema id) or 1 (`0x01`, GUID);
a column `id_header`, where there is one, holds those first bytes for payloads that come without them.
Out comes one row per row, in the same order:

    schema_id    int32    null for a GUID
    schema_guid  string   null for an id
    value        one type in which all writer schemas meet (`typed.plans`, `typed.meeting`): a field that a
                 writer does not have is null, int becomes long, float double, a decimal gets more digits
    error        struct<code, detail>: why there is no value; null for a good row. It names places and
                 sizes, never what the record holds

Nothing here needs Spark, a registry or the network. The work is done column by column (`columnar`);
records that are bad, or of a schema that few records of the batch have, are read one by one, with the
same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.frames import parse_frame
from cdc_lakehouse.avro.groups import Framed, in_row_order
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.avro.typed.columns import sizes_of
from cdc_lakehouse.avro.typed.plans import Semantic, avro_alone
from cdc_lakehouse.avro.typed.program import Program, Writer, value_type, writer_of
from cdc_lakehouse.avro.unknown import UnknownSchemaIdsError

MAX_RECORD_BYTES = 16 * 1024 * 1024
SMALL_GROUP = 96
"""Fewer rows than this cost more as columns than one by one."""
ERROR_TYPE = pa.struct([("code", pa.string()), ("detail", pa.string())])


@dataclass(frozen=True, eq=False, slots=True)
class FramePlans:
    """What decodes frames: made once, used for every batch, picklable."""

    schemas: Mapping[SchemaRef, str]
    type: pa.DataType
    """Of the column `value`."""
    fields: tuple[str, ...] | None
    semantic: Semantic
    max_record_bytes: int

    @classmethod
    def of(
        cls,
        schemas: Mapping[SchemaRef, str],
        *,
        fields: tuple[str, ...] | None = None,
        semantic: Semantic = avro_alone,
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> FramePlans:
        """`schemas`: JSON texts by id or GUID, the oldest first: where types do not meet, the older one
        stays, and records of the other are errors. `fields`: the only ones wanted of root records.

        Raises `ValueError` when no schema can be decoded, or none has a wanted field.
        """
        writers = [writer_of(text, fields, semantic) for text in schemas.values()]
        return cls(dict(schemas), value_type(writers, fields), fields, semantic, max_record_bytes)

    @property
    def schema(self) -> pa.Schema:
        """Of what `decode_frames` returns."""
        ids = [("schema_id", pa.int32()), ("schema_guid", pa.string())]
        return pa.schema([*ids, ("value", self.type), ("error", ERROR_TYPE)])

    def writer(self, ref: SchemaRef) -> Writer:
        return writer_of(self.schemas[ref], self.fields, self.semantic)


def decode_frames(frames: pa.RecordBatch, plans: FramePlans) -> pa.RecordBatch:
    """One row per row; a bad record never costs its neighbours anything. A null frame is a null value.

    Raises `UnknownSchemaIdsError` for the whole batch when records name schemas that `plans` do not hold.
    """
    column = frames.column("frame").cast(pa.binary())
    headers = frames.column("id_header").cast(pa.binary()) if "id_header" in frames.schema.names else None
    admitted = sizes_of(column) <= plans.max_record_bytes
    framed = Framed(column, admitted, headers)
    strange = framed.refs - plans.schemas.keys()
    if strange:
        raise UnknownSchemaIdsError((), strange)
    single = framed.misframed | (framed.frames.there & ~admitted)
    parts = []
    for program, rows in framed.groups(lambda ref: _program(plans, ref)):
        if program is None or len(rows) < SMALL_GROUP:
            single[rows] = True
            continue
        values, fits = program.read(framed.frames.memory, framed.frames.start[rows], framed.frames.end[rows])
        parts.append((rows, values))
        single[rows[~fits]] = True
    values, errors = _with_singles(
        in_row_order(parts, len(column), plans.type), column, headers, single, plans
    )
    arrays = [framed.schema_ids(), _guids(framed), values, errors]
    return pa.RecordBatch.from_arrays(arrays, schema=plans.schema)


def _program(plans: FramePlans, ref: SchemaRef) -> Program | None:
    writer = plans.writer(ref)
    return None if isinstance(writer, RecordFault) else writer.program(plans.type)


def _guids(framed: Framed) -> pa.Array:
    texts = pa.array([str(guid) for guid in framed.frames.guids], pa.string())
    named = framed.framed & (framed.frames.schema < 0)
    if not len(texts):
        return pa.nulls(len(named), pa.string())
    return texts.take(pa.array(-2 - framed.frames.schema, mask=~named))


def _with_singles(
    values: pa.Array, column: pa.Array, headers: pa.Array | None, single: np.ndarray, plans: FramePlans
) -> tuple[pa.Array, pa.Array]:
    """`values` with those rows read one by one, and the errors."""
    rows = np.flatnonzero(single)
    if not len(rows):
        return values, pa.nulls(len(values), ERROR_TYPE)
    found: list[Any] = []
    errors: list[dict[str, str] | None] = []
    for row in rows.tolist():
        try:
            found.append(_value(column[row], None if headers is None else headers[row].as_py(), plans))
            errors.append(None)
        except RecordFault as fault:
            found.append(None)
            errors.append({"code": fault.code, "detail": fault.detail})
    others = np.flatnonzero(~single)
    parts = [(others, values.take(pa.array(others))), (rows, pa.array(found, plans.type))]
    told = [(rows, pa.array(errors, ERROR_TYPE))]
    return in_row_order(parts, len(values), plans.type), in_row_order(told, len(values), ERROR_TYPE)


def _value(frame: pa.Scalar, header: bytes | None, plans: FramePlans) -> Any:
    size = frame.as_buffer().size
    if size > plans.max_record_bytes:
        raise RecordFault(AvroFault.TOO_LARGE, f"{size} bytes, the limit is {plans.max_record_bytes}")
    ref, payload = parse_frame(frame.as_py(), header)
    writer = plans.writer(ref)
    if isinstance(writer, RecordFault):
        # A new one: raised again and again, the cached one would keep the frames and batches of each time.
        raise RecordFault(writer.code, writer.detail)
    return writer.value(payload, plans.type)
