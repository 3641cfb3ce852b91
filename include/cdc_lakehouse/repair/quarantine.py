"""Decode undecodable records again where they stand, or close or reopen their cases, by an approved plan.

The plan tries to decode them now and writes nothing: it says how many would decode, and which would not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, assert_never

from pyspark.sql import functions as F

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.closing import close_cases, rows_meant
from cdc_lakehouse.bronze.closing_plan import ClosingPlan, Coordinate, Meant, plan_closing
from cdc_lakehouse.bronze.decided import named_for
from cdc_lakehouse.bronze.replay import Condition, TableReplay
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.rest_settings import registry_settings
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.contract import Job, TableResult, table_named_by
from cdc_lakehouse.errors import DecisionOutdatedError, RepairNotVerifiedError, RepairRefusedError
from cdc_lakehouse.lake.coordinates import with_topic_id
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.quarantine import ERROR, Case, listed_cases
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.registry.client import SchemaRegistry
from cdc_lakehouse.repair.contents import plan_changed
from cdc_lakehouse.repair.operation import Outcome
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, begun_repairs
from cdc_lakehouse.repair.replacement import read_table

DO, CASES = "do", "cases"
"""Names of the options."""


class Action(StrEnum):
    REPLAY = "replay"
    CLOSE = "close"
    REOPEN = "reopen"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks about the undecodable records of one table."""

    action: Action
    names: frozenset[str] | None
    """Cases as `make quarantine` prints them, without the table; None for all that wait."""

    @classmethod
    def of_options(cls, options: Mapping[str, str], *, table: str, tables: Sequence[str]) -> Asked:
        """Return what the options say about `table`. `tables` are all that the run works on.

        Raise `RepairRefusedError` for an unknown action, and for cases of no table of the run.
        """
        action, lines = options.get(DO, "").strip(), options.get(CASES, "").split()
        if action not in list(Action):
            problem = f"`{DO}` is {', '.join(f'`{each}`' for each in Action)}, not {action!r}"
            raise _refused(table, problem)
        strange = [line for line in lines if table_named_by(line) not in tables]
        if strange:
            raise _refused(table, f"{strange[0]!r} names no table of this run: <table>=<cases>, as printed")
        if not lines and action != Action.REPLAY:
            raise _refused(
                table, f"to {action} cases, name them in `{CASES}`, as `make quarantine` prints them"
            )
        names = named_for(table, lines) or frozenset()
        return cls(Action(action), names if lines else None)

    @property
    def meant(self) -> Meant | None:
        """Return the codes and coordinates of the names, however many records have them; None for all."""
        if self.names is None:
            return None
        places = {name: Coordinate.of(name) for name in self.names}
        codes = frozenset(name.partition(":")[0] for name, place in places.items() if place is None)
        return Meant(codes, frozenset(place for place in places.values() if place is not None))

    def is_about(self, case: Case) -> bool:
        is_closed = case.closed is not None
        meant = self.meant
        return is_closed is (self.action is Action.REOPEN) and (meant is None or meant.has(case))


@dataclass(frozen=True, slots=True)
class _Standing:
    """Bronze and its undecodable records at one moment."""

    state: TableState
    ledger: Ledger
    listed: Sequence[Case]

    @property
    def open_cases(self) -> int:
        return sum(case.closed is None for case in self.listed)

    def plan_closing(self, asked: Asked) -> ClosingPlan:
        """Return what closes or reopens the cases. Raise for names that do not stand."""
        close, reopen = (
            asked.names if asked.action is action else None for action in (Action.CLOSE, Action.REOPEN)
        )
        read = self.ledger.sources
        return plan_closing(
            self.ledger.table, self.listed, read=read, close=close or None, reopen=reopen or None
        )


@dataclass(frozen=True, slots=True)
class _Preview:
    """What decoding would come to now."""

    decodes: int = 0
    stays: Mapping[str, int] = field(default_factory=dict)
    """Code -> records that would not decode."""


class Quarantine:
    job = Job.QUARANTINE_REPAIR
    options = frozenset({DO, CASES})

    def __init__(self, registry: SchemaRegistry | None = None) -> None:
        """`registry` is used instead of that of the connection."""
        self._registry = registry

    def plan(self, application: Application, table: Table) -> TablePlan:
        asked = _asked(application.request.options, application, table)
        standing = _read_standing(application, table)
        closing_plan = standing.plan_closing(asked)
        chosen = [case for case in standing.listed if asked.is_about(case)]
        preview = self._preview(application, table, asked, standing)
        effects = {
            "open_cases": standing.open_cases,
            "decode_now": preview.decodes,
            "stay_undecodable": sum(preview.stays.values()),
            "cases_closed": closing_plan.closed,
            "cases_reopened": closing_plan.reopened,
        }
        changed = effects["decode_now"] if asked.action is Action.REPLAY else 0
        return TablePlan(
            operation=self.job,
            pipeline=application.pipeline.name,
            table=table.name,
            options={DO: asked.action.value, CASES: "\n".join(_lines(table, asked))},
            basis={
                "repairs": begun_repairs(application.lake, table.name),
                "life": standing.state.life,
            },
            effects=effects,
            summary=_summary(asked.action, effects, of=len(chosen)),
            details=(*_describe(application, standing, asked, chosen), *_sentences(asked, preview)),
            is_needed=changed + closing_plan.closed + closing_plan.reopened > 0,
        )

    def facts_before(self, application: Application, table: Table) -> Mapping[str, Any]:
        standing = _read_standing(application, table)
        return {"open_cases": standing.open_cases, "before": {"bronze": standing.state.version}}

    def act(self, application: Application, table: Table, plan: TablePlan) -> Outcome:
        """Carry the plan out. What an earlier try did is found done, and stays so."""
        asked, standing = _asked(plan.options, application, table), _read_standing(application, table)
        if standing.state.life != plan.basis["life"]:
            raise plan_changed(plan, "bronze was made again in the meantime")
        if asked.action is Action.REPLAY:
            result = self._replay(application, table, asked, standing)
        else:
            lines = tuple(_lines(table, asked))
            close, reopen = (lines if asked.action is each else () for each in (Action.CLOSE, Action.REOPEN))
            request = replace(application.request, close_cases=close, reopen_cases=reopen)
            try:
                result = close_cases(replace(application, request=request), table, standing.state)
            except DecisionOutdatedError as exc:
                raise plan_changed(plan, str(exc)) from exc
        return Outcome(
            counts=result.counts,
            facts={"after": {"bronze": result.versions.get("bronze", standing.state.version)}},
            summary=", ".join(f"{count} {name.replace('_', ' ')}" for name, count in result.counts.items()),
        )

    def verify(self, application: Application, table: Table, record: RepairRecord) -> Outcome:
        """Plan it again: nothing may be left to do."""
        plan = record.plan
        asked, standing = _asked(plan.options, application, table), _read_standing(application, table)
        if asked.action is Action.REPLAY:
            left = self._preview(application, table, asked, standing).decodes
        else:
            closing_plan = standing.plan_closing(asked)
            left = closing_plan.closed + closing_plan.reopened
        if left:
            problem = f"{left} case(s) are as they were before"
            raise RepairNotVerifiedError(
                operation=plan.operation, table=table.name, digest=plan.digest, problem=problem
            )
        count = standing.open_cases
        return Outcome(counts={"open_cases": count}, summary=f"{count} case(s) are open")

    def _preview(self, application: Application, table: Table, asked: Asked, standing: _Standing) -> _Preview:
        """Decode the open records that are meant, and write nothing."""
        if asked.action is Action.REOPEN or not any(map(asked.is_about, standing.listed)):
            return _Preview()
        with self._opened_registry(application) as registry:
            replay = TableReplay(application, table, registry=registry)
            counts = replay.preview(
                version=standing.state.version, held=standing.ledger, meant=_condition_of(asked)
            )
        return _Preview(counts.pop(None, 0), {str(code): count for code, count in counts.items()})

    def _replay(
        self, application: Application, table: Table, asked: Asked, standing: _Standing
    ) -> TableResult:
        with self._opened_registry(application) as registry:
            replay = TableReplay(application, table, registry=registry)
            waiting = sum(map(asked.is_about, standing.listed))
            return replay.run(
                waiting=waiting,
                version=standing.state.version,
                held=standing.ledger,
                meant=_condition_of(asked),
            )

    @contextmanager
    def _opened_registry(self, application: Application) -> Iterator[SchemaRegistry]:
        if self._registry is not None:
            yield self._registry
            return
        with SchemaRegistry(registry_settings(application.connection(Role.REGISTRY))) as registry:
            yield registry


def _asked(options: Mapping[str, str], application: Application, table: Table) -> Asked:
    tables = [each.name for each in application.tables]
    return Asked.of_options(options, table=table.name, tables=tables)


def _condition_of(asked: Asked) -> Condition | None:
    return None if asked.meant is None else partial(rows_meant, asked.meant)


def _lines(table: Table, asked: Asked) -> list[str]:
    """Return the cases of this table as the option has them."""
    return [f"{table.name}={name}" for name in sorted(asked.names or ())]


def _read_standing(application: Application, table: Table) -> _Standing:
    uri = application.lake.bronze(table.name)
    state = read_state(uri, table=table.name)
    if state is None or state.ledger is None:
        raise _refused(table.name, "it has no bronze, so it has no undecodable records")
    return _Standing(state, state.ledger, listed_cases(uri))


def _describe(
    application: Application, standing: _Standing, asked: Asked, chosen: Sequence[Case]
) -> list[str]:
    """Return for each code how many cases are meant, where the first one is, and how long its bytes are.

    The bytes themselves are payload, and appear nowhere.
    """
    if not chosen:
        return []
    session, uri = application.spark.isolated(), application.lake.bronze(standing.ledger.table)
    rows = with_topic_id(read_table(session, uri, version=standing.state.version))
    rows = rows.where(F.col(ERROR).isNotNull())
    if (meant := _condition_of(asked)) is not None:
        rows = rows.where(meant())
    sizes = F.struct(F.octet_length("raw_key").alias("key"), F.octet_length("raw_value").alias("value"))
    place = F.struct("topic", "partition", "offset")
    found = rows.groupBy(F.col(f"{ERROR}.code").alias("code")).agg(
        F.min(place).alias("place"), F.min_by(sizes, place).alias("sizes")
    )
    facts = {row["code"]: row for row in found.collect()}
    sentences = []
    for code, count in Counter(case.code for case in chosen).most_common():
        topic, partition, offset = facts[code]["place"]
        key, value = facts[code]["sizes"]
        size = f"key {_bytes_in_words(key)}, value {_bytes_in_words(value)}"
        sentences.append(f"{code}: {count} record(s), first {topic}/{partition}@{offset} ({size})")
    return sentences


def _bytes_in_words(size: int | None) -> str:
    return "absent" if size is None else f"of {size} byte(s)"


def _sentences(asked: Asked, preview: _Preview) -> list[str]:
    sentences = [f"{code}: {count} would not decode now" for code, count in preview.stays.items()]
    if asked.action is Action.CLOSE and preview.decodes:
        sentences.append(f"{preview.decodes} of these records would decode now: replay them instead.")
    if asked.action is Action.REPLAY:
        sentences.append("Records that come until it is carried out are decoded again, too.")
    return sentences


def _summary(action: Action, effects: Mapping[str, int], *, of: int) -> str:
    match action:
        case Action.REPLAY:
            return f"{effects['decode_now']} of {of} undecodable record(s) would decode now"
        case Action.CLOSE:
            return f"{effects['cases_closed']} case(s) are closed: nobody waits for these records any more"
        case Action.REOPEN:
            return f"{effects['cases_reopened']} case(s) are opened again"
    assert_never(action)


def _refused(table: str, problem: str) -> RepairRefusedError:
    return RepairRefusedError(operation=Job.QUARANTINE_REPAIR, table=table, problem=problem)
