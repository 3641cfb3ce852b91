"""The source's side of the capture: publication, tables, rights of the connector, slots."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from psycopg.rows import class_row, dict_row

from cdc_lakehouse.database.access import Database

# Debezium puts an underscore for what a topic's name cannot hold.
_NAME = "regexp_replace(n.nspname || '.' || c.relname, '[^a-zA-Z0-9._-]', '_', 'g')"
_TABLES = f"""
SELECT {_NAME} AS relation,
       quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS quoted,
       quote_ident(n.nspname) AS schema,
       quote_ident(pg_get_userbyid(c.relowner)) AS owner,
       c.relreplident::text AS replica_identity,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) AS has_primary_key,
       EXISTS (
           SELECT FROM pg_attribute a
           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attstorage IN ('x', 'e')
       ) AS has_large_columns,
       EXISTS (
           SELECT FROM pg_publication_tables p
           WHERE p.schemaname = n.nspname AND p.tablename = c.relname
             AND p.pubname = coalesce(%(publication)s, p.pubname)
       ) AS published,
       CASE WHEN r.oid IS NOT NULL THEN
           has_schema_privilege(r.oid, n.oid, 'USAGE') AND has_table_privilege(r.oid, c.oid, 'SELECT')
       END AS may_select,
       CASE WHEN r.oid IS NOT NULL THEN has_table_privilege(r.oid, c.oid, 'INSERT') END AS may_insert
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_roles r ON r.rolname = %(role)s
WHERE c.relkind IN ('r', 'p') AND {_NAME} = ANY(%(relations)s)
"""  # noqa: S608 - of constants
_PUBLICATION = """
SELECT pubname AS name, pubinsert AS inserts, pubupdate AS updates, pubdelete AS deletes,
       pubtruncate AS truncates
FROM pg_publication WHERE pubname = %s
"""
_FILTERS = "SELECT * FROM pg_publication_tables WHERE pubname = coalesce(%s, pubname)"
_SLOTS = """
SELECT slot_name AS name, active, coalesce(wal_status, 'unknown') AS wal_status,
       pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint AS behind_bytes
FROM pg_replication_slots
WHERE slot_type = 'logical' AND database = current_database() AND slot_name = coalesce(%s, slot_name)
"""


@dataclass(frozen=True, slots=True)
class SourceTable:
    relation: str
    """`schema.table`, as topics name it."""
    quoted: str
    """The same, quoted for a statement."""
    schema: str
    owner: str
    replica_identity: str
    """`d`: the primary key, `f`: FULL, `i`: an index, `n`: nothing."""
    has_primary_key: bool
    has_large_columns: bool
    """It has columns whose values an update may leave out (TOAST)."""
    published: bool
    may_select: bool | None
    """The connector's role may read it; None where that role is not known."""
    may_insert: bool | None


@dataclass(frozen=True, slots=True)
class Publication:
    name: str
    inserts: bool
    updates: bool
    deletes: bool
    truncates: bool

    @property
    def left_out(self) -> list[str]:
        """Kinds of changes that it does not send."""
        sent = {"INSERT": self.inserts, "UPDATE": self.updates, "DELETE": self.deletes,
                "TRUNCATE": self.truncates}  # fmt: skip
        return [kind for kind, is_sent in sent.items() if not is_sent]


@dataclass(frozen=True, slots=True)
class SlotHealth:
    name: str
    active: bool
    wal_status: str
    """`reserved`, `extended`, `unreserved` (soon lost), `lost`."""
    behind_bytes: int | None


@dataclass(frozen=True, slots=True)
class Capture:
    """The source's side of the capture, read at one time."""

    tables: dict[str, SourceTable]
    """Tables that the source has, by relation."""
    publication: Publication | None
    narrowed: frozenset[str]
    """Relations of which only the rows that meet a condition are published."""
    slots: tuple[SlotHealth, ...]


def read_capture(
    database: Database,
    relations: Collection[str],
    *,
    publication: str | None,
    slot: str | None,
    role: str | None,
) -> Capture:
    """Read them with one query each. `publication`, `slot` and `role` are the connector's; None if unknown.

    Raises `SourceUnavailableError`, or an error that names the missing grant.
    """
    asked = {"publication": publication, "role": role, "relations": sorted(relations)}
    with database.connected() as connection:
        with connection.cursor(row_factory=class_row(SourceTable)) as tables:
            by_relation = {row.relation: row for row in tables.execute(_TABLES.encode(), asked)}
        with connection.cursor(row_factory=class_row(Publication)) as publications:
            of_name = publications.execute(_PUBLICATION, (publication,)).fetchone()
        with connection.cursor(row_factory=dict_row) as rows:
            published = rows.execute(_FILTERS, (publication,)).fetchall()
        with connection.cursor(row_factory=class_row(SlotHealth)) as slots:
            health = tuple(slots.execute(_SLOTS, (slot,)))
    narrowed = frozenset(
        f"{row['schemaname']}.{row['tablename']}" for row in published if row.get("rowfilter") is not None
    )
    return Capture(by_relation, of_name, narrowed, health)
