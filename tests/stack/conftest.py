"""The real chain, started once, and driven through Airflow's REST API as a person would do it.

The tests of this folder share it and its data: each brings its own changes and looks at them only.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from driver import Chain  # type: ignore[import-not-found]

from local_stack import LocalStack, RunningStack
from local_stack.airflow_client import AirflowClient
from local_stack.shop import seed


def _print(component: str, event: str, seconds: float) -> None:
    print(f"{seconds:6.1f} s  {component:<22} {event}")


@pytest.fixture(scope="session")
def stack(tmp_path_factory) -> Iterator[RunningStack]:
    """Own folder, own ports; nothing of it outlives the tests."""
    with LocalStack(tmp_path_factory.mktemp("stack"), report=_print).running() as running:
        with running.postgres.connect(user="shop") as connection:
            seed(connection, customers=40, products=10, orders=30)
        yield running


@pytest.fixture(scope="session")
def chain(stack) -> Iterator[Chain]:
    airflow = AirflowClient(stack.airflow.client())
    for dag_id in ("cdc_shop", "cdc_shop_maintenance"):
        airflow.wait_for_dag(dag_id)
        airflow.unpause(dag_id)
    with Chain(stack, airflow) as driven:
        yield driven
    airflow.close()
