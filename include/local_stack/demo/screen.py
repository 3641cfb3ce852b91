"""What the demo shows, on a terminal and in a file alike: lines and small tables, nothing that moves."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from local_stack.airflow_settings import USERS
from local_stack.proof import Comparison
from local_stack.stack import RunningStack

_WIDTH_OF_A_FILE = 110
_STYLES = {
    "success": "green", "healthy": "green", "running": "cyan", "equal": "green", "open": "yellow",
    "failed": "bold red", "up_for_retry": "red", "upstream_failed": "red", "killed": "red",
}  # fmt: skip
_SILENT_STATES = frozenset({"scheduled", "queued"})


class Screen:
    """Every line begins with the seconds since the demo was started."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        self._console = Console(highlight=False, soft_wrap=True, width=None if terminal else _WIDTH_OF_A_FILE)
        self._began = time.monotonic()

    def say(self, text: str, *, style: str = "") -> None:
        seconds = time.monotonic() - self._began
        self._console.print(Text(f"{seconds:6.1f} s  ", style="dim") + Text(text, style=style))

    def title(self, text: str) -> None:
        self.say(text, style="bold")

    def component(self, name: str, event: str, _seconds: float) -> None:
        self.say(f"{name:<22} {event}", style=_STYLES.get(event, "dim"))

    def task(self, name: str, state: str, why: str) -> None:
        if state not in _SILENT_STATES:
            self.say(f"  {name:<20} {state:<13} {why}".rstrip(), style=_STYLES.get(state, ""))

    def where(self, stack: RunningStack) -> None:
        logins = ", ".join(f"{user}/{user}" for user in USERS)
        self.title(f"Airflow    {stack.airflow.url}   logins (user/password): {logins}")
        self.title(f"Delta      {stack.lake_root()}/bronze and …/silver")

    def arrivals(self, advances: Mapping[str, Mapping[str, Any]]) -> None:
        """What a run carried: per table the changes, the rows they became, and how far that goes."""
        if not advances:
            self.say("  nothing new arrived")
            return
        table = Table(
            *("table", "changes", "bronze", "silver", "newest change", "lag", "valid through"),
            box=None,
            padding=(0, 2),
        )
        for name, found in advances.items():
            seen = found.get("seen_through")
            lag = "" if seen is None else f"{_age(seen):.0f} s"
            versions = found.get("versions", {})
            valid = found.get("valid_through") or ""
            cells = (found.get("rows", 0), versions.get("bronze", "-"), versions.get("silver", "-"))
            table.add_row(name, *map(str, cells), (seen or "")[11:19], lag, valid[11:19])
        self._console.print(table)

    def verdicts(self, found: Mapping[str, str]) -> None:
        """What the pipeline itself says of its tables; while the shop is busy some are open."""
        for verdict in dict.fromkeys(found.values()):
            names = ", ".join(table for table, own in found.items() if own == verdict)
            self.say(f"  verify: {verdict}: {names}", style=_STYLES.get(verdict, ""))

    def proof(self, comparisons: Sequence[Comparison]) -> None:
        table = Table("table", "PostgreSQL", "silver", "checksum", "equal", box=None, padding=(0, 2))
        for found in comparisons:
            verdict = Text("yes", style="green") if found.equal else Text("NO", style="bold red")
            rows = (f"{found.source_rows} rows", f"{found.silver_rows} rows")
            table.add_row(found.table, *rows, found.silver_checksum[:16], verdict)
        self._console.print(table)
        for found in comparisons:
            if not found.equal:
                self.say(found.sentence(), style="bold red")


def _age(moment: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
