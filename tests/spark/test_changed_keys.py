"""Of a table only the files are read that may have a changed key, whatever integers or texts the keys are."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from cdc_lakehouse.lake.row_replacement import FILE, RowReplacement
from cdc_lakehouse.silver.folding.fold import GONE
from cdc_lakehouse.silver.writing.changed_keys import ChangedKeys


@pytest.fixture(params=["tinyint", "smallint", "int", "bigint", "string"])
def told(request, engine, tmp_path):
    """A table with the keys -60 to 59 in six files, and what is told of the changed keys -15 and -12."""
    session, uri = engine.isolated(), (tmp_path / "t").as_uri()
    key = F.format_string("%03d", F.col("id") + 100) if request.param == "string" else F.col("id")
    for start in range(-60, 60, 20):
        rows = session.range(start, start + 20).coalesce(1).select(key.cast(request.param).alias("id"))
        rows.write.format("delta").option("delta.enableDeletionVectors", "true").mode("append").save(uri)
    ids = [session.range(at, at + 1).select(key.cast(request.param).alias("id")) for at in (-15, -12)]
    changes = ids[0].union(ids[1]).withColumn(GONE, F.lit(False))
    return session, uri, ChangedKeys.of(changes, ("id",))


def test_a_replacement_looks_at_one_file(told):
    session, uri, keys = told
    replacement = RowReplacement.begun(session, uri)
    assert replacement is not None

    rows = replacement.rows(keys.contain("t"))

    assert rows.select(FILE).distinct().count() == 1
