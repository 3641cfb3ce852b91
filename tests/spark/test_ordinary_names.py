"""A source may call its columns what it likes: our own words are names like all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]

from cases.case_file import Case, CaseEvent, SourcePosition, Table  # type: ignore[import-not-found]
from cases.encoding import Writer, writers  # type: ignore[import-not-found]

UNTOLD = "__debezium_unavailable_value"
CARRIED = ("key", "hop", "root", "below", "near")
"""Columns whose values an update may not tell."""
WORDS = (
    *CARRIED,
    "wanted_key",
    "place",
    "known",
    "cut",
    "wanted",
    "event",
    "applies",
    "s",
    "f",
    "h",
    "op",
    "after",
)


def writer_of(key: str) -> Writer:
    columns = {key: "long", **dict.fromkeys(words(key), "string")}
    case = Case.model_construct(
        name="words", table=Table(key=(key,), columns=columns), events=(CaseEvent(at="0@0"),)
    )
    return writers(case, first_id=100)[1]


def words(key: str) -> Sequence[str]:
    return [word for word in WORDS if word != key]


def merged(chain: Chain, table: Any, key: str, *batches: Sequence[tuple[str, int, str]]) -> None:
    """Of events (operation, key, what all columns say); those of a batch are one transaction."""
    writer, offset = writer_of(key), 0
    (key_id, key_schema), (value_id, value_schema) = writer.schemas.items()
    chain.registry.register(table.topics[0], keys={key_id: key_schema}, values={value_id: value_schema})
    for number, batch in enumerate(batches, 1):
        sent = []
        for order, (op, of, says) in enumerate(batch, 1):
            position = SourcePosition(
                sequence=(100 * number, 100 * number + 10), lsn=100 * number + 10, tx=number, order=order
            )
            told = {word: says if word in CARRIED else says.replace(UNTOLD, "one") for word in words(key)}
            after = None if op == "d" else {**told, key: of}
            event = CaseEvent(at=f"0@{offset}", op=op, key={key: of}, after=after, position=position)
            sent.append(writer.record(event))
            offset += 1
        chain.ingest(table, sent)
        chain.merge(table)


@pytest.mark.parametrize("key", ["key", "place"])
def test_words_of_ours_are_names_like_all_others(key, chain):
    table = table_of("words", history=True)

    merged(
        chain,
        table,
        key,
        [("c", 1, "one"), ("c", 2, "two")],
        [("u", 1, UNTOLD), ("u", 2, "deux")],
        [("d", 1, ""), ("c", 11, UNTOLD)],
        [("u", 2, "zwei")],
    )

    told = {row[key]: {row[word] for word in words(key)} for row in chain.silver(table)}
    assert told == {11: {"one"}, 2: {"zwei"}}
    begun = sorted((row[key], row["_cdc_from"]["row"], row[words(key)[0]]) for row in chain.history(table))
    assert begun == [
        (1, 110, "one"), (1, 210, "one"), (2, 110, "two"), (2, 210, "deux"), (2, 410, "zwei"),
        (11, 310, "one"),
    ]  # fmt: skip
