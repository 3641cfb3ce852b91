"""A real broker with a hundred small topics, the schemas of each at a registry, and a pipeline of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.shapes import ORDERS  # type: ignore[import-not-found]
from bench.streams import Stream  # type: ignore[import-not-found]
from bench.workloads import TABLE_COUNT  # type: ignore[import-not-found]
from cdc_lakehouse.contract import ENV_CONNECTION_REGISTRY, ENV_PIPELINES
from local_stack import LocalStack, RunningStack
from unit.registry_server import FakeRegistry  # type: ignore[import-not-found]

RECORDS = 500
"""Of each table in each round with news."""
PARTITIONS = 2
PIPELINE = "tables"
_HEAD = f"""\
version: 1
name: {PIPELINE}
owner: bench
schedule: "0 * * * *"
start_date: 2026-01-01
tables:
"""


@dataclass(frozen=True, slots=True)
class Topics:
    """What the jobs are given, and how the topics get news."""

    folder: Path
    stack: RunningStack
    registry: FakeRegistry
    stream: Stream = field(default_factory=lambda: Stream(ORDERS))

    @property
    def names(self) -> list[str]:
        return [f"shop.public.t{number:03}" for number in range(TABLE_COUNT)]

    def environment(self) -> dict[str, str]:
        """For spark-submit."""
        told = {**os.environ, **self.stack.job_environment()}
        told[ENV_CONNECTION_REGISTRY] = json.dumps({"host": self.registry.url})
        told[ENV_PIPELINES] = str(self.folder / "pipelines")
        told["SPARK_LOCAL_DIRS"] = str(self.folder / "spark-local")
        told["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), told.get("PATH", os.defpath)])
        return told

    def create(self) -> None:
        """Topics, schemas and pipeline; each table has schemas of its own."""
        admin = AdminClient(self.stack.kafka.client_settings())  # held: what it was asked ends with it
        for done in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in self.names]).values():
            done.result(60)
        for number, topic in enumerate(self.names):
            for side, text in zip(("key", "value"), self._texts(topic), strict=True):
                self._register(f"{topic}-{side}", self._id(number, side), text)
        lines = [f"  - {{name: {topic.rpartition('.')[2]}, topics: [{topic}]}}\n" for topic in self.names]
        pipelines = self.folder / "pipelines"
        pipelines.mkdir(parents=True)
        (pipelines / f"{PIPELINE}.yaml").write_text(_HEAD + "".join(lines), encoding="utf-8")

    def send(self) -> None:
        """News for every topic: the same changes, framed with its own ids."""
        producer = Producer({**self.stack.kafka.client_settings(), "linger.ms": 50})
        records = self.stream.records(RECORDS)
        for number, topic in enumerate(self.names):
            key_id, value_id = (self._id(number, side).to_bytes(4, "big") for side in ("key", "value"))
            for place, (key, value) in enumerate(records):
                producer.produce(
                    topic,
                    key=b"\x00" + key_id + key[5:],
                    value=b"\x00" + value_id + value[5:],
                    partition=place % PARTITIONS,
                )
            producer.flush()

    def _texts(self, topic: str) -> tuple[str, str]:
        (value,) = self.stream.value_texts.values()
        return self.stream.key_text, json.dumps({**json.loads(value), "doc": topic})

    def _register(self, subject: str, schema_id: int, text: str) -> None:
        version = {"subject": subject, "version": 1, "id": schema_id, "schema": text}
        self.registry.answers |= {
            f"/subjects/{subject}/versions": [1],
            f"/subjects/{subject}/versions/1": version,
            f"/subjects/{subject}/versions/latest": version,
        }

    @staticmethod
    def _id(number: int, side: str) -> int:
        return 1 + 2 * number + (side == "value")


@contextmanager
def many_topics(folder: Path) -> Iterator[Topics]:
    """Without a record; for the length of the block."""
    registry = FakeRegistry()
    try:
        with LocalStack(folder / "stack").running("kafka", airflow=False) as stack:
            topics = Topics(folder, stack, registry)
            topics.create()
            yield topics
    finally:
        registry.stop()
