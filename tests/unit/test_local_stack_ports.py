"""Which port a listener gets."""

from __future__ import annotations

import socket
from collections.abc import Collection

import pytest

from local_stack.ports import USUAL, PortChoice, choose_ports, is_free
from local_stack.stack import configured_with


def choose(
    remembered: dict[str, int] | None = None, *, taken: Collection[int] = (), seed: str = "/project"
) -> PortChoice:
    return choose_ports(remembered or {}, seed=seed, free=lambda port: port not in taken, ceiling=32_768)


def test_the_usual_ports_are_taken_when_they_are_free():
    assert choose().ports == USUAL


def test_a_taken_port_is_replaced_below_the_ephemeral_range():
    ports = choose(taken={9092}).ports
    assert 20_000 <= ports["kafka"] < 32_768
    assert ports["registry"] == USUAL["registry"]


def test_no_port_is_given_twice():
    ports = choose(taken=set(USUAL.values())).ports
    assert len(set(ports.values())) == len(USUAL)


def test_a_remembered_port_stays():
    assert choose({"kafka": 23_456}).ports["kafka"] == 23_456


def test_a_remembered_port_that_was_lost_is_reported():
    choice = choose({"kafka": 23_456}, taken={23_456})
    assert choice.moved == {"kafka": 23_456}
    assert choice.ports["kafka"] == USUAL["kafka"]


def test_folders_search_in_different_places():
    busy = set(USUAL.values())
    assert choose(taken=busy, seed="/a").ports["kafka"] != choose(taken=busy, seed="/b").ports["kafka"]


def test_without_any_free_port_it_says_so():
    with pytest.raises(OSError, match="no port"):
        choose_ports({}, seed="x", free=lambda _: False, ceiling=22_100)


def test_a_port_somebody_listens_on_is_not_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])


RUNNING = ("postgres", "kafka", "registry", "connect", "airflow-scheduler", "airflow-api-server")


@pytest.mark.parametrize(
    ("moved", "started_again"),
    [
        ({}, []),
        ({"kafka-controller"}, []),
        ({"object-store-filer"}, []),
        ({"airflow"}, ["airflow-scheduler", "airflow-api-server"]),
        ({"registry"}, ["airflow-scheduler", "airflow-api-server"]),
        ({"kafka"}, ["connect", "airflow-scheduler", "airflow-api-server"]),
    ],
)
def test_a_port_that_moved_restarts_only_what_was_configured_with_it(moved, started_again):
    assert configured_with(moved, RUNNING) == started_again
