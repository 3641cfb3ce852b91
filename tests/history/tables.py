"""The tables of a history: every kind of key and of replica identity, and what may be done to each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SCHEMA = "history"
SIGNALS = "signals"
BORN = "born"
"""Tells the rows of a table without a key apart; nobody writes it but its default."""

_BIG = """
  big text, doc jsonb, raw bytea, tags text[], plain integer, word character varying(20)"""
_EXTERNAL = tuple(
    f"ALTER TABLE {{}} ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in ("big", "doc", "raw", "tags")
)
_TYPES = """
  id bigint PRIMARY KEY, a_small smallint, a_int integer, a_big bigint, an_oid oid, a_real real,
  a_double double precision, a_number numeric(12,3), a_wide numeric(38,10), a_free numeric, a_money money,
  a_flag boolean, a_text text, a_word character varying(30), a_padded character(6), a_uuid uuid,
  some_bytes bytea, a_json json, a_jsonb jsonb, a_date date, a_time time, a_short_time time(3),
  a_zoned_time time with time zone, a_moment timestamp, a_short_moment timestamp(3),
  an_instant timestamp with time zone, a_span interval, a_bit bit(1), some_bits bit(12),
  any_bits bit varying(16), an_address inet, a_network cidr, a_card macaddr, a_range int4range,
  a_mood history.mood, some_numbers integer[], some_texts text[], a_point point"""


@dataclass(frozen=True, slots=True)
class Table:
    """`keys` says how many different values the first key column takes: few, so that they meet often."""

    name: str
    columns: str
    key: tuple[str, ...]
    keys: int = 40
    partitions: int = 1
    after: tuple[str, ...] = ()
    """Statements after its creation; `{}` stands for its name."""
    takes_ddl: bool = False
    historic: bool = False
    """Whether its silver has a history."""
    upserts: bool = True
    own_key: tuple[str, ...] = ()
    """Columns that the pipeline names as silver's key instead of the message's."""
    snapshots: bool = True
    """Whether the connector can read it again in chunks: by its primary key."""

    @property
    def identity(self) -> tuple[str, ...]:
        return self.key or (BORN,)


TABLES = (
    Table(
        "numbered",
        "id integer PRIMARY KEY, label character varying(20), amount numeric(8,2), count integer, note text",
        key=("id",),
        takes_ddl=True,
        historic=True,
    ),
    Table(
        "paired",
        "a integer, b text, value double precision, note text, PRIMARY KEY (a, b)",
        key=("a", "b"),
        keys=6,
        partitions=3,
        takes_ddl=True,
    ),
    Table(
        "named",
        "name text PRIMARY KEY, value integer, at timestamp with time zone",
        key=("name",),
        partitions=3,
        historic=True,
    ),
    Table(
        "tokened",
        "token uuid PRIMARY KEY, value integer, amount numeric(10,4), flag boolean",
        key=("token",),
        keys=25,
        takes_ddl=True,
    ),
    Table(
        "toasted",
        f"id integer PRIMARY KEY,{_BIG}",
        key=("id",),
        keys=12,
        partitions=3,
        after=_EXTERNAL,
        historic=True,
    ),
    Table(
        "whole",
        f"id integer PRIMARY KEY,{_BIG}",
        key=("id",),
        keys=10,
        after=(*_EXTERNAL, "ALTER TABLE {} REPLICA IDENTITY FULL"),
        takes_ddl=True,
    ),
    Table(
        "indexed",
        "code text NOT NULL, number integer NOT NULL, value text, amount numeric(9,1)",
        key=("code", "number"),
        keys=12,
        partitions=3,
        after=(
            "CREATE UNIQUE INDEX indexed_code ON {} (code, number)",
            "ALTER TABLE {} REPLICA IDENTITY USING INDEX indexed_code",
        ),
        snapshots=False,
    ),
    Table("typed", _TYPES, key=("id",), keys=20),
    Table(
        "ranked",
        "id integer PRIMARY KEY, place uuid NOT NULL, value text,"
        " CONSTRAINT ranked_place UNIQUE (place) DEFERRABLE INITIALLY DEFERRED",
        key=("id",),
        partitions=3,
    ),
    Table(
        "seats",
        "id integer, value text, PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED",
        key=("id",),
        keys=15,
        after=("ALTER TABLE {} REPLICA IDENTITY FULL",),
        upserts=False,
    ),
    Table(
        "marked",
        "id integer PRIMARY KEY, mark character varying(1) NOT NULL UNIQUE, value integer, note text",
        key=("id",),
        keys=20,
        after=(
            "ALTER TABLE {} ALTER COLUMN note SET STORAGE EXTERNAL",
            "ALTER TABLE {} REPLICA IDENTITY FULL",
        ),
        historic=True,
        own_key=("mark",),
    ),
    Table(
        "keyless",
        "value integer, note text",
        key=(),
        after=("ALTER TABLE {} REPLICA IDENTITY FULL",),
        upserts=False,
        snapshots=False,
    ),
)
OFF_BY_DEFAULT = frozenset({"seats"})
"""Keys that are deferrable lose rows (`cdc-semantics` §5): compared only when named by `WITH`."""


def tables_named(names: Iterable[str]) -> tuple[Table, ...]:
    """Also those that are off by default."""
    wanted = set(names)
    return tuple(table for table in TABLES if table.name in wanted)


def creation(table: Table) -> list[str]:
    """Statements that make the table and the trigger that numbers every change of a row, in the row."""
    name = f"{SCHEMA}.{table.name}"
    born = "" if table.key else f", {BORN} bigint DEFAULT nextval('{SCHEMA}.stamps')"
    trigger = (
        f"CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON {name}"
        f" FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.stamp()"
    )
    create = f"CREATE TABLE {name} ({table.columns}, stamp bigint{born})"
    return [create, trigger, *(after.format(name) for after in table.after)]


FIRST = (
    f"CREATE SCHEMA {SCHEMA}",
    f"CREATE TYPE {SCHEMA}.mood AS ENUM ('merry', 'sad', 'so-so ü')",
    f"CREATE SEQUENCE {SCHEMA}.stamps",
    f"""CREATE FUNCTION {SCHEMA}.stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.stamp := nextval('{SCHEMA}.stamps'); RETURN NEW; END $$""",
    f"CREATE TABLE {SCHEMA}.{SIGNALS} (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
)
