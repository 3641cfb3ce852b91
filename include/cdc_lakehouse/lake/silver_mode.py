"""What the columns of a silver table say of it: one row per key, or one per event."""

from __future__ import annotations

import pyarrow as pa

from cdc_lakehouse.config.models import Mode

UNAVAILABLE = "_cdc_unavailable"
"""Of an event: the columns that it does not tell. Only silver with a row per event has it, from the start."""


def written_as(silver: pa.Schema) -> Mode:
    return Mode.APPEND if UNAVAILABLE in silver.names else Mode.UPSERT
