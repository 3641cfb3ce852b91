"""Order, failure and clean-up of a start, with small shell processes as components."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from artifacts.java import Java
from local_stack.component import Component, Site
from local_stack.errors import BusyError, ComponentFailedError
from local_stack.layout import Layout
from local_stack.process import Launch
from local_stack.secrets_file import Secrets
from local_stack.starting import Spawner, bring_down, bring_up
from local_stack.state import State, one_command


class Shell(Component):
    script = "exec sleep 60"

    def launch(self):
        return Launch(["sh", "-c", self.script], dict(os.environ), self.site.layout.root)


class First(Shell):
    name = "first"


class Second(Shell):
    name = "second"
    needs = ("first",)


class Failing(Shell):
    name = "failing"
    script = "echo 'ERROR: port in use'; exit 1"

    def is_healthy(self, process):
        return False


class Unsettled(Shell):
    name = "unsettled"

    def settle(self):
        raise ValueError("no such role")


@pytest.fixture
def site(tmp_path) -> Site:
    return Site(Layout(tmp_path), {}, Secrets.drawn(), Java(Path("/java"), "17"))


@pytest.fixture
def state(site) -> State:
    return State(site.layout)


@pytest.fixture
def run(site, state):
    """Start components and return the log of events; everything is stopped at the end."""
    spawner = Spawner(state, owned=False)
    events: list[tuple[str, str]] = []
    components: list[Component] = []

    def start(*kinds, ready=()):
        components.extend(kind(site) for kind in kinds)
        report = lambda name, event, _: events.append((name, event))  # noqa: E731
        bring_up(components, spawner=spawner, ready=set(ready), report=report)
        return events

    yield start
    bring_down(components, state=state, report=lambda *_: None)
    spawner.close()


def test_a_component_waits_for_what_it_needs(run):
    events = run(Second, First)
    assert events.index(("first", "healthy")) < events.index(("second", "starting"))


def test_what_runs_already_is_not_waited_for(run):
    assert ("second", "healthy") in run(Second, ready=["first"])


def test_a_failure_is_explained_by_the_components_own_log(run):
    with pytest.raises(ComponentFailedError, match="failing did not come up: ERROR: port in use"):
        run(First, Failing)


def test_a_failure_while_settling_names_the_component(run):
    with pytest.raises(ComponentFailedError, match="unsettled did not come up: ValueError: no such role"):
        run(Unsettled)


def test_users_of_a_component_stop_before_it(run, site, state):
    run(First, Second)
    stopped: list[str] = []
    bring_down([First(site), Second(site)], state=state, report=lambda name, *_: stopped.append(name))
    assert stopped == ["second", "first"]


def test_nothing_is_left_after_stopping(run, site, state):
    run(First, Second)
    records = state.processes
    bring_down([First(site), Second(site)], state=state, report=lambda *_: None)
    assert state.processes == {}
    assert not any(record.is_alive for record in records.values())


def test_a_second_command_is_refused(site):
    with one_command(site.layout), pytest.raises(BusyError), one_command(site.layout):
        pass
