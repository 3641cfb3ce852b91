"""Drain the Kafka topics of a group of tables into bronze."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.bronze.job import ingest
from cdc_lakehouse.contract import Job

sys.exit(run(Job.BRONZE_INGEST, ingest))
