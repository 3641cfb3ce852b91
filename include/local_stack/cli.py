"""The command line of the local stack."""

from __future__ import annotations

import errno
import os
import shlex
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from artifacts.errors import ArtifactsError
from local_stack.errors import StackError
from local_stack.job_command import become
from local_stack.layout import Layout
from local_stack.ports import LOOPBACK
from local_stack.postgres import SHOP, SUPERUSER, binary
from local_stack.stack import LocalStack, RunningStack


class Storage(StrEnum):
    """A folder, or a bucket of the object store that then runs beside the others."""

    FILE = "file"
    S3 = "s3"


app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


def _say(component: str, event: str, seconds: float) -> None:
    sys.stdout.write(f"  {seconds:5.1f} s  {component:<22} {event}\n")
    sys.stdout.flush()


def _stack(*, object_store: bool = False) -> LocalStack:
    return LocalStack(report=_say, object_store=object_store)


@app.command()
def up(
    *,
    airflow: Annotated[bool, typer.Option(help="With Airflow's four processes.")] = True,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the data of an earlier stack first.")
    ] = False,
    storage: Annotated[Storage, typer.Option(help="Where the lake lies.")] = Storage.FILE,
) -> None:
    """Start everything and leave it running; a second call changes nothing."""
    began = time.monotonic()
    stack = _stack(object_store=storage is Storage.S3)
    before = {name for name, record in stack.state.processes.items() if record.is_alive}
    try:
        running = stack.up(fresh=fresh, airflow=airflow)
    except KeyboardInterrupt:
        print("interrupted; everything that this command started is stopped again")
        sys.exit(130)
    if before and not fresh and before == running.running():
        print(f"the stack in {stack.layout.root} runs already")
    else:
        print(f"the stack in {stack.layout.root} is up ({time.monotonic() - began:.1f} s)")
    _show(running)


@app.command()
def down() -> None:
    """Stop everything; the data stays."""
    if not _stack().down():
        print("nothing was running")


@app.command()
def clean() -> None:
    """Stop everything and delete the data."""
    _stack().clean()


@app.command()
def status() -> None:
    """Show what runs where; exit code 1 when something is down."""
    stack = _stack()
    if not stack.state.processes:
        print(f"nothing runs in {stack.layout.root}")
        sys.exit(1)
    healthy = _show(stack.attach())
    sys.exit(0 if healthy else 1)


@app.command()
def start(names: Annotated[list[str], typer.Argument(help="Components, like: registry")]) -> None:
    """Start single components again."""
    with _stack().attached_alone() as running:
        running.start(*names)


@app.command()
def stop(names: Annotated[list[str], typer.Argument(help="Components, like: registry")]) -> None:
    """Stop single components."""
    with _stack().attached_alone() as running:
        running.stop(*names)


@app.command()
def logs(name: str, lines: Annotated[int, typer.Option(help="How many of the last lines.")] = 100) -> None:
    """Print the end of a component's log."""
    path = Layout.default().log(name)
    if not path.exists():
        sys.exit(f"error: there is no log of {name} at {path}")
    print("\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]))


@app.command()
def env() -> None:
    """Print what jobs need, as lines for `eval`; passwords are in it."""
    for name, value in _stack().attach().job_environment().items():
        print(f"export {name}={shlex.quote(value)}")


@app.command()
def psql(database: str = SHOP) -> None:
    """Open a shell on the source database."""
    site = _stack().attach().site
    program = binary("psql")
    if not program.exists():
        sys.exit("error: the PostgreSQL wheel has no psql; install one and use the port that `status` shows")
    os.environ["PGPASSWORD"] = site.secrets.postgres
    options = ["-h", LOOPBACK, "-p", str(site.ports["postgres"]), "-U", SUPERUSER, database]
    os.execv(program, [str(program), *options])  # noqa: S606


@app.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def exec_(
    command: Annotated[list[str], typer.Argument(help="After `--`: a program and its arguments.")],
) -> None:
    """Run a command with the connections of the stack, unless the environment has its own."""
    become(command, _stack())


def _show(running: RunningStack) -> bool:
    health = running.health()
    records = running.state.processes
    state = running.connector.state_or_unknown()
    for component in running.components():
        if component.name in health:
            word = "healthy" if health[component.name] else "DOWN"
            print(
                f"  {component.name:<22} {word:<8} pid {records[component.name].pid:<8} {component.address}"
            )
        elif component.is_process:
            print(f"  {component.name:<22} stopped")
    print(f"  {running.connector.name:<22} {state.lower()}")
    core = {component.name for component in running.chain() if component.is_process}
    return all(health.values()) and core <= set(health) and state == "RUNNING"


def run(program: Callable[[], object] = app) -> None:
    """Every expected failure is one sentence; a traceback is a bug."""
    try:
        program()
    except (StackError, ArtifactsError) as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        where = Path(problem.filename).parent if problem.filename else Layout.default().root
        sys.exit(f"error: {where} cannot be written: {problem.strerror}")
