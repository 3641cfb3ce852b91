"""Try a pipeline and every connection that it needs; nothing is written but the report."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.preflight.job import check_tables

sys.exit(run(Job.PREFLIGHT, check_tables))
