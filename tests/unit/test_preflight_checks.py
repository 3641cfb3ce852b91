"""One problem does not hide the next: file, Kafka, registry and lake are each tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_lakehouse.config.storage_settings import StorageSettings
from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE, ENV_PIPELINES, ExitCode
from cdc_lakehouse.preflight.__main__ import app
from cdc_lakehouse.preflight.checks import check_pipeline
from cdc_lakehouse.preflight.lake import lake_finding

PIPELINES = Path(__file__).parents[2] / "include" / "pipelines"


def test_a_missing_pipeline_ends_the_check():
    findings = list(check_pipeline("nope", folder=PIPELINES, environ={}))

    assert [(found.subject, found.exit_code) for found in findings] == [("pipeline nope", ExitCode.CONFIG)]


def test_every_missing_connection_is_named():
    findings = list(check_pipeline("shop", folder=PIPELINES, environ={}))

    assert [(found.level, found.subject) for found in findings] == [
        ("ok", "pipeline shop"),
        ("problem", "kafka"),
        ("problem", "registry"),
        ("problem", "lake"),
        ("problem", "source"),
        ("note", "connect"),
    ]
    assert "CDC_LAKEHOUSE_CONN_REGISTRY" in findings[2].sentence


def test_without_a_connection_the_source_is_missed_only_where_a_table_needs_it(tmp_path):
    text = (PIPELINES / "shop.yaml").read_text()
    (tmp_path / "shop.yaml").write_text(text.replace("  verify: true", "").replace("  fresh_within: 1h", ""))
    findings = list(check_pipeline("shop", folder=tmp_path, environ={}))

    assert "source" not in [found.subject for found in findings]


def test_the_secret_of_masks_is_asked_for_only_where_a_table_hashes(tmp_path):
    text = (PIPELINES / "shop.yaml").read_text()
    topic = "topics: [shop.public.orders]"
    (tmp_path / "shop.yaml").write_text(
        text.replace(topic, f"{topic}\n    columns: {{mask: {{note: hash}}}}")
    )
    connection = {"extra": {"root": f"file://{tmp_path}"}}
    findings = check_pipeline(
        "shop", folder=tmp_path, environ={ENV_CONNECTION_STORAGE: json.dumps(connection)}
    )

    assert [found.sentence for found in findings if found.subject == "masks"] == [
        f"the connection {ENV_CONNECTION_STORAGE} is not usable: its extra has no `mask_secret`, "
        "and a table's `columns.mask` asks for a hash"
    ]


def test_a_lake_that_exists_is_tried_and_left_empty(tmp_path):
    finding = lake_finding(StorageSettings(f"file://{tmp_path}"))

    assert (finding.level, finding.sentence) == ("ok", f"file://{tmp_path} can be written")
    assert list(tmp_path.iterdir()) == []


def test_a_lake_that_does_not_exist_is_not_made(tmp_path):
    finding = lake_finding(StorageSettings(f"file://{tmp_path}/a/lake"))

    assert finding.sentence == f"file://{tmp_path}/a/lake can be written, made by the first run"
    assert list(tmp_path.iterdir()) == []


def test_a_lake_that_is_a_file_is_a_problem(tmp_path):
    (tmp_path / "lake").touch()

    assert lake_finding(StorageSettings(f"file://{tmp_path}/lake")).exit_code is ExitCode.RETRY


def test_the_command_answers_with_the_exit_code(tmp_path, monkeypatch):
    monkeypatch.setenv(ENV_PIPELINES, str(PIPELINES))
    monkeypatch.setenv(ENV_CONNECTION_STORAGE, json.dumps({"extra": {"root": f"file://{tmp_path}"}}))
    for role in ("KAFKA", "REGISTRY", "SOURCE"):
        monkeypatch.delenv(f"CDC_LAKEHOUSE_CONN_{role}", raising=False)

    result = CliRunner().invoke(app, ["shop"])

    assert result.exit_code == 78
    assert result.output.splitlines()[-1] == "shop is not ready: 3 problems, 0 warnings"


@pytest.mark.parametrize(("name", "code"), [("nope", 78), ("Nope!", 78)])
def test_a_name_that_is_wrong_is_a_sentence(name, code):
    result = CliRunner().invoke(app, [name])

    assert result.exit_code == code
    assert "Traceback" not in result.output
