"""Of a table only the files are read that may have a changed key, or an event that is sent again."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from cdc_lakehouse.lake.row_replacement import FILE, RowReplacement
from cdc_lakehouse.silver.folding.fold import GONE
from cdc_lakehouse.silver.writing.append_merge import may_have
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


def test_a_table_of_events_is_asked_for_those_of_a_batch_in_one_file(engine, tmp_path):
    session, uri = engine.isolated(), (tmp_path / "t").as_uri()
    position = F.struct(F.lit(0).cast("bigint").alias("epoch"), F.col("id").alias("row"))
    rows = session.range(0, 60, numPartitions=6).select(position.alias("_cdc_position"))
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(uri)
    replacement = RowReplacement.begun(session, uri)
    assert replacement is not None

    batch = rows.where(F.col("_cdc_position.row").isin(32, 37))

    assert replacement.rows(may_have(batch, "t")).select(FILE).distinct().count() == 1
