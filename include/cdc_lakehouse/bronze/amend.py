"""Commit what was decided about a table, before any row that is read because of it."""

from __future__ import annotations

import logging
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.lake.file_commit import commit_files
from cdc_lakehouse.lake.ledger import Ledger

logger = logging.getLogger(__name__)


def amend(
    session: SparkSession, plan: DrainPlan, *, uri: str, attempt: str, schema: StructType
) -> tuple[Ledger, int]:
    """State the plan's ledger in a commit without rows; the ledger as it stands then, and its version.

    A second call with the same step commits nothing and raises `SupersededError`.
    """
    # Rows may be gone: what the table could claim before is to be proved anew.
    stated = replace(plan.ledger, attempt=attempt, valid_through=None)
    before = replace(plan.ledger, seq=plan.ledger.seq - 1)
    version = commit_files(session, uri, [], before=before, after=stated, schema=schema, known=plan.version)
    level = logging.INFO if stated.decisions.keys() == {"start"} else logging.WARNING
    logger.log(level, "decision committed", extra={"seq": stated.seq, "decisions": dict(stated.decisions)})
    return stated, version
