"""An application beside the tables that its pipeline has discovered before."""

from __future__ import annotations

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.lake.discovered import with_tables_of_the_lake


def with_discovered(application: Application) -> Application:
    """For jobs that work on tables of the lake; Kafka may be away."""
    pipeline = with_tables_of_the_lake(application.pipeline, root=application.lake.root)
    return application.with_tables_of(pipeline)
