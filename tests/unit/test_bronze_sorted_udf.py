"""Records of several tables, brought to each table's own decoder in a worker."""

from __future__ import annotations

import pyarrow as pa
from debezium_records import plans  # type: ignore[import-not-found]

from cdc_lakehouse.bronze import sorted_udf
from cdc_lakehouse.bronze.sorted_udf import Destination, by_destination, gathered


def records(*topics: str, first: int = 0) -> pa.RecordBatch:
    """At ascending offsets."""
    offsets = range(first, first + len(topics))
    return pa.record_batch({"topic": pa.array(topics, pa.string()), "offset": pa.array(offsets, pa.int64())})


def destination(table: str, *topics: str) -> Destination:
    return Destination(plans(table=table, topic_ids=dict.fromkeys(topics, "id")), f"file:///{table}")


def test_each_table_gets_its_records_in_their_order():
    mixed = records("b", "a1", "a2", "b", "nobody's", "a1")
    tables = [destination("a", "a1", "a2"), destination("b", "b"), destination("c", "c")]

    found = {each.plans.table: own.to_pydict() for each, own in by_destination(mixed, tables)}

    assert found == {
        "a": {"topic": ["a1", "a2", "a1"], "offset": [1, 2, 5]},
        "b": {"topic": ["b", "b"], "offset": [0, 3]},
    }


def test_batches_are_put_together_up_to_a_bound_and_none_is_lost(monkeypatch):
    three = [records("a", "b", first=0), records("a", "b", first=2), records("a", "b", first=4)]
    monkeypatch.setattr(sorted_udf, "_GATHERED_BYTES", 2 * three[0].nbytes)

    assert [each.column("offset").to_pylist() for each in gathered(iter(three))] == [[0, 1, 2, 3], [4, 5]]
    assert list(gathered(iter([]))) == []
