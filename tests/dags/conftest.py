"""Fixtures of this tier; the first import sets the environment before any test imports Airflow."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from airflow_home import HOME  # type: ignore[import-not-found]

from cdc_lakehouse.orchestration import idle_check


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's metadata, made once; only tests that look up what is not in the environment need it."""
    airflow = [sys.executable, "-m", "airflow"]
    subprocess.run([*airflow, "db", "migrate"], check=True, capture_output=True)


@pytest.fixture(scope="session", autouse=True)
def _removed_home() -> Iterator[None]:
    yield
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _no_look() -> Iterator[None]:
    """Jobs start at once: what stands in for them decides what they say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_check, "LOOKS", {})
        yield
