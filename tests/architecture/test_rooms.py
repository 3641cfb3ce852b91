"""The rooms of the house, and which way imports point."""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePath

import pytest
from importlinter.cli import lint_imports

from cdc_lakehouse.config.loader import pipeline_files
from cdc_lakehouse.config.starter import dag_file_text

TOP_LEVEL = {
    ".ci", ".dockerignore", ".gitattributes", ".gitignore",
    "CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "LICENSE", "Makefile", "README.md",
    "dags", "docker-compose.yml", "include", "plugins", "pyproject.toml",
    "requirements.lock", "requirements.txt", "spark_jobs", "tests",
}  # fmt: skip
INCLUDE = {"artifacts", "cdc_lakehouse", "docker", "docs", "local_stack", "log_store", "pipelines"}
PACKAGE = "include/cdc_lakehouse/"


@pytest.fixture
def layers(root: Path) -> set[str]:
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each.get("containers") == ["cdc_lakehouse"])
    return {room.strip() for line in contract["layers"] for room in line.split("|")}


def test_the_top_level_is_fixed(tracked):
    assert {PurePath(name).parts[0] for name in tracked} - TOP_LEVEL == set()


def test_the_folders_of_include_are_fixed(tracked):
    inside = {PurePath(name).parts[1] for name in tracked if name.startswith("include/")}

    assert inside - INCLUDE == set()


def test_every_room_of_the_package_has_its_layer(layers, shipped):
    rooms = {PurePath(name).parts[2].removesuffix(".py") for name in shipped if name.startswith(PACKAGE)}

    assert rooms - {"__init__"} == layers


def test_imports_point_one_way(root):
    assert lint_imports(config_filename=str(root / "pyproject.toml"), no_cache=True) == 0


def test_every_pipeline_has_its_dag_file_and_every_dag_file_its_pipeline(root):
    pipelines = [path.stem for path in pipeline_files(root / "include" / "pipelines")]
    dags = sorted(path.stem for path in (root / "dags").glob("*.py"))

    assert dags == [f"cdc_{name}" for name in pipelines]


def test_every_dag_file_is_what_the_starter_writes(root):
    dags = {path.stem: path.read_text() for path in (root / "dags").glob("*.py")}

    assert dags == {stem: dag_file_text(stem.removeprefix("cdc_")) for stem in dags}
