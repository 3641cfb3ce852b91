"""`python -m cdc_lakehouse.inspection`: tables, quarantine, sql."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

import typer

from cdc_lakehouse.config.loader import load_pipeline, pipeline_files
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.config.settings import Role, connection_from_environment, optional_connection
from cdc_lakehouse.config.storage_settings import storage_root
from cdc_lakehouse.connect.connectors import Connector, connectors_by_prefix, read_connectors
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors import InvalidPipelineError, LakehouseError
from cdc_lakehouse.inspection.catalog import Catalog
from cdc_lakehouse.inspection.overview import overview
from cdc_lakehouse.inspection.printing import print_overview, print_quarantine, print_rows
from cdc_lakehouse.inspection.prompt import prompt
from cdc_lakehouse.inspection.quarantine import quarantine
from cdc_lakehouse.inspection.query import LakeQueries, QueryRefusedError
from cdc_lakehouse.lake.discovered import with_tables_of_the_lake
from cdc_lakehouse.redaction import printable_lines

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Look into the lake without Spark.",
)


@dataclass(slots=True)
class _Pipelines:
    """The pipelines, each with the tables that it has discovered, and the files that cannot be read."""

    root: str
    usable: list[Pipeline] = field(default_factory=list)
    broken: list[LakehouseError] = field(default_factory=list)

    @classmethod
    def read(cls) -> _Pipelines:
        """Read every pipeline file. An invalid file does not hide the others."""
        pipelines = cls(storage_root(connection_from_environment(Role.STORAGE)))
        for path in pipeline_files():
            try:
                pipelines.usable.append(with_tables_of_the_lake(load_pipeline(path), root=pipelines.root))
            except InvalidPipelineError as error:
                pipelines.broken.append(error)
        return pipelines

    def report_broken(self) -> None:
        """Print invalid files on standard error and end with 78: the answer above lacks their tables."""
        for error in self.broken:
            typer.echo(f"not shown: {error}\n{error.advice}", err=True)
        if self.broken:
            raise typer.Exit(ExitCode.CONFIG)


@contextmanager
def _sentences() -> Iterator[None]:
    """A refusal is one sentence and its exit code, not a traceback."""
    try:
        yield
    except LakehouseError as error:
        typer.echo(f"{error}\n{error.advice}", err=True)
        raise typer.Exit(error.exit_code) from error
    except QueryRefusedError as error:
        typer.echo(printable_lines(f"error: {error}"), err=True)
        raise typer.Exit(1) from error


def _ask_connectors() -> Mapping[str, Connector] | None:
    """Return connectors by their topic prefix; None without a connection or an answer of Kafka Connect."""
    try:
        connection = optional_connection(Role.CONNECT)
        return None if connection is None else connectors_by_prefix(read_connectors(connection))
    except LakehouseError as error:
        typer.echo(f"{error}\n{error.advice}", err=True)
        return None


@app.command()
def tables() -> None:
    """Every table of every pipeline: last ingest and merge, how far it is, what went wrong last."""
    with _sentences():
        connectors, pipelines = _ask_connectors(), _Pipelines.read()
        overviews = overview(pipelines.root, pipelines.usable, now=datetime.now(UTC), connectors=connectors)
        print_overview(overviews)
        pipelines.report_broken()


@app.command("quarantine")
def list_quarantine() -> None:
    """Records that could not be decoded, by table and code. Bronze keeps their bytes."""
    with _sentences():
        pipelines = _Pipelines.read()
        print_quarantine(quarantine(pipelines.root, pipelines.usable))
        pipelines.report_broken()


@app.command()
def sql(*, query: Annotated[str | None, typer.Option(help="Without it: a prompt.")] = None) -> None:
    """Query bronze and silver by name, like `select * from silver.orders`; nothing can be changed."""
    with _sentences():
        pipelines = _Pipelines.read()
        queries = LakeQueries(Catalog.of(pipelines.root, pipelines.usable))
        if query is None:
            prompt(queries, interactive=sys.stdin.isatty())
        else:
            print_rows(queries.run(query))
        pipelines.report_broken()


if __name__ == "__main__":
    app()
