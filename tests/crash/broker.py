"""A broker and a registry for the tier: real Kafka alone, schemas over HTTP from this process."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from artifacts.spark_files import DEFAULTS_FILE
from cases.encoding import Writer  # type: ignore[import-not-found]
from cdc_lakehouse.contract import ENV_CONNECTION_REGISTRY, ENV_CONNECTION_STORAGE, ENV_PIPELINES
from crash.identity import Identity  # type: ignore[import-not-found]
from crash.records import (  # type: ignore[import-not-found]
    MOVED,
    MOVED_PARTITIONS,
    PARTITIONS,
    UNKNOWN_AT_FIRST,
    WRITERS,
    Sent,
    Step,
    bytes_of,
    steps,
    topic_of,
)
from crash.stores import Disk, Store  # type: ignore[import-not-found]
from local_stack import LocalStack, RunningStack
from small_tables import SMALL  # type: ignore[import-not-found]
from unit.registry_server import FakeRegistry  # type: ignore[import-not-found]

PIPELINE = "crash"
ROOT = Path(__file__).parents[2]
SMALL_BATCHES = 7
"""Records per batch of the golden run, so that a drain has several."""
FEW_BATCHES = 16
SETTINGS = {
    **SMALL,
    "spark.sql.adaptive.enabled": "false",
}
_YAML = f"""\
version: 1
name: {PIPELINE}
owner: tests
schedule: "0 * * * *"
start_date: 2026-01-01
defaults: {{max_offsets_per_trigger: {SMALL_BATCHES}}}
maintenance: {{vacuum_retention: 1d}}
tables:
"""


@dataclass(slots=True)
class World:
    """What the jobs of the tier are given, and what is known of what was sent."""

    folder: Path
    stack: RunningStack
    registry: FakeRegistry
    sent: dict[str, list[Sent]] = field(default_factory=dict)
    identity: Identity | None = None
    """Who the drivers of the tier are told the broker is; None for the truth."""
    store: Store = field(default_factory=Disk)

    def environment(self, lake: Path | None = None) -> dict[str, str]:
        """For spark-submit and for a warm driver."""
        told = {**os.environ, **self.stack.job_environment()}
        told[ENV_CONNECTION_REGISTRY] = json.dumps({"host": self.registry.url})
        told[ENV_PIPELINES] = str(self.folder / "pipelines")
        told["PYTHONPATH"] = os.pathsep.join([str(ROOT / "include"), str(ROOT / "tests")])
        if self.identity is not None:
            told |= self.identity.as_variable()
        told["SPARK_LOCAL_DIRS"] = str(self.folder / "spark-local")
        told["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), told.get("PATH", os.defpath)])
        if lake is not None:
            told[ENV_CONNECTION_STORAGE] = json.dumps({"extra": {"root": lake.as_uri()}})
        return {**told, **self.store.environment()}

    def compiling(self) -> dict[str, str]:
        """Settings of a JVM that lives long: the product's own compile as little as they can."""
        usual = Path(self.environment()["SPARK_CONF_DIR"])
        conf = usual.with_name(f"{usual.name}-compiling")
        if not conf.exists():
            shutil.copytree(usual, conf)
            defaults = conf / DEFAULTS_FILE
            text = defaults.read_text().replace("-XX:TieredStopAtLevel=1 ", "-Xmn600m ")
            defaults.write_text(text + "spark.driver.memory 4g\n")
        return {"SPARK_CONF_DIR": str(conf)}

    def topics(self) -> list[str]:
        return [topic_of(table) for table in PARTITIONS]

    def admin(self) -> AdminClient:
        return AdminClient(self.stack.kafka.client_settings())

    def create_topic(self, name: str, *, partitions: int) -> None:
        admin = self.admin()  # its futures end with it
        for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(timeout=30)

    def send(self, table: str, sequence: Iterator[Step] | list[Step]) -> list[Sent]:
        """Each record alone and in order, so that offsets are the same in every run."""
        found = []
        for step in _by_transaction(sequence):
            found += self._send_together(table, step)
        self.sent.setdefault(table, []).extend(found)
        return found

    def _send_together(self, table: str, together: list[Step]) -> list[Sent]:
        transaction = together[0].transaction
        settings: dict[str, Any] = {**self.stack.kafka.client_settings(), "acks": "all", "linger.ms": 0}
        if transaction is not None:
            settings["transactional.id"] = f"{table}-{transaction}"
        producer = Producer(settings)
        if transaction is not None:
            producer.init_transactions(30)
            producer.begin_transaction()
        found: list[Sent] = []
        for step in together:
            record = bytes_of(table, step)

            def told(error: Any, message: Any, record: Any = record) -> None:
                if error is not None:
                    raise RuntimeError(str(error))
                found.append(Sent(table, message.partition(), message.offset(), record))

            producer.produce(
                topic_of(table),
                key=record.key,
                value=record.value,
                partition=step.partition,
                on_delivery=told,
            )
            producer.flush(30)
        assert len(found) == len(together), f"{table}: the broker took {len(found)} of {len(together)}"
        if transaction is None:
            return found
        end = producer.abort_transaction if together[0].is_aborted else producer.commit_transaction
        end(30)
        self._wait_for_marker(topic_of(table), together[0].partition)
        return [] if together[0].is_aborted else found

    def _wait_for_marker(self, topic: str, partition: int) -> None:
        """The end of a transaction is answered before it is in the log, where it takes an offset."""
        admin, place = self.admin(), TopicPartition(topic, partition)
        deadline = time.monotonic() + 30
        while True:
            ends = {
                admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=level)[place]
                .result(30)
                .offset
                for level in IsolationLevel
            }
            if len(ends) == 1:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"a transaction on {topic}/{partition} did not end")
            time.sleep(0.02)


def _by_transaction(sequence: Iterator[Step] | list[Step]) -> Iterator[list[Step]]:
    """Neighbours of one transaction together, the others one by one."""
    together: list[Step] = []
    for step in sequence:
        if together and (step.transaction is None or step.transaction != together[0].transaction):
            yield together
            together = []
        together.append(step)
    if together:
        yield together


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Up for the length of the block. Topics are there, empty."""
    pipelines = folder / "pipelines"
    pipelines.mkdir(parents=True)
    every = {**PARTITIONS, MOVED: MOVED_PARTITIONS}
    tables = "".join(f"  - {{name: {name}, topics: [{topic_of(name)}]}}\n" for name in every)
    (pipelines / f"{PIPELINE}.yaml").write_text(_YAML + tables)
    registry = FakeRegistry()
    _publish(registry.answers)
    try:
        with LocalStack(folder / "stack").running("kafka", airflow=False) as stack:
            with (stack.site.layout.spark_conf / DEFAULTS_FILE).open("a", encoding="utf-8") as defaults:
                defaults.writelines(f"{name} {value}\n" for name, value in SETTINGS.items())
            made = World(folder, stack, registry)
            for table, partitions in every.items():
                made.create_topic(topic_of(table), partitions=partitions)
            yield made
    finally:
        registry.stop()


def make_known(world: World) -> None:
    """From here on the registry has the schema of the records in the quarantine."""
    for by_batch in WRITERS.values():
        world.registry.answers.update(_by_id(by_batch[UNKNOWN_AT_FIRST]))


@contextmanager
def not_yet_known(world: World) -> Iterator[None]:
    """As it was before `make_known`, for the length of the block."""
    for by_batch in WRITERS.values():
        for path in _by_id(by_batch[UNKNOWN_AT_FIRST]).keys() - _by_id(by_batch[1]).keys():
            world.registry.answers.pop(path, None)
    yield
    make_known(world)


def send_round(world: World, round_: int) -> None:
    for table in PARTITIONS:
        world.send(table, steps(table, round_=round_))


def _publish(answers: dict[str, Any]) -> None:
    """Only what the first writers know; the second value schema is found by its id, the third not at all."""
    for table, by_batch in WRITERS.items():
        topic = topic_of(table)
        for batch, writer in by_batch.items():
            if batch != UNKNOWN_AT_FIRST:
                answers.update(_by_id(writer))
        (key_id, key), (value_id, value) = by_batch[1].schemas.items()
        for side, number, text in (("key", key_id, key), ("value", value_id, value)):
            version = {"subject": f"{topic}-{side}", "version": 1, "id": number, "schema": text}
            answers[f"/subjects/{topic}-{side}/versions"] = [1]
            answers[f"/subjects/{topic}-{side}/versions/1"] = version
            answers[f"/subjects/{topic}-{side}/versions/latest"] = version


def _by_id(writer: Writer) -> dict[str, Any]:
    (key_id, key), (value_id, value) = writer.schemas.items()
    return {
        f"/schemas/ids/{key_id}": {"schema": key},
        f"/schemas/ids/{value_id}": {"schema": value},
        # As Confluent's own client asks, which the baseline uses.
        f"/schemas/ids/{value_id}?subject={writer.case.topic}-value": {"schema": value},
    }
