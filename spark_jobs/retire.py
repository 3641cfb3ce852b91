"""Archive or delete tables that nobody reads any more, as a person has approved it."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.repair.operation import repair
from cdc_lakehouse.repair.retire import Retire

sys.exit(run(Job.RETIRE, repair(Retire())))
