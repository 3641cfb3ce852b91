"""One text for one JSON document: the order of members and white space do not count, digits do."""

from __future__ import annotations

import json


class _Digits:
    """A number as it is written: 1.0 and 1.00 are two texts in JSONB too."""

    def __init__(self, text: str) -> None:
        self.text = text


def json_form(text: str) -> str:
    """What cannot be read as JSON is its own form."""
    try:
        document = json.loads(text, parse_float=_Digits, parse_int=_Digits)
        return json.dumps(document, sort_keys=True, separators=(",", ":"), default=_tagged)
    except (ValueError, RecursionError):
        return text


def _tagged(number: object) -> object:
    """A key of JSONB cannot hold this character, so no other value looks like it."""
    if isinstance(number, _Digits):
        return {"\x00": number.text}
    raise TypeError(type(number).__name__)
