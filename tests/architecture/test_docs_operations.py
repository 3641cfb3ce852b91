"""The runbook is complete: each error and exit code has its line; sections that code cites exist."""

from __future__ import annotations

import re

import pytest
from docs_files import OPERATIONS, ROOT, documents, error_table  # type: ignore[import-not-found]

from cdc_lakehouse.avro.faults import AvroFault, ValueFault
from cdc_lakehouse.config.settings import _EXTRA_KEYS, Role
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.debezium.faults import EventFault
from cdc_lakehouse.orchestration.runbook import error_classes

CITED = re.compile(r"`?(cdc-semantics|guarantees|architecture)`? §(\d+)(?:\.(\d+))?")


def code_files() -> dict[str, str]:
    folders = ("include", "tests", "dags", "plugins", "spark_jobs")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def test_the_table_of_error_codes_is_what_the_errors_say():
    lines = OPERATIONS.read_text().splitlines()
    rows = [line for line in lines if re.match(r"\| `[A-Z_]+` \| \d+ \|", line)]

    assert [row for row in rows if not row.startswith("| `BUG` |")] == error_table()


def test_the_runbook_names_no_error_code_that_does_not_exist():
    known = {error.code for error in error_classes()} | {"BUG"}

    assert set(re.findall(r"`([A-Z]+_[A-Z_]+)`", OPERATIONS.read_text())) - known == set()


@pytest.mark.parametrize("name", ["README.md", "include/docs/architecture.md", "include/docs/operations.md"])
def test_every_exit_code_has_its_line(name):
    lines = documents()[name].splitlines()
    wanted = [code.value for code in ExitCode if not (name == "README.md" and code is ExitCode.DONE)]

    assert [code for code in wanted if not any(line.startswith(f"| {code} |") for line in lines)] == []


def test_every_reason_of_an_undecodable_record_has_its_line():
    lines = OPERATIONS.read_text().splitlines()
    codes = [*AvroFault, *ValueFault, *EventFault]

    assert [code for code in codes if not any(line.startswith(f"| `{code}` |") for line in lines)] == []


def test_the_readme_names_every_extra_that_a_connection_takes():
    rows = documents()["README.md"].splitlines()
    unused = {"endpoint", "region"}  # for object stores, which are refused

    for role in Role:
        (row,) = [line for line in rows if line.startswith(f"| `lakehouse_{role}` |")]
        assert {key for key in _EXTRA_KEYS[role] if f"`{key}`" not in row} <= unused


def test_every_section_that_code_cites_exists():
    files = {name: (ROOT / f"include/docs/{name}.md").read_text() for name in
             ("cdc-semantics", "guarantees", "architecture")}  # fmt: skip
    missing = [
        (path, document, section)
        for path, text in code_files().items()
        for document, section, _ in CITED.findall(text)
        if f"\n## {section}. " not in files[document]
    ]

    assert missing == []
