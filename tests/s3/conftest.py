"""One object store and one Spark session for the tier; between the two a store that can be told to fail."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "spark"))

from another_driver import AnotherDriver  # type: ignore[import-not-found]
from chain import Chain  # type: ignore[import-not-found]
from faulty_store import FaultyStore  # type: ignore[import-not-found]

from artifacts.spark_conf import write_spark_conf
from artifacts.spark_files import DEFAULTS_FILE
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.config.settings import Role, connection_from_environment
from cdc_lakehouse.config.storage_settings import StorageSettings, storage_settings
from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE
from certificates import authority  # type: ignore[import-not-found]
from local_stack import LocalStack, RunningStack
from local_stack.object_store import BUCKET, REGION, USER
from small_tables import SMALL  # type: ignore[import-not-found]

INCLUDE = Path(__file__).parents[2] / "include"
SETTINGS = {
    **SMALL,
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
}


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s3")


@pytest.fixture(scope="session")
def stack(home: Path) -> Iterator[RunningStack]:
    """The object store alone."""
    with LocalStack(home / "stack", object_store=True).running("object-store", airflow=False) as running:
        yield running


@pytest.fixture(scope="session")
def faulty(stack: RunningStack, home: Path) -> Iterator[FaultyStore]:
    """Every request of the tier goes through TLS with a certificate of a private authority."""
    address, password = stack.site.address("object-store"), stack.site.secrets.object_store
    certificate = authority().server().files_in(home)
    store = FaultyStore(address, login=USER, password=password, certificate=certificate)
    yield store
    store.close()


@pytest.fixture(scope="session")
def connection(stack: RunningStack, faulty: FaultyStore) -> Iterator[str]:
    """As a job finds it in its environment: the JVM and its workers start with it."""
    document = {
        "login": USER,
        "password": stack.site.secrets.object_store,
        "extra": {
            "root": f"s3a://{BUCKET}/tests",
            "endpoint": faulty.endpoint,
            "region": REGION,
            "ca_pem": authority().pem,
        },
    }
    os.environ[ENV_CONNECTION_STORAGE] = json.dumps(document)
    yield os.environ[ENV_CONNECTION_STORAGE]
    del os.environ[ENV_CONNECTION_STORAGE]


@pytest.fixture(scope="session")
def storage(connection: str) -> StorageSettings:
    return storage_settings(connection_from_environment(Role.STORAGE))


@pytest.fixture(scope="session")
def engine(home: Path, storage: StorageSettings) -> Iterator[LazySession]:
    conf = write_spark_conf(home / "conf", object_store=True)
    with (conf / DEFAULTS_FILE).open("a", encoding="utf-8") as defaults:
        defaults.writelines(f"{name} {value}\n" for name, value in SETTINGS.items())
    os.environ["SPARK_CONF_DIR"] = str(conf)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_DIRS"] = str(home / "local")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(INCLUDE), os.environ.get("PYTHONPATH", "")])
    engine = LazySession("tests", storage=storage)
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def another(engine: LazySession) -> Iterator[AnotherDriver]:
    """Of the same settings and login."""
    driver = AnotherDriver()
    yield driver
    driver.kill()


@pytest.fixture
def chain(engine: LazySession, storage: StorageSettings) -> Chain:
    """An empty lake with its own pipeline."""
    return Chain(engine, root=f"{storage.root}/{secrets.token_hex(4)}")
