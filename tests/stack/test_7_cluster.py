"""The same jobs on a Spark cluster with the lake in a bucket: `guarantees` promises no less there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from spark_cluster import BIN, Cluster, running_cluster  # type: ignore[import-not-found]

from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE, ENV_RESULT, ENV_SPARK_SECRET, Job, JobResult
from local_stack import LocalStack, RunningStack
from local_stack.proof import compare_pipeline
from stranger import REFUSED, answer_to_a_stranger  # type: ignore[import-not-found]

SPARK_JOBS = Path(__file__).parents[2] / "spark_jobs"
SMALL = ["--conf", "spark.executor.memory=1g", "--conf", "spark.cores.max=2"]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory) -> Iterator[RunningStack]:
    folder = tmp_path_factory.mktemp("bucket")
    with LocalStack(folder, object_store=True).running("object-store", airflow=False) as running:
        yield running


@pytest.fixture(scope="module")
def environment(stack, bucket) -> dict[str, str]:
    """Kafka and registry of the chain, the lake in the bucket."""
    theirs = bucket.job_environment()
    own = {name: theirs[name] for name in (ENV_CONNECTION_STORAGE, "SPARK_CONF_DIR")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**stack.job_environment(), **own, "PATH": path, "HOME": os.environ.get("HOME", "/")}


@pytest.fixture(scope="module")
def cluster(environment, tmp_path_factory) -> Iterator[Cluster]:
    """Its executors have no PYTHONPATH: the package comes with the run."""
    kept = {name: environment[name] for name in ("JAVA_HOME", "SPARK_CONF_DIR", ENV_CONNECTION_STORAGE)}
    with running_cluster(tmp_path_factory.mktemp("cluster"), environment=kept) as running:
        yield running


def run(job: Job, cluster: Cluster, environment: dict[str, str], folder: Path) -> tuple[JobResult, str]:
    """The result, and all that others could read: what was printed, and the command lines of processes."""
    result, log = folder / f"{job}.json", folder / f"{job}.log"
    with log.open("wb") as printed:
        process = subprocess.Popen(
            [str(BIN / "spark-submit"), "--master", cluster.master, *SMALL, str(SPARK_JOBS / f"{job}.py"),
             "--pipeline", "shop"],
            env={**environment, ENV_RESULT: str(result), ENV_SPARK_SECRET: cluster.secret},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    called: set[str] = set()
    for _ in range(400):
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
            break
        called |= commands()
    else:
        process.kill()
    said = log.read_text(errors="replace")
    assert process.wait() == 0, said[-4000:]
    text = result.read_text()
    return JobResult.from_json(text), "\n".join([said, text, *called])


def commands() -> set[str]:
    """Of all processes, as every user of the machine can read them."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.add(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_silver_in_a_bucket_equals_its_source(stack, bucket, cluster, environment, tmp_path):
    stack.connector.wait_until_captured()

    ingested, said = run(Job.BRONZE_INGEST, cluster, environment, tmp_path)
    merged, said_then = run(Job.SILVER_MERGE, cluster, environment, tmp_path)

    assert len(ingested.advanced) == len(merged.advanced) > 0
    found = compare_pipeline(stack, root=bucket.lake_root())
    assert [each.sentence() for each in found if not each.equal] == []
    assert sum(each.silver_rows for each in found) > 0
    # Spark prints the command of each executor, and its settings.
    printed = cluster.printed() + said + said_then
    assert "CoarseGrainedExecutorBackend" in printed
    assert "-Dspark.authenticate=true" in printed
    assert bucket.site.secrets.object_store not in printed
    assert stack.site.secrets.kafka not in cluster.printed()
    assert f"--master {cluster.master}" in said
    assert cluster.secret not in printed
    assert "asks no secret" not in said


def test_the_cluster_reads_nothing_of_those_who_have_no_secret(cluster):
    address = urlsplit(cluster.master)

    assert REFUSED in answer_to_a_stranger(address.hostname, address.port)
