"""Merge a group of tables from bronze into silver."""

from __future__ import annotations

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.silver.table_merge import merge_table


def merge_tables(application: Application) -> list[TableResult]:
    """Reads bronze and writes silver; Kafka and the registry may be away."""

    def work(table: Table) -> TableResult:
        return merge_table(application, table)

    return each_table(application, work)
