"""Every case file: its form, its bytes through the decoder, its rows through the oracle."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pydantic import ValidationError

from append_oracle import appended_of  # type: ignore[import-not-found]
from cases.case_file import (  # type: ignore[import-not-found]
    FOLDER,
    Case,
    Refusal,
    all_cases,
    applied_cases,
    historic_cases,
    read_case,
    refused_cases,
)
from cases.encoding import KafkaRecord, default_of, records, writers  # type: ignore[import-not-found]
from cases.rows import (  # type: ignore[import-not-found]
    expected_bronze,
    in_key_order,
    in_version_order,
    is_inside,
    specified_silver,
    told_bronze,
    told_history,
)
from cdc_lakehouse.debezium.columns import columns_of, evolve_leniently
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.incompatible import with_side_columns
from cdc_lakehouse.debezium.plans import DecodePlans
from epochs_oracle import Epochs  # type: ignore[import-not-found]
from history_oracle import history_of  # type: ignore[import-not-found]
from key_oracle import refuse_shared_keys, rekeyed, told_apart_by_topic  # type: ignore[import-not-found]
from oracle import Refused, silver_of, with_defaults, with_dropped_columns  # type: ignore[import-not-found]


def by_name(case: Case) -> str:
    return str(case.name)


def decoded(case: Case) -> list[dict[str, Any]]:
    """What the decoder makes of the case's bytes."""
    by_batch = writers(case, first_id=10)
    texts, columns = {}, None
    for writer in by_batch.values():
        key = next(iter(writer.keys.values()), None)
        new = columns_of(key, *writer.values.values(), table=case.name)
        grown = with_side_columns if case.table.side_columns else evolve_leniently
        columns = new if columns is None else grown(columns, new)
        texts.update(writer.schemas)
    assert columns is not None
    sent = [record for batch in by_batch for record in records(case, by_batch, batch=batch)]
    plans = DecodePlans(table=case.name, columns=columns, schemas=texts)
    return list(decode(kafka_batch(sent), plans).to_pylist())


def kafka_batch(sent: list[KafkaRecord]) -> pa.RecordBatch:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    told = [[{"key": k, "value": v} for k, v in each.headers] or None for each in sent]
    return pa.record_batch(
        {
            "key": pa.array([each.key for each in sent], pa.binary()),
            "value": pa.array([each.value for each in sent], pa.binary()),
            "topic": pa.array([each.topic for each in sent], pa.string()),
            "partition": pa.array([each.partition for each in sent], pa.int32()),
            "offset": pa.array([each.offset for each in sent], pa.int64()),
            "timestamp": pa.array([0] * len(sent), pa.timestamp("us", tz="UTC")),
            "headers": pa.array(told, headers),
        }
    )


def bronze_of(case: Case, *, of_history: bool = False) -> list[dict[str, Any]]:
    """As the oracles take it, with the epochs of all drains and silver's key.

    A history keeps the values of a dropped column that silver sets to NULL.
    """
    epochs, rows = Epochs(), []
    more = [
        {
            "snapshot": event.position.snapshot,
            "ts": event.position.ts,
            "topic": case.topic + event.topic,
            "sent": set(case.columns_of_batch(event.batch)),
        }
        for event in case.events
    ]
    told = [{**row, **added} for row, added in zip(expected_bronze(case), more, strict=True)]
    batches = [event.batch for event in case.events]
    for batch in sorted(set(batches)):
        rows += epochs.drain(row for row, of in zip(told, batches, strict=True) if of == batch)
    defaults = {name: default_of(kind) for name, kind in case.table.added_with_default.items()}
    if case.table.mode == "upsert":
        rows = with_defaults(rows, defaults)
    keeps_sent = of_history and case.table.on_dropped_column == "as_null"
    if case.table.mode == "upsert" and case.drops_columns and not keeps_sent:
        rows = with_dropped_columns(rows, policy=case.table.on_dropped_column)
    rows = rekeyed(rows, case.table.own_key) if case.table.own_key else rows
    if case.table.topic_column:
        return list(told_apart_by_topic(rows, case.table.topic_column))
    if case.table.shared_keys == "refuse" and case.table.mode == "upsert":
        refuse_shared_keys(rows)
    return list(rows)


def folded(case: Case) -> list[dict[str, Any]]:
    rows = bronze_of(case)
    if case.table.mode == "append":
        silver = appended_of(rows)
    else:
        inside = partial(is_inside, case)
        silver = list(silver_of(rows, deletes=case.table.deletes, inside=inside).values())
    return list(in_key_order(case, [specified_silver(case, row) for row in silver]))


@pytest.mark.parametrize("case", all_cases(), ids=by_name)
def test_the_decoder_makes_the_bronze_rows_of_the_case(case):
    assert [told_bronze(case, row) for row in decoded(case)] == expected_bronze(case)


@pytest.mark.parametrize("case", applied_cases(), ids=by_name)
def test_the_oracle_makes_the_silver_rows_of_the_case(case):
    assert folded(case) == list(case.silver)


@pytest.mark.parametrize("case", historic_cases(), ids=by_name)
def test_the_oracle_makes_the_history_of_the_case(case):
    rows = history_of(bronze_of(case, of_history=True), tracked=case.table.tracked)

    assert in_version_order(case, [told_history(case, row) for row in rows]) == list(case.history)


@pytest.mark.parametrize("case", refused_cases(), ids=by_name)
def test_the_oracle_refuses_what_the_case_says(case):
    with pytest.raises(Refused) as caught:
        folded(case)

    assert Refusal(error=caught.value.code) == case.silver


def test_a_case_whose_bronze_lacks_a_row_is_no_case(tmp_path):
    document = yaml.safe_load((FOLDER / "insert_update_delete_leaves_nothing.yaml").read_text())
    path = tmp_path / "short.yaml"
    path.write_text(yaml.safe_dump({**document, "bronze": document["bronze"][1:]}))

    with pytest.raises(ValidationError, match="one row per event"):
        read_case(path)


def test_a_case_with_a_misspelt_word_is_no_case(tmp_path):
    document = yaml.safe_load((FOLDER / "insert_update_delete_leaves_nothing.yaml").read_text())
    path = tmp_path / "misspelt.yaml"
    path.write_text(yaml.safe_dump({**document, "silvr": []}))

    with pytest.raises(ValidationError, match="silvr"):
        read_case(path)
