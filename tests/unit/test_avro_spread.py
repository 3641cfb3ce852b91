"""Values of some rows among nulls: whatever way is taken, as `take` lays them out."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from cdc_lakehouse.avro.spread import Spread, spread_out

ARRAYS = {
    "long": pa.array([1, None, 3, 4], pa.int64()),
    "double": pa.array([1.5, 2.5, None, 4.5]),
    "bool": pa.array([True, None, False, True]),
    "decimal": pa.array([Decimal("1.20"), None, Decimal("-3.00"), Decimal("4.00")], pa.decimal128(30, 2)),
    "time": pa.array([1, 2, 3, None], pa.timestamp("us", tz="UTC")),
    "string": pa.array(["a", None, "", "größer"]),
    "binary": pa.array([b"a", b"bc", None, b""]),
    "fixed": pa.array([b"ab", b"cd", None, b"ef"], pa.binary(2)),
    "list": pa.array([[1], None, [], [2, 3]]),
    "null": pa.nulls(4),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 4, "b": None}]),
}
PLACES = [
    [False, True, True, False, True, True],
    [True, True, True, True],
    [False] * 9 + [True] * 4,
]


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("present", PLACES)
def test_values_stand_at_their_rows(name: str, present: list[bool]) -> None:
    spread = Spread(np.array(present))
    found = spread_out(ARRAYS[name], spread)
    found.validate(full=True)
    assert found.equals(ARRAYS[name].take(spread.places()))


@pytest.mark.parametrize("name", ARRAYS)
def test_a_part_of_a_longer_array_too(name: str) -> None:
    spread = Spread(np.array([True, False, True]))
    part = ARRAYS[name].slice(2)
    assert spread_out(part, spread).to_pylist() == part.take(spread.places()).to_pylist()


@pytest.mark.parametrize("name", ARRAYS)
def test_no_values_at_all(name: str) -> None:
    spread = Spread(np.zeros(3, bool))
    assert spread_out(ARRAYS[name].slice(0, 0), spread).to_pylist() == [None, None, None]
