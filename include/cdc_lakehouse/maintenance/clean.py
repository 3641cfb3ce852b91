"""Delete scratch checkpoints of attempts that ended long ago."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime, timedelta

from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import SHARED, Lake

logger = logging.getLogger(__name__)

_ATTEMPT = re.compile(rf"(\d{{8}}T\d{{6}}Z)-[0-9a-f]{{8}}(?:{SHARED}\d)?")
_ATTEMPT_TIME = "%Y%m%dT%H%M%SZ"


def plan_clean(attempts: list[str], *, now: datetime, retention: timedelta) -> list[str]:
    """The attempts that began before the retention; a name that is not an attempt's is left alone."""
    return [name for name in attempts if (began := _began(name)) is not None and began < now - retention]


def clean_checkpoints(lake: Lake, table: str, *, now: datetime, retention: timedelta, dry_run: bool) -> int:
    """How many were deleted. A second call deletes none; no table depends on any of them."""
    folder = lake.checkpoints(table)
    chosen = plan_clean([child.name for child in files.folders(folder)], now=now, retention=retention)
    for name in chosen:
        logger.info("checkpoint", extra={"of": name, "deleted": not dry_run})
        if not dry_run:
            files.delete_child(folder, name)
    return len(chosen)


def _began(attempt: str) -> datetime | None:
    found = _ATTEMPT.fullmatch(attempt)
    if found is None:
        return None
    try:
        return datetime.strptime(found.group(1), _ATTEMPT_TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
