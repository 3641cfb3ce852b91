"""Delete the files of bronze and silver that nobody can need any more."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.maintenance.job import vacuum_tables

sys.exit(run(Job.VACUUM, vacuum_tables))
