"""The lag of a table in offsets: markers and compaction leave fewer events than that.

Each ingest writes what Kafka has when it looks, also for a table that it then cannot read: a file per group
keeps it for the merge and for inspection. The ledger alone knows no more than the last ingest that succeeded.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from cdc_lakehouse.lake.files import read_text_if_there, write_text
from cdc_lakehouse.lake.ledger import Ledger, Ranges

logger = logging.getLogger(__name__)

VERSION = 1

Unread = Mapping[str, Ranges]
"""Table -> offsets that Kafka had behind the end of its bronze when an ingest looked."""


def offsets_behind(bronze: Ledger | None, silver: Ledger | None, *, unread: Ranges | None = None) -> int:
    """Return how many offsets of bronze, and of Kafka as it was seen, silver has not applied.

    `unread` is newer than the ledger where the ingest fails. Offsets that are missing before silver's end are
    not on their way: those are `gaps`.
    """
    sources = {} if bronze is None else bronze.sources
    news = {source: dict(partitions) for source, partitions in (unread or {}).items()}
    behind = 0
    for source, partitions in sources.items():
        for partition, progress in partitions.items():
            _, until = news.get(source, {}).pop(partition, (0, 0))
            seen = max(progress.end, progress.seen or 0, until)
            behind += seen - _end(silver, source, partition, floor=progress.floor)
    return behind + count_offsets(news)


def count_offsets(ranges: Ranges) -> int:
    return sum(until - start for partitions in ranges.values() for start, until in partitions.values())


def read_unread(uri: str) -> Unread:
    """Return the ranges of the last look; none without a file of this version, which is only a memory."""
    try:
        text = read_text_if_there(uri)
        if text is None:
            return {}
        document = json.loads(text)
        return _parse_unread(document["tables"]) if document["v"] == VERSION else {}
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        logger.warning("a file is not what it should be", extra={"file": uri, "reason": type(exc).__name__})
        return {}


def write_unread(uri: str, tables: Unread) -> None:
    """Replace the ranges of these tables; a second call with the same ones writes nothing.

    Of two writers the last one wins: the next ingest looks again.
    """
    before = read_unread(uri)
    after = {name: ranges for name, ranges in {**before, **tables}.items() if ranges}
    if after != before:
        write_text(uri, json.dumps({"v": VERSION, "tables": after}))


def _parse_unread(document: Mapping[str, Any]) -> Unread:
    return {
        table: {
            source: {int(partition): (start, until) for partition, (start, until) in partitions.items()}
            for source, partitions in sources.items()
        }
        for table, sources in document.items()
    }


def _end(silver: Ledger | None, source: str, partition: int, *, floor: int) -> int:
    end = None if silver is None else silver.end(source, partition)
    return floor if end is None else end
