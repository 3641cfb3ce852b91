"""`python -m cdc_lakehouse.bronze`: the ingest as far as it goes without Spark, for a group without news."""

import sys

from cdc_lakehouse.application.main import run_look
from cdc_lakehouse.bronze.look import looked
from cdc_lakehouse.contract import Job

sys.exit(run_look(Job.BRONZE_INGEST, looked))
