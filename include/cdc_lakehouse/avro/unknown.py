"""Schema ids that the plans of a batch do not hold: raised by a worker, read back on the driver."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_MARKER = re.compile(r"unknown-schema-ids\[keys=([\d,]*);values=([\d,]*)\]")


class UnknownSchemaIdsError(Exception):
    """Fails the whole batch (`guarantees` §2.5): the driver fetches the schemas and runs it again.

    The text is the interface: it survives the trip through the JVM inside a `PythonException`.
    """

    def __init__(self, keys: Iterable[int], values: Iterable[int]) -> None:
        self.keys, self.values = frozenset(keys), frozenset(values)
        super().__init__(f"unknown-schema-ids[keys={_joined(self.keys)};values={_joined(self.values)}]")

    def __reduce__(self) -> tuple[type[UnknownSchemaIdsError], tuple[frozenset[int], frozenset[int]]]:
        return UnknownSchemaIdsError, (self.keys, self.values)


@dataclass(frozen=True, slots=True)
class UnknownIds:
    """Ids by the place where they were seen."""

    keys: frozenset[int]
    values: frozenset[int]


def unknown_ids_by_place(text: str) -> UnknownIds:
    """All ids named by markers anywhere in `text`; both sets empty when there is no marker."""
    found = _MARKER.findall(text)
    return UnknownIds(
        keys=frozenset(number for keys, _ in found for number in _numbers(keys)),
        values=frozenset(number for _, values in found for number in _numbers(values)),
    )


def unknown_ids(text: str) -> frozenset[int]:
    """Empty for the text of any other failure."""
    found = unknown_ids_by_place(text)
    return found.keys | found.values


def _joined(ids: Iterable[int]) -> str:
    return ",".join(str(number) for number in sorted(ids))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]
