"""The two files that a new pipeline starts with: its YAML and its DAG file."""

from __future__ import annotations

import re
from pathlib import Path

from cdc_lakehouse.config.settings import pipelines_folder
from cdc_lakehouse.config.values import NAME_PATTERN
from cdc_lakehouse.errors import InvalidPipelineError

_PIPELINE = """\
# yaml-language-server: $schema=schema.json
#
# include/pipelines/shop.yaml explains every line. When this file is filled in:
# `make check PIPELINE={name}` tries it and every connection without running anything.

version: 1
name: {name}
owner: data-platform # who is called when a task stays red

schedule: "*/15 * * * *"
timezone: UTC
start_date: {start_date}

# One entry per source table. Debezium names topics <topic.prefix>.<schema>.<table>.
tables:
  - name: my_table
    topics: [{name}.public.my_table]
"""

_DAG_FILE = '''\
"""Airflow DAGs of the pipeline `{name}` (include/pipelines/{name}.yaml): micro-batches and maintenance."""

from cdc_lakehouse.orchestration.pipeline_dag import build_pipeline_dags

cdc_{name}, cdc_{name}_maintenance = build_pipeline_dags("{name}")
'''


def dag_file_text(name: str) -> str:
    """What `dags/cdc_<name>.py` holds: nothing but the call of the builder."""
    return _DAG_FILE.format(name=name)


def pipeline_file_text(name: str, *, start_date: str) -> str:
    """A pipeline of one table that is valid as it stands."""
    return _PIPELINE.format(name=name, start_date=start_date)


def write_new_pipeline(
    name: str, *, start_date: str, pipelines: Path | None = None, dags: Path | None = None
) -> tuple[Path, Path]:
    """Write both files. Refuses a name that is not one and files that exist; then nothing is written."""
    home = pipelines if pipelines is not None else pipelines_folder()
    dags_home = dags if dags is not None else home.parents[1] / "dags"
    pipeline_path, dag_path = home / f"{name}.yaml", dags_home / f"cdc_{name}.py"
    problem = _problem_with(name, pipeline_path, dag_path)
    if problem is not None:
        raise InvalidPipelineError(file=str(pipeline_path), where="", problem=problem)
    pipeline_path.write_text(pipeline_file_text(name, start_date=start_date), encoding="utf-8")
    dag_path.write_text(dag_file_text(name), encoding="utf-8")
    return pipeline_path, dag_path


def _problem_with(name: str, *paths: Path) -> str | None:
    if not re.fullmatch(NAME_PATTERN, name):
        return f"{name!r} is not a name: a small letter first, then small letters, digits and '_', 63 at most"
    if name.endswith("_maintenance"):
        return f"{name!r} would take the DAG id that another pipeline's maintenance has"
    taken = [path for path in paths if path.exists()]
    if taken:
        return f"{taken[0]} exists already; nothing was written"
    homeless = [path.parent for path in paths if not path.parent.is_dir()]
    return f"there is no folder {homeless[0]}" if homeless else None
