"""What a run of a pipeline is asked to do: drain what is new, or make an interval of time complete.

Airflow gives every run a data interval, also one that a person triggers with the form as it opens. Only an
interval that differs from the one that the schedule infers was meant. The first try of a task decides which
it is, and later ones keep to it: the schedule may be another one when the run is cleared. A backfill may take
over runs of the schedule: they go on draining, and make their interval complete, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pendulum
from airflow.sdk import Param
from airflow.timetables.interval import CronDataIntervalTimetable

from cdc_lakehouse.orchestration.form_fields import choice_field, flag_field, lines_field, text_field
from cdc_lakehouse.run_modes import Recompute

FROM_TIME = "from_time"
UNTIL_TIME = "until_time"
RECOMPUTE = "recompute"
DRY_RUN = "dry_run"
TABLES = "tables"
RUN_PARAMS = (FROM_TIME, UNTIL_TIME, RECOMPUTE, TABLES, DRY_RUN)
MAINTENANCE_PARAMS = (TABLES, DRY_RUN)
_BACKFILL = "backfill"
_MANUAL = "manual"
_ABOUT = {
    FROM_TIME: (
        "The first moment of an interval, like `2026-11-03T14:00:00+00:00`; without an offset it is a time "
        "of the pipeline's timezone. The run then makes this interval complete, and reads nothing new: what "
        "bronze misses of it is read from Kafka, undecodable records of it are decoded again, and silver "
        "computes its keys again from bronze. One run does any range."
    ),
    UNTIL_TIME: "The first moment behind the interval; it must have passed.",
    RECOMPUTE: (
        "Which keys of the interval silver and its history compute again: *all* that have an event in it, or "
        "only those whose rows in bronze have *changed*."
    ),
    TABLES: "Per line the name of a table: the run leaves the others alone. Empty: all tables.",
    DRY_RUN: "Say in log, report and XCom what would be done, and do nothing.",
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """From which the interval of a run without one is inferred."""

    cron: str
    timezone: str

    def infers(self, logical_date: datetime) -> tuple[datetime, datetime]:
        """Return the interval that Airflow gives a manual run of `logical_date`."""
        timetable = CronDataIntervalTimetable(self.cron, timezone=self.timezone)
        found = timetable.infer_manual_data_interval(run_after=pendulum.instance(logical_date))
        return found.start, found.end


@dataclass(frozen=True, slots=True)
class FormContext:
    """What the form of a run is read against."""

    tables: tuple[str, ...] | None = None
    """All tables of the pipeline; None where some are discovered, and the job knows them."""
    schedule: Schedule | None = None


def run_params() -> dict[str, Param]:
    """Return the part of a pipeline's trigger form that says what the run is about; empty values say all."""
    return {
        FROM_TIME: text_field(_ABOUT[FROM_TIME]),
        UNTIL_TIME: text_field(_ABOUT[UNTIL_TIME]),
        RECOMPUTE: choice_field(
            _ABOUT[RECOMPUTE], [each.value for each in Recompute], nothing="all, if nothing is chosen"
        ),
        **maintenance_params(),
    }


def maintenance_params() -> dict[str, Param]:
    """Return the part of the form that maintenance has too: which tables, and whether anything is done."""
    return {TABLES: lines_field(_ABOUT[TABLES]), DRY_RUN: flag_field(_ABOUT[DRY_RUN])}


def asked_of_maintenance(conf: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the fields of the `JobRequest` of a job of maintenance; it has no interval."""
    return {"dry_run": True} if (conf or {}).get(DRY_RUN) else {}


def asked_of_run(dag_run: Any, *, is_specified: bool) -> dict[str, Any]:
    """Return the fields of the `JobRequest` that say what the run is about; none for one that drains.

    `is_specified` says of a manual run whether a person gave it an interval of its own.
    """
    conf = dag_run.conf or {}
    fields = asked_of_maintenance(conf)
    interval = _interval_of(dag_run, conf, is_specified=is_specified)
    if interval is None:
        # The job refuses it: a green run would look as if it had computed something again.
        return {**fields, **({RECOMPUTE: Recompute(conf[RECOMPUTE])} if conf.get(RECOMPUTE) else {})}
    is_taken_over = dag_run.run_type == _BACKFILL and not dag_run.run_id.startswith(f"{_BACKFILL}__")
    # A person who wrote an interval into the form asked for it alone, and for all of it.
    is_taken_over = is_taken_over and not (conf.get(FROM_TIME) or conf.get(UNTIL_TIME))
    usual = Recompute.CHANGED if is_taken_over else Recompute.ALL
    return {
        **fields,
        FROM_TIME: interval[0],
        UNTIL_TIME: interval[1],
        RECOMPUTE: Recompute(conf.get(RECOMPUTE) or usual),
        "also_drain": is_taken_over,
    }


def judges_interval(dag_run: Any, schedule: Schedule | None) -> bool:
    """Return whether the interval of a run may be its own: a manual run with a logical date."""
    return dag_run.run_type == _MANUAL and dag_run.logical_date is not None and schedule is not None


def has_specified_interval(dag_run: Any, schedule: Schedule) -> bool:
    """Return whether a person gave a manual run an interval of its own.

    A run that is cleared may be older than the cron of today. Any cron infers the last interval that ended
    before the logical date, so a cleared run whose interval lies like that counts as inferred.
    """
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    if start is None or end is None or (start, end) == schedule.infers(dag_run.logical_date):
        return False
    is_last_before = end <= dag_run.logical_date < end + (end - start)
    return not (dag_run.clear_number and is_last_before)


def tables_of_run(conf: Mapping[str, Any] | None, own: Iterable[str]) -> list[str]:
    """Return those of a task's `own` tables that the run is about."""
    wanted = named_tables(conf)
    return [table for table in own if not wanted or table in wanted]


def named_tables(conf: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the tables that the form names; empty where it means all."""
    lines = (str(line).strip(" \t`") for line in (conf or {}).get(TABLES) or ())
    return tuple(filter(None, lines))


def _interval_of(
    dag_run: Any, conf: Mapping[str, Any], *, is_specified: bool
) -> tuple[str | None, str | None] | None:
    """Return the interval as the job is told it; one that is half given is left to the job to refuse."""
    if conf.get(FROM_TIME) or conf.get(UNTIL_TIME):
        return conf.get(FROM_TIME), conf.get(UNTIL_TIME)
    start, until = dag_run.data_interval_start, dag_run.data_interval_end
    if start is None or until is None:
        return None
    if dag_run.run_type == _BACKFILL or (dag_run.run_type == _MANUAL and is_specified):
        return start.isoformat(), until.isoformat()
    return None
