"""Rebuild silver and history of tables from bronze, as a person has approved it."""

import sys

from cdc_lakehouse.application.main import run
from cdc_lakehouse.contract import Job
from cdc_lakehouse.repair.operation import repair
from cdc_lakehouse.repair.rebuild import Rebuild

sys.exit(run(Job.REBUILD, repair(Rebuild())))
