"""Kinds of fields of the trigger forms. Airflow's form makes null of a field that a person empties again.

A field whose type is not null as well is marked as required, and blocks the form once it was emptied. In help
texts `code` is for what is typed or copied: Airflow draws it so large that it hides parts of other lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Param

LINES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
"""A field with one value per line. With `examples` Airflow's form would show a list to choose from."""


def text_field(text: str, *, most_characters: int | None = None) -> Param:
    limits: dict[str, Any] = {} if most_characters is None else {"maxLength": most_characters}
    return Param(None, description_md=text, type=["null", "string"], **limits)


def lines_field(text: str) -> Param:
    return Param([], description_md=text, **{**LINES, "type": ["null", "array"]})


def flag_field(text: str) -> Param:
    return Param(False, description_md=text, type=["null", "boolean"])


def choice_field(text: str, choices: Sequence[str], *, nothing: str) -> Param:
    """Return a field with a list to choose from. `nothing` is what it shows as long as nothing is chosen."""
    return Param(
        None,
        description_md=text,
        type=["null", "string"],
        enum=[None, *choices],
        values_display={"null": nothing},
    )
