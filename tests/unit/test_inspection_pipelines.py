"""A pipeline file that is wrong hides no other from whoever looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE, ENV_PIPELINES, ExitCode
from cdc_lakehouse.inspection.__main__ import app

SHOP = """
version: 1
name: shop
owner: tests
schedule: "0 * * * *"
start_date: 2026-01-01
tables:
  - {name: orders, topics: [shop.public.orders]}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.yaml").write_text(SHOP)
    monkeypatch.setenv(ENV_PIPELINES, str(tmp_path))
    monkeypatch.setenv(ENV_CONNECTION_STORAGE, json.dumps({"extra": {"root": f"file://{tmp_path}/lake"}}))


QUERY = ["sql", "--query", ".tables"]


@pytest.mark.parametrize(
    ("command", "expected"), [(["tables"], "orders"), (["quarantine"], "0 records"), (QUERY, "silver.orders")]
)
def test_the_others_are_shown_and_the_broken_one_is_named(command, expected, tmp_path):
    (tmp_path / "billing.yaml").write_text("version: 1\ntables: nonsense\n")

    answer = CliRunner().invoke(app, command)

    assert answer.exit_code == ExitCode.CONFIG
    assert expected in answer.stdout
    assert "not shown: " in answer.stderr
    assert "billing.yaml" in answer.stderr


@pytest.mark.parametrize("command", [["tables"], ["quarantine"], QUERY])
def test_without_a_broken_one_nothing_is_told(command):
    answer = CliRunner().invoke(app, command)

    assert (answer.exit_code, answer.stderr) == (0, "")
