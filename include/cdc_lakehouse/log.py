"""Structured log lines: one JSON object per line, constant event, facts as keys.

A job writes them to standard output; the Airflow operator reads them back with
`parse_line` and shows `event key=value` at the same level.
"""

from __future__ import annotations

import json
import logging
import sys
import textwrap
from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO

from cdc_lakehouse.redaction import printable, printable_lines, traceback_without_values

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARK = "cdc_lakehouse"
_SENTENCES = ("sentence", "advice")
"""Facts for people, printed below the event in wrapped lines."""
_WIDTH = 110
_bound: ContextVar[Mapping[str, object]] = ContextVar("bound_facts", default=MappingProxyType({}))
_PLAIN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def bound(**facts: object) -> Iterator[None]:
    """Every line written inside carries these facts (pipeline, table, attempt, batch)."""
    token = _bound.set({**_bound.get(), **facts})
    try:
        yield
    finally:
        _bound.reset(token)


class JsonLines(logging.Formatter):
    """`{"log": "cdc_lakehouse", "level", "logger", "event", <facts>}`, with the traceback if any.

    Tracebacks are written without values: those of Spark and Arrow quote the payload.
    """

    def format(self, record: logging.LogRecord) -> str:
        facts = {key: value for key, value in vars(record).items() if key not in _PLAIN_FIELDS}
        line: dict[str, object] = {
            "log": _MARK,
            "level": record.levelname,
            "logger": record.name.removeprefix("cdc_lakehouse."),
            "event": record.getMessage(),
            **_bound.get(),
            **facts,
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["traceback"] = traceback_without_values(record.exc_info[1])
        return json.dumps(line, default=str)


def configure(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Send this package's lines to `stream` (standard output). A second call replaces the first."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stdout)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("cdc_lakehouse")
    logger.handlers = [handler]
    logger.setLevel(level)
    logger.propagate = False


def parse_line(text: str) -> tuple[int, str] | None:
    """Level and `event key=value …` of one of our lines; None for anybody else's."""
    if not text.startswith('{"log": "' + _MARK):
        return None
    try:
        line: dict[str, Any] = json.loads(text)
    except ValueError:
        return None
    level = logging.getLevelNamesMapping().get(str(line.pop("level", "INFO")), logging.INFO)
    event, traceback = line.pop("event", ""), line.pop("traceback", None)
    line.pop("log")
    line.pop("logger", None)
    sentences = [line.pop(key) for key in _SENTENCES if key in line]
    words = " ".join([str(event), *(f"{key}={_readable(value)}" for key, value in line.items())])
    below = [wrapped(f"    {sentence}") for sentence in sentences]
    frames = [] if traceback is None else [printable_lines(str(traceback).replace("\t", "    "))]
    return level, "\n".join([printable(words), *below, *frames])


def wrapped(text: str) -> str:
    """Wrap text to lines that a browser shows without scrolling, and spell out control characters.

    Continued lines are indented further than the line that they continue.
    """
    return "\n".join(_wrap_line(printable(line)) for line in text.split("\n"))


def _wrap_line(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    parts = textwrap.wrap(
        line, _WIDTH, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(parts)


def _readable(value: object) -> str:
    if isinstance(value, str) and value and value.isprintable() and " " not in value:
        return value
    return json.dumps(value)
