"""The small values of a pipeline file and what is wrong with them: names, topics, schedules, times."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from croniter import CroniterError, croniter
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from cdc_lakehouse.config.topics import TOPIC_PATTERN

NAME_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"
COLUMN_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,126}$"
DURATION_PATTERN = r"^([1-9][0-9]{0,4})([mhd])$"
_DURATION = re.compile(DURATION_PATTERN)
_DURATION_UNIT = {"m": "minutes", "h": "hours", "d": "days"}
DEFAULT_PLACEHOLDER = "__debezium_unavailable_value"
"""Debezium's default, for values that did not change and that the log did not contain."""
_SIDE_TABLES = ("__history", "__tombstones", "__quarantine")
_OWN_TASKS = ("outcome", "optimize", "vacuum", "clean_checkpoints")
LOG_RETENTION_DAYS = 30
"""Retention of a table's Delta log: no older version can be read, so no file is worth keeping longer."""
_LEAP_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


def table_name_problem(name: str) -> str | None:
    """Why a name of the right form may not be a table's."""
    if name.endswith(_SIDE_TABLES):
        return f"{name!r} ends like one of the tables that stand beside a silver table"
    return None


def _table_name(name: str) -> str:
    problem = table_name_problem(name)
    if problem is not None:
        raise ValueError(problem)
    return name


def _pipeline_name(name: str) -> str:
    if name.endswith("_maintenance"):
        raise ValueError(f"{name!r} would take the DAG id that another pipeline's maintenance has")
    return name


def _group_name(name: str) -> str:
    if name in _OWN_TASKS:
        raise ValueError(f"{name!r} is the id of a task of every pipeline")
    return name


def _known_topic(name: str) -> str:
    if name in (".", ".."):
        raise ValueError(f"{name!r} is not a topic name")
    return name


def _known_cron(text: str) -> str:
    if len(text.split()) != 5 or not croniter.is_valid(text):
        raise ValueError(f"{text!r} is not a cron expression of five fields, like '*/15 * * * *'")
    try:
        croniter(text, _LEAP_YEAR).get_next(datetime)
    except CroniterError:
        raise ValueError(f"{text!r} names a moment that never comes") from None
    return text


def _known_timezone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{text!r} is not a time zone, like 'UTC' or 'Europe/Vienna'") from None
    return text


def _known_start(text: str) -> str:
    if text in ("earliest", "latest"):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither 'earliest', 'latest' nor a time like '2026-01-31T00:00:00Z'"
        ) from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} needs a time zone, like '2026-01-31T00:00:00Z'")
    return text


def _known_duration(text: str) -> str:
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration like '90m', '12h' or '7d'")
    return text


def _at_least(least: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if duration(text) < duration(least):
            raise ValueError(f"must be at least {least}, not {text!r}: what an attempt still needs would go")
        return text

    return check


def _within_the_log(text: str) -> str:
    if duration(text) > timedelta(days=LOG_RETENTION_DAYS):
        raise ValueError(
            f"must be at most {LOG_RETENTION_DAYS}d, as long as the Delta log is kept, not {text!r}: "
            "no version that is older could be read"
        )
    return text


def _known_placeholder(text: str) -> str:
    if text.startswith("hex:"):
        try:
            data = bytes.fromhex(text.removeprefix("hex:"))
        except ValueError:
            raise ValueError(f"{text!r} is not 'hex:' and then pairs of hexadecimal digits") from None
        if not data:
            raise ValueError(f"{text!r} names no bytes")
    return text


def _list_of_one(value: object) -> object:
    return [value] if isinstance(value, str) else value


Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
TableName = Annotated[Name, AfterValidator(_table_name)]
PipelineName = Annotated[Name, AfterValidator(_pipeline_name)]
GroupName = Annotated[Name, AfterValidator(_group_name)]
TopicName = Annotated[str, StringConstraints(pattern=TOPIC_PATTERN), AfterValidator(_known_topic)]
TablesAtOnce = Annotated[int, Field(ge=1, le=64)]
Text = Annotated[str, StringConstraints(min_length=1)]
Placeholder = Annotated[Text, AfterValidator(_known_placeholder)]
_ListOfPlaceholders = Annotated[tuple[Placeholder, ...], Field(min_length=1)]
Placeholders = Annotated[
    _ListOfPlaceholders,
    BeforeValidator(_list_of_one, json_schema_input_type=Placeholder | _ListOfPlaceholders),
]
Cron = Annotated[str, AfterValidator(_known_cron), Field(json_schema_extra={"examples": ["*/15 * * * *"]})]
TimeZone = Annotated[str, AfterValidator(_known_timezone), Field(json_schema_extra={"examples": ["UTC"]})]
Start = Annotated[
    str, AfterValidator(_known_start), Field(json_schema_extra={"examples": ["earliest", "latest"]})
]
Duration = Annotated[
    str, AfterValidator(_known_duration), Field(json_schema_extra={"pattern": DURATION_PATTERN})
]
VacuumRetention = Annotated[Duration, AfterValidator(_at_least("1d")), AfterValidator(_within_the_log)]
CheckpointRetention = Annotated[Duration, AfterValidator(_at_least("1h"))]
TombstoneRetention = Annotated[Duration, AfterValidator(_at_least("1d"))]
ReportsRetention = Annotated[Duration, AfterValidator(_at_least("1d"))]


def duration(text: str) -> timedelta:
    """`7d` as a timedelta; the text was checked when the file was read."""
    amount, unit = _DURATION.findall(text)[0]
    return timedelta(**{_DURATION_UNIT[unit]: int(amount)})
