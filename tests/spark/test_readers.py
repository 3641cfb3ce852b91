"""Silver as others read it: the queries of `include/docs/silver.md`, in Polars, beside Spark."""

from __future__ import annotations

import polars as pl
import pytest
from chain import Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable
from people import change, merged, people, told  # type: ignore[import-not-found]

HISTORIC = people(history=True)


@pytest.fixture(scope="module")
def changed(engine, tmp_path_factory) -> Chain:
    """Rows of the first batch lie in files of which the second takes some away."""
    chain = Chain(engine, root=tmp_path_factory.mktemp("readers").as_uri())
    first = [change(moment, moment, "EU", op="c", big="b") for moment in range(1, 9)]
    second = [change(11, 1, "US", big="b"), change(12, 2, op="d"), change(13, 9, "EU", op="c", big="b")]
    return merged(chain, HISTORIC, first, second)


def test_polars_leaves_out_the_rows_that_a_vector_takes_away(changed):
    uri = changed.lake.silver("people")

    found = pl.scan_delta(uri).select("id", "region").sort("id").collect().rows()

    assert DeltaTable(uri).protocol().reader_features == ["deletionVectors"]
    assert found == told(changed, "id", "region")


def test_polars_tells_what_stands_in_a_history_from_what_has_ended(changed):
    history = pl.scan_delta(changed.lake.history("people")).with_columns(
        ended=pl.col("_cdc_to").is_not_null()
    )

    found = history.select("id", "region", "ended").sort("id", "ended").collect().rows()

    assert [(number, region) for number, region, ended in found if not ended] == told(changed, "id", "region")
    assert [(number, region) for number, region, ended in found if ended] == [(1, "EU"), (2, "EU")]
