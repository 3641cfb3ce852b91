"""What a worker needs to decode the records of one table: plain, picklable, broadcast once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc_lakehouse.avro.decode import MAX_RECORD_BYTES
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.unavailable import PLACEHOLDER


@dataclass(frozen=True, slots=True)
class DecodePlans:
    """Writer schemas stay JSON text here; each process compiles one when it first meets its id."""

    table: str
    columns: TableColumns
    schemas: Mapping[SchemaRef, str]
    """Writer schema by id or GUID, those of keys and of values alike."""
    unknown: frozenset[SchemaRef] = frozenset()
    """Schemas that nobody knows: records that name one are undecodable."""
    wrong_keys: frozenset[SchemaRef] = frozenset()
    wrong_values: frozenset[SchemaRef] = frozenset()
    """Schemas that keys, or values, of these topics cannot have: records that name one are undecodable."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Topic -> the incarnation that is being read: offsets mean something within one only."""
    keep_raw: bool = False
    """Bytes of every record go to bronze (`raw: always`), not only those of undecodable ones."""
    max_record_bytes: int = MAX_RECORD_BYTES
    """Key and value together; a larger record is undecodable."""
    null_if_out_of_range: bool = False
    """A value that its column cannot hold becomes NULL and spares its record (`out_of_range: as_null`)."""
    dropped: frozenset[str] = frozenset()
    """Columns of the source that the table leaves out (`drop_columns`): passed over, not decoded."""
    placeholders: tuple[str, ...] = (PLACEHOLDER,)
    """What the connector's `unavailable.value.placeholder` is, or was before (`cdc-semantics` §3)."""
