"""Delete what runs and tables leave behind beside the tables: old reports, temporary folders, lost state."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from cdc_lakehouse.application.application import TEMPORARY, Application
from cdc_lakehouse.application.session import TEMPORARY_OF_A_PROCESS
from cdc_lakehouse.config.values import duration
from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.attempts import AttemptRecord
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.maintenance.clean import clean_checkpoints

logger = logging.getLogger(__name__)

KEPT_DAYS = 7
"""The newest days that have reports are kept, however old they are: `make tables` reads them."""
_UNKNOWN_FOR = timedelta(days=7)
"""Age from which on a temporary folder is nobody's, where no record says whose it is."""
_SUFFIX = ".json"
_JOBS_THAT_REMEMBER = (Job.OPTIMIZE, Job.VACUUM)


@dataclass(frozen=True, slots=True)
class TemporaryFolder:
    name: str
    modified: datetime


def clean_leftovers(
    application: Application, *, records: Mapping[str, AttemptRecord], now: datetime
) -> list[str]:
    """Return what was deleted, a phrase per kind. A second call deletes nothing; no table needs any of it."""
    pipeline, lake, dry_run = application.pipeline, application.lake, application.request.dry_run
    retention = duration(pipeline.maintenance.checkpoint_retention)
    unknown_for = max(_UNKNOWN_FOR, 2 * duration(pipeline.execution_timeout))
    reports = clean_reports(
        lake, now=now, retention=duration(pipeline.maintenance.reports_retention), dry_run=dry_run
    )
    temporary = clean_temporary_folders(
        Path(tempfile.gettempdir()),
        records=records,
        now=now,
        retention=retention,
        unknown_for=unknown_for,
        dry_run=dry_run,
    )
    tables = {table.name for table in pipeline.tables}
    lost = lost_state(lake, tables=tables, groups=set(pipeline.groups))
    checkpoints = 0
    for name in lost_checkpoints(lake, tables=tables):
        checkpoints += clean_checkpoints(
            lake, name, records=records, now=now, retention=retention, dry_run=dry_run
        )
    for uri in lost:
        logger.info("state of a table or group that is gone", extra={"uri": uri, "deleted": not dry_run})
        if not dry_run:
            files.delete_file(uri)
    counted = (
        (reports, "reports of old runs"),
        (temporary, "temporary folders of processes that ended"),
        (len(lost), "files about tables or groups that are gone"),
        (checkpoints, "checkpoints of tables that the pipeline no longer has"),
    )
    return [f"{count} {what}" for count, what in counted if count]


def plan_report_days(names: Iterable[str], *, now: datetime, retention: timedelta) -> list[str]:
    """Return the folders of days that ended before the retention; other names are left alone."""
    days = sorted(name for name in names if _day_of(name) is not None)
    return [
        name
        for name in days[:-KEPT_DAYS]
        if (day := _day_of(name)) is not None and day < (now - retention).date()
    ]


def clean_reports(lake: Lake, *, now: datetime, retention: timedelta, dry_run: bool) -> int:
    """Return how many attempts lost their reports, with one listing per day. A second call deletes none."""
    names = [folder.name for folder in files.folders(lake.runs)]
    deleted = 0
    for day in plan_report_days(names, now=now, retention=retention):
        attempts = len(files.folders(f"{lake.runs}/{day}"))
        logger.info("reports of a day", extra={"day": day, "attempts": attempts, "deleted": not dry_run})
        if not dry_run:
            files.delete_child(lake.runs, day)
        deleted += attempts
    return deleted


def _day_of(name: str) -> date | None:
    try:
        return date.fromisoformat(name) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", name) else None
    except ValueError:
        return None


def plan_temporary(
    folders: Iterable[TemporaryFolder],
    *,
    records: Mapping[str, AttemptRecord],
    now: datetime,
    retention: timedelta,
    unknown_for: timedelta,
) -> list[str]:
    """Return folders whose processes ended before the retention, or that are too old to be anybody's."""
    chosen = []
    for folder in folders:
        record = records.get(folder.name.removeprefix(TEMPORARY))
        if record is None:
            is_over = folder.modified < now - unknown_for
        else:
            is_over = not record.may_write(now) and record.last_sign < now - retention
        if is_over:
            chosen.append(folder.name)
    return chosen


def clean_temporary_folders(
    parent: Path,
    *,
    records: Mapping[str, AttemptRecord],
    now: datetime,
    retention: timedelta,
    unknown_for: timedelta,
    dry_run: bool,
) -> int:
    """Return how many folders of killed processes of this user and machine were deleted."""
    chosen = plan_temporary(
        _temporary_folders(parent), records=records, now=now, retention=retention, unknown_for=unknown_for
    )
    for name in chosen:
        logger.info("temporary folder", extra={"of": name, "deleted": not dry_run})
        if not dry_run:
            shutil.rmtree(parent / name, ignore_errors=True)  # another cleanup may be at it, too
    return len(chosen) if dry_run else sum(not (parent / name).exists() for name in chosen)


def _temporary_folders(parent: Path) -> Iterator[TemporaryFolder]:
    ours = re.compile(rf"{re.escape(TEMPORARY)}.+|{re.escape(TEMPORARY_OF_A_PROCESS)}[a-z0-9_]{{8}}")
    with os.scandir(parent) as entries:
        for entry in entries:
            if not ours.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
                continue
            facts = entry.stat(follow_symlinks=False)
            if facts.st_uid == os.getuid():
                yield TemporaryFolder(entry.name, datetime.fromtimestamp(facts.st_mtime, UTC))


def lost_state(lake: Lake, *, tables: set[str], groups: set[str]) -> list[str]:
    """Return files about tables that neither pipeline nor lake has, and about groups that are gone."""
    in_lake = {
        folder.name for folder in (*files.folders(lake.bronze_tables), *files.folders(lake.silver_tables))
    }
    of_tables = (lake.looks_folder, *(lake.maintenance_folder(job) for job in _JOBS_THAT_REMEMBER))
    of_groups = (lake.confirmations_folder, lake.unread_folder)
    return [
        file.uri
        for folders, known in ((of_tables, tables | in_lake), (of_groups, groups))
        for folder in folders
        for file in files.listed_files(folder)
        if file.name.endswith(_SUFFIX)
        and not file.name.startswith(".")
        and file.name.removesuffix(_SUFFIX) not in known
    ]


def lost_checkpoints(lake: Lake, *, tables: set[str]) -> list[str]:
    """Return the names of checkpoint folders that no table of the pipeline cleans."""
    return [folder.name for folder in files.folders(lake.checkpoint_folders) if folder.name not in tables]
