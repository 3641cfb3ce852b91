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
    keys = key.cast(request.param).alias("id")
    rows = session.range(-60, 60, numPartitions=6).select(keys)
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(uri)
    changes = session.range(-15, -9, 3).select(keys, F.lit(False).alias(GONE))
    return session, uri, ChangedKeys.of(changes, ("id",))


def test_a_replacement_looks_at_one_file(told):
    session, uri, keys = told
    replacement = RowReplacement.begun(session, uri)
    assert replacement is not None

    rows = replacement.rows(keys.contain("t"))

    assert rows.select(FILE).distinct().count() == 1
