"""A standalone Spark cluster out of pyspark's wheel: a master and one worker, on loopback."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import httpx

from artifacts.ivy import pyspark_jars
from local_stack.component import plain_environment
from local_stack.ports import LOOPBACK, choose_ports
from local_stack.process import Launch, ProcessRecord, last_words, spawn, stop, wait_until

BIN = pyspark_jars().parent / "bin"
LISTENERS = {"spark-master": 7077, "spark-master-ui": 8180, "spark-worker": 7078, "spark-worker-ui": 8181}
SECONDS = 90.0


@dataclass(frozen=True)
class Cluster:
    master: str
    secret: str
    """What it asks of those who talk to it."""
    work: Path
    """Where the worker keeps what its executors print."""

    def printed(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.work.rglob("std*")))


@contextmanager
def running_cluster(folder: Path, *, environment: Mapping[str, str]) -> Iterator[Cluster]:
    """`environment` is the worker's, and so its executors'."""
    folder.mkdir(parents=True, exist_ok=True)
    ports = choose_ports({}, listeners=LISTENERS, seed=str(folder)).ports
    master = f"spark://{LOOPBACK}:{ports['spark-master']}"
    secret = token_hex(16)
    flags = ("authenticate=true", "network.crypto.enabled=true", "master.rest.enabled=false")
    common = {
        **environment,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join(f"-Dspark.{flag}" for flag in flags),
        "_SPARK_AUTH_SECRET": secret,
    }
    work = ["--cores", "2", "--memory", "2g", "--work-dir", str(folder / "work"), master]
    records: list[ProcessRecord] = []
    try:
        for name, last in (("master", ["--host", LOOPBACK]), ("worker", ["--host", LOOPBACK, *work])):
            port, ui = ports[f"spark-{name}"], ports[f"spark-{name}-ui"]
            command = [
                str(BIN / "spark-class"),
                f"org.apache.spark.deploy.{name}.{name.capitalize()}",
                *("--port", str(port), "--webui-port", str(ui), *last),
            ]
            launch = Launch(command, plain_environment(**common), folder)
            records.append(spawn(launch, log=folder / f"{name}.log", owned=True)[1])
        address = f"http://{LOOPBACK}:{ports['spark-master-ui']}/json/"
        assert wait_until(lambda: _workers(address) == 1, SECONDS), last_words(folder / "worker.log")
        yield Cluster(master, secret, folder / "work")
    finally:
        for record in reversed(records):
            stop(record, stop_signal=signal.SIGTERM, patience=20.0)


def _workers(address: str) -> int:
    try:
        return int(httpx.get(address, timeout=2, trust_env=False).json()["aliveworkers"])
    except (httpx.HTTPError, ValueError):
        return 0
