"""A look at two tables, one of which misses offsets that nobody has any more."""

import sys

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.main import run_look
from cdc_lakehouse.contract import Job, TableResult, TableStatus
from cdc_lakehouse.errors import IntervalIncompleteError


def _look(application: Application) -> list[TableResult]:
    lost = IntervalIncompleteError(table="orders", offsets="shop.public.orders/0:3-5").as_table_error()
    return [
        TableResult("orders", TableStatus.FAILED, error=lost),
        TableResult("customers", TableStatus.IDLE),
    ]


if __name__ == "__main__":
    sys.exit(run_look(Job.BRONZE_INGEST, _look))
