"""One Spark session for the tier, on settings and folders of its own; the JVM starts after they are set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from chain import Chain  # type: ignore[import-not-found]
from pyspark.sql import SparkSession

from artifacts.spark_conf import write_spark_conf
from artifacts.spark_files import DEFAULTS_FILE
from cdc_lakehouse.application.session import LazySession
from small_tables import SMALL  # type: ignore[import-not-found]

INCLUDE = Path(__file__).parents[2] / "include"
SETTINGS = {
    **SMALL,
    "spark.master": "local[2,2]",  # a task that fails is tried once more, as on a cluster
}


SHARED_IN = "SPARK_TIER_SHARED_IN"
"""A folder, where several processes run the tier together."""


def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """True: nothing is left to do."""
    return None if _is_ours(f"{item.path.parent.name}-{item.path.stem}") else True


@cache
def _is_ours(module: str) -> bool:
    """Each file is run by the process that comes to it first."""
    folder = os.environ.get(SHARED_IN)
    if not folder:
        return True
    try:
        (Path(folder) / module).mkdir()
    except FileExistsError:
        return False
    return True


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def engine(home: Path) -> Iterator[LazySession]:
    conf = write_spark_conf(home / "conf")
    with (conf / DEFAULTS_FILE).open("a", encoding="utf-8") as defaults:
        defaults.writelines(f"{name} {value}\n" for name, value in SETTINGS.items())
    os.environ["SPARK_CONF_DIR"] = str(conf)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_DIRS"] = str(home / "local")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(INCLUDE), os.environ.get("PYTHONPATH", "")])
    engine = LazySession("tests")
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def spark(engine: LazySession) -> SparkSession:
    return engine.session()


@pytest.fixture
def chain(engine: LazySession, tmp_path: Path) -> Chain:
    """An empty lake with its own pipeline."""
    return Chain(engine, root=tmp_path.as_uri())
