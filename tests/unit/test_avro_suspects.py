"""A bad row that stands out does not cost the others a run that they share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cdc_lakehouse.avro.constants import Run, holds
from cdc_lakehouse.avro.cursors import Cursors
from cdc_lakehouse.avro.memory import Memory
from cdc_lakehouse.avro.suspects import MOST, Strict, Suspects
from cdc_lakehouse.avro.wire import Wire

STRICT = Strict.of(Wire("record", (Wire("string"), Wire("string")), ("a", "b")))
RUN = Run(b"\x02a\x02b", (2, 4))
GOOD, OTHER, BAD = RUN.data, b"\x02a\x02c", b"\x02a\x7fb"


def over(rows: list[bytes]) -> Cursors:
    ends = np.cumsum([len(row) for row in rows])
    starts, memory = ends - 4, Memory(pa.py_buffer(b"".join(rows)))
    return Cursors(memory, starts, ends, bad=Suspects(STRICT, memory, starts, ends).bad)


def test_the_run_of_the_others_holds_and_the_bad_row_fails():
    cursors = over([GOOD, BAD, GOOD])
    assert holds(RUN, cursors)
    assert cursors.lost().tolist() == [False, True, False]


def test_rows_are_found_again_in_a_part_of_the_group():
    part = over([OTHER, GOOD, BAD, GOOD]).only(np.array([1, 2, 3]))
    assert holds(RUN, part)
    assert part.lost().tolist() == [False, True, False]


@pytest.mark.parametrize("odd", [[OTHER], [OTHER, BAD], [BAD] * (MOST + 1)])
def test_it_does_not_hold_where_a_sound_row_differs_or_too_many_do(odd):
    assert not holds(RUN, over([GOOD, *odd, GOOD]))


def test_a_batch_asks_about_so_many_rows_and_no_more():
    memory = Memory(pa.py_buffer(BAD * (MOST + 1)))
    starts = np.arange(0, 4 * (MOST + 1), 4)
    suspects = Suspects(STRICT, memory, starts, starts + 4)
    assert suspects.bad(np.arange(MOST)).all()
    assert not suspects.bad(np.array([MOST])).any()
