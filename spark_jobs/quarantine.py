"""Decode undecodable records of tables again, or close or reopen their cases, as a person has approved it."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.repair.operation import repair
from cdc_lakehouse.repair.quarantine import Quarantine

sys.exit(run(Job.QUARANTINE_REPAIR, repair(Quarantine())))
