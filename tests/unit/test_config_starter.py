"""A new pipeline starts from two files that are valid as they stand."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cdc_lakehouse.config.__main__ import app
from cdc_lakehouse.config.loader import load_pipeline
from cdc_lakehouse.config.starter import dag_file_text, write_new_pipeline
from cdc_lakehouse.contract import ENV_PIPELINES
from cdc_lakehouse.errors import InvalidPipelineError


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A project folder like ours: `include/pipelines` and `dags`."""
    pipelines = tmp_path / "include" / "pipelines"
    pipelines.mkdir(parents=True)
    (tmp_path / "dags").mkdir()
    monkeypatch.setenv(ENV_PIPELINES, str(pipelines))
    return tmp_path


def test_the_starter_is_a_valid_pipeline(home):
    pipeline_path, _ = write_new_pipeline("billing", start_date="2026-02-03")
    pipeline = load_pipeline(pipeline_path)

    assert pipeline.name == "billing"
    assert [(table.name, table.topics) for table in pipeline.tables] == [
        ("my_table", ("billing.public.my_table",))
    ]


def test_the_dag_file_is_one_builder_call_that_airflow_discovers(home):
    _, dag_path = write_new_pipeline("billing", start_date="2026-02-03")

    assert dag_path == home / "dags" / "cdc_billing.py"
    assert dag_path.read_text() == dag_file_text("billing")
    assert b"airflow" in dag_path.read_bytes().lower()
    compile(dag_path.read_text(), "cdc_billing.py", "exec")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "Billing",
            "'Billing' is not a name: a small letter first, then small letters, digits and '_', 63 at most",
        ),
        (
            "../x",
            "'../x' is not a name: a small letter first, then small letters, digits and '_', 63 at most",
        ),
        ("a_maintenance", "'a_maintenance' would take the DAG id that another pipeline's maintenance has"),
    ],
)
def test_a_bad_name_writes_nothing(home, name, problem):
    with pytest.raises(InvalidPipelineError) as caught:
        write_new_pipeline(name, start_date="2026-02-03")

    assert caught.value.problem == problem
    assert [path for path in home.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("existing", ["include/pipelines/billing.yaml", "dags/cdc_billing.py"])
def test_a_file_that_exists_is_never_overwritten(home, existing):
    (home / existing).write_text("mine")

    with pytest.raises(InvalidPipelineError) as caught:
        write_new_pipeline("billing", start_date="2026-02-03")

    assert caught.value.problem == f"{home / existing} exists already; nothing was written"
    assert [path.read_text() for path in home.rglob("*") if path.is_file()] == ["mine"]


def test_a_missing_dags_folder_is_named(home):
    (home / "dags").rmdir()

    with pytest.raises(InvalidPipelineError) as caught:
        write_new_pipeline("billing", start_date="2026-02-03")

    assert caught.value.problem == f"there is no folder {home / 'dags'}"


def test_the_command_says_what_it_wrote_and_what_comes_next(home):
    result = CliRunner().invoke(app, ["new-pipeline", "billing"])

    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"wrote {home / 'include' / 'pipelines' / 'billing.yaml'}",
        f"wrote {home / 'dags' / 'cdc_billing.py'}",
        "next: fill in the tables, then `make check PIPELINE=billing`",
    ]


def test_a_refused_command_exits_78_with_a_sentence(home):
    result = CliRunner().invoke(app, ["show", "nope"])

    assert result.exit_code == 78
    assert "there is no such file; pipelines here: none" in result.output
    assert "Traceback" not in result.output


def test_show_prints_the_pipeline_with_its_defaults(home):
    write_new_pipeline("billing", start_date="2026-02-03")

    result = CliRunner().invoke(app, ["show", "billing"])

    assert result.exit_code == 0
    assert '"execution_timeout": "2h"' in result.output
