"""What PostgreSQL's catalogue knows of the captured tables' columns, as `SourceFacts`."""

from __future__ import annotations

import re

from cdc_lakehouse.debezium.source_facts import SourceFacts
from unit.captured_records import Topic  # type: ignore[import-not-found]
from unit.postgres_differs import original_name  # type: ignore[import-not-found]

_USER_TYPES = {"types.mood": "enum", "types.pair": "composite", "types.email": "text"}
_DEFAULTS = ("defaults", "made_defaults")


def facts_of_column(topic: Topic, name: str) -> SourceFacts:
    sql = topic.types.get(original_name(topic, name), "dropped")
    return SourceFacts(
        name=name,
        types=frozenset({"domain of a list"} if name == "counts" else {_type(sql)}),
        is_nullable=name not in ("id", "total"),
        has_default=topic.relation in _DEFAULTS,
        is_generated=name == "twice",
        sends_old_values=topic.relation == "toasted_full",
    )


def _type(sql: str) -> str:
    if sql in ("types.email[]", "types.price[]"):
        return "domain[]"
    scale = re.match(r"numeric\(\d+,(-?)", sql)
    if scale:
        return f"numeric(p,{scale[1]}s)" + sql[sql.index(")") + 1 :]
    base = re.sub(r"\(\d+\)", "", sql).removesuffix("[]")
    base = "multirange" if base.endswith("multirange") else "range" if base.endswith("range") else base
    return _USER_TYPES.get(base, base) + ("[]" if sql.endswith("[]") else "")
