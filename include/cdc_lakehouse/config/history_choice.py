"""The setting `history` of a table: `true`, `false`, or which columns make a new version."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from cdc_lakehouse.config.values import Text


class History(BaseModel):
    """Which changes make a new version of a row."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    columns: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """A change of one of these does; others are updated in the version that stands. Without it all do."""


def _history(option: object) -> object:
    """`true` and `false` are what people write for all and none."""
    if isinstance(option, bool):
        return History() if option else None
    if option is None or isinstance(option, dict | History):
        return option
    raise ValueError(f"must be true, false or a mapping with `columns`, not {option!r}")


HistoryChoice = Annotated[History | None, BeforeValidator(_history, json_schema_input_type=bool | History)]
