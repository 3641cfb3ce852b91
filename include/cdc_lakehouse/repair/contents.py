"""Contents of silver that a repair puts in the place of the live ones, compared with those by key."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.application.failures import is_damage
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.errors import DataFilesGoneError, PlanChangedError
from cdc_lakehouse.lake.damage import refuse_missing_files
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.silver_mode import UNAVAILABLE
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.lake.state import TableState, is_there
from cdc_lakehouse.repair.comparison import Difference, compare_contents
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.replacement import Contents, read_table
from cdc_lakehouse.verification.subject import NotComparedError, key_of

logger = logging.getLogger(__name__)

SILVER, HISTORY, TOMBSTONES = "silver", "history", "tombstones"
"""Parts of a table whose versions a repair keeps in its record."""
_EVENT = ("_cdc_position", "_cdc_op", "_cdc_topic", "_cdc_coordinate")
"""What tells rows of a table apart that has a row per event."""


def key_of_silver(lake: Lake, table: Table) -> tuple[str, ...]:
    """Return the names of the key's columns in silver; of a table with a row per event, of the event."""
    if table.key is not None:
        names = table.key
    else:
        bronze = newest_snapshot(lake.bronze(table.name))
        try:
            found = () if bronze is None else key_of(bronze.schema, table)
        except NotComparedError:
            found = ()
        names = tuple(table.columns.rename.get(name, name) for name in found)
    return names if table.topic_column is None else (*names, table.topic_column)


def uri_of(lake: Lake, table: str, part: str) -> str:
    """Return where `silver`, `history` or `tombstones` of a table lie."""
    return {
        SILVER: lake.silver(table),
        HISTORY: lake.history(table),
        TOMBSTONES: lake.tombstones(table),
    }[part]


def read_versions(
    session: SparkSession,
    lake: Lake,
    table: str,
    versions: Mapping[str, int],
    *,
    ledger: Ledger,
    rules: int,
    keeps_tombstones: bool = False,
) -> Contents:
    """Return the contents of older versions of silver and of what lies beside it."""
    rows = {
        part: read_table(session, uri_of(lake, table, part), version=version)
        for part, version in versions.items()
    }
    return Contents(
        silver=rows[SILVER],
        ledger=ledger,
        history=rows.get(HISTORY),
        tombstones=rows.get(TOMBSTONES),
        rules=rules,
        keeps_tombstones=keeps_tombstones,
    )


def difference_to(
    session: SparkSession, lake: Lake, table: Table, live: TableState | None, new: Contents
) -> Difference:
    """Compare the live silver with `new`, all of whose rows count as added if the live one is unreadable."""
    uri = lake.silver(table.name)
    try:
        if live is not None:
            refuse_missing_files(uri, live.files, table=table.name)
            return compare_silver(key_of_silver(lake, table), read_table(session, uri), new.silver)
    except DataFilesGoneError as error:
        logger.warning("silver cannot be compared", extra={"reason": str(error)})
    except Exception as error:
        # Spark has several classes for what a task throws; only the text names the cause.
        if not is_damage(error):
            raise
        logger.warning("silver cannot be compared: a file of it is damaged", extra={"of": table.name})
    return Difference(added=new.silver.count(), is_unreadable=True)


def compare_silver(key: Sequence[str], live: DataFrame, new: DataFrame) -> Difference:
    """Compare two silvers by key; all rows of the one go and all of the other come where keys differ."""
    names = (*_EVENT, *key) if UNAVAILABLE in new.columns else tuple(key)
    if names and {*names} <= {*live.columns} and {*names} <= {*new.columns}:
        return compare_contents(live, new, keys=names)
    return Difference(
        removed=live.count(),
        added=new.count(),
        columns_removed=tuple(name for name in live.columns if name not in new.columns),
        columns_added=tuple(name for name in new.columns if name not in live.columns),
    )


def count_versions(session: SparkSession, lake: Lake, table: Table, new: Contents) -> dict[str, int]:
    """Return how many versions of rows the history has and will have; nothing for a table without one."""
    uri = lake.history(table.name)
    if new.history is None:
        return {}
    live = read_table(session, uri).count() if is_there(uri) else 0
    return {"versions_before": live, "versions_after": new.history.count()}


def refuse_other_effects(plan: TablePlan, difference: Difference, *, limit: int) -> None:
    """Raise where many more rows would go or change than the approved plan said.

    Events that came since may change a few; `limit` is what a merge may remove without asking.
    """
    effects = difference.to_effects()
    for name in ("rows_removed", "rows_changed"):
        count = effects[name]
        if count > plan.effects[name] + limit:
            raise plan_changed(plan, f"it said {plan.effects[name]} {name}, and now it would be {count}")


def effects_in_words(difference: Difference) -> str:
    effects = {name.replace("_", " "): count for name, count in difference.to_effects().items() if count}
    return ", ".join(f"{count} {name}" for name, count in effects.items()) or "no row differs"


def is_unusable(live: TableState | None) -> bool:
    """Return whether merges of this silver stop, whatever its rows are."""
    return live is None or live.is_lost or bool(live.foreign)


def plan_changed(plan: TablePlan, problem: str) -> PlanChangedError:
    return PlanChangedError(operation=plan.operation, table=plan.table, digest=plan.digest, problem=problem)
