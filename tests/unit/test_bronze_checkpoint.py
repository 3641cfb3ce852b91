"""Offsets as Spark writes and reads them."""

from __future__ import annotations

from cdc_lakehouse.bronze.checkpoint import end_of_batch, starting_offsets


def test_the_end_of_a_batch_is_the_third_line_of_its_offset_file(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":0}\n{"a.b":{"0":17,"1":0}}')

    assert end_of_batch(tmp_path.as_uri(), 3) == {"a.b": {0: 17, 1: 0}}


def test_starting_offsets_name_every_partition():
    assert starting_offsets({"a.b": {0: 17, 1: 0}}) == '{"a.b": {"0": 17, "1": 0}}'
