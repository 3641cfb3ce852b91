"""What kinds of files a lake has, and what its commits say: alike for runs of the same code.

A recording that was committed is replayed as long as its shape is that of a run of the code as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from crash.mutations import Storage  # type: ignore[import-not-found]

_COMMIT = re.compile(r"/_delta_log/\d{20}\.json$")
_PLACES = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27,}|[0-9a-f]{32,}|(?<=-)[0-9a-f]{8}\b"), "H"),
    (re.compile(r"\d+"), "N"),
)


def shape_of(storage: Storage) -> frozenset[str]:
    return frozenset(_shapes(storage))


def _shapes(storage: Storage) -> Iterator[str]:
    for path, data in storage.files.items():
        yield _kind(path)
        if _COMMIT.search(path):
            for line in data.splitlines():
                for action, document in json.loads(line).items():
                    yield from (f"{_kind(path)} {action} {field}" for field in _fields(document))


def _kind(path: str) -> str:
    for pattern, letter in _PLACES:
        path = pattern.sub(letter, path)
    return path


def _fields(document: dict[str, Any]) -> Iterator[str]:
    """With the ledger's, and with the columns."""
    for name, value in document.items():
        yield name
        if name == "userMetadata":
            yield from (f"ledger {field}" for field in json.loads(value))
        if name == "schemaString":
            yield from (f"column {column['name']}" for column in json.loads(value)["fields"])
