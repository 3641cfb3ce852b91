"""What the offset of a connector proves: nothing while a snapshot is on its way (decision 0033)."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.confirming import positions_in
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.debezium.connector_offset import complete_up_to, server_of
from cdc_lakehouse.kafka.offsets_topic import Committed

STREAMED = {"lsn_proc": 300, "lsn_commit": 200, "lsn": 300, "txId": 7, "ts_usec": 1}


def test_all_transactions_before_the_last_commit_are_sent():
    assert complete_up_to(STREAMED) == 200


@pytest.mark.parametrize(
    "offset",
    [
        {**STREAMED, "snapshot": "INITIAL", "last_snapshot_record": True, "snapshot_completed": True},
        {**STREAMED, "snapshot": "BLOCKING"},
        {"lsn": 300, "lsn_proc": 300},
        {"lsn_commit": "200"},
        {},
        [],
    ],
)
def test_a_snapshot_and_what_is_no_offset_of_postgresql_say_nothing(offset):
    assert complete_up_to(offset) is None


@pytest.mark.parametrize("key", [None, "shop", ["shop"], ["shop", {"topic": "t"}], {"server": "shop"}])
def test_keys_of_others_name_no_prefix(key):
    assert server_of(key) is None


def test_the_newest_word_for_a_prefix_counts():
    renamed = [
        Committed(["old", {"server": "shop"}], STREAMED),
        Committed(["new", {"server": "shop"}], {**STREAMED, "lsn_commit": 250}),
        Committed(["other", {"server": "billing"}], {**STREAMED, "lsn_commit": 20}),
        Committed(["file", {"filename": "x"}], {"position": 9}),
    ]
    again = [*renamed, Committed(["newest", {"server": "shop"}], {"snapshot": "INITIAL", "lsn": 1})]

    assert positions_in(renamed) == {"shop": LogPosition(250), "billing": LogPosition(20)}
    assert positions_in(again) == {"billing": LogPosition(20)}
