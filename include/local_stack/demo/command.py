"""The demo's command line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from local_stack.cli import Storage, run
from local_stack.demo.rounds import Demo
from local_stack.demo.screen import Screen
from local_stack.shop import seed
from local_stack.stack import LocalStack, RunningStack

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def demo(
    *,
    once: Annotated[
        bool, typer.Option("--once", help="One full round; exit code 0 if silver equals its source.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data of an earlier demo first.")] = False,
    storage: Annotated[Storage, typer.Option(help="Where the lake lies.")] = Storage.FILE,
) -> None:
    """Start everything, change rows in PostgreSQL, watch them arrive. Ctrl-C ends it; the data stays."""
    screen = Screen()
    stack = LocalStack(report=screen.component, object_store=storage is Storage.S3)
    screen.title(f"starting the stack in {stack.layout.root}")
    try:
        if fresh:
            stack.clean()
        with stack.running() as running:
            _play(running, screen, once=once)
    except KeyboardInterrupt:
        screen.say(f"interrupted; everything is stopped, the data stays in {stack.layout.root}")
        sys.exit(130)
    screen.say(f"everything is stopped; the data stays in {stack.layout.root}")


def _play(running: RunningStack, screen: Screen, *, once: bool) -> None:
    with running.postgres.connect(user="shop") as connection:
        seed(connection)
    screen.where(running)
    with Demo(running, screen) as demo:
        demo.round()
        while not once:
            demo.round()


def main() -> None:
    run(app)
