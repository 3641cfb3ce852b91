"""The plan of a random history is a pure value of its seed."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from history.alterations import alteration_of  # type: ignore[import-not-found]
from history.plan import Choice, UnknownNameError, steps  # type: ignore[import-not-found]
from history.shapes import Column, Shape  # type: ignore[import-not-found]
from history.shrinking import shrunk  # type: ignore[import-not-found]
from history.steps import DDL, FAULTS, KEY_CHANGES, TRUNCATES, Kind, Step, read_steps, write_steps  # type: ignore[import-not-found]
from history.tables import tables_named  # type: ignore[import-not-found]
from history.values import key_text  # type: ignore[import-not-found]

SOME = 20_000


def planned(seed: int, choice: Choice, *, count: int = SOME) -> list[Step]:
    return list(islice(steps(seed, choice), count))


def test_the_same_seed_gives_the_same_steps():
    assert planned(7, Choice()) == planned(7, Choice())


def test_another_seed_gives_other_steps():
    assert planned(7, Choice(), count=50) != planned(8, Choice(), count=50)


def test_every_kind_of_step_comes_up():
    every_table = Choice.of(also=["seats"])

    assert set(Kind) - {step.kind for step in planned(1, every_table, count=3 * SOME)} == set()


def test_a_group_that_is_left_out_never_comes_up():
    choice = Choice.of(without=["truncate", "ddl", "keychange", "faults"])

    assert {step.kind for step in planned(1, choice)} & {*TRUNCATES, *DDL, *KEY_CHANGES, *FAULTS} == set()


def test_a_table_that_is_left_out_never_comes_up():
    assert "toasted" not in {step.table for step in planned(1, Choice.of(without=["toasted"]))}


def test_a_table_without_a_certain_key_comes_up_only_when_asked_for():
    assert "seats" not in {step.table for step in planned(1, Choice())}


def test_a_name_that_nobody_knows_is_refused():
    with pytest.raises(UnknownNameError, match="is called trunkate"):
        Choice.of(without=["trunkate"])


def test_every_transaction_ends_before_a_quiet_point():
    is_open: set[int] = set()
    left = []
    for step in planned(3, Choice()):
        if step.kind is Kind.BEGIN:
            is_open.add(step.session)
        elif step.kind in (Kind.COMMIT, Kind.ROLLBACK):
            is_open.discard(step.session)
        elif step.kind is Kind.QUIET:
            left += sorted(is_open)

    assert left == []


def test_steps_are_read_as_they_were_written(tmp_path):
    some = planned(1, Choice(), count=300)
    write_steps(tmp_path / "steps.json", some, seed=5)

    assert read_steps(tmp_path / "steps.json") == (5, some)


def test_shrinking_leaves_what_is_needed_to_fail():
    found = shrunk(list(range(100)), lambda part: {17, 60} <= set(part), seconds=60)

    assert found == [17, 60]


def test_shrinking_that_runs_out_of_time_still_fails():
    found = shrunk(list(range(100)), lambda part: {17, 60} <= set(part), seconds=0)

    assert {17, 60} <= set(found)


def test_a_key_widens_and_takes_values_beyond_its_former_type():
    (numbered,) = tables_named(["numbered"])
    narrow = Shape(numbered, (Column("id", "integer"), Column("note", "text")))
    found = alteration_of(Step(Kind.WIDEN_COLUMN, "numbered"), narrow)
    chosen = {int(key_text("bigint", Random(seed), keys=40)) for seed in range(40)}  # noqa: S311

    assert found is not None
    assert found.statements == ("ALTER TABLE history.numbered ALTER COLUMN id TYPE bigint",)
    assert any(number > 2**31 for number in chosen)
