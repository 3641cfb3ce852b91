"""Does the registry know the topics' schemas, and can this release store every column?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cdc_lakehouse.config.models import Mode, Pipeline, SharedKeys, Table
from cdc_lakehouse.debezium.columns import TableColumns, columns_of, unknown_types
from cdc_lakehouse.debezium.proven import refuse_unproven
from cdc_lakehouse.debezium.schema_facts import facts_of, row_fields
from cdc_lakehouse.errors import KeylessUpsertError, LakehouseError
from cdc_lakehouse.preflight.findings import Finding
from cdc_lakehouse.preflight.inequalities import inequality_findings, unseen_finding
from cdc_lakehouse.registry.versions import Version


class Subjects(Protocol):
    """What `registry.client.SchemaRegistry` offers."""

    def latest(self, subject: str) -> Version | None: ...


@dataclass(frozen=True, slots=True)
class TopicSchemas:
    """The newest schema texts of a topic; None where the registry has none."""

    key: str | None
    value: str | None


def read_schemas(registry: Subjects, topic: str) -> TopicSchemas:
    """By the usual subject names, `<topic>-key` and `<topic>-value`."""
    return TopicSchemas(key=_newest(registry, f"{topic}-key"), value=_newest(registry, f"{topic}-value"))


def schema_findings(pipeline: Pipeline, registry: Subjects) -> Iterator[Finding]:
    """One line per topic, and one more for each column that will not arrive as it was written."""
    for table in pipeline.tables:
        for topic in table.topics:
            schemas, dropped = read_schemas(registry, topic), frozenset(table.drop_columns)
            if schemas.value is not None and not pipeline.unproven_source:
                yield from _check_source(table.name, topic, schemas.value)
            own = [table.columns.source_of(name) or name for name in table.key or ()]
            yield from topic_schema_findings(
                table.name, topic, schemas, dropped=dropped, mode=table.mode, own_key=own
            )
        yield from shared_key_findings(table)
    yield unseen_finding()


def _check_source(table: str, topic: str, value: str) -> Iterator[Finding]:
    try:
        refuse_unproven([value], table=table)
    except LakehouseError as error:
        yield Finding.from_error(f"schema of {topic}", error)


def topic_schema_findings(
    table: str,
    topic: str,
    schemas: TopicSchemas,
    *,
    dropped: frozenset[str] = frozenset(),
    mode: Mode | None = None,
    own_key: Sequence[str] = (),
) -> Iterator[Finding]:
    """`own_key` has the names of the source."""
    subject = f"schema of {topic}"
    if schemas.value is None:
        yield Finding.warning(
            subject,
            f"the registry has no subject {topic}-value, so its columns were not checked",
            "Fine while the topic is empty, or if the connector names subjects in its own way.",
        )
        return
    try:
        columns = columns_of(schemas.key, schemas.value, table=table, dropped=dropped)
        unknown = unknown_types(schemas.value, table=table, dropped=dropped)
    except LakehouseError as error:
        yield Finding.from_error(subject, error)
        return
    key = ", ".join(column.name for column in columns.key) or "none"
    yield Finding.fine(subject, f"columns {len(columns.row)}, key {key}")
    if own_key:
        yield _own_key(subject, columns, own_key)
    elif not columns.key:
        yield _keyless(subject, topic, table=table, mode=mode)
    for column, names in unknown.items():
        yield Finding.warning(
            subject,
            f"{column} has a type that this release does not know: {', '.join(names)}",
            "Its values are stored as they come; a release that knows the type may store it otherwise.",
        )
    absent = dropped - {field["name"] for field in row_fields(json.loads(schemas.value))}
    if absent:
        yield Finding.warning(
            subject,
            f"drop_columns names {', '.join(sorted(absent))}, which the newest schema does not have",
            "Compare the spelling with the source; a name that is gone there may go from drop_columns too.",
        )
    columns_at_source = (column for column in facts_of(schemas.value) if column.name not in dropped)
    yield from inequality_findings(subject, columns_at_source)


def shared_key_findings(table: Table) -> Iterator[Finding]:
    """Return a warning for a table of several topics without a setting for keys that two of them have."""
    is_decided = table.topic_column is not None or table.shared_keys is SharedKeys.ONE_ROW
    if len(table.topics) > 1 and not is_decided and table.mode is not Mode.APPEND:
        yield Finding.warning(
            f"keys of {table.name}",
            f"{len(table.topics)} topics feed it, and a key that rows of two topics have stops its silver",
            "If the topics have different rows, set topic_column; if they have the same rows, set "
            "shared_keys: one_row. Until then each merge reads the keys of all of bronze.",
        )


def _own_key(subject: str, columns: TableColumns, names: Sequence[str]) -> Finding:
    told, row = ", ".join(names), {column.name for column in columns.row}
    absent = [name for name in names if name not in row]
    if absent:
        return Finding.warning(
            subject,
            f"key names {', '.join(absent)}, which the newest schema does not have",
            "Compare the spelling with the source; silver of the table stops until bronze has the columns.",
        )
    if {*names} <= {column.name for column in columns.key}:
        return Finding.fine(subject, f"silver has one row per {told}, which every message key tells")
    return Finding.note(
        subject,
        f"silver has one row per {told}, which the message key does not tell",
        "The source table needs REPLICA IDENTITY FULL, and a UNIQUE constraint on these columns, none NULL.",
    )


def _keyless(subject: str, topic: str, *, table: str, mode: Mode | None) -> Finding:
    if mode is Mode.UPSERT:
        return Finding.from_error(subject, KeylessUpsertError(table=table))
    return Finding.note(
        subject,
        f"the registry has no subject {topic}-key: silver gets one row per event (mode: append)",
        "For one row per row of the source, name the columns that tell them apart under `key`; or give the "
        "table a primary key, or set message.key.columns at the connector, before its first record.",
    )


def _newest(registry: Subjects, subject: str) -> str | None:
    version = registry.latest(subject)
    return None if version is None else version.text
