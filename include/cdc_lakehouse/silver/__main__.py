"""`python -m cdc_lakehouse.silver`: the merge as far as it goes without Spark, for a group that is level."""

import sys

from cdc_lakehouse.application.main import run_look
from cdc_lakehouse.contract import Job
from cdc_lakehouse.silver.look import looked

sys.exit(run_look(Job.SILVER_MERGE, looked))
