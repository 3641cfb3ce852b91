"""Schemas of a topic that has none of a key, and of one that gets its first."""

from __future__ import annotations

from pathlib import Path

import pytest
from registry_server import FakeRegistry  # type: ignore[import-not-found]
from test_writer_schemas import KEY, ONE, go_away, run_of, serve  # type: ignore[import-not-found]

from cdc_lakehouse.errors import RegistryUnavailableError


@pytest.fixture
def fake():
    registry = FakeRegistry()
    yield registry
    registry.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "schemas"


@pytest.fixture
def keyless(fake: FakeRegistry, folder: Path) -> FakeRegistry:
    """A run has met the topic without a schema of a key."""
    serve(fake, keys=[], values=[(2, ONE)])
    del fake.answers["/subjects/t-key/versions"]
    run_of(fake, folder)[0].of_topic("t")
    fake.calls.clear()
    return fake


def test_a_topic_without_a_key_is_asked_for_one_each_time(keyless, folder):
    found = run_of(keyless, folder)[0].of_topic("t")

    assert (dict(found.keys), dict(found.values)) == ({}, {2: ONE})
    assert keyless.calls == ["/subjects/t-value/versions/latest", "/subjects/t-key/versions/latest"]


def test_the_first_key_of_a_topic_is_found_though_its_values_are_known(keyless, folder):
    serve(keyless, keys=[(1, KEY)], values=[(2, ONE)])

    found = run_of(keyless, folder)[0].of_topic("t")

    assert (dict(found.keys), dict(found.values)) == ({1: KEY}, {2: ONE})


def test_with_the_registry_away_a_topic_without_a_key_goes_on(keyless, folder):
    go_away(keyless)

    found = run_of(keyless, folder)[0].of_topic("t")

    assert (dict(found.keys), dict(found.values)) == ({}, {2: ONE})


def test_a_key_that_the_archive_lost_is_not_taken_for_none(fake, folder):
    serve(fake, keys=[(1, KEY)], values=[(2, ONE)])
    run_of(fake, folder)[0].of_topic("t")
    (folder / "1.json").unlink()
    go_away(fake)

    with pytest.raises(RegistryUnavailableError):
        run_of(fake, folder)[0].of_topic("t")
