"""One table on both sides: rows in PostgreSQL, and a silver table as a merge would have left it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from connector import FakeConnector  # type: ignore[import-not-found]
from deltalake import CommitProperties, Transaction, write_deltalake

from cdc_lakehouse.application.per_table import UnfinishedError
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.lake.confirmations import Confirmation
from cdc_lakehouse.lake.confirmations_file import read_confirmations, write_confirmations
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Kind, Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.verification.table_verify import Verification
from local_stack.component import Site
from local_stack.postgres import SHOP, SUPERUSER

TABLE = "items"
TOPIC = "shop.public.items"
SOURCE = f"{TOPIC}@id1"
_POSITION = pa.struct([("epoch", pa.int64()), ("row", pa.int64())])
_ERROR = pa.struct([("code", pa.string()), ("detail", pa.string())])
_ATTEMPT = "20260101T000000Z-00000001"

ROWS = {"id": pa.array([1, 2, 3], pa.int32()), "name": pa.array(["a", "b", None])}
WRONG = {**ROWS, "name": pa.array(["a", "x", None])}


class Shelf:
    def __init__(
        self, connection: psycopg.Connection[Any], connector: FakeConnector, *, root: str, site: Site
    ) -> None:
        self.connection = connection
        self.connector = connector
        self.lake = Lake(root=root, pipeline="shop")
        self.kafka_end = 0
        self.offsets_topic: str | None = None
        """As the connection has it: named once somebody observes."""
        self._site = site
        self._seq = 0

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement.encode())

    def deliver(self) -> None:
        """The connector brings everything up to now to Kafka, whose end moves on."""
        self.kafka_end += 10
        self.connector.confirm()

    def observe(self, *, up_to: str | None = None, epoch: int = 0) -> None:
        """An ingest has asked Connect and then Kafka; the position is that of now."""
        row = self.connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
        assert row is not None
        self.offsets_topic = "connect-offsets"
        ends = {SOURCE: {0: self.kafka_end}}
        seen = Confirmation(LogPosition.from_text(up_to or row[0]), None, epoch, ends)
        uri = self.lake.confirmations(self.table().group)
        address = self.verification().database.settings.address
        known = replace(read_confirmations(uri), address=address)
        write_confirmations(uri, known.observing({TABLE: seen}))

    def silver(
        self,
        columns: dict[str, pa.Array],
        *,
        row: Sequence[int] | None = None,
        key: Sequence[str] = ("id",),
        read_to: int | None = None,
    ) -> None:
        """Silver is this now, and has read Kafka up to `read_to`; `row` is part of each row's position."""
        count = len(next(iter(columns.values())))
        positions = [{"epoch": 0, "row": number} for number in row or [1] * count]
        table = pa.table({**columns, "_cdc_position": pa.array(positions, _POSITION)})
        end = self.kafka_end if read_to is None else read_to
        self._seq += 1
        first = Ledger(kind=Kind.SILVER, pipeline="shop", table=TABLE, cluster_id="c1", seq=self._seq - 1)
        ledger = first.advanced({SOURCE: {0: (0, max(end, 1))}}, attempt=_ATTEMPT, seen_through=None)
        self._write(self.lake.silver(TABLE), table, ledger)
        type_ = pa.struct([(name, columns[name].type) for name in key])
        bronze = pa.table({"key": pa.nulls(1, type_), "decode_error": pa.nulls(1, _ERROR)})
        self._bronze = bronze, ledger
        self._write(self.lake.bronze(TABLE), bronze, ledger)

    def end_reading(self) -> None:
        """As `stop_reading` states it in bronze."""
        bronze, ledger = self._bronze
        after = ledger.amended(ledger.sources, attempt=_ATTEMPT, decisions={"stop_reading": {}})
        self._write(self.lake.bronze(TABLE), bronze, replace(after, ended=(SOURCE,)))

    def _write(self, uri: str, table: pa.Table, ledger: Ledger) -> None:
        properties = CommitProperties(
            custom_metadata={"userMetadata": ledger.to_json()},
            app_transactions=[Transaction(APPLICATION_ID, ledger.seq)],
        )
        Path(uri.removeprefix("file://")).mkdir(parents=True, exist_ok=True)
        write_deltalake(uri, table, mode="overwrite", schema_mode="overwrite", commit_properties=properties)

    def verification(self, *, slot: str | None = None, **login: str) -> Verification:
        connection = Connection(
            Role.SOURCE,
            host="127.0.0.1",
            port=self._site.ports["postgres"],
            login=login.get("login", SUPERUSER),
            password=login.get("password", self._site.secrets.postgres),
            extra={
                "database": SHOP,
                **({} if slot is None else {"slot": slot}),
                **({} if self.offsets_topic is None else {"offsets_topic": self.offsets_topic}),
            },
        )
        return Verification(
            self.lake, Database.of(connection), ends=lambda topic: {SOURCE: {0: self.kafka_end}}
        )

    def table(self, **options: Any) -> Table:
        return Table(name=TABLE, topics=(TOPIC,), verify=True, **options)

    def verify(self, **options: Any) -> TableResult:
        """The result; that of a table that failed too."""
        try:
            return self.verification().run(self.table(**options))
        except UnfinishedError as failed:
            return failed.so_far

    def verdict(self, **options: Any) -> str:
        return str(self.verify(**options).verification["verdict"])


def settled(shelf: Shelf, **silver: Any) -> TableResult:
    """What silver is for good: looked at, then it read all that Kafka had, and changed nothing."""
    shelf.silver(**silver)
    shelf.verify()
    shelf.deliver()
    shelf.verify()
    shelf.silver(**silver)
    found: TableResult = shelf.verify()
    return found
