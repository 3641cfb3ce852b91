"""Read tables from their source again by an incremental snapshot, as a person has approved it."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.repair.operation import repair
from cdc_lakehouse.repair.resync import Resync

sys.exit(run(Job.RESYNC, repair(Resync())))
