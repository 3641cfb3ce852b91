"""What Airflow finds only through a plugin: the links of our tasks. No routes, nothing heavy."""

from airflow.plugins_manager import AirflowPlugin

from cdc_lakehouse.orchestration.links import FirstFailedTaskLink


class CdcLakehousePlugin(AirflowPlugin):
    name = "cdc_lakehouse"
    operator_extra_links = [FirstFailedTaskLink()]  # noqa: RUF012 - Airflow's own shape
