"""`python -m cdc_lakehouse.config`: new-pipeline, schema, show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import typer

from cdc_lakehouse.config.loader import find_pipeline
from cdc_lakehouse.config.schema import write_schema
from cdc_lakehouse.config.starter import write_new_pipeline
from cdc_lakehouse.errors import LakehouseError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Pipeline files.")


@contextmanager
def _sentences() -> Iterator[None]:
    """A refusal is one sentence and its exit code, not a traceback."""
    try:
        yield
    except LakehouseError as error:
        typer.echo(f"{error}\n{error.advice}", err=True)
        raise typer.Exit(error.exit_code) from error


@app.command("new-pipeline")
def new_pipeline(name: str) -> None:
    """Write include/pipelines/NAME.yaml and dags/cdc_NAME.py."""
    with _sentences():
        for path in write_new_pipeline(name, start_date=datetime.now(UTC).date().isoformat()):
            typer.echo(f"wrote {path}")
    typer.echo(f"next: fill in the tables, then `make check PIPELINE={name}`")


@app.command("schema")
def schema() -> None:
    """Write include/pipelines/schema.json from the models."""
    typer.echo(f"wrote {write_schema()}")


@app.command("show")
def show(name: str) -> None:
    """Print a pipeline as it is understood, with every default filled in."""
    with _sentences():
        typer.echo(find_pipeline(name).model_dump_json(indent=2))


if __name__ == "__main__":
    app()
