"""The range of a micro-batch, as Spark itself wrote it down before it called us."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cdc_lakehouse.lake import files

Offsets = Mapping[str, Mapping[int, int]]


def end_of_batch(checkpoint: str, batch_id: int) -> dict[str, dict[int, int]]:
    """End offsets of a batch. The data alone cannot tell: an aborted transaction moves them too."""
    lines = files.read_text(f"{checkpoint}/offsets/{batch_id}").splitlines()
    return _offsets(lines[2])


def starting_offsets(start: Offsets) -> str:
    """The value of Spark's `startingOffsets`: every partition of every topic by name."""
    return json.dumps(
        {topic: {str(p): offset for p, offset in partitions.items()} for topic, partitions in start.items()}
    )


def _offsets(text: str) -> dict[str, dict[int, int]]:
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in json.loads(text).items()
    }
