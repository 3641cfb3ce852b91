"""What earlier looks at a table have left open, kept in the lake between runs.

A look is true whenever it was taken, so whoever writes last, and nobody at all, does no harm: a file that is
lost costs the keys in it one more look. A second write of the same look changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.lake.files import read_text_if_there, write_text
from cdc_lakehouse.verification.differences import Key
from cdc_lakehouse.verification.verdict import Look, OpenKey, Witness

VERSION = 2
MOST_KEYS = 10_000


def read_looks(uri: str, *, columns: Sequence[str]) -> Mapping[Key, OpenKey]:
    """Of these key columns; nothing where the file is of another version or of another key."""
    text = read_text_if_there(uri)
    document = {} if text is None else json.loads(text)
    if (document.get("v"), document.get("columns")) != (VERSION, list(columns)):
        return {}
    looks = [_look(each) for each in document["looks"]]
    keys = (OpenKey(tuple(each["key"]), each["token"], looks[each["look"]]) for each in document["keys"])
    return {each.key: each for each in keys}


def write_looks(uri: str, keys: Sequence[OpenKey], *, columns: Sequence[str]) -> None:
    """The oldest first, `MOST_KEYS` of them: those that are left out are found again."""
    kept = sorted(keys, key=lambda each: each.since.mark)[:MOST_KEYS]
    looks: list[Look] = []
    for each in kept:
        if each.since not in looks:
            looks.append(each.since)
    document = {
        "v": VERSION,
        "columns": list(columns),
        "looks": [_document(look) for look in looks],
        "keys": [{"key": each.key, "token": each.token, "look": looks.index(each.since)} for each in kept],
    }
    write_text(uri, json.dumps(document))


def _document(look: Look) -> dict[str, Any]:
    return {"mark": str(look.mark), "ends": look.ends, "witness": look.witness}


def _look(document: Mapping[str, Any]) -> Look:
    ends = document["ends"]
    known = (
        None if ends is None else {s: {int(p): end for p, end in each.items()} for s, each in ends.items()}
    )
    witness = document["witness"]
    return Look(LogPosition.from_text(document["mark"]), known, None if witness is None else Witness(witness))
