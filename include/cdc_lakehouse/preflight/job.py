"""The checks of `make check` as a job: a result per table, and one for what concerns them all."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.contract import TableError, TableResult, TableStatus
from cdc_lakehouse.debezium.topic_names import prefix_and_relation
from cdc_lakehouse.errors import NotReadyError
from cdc_lakehouse.lake.discovered import with_tables_of_the_lake
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.preflight.checks import check_pipeline
from cdc_lakehouse.preflight.findings import Finding, Level

logger = logging.getLogger(__name__)

WHOLE = "_pipeline"
"""Stands for the table of findings that are about no table. No table has such a name."""


class Checked(Protocol):
    """What this job needs of an application, which has Spark besides."""

    @property
    def pipeline(self) -> Pipeline: ...

    @property
    def lake(self) -> Lake: ...


def check_tables(application: Checked) -> list[TableResult]:
    """Try the whole pipeline and every connection that it needs. Nothing is written but the report."""
    findings = list(check_pipeline(application.pipeline.name))
    pipeline = with_tables_of_the_lake(application.pipeline, root=application.lake.root)
    return results_of(findings, pipeline.tables)


def results_of(findings: Iterable[Finding], tables: Sequence[Table]) -> list[TableResult]:
    """Return the result of each of `tables`, behind that of what concerns them all.

    Findings about a table that is not among them, as one that no run has discovered yet, count for all.
    """
    by_table: dict[str, list[Finding]] = {WHOLE: [], **{table.name: [] for table in tables}}
    for finding in findings:
        by_table[_table_of(finding, tables)].append(finding)
    return [_result_of(table, own) for table, own in by_table.items()]


def _table_of(finding: Finding, tables: Sequence[Table]) -> str:
    """Return the table whose topic, source table or name the subject ends with."""
    named = finding.subject.rpartition(" ")[2]
    for table in tables:
        relations = (prefix_and_relation(topic)[1] for topic in table.topics)
        is_by_name = finding.subject == f"keys of {table.name}"
        if is_by_name or named in table.topics or named in relations:
            return table.name
    return WHOLE


def _result_of(table: str, findings: Sequence[Finding]) -> TableResult:
    levels = Counter(finding.level.value for finding in findings)
    result = TableResult(
        table=table,
        status=TableStatus.VERIFIED,
        counts={level.value: levels[level.value] for level in Level},
        findings=[finding.to_document() for finding in findings],
    )
    for finding in findings:
        if finding.level is not Level.OK:
            facts = {"level": finding.level.value, "subject": finding.subject}
            logger.warning(finding.sentence, extra={**facts, "advice": finding.advice})
    problems = [finding for finding in findings if finding.level is Level.PROBLEM]
    if not problems:
        return result
    told = "; ".join(f"{finding.subject}: {finding.sentence}" for finding in problems)
    subject = "the pipeline" if table == WHOLE else table
    exc = NotReadyError(subject=subject, problems=told)
    error = TableError(exc.code, exc.exit_code, str(exc), exc.advice)
    return replace(result, status=TableStatus.FAILED, error=error)
