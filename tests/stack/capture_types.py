"""Make the fixtures of `tests/unit/captured`: records of the real chain, and what PostgreSQL says of them.

A stack of its own runs `capture_types.sql` once while several connectors, one per `PROFILES`, read the same
tables. Sections whose extensions the server lacks are left out. `--programs` names the folder of another
PostgreSQL (`initdb`, `postgres`), of which only the sections that need extensions are taken.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from local_stack import LocalStack, RunningStack
from local_stack import postgres as postgres_of_the_stack
from local_stack.connect import Connect
from local_stack.connector import connector_settings

SCHEMA = "types"
_WITHOUT_TYPED_KEYS = {"table.include.list": f"{SCHEMA}[.](?!typed_keys).*"}
"""24:00 and years before 1677 arrive there as NULL, which a key cannot be: the connector stops."""
PROFILES: dict[str, dict[str, str]] = {
    "precise": {"hstore.handling.mode": "map"},
    "iso": {
        "time.precision.mode": "isostring",
        "decimal.handling.mode": "string",
        "interval.handling.mode": "string",
        "binary.handling.mode": "base64",
        "include.unknown.datatypes": "true",
    },
    "structured": {
        **_WITHOUT_TYPED_KEYS,
        "time.precision.mode": "structured",
        "decimal.handling.mode": "double",
        "binary.handling.mode": "hex",
    },
    "connect": {"time.precision.mode": "connect"},
    "micros": {"time.precision.mode": "microseconds"},
    "late": {"hstore.handling.mode": "map"},
    "nanos": {**_WITHOUT_TYPED_KEYS, "time.precision.mode": "nanoseconds"},
}
"""Settings beside those of the demo's connector; the name is the topic prefix."""
LATE = "late"
"""Starts when all is done: PostgreSQL's driver reads a snapshot, and it reads some values otherwise."""

_WITNESS = """
CREATE SCHEMA types;
CREATE TABLE public.said (
  place bigserial PRIMARY KEY, tx bigint, relation text, op text, old jsonb, new jsonb);
CREATE FUNCTION public.texts_of(relation regclass, held anyelement) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE columns text;
BEGIN
  SELECT string_agg(format('%L, ($1).%I::text', attname, attname), ', ') INTO columns
    FROM pg_attribute WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped;
  EXECUTE format('SELECT jsonb_build_object(%s)', columns) INTO columns USING held;
  RETURN columns;
END $$;
CREATE FUNCTION public.witness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.said (tx, relation, op, old, new) VALUES (
    pg_current_xact_id()::text::bigint, TG_TABLE_NAME, TG_OP,
    CASE WHEN TG_OP <> 'INSERT' THEN public.texts_of(TG_RELID, OLD) END,
    CASE WHEN TG_OP <> 'DELETE' THEN public.texts_of(TG_RELID, NEW) END);
  RETURN NULL;
END $$;
"""
_TYPES = """
SELECT relname, jsonb_object_agg(attname, coalesce(format_type(nullif(typbasetype, 0), typtypmod),
                                                   format_type(atttypid, atttypmod)))
  FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_type t ON t.oid = atttypid
 WHERE relnamespace = 'types'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
 GROUP BY relname
"""
_TRIGGER = (
    "CREATE TRIGGER witness AFTER INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW EXECUTE FUNCTION witness()"
)


@dataclass
class Section:
    name: str
    needs: frozenset[str]
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def sections(text: str) -> Iterator[Section]:
    for block in re.split(r"^-- section: ", text, flags=re.MULTILINE)[1:]:
        head, _, body = block.partition("\n")
        name, _, needs = head.partition(" needs ")
        before, _, after = body.partition("-- then:\n")
        yield Section(name, frozenset(needs.split()), _statements(before), _statements(after))


def _statements(text: str) -> list[str]:
    return [each.strip() for each in text.split(";\n") if each.strip()]


def capture(stack: RunningStack, *, only_extensions: bool) -> dict[str, Any]:
    with stack.postgres.connect() as connection:
        connection.autocommit = True
        connection.execute("SET bytea_output = hex")
        known = {name for (name,) in connection.execute("SELECT name FROM pg_available_extensions")}
        text = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
        chosen = [each for each in sections(text) if each.needs <= known]
        if only_extensions:
            chosen = [each for each in chosen if each.needs]
        connection.execute(_WITNESS.encode())
        for section in chosen:
            _run(connection, section.before)
        connection.execute("GRANT USAGE ON SCHEMA types TO debezium")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA types TO debezium")
        connection.execute("CREATE PUBLICATION types FOR TABLES IN SCHEMA types")
        _start(stack, connection, [profile for profile in PROFILES if profile != LATE])
        for section in chosen:
            _run(connection, section.after)
        _start(stack, connection, [LATE])
        _wait_until_confirmed(connection)
        said = connection.execute(
            "SELECT tx, relation, op, old, new FROM public.said ORDER BY place"
        ).fetchall()
        types = dict(connection.execute(_TYPES).fetchall())
        (version,) = connection.execute("SHOW server_version").fetchone() or ("",)
    records = _records(stack)
    if {each["topic"].split(".")[0] for each in records} != set(PROFILES):
        raise LookupError(f"a connector sent nothing; all together sent {len(records)} records")
    return {
        "postgres": version,
        "profiles": PROFILES,
        "types": types,
        "schemas": _schemas(stack, records),
        "said": [dict(zip(("tx", "relation", "op", "old", "new"), row, strict=True)) for row in said],
        "records": records,
    }


def _run(connection: psycopg.Connection[Any], statements: list[str]) -> None:
    for statement in statements:
        code = re.sub(r"^--.*\n", "", statement, flags=re.MULTILINE)
        connection.execute(code.encode())
        created = re.match(r'CREATE TABLE (types\.(?:\w+|"[^"]+"))', code)
        if created:
            connection.execute(_TRIGGER.format(created[1]).encode())


def _start(stack: RunningStack, connection: psycopg.Connection[Any], profiles: list[str]) -> None:
    with Connect(stack.site).client() as client:
        for profile in profiles:
            settings = {
                **connector_settings(stack.site),
                "topic.prefix": profile,
                "slot.name": profile,
                "publication.name": "types",
                "publication.autocreate.mode": "disabled",
                "table.include.list": f"{SCHEMA}[.].*",
                **PROFILES[profile],
            }
            del settings["signal.data.collection"], settings["schema.include.list"]
            client.put(f"/connectors/{profile}/config", json=settings).raise_for_status()
        for profile in profiles:
            _wait(
                lambda profile=profile: _streams(connection, profile),
                lambda profile=profile: client.get(f"/connectors/{profile}/status").text[:2000],
            )


def _streams(connection: psycopg.Connection[Any], slot: str) -> bool:
    query = "SELECT active AND confirmed_flush_lsn IS NOT NULL FROM pg_replication_slots WHERE slot_name = %s"
    row = connection.execute(query, (slot,)).fetchone()
    return row is not None and row[0] is True


def _wait_until_confirmed(connection: psycopg.Connection[Any]) -> None:
    something = "SELECT pg_logical_emit_message(false, 'capture', 'seen?')"
    connection.execute(something)  # behind where the last slot was made: its snapshot must be over
    (wanted,) = connection.execute("SELECT pg_current_wal_lsn()").fetchone() or (None,)
    connection.execute(something)  # an idle stream confirms nothing
    late = (
        "SELECT string_agg(slot_name, ', ') FROM pg_replication_slots"
        " WHERE slot_name <> 'shop' AND (confirmed_flush_lsn < %s::pg_lsn OR NOT active)"
    )

    def name_late() -> str | None:
        (names,) = connection.execute(late, (wanted,)).fetchone() or (None,)
        return names

    _wait(lambda: name_late() is None, lambda: f"not captured by {name_late()}")


def _wait(done: Any, reason: Any, *, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(reason())
        time.sleep(0.2)


def _records(stack: RunningStack) -> list[dict[str, Any]]:
    settings = {**stack.kafka.client_settings(), "group.id": "capture", "enable.auto.commit": False}
    wanted = re.compile(rf"({'|'.join(PROFILES)})\.{SCHEMA}\..*")
    found = []
    with closing(Consumer(settings)) as consumer:
        topics = [name for name in consumer.list_topics(timeout=10).topics if wanted.fullmatch(name)]
        for topic in sorted(topics):
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            at = 0
            while at < end:
                message = consumer.poll(10)
                if message is None or message.error():
                    raise TimeoutError(f"{topic} ends at {end}, read up to {at}")
                at = message.offset() + 1
                found.append(_record(message))
    return found


def _record(message: Any) -> dict[str, Any]:
    record = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": _text(message.key()),
        "value": _text(message.value()),
    }
    if message.headers():
        record["headers"] = [[name, _text(held)] for name, held in message.headers()]
    return record


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _schemas(stack: RunningStack, records: list[dict[str, Any]]) -> dict[str, str]:
    frames = [b64decode(each[side]) for each in records for side in ("key", "value") if each[side]]
    ids = sorted({int.from_bytes(frame[1:5], "big") for frame in frames})
    with stack.registry.client() as client:
        return {
            str(number): client.get(f"/schemas/ids/{number}").raise_for_status().json()["schema"]
            for number in ids
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--programs", type=Path, help="bin folder of another PostgreSQL than the wheel's")
    chosen = parser.parse_args()
    if chosen.programs:
        postgres_of_the_stack.binary = lambda name: chosen.programs / name
    with tempfile.TemporaryDirectory() as folder, LocalStack(Path(folder)).running(airflow=False) as stack:
        found = capture(stack, only_extensions=chosen.programs is not None)
    chosen.out.parent.mkdir(exist_ok=True)
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    chosen.out.write_bytes(lzma.compress(text.encode(), preset=9))
    print(
        f"{len(found['records'])} records, {len(found['schemas'])} schemas, {chosen.out.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
