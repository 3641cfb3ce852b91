"""The output of spark-submit as log lines: ours at their level, Spark's from WARN on, no noise."""

from __future__ import annotations

import logging
import re

from cdc_lakehouse.log import parse_line

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
_CONTINUATION = re.compile(r"^(?:\s+\S|Caused by: |Suppressed: )")


class LogRelay:
    """Turns line after line into (level, text); None for what nobody misses."""

    def __init__(self) -> None:
        self._level_above: int | None = None
        """Level of the Spark line that a stack trace below it belongs to."""

    def read(self, line: str) -> tuple[int, str] | None:
        """What to log for this line."""
        ours = parse_line(line)
        if ours is not None:
            self._level_above = None
            return ours
        spark = _SPARK_LINE.match(line)
        if spark is not None:
            self._level_above = _SPARK_LEVEL[spark[1]]
            return self._if_warning(self._level_above, f"spark: {spark['text']}")
        if self._level_above is not None and _CONTINUATION.match(line):
            return self._if_warning(self._level_above, line)
        self._level_above = None
        if not line.strip() or _NOISE.match(line):
            return None
        return logging.INFO, line

    @staticmethod
    def _if_warning(level: int, text: str) -> tuple[int, str] | None:
        return (level, text) if level >= logging.WARNING else None
