"""What is asked for, what is locked and what is installed agree."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*])?==([^\s;#\\]+)", re.MULTILINE)


def pins(text: str) -> dict[str, str]:
    """Name, in the one spelling of PyPI -> version."""
    return {re.sub(r"[-_.]+", "-", name).lower(): pin for name, pin in PIN.findall(text)}


@pytest.fixture
def asked(root: Path) -> str:
    return (root / "requirements.txt").read_text()


@pytest.fixture
def lock(root: Path) -> str:
    return (root / "requirements.lock").read_text()


@pytest.fixture
def development(root: Path) -> str:
    project = tomllib.loads((root / "pyproject.toml").read_text())
    return "\n".join(project["dependency-groups"]["dev"])


def test_every_requirement_is_pinned_exactly(asked, development):
    lines = [line for line in (asked + development).splitlines() if line.strip() and not line.startswith("#")]

    assert [line for line in lines if not PIN.match(line)] == []


def test_the_lock_has_every_requirement_in_the_version_asked_for(asked, lock, development):
    wanted, locked = pins(asked) | pins(development), pins(lock)

    assert {name: locked.get(name) for name in wanted} == wanted


def test_every_locked_package_has_hashes(lock):
    packages = [block for block in re.split(r"\n(?=[A-Za-z0-9])", lock.strip()) if "==" in block]

    assert [block.splitlines()[0] for block in packages if "--hash=sha256:" not in block] == []


def test_pyspark_and_its_client_share_a_folder_and_so_a_version(asked, lock):
    assert pins(asked)["pyspark"] == pins(asked)["pyspark-client"]
    assert pins(lock)["pyspark"] == pins(lock)["pyspark-client"]


def test_this_environment_is_the_one_asked_for(asked):
    wanted = pins(asked)

    assert {name: version(name) for name in wanted} == wanted
