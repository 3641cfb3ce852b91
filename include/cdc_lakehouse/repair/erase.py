"""Erase the keys of a person from bronze, silver, history, tombstones and quarantine, with proof.

`keys`, `keys_file` or `where` say which. From the plan on they are known by their MD5 only: no log, report,
record or commit holds a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.mask_secret import MaskSecret, mask_secret
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.config.values import LOG_RETENTION_DAYS, duration
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import PlanChangedError, RepairNotVerifiedError
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.repair.erasure.erasing import Erasure, purge
from cdc_lakehouse.repair.erasure.found_keys import (
    FoundKeys,
    Layer,
    count_in_kafka,
    count_quarantined,
    count_rows,
    count_unknown,
    find_keys,
    layers_of,
)
from cdc_lakehouse.repair.erasure.key_digests import KeyDigests, key_digests, refused
from cdc_lakehouse.repair.erasure.key_request import (
    KEYS,
    KEYS_FILE,
    WHERE,
    KeyRequest,
    keys_folder,
    read_request,
)
from cdc_lakehouse.repair.folders import is_folder, standing_in
from cdc_lakehouse.repair.kafka_facts import AskKafka, ask_kafka, facts_or_reason
from cdc_lakehouse.repair.operation import Outcome
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, begun_repairs, unfinished_repairs
from cdc_lakehouse.repair.shadows import delete_all_shadows
from cdc_lakehouse.silver.made_by import has_other_settings

_FEW = 5


class Erase:
    job = Job.ERASE
    options = frozenset({KEYS, KEYS_FILE, WHERE})

    def __init__(self, ask: AskKafka = ask_kafka) -> None:
        self._ask = ask

    def plan(self, application: Application, table: Table) -> TablePlan:
        lake, session = application.lake, application.spark.isolated()
        request = read_request(lake, table, application.request.options)
        if request is None:
            raise refused(table, f"one of its options {KEYS}, {KEYS_FILE} and {WHERE} must name keys")
        if (unfinished := _unfinished_plan(lake, table, request)) is not None:
            return unfinished
        secret = mask_secret(application.connection(Role.STORAGE)) if table.columns.hashes else None
        _refuse_other_settings(lake, table, secret=secret)
        digests = _digests(session, lake, table, named=request.columns, secret=secret)
        keys = find_keys(session, lake, table, request, digests)
        layers = layers_of(session, lake, table, digests, keys)
        counts = {f"{layer.name}_rows": count_rows(session, layer) for layer in layers}
        bronze = layers[0]
        effects = {
            "keys_named": len(keys.named),
            "keys_followed": len(keys.source - keys.named),
            **counts,
            "quarantined_records": count_quarantined(session, bronze),
            "records_with_unknown_keys": count_unknown(session, bronze),
        }
        kafka, sentence = self._kafka(application, table, session, bronze)
        return TablePlan(
            operation=self.job,
            pipeline=application.pipeline.name,
            table=table.name,
            options={},
            basis={
                "repairs": begun_repairs(lake, table.name),
                "request": request.digest,
                "file": request.file,
                "columns": [column.source for column in digests.columns if not column.is_topic],
                "named": sorted(keys.named),
                "keys": sorted(keys.source),
                "silver_keys": sorted(keys.silver),
                "message_keys": sorted(keys.message_keys),
            },
            effects={**effects, **kafka},
            summary=f"{sum(counts.values())} row(s) of {len(keys.source)} key(s) are erased",
            details=(*_warnings(application, table, effects), sentence, *_examples(keys)),
            is_needed=any(counts.values()),
        )

    def facts_before(self, application: Application, table: Table) -> Mapping[str, Any]:
        """Return the versions that still hold the values, until VACUUM takes their files."""
        return {"before": _versions(application.lake, table)}

    def act(self, application: Application, table: Table, plan: TablePlan) -> Outcome:
        lake, session = application.lake, application.spark.isolated()
        _refuse_other_keys(application, table, plan)
        _refuse_other_settings(lake, table)
        bronze, *others = _layers(session, lake, table, plan)
        decision = {"operation": plan.operation, "plan": plan.digest}
        erasure = Erasure(session, table.name, application.attempt, decision)
        counts = {"bronze_rows": erasure.empty_bronze(bronze)}
        # At once: what they hold could come back while the erasure is unfinished.
        _delete_copies(lake, table)
        if others:
            deleted = erasure.delete_from_silver(others[0], others[1:])
            counts |= {f"{name}_rows": rows for name, rows in deleted.items()}
        for layer in (bronze, *others):
            purge(session, layer, table=table.name, attempt=application.attempt)
        _delete_copies(lake, table)
        return Outcome(
            counts=counts,
            facts={"after": _versions(lake, table)},
            summary=f"{sum(counts.values())} row(s) are erased",
        )

    def verify(self, application: Application, table: Table, record: RepairRecord) -> Outcome:
        """Count rows of the keys in the versions that were committed. Raise where there is one.

        Rows that came since are told, not refused: the source has sent them again.
        """
        lake, session, plan = application.lake, application.spark.isolated(), record.plan
        layers = _layers(session, lake, table, plan)
        versions = record.facts["after"]
        # A layer without a version was made since: the first merge of the table came behind the erasure.
        committed = [layer for layer in layers if layer.name in versions]
        left = {layer.name: count_rows(session, layer, version=versions[layer.name]) for layer in committed}
        if any(left.values()):
            told = ", ".join(f"{count} row(s) of {name}" for name, count in left.items() if count)
            raise RepairNotVerifiedError(
                operation=self.job, table=table.name, digest=plan.digest, problem=f"{told} hold the keys"
            )
        since = {f"{layer.name}_came_since": count_rows(session, layer) for layer in layers}
        if plan.basis["file"]:
            files.delete_file(plan.basis["file"])
        came = {name: count for name, count in since.items() if count}
        again = f"; {sum(came.values())} row(s) of the keys came since then" if came else ""
        until = _gone_at(application, record)
        summary = (
            f"no row holds the keys; older versions do until VACUUM, which takes them from {until} on{again}"
        )
        return Outcome(counts={"rows_left": 0, **came}, summary=summary)

    def _kafka(
        self, application: Application, table: Table, session: SparkSession, bronze: Layer
    ) -> tuple[dict[str, int], str]:
        """Return how many of the records Kafka still holds, and a sentence about it."""
        facts = facts_or_reason(self._ask, application, table.topics)
        if isinstance(facts, str):
            return {}, f"How many of the records Kafka still holds is not known: {facts}"
        held = count_in_kafka(session, bronze, facts)
        limits = [topic.retention for topic in facts.topics.values() if topic.retention is not None]
        days = [limit.milliseconds / 86_400_000 for limit in limits if limit.milliseconds is not None]
        kept = (
            f", which deletes records after {max(days):.1f} days" if days and len(days) == len(limits) else ""
        )
        sentence = f"{held} of the records are still in Kafka{kept}. Nothing is erased there."
        return {"kafka_records": held}, sentence


def _read_request_if_there(lake: Lake, table: Table, options: Mapping[str, str]) -> KeyRequest | None:
    """Return the request, or None where a file with keys was deleted by an earlier try."""
    uri = options.get(KEYS_FILE, "").strip()
    if uri and not any(uri in (file.name, file.uri) for file in files.listed_files(keys_folder(lake))):
        return None
    return read_request(lake, table, options)


def _unfinished_plan(lake: Lake, table: Table, request: KeyRequest) -> TablePlan | None:
    """Return the plan of an unfinished erasure of the same keys, some of which may be gone already."""
    plans = [record.plan for record in unfinished_repairs(lake, table.name)]
    erasures = [plan for plan in plans if plan.operation is Job.ERASE]
    return next((plan for plan in erasures if plan.basis["request"] == request.digest), None)


def _digests(
    session: SparkSession, lake: Lake, table: Table, *, named: tuple[str, ...], secret: Any = None
) -> KeyDigests:
    schema = schema_of(session, lake.bronze(table.name))
    if schema is None:
        raise refused(table, "it has no bronze")
    return key_digests(table, schema, named=named, secret=secret)


def _layers(session: SparkSession, lake: Lake, table: Table, plan: TablePlan) -> list[Layer]:
    """Return the tables of an approved plan, which names the keys by their digests."""
    basis = plan.basis
    digests = _digests(session, lake, table, named=tuple(basis["columns"]))
    keys = FoundKeys(
        frozenset(basis["named"]),
        frozenset(basis["keys"]),
        frozenset(basis["silver_keys"]),
        frozenset(basis["message_keys"]),
    )
    return layers_of(session, lake, table, digests, keys)


def _refuse_other_keys(application: Application, table: Table, plan: TablePlan) -> None:
    """Raise where the form asks for other keys than those that were planned and approved."""
    request = _read_request_if_there(application.lake, table, application.request.options)
    if request is not None and request.digest != plan.basis["request"]:
        problem = "its options name other keys than the plan"
        raise PlanChangedError(
            operation=plan.operation, table=plan.table, digest=plan.digest, problem=problem
        )


def _refuse_other_settings(lake: Lake, table: Table, *, secret: MaskSecret | None = None) -> None:
    """Raise where silver was made by other settings: its keys may be hashed or named otherwise."""
    silver = read_state(lake.silver(table.name), table=table.name)
    if silver is None or silver.ledger is None:
        return
    if has_other_settings(silver.ledger, table):
        problem = "its silver was made by other `columns`, `filter`, `key` or `topic_column`"
        raise refused(table, f"{problem} than the pipeline file has; rebuild it first")
    known = (silver.ledger.applied.made_by or {}).get("secret")
    if secret is not None and known not in (None, secret.check()):
        raise refused(table, "its silver was masked with another secret; rebuild it first")


def _versions(lake: Lake, table: Table) -> dict[str, int]:
    uris = {
        "bronze": lake.bronze(table.name),
        "silver": lake.silver(table.name),
        "history": lake.history(table.name),
        "tombstones": lake.tombstones(table.name),
    }
    standings = {name: standing_in(uri) for name, uri in uris.items()}
    return {name: standing[1] for name, standing in standings.items() if standing is not None}


def _delete_copies(lake: Lake, table: Table) -> None:
    """Delete second tables of other plans, and keys that verifications have noted; both are made again."""
    delete_all_shadows(lake, table.name)
    files.delete_file(lake.looks(table.name))


def _warnings(application: Application, table: Table, effects: Mapping[str, int]) -> list[str]:
    """Return what a person should know before approving."""
    lake, days = application.lake, application.pipeline.maintenance.vacuum_retention
    warnings = [
        "This cannot be undone. An undo of an earlier rebuild is refused from then on.",
        f"Older versions hold the values until VACUUM, {days} (vacuum_retention) later. The Delta logs have "
        f"the lowest and highest values of columns, of silver for {LOG_RETENTION_DAYS} days, of history and "
        "tombstones for a year.",
    ]
    if effects.get("silver_rows"):
        warnings.append(
            f"Silver still has {effects['silver_rows']} row(s): delete them at the source first, or its next "
            "event brings them back."
        )
    if effects["keys_followed"]:
        warnings.append(
            f"{effects['keys_followed']} further key(s) belong to the same rows, whose key has changed; of a "
            "key that another row has had since, that row is erased, too."
        )
    if unknown := effects["records_with_unknown_keys"]:
        warnings.append(f"Of {unknown} undecodable record(s) nobody knows the key: they stay as they are.")
    if is_folder(lake.archive(table.name)):
        warnings.append(f"Archived tables of this name stay as they are: {lake.archive(table.name)}")
    state = read_state(lake.bronze(table.name), table=table.name)
    if state is not None and state.ledger is not None and any(state.ledger.gaps().values()):
        warnings.append("Bronze misses offsets: to fill these gaps later may bring events of the keys.")
    return warnings


def _examples(keys: FoundKeys) -> list[str]:
    shown = sorted(keys.source)[:_FEW]
    return [f"MD5 of {len(shown)} of {len(keys.source)} key(s): {', '.join(shown)}"]


def _gone_at(application: Application, record: RepairRecord) -> str:
    """Return when the retention of the last file that holds the values ends."""
    retention: timedelta = duration(application.pipeline.maintenance.vacuum_retention)
    done = datetime.fromisoformat(record.done_at or "")
    return (done + retention).isoformat(timespec="minutes")
