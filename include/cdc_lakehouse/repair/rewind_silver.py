"""Take silver and its history back to a version: the next merge applies again what bronze has behind it.

Tombstones stay: they are facts about the source, and more of them do no harm. Rows that were erased do not
come back.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import RepairNotVerifiedError, RepairRefusedError
from cdc_lakehouse.lake.damage import heal_torn_log
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.newest_ledger import ledger_at
from cdc_lakehouse.lake.state import TableState, is_there, look_into
from cdc_lakehouse.lake.steps import standing_at
from cdc_lakehouse.lake.versions import OwnVersion
from cdc_lakehouse.repair.comparison import Difference, compare_contents
from cdc_lakehouse.repair.contents import (
    HISTORY,
    SILVER,
    compare_silver,
    count_versions,
    difference_to,
    effects_in_words,
    is_unusable,
    key_of_silver,
    plan_changed,
    read_versions,
    refuse_other_effects,
    uri_of,
)
from cdc_lakehouse.repair.moment import Moment, find_version, problem_of_files
from cdc_lakehouse.repair.operation import Outcome
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, begun_repairs, newest_erasure
from cdc_lakehouse.repair.replacement import (
    Contents,
    LiveTable,
    read_table,
    replace_contents,
    version_that_carried_out,
)
from cdc_lakehouse.silver.made_by import has_other_settings


@dataclass(frozen=True, slots=True)
class _Parts:
    """Versions of silver and its history that belong together."""

    versions: dict[str, int]
    rules: int
    """Number of the rules by which the versions of the history were made."""


class _NotPossibleError(Exception):
    """A version that silver cannot go back to; the text says why."""


@dataclass(frozen=True, slots=True)
class RewindSilver:
    application: Application
    table: Table

    def plan(self, moment: Moment) -> TablePlan:
        lake, name = self.application.lake, self.table.name
        live = self._require_live()
        target = find_version(
            lake.silver(name),
            moment,
            table=name,
            newest=live.version,
            problem_of=lambda version: self._problem_of(version, live),
        )
        parts = self._parts_at(target.version, target.ledger, live)
        session = self.application.spark.isolated()
        contents = self._contents(session, parts, target.ledger)
        difference = difference_to(session, lake, self.table, live, contents)
        basis = {
            "repairs": begun_repairs(lake, name),
            "life": live.life,
            "versions": parts.versions,
            "rules": parts.rules,
            "attempt": target.ledger.attempt,
        }
        again = _offsets_between(target.ledger, live.ledger)
        time = target.committed_at.isoformat(timespec="seconds")
        return TablePlan(
            operation=Job.REWIND,
            pipeline=self.application.pipeline.name,
            table=name,
            options=moment.to_options(),
            basis=basis,
            effects={
                **difference.to_effects(),
                **count_versions(session, lake, self.table, contents),
                "offsets_applied_again": again,
            },
            summary=f"silver goes back to version {target.version} of {time}: {effects_in_words(difference)}",
            details=(*difference.to_sentences(), *self._warnings(live, target.ledger, again)),
            is_needed=target.version != live.stated or is_unusable(live) or not difference.is_empty,
        )

    def act(self, plan: TablePlan) -> Outcome:
        lake, uri = self.application.lake, self.application.lake.silver(self.table.name)
        carried_out = version_that_carried_out(uri, plan.digest)
        if carried_out is not None:
            return Outcome(facts={"after": {SILVER: carried_out}}, summary="carried out by an earlier try")
        live = self._require_live()
        if live.life != plan.basis["life"]:
            raise plan_changed(plan, "silver was made again in the meantime")
        ledger = self._ledger_of(plan)
        parts = _Parts(dict(plan.basis["versions"]), plan.basis["rules"])
        for part, version in parts.versions.items():
            problem = problem_of_files(uri_of(lake, self.table.name, part), version)
            if problem is not None:
                raise plan_changed(plan, f"{part}: {problem}")
        session = self.application.spark.isolated()
        contents = self._contents(session, parts, ledger)
        difference = difference_to(session, lake, self.table, live, contents)
        refuse_other_effects(plan, difference, limit=self.table.deletes_limit.rows)
        versions = replace_contents(
            session,
            LiveTable(lake, self.table.name, live, vectors=self.table.deletion_vectors),
            contents,
            attempt=self.application.attempt,
            decision={"operation": plan.operation, "plan": plan.digest},
        )
        return Outcome(
            counts=difference.to_effects(),
            facts={"after": versions},
            summary=f"silver has the rows of version {parts.versions[SILVER]} as version {versions[SILVER]}",
        )

    def verify(self, record: RepairRecord) -> Outcome:
        """Compare rows, history and progress of the version that was committed with those it went back to."""
        plan, lake, name = record.plan, self.application.lake, self.table.name
        uri, committed = lake.silver(name), record.facts["after"][SILVER]
        then, after = dict(plan.basis["versions"]), ledger_at(uri, committed, table=name)
        files = [problem_of_files(uri_of(lake, name, part), version) for part, version in then.items()]
        if after is None or any(files) or problem_of_files(uri, committed):
            return Outcome(summary="nothing is left to compare with")
        problems = [] if after.sources == self._ledger_of(plan).sources else ["its progress is another one"]
        session, key = self.application.spark.isolated(), key_of_silver(lake, self.table)
        rows = read_table(session, uri, version=committed)
        difference = compare_silver(key, rows, read_table(session, uri, version=then[SILVER]))
        problems += _problems(difference)
        if HISTORY in then:
            problems += self._problems_of_history(then[HISTORY], after, plan)
        if problems:
            raise RepairNotVerifiedError(
                operation=plan.operation, table=name, digest=plan.digest, problem=", ".join(problems)
            )
        return Outcome(
            counts={"rows_verified": rows.count()}, summary=f"silver is what version {then[SILVER]} was"
        )

    def _problems_of_history(self, then: int, after: Ledger, plan: TablePlan) -> list[str]:
        lake, uri = self.application.lake, self.application.lake.history(self.table.name)
        try:
            standing = standing_at(uri, silver=after.seq, attempt=after.attempt, life=plan.basis["life"])
        except LookupError:
            return []
        if standing is None or standing.silver != after.seq:
            return ["its history was left as it was"]
        if problem_of_files(uri, standing.version):
            return []
        session = self.application.spark.isolated()
        key = (*key_of_silver(lake, self.table), "_cdc_from", "_cdc_to")
        rows = [read_table(session, uri, version=version) for version in (standing.version, then)]
        return [f"{each} in the history" for each in _problems(compare_contents(*rows, keys=key))]

    def _require_live(self) -> TableState:
        """Return the silver that readers have, whatever was changed by hand."""
        uri, name = self.application.lake.silver(self.table.name), self.table.name
        heal_torn_log(uri, table=name)
        state = look_into(uri, table=name)
        if state is None:
            problem = "it has no silver; the next run of the pipeline computes it from bronze"
            raise RepairRefusedError(operation=Job.REWIND, table=name, problem=problem)
        return state

    def _problem_of(self, version: OwnVersion, live: TableState) -> str | None:
        """Say why silver cannot go back to `version`; None where it can."""
        lake, name = self.application.lake, self.table.name
        erased_at = newest_erasure(lake, name)
        if erased_at is not None and version.committed_at <= erased_at:
            return f"rows were erased at {erased_at.isoformat()}, behind version {version.version}"
        if has_other_settings(version.ledger, self.table):
            return f"version {version.version} has the columns or the filter of other settings"
        try:
            parts = self._parts_at(version.version, version.ledger, live)
        except _NotPossibleError as exc:
            return str(exc)
        problems = (problem_of_files(uri_of(lake, name, part), v) for part, v in parts.versions.items())
        return next(filter(None, problems), None)

    def _parts_at(self, version: int, ledger: Ledger, live: TableState) -> _Parts:
        """Return silver and history as the commit of `version` left them. Raise `_NotPossibleError`."""
        uri = self.application.lake.history(self.table.name)
        if self.table.history is None or not is_there(uri):
            return _Parts({SILVER: version}, rules=1)
        try:
            standing = standing_at(uri, silver=ledger.seq, attempt=ledger.attempt, life=live.life)
        except LookupError:
            raise _NotPossibleError(f"the log of the history has forgotten version {version}") from None
        if standing is None:
            raise _NotPossibleError(f"the table kept no history at version {version}; `rebuild` makes both")
        return _Parts({SILVER: version, HISTORY: standing.version}, standing.rules)

    def _contents(self, session: SparkSession, parts: _Parts, ledger: Ledger) -> Contents:
        return read_versions(
            session,
            self.application.lake,
            self.table.name,
            parts.versions,
            ledger=ledger,
            rules=parts.rules,
            keeps_tombstones=True,
        )

    def _ledger_of(self, plan: TablePlan) -> Ledger:
        """Return the ledger of the version that the plan names. Raise where its log has another one there."""
        version, name = plan.basis["versions"][SILVER], self.table.name
        ledger = ledger_at(self.application.lake.silver(name), version, table=name)
        if ledger is None or ledger.attempt != plan.basis["attempt"]:
            raise plan_changed(plan, f"version {version} of silver is not in its log any more")
        return ledger

    def _warnings(self, live: TableState, then: Ledger, again: int) -> list[str]:
        days = self.application.pipeline.maintenance.vacuum_retention
        warnings = [
            f"The contents of now stay as version {live.version} for {days} (vacuum_retention): "
            "a rewind to it brings them back.",
            "Tombstones stay as they are.",
        ]
        sweeps = () if live.ledger is None else live.ledger.applied.sweeps
        if any(sweep not in then.applied.sweeps for sweep in sweeps):
            warnings.append(
                "A resync has removed rows since then, and they come back: resync the table again afterwards."
            )
        if again:
            warnings.append(
                "The next merge applies again what bronze has behind that version. "
                "If readers are to keep these rows, pause the DAG."
            )
        return warnings


def _offsets_between(then: Ledger, now: Ledger | None) -> int:
    """Return how many offsets `now` has applied behind `then`."""
    if now is None:
        return 0
    return sum(
        max(0, progress.end - (progress.floor if (end := then.end(source, p)) is None else end))
        for source, partitions in now.sources.items()
        for p, progress in partitions.items()
    )


def _problems(difference: Difference) -> list[str]:
    return [f"{count} {name.replace('_', ' ')}" for name, count in difference.to_effects().items() if count]
