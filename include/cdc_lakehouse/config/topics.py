"""Names of topics in a pipeline file: one name, or a pattern in which `*` stands for part of one.

`*` matches letters, digits, `_` and `-`, but no dot: `shop.public.*` is every table of one schema, and
`shop.*.*` every table of every schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

TOPIC_PATTERN = r"^[A-Za-z0-9._*-]{1,249}$"
_ANY = "*"
_WITHIN_A_PART = r"[A-Za-z0-9_-]*"


def is_pattern(entry: str) -> bool:
    return _ANY in entry


def matches(entry: str, topic: str) -> bool:
    return _compiled(entry).fullmatch(topic) is not None


def matches_any(entries: Iterable[str], topic: str) -> bool:
    return any(matches(entry, topic) for entry in entries)


@cache
def _compiled(entry: str) -> re.Pattern[str]:
    return re.compile(_WITHIN_A_PART.join(re.escape(part) for part in entry.split(_ANY)))
