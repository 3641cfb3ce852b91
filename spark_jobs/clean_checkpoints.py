"""Delete scratch checkpoints of attempts that ended long ago."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.maintenance.job import clean_tables

sys.exit(run(Job.CLEAN_CHECKPOINTS, clean_tables))
