"""What a silver table remembers of the settings that its rows were made by: others make other rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cdc_lakehouse.config.column_choice import ColumnChoice
from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.errors import HistoryShapeChangedError, ShapeChangedError
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.state import is_there
from cdc_lakehouse.lake.steps import standing_of
from cdc_lakehouse.lake.tables import columns_of
from cdc_lakehouse.silver.columns.shape import reshaped


def settings_of(table: Table, secret: MaskSecret | None) -> dict[str, Any] | None:
    """As a ledger keeps them; None of a table whose silver has what bronze has."""
    if table.columns.is_all and not any((table.filter, table.key, table.topic_column)):
        return None
    return {
        "columns": table.columns.model_dump(mode="json", exclude_defaults=True),
        "filter": table.filter,
        **({} if table.key is None else {"key": list(table.key)}),
        **({} if table.topic_column is None else {"topic_column": table.topic_column}),
        "secret": None if secret is None else secret.check(),
    }


def has_other_settings(silver: Ledger, table: Table) -> bool:
    """At first sight, without the secret. Silver that has no rows yet takes any."""
    known = silver.applied.made_by or {}
    made_by = (_columns(known), known.get("filter"), _key(known), known.get("topic_column"))
    return silver.seq > 0 and made_by != (table.columns, table.filter, table.key, table.topic_column)


def refuse_other_settings(
    before: Applied,
    table: Table,
    columns: TableColumns,
    *,
    secret: MaskSecret | None,
    existing: Collection[str],
) -> None:
    """Raises where silver's rows would be others by now. `columns` are bronze's, `existing` silver's."""
    changed = _changed(before.made_by or {}, table, columns, secret=secret, existing=existing)
    if changed:
        raise ShapeChangedError(table=table.name, changed=", ".join(changed))


def refuse_history_of_others(
    lake: Lake, table: Table, columns: TableColumns, secret: MaskSecret | None
) -> None:
    """The same of the versions in its history, which outlives a silver that is deleted and made anew.

    Versions of keys by other settings would stay beside the new ones: nothing could tell that they are the
    same. Not asked of a history whose writer did not say.
    """
    uri = lake.history(table.name)
    if table.history is None or not is_there(uri):
        return
    read = standing_of(uri)
    if read.life is None or read.made_by == settings_of(table, secret):
        return
    existing = columns_of(uri)
    changed = _changed(read.made_by or {}, table, columns, secret=secret, existing=existing)
    if changed:
        raise HistoryShapeChangedError(table=table.name, changed=", ".join(changed))


def _changed(
    known: Mapping[str, Any],
    table: Table,
    columns: TableColumns,
    *,
    secret: MaskSecret | None,
    existing: Collection[str],
) -> list[str]:
    changed = list(reshaped(columns, _columns(known), table.columns, existing=existing))
    if known.get("filter") != table.filter:
        changed.append("`filter`")
    if _key(known) != table.key:
        changed.append("`key`")
    if known.get("topic_column") != table.topic_column:
        changed.append("`topic_column`")
    if secret is not None and known.get("secret") not in (None, secret.check()):
        changed.append("the secret of the masks")
    return changed


def _key(known: Mapping[str, Any]) -> tuple[str, ...] | None:
    key = known.get("key")
    return None if key is None else tuple(key)


def _columns(known: Mapping[str, Any]) -> ColumnChoice:
    return ColumnChoice.model_validate(known.get("columns", {}))
