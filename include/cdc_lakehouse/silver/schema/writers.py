"""Which writer schemas the records of a merge's work have, and what columns they send."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from cdc_lakehouse.debezium.envelope import plan_envelope
from cdc_lakehouse.errors import ConfigError
from cdc_lakehouse.lake.coordinates import in_ranges, in_spans, with_topic_id
from cdc_lakehouse.lake.ledger import first_incarnations
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.schema_archive import archived_text
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.schema.evolution import Writer

_MOST = 1_000


def writers_of(session: SparkSession, lake: Lake, task: MergeTask) -> tuple[Writer, ...]:
    """The first met first; without those whose schema has no number, or whose text the lake has lost."""
    uri, unnamed = lake.bronze(task.table.name), first_incarnations(task.held)
    rows = with_topic_id(session.read.format("delta").option("versionAsOf", task.bronze_version).load(uri))
    work = rows.where(in_ranges(task.work, unnamed=unnamed) | in_spans(task.late, unnamed=unnamed))
    dropped = frozenset(task.table.drop_columns)
    found = []
    for topic, schema_id in _met(work):
        text = archived_text(lake.archives, topic, schema_id)
        types = None if text is None else _types(text, table=task.table.name, dropped=dropped)
        if types is not None:
            found.append(Writer(schema_id, types))
    return tuple(found)


def _met(work: DataFrame) -> list[tuple[str, int]]:
    first = F.min(F.struct("kafka_timestamp", "partition", "offset")).alias("first")
    named = work.where(F.col("value_schema_id").isNotNull())
    groups = named.groupBy("topic", "value_schema_id").agg(first).orderBy("first", "topic").limit(_MOST)
    return [(row["topic"], row["value_schema_id"]) for row in groups.collect()]


def _types(text: str, *, table: str, dropped: frozenset[str]) -> dict[str, str] | None:
    try:
        row = plan_envelope(text, table=table, dropped=dropped).after
    except ConfigError:
        return None
    return {field.name: from_arrow_type(field.value.type).simpleString() for field in row}
