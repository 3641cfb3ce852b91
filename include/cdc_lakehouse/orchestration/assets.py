"""The assets that other DAGs can wait for: `<pipeline>.<layer>.<table>`."""

from __future__ import annotations

from collections.abc import Iterable

from airflow.sdk import Asset

from cdc_lakehouse.config.models import Table


def asset(pipeline: str, *, layer: str, table: str) -> Asset:
    """What a reader's DAG names as its schedule, like `Asset("shop.silver.orders")`."""
    return Asset(f"{pipeline}.{layer}.{table}")


def assets(pipeline: str, *, layers: Iterable[str], tables: Iterable[Table]) -> list[Asset]:
    """For `inlets`. Airflow lists an asset only if some DAG names it, and events of aliases do not count."""
    return [asset(pipeline, layer=layer, table=table.name) for layer in layers for table in tables]
