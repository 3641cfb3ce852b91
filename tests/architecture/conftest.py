"""The files of the repository, as git sees them: their name from the root, and their path."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def git_files(*options: str) -> dict[str, Path]:
    answer = subprocess.run(["git", "ls-files", "-z", *options], cwd=ROOT, capture_output=True, check=False)
    if answer.returncode != 0:
        pytest.skip("not a git checkout")
    names = sorted({name for name in answer.stdout.decode().split("\0") if name})
    return {name: ROOT / name for name in names if (ROOT / name).is_file()}


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tracked() -> dict[str, Path]:
    """Files that are committed or staged."""
    return git_files()


@pytest.fixture(scope="session")
def python_files() -> dict[str, Path]:
    """Every Python file of ours, new ones that are not yet added included."""
    return git_files("--cached", "--others", "--exclude-standard", "*.py")


@pytest.fixture(scope="session")
def shipped(python_files: dict[str, Path]) -> dict[str, Path]:
    """The Python files that are not tests."""
    return {name: path for name, path in python_files.items() if not name.startswith("tests/")}
