"""The writer schemas of a table's records, and the columns that they ask for."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from cdc_lakehouse.avro.schema_refs import SchemaRef, in_order
from cdc_lakehouse.avro.unknown import UnknownIds
from cdc_lakehouse.config.models import OnSchemaChange
from cdc_lakehouse.debezium.columns import (
    Column,
    TableColumns,
    columns_of,
    evolve,
    evolve_leniently,
    key_columns,
    unknown_types,
    widened_key,
)
from cdc_lakehouse.debezium.envelope import describes_event, describes_key
from cdc_lakehouse.debezium.incompatible import with_newest_types, with_side_columns
from cdc_lakehouse.errors import DataError, LakehouseError, UnknownSchemaError
from cdc_lakehouse.lake.ledger import Ranges, topic_of
from cdc_lakehouse.registry.writer_schemas import MetSchemas, TopicTexts, WriterSchemas

logger = logging.getLogger(__name__)

PERSISTS = timedelta(seconds=20)
"""A registry that serves from a copy may lag behind; the retry of a task comes later than this."""


@dataclass(frozen=True, slots=True)
class KnownSchemas:
    """What the driver knows of one table: texts by id, and the columns they evolved to."""

    table: str
    columns: TableColumns
    texts: Mapping[SchemaRef, str]
    key_text: str | None
    """The key schema that new value schemas are paired with; None while no topic of the table has one.

    Its types may be narrower than those of the key in `columns`.
    """
    topics: tuple[str, ...] = ()
    """Topics of the table; a schema of one of them may be that of records of all."""
    dropped: frozenset[str] = frozenset()
    """Columns that the table leaves out."""
    policy: OnSchemaChange = OnSchemaChange.EVOLVE
    unknown: frozenset[SchemaRef] = frozenset()
    """Schemas that records name and nobody knows."""
    keys: frozenset[SchemaRef] = frozenset()
    values: frozenset[SchemaRef] = frozenset()
    """The schemas among `texts` that keys, and values, of the table's topics may have."""
    strange_keys: frozenset[SchemaRef] = frozenset()
    strange_values: frozenset[SchemaRef] = frozenset()
    """Schemas that keys, and values, name and that belong to something else."""

    @property
    def wrong_keys(self) -> frozenset[SchemaRef]:
        """Schemas that no key of these topics may have: strange ones and those of values."""
        return self.strange_keys | (self.values - self.keys)

    @property
    def wrong_values(self) -> frozenset[SchemaRef]:
        return self.strange_values | (self.keys - self.values)

    def with_value(self, text: str) -> KnownSchemas:
        """Bronze always ingests: what cannot evolve stays, and its records become undecodable."""
        new = _columns(self.key_text, text, table=self.table, dropped=self.dropped)
        return replace(self, columns=_evolved(self.columns, new, table=self.table, policy=self.policy))

    def with_key(self, text: str) -> KnownSchemas:
        """The first key of a table that had none makes it a table with that key; a wider one widens it."""
        if self.key_text is None and not self.columns.key:
            key = key_columns(text, table=self.table, dropped=self.dropped)
            return replace(self, columns=replace(self.columns, key=key), key_text=text)
        key = _widened_key(self.columns.key, [text], table=self.table, dropped=self.dropped)
        return replace(self, columns=replace(self.columns, key=key))


def resolve_subjects(
    schemas: WriterSchemas,
    topics: tuple[str, ...],
    *,
    table: str,
    existing: TableColumns | None,
    dropped: frozenset[str] = frozenset(),
    policy: OnSchemaChange = OnSchemaChange.EVOLVE,
) -> KnownSchemas:
    """All versions of the topics' subjects, the oldest first: the exception in a worker stays rare.

    A version that this release cannot plan is left out: it stops the table only if a record has it.
    Raises when no version can be planned, with the reason of the newest. Topics without a key at all are a
    table without one, unless it had one.
    """
    known: KnownSchemas | None = None
    reason: LakehouseError = _unknown_subjects(topics, table=table)
    of_topics = [schemas.of_topic(topic) for topic in topics]
    key = next((_newest_key(each, table=table) for each in of_topics if each.keys), None)
    if key is None and existing is not None and existing.key:
        raise reason
    for of_topic in of_topics:
        for ref, text in of_topic.values.items():
            newest_key = _newest_key(of_topic, table=table) if of_topic.keys else key
            try:
                key_text = newest_key if known is None else known.key_text
                new = _columns(key_text, text, table=table, dropped=dropped)
                columns = _resolved(known, new, existing=existing, table=table, policy=policy)
            except LakehouseError as exc:
                reason = exc
                logger.warning("schema left out", extra={"schema_id": str(ref), "reason": str(exc)})
            else:
                known = KnownSchemas(
                    table=table,
                    columns=columns,
                    texts={**({} if known is None else known.texts), **of_topic.keys, ref: text},
                    keys=(frozenset() if known is None else known.keys) | of_topic.keys.keys(),
                    values=(frozenset() if known is None else known.values) | {ref},
                    key_text=key_text,
                    topics=topics,
                    dropped=dropped,
                    policy=policy,
                )
    if known is None:
        raise reason
    versions = [text for each in of_topics for text in each.keys.values()]
    key_of_all = _widened_key(known.columns.key, versions, table=table, dropped=dropped)
    return replace(known, columns=replace(known.columns, key=key_of_all))


def _unknown_subjects(topics: tuple[str, ...], *, table: str) -> UnknownSchemaError:
    subjects = ", ".join(f"{topic}-key, {topic}-value" for topic in topics)
    return UnknownSchemaError(table=table, schemas=f"subjects {subjects}", records=", ".join(topics))


def _newest_key(of_topic: TopicTexts, *, table: str) -> str:
    """Return the newest schema that can be a key; where none can, the newest, for the error that says so."""
    texts = list(of_topic.keys.values())
    return next((text for text in reversed(texts) if describes_key(text, table=table)), texts[-1])


def resolve_unknown(
    schemas: WriterSchemas,
    known: KnownSchemas,
    ids: UnknownIds,
    *,
    batch: Ranges,
    persists: timedelta = PERSISTS,
) -> KnownSchemas:
    """With the schemas that a worker met and the driver did not know.

    Raises for what nobody knows, so that the attempt is repeated; what was unknown for as long as `persists`
    is left to the quarantine. Each pass over a batch must say something new, so passes come to an end.
    """
    asked = ids.keys | ids.values
    answered_keys = known.keys | known.wrong_keys | known.unknown
    answered_values = known.values | known.wrong_values | known.unknown
    if ids.keys <= answered_keys and ids.values <= answered_values:
        raise RuntimeError(
            f"workers do not find the schemas {[str(ref) for ref in in_order(asked)]}, which they were sent"
        )
    topics = {*known.topics, *map(topic_of, batch)}
    met = schemas.of_records(sorted(topics), keys=ids.keys, values=ids.values)
    missing = (ids.keys - met.keys.keys() - met.strange_keys) | (
        ids.values - met.values.keys() - met.strange_values
    )
    unknown = schemas.unknown_for(missing, persists)
    if missing - unknown:
        told = ", ".join(map(str, in_order(missing - unknown)))
        raise UnknownSchemaError(table=known.table, schemas=f"schema {told}", records=_told(batch))
    _warn_of(unknown, "a schema is not known: its records are undecodable")
    known = _with_met(known, met)
    return replace(known, unknown=known.unknown | unknown)


def _with_met(known: KnownSchemas, met: MetSchemas) -> KnownSchemas:
    """Add the columns of the schemas that belong to the topics and describe their events or keys."""
    events = {
        ref: text
        for ref, text in met.values.items()
        if describes_event(text, table=known.table, dropped=known.dropped)
    }
    keys = {ref: text for ref, text in met.keys.items() if describes_key(text, table=known.table)}
    strange = met.strange_keys | met.strange_values
    _warn_of(strange, "a schema belongs to something else: its records are undecodable")
    other = (met.keys.keys() - keys.keys()) | (met.values.keys() - events.keys())
    _warn_of(other, "a schema of the topic is not that of a change event: its records are undecodable")
    for ref in in_order(keys):
        known = known.with_key(keys[ref])
    for ref in in_order(events):
        known = known.with_value(events[ref])
    return replace(
        known,
        texts={**known.texts, **met.keys, **met.values},
        keys=known.keys | met.keys.keys(),
        values=known.values | met.values.keys(),
        strange_keys=known.strange_keys | met.strange_keys,
        strange_values=known.strange_values | met.strange_values,
    )


def _warn_of(refs: Iterable[SchemaRef], event: str) -> None:
    for ref in in_order(refs):
        logger.warning(event, extra={"schema_id": str(ref)})


def _widened_key(
    key: tuple[Column, ...], texts: Iterable[str], *, table: str, dropped: frozenset[str]
) -> tuple[Column, ...]:
    """Return `key` as wide as all of these schemas need it. Records of another key do not fit."""
    for text in texts:
        try:
            sent = key_columns(text, table=table, dropped=dropped)
        except LakehouseError as exc:
            logger.warning("key schema left out", extra={"reason": str(exc)})
            continue
        grown = widened_key(key, sent)
        if grown is None:
            logger.info("key schema of another key", extra={"columns": [each.name for each in sent]})
        key = grown or key
    return key


def _told(ranges: Ranges) -> str:
    return ", ".join(
        f"{topic_of(source)}/{partition} [{start}, {end})"
        for source, partitions in ranges.items()
        for partition, (start, end) in partitions.items()
    )


def _resolved(
    known: KnownSchemas | None,
    new: TableColumns,
    *,
    existing: TableColumns | None,
    table: str,
    policy: OnSchemaChange,
) -> TableColumns:
    before = existing if known is None else known.columns
    if before is None:
        return new
    if existing is None and policy is not OnSchemaChange.SIDE_COLUMN:
        newest = with_newest_types(before, new)
        if newest != evolve_leniently(before, new):
            logger.warning("types do not meet: the table begins with the newest ones")
        return newest
    return _evolved(before, new, table=table, policy=policy)


def _columns(key: str | None, value: str, *, table: str, dropped: frozenset[str]) -> TableColumns:
    columns = columns_of(key, value, table=table, dropped=dropped)
    for column, names in unknown_types(value, table=table, dropped=dropped).items():
        logger.warning("unknown type stored as it came", extra={"column": column, "types": names})
    return columns


def _evolved(
    existing: TableColumns, new: TableColumns, *, table: str, policy: OnSchemaChange
) -> TableColumns:
    try:
        return evolve(existing, new, table=table)
    except DataError as exc:
        logger.warning("schema does not fit the table", extra={"reason": str(exc)})
        if policy is OnSchemaChange.SIDE_COLUMN:
            return with_side_columns(existing, new)
        return evolve_leniently(existing, new)
