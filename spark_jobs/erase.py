"""Take the values of some keys out of tables, as a person has approved it."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.repair.erase import Erase
from cdc_lakehouse.repair.operation import repair

sys.exit(run(Job.ERASE, repair(Erase())))
