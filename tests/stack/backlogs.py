"""Topics made to measure on the stack's Kafka, and jobs run over them without Airflow."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_lakehouse.contract import ENV_PIPELINES, ENV_RESULT, Job, JobResult
from local_stack import RunningStack

ROOT = Path(__file__).parents[2]
HEAD = """\
version: 1
name: {name}
owner: tests
schedule: "0 * * * *"
start_date: 2026-01-01
"""


def one_record(stack: RunningStack, topic: str) -> tuple[bytes, bytes]:
    """Key and value of the topic's first record, as Debezium wrote them."""
    settings = {**stack.kafka.client_settings(), "group.id": "tests", "auto.offset.reset": "earliest"}
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(30)
    assert message is not None
    assert message.error() is None
    return message.key(), message.value()


def make_topic(stack: RunningStack, topic: str, *, partitions: int = 1, **config: str) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin = AdminClient(stack.kafka.client_settings())
    wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=settings)
    for future in admin.create_topics([wanted]).values():
        future.result(30)


def register_like(stack: RunningStack, topic: str, *, like: str) -> None:
    """The newest schemas of one topic for another, as a connector would that writes the same there."""
    with stack.registry.client() as client:
        for side in ("key", "value"):
            known = client.get(f"/subjects/{like}-{side}/versions/latest").raise_for_status().json()
            body = {"schema": known["schema"], "schemaType": "AVRO"}
            client.post(f"/subjects/{topic}-{side}/versions", json=body).raise_for_status()


def fill(
    stack: RunningStack, topic: str, *, key: bytes, value: bytes, counts: Mapping[int, int], **settings: str
) -> None:
    """So many copies of one record per partition."""
    extra = {name.replace("_", "."): text for name, text in settings.items()}
    producer = Producer({**stack.kafka.client_settings(), "linger.ms": 50, **extra})
    for partition, count in counts.items():
        for _ in range(count):
            while True:
                try:
                    producer.produce(topic, key=key, value=value, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
    assert producer.flush(120) == 0


def run_job(
    stack: RunningStack,
    folder: Path,
    job: Job,
    *,
    pipeline: str,
    options: Sequence[str] = (),
    look: bool = False,
) -> tuple[JobResult, str]:
    """Its result and its log. `folder` holds the pipeline's file."""
    result_file = folder / "result.json"
    result_file.unlink(missing_ok=True)
    environment = {
        **os.environ,
        **stack.job_environment(),
        "PYTHONPATH": str(ROOT / "include"),
        ENV_PIPELINES: str(folder),
        ENV_RESULT: str(result_file),
    }
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]"]
    module = {Job.BRONZE_INGEST: "cdc_lakehouse.bronze", Job.SILVER_MERGE: "cdc_lakehouse.silver"}[job]
    start = [sys.executable, "-m", module] if look else [*submit, str(ROOT / "spark_jobs" / f"{job}.py")]
    command = [*start, "--pipeline", pipeline, *options]
    done = subprocess.run(
        command, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert result_file.exists(), done.stdout[-3000:]
    return JobResult.from_json(result_file.read_text()), done.stdout
