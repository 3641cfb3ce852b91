"""Fixtures of this tier; the first import sets the environment before any test imports Airflow."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from airflow_home import HOME  # type: ignore[import-not-found]


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's metadata, made once; only tests that look up what is not in the environment need it."""
    airflow = [sys.executable, "-m", "airflow"]
    subprocess.run([*airflow, "db", "migrate"], check=True, capture_output=True)


@pytest.fixture(scope="session", autouse=True)
def _removed_home() -> Iterator[None]:
    yield
    shutil.rmtree(HOME, ignore_errors=True)
