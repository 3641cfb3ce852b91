"""The settings `key` and `topic_column` of a table: what identifies its rows beside Kafka's message key."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from cdc_lakehouse.config.column_choice import ColumnChoice, Mask, SilverName
from cdc_lakehouse.config.values import Text

Key = Annotated[tuple[Text, ...], Field(min_length=1)]


def _fitting(key: Key | None, info: ValidationInfo) -> Key | None:
    """Settings that stand before it in the table and are wrong themselves are not there."""
    if key is None:
        return None
    _refuse_ours_and_doubles(key)
    if info.data.get("mode") == "append":
        raise ValueError("is for silver with a row per key, and the table says `mode: append`")
    choice = info.data.get("columns", ColumnChoice())
    for problem in _problems(key, dropped=info.data.get("drop_columns", ()), choice=choice):
        raise ValueError(problem)
    return key


KeyChoice = Annotated[Key | None, AfterValidator(_fitting)]


def _of_upsert(name: str | None, info: ValidationInfo) -> str | None:
    if name is not None and info.data.get("mode") == "append":
        raise ValueError("is for silver with a row per key; with `mode: append` it has `_cdc_topic`")
    return name


TopicColumn = Annotated[SilverName | None, AfterValidator(_of_upsert)]


def _refuse_ours_and_doubles(key: Key) -> None:
    """Spark takes `ID` and `id` for one column."""
    seen: set[str] = set()
    for name in key:
        if name.lower().startswith("_cdc_"):
            raise ValueError(f"names {name!r}: columns that start with _cdc_ are ours")
        if name.casefold() in seen:
            raise ValueError(f"names {name!r} twice")
        seen.add(name.casefold())


def _problems(key: Key, *, dropped: Collection[str], choice: ColumnChoice) -> Iterator[str]:
    for name in key:
        source = choice.source_of(name)
        if source is None:
            yield f"names {name!r}, which `columns` calls {choice.rename[name]!r} in silver"
        elif source in dropped:
            yield f"names {name!r}, which `drop_columns` keeps out of the lake"
        elif not choice.keeps(source):
            yield f"names {name!r}, which `columns` keeps out of silver"
        elif choice.mask.get(source) is Mask.NULL:
            yield f"names {name!r}, which is always NULL by `columns`"
