"""Merge what bronze holds and silver has not applied, for a group of tables."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.silver.job import merge_tables

sys.exit(run(Job.SILVER_MERGE, merge_tables))
