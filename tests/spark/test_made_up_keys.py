"""With `key`, too, silver and its history are one function of all events: made-up sources."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from chain import Chain  # type: ignore[import-not-found]
from items import KEYED, KEYLESS, items, know  # type: ignore[import-not-found]
from made_up_items import MadeUpItems  # type: ignore[import-not-found]
from made_up_source import batches  # type: ignore[import-not-found]

from cases.rows import specified_silver, told_bronze, told_history, told_silver  # type: ignore[import-not-found]
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.errors import KeyNotUniqueError
from history_oracle import history_of  # type: ignore[import-not-found]
from key_oracle import rekeyed  # type: ignore[import-not-found]
from oracle import silver_of  # type: ignore[import-not-found]

Rows = list[dict[str, Any]]


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (row["code"], row.get("_cdc_from", [])))


def found(chain: Chain, table: Table, case: Any) -> tuple[Rows, Rows]:
    return (
        in_order([told_silver(case, row) for row in chain.silver(table)]),
        in_order([told_history(case, row) for row in chain.history(table)]),
    )


def specified(chain: Chain, table: Table, case: Any) -> tuple[Rows, Rows]:
    rows = rekeyed([told_bronze(case, row) for row in chain.bronze(table)], ["code"])
    silver, history = silver_of(rows, deletes=table.deletes), history_of(rows)
    return (
        in_order([specified_silver(case, row) for row in silver.values()]),
        in_order([told_history(case, row) for row in history]),
    )


@pytest.mark.parametrize(
    ("seed", "writer", "deletes"),
    [(1, KEYED, "hard"), (2, KEYLESS, "hard"), (3, KEYLESS, "soft")],
    ids=["keyed", "keyless", "keyless, soft"],
)
def test_whatever_comes_first_in_the_end_both_are_as_specified(chain, seed, writer, deletes):
    random = Random(seed)  # noqa: S311 - a seed, no secret
    source = MadeUpItems(random, has_key=writer is KEYED)
    source.run(40)
    table = items(key=["code"], deletes=deletes, history=True)
    know(chain, writer)

    for batch in batches(source, random, count=4):
        chain.ingest(table, [writer.record(event) for event in batch])
        # The delete that made room for a row may lie in a batch to come.
        with suppress(KeyNotUniqueError):
            chain.merge(table)

    chain.merge(table)
    assert found(chain, table, writer.case) == specified(chain, table, writer.case)
