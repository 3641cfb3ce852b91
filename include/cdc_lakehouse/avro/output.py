"""Limit of the memory that the records of a batch become, counted before it is allocated.

A few bytes can expand to much: a null in a list to a record of hundreds of fields, a number of five bytes to
16 KB of text. Each record has budgets (`widths`, `typed.text_sizes`, `json_text`), and one beyond them is
undecodable. Ten thousand records within them would still exhaust a worker. So the output of a batch is
counted too, inside `limited_output`, and a batch that would become too large is decoded in parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

MAX_BATCH_OUTPUT = 128 * 2**20
"""Bytes of a batch. The copies that assembling its rows takes come on top: about twice as many."""


class BatchOutgrewError(Exception):
    """The batch would become too large. None of its records is at fault."""


class _Meter(local):
    left: float | None = None
    """None while nothing is counted."""


_METER = _Meter()


@contextmanager
def limited_output(limit: int = MAX_BATCH_OUTPUT) -> Iterator[None]:
    """Let what this thread decodes raise `BatchOutgrewError` instead of becoming more than `limit` bytes."""
    _METER.left = limit
    try:
        yield
    finally:
        _METER.left = None


def count_output(size: int) -> None:
    """Count bytes that are about to be made. Raises `BatchOutgrewError` beyond the limit."""
    if _METER.left is not None:
        _METER.left -= size
        if _METER.left < 0:
            raise BatchOutgrewError(f"a batch would become more than {MAX_BATCH_OUTPUT} bytes")
