"""A prompt for queries: read until a semicolon, run, show, again."""

from __future__ import annotations

import readline  # noqa: F401 - gives `input` its line editing
import sys
from collections.abc import Iterator

from cdc_lakehouse.inspection.printing import print_rows
from cdc_lakehouse.inspection.query import LakeQueries, QueryRefusedError
from cdc_lakehouse.redaction import printable_lines

_WELCOME = "queries end with a semicolon; .tables lists the tables, .quit or Ctrl-D ends\n"


def prompt(queries: LakeQueries, *, interactive: bool) -> None:
    """Until the input ends. A refused query is a sentence, not the end."""
    if interactive:
        sys.stdout.write(_WELCOME)
    for query in _queries(interactive=interactive):
        try:
            print_rows(queries.run(query))
        except QueryRefusedError as refusal:
            sys.stdout.write(f"{printable_lines(f'error: {refusal}')}\n")


def _queries(*, interactive: bool) -> Iterator[str]:
    """Ctrl-C forgets what was typed."""
    lines: list[str] = []
    while True:
        try:
            line = input(("   ...> " if lines else "lake> ") if interactive else "")
        except EOFError:
            break
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            lines = []
            continue
        if not lines and line.strip() in (".quit", ".exit"):
            return
        lines.append(line)
        if line.rstrip().endswith(";") or line.strip() == ".tables":
            yield "\n".join(lines)
            lines = []
    if any(line.strip() for line in lines):
        yield "\n".join(lines)
