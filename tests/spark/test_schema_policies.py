"""A change that the columns cannot take stops silver of that table, or gets a column: `on_schema_change`."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from shapes import (  # type: ignore[import-not-found]
    BESIDE,
    NAME,
    SECOND,
    SHAPED,
    STRICT,
    THIRD,
    know,
    logged,
    record,
    rows,
    shapes,
    types,
)

from cdc_lakehouse.bronze import schemas as bronze_schemas
from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.debezium import columns
from cdc_lakehouse.errors import (
    ColumnDroppedError,
    KeySchemaDriftError,
    SchemaChangedError,
    SchemaMisfitError,
)
from cdc_lakehouse.silver import table_merge

INT, TEXT = shapes({"a": "int"}, {"a": "string"})
OTHER = table_of("other", "cases.other")


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    """Silver has one row, whose column `a` is an int; bronze has a text of it too, which fits nowhere."""
    chain = Chain(engine, root=tmp_path_factory.mktemp("shaped").as_uri())
    know(chain, INT)
    chain.ingest(SHAPED, [record(INT, 0, 1, a=1)])
    chain.merge(SHAPED)
    know(chain, TEXT)
    chain.ingest(SHAPED, [record(TEXT, 1, 2, a="two")])
    return chain


@pytest.fixture
def misfit(template, tmp_path) -> Chain:
    return template.copied_to(tmp_path)


def test_a_type_that_does_not_fit_stops_silver_with_column_types_record_and_schema(misfit):
    with pytest.raises(SchemaMisfitError) as caught:
        misfit.merge(SHAPED)

    assert caught.value.count == 1
    assert caught.value.diff == (f"a was int and is now string, first cases.{NAME}/0@1 with schema {SECOND}")
    assert "side_column" in caught.value.advice


def test_every_column_that_does_not_fit_is_told(chain):
    old, new = shapes({"a": "string", "b": "decimal(38,0)"}, {"a": "int", "b": "decimal(38,2)"})
    know(chain, old)
    chain.ingest(SHAPED, [record(old, 0, 1, a="x", b="1")])
    know(chain, new)
    chain.ingest(SHAPED, [record(new, 1, 2, a=5, b=None), record(new, 2, 3, a=None, b="1.5")])

    with pytest.raises(SchemaMisfitError) as caught:
        chain.merge(SHAPED)

    assert caught.value.diff == (
        f"a was string and is now int, first cases.{NAME}/0@1 with schema {SECOND}; "
        f"b: value does not fit decimal(38,0) exactly, first cases.{NAME}/0@2 with schema {SECOND}"
    )


def test_bronze_goes_on_while_silver_waits(misfit):
    with pytest.raises(SchemaMisfitError):
        misfit.merge(SHAPED)

    result = misfit.ingest(SHAPED, [record(TEXT, 2, 3, a="three"), record(INT, 3, 4, a=4)])

    assert (result.status, result.counts["undecodable"]) == (TableStatus.ADVANCED, 1)
    assert rows(misfit) == {1: {"a": 1}}


def test_side_columns_and_a_replay_let_silver_catch_up(misfit):
    misfit.replay(BESIDE)

    misfit.merge(BESIDE)

    assert rows(misfit) == {1: {"a": 1, "a__v2": None}, 2: {"a": None, "a__v2": "two"}}
    assert logged(misfit) == [("side_column", "a__v2", "int", "string", [SECOND])]


def test_a_replay_makes_a_side_column_of_timestamps_too(chain):
    old, new = shapes({"a": "int"}, {"a": "timestamp"})
    know(chain, old)
    chain.ingest(SHAPED, [record(old, 0, 1, a=1)])
    chain.merge(SHAPED)
    know(chain, new)
    chain.ingest(SHAPED, [record(new, 1, 2, a=0)])

    result = chain.replay(BESIDE)

    chain.merge(BESIDE)
    assert result.counts == {"waiting": 1, "closed": 1}
    assert types(chain) == {"a": "int", "a__v2": "timestamp_ntz"}


def test_a_replay_and_an_ingest_agree_about_the_side_column(misfit):
    misfit.replay(BESIDE)
    misfit.ingest(BESIDE, [record(TEXT, 2, 3, a="three"), record(INT, 3, 4, a=4)])

    misfit.merge(BESIDE)

    assert rows(misfit) == {
        1: {"a": 1, "a__v2": None},
        2: {"a": None, "a__v2": "two"},
        3: {"a": None, "a__v2": "three"},
        4: {"a": 4, "a__v2": None},
    }


def test_each_further_type_gets_a_column_and_old_types_find_theirs_again(chain):
    one, two, three = shapes({"a": "int"}, {"a": "string"}, {"a": "timestamp"})
    know(chain, one)
    chain.ingest(BESIDE, [record(one, 0, 1, a=1)])
    know(chain, two)
    chain.ingest(BESIDE, [record(two, 1, 2, a="two")])
    chain.merge(BESIDE)
    know(chain, three)
    chain.ingest(BESIDE, [record(three, 2, 3, a=0), record(two, 3, 4, a="four"), record(one, 4, 5, a=5)])

    chain.merge(BESIDE)

    assert list(types(chain)) == ["a", "a__v2", "a__v3"]
    assert {key: [value is not None for value in row.values()] for key, row in rows(chain).items()} == {
        1: [True, False, False],
        2: [False, True, False],
        3: [False, False, True],
        4: [False, True, False],
        5: [True, False, False],
    }
    assert logged(chain) == [("side_column", "a__v3", "int", "timestamp_ntz", [THIRD])]


def test_a_column_that_the_source_calls_like_a_side_column_is_not_mixed_with_it(chain):
    one, two, three = shapes({"a": "int"}, {"a": "string"}, {"a": "string", "a__v2": "string"})
    know(chain, one, two)
    chain.ingest(BESIDE, [record(one, 0, 1, a=1), record(two, 1, 2, a="two")])
    know(chain, three)
    chain.ingest(BESIDE, [record(three, 2, 3, a="three", a__v2="own")])

    chain.merge(BESIDE)

    assert rows(chain)[3] == {"a": None, "a__v2": "three", "a__v2__v2": "own"}


def test_side_columns_stay_in_use_under_another_policy(misfit):
    misfit.replay(BESIDE)
    misfit.merge(BESIDE)
    misfit.ingest(SHAPED, [record(TEXT, 2, 3, a="three")])

    misfit.merge(SHAPED)

    assert rows(misfit)[3] == {"a": None, "a__v2": "three"}


def test_a_strict_table_stops_at_any_change_and_says_all_of_it(chain):
    old, new = shapes({"a": "int", "b": "int"}, {"a": "long", "b": "int", "c": "string"})
    know(chain, old)
    chain.ingest(STRICT, [record(old, 0, 1, a=1, b=1)])
    chain.merge(STRICT)
    know(chain, new)
    chain.ingest(STRICT, [record(new, 1, 2, a=2, b=2, c="x")])

    with pytest.raises(SchemaChangedError) as caught:
        chain.merge(STRICT)

    assert caught.value.diff == (
        f"a was int and is now bigint (schema {SECOND}), c is new, string (schema {SECOND})"
    )
    assert types(chain) == {"a": "int", "b": "int"}

    chain.merge(SHAPED)  # as the advice has it

    assert rows(chain)[2] == {"a": 2, "b": 2, "c": "x"}


def test_another_table_goes_on(misfit):
    know(misfit, INT, topic=OTHER.topics[0])
    misfit.ingest(OTHER, [replace(record(INT, 0, 1, a=1), topic=OTHER.topics[0])])

    assert misfit.merge(OTHER).status is TableStatus.ADVANCED


def test_a_key_of_another_type_stops_silver_and_says_so(chain):
    (other,) = shapes({"a": "int"}, key="string", first_id=200)
    know(chain, INT)
    chain.ingest(SHAPED, [record(INT, 0, 1, a=1)])
    chain.merge(SHAPED)
    know(chain, other)
    chain.ingest(SHAPED, [record(other, 1, "two", a=2)])

    with pytest.raises(KeySchemaDriftError) as caught:
        chain.merge(SHAPED)

    assert (caught.value.was, caught.value.now) == (
        "id bigint",
        f"id string, first cases.{NAME}/0@1 with schema 200",
    )
    assert rows(chain) == {1: {"a": 1}}


def test_records_of_a_wider_key_that_an_earlier_release_refused_are_taken_by_a_replay(chain, monkeypatch):
    (int_key,) = shapes({"a": "int"}, key="int", first_id=200)
    (long_key,) = shapes({"a": "int"}, key="long", first_id=300)
    know(chain, int_key)
    chain.ingest(SHAPED, [record(int_key, 0, 1, a=1)])
    chain.merge(SHAPED)
    know(chain, long_key)
    with monkeypatch.context() as earlier:
        for module in (bronze_schemas, columns):
            earlier.setattr(module, "widened_key", lambda existing, new: existing or new)
        chain.ingest(SHAPED, [record(long_key, 1, 2**31, a=2), record(long_key, 2, 1, op="u", a=3)])
    with pytest.raises(KeySchemaDriftError, match="bigint"):
        chain.merge(SHAPED)

    assert chain.replay(SHAPED).counts == {"waiting": 2, "closed": 2}
    chain.merge(SHAPED)

    assert rows(chain) == {1: {"a": 3}, 2**31: {"a": 2}}
    assert ("widened", "id", "int", "bigint") in {line[:4] for line in logged(chain)}


def test_a_dropped_column_is_told_once_and_again_when_it_comes_back(chain):
    both, one, again = shapes({"a": "int", "b": "int"}, {"a": "int"}, {"a": "int", "b": "int", "c": "int"})
    know(chain, both)
    chain.ingest(SHAPED, [record(both, 0, 1, a=1, b=1), record(both, 1, 2, a=2, b=2)])
    chain.merge(SHAPED)
    know(chain, one)
    chain.ingest(SHAPED, [record(one, 2, 1, op="u", a=3)])
    result = chain.merge(SHAPED)
    chain.ingest(SHAPED, [record(one, 3, 3, a=4)])
    chain.merge(SHAPED)

    assert result.counts["columns_dropped"] == 1
    assert rows(chain) == {1: {"a": 3, "b": 1}, 2: {"a": 2, "b": 2}, 3: {"a": 4, "b": None}}
    assert logged(chain) == [("dropped", "b", "int", "keep", [SECOND])]
    know(chain, again)
    chain.ingest(SHAPED, [record(again, 4, 3, op="u", a=5, b=6, c=7)])
    chain.merge(SHAPED)
    assert [line[:2] for line in logged(chain)] == [("dropped", "b"), ("sent_again", "b"), ("added", "c")]


def test_a_block_of_older_events_that_is_sent_again_hides_no_dropped_column(chain):
    both, one = shapes({"a": "int", "b": "int"}, {"a": "int"})
    know(chain, both)
    first = [record(both, 0, 1, a=1, b=1), record(both, 1, 2, a=2, b=2)]
    chain.ingest(SHAPED, first)
    chain.merge(SHAPED)
    know(chain, one)
    chain.ingest(SHAPED, [record(one, 2, 1, op="u", a=3), replace(first[1], offset=3)])
    result = chain.merge(SHAPED)

    assert result.counts["columns_dropped"] == 1
    assert rows(chain) == {1: {"a": 3, "b": 1}, 2: {"a": 2, "b": 2}}


def test_a_default_reaches_all_rows_once_though_the_first_attempt_was_killed(chain, monkeypatch):
    old, new, loose = shapes({"a": "int"}, {"a": "int", "b": "int=7!"}, {"a": "int", "b": "int=7"})
    know(chain, old)
    chain.ingest(SHAPED, [record(old, 0, 1, a=1), record(old, 1, 2, a=2)])
    chain.merge(SHAPED)
    know(chain, new)
    chain.ingest(SHAPED, [record(new, 2, 1, op="u", a=1, b=9)])
    with monkeypatch.context() as killed:
        killed.setattr(table_merge, "apply_changes", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            chain.merge(SHAPED)

    chain.merge(SHAPED)

    assert rows(chain) == {1: {"a": 1, "b": 9}, 2: {"a": 2, "b": 7}}
    know(chain, loose)
    chain.ingest(SHAPED, [record(loose, 3, 2, op="u", a=3, b=None)])
    chain.merge(SHAPED)
    chain.ingest(SHAPED, [record(loose, 4, 1, op="u", a=4, b=4)])
    chain.merge(SHAPED)
    assert rows(chain) == {1: {"a": 4, "b": 4}, 2: {"a": 3, "b": None}}


@pytest.mark.parametrize(
    ("table", "error"),
    [(STRICT, SchemaChangedError), (table_of(NAME, on_dropped_column="stop"), ColumnDroppedError)],
)
def test_a_table_may_stop_at_a_dropped_column_until_somebody_takes_it(table, error, chain):
    both, one = shapes({"a": "int", "b": "int"}, {"a": "int"})
    know(chain, both)
    chain.ingest(table, [record(both, 0, 1, a=1, b=1), record(both, 1, 2, a=2, b=2)])
    chain.merge(table)
    know(chain, one)
    chain.ingest(table, [record(one, 2, 1, op="u", a=3)])
    with pytest.raises(error, match="b"):
        chain.merge(table)
    assert rows(chain)[1] == {"a": 1, "b": 1}

    chain.merge(table_of(NAME, on_dropped_column="as_null"))
    chain.ingest(table, [record(one, 3, 2, op="u", a=4)])
    chain.merge(table)

    assert rows(chain) == {1: {"a": 3, "b": None}, 2: {"a": 4, "b": None}}


def test_a_table_that_begins_behind_a_change_has_the_newest_type(chain):
    know(chain, INT, TEXT)
    chain.ingest(SHAPED, [record(TEXT, 1, 2, a="two")])

    chain.merge(SHAPED)

    assert rows(chain) == {2: {"a": "two"}}
