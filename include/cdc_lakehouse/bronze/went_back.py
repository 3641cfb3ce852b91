"""From which record on the source is another one, where it went back before anybody said so.

Bronze takes every record; silver stops before the first one that it would refuse without a reason
(`lake.turned_back`). So when a person opens an epoch, the records that it is about are in bronze already, and
silver has applied none of them.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.lake.coordinates import TOPIC_ID, in_ranges, with_topic_id
from cdc_lakehouse.lake.ledger import Ends, Ledger, Ranges, first_incarnations, incarnations, source_of
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.state import look_into
from cdc_lakehouse.lake.turned_back import turns


def turned_back(session: Callable[[], SparkSession], lake: Lake, ledger: Ledger, *, version: int) -> Ends:
    """Of each partition the first offset of the new source; empty where the source did not go back.

    `ledger` is bronze's, at `version`. A partition in which nothing stands below anything older gives no
    sign of its own: there the first record counts that Kafka got when the others had turned.
    """
    silver = look_into(lake.silver(ledger.table), table=ledger.table)
    if silver is None or silver.ledger is None:
        return {}
    work = _behind(silver.ledger, ledger)
    if not work:
        return {}
    reader = session().read.format("delta").option("versionAsOf", version)
    rows = with_topic_id(reader.load(lake.bronze(ledger.table)))
    found = turns(rows, held=ledger, work=work)
    since = min((turn.since for turn in found if turn.since is not None), default=None)
    offsets: dict[str, dict[int, int]] = {}
    if since is not None:
        offsets = _first_since(rows, since, ledger=ledger, work=work)
    for turn in found:
        offsets.setdefault(turn.source, {})[turn.partition] = turn.offset
    return offsets


def _behind(silver: Ledger, bronze: Ledger) -> Ranges:
    """What bronze has and silver has not applied."""
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for source, partitions in bronze.sources.items():
        for partition, progress in partitions.items():
            applied = silver.end(source, partition)
            start = progress.floor if applied is None else applied
            if start < progress.end:
                found.setdefault(source, {})[partition] = (start, progress.end)
    return found


def _first_since(rows: DataFrame, since: int, *, ledger: Ledger, work: Ranges) -> dict[str, dict[int, int]]:
    later = rows.where(in_ranges(work, unnamed=first_incarnations(ledger)))
    later = later.where(F.unix_micros("kafka_timestamp") >= since)
    found: dict[str, dict[int, int]] = {}
    firsts = later.groupBy("topic", TOPIC_ID, "partition").agg(F.min("offset").alias("offset"))
    for row in firsts.collect():
        topic = row["topic"]
        source = source_of(topic, row[TOPIC_ID]) if row[TOPIC_ID] else incarnations(ledger, topic)[0]
        found.setdefault(source, {})[row["partition"]] = row["offset"]
    return found
