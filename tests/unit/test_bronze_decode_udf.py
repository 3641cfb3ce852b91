"""What a worker says when decoding itself fails."""

from __future__ import annotations

import pytest
from debezium_records import kafka_batch, key_bytes, plans  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decode_udf import decode_or_tell


def test_a_failure_of_the_decoder_names_the_records_it_had():
    batch = kafka_batch((key_bytes(), None), (key_bytes(), None), (key_bytes(), None))
    without = batch.drop_columns(["headers"])

    with pytest.raises(KeyError) as caught:
        list(decode_or_tell(without, plans()))

    assert caught.value.__notes__ == ["while decoding shop.public.orders/0@100 to shop.public.orders/0@102"]
