"""Nobody else on the machine talks to the engine of a job, or reads what it puts aside."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from stranger import REFUSED, answer_to_a_stranger  # type: ignore[import-not-found]


@pytest.fixture
def java(spark) -> Any:
    return spark.sparkContext._jvm


@pytest.fixture
def env(java) -> Any:
    return java.org.apache.spark.SparkEnv.get()


def test_the_ports_of_the_engine_answer_to_none_without_its_secret(env):
    driver, blocks = env.rpcEnv().address(), env.blockManager().blockManagerId()

    for host, port in ((driver.host(), driver.port()), (blocks.host(), blocks.port())):
        assert REFUSED in answer_to_a_stranger(host, port)


def test_shuffle_files_are_where_nobody_else_may_enter(spark, env):
    spark.range(1000).repartition(4).groupBy("id").count().collect()

    (folder,) = (Path(each.getPath()) for each in env.blockManager().diskBlockManager().localDirs())
    assert [path for path in folder.rglob("*") if path.is_file()]
    assert is_private(folder)


def test_files_on_their_way_to_a_bucket_are_where_nobody_else_may_enter(spark):
    folder = Path(spark.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.buffer.dir"))

    assert folder.name == "s3a"
    assert is_private(folder.parent)


def test_an_executor_keeps_such_files_beside_its_shuffle_files(spark, java):
    """Each process puts a variable of its own environment into the setting."""
    conf = java.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
    conf.set("fs.s3a.buffer.dir", conf.getRaw("fs.s3a.buffer.dir").replace("SPARK_EXECUTOR_DIRS", "HOME"))

    assert conf.get("fs.s3a.buffer.dir") == f"{os.environ['HOME']}/s3a"


def test_sockets_of_workers_are_where_nobody_else_may_enter(spark):
    assert is_private(Path(spark.sparkContext.getConf().get("spark.python.unix.domain.socket.dir")))


def is_private(folder: Path) -> bool:
    found = folder.stat()
    return stat.S_IMODE(found.st_mode) == 0o700 and found.st_uid == os.geteuid()
