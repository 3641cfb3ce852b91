"""Decode records again that could not be decoded when they came."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.bronze.replay_job import replay_tables
from cdc_lakehouse.contract import Job

sys.exit(run(Job.QUARANTINE_REPLAY, replay_tables))
