"""Where things lie in the lake, and the one place that validates and quotes names."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
_ATTEMPT = re.compile(r"(\d{8}T\d{6}Z)-[0-9a-f]{8}")
_ATTEMPT_TIME = "%Y%m%dT%H%M%SZ"

SHARED = "-shared"
SCHEMA_CHANGES = "__schema_changes"


def safe(name: str) -> str:
    """A name that may become part of a path. Names come from files and from Kafka: they are input."""
    if not _SAFE.fullmatch(name):
        raise ValueError(f"{name!r} cannot be part of a path")
    return name


def quoted(*parts: str) -> str:
    """An identifier for Spark SQL: `a`.`b`, with back-ticks inside doubled."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def literal(text: str) -> str:
    """A string literal for Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def new_attempt(now: datetime) -> str:
    """`<yyyymmddThhmmssZ>-<8 hex>`: one process working on a group, new every time."""
    return f"{now:{_ATTEMPT_TIME}}-{secrets.token_hex(4)}"


def began_at(attempt: str) -> datetime | None:
    """Return when an attempt began, as its name says; None for other names."""
    match = _ATTEMPT.fullmatch(attempt)
    try:
        return None if match is None else datetime.strptime(match[1], _ATTEMPT_TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Lake:
    """The folders of one pipeline below the lake's root."""

    root: str
    """URI without a slash at its end."""
    pipeline: str
    scratch: str = ""
    """Where checkpoints go instead of the lake: a folder on the driver's disk (decision 0017)."""
    shadow: str = ""
    """Name of a second silver that a repair computes beside the live one; empty for the live one."""

    def bronze(self, table: str) -> str:
        return self._under("bronze", table)

    def silver(self, table: str) -> str:
        if self.shadow:
            return f"{self.shadow_folder(table)}/{safe(table)}"
        return self._under("silver", table)

    def shadows(self, table: str) -> str:
        """Folder of the tables that repairs compute beside silver of this table."""
        return f"{self.operations}/shadows/{safe(table)}"

    def shadow_folder(self, table: str) -> str:
        return f"{self.shadows(table)}/{safe(self.shadow)}"

    def repairs(self, table: str) -> str:
        """Folder of the records of repairs of this table: plans, approvals, results."""
        return f"{self.operations}/repairs/{safe(table)}"

    def archive(self, table: str) -> str:
        """Folder of retired tables of this name, outside of the folders of bronze and silver."""
        return f"{self.root}/_archive/{safe(self.pipeline)}/{safe(table)}"

    def tombstones(self, table: str) -> str:
        """Deleted keys and where: nothing that is older may bring them back."""
        return f"{self.silver(table)}__tombstones"

    def history(self, table: str) -> str:
        """Every version of the rows of silver."""
        return f"{self.silver(table)}__history"

    def beside_silver(self, table: str) -> tuple[str, ...]:
        """Tables of ours without a ledger, which may not be there."""
        return self.history(table), self.tombstones(table)

    def checkpoints(self, table: str) -> str:
        return f"{self.checkpoint_folders}/{safe(table)}"

    @property
    def checkpoint_folders(self) -> str:
        """The folder of the folders of `checkpoints`."""
        return f"{self.operations}/checkpoints"

    def checkpoint(self, table: str, attempt: str) -> str:
        folder = f"{self.scratch}/{safe(table)}" if self.scratch else self.checkpoints(table)
        return f"{folder}/{safe(attempt)}"

    def shared_checkpoint(self, first: str, attempt: str, *, number: int) -> str:
        """Of a query over several tables: it lies, and is cleaned, with those of the first of them."""
        return f"{self.checkpoint(first, attempt)}{SHARED}{number}"

    def run(self, attempt: str, job: str) -> str:
        """Folder of the reports of one attempt; its date is the attempt's own."""
        date = f"{attempt[:4]}-{attempt[4:6]}-{attempt[6:8]}"
        return f"{self.runs}/{date}/{safe(attempt)}/{safe(job)}"

    def looks(self, table: str) -> str:
        """What verifications of this table have seen and not settled yet."""
        return f"{self.looks_folder}/{safe(table)}.json"

    @property
    def looks_folder(self) -> str:
        return f"{self.operations}/verify"

    def maintenance(self, job: str, table: str) -> str:
        """Return the file in which a job of maintenance remembers a table from night to night."""
        return f"{self.maintenance_folder(job)}/{safe(table)}.json"

    def maintenance_folder(self, job: str) -> str:
        return f"{self.operations}/maintenance/{safe(job)}"

    def confirmations(self, group: str) -> str:
        """What the source's connector has confirmed, and what this group's tables must have read then."""
        return f"{self.confirmations_folder}/{safe(group)}.json"

    @property
    def confirmations_folder(self) -> str:
        return f"{self.operations}/confirmed"

    def unread(self, group: str) -> str:
        """File of the offsets that Kafka had behind the ends of this group's tables at the last look."""
        return f"{self.unread_folder}/{safe(group)}.json"

    @property
    def unread_folder(self) -> str:
        return f"{self.operations}/unread"

    def schemas(self, registry: str) -> str:
        """Archived writer schemas: an id means the same to all pipelines of one registry."""
        return f"{self.archives}/{safe(registry)}"

    @property
    def archives(self) -> str:
        """The folder of the folders of `schemas`."""
        return f"{self.root}/_ops/schemas"

    @property
    def schema_changes(self) -> str:
        """The log of what was changed in silver's schemas. No table has its name: those begin otherwise."""
        if self.shadow:
            return f"{self.operations}/shadows/{SCHEMA_CHANGES}/{safe(self.shadow)}"
        return f"{self.root}/silver/{safe(self.pipeline)}/{SCHEMA_CHANGES}"

    @property
    def bronze_tables(self) -> str:
        """The folder of the folders of `bronze`."""
        return f"{self.root}/bronze/{safe(self.pipeline)}"

    @property
    def silver_tables(self) -> str:
        """The folder of the folders of `silver`."""
        return f"{self.root}/silver/{safe(self.pipeline)}"

    @property
    def runs(self) -> str:
        return f"{self.operations}/runs"

    @property
    def attempts(self) -> str:
        """The folder of the records of attempts that started Spark."""
        return f"{self.operations}/attempts"

    @property
    def operations(self) -> str:
        return f"{self.root}/_ops/{safe(self.pipeline)}"

    def _under(self, layer: str, table: str) -> str:
        return f"{self.root}/{layer}/{safe(self.pipeline)}/{safe(table)}"
