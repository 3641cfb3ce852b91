"""What a real connector sends as `before`: a value that nobody invents only under REPLICA IDENTITY FULL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.defaults import values_for_nothing
from cdc_lakehouse.debezium.schema_facts import row_fields
from unit.captured_records import Topic, topics  # type: ignore[import-not-found]

WHOLE = {"toasted_full", "keyless"}
"""Tables with that identity; no other update here has a `before`."""


def rows_before(topic: Topic) -> Iterator[tuple[int, dict[str, Any]]]:
    """(schema id, row) of updates and deletes; rows with a moment that Python cannot hold are passed over."""
    rows = decode(topic.batch(), topic.plans())
    for place, op in enumerate(rows.column("op").to_pylist()):
        with suppress(OverflowError):
            before = rows.column("before")[place].as_py() if op in ("u", "d") else None
            if before is not None:
                yield rows.column("value_schema_id")[place].as_py(), before


def shown(topic: Topic, schema_id: int, before: dict[str, Any]) -> list[str]:
    columns = topic.plans().columns
    types = {column.name: column.type for column in columns.row if column not in columns.key}
    found = []
    for field in row_fields(json.loads(topic.schemas[schema_id])):
        name = field["name"]
        nothing = values_for_nothing(field, types[name]) if name in types else None
        if nothing is not None and before[name] is not None and before[name] not in nothing:
            found.append(name)
    return found


@pytest.mark.parametrize("whole", [True, False], ids=["FULL", "other"])
def test_a_value_that_nobody_invents_stands_in_whole_rows_and_in_no_others(whole):
    own = [topic for topic in topics() if (topic.relation in WHOLE) is whole]
    found = [bool(shown(topic, *row)) for topic in own for row in rows_before(topic)]

    assert len(found) >= 20
    assert set(found) == {whole}
