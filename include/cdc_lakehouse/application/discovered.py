"""An application beside the tables that its pipeline has discovered before."""

from __future__ import annotations

from dataclasses import replace

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.discovered import tables_left_in_the_lake, with_tables_of_the_lake


def with_discovered(application: Application) -> Application:
    """For jobs that work on tables of the lake; Kafka may be away.

    The job that retires tables is also given those that the pipeline does not name any more.
    """
    root, request = application.lake.root, application.request
    pipeline = with_tables_of_the_lake(application.pipeline, root=root)
    if request.job is not Job.RETIRE:
        return application.with_tables_of(pipeline)
    left = tables_left_in_the_lake(pipeline, request.tables, root=root)
    whole = pipeline.model_copy(update={"tables": (*pipeline.tables, *left)})
    names = frozenset(table.name for table in left)
    return replace(application.with_tables_of(whole), left_tables=names)
