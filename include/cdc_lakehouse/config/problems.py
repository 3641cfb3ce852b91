"""What is wrong with a pipeline document, in sentences for the person who wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from cdc_lakehouse.config.column_choice import CHOICE_ERROR, ColumnChoice
from cdc_lakehouse.config.document import Document, KeyPath, Problem
from cdc_lakehouse.config.models import (
    Connections,
    Discover,
    Maintenance,
    Pipeline,
    QuarantineLimit,
    Retry,
    Table,
    TableOptions,
)
from cdc_lakehouse.config.topics import TOPIC_PATTERN
from cdc_lakehouse.config.values import COLUMN_PATTERN, NAME_PATTERN

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_SECTIONS: dict[str, type[BaseModel]] = {
    "connections": Connections,
    "retry": Retry,
    "maintenance": Maintenance,
    "defaults": TableOptions,
    "discover": Discover,
    "tables": Table,
}
_INSIDE: dict[str, type[BaseModel]] = {"columns": ColumnChoice, "quarantine_limit": QuarantineLimit}
_SPELLINGS = {
    COLUMN_PATTERN: "is not a column's name in silver: letters, digits and '_', no digit first",
    NAME_PATTERN: "is not a name: a small letter first, then small letters, digits and '_', 63 at most",
    TOPIC_PATTERN: "is not a topic name: letters, digits, '.', '_', '-' (and '*' in a pattern), 249 at most",
}
_MUST_BE = {
    "string_type": "must be text; put it in quotes if it is meant",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "tuple_type": "must be a list",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "date_type": "must be a day like 2026-01-31",
    "date_parsing": "must be a day like 2026-01-31",
    "date_from_datetime_parsing": "must be a day like 2026-01-31",
    "date_from_datetime_inexact": "must be a day like 2026-01-31",
}


def problems_of(document: Document, error: ValidationError) -> Iterator[Problem]:
    """The model's complaints, each once: what `defaults` says is not repeated for every table."""
    for detail in error.errors(include_url=False):
        path = detail["loc"]
        # A list whose every entry is wrong counts as empty too.
        echo = detail["type"] == "too_short" and bool(detail["input"])
        if not path and detail["type"] == "value_error":
            yield Problem(None, None, str(detail["ctx"]["error"]))
        elif path and not echo and not _inherited(document, path):
            yield Problem(document.line_of(path), _table_at(document.content, path), _sentence(detail))


def duplicate_problems(document: Document) -> Iterator[Problem]:
    """Tables and topics that stand in the file twice."""
    first_table: dict[str, int | None] = {}
    first_topic: dict[str, int | None] = {}
    for path, name in _table_names(document.content):
        if name in first_table:
            yield _twice(document, path, f"the table `{name}`", first_table[name])
        first_table.setdefault(name, document.line_of(path))
    for path, topic in _topic_names(document.content):
        if topic in first_topic:
            yield _twice(document, path, f"the topic `{topic}`", first_topic[topic])
        first_topic.setdefault(topic, document.line_of(path))


def _twice(document: Document, path: KeyPath, what: str, first: int | None) -> Problem:
    sentence = f"{what} is listed twice, first on line {first}"
    return Problem(document.line_of(path), _table_at(document.content, path), sentence)


def _tables(content: object) -> list[object]:
    tables = content.get("tables") if isinstance(content, dict) else None
    return tables if isinstance(tables, list) else []


def _table_names(content: object) -> Iterator[tuple[KeyPath, str]]:
    for index, table in enumerate(_tables(content)):
        if isinstance(table, dict) and isinstance(table.get("name"), str):
            yield ("tables", index, "name"), table["name"]


def _topic_names(content: object) -> Iterator[tuple[KeyPath, str]]:
    for index, table in enumerate(_tables(content)):
        topics = table.get("topics") if isinstance(table, dict) else None
        for place, topic in enumerate(topics if isinstance(topics, list) else []):
            if isinstance(topic, str):
                yield ("tables", index, "topics", place), topic


def _inherited(document: Document, path: KeyPath) -> bool:
    own = path in document.lines
    inherited = path[2:] if path[0] == "tables" else path[1:] if path[0] == "discover" else ()
    return bool(inherited) and not own and ("defaults", *inherited) in document.lines


def _table_at(content: object, path: KeyPath) -> str | None:
    if len(path) < 2 or path[0] != "tables" or not isinstance(path[1], int):
        return None
    table = _tables(content)[path[1]]
    name = table.get("name") if isinstance(table, dict) else None
    return name if isinstance(name, str) and name else f"number {path[1] + 1}"


def _sentence(detail: ErrorDetails) -> str:
    path, kind = detail["loc"], detail["type"]
    key = _readable_key(path)
    if kind == "extra_forbidden":
        return _about_unknown_key(path)
    if kind == "missing":
        return f"`{key}` is missing"
    if detail["input"] is None:
        return f"`{key}` is empty; give it a value or leave the line out"
    return f"`{key}` {_complaint(detail)}"


def _complaint(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    shown = repr(detail["input"])
    if kind in _MUST_BE:
        wish = _MUST_BE[kind].format(**context)
        return wish if isinstance(detail["input"], dict | list) else f"{wish}, not {shown}"
    if kind in ("too_short", "string_too_short"):
        return "is empty"
    if kind == "string_pattern_mismatch":
        return f"{shown} {_SPELLINGS[context['pattern']]}"
    if kind == CHOICE_ERROR:
        return detail["msg"]
    if kind == "value_error":
        return str(context["error"])
    return f"{shown}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _about_unknown_key(path: KeyPath) -> str:
    key, section = str(path[-1]), path[0] if len(path) > 1 else None
    inside = _INSIDE.get(str(path[-2])) if len(path) > 2 else None
    if inside is not None:
        close = get_close_matches(key, inside.model_fields, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(inside.model_fields)}"
        return f"unknown key `{key}`; {hint}"
    known = _SECTIONS[str(section)].model_fields if section is not None else Pipeline.model_fields
    close = get_close_matches(key, known, n=1)
    if close:
        return f"unknown key `{key}`; did you mean `{close[0]}`?"
    elsewhere = [name for name, model in _SECTIONS.items() if key in model.model_fields and name != section]
    if elsewhere:
        return f"`{key}` does not stand here but under `{elsewhere[0]}:`"
    return f"unknown key `{key}`; known here: {', '.join(known)}"


def _readable_key(path: KeyPath) -> str:
    own = path[2:] if path[0] == "tables" and len(path) > 2 else path
    return ".".join(str(part) for part in own if isinstance(part, str))
