"""The passwords of this very stack appear nowhere but where they must."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def passwords(chain) -> dict[str, bytes]:
    return {name: value.encode() for name, value in asdict(chain.stack.site.secrets).items()}


def holding(passwords: dict[str, bytes], texts: Iterable[tuple[str, bytes]]) -> list[tuple[str, str]]:
    return [(place, name) for place, text in texts for name, value in passwords.items() if value in text]


def files(folder: Path) -> list[tuple[str, bytes]]:
    found = [(str(path), path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]
    assert found, f"nothing to search in {folder}"
    return found


def test_no_command_line_holds_a_password(chain, passwords):
    submitted = [line for line in chain.command_lines if "org.apache.spark.deploy.SparkSubmit" in line]

    assert submitted != []
    assert holding(passwords, ((line, line.encode()) for line in chain.command_lines)) == []


def test_no_task_log_holds_a_password(chain, passwords):
    assert holding(passwords, files(chain.stack.site.layout.data("airflow") / "logs")) == []


def test_no_component_log_holds_a_password(chain, passwords):
    assert holding(passwords, files(chain.stack.site.layout.root / "logs")) == []


def test_no_rendered_field_or_xcom_holds_a_password(chain, passwords):
    shown = []
    for run in chain.runs:
        for task in chain.airflow.tasks(run.dag_id, run.run_id):
            value = chain.airflow.xcom(run.dag_id, run.run_id, task.task_id)
            shown.append((task.task_id, json.dumps([dict(task.rendered), value]).encode()))

    assert shown != []
    assert holding(passwords, shown) == []


def test_nothing_in_the_lake_holds_a_password(chain, passwords):
    """Data, Delta logs, run reports, scratch checkpoints."""
    lake = chain.stack.site.layout.lake
    kinds = {"bronze", "silver", "_ops"}

    assert kinds == {path.name for path in lake.iterdir()}
    assert list((lake / "_ops" / "shop" / "checkpoints").iterdir()) != []
    assert holding(passwords, files(lake)) == []


def test_no_connector_setting_holds_a_password(chain, passwords):
    with chain.stack.connect.client() as client:
        shown = client.get("/connectors", params={"expand": "info"}).content

    assert holding(passwords, [("connectors", shown)]) == []


def test_no_tracked_file_holds_a_password(passwords):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=False).stdout
    tracked = [PROJECT / name for name in names.decode().split("\0") if name]

    assert holding(passwords, ((str(path), path.read_bytes()) for path in tracked if path.is_file())) == []
