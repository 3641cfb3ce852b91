"""How far silver is behind, in offsets: markers and compaction leave fewer events than that."""

from __future__ import annotations

from cdc_lakehouse.lake.ledger import Ledger


def offsets_behind(bronze: Ledger, silver: Ledger | None) -> int:
    """Behind silver's end, what bronze holds and what Kafka was seen to hold. What is missing before it is
    not on its way: that is `gaps`."""
    return sum(
        max(progress.end, progress.seen or 0) - _end(silver, source, partition, floor=progress.floor)
        for source, partitions in bronze.sources.items()
        for partition, progress in partitions.items()
    )


def _end(silver: Ledger | None, source: str, partition: int, *, floor: int) -> int:
    end = None if silver is None else silver.end(source, partition)
    return floor if end is None else end
