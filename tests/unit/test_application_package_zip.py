"""What the executors of a cluster run is what the driver runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cdc_lakehouse
from cdc_lakehouse.application.package_zip import write_package_zip

PACKAGE = Path(cdc_lakehouse.__file__).parent


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """As in another clone, at another time, with what an import leaves behind."""
    target = shutil.copytree(PACKAGE, tmp_path / "clone" / PACKAGE.name)
    for path in target.rglob("*.py"):
        os.utime(path, (1, 1))
    return target


def test_the_same_code_makes_the_same_file(tmp_path, copied):
    ours, theirs = tmp_path / "a", tmp_path / "b"
    ours.mkdir()
    theirs.mkdir()

    first, second = write_package_zip(ours), write_package_zip(theirs, package=copied)

    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_other_code_has_another_name(tmp_path, copied):
    before = write_package_zip(tmp_path, package=copied)
    with (copied / "log.py").open("a") as changed:
        changed.write("\n")

    assert write_package_zip(tmp_path, package=copied) != before


def test_a_worker_imports_from_it(tmp_path):
    zipped = write_package_zip(tmp_path)
    code = "import cdc_lakehouse.bronze.decode_udf as m; print(m.__file__)"

    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(zipped)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout.startswith(f"{zipped}/cdc_lakehouse/")
