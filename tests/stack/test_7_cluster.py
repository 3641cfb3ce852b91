"""The same jobs on a Spark cluster with the lake in a bucket: `guarantees` promises no less there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_cluster import BIN, Cluster, running_cluster  # type: ignore[import-not-found]

from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE, ENV_RESULT, Job, JobResult
from local_stack import LocalStack, RunningStack
from local_stack.proof import compare_pipeline

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
    result = folder / f"{job}.json"
    answer = subprocess.run(
        [str(BIN / "spark-submit"), "--master", cluster.master, *SMALL, str(SPARK_JOBS / f"{job}.py"),
         "--pipeline", "shop"],
        env={**environment, ENV_RESULT: str(result)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout[-4000:]
    return JobResult.from_json(result.read_text()), answer.stdout


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
    assert bucket.site.secrets.object_store not in printed
    assert stack.site.secrets.kafka not in cluster.printed()
