"""Sums by chunk: order does not count, every row does; only chunks that differ are opened."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cdc_lakehouse.verification.cells import cells, digests
from cdc_lakehouse.verification.chunks import Sums, chunk_count, plan_opening
from cdc_lakehouse.verification.compare import compare
from cdc_lakehouse.verification.differences import Kind
from cdc_lakehouse.verification.sides import RowBatch


def summed(ids: list[int], names: list[str], *, count: int = 64) -> Sums:
    sums = Sums.of_nothing(count)
    columns = (cells(pa.array(ids)), cells(pa.array(names)))
    sums.add(digests(columns[:1]), digests(columns))
    return sums


def batch(rows: dict[int, str | None], *, tokens: str = "t") -> RowBatch:
    columns = (cells(pa.array(list(rows), pa.int64())), cells(pa.array(list(rows.values()), pa.string())))
    return RowBatch(columns, tokens=pa.array([tokens] * len(rows), pa.string()))


def test_the_order_of_rows_does_not_count():
    assert summed([1, 2], ["a", "b"]).checksum == summed([2, 1], ["b", "a"]).checksum


@pytest.mark.parametrize(
    ("ids", "names"),
    [([1], ["a"]), ([1, 2, 2], ["a", "b", "b"]), ([1, 2], ["b", "a"])],
    ids=["fewer", "twice", "swapped"],
)
def test_every_row_counts(ids, names):
    assert summed(ids, names).checksum != summed([1, 2], ["a", "b"]).checksum


def test_cells_beside_each_other_do_not_run_together():
    one, other = (digests([pa.array([a], pa.binary()), pa.array([b], pa.binary())]) for a, b in
                  ((b"ab", b"c"), (b"a", b"bc")))  # fmt: skip

    assert (one != other).any()


def test_null_is_neither_the_empty_text_nor_an_n():
    found = digests([pa.array([None, b"", b"N"], pa.binary())])

    assert len({line.tobytes() for line in found}) == 3


def test_floats_are_equal_by_their_bits_and_every_nan_is_the_same():
    found = cells(pa.array([1.5, float("nan"), -float("nan"), 0.0, -0.0]))

    assert found[1] == found[2]
    assert found[3] != found[4]


def test_items_of_lists_do_not_run_together():
    lists = pa.array([["ab", "c"], ["a", "bc"], [], None, [None]], pa.list_(pa.string()))
    found = cells(pa.concat_arrays([lists]).slice(0)).to_pylist()

    assert found[3] is None
    assert len(set(found)) == 5


def test_only_chunks_that_differ_are_opened():
    opened = plan_opening(summed([1, 2], ["a", "b"]), summed([1, 2], ["a", "x"]), most_rows=100)

    assert (opened.different, opened.not_opened, int(opened.chunks.sum())) == (1, 0, 1)


def test_what_is_too_much_for_one_look_is_counted_and_left():
    ids = list(range(1000))
    ours, theirs = summed(ids, ["a"] * 1000), summed(ids, ["b"] * 1000)
    opened = plan_opening(ours, theirs, most_rows=100)

    assert 0 < int(opened.chunks.sum()) < opened.different == 64
    assert opened.not_opened == 64 - int(opened.chunks.sum())
    assert int(np.where(opened.chunks, ours.counts, 0).sum()) <= 100


def test_chunks_grow_in_number_and_not_in_size():
    assert (chunk_count(0), chunk_count(1_000_000)) == (64, 2000)


def test_differences_are_found_down_to_the_column():
    source, silver = batch({1: "a", 2: "b", 3: None}), batch({1: "a", 2: "x", 4: "d"}, tokens="p")
    found = compare(lambda: [source], lambda: [silver], columns=("id", "name"), keys=1, about=3).found

    assert [(each.key, each.kind, list(each.columns), each.token) for each in found] == [
        (("2",), Kind.CHANGED, ["name"], "written by t"),
        (("3",), Kind.MISSING, [], "written by t"),
        (("4",), Kind.SURPLUS, [], "absent, silver at p"),
    ]
