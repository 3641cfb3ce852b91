"""The line at the end counts what was found, and nothing that is only there to be compared with."""

from __future__ import annotations

from crash import results  # type: ignore[import-not-found]
from crash.invariants import Findings  # type: ignore[import-not-found]
from crash.results import Results  # type: ignore[import-not-found]


def found(tmp_path, monkeypatch) -> Results:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    made: Results = Results.of(seed=7, recorded_anew=True)
    return made


def test_the_line_adds_up_the_steps_of_several_calls(tmp_path, monkeypatch):
    found(tmp_path, monkeypatch).add("states 1/2", Findings(), seconds=1.0, states=1500, run=200)
    found(tmp_path, monkeypatch).add("kills", Findings(lost=2), seconds=1.0, kills=100, signals=20)
    last = found(tmp_path, monkeypatch)
    last.add("zombies", Findings(duplicated=1), seconds=1.0, zombies=50, signals=9)

    assert last.summary() == "states=1500 kills=100 zombies=50 lost=2 duplicated=1 half_written=0"
    assert not last.hold()


def test_what_a_baseline_loses_is_not_ours(tmp_path, monkeypatch):
    made = found(tmp_path, monkeypatch)
    made.add("baseline", Findings(), seconds=1.0, states=40, lost=9)

    assert made.summary() == "states=0 kills=0 zombies=0 lost=0 duplicated=0 half_written=0"
    assert made.hold()


def test_a_guard_that_nobody_misses_is_a_failure(tmp_path, monkeypatch):
    made = found(tmp_path, monkeypatch)
    made.add("guards", Findings(), seconds=1.0, off={"read_back": {"noticed": False}})

    assert not made.hold()
    assert list(made.sentences()) == ["nothing was noticed without read_back"]


def test_figures_of_other_code_are_not_kept(tmp_path, monkeypatch):
    found(tmp_path, monkeypatch).add("kills", Findings(), seconds=1.0, kills=100)
    monkeypatch.setattr(results, "_code", lambda: "another")

    assert found(tmp_path, monkeypatch).steps == {}


def test_a_step_that_was_broken_off_costs_the_others_nothing_and_is_no_success(tmp_path, monkeypatch):
    found(tmp_path, monkeypatch).add("kills", Findings(), seconds=1.0, kills=100)
    last = found(tmp_path, monkeypatch)
    last.break_off("zombies", "DriverFailedError: the driver ended")

    assert last.summary() == "states=0 kills=100 zombies=0 lost=0 duplicated=0 half_written=0"
    assert not last.hold()
    assert list(last.sentences()) == ["did not finish: zombies: DriverFailedError: the driver ended"]


def test_a_step_that_is_taken_again_to_its_end_is_whole(tmp_path, monkeypatch):
    found(tmp_path, monkeypatch).break_off("zombies", "DriverFailedError: the driver ended")
    last = found(tmp_path, monkeypatch)
    last.add("zombies", Findings(), seconds=1.0, zombies=54)

    assert last.summary() == "states=0 kills=0 zombies=54 lost=0 duplicated=0 half_written=0"
    assert last.hold()


def test_what_this_machine_cannot_try_is_not_claimed(tmp_path, monkeypatch):
    found(tmp_path, monkeypatch).add("s3", Findings(), seconds=1.0, states=20, kills=12, zombies=8)
    last = found(tmp_path, monkeypatch)
    last.leave_out("s3", "no jars")

    assert last.summary() == "states=0 kills=0 zombies=0 lost=0 duplicated=0 half_written=0"
    assert list(last.sentences()) == ["not proved here: s3: no jars"]


def test_a_part_takes_the_place_of_the_whole(tmp_path, monkeypatch):
    found(tmp_path, monkeypatch).add("states", Findings(), seconds=1.0, states=3000)
    found(tmp_path, monkeypatch).add("states 1/2", Findings(), seconds=1.0, states=1500)
    last = found(tmp_path, monkeypatch)
    last.add("states 2/2", Findings(), seconds=1.0, states=1501)

    assert last.summary() == "states=3001 kills=0 zombies=0 lost=0 duplicated=0 half_written=0"
