"""Compare silver with the source database, for a group of tables. Needs no Spark, so none is started."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.verification.job import verify_tables

sys.exit(run(Job.VERIFY, verify_tables))
