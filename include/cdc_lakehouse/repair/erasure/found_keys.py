"""Find all keys that the rows of a person had, and count what each layer of a table holds of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.coordinates import any_of, with_topic_id
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.state import is_there
from cdc_lakehouse.repair.erasure.key_digests import KeyDigests, collect_texts, is_one_of, refused
from cdc_lakehouse.repair.erasure.key_request import MOST_KEYS, KeyRequest, key_values
from cdc_lakehouse.silver.columns.row_filter import is_about_values

_CHANGES_OF_KEY = (Operation.DELETE, Operation.CREATE)
_OPPOSITE = {str(Operation.DELETE): str(Operation.CREATE), str(Operation.CREATE): str(Operation.DELETE)}


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """Digests of keys: what names the rows that an erasure is about."""

    named: frozenset[str]
    """Those that the person asked for."""
    source: frozenset[str]
    """Those of bronze: the named ones, and the others that their rows had before or later."""
    silver: frozenset[str]
    message_keys: frozenset[str] = frozenset()
    """Digests of the message keys of their records: a tombstone has nothing else."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One Delta table and the condition on its rows that hold one of the keys."""

    name: str
    uri: str
    condition: Column


def find_keys(
    session: SparkSession, lake: Lake, table: Table, request: KeyRequest, digests: KeyDigests
) -> FoundKeys:
    """Return the keys that are asked for, and those that the same rows had at other times."""
    bronze = session.read.format("delta").load(lake.bronze(table.name))
    if request.where:
        known = _matching_silver(session, lake, table, request.where, digests)
        named = _sources_of(bronze, digests, known)
        silver = known
    else:
        values = key_values(session, table, request, digests)
        pairs = digests.of_values(values).collect()
        values.unpersist()
        named, silver = {row["source"] for row in pairs}, {row["silver"] for row in pairs}
    source = _with_changed_keys(bronze, table, digests, named)
    silver |= _silver_of(bronze, digests, source - named)
    message = digests.message_key()
    messages = (
        set()
        if message is None
        else collect_texts(
            bronze.where(digests.names_in_bronze(source)).select(message.alias("id")), "id", most=MOST_KEYS
        )
    )
    _refuse_many(table, source | messages)
    return FoundKeys(frozenset(named), frozenset(source), frozenset(silver), frozenset(messages))


def layers_of(
    session: SparkSession, lake: Lake, table: Table, digests: KeyDigests, keys: FoundKeys
) -> list[Layer]:
    """Return the tables that exist, each with the condition on its rows of these keys.

    Bronze is the first and silver the second; without silver there is nothing beside it. Raise
    `RepairRefusedError` where one lacks a column of the key: its rows of the keys could not be found.
    """
    found = [Layer("bronze", lake.bronze(table.name), rows_of_bronze(digests, keys))]
    if not is_there(lake.silver(table.name)):
        return found
    beside = {
        "silver": lake.silver(table.name),
        "history": lake.history(table.name),
        "tombstones": lake.tombstones(table.name),
    }
    for name, uri in beside.items():
        if not is_there(uri):
            continue
        schema = session.read.format("delta").load(uri).schema
        missing = sorted({column.silver for column in digests.columns} - {*schema.names})
        if missing:
            problem = f"its {name} lacks {', '.join(missing)}, so rows of the keys cannot be found there"
            raise refused(table, f"{problem}; rebuild it first")
        found.append(Layer(name, uri, is_one_of(digests.of_silver(schema), keys.silver)))
    return found


def rows_of_bronze(digests: KeyDigests, keys: FoundKeys) -> Column:
    """Return whether a row of bronze is of one of the keys, or a record of its message key with no image."""
    condition, message = digests.names_in_bronze(keys.source), digests.message_key()
    if message is None or not keys.message_keys:
        return condition
    has_images = F.col("before").isNotNull() | F.col("after").isNotNull()
    return condition | (is_one_of(message, keys.message_keys) & ~has_images)


def count_rows(session: SparkSession, layer: Layer, *, version: int | None = None) -> int:
    reader = session.read.format("delta")
    rows = (reader if version is None else reader.option("versionAsOf", version)).load(layer.uri)
    count: int = rows.where(layer.condition).count()
    return count


def count_unknown(session: SparkSession, bronze: Layer) -> int:
    """Return how many undecodable records there are whose key nobody knows: they may be of anybody."""
    rows = session.read.format("delta").load(bronze.uri)
    unknown = F.col("decode_error").isNotNull() & ~bronze.condition
    if "key" in rows.columns:
        unknown &= F.col("key").isNull()
    count: int = rows.where(unknown).count()
    return count


def count_quarantined(session: SparkSession, bronze: Layer) -> int:
    """Return how many of the records could not be decoded, though their key could."""
    rows = session.read.format("delta").load(bronze.uri).where(bronze.condition)
    count: int = rows.where(F.col("decode_error").isNotNull()).count()
    return count


def count_in_kafka(session: SparkSession, bronze: Layer, facts: ClusterFacts) -> int:
    """Return how many of the records Kafka still holds, as far as its first offsets tell."""
    rows = with_topic_id(session.read.format("delta").load(bronze.uri)).where(bronze.condition)
    still_there = any_of(
        (F.col("topic") == topic.name)
        & F.coalesce(F.col("topic_id") == topic.topic_id, F.lit(True))
        & (F.col("partition") == partition)
        & (F.col("offset") >= offsets.earliest)
        for topic in facts.topics.values()
        for partition, offsets in topic.partitions.items()
    )
    count: int = rows.where(still_there).count()
    return count


def _matching_silver(
    session: SparkSession, lake: Lake, table: Table, where: str, digests: KeyDigests
) -> set[str]:
    """Return the digests of silver's rows, and of versions in the history, that satisfy a condition."""
    found: set[str] = set()
    for uri in (lake.silver(table.name), lake.history(table.name)):
        if not is_there(uri):
            continue
        rows = session.read.format("delta").load(uri)
        try:
            matching = rows.where(F.expr(where)).select(digests.of_silver(rows.schema).alias("id"))
            found |= collect_texts(matching, "id", most=MOST_KEYS)
        except PySparkException as exc:
            if not isinstance(exc, AnalysisException | ParseException) and not is_about_values(exc):
                raise
            # Without its cause: it quotes the condition, which may hold a value.
            raise refused(table, "`where` is no condition on the columns of its silver") from None
    if not found:
        raise refused(table, "no row of silver or its history satisfies `where`")
    _refuse_many(table, found)
    return found


def _sources_of(bronze: DataFrame, digests: KeyDigests, silver: Collection[str]) -> set[str]:
    if not digests.is_shaped:
        return {*silver}
    pairs = _pairs(bronze, digests)
    return collect_texts(pairs.where(is_one_of(F.col("silver"), silver)), "source", most=MOST_KEYS)


def _silver_of(bronze: DataFrame, digests: KeyDigests, source: Collection[str]) -> set[str]:
    if not source or not digests.is_shaped:
        return {*source}
    pairs = _pairs(bronze, digests)
    return collect_texts(pairs.where(is_one_of(F.col("source"), source)), "silver", most=MOST_KEYS)


def _pairs(bronze: DataFrame, digests: KeyDigests) -> DataFrame:
    return bronze.select(F.explode(digests.pairs_of_bronze()).alias("pair")).select("pair.*").distinct()


def _with_changed_keys(
    bronze: DataFrame, table: Table, digests: KeyDigests, named: Collection[str]
) -> set[str]:
    """Return the keys, and those that the same rows had before or later.

    An event with two images tells both keys. Where the message key changes, the delete of the old key and the
    create of the new one have one place in the source's log.
    """
    place = F.struct(
        "topic",
        F.col("position.row").alias("row"),
        "source.tx_id",
        "source.pos",
        F.col("source.row").alias("part"),
    )
    events = bronze.select(digests.of_bronze().alias("ids"), "op", place.alias("place"))
    moves = events.where(F.col("op").isin(*_CHANGES_OF_KEY) & F.col("place.row").isNotNull())
    known, newest = {*named}, {*named}
    while newest:
        own = _with_one_of(events, newest)
        ids = collect_texts(own.select(F.explode("ids").alias("id")), "id", most=MOST_KEYS)
        opposite = F.create_map(*(F.lit(text) for pair in _OPPOSITE.items() for text in pair))
        ends = _with_one_of(moves, newest).select("place", opposite[F.col("op")].alias("op")).distinct()
        same = F.col("one.place").eqNullSafe(F.col("other.place")) & (F.col("one.op") == F.col("other.op"))
        other_ends = moves.alias("one").join(ends.alias("other"), same, "left_semi")
        ids |= collect_texts(other_ends.select(F.explode("ids").alias("id")), "id", most=MOST_KEYS)
        newest = ids - known
        known |= newest
        _refuse_many(table, known)
    return known


def _with_one_of(events: DataFrame, ids: Collection[str]) -> DataFrame:
    return events.where(F.arrays_overlap("ids", F.array(*(F.lit(each) for each in sorted(ids)))))


def _refuse_many(table: Table, keys: Collection[str]) -> None:
    if len(keys) > MOST_KEYS:
        raise refused(table, f"it is about more than {MOST_KEYS} keys; name fewer at once")
