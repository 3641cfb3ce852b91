"""The fuzzer's committed inputs through all decoders again, and that it would notice (`tests/fuzz`)."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from cdc_lakehouse.debezium import decode
from cdc_lakehouse.debezium.bronze import bronze_of_columns
from fuzz import targets  # type: ignore[import-not-found]
from fuzz.change_events import envelope  # type: ignore[import-not-found]
from fuzz.inputs import (  # type: ignore[import-not-found]
    Input,
    Option,
    changed,
    code,
    crossed,
    shrunk,
)
from fuzz.minimising import chosen  # type: ignore[import-not-found]
from fuzz.oracles import Disagreement, require_fastavro, require_same  # type: ignore[import-not-found]

CORPUS = sorted((Path(__file__).parents[1] / "fuzz" / "corpus").iterdir())
LONG = {1: '"long"'}
ROW = Input(code("envelope"), Option.SLICED, (b"abc", b"", b"\x00" * 300))


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_no_decoder_disagrees_on_an_input_of_the_corpus(path):
    targets.check(path.read_bytes())


def test_the_corpus_is_small_and_has_all_options():
    sizes = [path.stat().st_size for path in CORPUS]
    assert 10 < len(sizes) < 60
    assert sum(sizes) < 100_000
    options = [Input.of(path.read_bytes()).options for path in CORPUS]
    assert [option for option in Option if not any(option in each for each in options)] == []


def test_an_input_is_its_bytes():
    assert Input.of(ROW.data) == ROW
    assert Input.of(b"") == Input(0, Option(0), ())
    assert Input.of(ROW.data + b"\x00\x09ab").records == (*ROW.records, b"ab")


def test_mutated_inputs_are_inputs_of_no_more_than_their_size():
    chance, data = random.Random(1), ROW.data  # noqa: S311
    for _ in range(300):
        data = crossed(changed(data, chance, chance.randbytes(5).__add__, 400), ROW.data, chance, 400)
        assert len(data) <= 400
        assert Input.of(data).data == data
        assert Input.of(data).target == ROW.target


def test_a_find_is_made_small():
    case = Input(1, Option.MANY | Option.GUID, (b"left out", b"xxxxBADyyyy", b"too"))
    least = shrunk(case, lambda each: Option.GUID in each.options and any(b"BAD" in r for r in each.records))
    assert least == Input(1, Option.GUID, (b"BAD",))


def test_the_corpus_is_chosen_for_what_it_adds():
    arcs = [("f", 0, line) for line in range(4)]
    reached = {b"a": frozenset(arcs[:1]), b"bb": frozenset(arcs[:3]), b"c": frozenset(arcs[3:])}
    assert chosen(reached) == [b"bb", b"c"]


def test_batches_that_differ_are_a_find():
    rows = [pa.record_batch({"a": pa.array(values)}) for values in ([0.5, float("nan")], [0.5, 0.0])]
    require_same(rows[0], rows[0])
    require_same("UnknownSchemaIdsError", "UnknownSchemaIdsError")
    for other in (rows[1], rows[0].slice(1), "UnknownSchemaIdsError"):
        with pytest.raises(Disagreement):
            require_same(rows[0], other)


def test_what_only_fastavro_takes_is_a_find():
    frame = b"\x00\x00\x00\x00\x01"
    assert require_fastavro(LONG, frame + b"\x02", None, same=lambda one, other: one == other == 1) == (
        1,
        b"\x02",
    )
    assert require_fastavro(LONG, frame, None, same=None) is None
    with pytest.raises(Disagreement):
        require_fastavro(LONG, frame + b"\x02", None, same=lambda one, other: one != other)


def test_a_mistake_of_the_columns_is_a_find(monkeypatch):
    data = envelope().seeds([Option(0)])[0]
    targets.check(data)

    def careless(batch, *others):
        rows = bronze_of_columns(batch, *others)
        place = rows.schema.get_field_index("op")
        return rows.set_column(place, rows.schema.field(place), pa.array(["u"] * len(rows)))

    monkeypatch.setattr(decode, "bronze_of_columns", careless)
    with pytest.raises(Disagreement, match="op"):
        targets.check(data)
