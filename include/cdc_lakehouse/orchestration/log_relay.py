"""The output of spark-submit as log lines: ours at their level, Spark's from WARN on, no noise."""

from __future__ import annotations

import logging
import re

from cdc_lakehouse.log import parse_line
from cdc_lakehouse.redaction import is_thrown, log_line_without_values

_SPARK_LINE = re.compile(
    r"^\d{2,4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d\S* (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) (?P<text>.*)"
)
_SPARK_LEVEL = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NOISE = re.compile(
    r"^(?:Spark Command: |={10,}$|Using Spark's default log4j profile|Setting default log level to "
    r"|To adjust logging level use |WARNING: Using incubator modules|Using properties file: |:: )"
)
_PYTHON_TRACEBACK = "Traceback (most recent call last):"
_LAST_WORDS = re.compile(
    r'#|Exception in thread "|Terminating due to java\.lang\.OutOfMemoryError|java\.lang\.OutOfMemoryError'
    r"|Fatal Python error: |Killed$|Aborted|Segmentation fault|terminate called |\*\*\* |%[0-2]\|"
)
"""How the JVM, Python, a shell, C libraries and librdkafka begin what they write when a process dies."""


class LogRelay:
    """Turn line after line into (level, text); None for noise.

    An exception of the JVM becomes one line, without its frames and without the values that its message may
    quote. The frames of an unexpected failure are in our own traceback. What a dying process writes is always
    shown: nothing else says why it left no result.
    """

    def __init__(self) -> None:
        self._level_above: int | None = None
        """Level of the Spark line that an exception below it belongs to."""

    def read(self, line: str) -> tuple[int, str] | None:
        """What to log for this line."""
        ours = parse_line(line)
        if ours is not None:
            self._level_above = None
            return ours
        spark = _SPARK_LINE.match(line)
        if spark is not None:
            self._level_above = _SPARK_LEVEL[spark[1]]
            return self._if_warning(self._level_above, f"spark: {log_line_without_values(spark['text'])}")
        if _LAST_WORDS.match(line):
            self._level_above = logging.ERROR
            return logging.ERROR, log_line_without_values(line)
        if self._level_above is not None and line != _PYTHON_TRACEBACK:
            return self._continued(self._level_above, line)
        self._level_above = None
        if not line.strip() or _NOISE.match(line):
            return None
        return logging.INFO, log_line_without_values(line)

    def _continued(self, level: int, line: str) -> tuple[int, str] | None:
        """Return an exception below a line of Spark; any other line there may be part of a value."""
        return self._if_warning(level, log_line_without_values(line)) if is_thrown(line) else None

    @staticmethod
    def _if_warning(level: int, text: str) -> tuple[int, str] | None:
        return (level, text) if level >= logging.WARNING else None
