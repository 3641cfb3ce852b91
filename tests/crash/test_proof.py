"""The course goes on behind a step that breaks off, and says so at its end."""

from __future__ import annotations

from typing import Any

import pytest

from crash import results  # type: ignore[import-not-found]
from crash.in_a_bucket import NotHereError  # type: ignore[import-not-found]
from crash.invariants import Findings  # type: ignore[import-not-found]
from crash.proof import Course, Size  # type: ignore[import-not-found]
from crash.results import Results  # type: ignore[import-not-found]


class ShortCourse(Course):  # type: ignore[misc]
    def _kills(self) -> tuple[Findings, dict[str, Any]]:
        raise TimeoutError("no driver came up")

    def _zombies(self) -> tuple[Findings, dict[str, Any]]:
        return Findings(), {"zombies": 54}

    def _s3(self) -> tuple[Findings, dict[str, Any]]:
        raise NotHereError("no jars")


@pytest.fixture
def course(tmp_path, monkeypatch) -> Course:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return ShortCourse(None, None, Size(), Results.of(seed=7, recorded_anew=True))


def test_a_step_that_breaks_off_leaves_the_others_their_results(course):
    assert not course.take(["kills", "zombies"])

    assert course.results.summary() == "states=0 kills=0 zombies=54 lost=0 duplicated=0 half_written=0"
    assert list(course.results.sentences()) == ["did not finish: kills: TimeoutError: no driver came up"]


def test_a_step_that_cannot_be_taken_here_is_not_finished(course):
    assert not course.take(["zombies", "s3"])

    assert list(course.results.sentences()) == ["not proved here: s3: no jars"]


def test_a_course_without_faults_is_whole(course):
    assert course.take(["zombies"])
    assert course.results.hold()
