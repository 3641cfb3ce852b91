"""Links of our tasks and notes of our runs, which Airflow finds only through a plugin. Nothing heavy."""

from airflow.plugins_manager import AirflowPlugin

from cdc_lakehouse.orchestration.links import FirstFailedTaskLink, RunNotes


class CdcLakehousePlugin(AirflowPlugin):
    name = "cdc_lakehouse"
    listeners = [RunNotes()]  # noqa: RUF012
    operator_extra_links = [FirstFailedTaskLink()]  # noqa: RUF012 - Airflow's own shape
