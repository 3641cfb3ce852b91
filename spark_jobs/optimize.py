"""Compact the small files of bronze and silver."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.maintenance.job import optimize_tables

sys.exit(run(Job.OPTIMIZE, optimize_tables))
