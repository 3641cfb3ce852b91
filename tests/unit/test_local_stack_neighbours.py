"""Two stacks that start at the same moment do not choose the same ports."""

from __future__ import annotations

import os

import pytest

from local_stack.layout import Layout
from local_stack.neighbours import ports_of_neighbours, reserved_ports
from local_stack.process import ProcessRecord
from local_stack.state import State


@pytest.fixture
def stacks(tmp_path, monkeypatch):
    monkeypatch.setenv("CDC_LAKEHOUSE_CACHE", str(tmp_path / "cache"))
    one, other = Layout(tmp_path / "one"), Layout(tmp_path / "other")
    for layout in (one, other):
        layout.root.mkdir()
    return one, other


def test_ports_of_a_starting_neighbour_are_taken(stacks):
    one, other = stacks
    with ports_of_neighbours(one) as taken:
        assert taken == set()
        State(one).remember_ports({"kafka": 9092})
    with ports_of_neighbours(other) as taken:
        assert taken == {9092}
    with ports_of_neighbours(one) as taken:
        assert taken == set()


def test_ports_of_a_stack_that_stopped_long_ago_are_free_again(stacks):
    one, _ = stacks
    State(one).remember_ports({"kafka": 9092})
    changed = one.state_file.stat().st_mtime
    assert reserved_ports(one, now=changed + 1) == {9092}
    assert reserved_ports(one, now=changed + 1_000) == set()


def test_ports_of_a_running_stack_stay_taken(stacks):
    one, _ = stacks
    State(one).remember_ports({"kafka": 9092})
    with open("/proc/self/stat") as stream:  # noqa: PTH123
        started = int(stream.read().rpartition(")")[2].split()[19])
    State(one).remember_process("kafka", ProcessRecord(os.getpid(), started))
    assert reserved_ports(one, now=one.state_file.stat().st_mtime + 1_000) == {9092}


def test_a_deleted_stack_is_forgotten(stacks):
    one, other = stacks
    with ports_of_neighbours(one):
        State(one).remember_ports({"kafka": 9092})
    one.state_file.unlink()
    one.root.rmdir()
    with ports_of_neighbours(other) as taken:
        assert taken == set()
