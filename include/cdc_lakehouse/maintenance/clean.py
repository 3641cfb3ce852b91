"""Delete scratch checkpoints of attempts that ended long ago, and the records of these attempts."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.attempts import AttemptRecord
from cdc_lakehouse.lake.names import SHARED, Lake, began_at

logger = logging.getLogger(__name__)

_FOLDER = re.compile(rf"(?P<attempt>.+?)(?:{SHARED}\d)?")


def plan_clean(
    folders: Iterable[str], *, records: Mapping[str, AttemptRecord], now: datetime, retention: timedelta
) -> list[str]:
    """Return folders of attempts that ended before the retention; other names are left alone.

    An attempt without a record, of an earlier release, counts from its beginning.
    """
    return [
        name
        for name in folders
        if (end := _end_of(name, records=records, now=now)) is not None and end < now - retention
    ]


def clean_checkpoints(
    lake: Lake,
    table: str,
    *,
    records: Mapping[str, AttemptRecord],
    now: datetime,
    retention: timedelta,
    dry_run: bool,
) -> int:
    """How many were deleted. A second call deletes none; no table depends on any of them."""
    folder = lake.checkpoints(table)
    names = [child.name for child in files.folders(folder)]
    chosen = plan_clean(names, records=records, now=now, retention=retention)
    for name in chosen:
        logger.info("checkpoint", extra={"of": name, "deleted": not dry_run})
        if not dry_run:
            files.delete_child(folder, name)
    return len(chosen)


def _end_of(folder: str, *, records: Mapping[str, AttemptRecord], now: datetime) -> datetime | None:
    """Return when the attempt of a folder ended; None while it may be working, and for other names."""
    match = _FOLDER.fullmatch(folder)
    began = None if match is None else began_at(match["attempt"])
    if match is None or began is None:
        return None
    record = records.get(match["attempt"])
    if record is not None:
        return None if record.may_write(now) else record.last_sign
    return began
