"""Take silver or bronze of tables back to an earlier version, as a person has approved it."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.repair.operation import repair
from cdc_lakehouse.repair.rewind import Rewind

sys.exit(run(Job.REWIND, repair(Rewind())))
