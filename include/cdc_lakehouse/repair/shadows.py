"""Second tables of rebuild plans, which lie under `_ops/<pipeline>/shadows` beside the live ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake, began_at
from cdc_lakehouse.repair.folders import delete_table

KEEP_SHADOWS = timedelta(days=2)
"""Time for which the second table of a plan waits for its approval, which may take a day."""


def delete_shadow(lake: Lake, table: str, shadow: str) -> None:
    """Delete the second table of a plan, its silver first, so that nobody takes a part of it for all of it.

    A second call deletes what a killed one has left.
    """
    if shadow in _list_shadows(lake, table):
        delete_table(f"{lake.shadows(table)}/{shadow}/{table}")
        files.delete_child(lake.shadows(table), shadow)


def delete_all_shadows(lake: Lake, table: str) -> None:
    """Delete the second tables of all plans for a table."""
    for shadow in _list_shadows(lake, table):
        delete_shadow(lake, table, shadow)


def delete_old_shadows(lake: Lake, table: str) -> None:
    """Delete second tables whose plans cannot be approved any more."""
    oldest = datetime.now(UTC) - KEEP_SHADOWS
    for shadow in _list_shadows(lake, table):
        began = began_at(shadow)
        if began is None or began < oldest:
            delete_shadow(lake, table, shadow)


def _list_shadows(lake: Lake, table: str) -> list[str]:
    return [folder.name for folder in files.folders(lake.shadows(table))]
