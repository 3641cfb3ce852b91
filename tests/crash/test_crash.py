"""A seeded part of the proof (`guarantees` §3); `make crash` runs all of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cdc_lakehouse.contract import ExitCode
from crash.golden import run_golden  # type: ignore[import-not-found]
from crash.hands import (  # type: ignore[import-not-found]
    brought_back,
    restored_by_hand,
)
from crash.invariants import Expected, Findings, examine  # type: ignore[import-not-found]
from crash.kills import at_once, driver_of, killed, zombies  # type: ignore[import-not-found]
from crash.moved_keys import MovedKeys  # type: ignore[import-not-found]
from crash.mutants import CASES, MUTANTS, Trial  # type: ignore[import-not-found]
from crash.mutations import Storage  # type: ignore[import-not-found]
from crash.records import PARTITIONS  # type: ignore[import-not-found]
from crash.shape import shape_of  # type: ignore[import-not-found]
from crash.states import collapsed, enumerated  # type: ignore[import-not-found]

SEED = 20261118
STATES = 3
COMMITTED_STATES = 1500


def problems(found: Findings) -> list[str]:
    return list(found.sentences)


@pytest.fixture(scope="module")
def every(golden):
    return collapsed(enumerated(golden.mutations, golden.states, seed=SEED), witnesses=1, seed=SEED)


def test_the_recorded_run_is_green_and_clean(golden, here, tmp_path):
    lake = golden.states[-1].written_to(tmp_path / "lake")

    assert {result["exit_code"] for result in golden.results} == {ExitCode.DONE}
    expected = [Expected.of(table, here.sent[table]) for table in PARTITIONS]
    assert [problems(examine(lake, each)) for each in expected] == [[], []]


@pytest.fixture(scope="module")
def at_one_go(bench, tmp_path_factory) -> Path:
    """A lake whose first run found all records there: the quarantine is replayed behind the newest ones."""
    lake: Path = tmp_path_factory.mktemp("at_one_go") / "lake"
    run_golden(bench.world, bench.driver, lake)
    return lake


def test_a_run_that_finds_all_records_there_is_clean(at_one_go, bench):
    expected = [bench.expected(table) for table in PARTITIONS]
    assert [problems(examine(at_one_go, each)) for each in expected] == [[], []]


def test_the_recording_is_one_of_the_code_as_it_is(at_one_go, golden):
    """Else: `make crash RECORD=1`, and commit what it wrote."""
    made, known = shape_of(Storage.of(at_one_go)), shape_of(golden.states[-1])
    # It is one round in fewer batches: silver has nothing to replace, and no log a checkpoint.
    missing = {each for each in known - made if each.startswith("bronze/") and ".json " in each}
    assert (made - known, missing) == (set(), set())


def test_every_state_is_enumerated_and_collapsed(golden, every):
    assert every.enumerated >= COMMITTED_STATES
    assert every.by_variant["prefix"] == len(golden.mutations) + 1
    assert 0 < len(every.work) < every.enumerated / 4


def test_a_run_from_any_state_ends_where_the_golden_run_does(every, golden, bench):
    part = [work for work in every.work if work.is_witness]
    part += random.Random(SEED).sample([work for work in every.work if not work.is_witness], STATES)
    replay = {id(storage) for storage in golden.states[golden.in_quarantine + 1 : golden.first_round]}
    part += random.Random(SEED).sample([w for w in every.work if id(w.state.storage) in replay], 1)

    assert problems(bench.run_states(part)) == []


def test_a_folder_that_was_brought_back_from_a_copy_catches_up(golden, bench):
    assert problems(bench.run_states(brought_back(golden, copies=1, seed=SEED))) == []


def test_silver_restored_by_hand_stops_and_says_so(golden, bench):
    assert problems(restored_by_hand(bench, golden, layer="silver")) == []


def test_killed_runs_cost_nothing(golden, bench):
    met = killed(bench, golden, kills=3, seed=SEED)

    assert (met.count, problems(met.findings)) == (3, [])


@pytest.fixture(scope="module")
def other(bench):
    with driver_of(bench, "other") as driver:
        yield driver.ready()


def test_zombies_change_nothing(golden, bench, other):
    met = zombies(bench, golden, other, zombies=2, seed=SEED)

    assert (met.count, problems(met.findings)) == (2, [])


def test_two_runs_at_once_are_one(golden, bench, other):
    assert problems(at_once(bench, golden, other, pairs=1, seed=SEED).findings) == []


@pytest.fixture(scope="module")
def moved(bench):
    return MovedKeys.made(bench)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_each_case_is_clean_with_all_guards(golden, bench, moved, case):
    assert problems(case(Trial(bench, golden, moved))) == []


@pytest.mark.long
@pytest.mark.parametrize("guard", MUTANTS)
def test_without_a_guard_its_case_is_red(golden, bench, moved, guard):
    without = MUTANTS[guard].case(Trial(bench, golden, moved, (guard,)))

    assert MUTANTS[guard].is_noticed(without), problems(without)
