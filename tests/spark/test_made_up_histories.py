"""Silver and its history are one function of all events, whatever batches they came in: made-up sources."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from made_up_source import COLUMNS, MadeUpSource, batches, made_up_case  # type: ignore[import-not-found]

from cases.encoding import writers  # type: ignore[import-not-found]
from cases.rows import specified_silver, told_bronze, told_silver  # type: ignore[import-not-found]
from cdc_lakehouse.config.models import Table
from history_oracle import history_of  # type: ignore[import-not-found]
from oracle import silver_of  # type: ignore[import-not-found]

Rows = list[dict[str, Any]]


def by_place(rows: Rows) -> Rows:
    """A value that nobody told is none."""
    whole = [{**dict.fromkeys(COLUMNS), **row} for row in rows]
    return sorted(whole, key=lambda row: (row["id"], row["_cdc_from"]))


def told_history(row: dict[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in row.items() if not name.endswith("_ts")}
    places = {name: own[name] and list(own[name].values()) for name in ("_cdc_from", "_cdc_to")}
    return {**own, **places}


def found_and_specified(chain: Chain, table: Table, case: Any, *, tracked: Any) -> tuple[Any, Any]:
    bronze = [told_bronze(case, row) for row in chain.bronze(table)]
    silver = silver_of(bronze, deletes=table.deletes)
    found = chain.history(table)
    return (
        sorted((told_silver(case, row) for row in chain.silver(table)), key=lambda row: row["id"]),
        by_place([told_history(row) for row in found]),
    ), (
        sorted((specified_silver(case, row) for row in silver.values()), key=lambda row: row["id"]),
        by_place(history_of(bronze, tracked=tracked)),
    )


@pytest.mark.parametrize(
    ("seed", "deletes", "history"),
    [(1, "hard", True), (2, "soft", {"columns": ["note"]})],
)
def test_after_every_merge_both_are_as_specified(chain, seed, deletes, history):
    random = Random(seed)  # noqa: S311 - a seed, no secret
    source, case = MadeUpSource(random), made_up_case("made_up")
    source.run(60)
    table = table_of("made_up", deletes=deletes, history=history)
    writer = writers(case, first_id=10)[1]
    (key_id, key), (value_id, value) = writer.schemas.items()
    chain.registry.register(table.topics[0], keys={key_id: key}, values={value_id: value})
    tracked = None if history is True else history["columns"]

    for number, batch in enumerate(batches(source, random, count=4)):
        if batch:
            chain.ingest(table, [writer.record(event) for event in batch])
            chain.merge(table)

            found, specified = found_and_specified(chain, table, case, tracked=tracked)
            assert found[0] == specified[0], number
            assert found[1] == specified[1], number
