"""The documents of the repository, and what is read out of them."""

from __future__ import annotations

import re
from pathlib import Path

from cdc_lakehouse.orchestration.runbook import error_classes

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "include/docs/operations.md"
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def documents() -> dict[str, str]:
    """Name from the root -> text."""
    paths = [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *sorted((ROOT / "include/docs").rglob("*.md")),
    ]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def prose(text: str) -> str:
    """Without fenced blocks."""
    return _FENCE.sub("", text)


def error_table() -> list[str]:
    """The table of `operations.md`, one line per error in the order of the tree."""
    return [
        f"| `{error.code}` | {error.exit_code.value} | {error.sentence} | {error.advice} |"
        for error in error_classes()
    ]
