"""An offset means something within one incarnation of its topic only, so rows say which."""

from __future__ import annotations

import pyarrow as pa
from debezium_records import (  # type: ignore[import-not-found]
    FULL,
    TOPIC,
    event,
    kafka_batch,
    key_bytes,
    plans,
    value_bytes,
)

from cdc_lakehouse.debezium.decode import decode


def test_a_row_bears_the_incarnation_of_its_topic():
    one = kafka_batch((key_bytes(), value_bytes(event(after=FULL))))
    topics = pa.array([TOPIC, "shop.public.orders_2", TOPIC, "elsewhere"])
    mixed = pa.concat_batches([one] * 4).set_column(one.schema.get_field_index("topic"), "topic", topics)
    ids = {TOPIC: "id1", "shop.public.orders_2": "id2~3"}

    assert decode(mixed, plans(topic_ids=ids)).column("topic_id").to_pylist() == ["id1", "id2~3", "id1", None]
    assert decode(one, plans(topic_ids={})).column("topic_id").to_pylist() == [None]
