"""What a log folder says about its own damage, and what may be moved out of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from delta_logs import commit_of, foreign, ledger_of, write_log  # type: ignore[import-not-found]
from deltalake import DeltaTable

from cdc_lakehouse.errors import DataFilesGoneError, LogDamagedError, LogTornError
from cdc_lakehouse.lake.damage import (
    TORN,
    LogListing,
    heal_table,
    heal_torn_log,
    is_whole_commit,
    refuse_damage,
    refuse_missing_files,
    was_set_aside,
)
from cdc_lakehouse.lake.filesystem import filesystem_of, sync_file
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.newest_ledger import newest_ledger
from cdc_lakehouse.lake.state import STEPS_ID, has_steps, is_there, read_state

FIRST = ledger_of("orders", topic="shop.orders", end=5)


def commit(version: int) -> str:
    return f"{version:020d}.json"


def listing(*commits: int, empty: int | None = None, **more: int) -> LogListing:
    names = {commit(version): 0 if version == empty else 100 for version in commits}
    return LogListing(
        {**names, **{f"{int(n[1:]):020d}.checkpoint.parquet": size for n, size in more.items()}}
    )


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = (tmp_path / "orders").as_uri()
    write_log(uri, commit_of(FIRST), *[foreign("OPTIMIZE") for _ in range(3)])
    return uri


def log_of(uri: str) -> Path:
    return Path(uri.removeprefix("file://"), "_delta_log")


@pytest.mark.parametrize(
    ("listing", "missing"),
    [
        (listing(0, 1, 2), None),
        (listing(0, 1, 3), 2),
        (listing(1, 2), 0),
        (listing(0, 1, 2, empty=1), 1),
        (listing(0, 1, 2, empty=2), None),  # torn, not damaged
        (listing(0, 2, 3, c1=50), None),  # a checkpoint has what its versions said
        (listing(8, 9, c8=50), None),  # what is older has expired
        (listing(8, 9, c8=0), 0),
        (listing(8, 10, c8=50), 9),
        (LogListing({}), None),
    ],
)
def test_a_version_that_newer_ones_build_on_is_missed(listing, missing):
    assert listing.missing() == missing


@pytest.mark.parametrize(
    ("content", "is_whole"),
    [
        (b'{"commitInfo":{}}\n{"add":{}}\n', True),
        (b'{"commitInfo":{}}', True),
        (b"", False),
        (b"\n", False),
        (b"\0" * 40, False),
        (b'{"commitInfo":{}}\n{"add":', False),
        (b'{"commitInfo":{}}\n\0\0', False),
        (b"7", False),
    ],
)
def test_a_commit_is_whole_when_each_line_is_an_action(content, is_whole):
    assert is_whole_commit(content) is is_whole


def test_a_sound_log_is_left_alone(uri):
    refuse_damage(uri, table="orders")

    assert heal_torn_log(uri, table="orders") == ()


def test_a_torn_commit_is_moved_aside_once_with_what_lies_beside_it(uri):
    log = log_of(uri)
    (log / commit(4)).write_text("half a li")
    for name in ("00000000000000000004.crc", ".00000000000000000004.crc.crc", f".{commit(4)}.crc"):
        (log / name).write_text("sum")

    with pytest.raises(LogTornError):
        read_state(uri, table="orders")
    healed = heal_torn_log(uri, table="orders")

    assert healed == (commit(4), "00000000000000000004.crc")
    assert sorted(path.name for path in log.iterdir()) == [commit(version) for version in range(4)]
    assert len(list((log.parent / TORN).iterdir())) == 2
    assert heal_torn_log(uri, table="orders") == ()
    state = read_state(uri, table="orders")
    assert state is not None
    assert (state.version, state.ledger) == (3, FIRST)


def test_a_version_that_another_attempt_has_committed_again_is_left_alone(uri, monkeypatch):
    """Both saw the torn commit; the other one moved it aside and committed before this one moves."""
    monkeypatch.setattr("cdc_lakehouse.lake.damage._torn_files", lambda uri, listing: (commit(3),))

    heal_torn_log(uri, table="orders")

    assert (log_of(uri) / commit(3)).exists()


def test_a_torn_checkpoint_is_moved_aside_and_its_pointer(uri):
    log = log_of(uri)
    (log / "00000000000000000003.checkpoint.parquet").write_bytes(b"PAR1 and no end")
    (log / "_last_checkpoint").write_text('{"version": 3, "size": 4}')

    assert heal_torn_log(uri, table="orders") == (
        "00000000000000000003.checkpoint.parquet",
        "_last_checkpoint",
    )
    assert read_state(uri, table="orders") is not None


def test_a_commit_that_is_missed_below_newer_ones_is_not_healed(uri):
    (log_of(uri) / commit(2)).unlink()

    assert heal_torn_log(uri, table="orders") == ()
    with pytest.raises(LogDamagedError) as caught:
        read_state(uri, table="orders")
    assert caught.value.version == 2


def test_the_checksum_of_a_version_that_is_lost_leaves_the_short_look_without_an_answer(uri):
    assert newest_ledger(uri, table="orders") is not None

    (log_of(uri) / "00000000000000000005.crc").write_text("of a version that would follow a lost one")
    (log_of(uri) / "00000000000000000004.crc").write_text("of a lost version")

    assert newest_ledger(uri, table="orders") is None


def write_data(uri: str, *names: str) -> None:
    for name in names:
        Path(uri.removeprefix("file://"), name).write_bytes(b"rows")


def replaced(*, added: tuple[str, ...], removed: tuple[str, ...] = ()) -> list[dict[str, object]]:
    removals: list[dict[str, object]] = [
        {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}} for path in removed
    ]
    additions: list[dict[str, object]] = [
        {
            "add": {
                "path": path,
                "partitionValues": {},
                "size": 4,
                "modificationTime": 1,
                "dataChange": True,
            }
        }
        for path in added
    ]
    return [*foreign("WRITE"), *removals, *additions]


def test_the_version_that_is_named_for_missing_files_has_all_of_its_own(tmp_path):
    """The version before the missing file came has files that VACUUM took."""
    uri = (tmp_path / "orders").as_uri()
    write_log(uri, replaced(added=("a",)), replaced(added=("b",)), replaced(added=("c",), removed=("b",)))
    write_data(uri, "a")

    with pytest.raises(DataFilesGoneError) as caught:
        refuse_missing_files(uri, {"a": 4, "c": 4}, table="orders")

    assert (caught.value.first, caught.value.whole) == ("c", "all files of version 1 are there")


def test_no_version_is_named_where_the_log_does_not_say_which_one_was_whole(tmp_path):
    """The commit that added `a` has expired: only the checkpoint knows it."""
    uri = (tmp_path / "orders").as_uri()
    write_log(uri, replaced(added=("a",)), replaced(added=("b",)))
    DeltaTable(uri).create_checkpoint()
    write_log(uri, replaced(added=("a",)), replaced(added=("b",)), replaced(added=("c",)))
    for version in (0, 1, 2):
        (log_of(uri) / commit(version)).unlink()
    write_data(uri, "b")

    with pytest.raises(DataFilesGoneError) as caught:
        refuse_missing_files(uri, {"a": 4, "b": 4, "c": 4}, table="orders")

    assert caught.value.whole == "no older version in its log has all its files"


def test_a_worker_waits_until_its_file_is_on_the_disk(tmp_path, monkeypatch):
    synced: list[str] = []
    monkeypatch.setattr("os.fsync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink().name))
    (tmp_path / "rows.parquet").write_text("rows")

    sync_file(*filesystem_of((tmp_path / "rows.parquet").as_uri()))

    assert synced == ["rows.parquet"]


def test_a_version_that_appears_while_the_log_is_listed_is_not_missed(uri, monkeypatch):
    """A listing can lack a commit and have a file that was written behind it."""
    seen = {commit(version): 100 for version in (0, 1, 3)} | {"00000000000000000003.crc": 9}
    for sizes in (seen, {commit(0): 100, "00000000000000000003.crc": 9}):
        monkeypatch.setattr("cdc_lakehouse.lake.damage._list_log", lambda uri, sizes=sizes: LogListing(sizes))

        refuse_damage(uri, table="orders")


STEP: list[dict[str, object]] = [
    {"commitInfo": {"timestamp": 2, "operation": "WRITE", "operationParameters": {}}},
    {"txn": {"appId": STEPS_ID, "version": 1, "lastUpdated": 1}},
]
TEARS = pytest.mark.parametrize(
    "content", [b"", b'{"commitInfo":', bytes(80)], ids=["empty", "half", "zeros"]
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three steps of each table beside silver; the last one is version 3."""
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    for uri in (lake.history("orders"), lake.tombstones("orders")):
        write_log(uri, STEP, STEP, STEP)
    return lake


@TEARS
def test_a_torn_step_of_a_history_is_taken_back(lake, content):
    (log_of(lake.history("orders")) / commit(3)).write_bytes(content)

    heal_table(lake, "orders")

    assert max(path.name for path in log_of(lake.history("orders")).iterdir()) == commit(2)
    assert has_steps(lake.history("orders"))
    assert not was_set_aside(lake.history("orders"))


@TEARS
def test_tombstones_with_a_torn_step_are_set_aside_as_a_whole_until_they_are_made_again(lake, content):
    """Which deletes the step said is nowhere else: a part of them would let older events bring rows back."""
    uri = lake.tombstones("orders")
    (log_of(uri) / commit(3)).write_bytes(content)

    heal_table(lake, "orders")
    heal_table(lake, "orders")

    assert (is_there(uri), has_steps(uri), was_set_aside(uri)) == (False, False, True)
    write_log(uri)  # an attempt that is killed behind the creation has made nothing
    assert (is_there(uri), has_steps(uri)) == (True, False)
    write_log(uri, STEP)
    assert has_steps(uri)


def test_tombstones_whose_newest_commit_is_lost_are_set_aside(lake):
    uri = lake.tombstones("orders")
    (log_of(uri) / commit(3)).unlink()
    (log_of(uri) / "00000000000000000003.crc").write_text("of the lost version")

    heal_table(lake, "orders")

    assert was_set_aside(uri)


def test_a_torn_checkpoint_of_tombstones_costs_none_of_them(lake):
    uri = lake.tombstones("orders")
    (log_of(uri) / "00000000000000000002.checkpoint.parquet").write_bytes(b"PAR1 and no end")

    heal_table(lake, "orders")

    assert (has_steps(uri), was_set_aside(uri)) == (True, False)


def test_sound_tables_beside_silver_are_left_alone(lake):
    heal_table(lake, "orders")

    for uri in (lake.history("orders"), lake.tombstones("orders")):
        assert [path.name for path in Path(uri.removeprefix("file://")).iterdir()] == ["_delta_log"]
