"""Small tables that one query drains together, by the job itself: what stops one of them costs no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from broker import Broker  # type: ignore[import-not-found]
from chain import Chain, table_of  # type: ignore[import-not-found]
from drained import ANY_TIMESTAMP, KEY, value  # type: ignore[import-not-found]
from orders import OLD  # type: ignore[import-not-found]

from cdc_lakehouse.bronze import ingest as bronze_ingest
from cdc_lakehouse.bronze import write
from cdc_lakehouse.bronze.job import ingest
from cdc_lakehouse.bronze.together import SharedDrain
from cdc_lakehouse.contract import ENV_CONNECTION_KAFKA, ENV_CONNECTION_REGISTRY, TableResult
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import SHARED
from unit.registry_server import FakeRegistry  # type: ignore[import-not-found]

UNKNOWN = b"\x00\x00\x00\x03\xe7" + value(1)[5:]
"""Of schema 999, which nobody knows."""
GARBAGE = [b"no frame"] * 100


@dataclass(frozen=True)
class Group:
    """Tables on topics of their own; each call of `run` is an attempt at all of them."""

    broker: Broker
    chain: Chain
    prefix: str
    names: list[str] = field(default_factory=list)

    def create(self, *names: str, **settings: str) -> None:
        for name in names:
            self.broker.create(self.topic(name), partitions=2, **settings)
        self.names.extend(names)

    def topic(self, name: str) -> str:
        return f"{self.prefix}.{name}"

    def send(self, name: str, *numbers: int, partition: int = 0) -> None:
        self.broker.send(self.topic(name), [value(n) for n in numbers], key=KEY, partition=partition)

    def run(self) -> dict[str, TableResult]:
        tables = [table_of(name, self.topic(name), quarantine_limit={}) for name in self.names]
        return {result.table: result for result in ingest(self.chain.application(*tables))}

    def rows(self, name: str) -> list[tuple[int, int]]:
        rows = self.chain.rows(self.chain.lake.bronze(name), "partition", "offset")
        return [(row["partition"], row["offset"]) for row in rows if row["topic"] == self.topic(name)]

    def own_queries(self) -> list[str]:
        """Tables that had a query of their own."""
        return [name for name in self.names if self._checkpoints(name, shared=False)]

    def shared_queries(self) -> int:
        return sum(len(self._checkpoints(name, shared=True)) for name in self.names)

    def _checkpoints(self, name: str, *, shared: bool) -> list[str]:
        found = [folder.name for folder in files.folders(self.chain.lake.checkpoints(name))]
        return [each for each in found if (SHARED in each) is shared]


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    server = FakeRegistry()
    yield server
    server.stop()


@pytest.fixture
def group(broker, chain, topic, stack, registry, monkeypatch) -> Group:
    monkeypatch.setenv(ENV_CONNECTION_KAFKA, stack.job_environment()[ENV_CONNECTION_KAFKA])
    monkeypatch.setenv(ENV_CONNECTION_REGISTRY, json.dumps({"host": registry.url}))
    found = Group(broker, chain, topic)
    create = found.create

    def known_too(*names: str, **settings: str) -> None:
        create(*names, **settings)
        for name in names:
            for side, (schema_id, text) in zip(("key", "value"), OLD.schemas.items(), strict=True):
                _register(registry, f"{found.topic(name)}-{side}", schema_id, text)

    object.__setattr__(found, "create", known_too)
    return found


def _register(registry: FakeRegistry, subject: str, schema_id: int, text: str) -> None:
    version = {"subject": subject, "version": 1, "id": schema_id, "schema": text}
    path = f"/subjects/{subject}/versions"
    registry.answers |= {path: [1], f"{path}/1": version, f"{path}/latest": version}


def before_the_shared_query(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Any]) -> None:
    """Once: behind the plans of all tables."""
    run = SharedDrain.run

    def late(self: SharedDrain, **kafka: Any) -> dict[str, TableResult]:
        monkeypatch.setattr(SharedDrain, "run", run)
        happens()
        return self.run(**kafka)

    monkeypatch.setattr(SharedDrain, "run", late)


def test_ten_small_tables_hold_their_records_after_one_query(group):
    names = [f"t{number}" for number in range(10)]
    group.create(*names)
    for number, name in enumerate(names):
        group.send(name, *range(1 + number))
        group.send(name, *range(number), partition=1)

    first = group.run()
    group.send("t3", 7)
    group.send("t4", 8, 9, partition=1)
    second = group.run()

    assert [first[name].counts["appended"] for name in names] == [1 + 2 * number for number in range(10)]
    assert first["t2"].ranges == {group.topic("t2"): {"0": (0, 3), "1": (0, 2)}}
    assert {name: each.status for name, each in second.items() if each.status != "idle"} == {
        "t3": "advanced",
        "t4": "advanced",
    }
    assert group.rows("t3") == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2)]
    assert group.rows("t4") == [(0, n) for n in range(5)] + [(1, n) for n in range(6)]
    assert (group.shared_queries(), group.own_queries()) == (2, [])


def test_what_is_wrong_with_one_table_fails_it_alone(group):
    group.create("fine", "late", "strange", "damaged")
    for name in ("fine", "late"):
        group.send(name, 1, 2)
    group.broker.send(group.topic("strange"), [value(1), UNKNOWN], key=KEY)
    group.broker.send(group.topic("damaged"), [value(1), *GARBAGE], key=KEY)

    found = group.run()

    codes = {name: result.error and result.error.code for name, result in found.items()}
    assert codes == {"fine": None, "late": None, "strange": "UNKNOWN_SCHEMA", "damaged": "QUARANTINE_LIMIT"}
    assert [group.rows(name) for name in group.names] == [[(0, 0), (0, 1)], [(0, 0), (0, 1)], [], []]
    assert group.own_queries() == ["strange"]


def test_a_topic_that_is_made_again_behind_the_plan_fails_its_table_alone(group, monkeypatch):
    group.create("fine", "late", "moved")
    for name in group.names:
        group.send(name, 1, 2)

    def moved() -> None:
        group.broker.create_again(group.topic("moved"), partitions=2)
        group.send("moved", 3, 4, 5)

    before_the_shared_query(monkeypatch, moved)
    found = group.run()

    codes = {name: result.error and result.error.code for name, result in found.items()}
    assert codes == {"fine": None, "late": None, "moved": "KAFKA_MOVED"}
    assert [group.rows(name) for name in group.names] == [[(0, 0), (0, 1)], [(0, 0), (0, 1)], []]
    assert group.own_queries() == []


def test_a_topic_that_ends_the_query_costs_the_other_tables_nothing(group, monkeypatch):
    """It has less now than was read of the one before."""
    group.create("fine", "late", "moved")
    for name in group.names:
        group.send(name, 1, 2)
    group.run()
    for name in group.names:
        group.send(name, 3)

    before_the_shared_query(
        monkeypatch, lambda: group.broker.create_again(group.topic("moved"), partitions=2)
    )
    found = group.run()

    codes = {name: result.error and result.error.code for name, result in found.items()}
    assert codes == {"fine": None, "late": None, "moved": "KAFKA_MOVED"}
    assert [len(group.rows(name)) for name in group.names] == [3, 3, 2]
    assert group.own_queries() == ["moved"]


def test_a_record_that_ends_the_query_costs_the_other_tables_nothing(group):
    group.create("fine", "late", "odd", **ANY_TIMESTAMP)
    for name in ("fine", "late"):
        group.send(name, 1, 2)
    group.broker.send(group.topic("odd"), [value(1)], key=KEY, timestamp=2**62)

    found = group.run()

    assert [found[name].counts["appended"] for name in group.names] == [2, 2, 1]
    assert group.own_queries() == ["odd"]


def test_a_table_that_another_attempt_advanced_meanwhile_is_not_doubled(group, monkeypatch):
    group.create("fine", "late", "taken")
    for name in group.names:
        group.send(name, 1, 2)
    alone = Group(group.broker, group.chain, group.prefix, ["taken"])

    before_the_shared_query(monkeypatch, alone.run)
    found = group.run()

    assert {name: str(result.status) for name, result in found.items()} == {
        "fine": "advanced",
        "late": "advanced",
        "taken": "superseded",
    }
    assert [group.rows(name) for name in group.names] == [[(0, 0), (0, 1)]] * 3


def test_an_attempt_that_ends_behind_half_of_its_commits_is_continued(group, monkeypatch):
    names = [f"t{number}" for number in range(6)]
    group.create(*names)
    for name in names:
        group.send(name, 1, 2)

    def half(*args: Any, after: Any, **more: Any) -> Any:
        if after.table in names[3:]:
            raise RuntimeError("the driver is gone")
        return write.append(*args, after=after, **more)

    with monkeypatch.context() as patch:
        patch.setattr(bronze_ingest, "append", half)
        first = group.run()
    second = group.run()

    assert [first[name].status for name in names] == ["advanced"] * 3 + ["failed"] * 3
    assert [second[name].status for name in names] == ["idle"] * 3 + ["advanced"] * 3
    assert [group.rows(name) for name in names] == [[(0, 0), (0, 1)]] * 6
