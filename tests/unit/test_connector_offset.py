"""What the offset of a connector proves: nothing while a full snapshot is on its way (decision 0033), and the
end of an incremental one (decision 0060)."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.confirming import positions_in
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.debezium.connector_offset import complete_up_to, server_of, snapshots_under_way
from cdc_lakehouse.kafka.offsets_topic import Committed
from cdc_lakehouse.repair.incremental_snapshot import SentSignal, SnapshotState, state_of_snapshot

COLLECTIONS = (
    '[{"incremental_snapshot_collections_id":"public.customers",'
    '"incremental_snapshot_collections_additional_condition":null,'
    '"incremental_snapshot_collections_surrogate_key":null,'
    '"incremental_snapshot_collections_correlation_id":"resync-1"}]'
)
UNDER_WAY = {
    "transaction_id": "797",
    "incremental_snapshot_correlation_id": "resync-1",
    "lsn_proc": 31022648,
    "lsn_commit": 31022648,
    "incremental_snapshot_collections": COLLECTIONS,
    "lsn": 31022648,
    "txId": 797,
}
"""As Debezium 3.7.0 wrote it between two chunks, but for its keys."""
STREAMED = {"lsn_proc": 300, "lsn_commit": 200, "lsn": 300, "txId": 7, "ts_usec": 1}

SIGNAL = SentSignal("resync-1", topic="shop.public.customers", behind=LogPosition(200))


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


def test_an_offset_names_the_signals_whose_snapshots_are_under_way_and_none_behind_their_end():
    without = COLLECTIONS.replace(',"incremental_snapshot_collections_correlation_id":"resync-1"', "")

    assert snapshots_under_way(UNDER_WAY) == {"resync-1"}
    assert snapshots_under_way({**UNDER_WAY, "incremental_snapshot_collections": without}) == {"resync-1"}
    assert snapshots_under_way(STREAMED) == frozenset()
    assert snapshots_under_way(None) == frozenset()


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        ({**STREAMED, "lsn_commit": 199}, SnapshotState.NOT_READ),
        ({**STREAMED, "snapshot": "BLOCKING"}, SnapshotState.NOT_READ),
        (UNDER_WAY, SnapshotState.RUNNING),
        (STREAMED, SnapshotState.ENDED),
    ],
)
def test_a_snapshot_has_ended_where_the_connector_is_behind_its_signal_and_does_not_name_it(offset, expected):
    committed = [
        Committed(["shop", {"server": "shop"}], UNDER_WAY),
        Committed(["shop", {"server": "shop"}], offset),
        Committed(["other", {"server": "billing"}], {**STREAMED, "lsn_commit": 9}),
    ]

    assert state_of_snapshot(committed, SIGNAL) is expected
    assert state_of_snapshot(committed[2:], SIGNAL) is SnapshotState.UNKNOWN
