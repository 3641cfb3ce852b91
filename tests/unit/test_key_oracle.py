"""The specification of `key` against a source that has the rows: what its events leave is what it has."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from test_silver_cases import kafka_batch  # type: ignore[import-not-found]

from cases.rows import told_bronze  # type: ignore[import-not-found]
from cdc_lakehouse.debezium.columns import columns_of
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.plans import DecodePlans
from key_oracle import rekeyed  # type: ignore[import-not-found]
from oracle import silver_of  # type: ignore[import-not-found]
from spark.made_up_items import MadeUpItems, writer_of  # type: ignore[import-not-found]
from spark.made_up_source import batches  # type: ignore[import-not-found]


def bronze_of(source: MadeUpItems, writer: Any) -> list[dict[str, Any]]:
    (sent,) = batches(source, source.random, count=1)
    columns = columns_of(next(iter(writer.keys.values()), None), *writer.values.values(), table="items")
    plans = DecodePlans(table="items", columns=columns, schemas=writer.schemas)
    rows = decode(kafka_batch([writer.record(event) for event in sent]), plans).to_pylist()
    return [told_bronze(writer.case, row) for row in rows]


@pytest.mark.parametrize("key", [["id"], []], ids=["keyed", "keyless"])
@pytest.mark.parametrize("seed", range(10))
def test_silver_by_another_key_has_the_rows_of_the_source(seed, key):
    source = MadeUpItems(Random(seed), has_key=bool(key))  # noqa: S311 - a seed, no secret
    source.run(40)

    silver = silver_of(rekeyed(bronze_of(source, writer_of(*key)), ["code"])).values()

    expected = {row["code"]: (row["id"], row["note"]) for row in source.rows.values()}
    assert {row["code"]: (row["id"], row["note"]) for row in silver} == expected
