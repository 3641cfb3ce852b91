"""Merge a group of tables from bronze into silver."""

from __future__ import annotations

import gc

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.errors import LogTornError
from cdc_lakehouse.lake.damage import heal_table
from cdc_lakehouse.silver.claiming import observed_in
from cdc_lakehouse.silver.look import MergeTask, look_at, looked
from cdc_lakehouse.silver.table_merge import merge_table


def merge_tables(application: Application) -> list[TableResult]:
    """Reads bronze and writes silver; Kafka and the registry may be away."""
    if application.request.dry_run:
        return looked(application)
    application = with_discovered(application)
    observed = observed_in(application.lake)

    def work(table: Table) -> TableResult:
        try:
            found = look_at(application, table, observed=observed)
        except LogTornError:
            heal_table(application.lake, table.name)
            found = look_at(application, table, observed=observed)
        if not isinstance(found, MergeTask):
            return found
        try:
            return merge_table(application, found)
        finally:
            # DataFrames in reference cycles keep their plans, and a megabyte for each broadcast, in the JVM
            # until Python's collector runs, which it seldom does in a process of many objects.
            gc.collect()

    return each_table(application, work)
