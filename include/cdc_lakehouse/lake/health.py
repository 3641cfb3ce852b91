"""What reading a table costs: its files, how many are small, its hidden rows, the length of its log."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from cdc_lakehouse.lake.snapshot import Snapshot, newest_snapshot

_LEAST_TARGET = 128 * 2**20
_MOST_TARGET = 2**30
_FILES_OF_A_LARGE_TABLE = 256
_TARGETS_OF_A_SMALL_FILE = 4


def target_file_size(table_bytes: int) -> int:
    """Return the size that files of a table should have: 128 MiB up to 64 GiB of it, 1 GiB from 256 GiB on.

    It is a power of two, so that a table that grows seldom gets another one.
    """
    wanted = table_bytes // _FILES_OF_A_LARGE_TABLE
    return min(max(_LEAST_TARGET, 1 << max(wanted.bit_length() - 1, 0)), _MOST_TARGET)


def small_file_size(table_bytes: int) -> int:
    """Return the size below which a file is small: a quarter of the target.

    OPTIMIZE packs files of up to this size until the next one would exceed the target. So what it leaves has
    three quarters of it, but for the last file, and is not small when the table has grown to the next target.
    """
    return target_file_size(table_bytes) // _TARGETS_OF_A_SMALL_FILE


@dataclass(frozen=True, slots=True)
class Health:
    """One version of a table; sizes in bytes."""

    files: int
    bytes: int
    small_files: int
    rows: int
    hidden_rows: int
    """Rows that deletion vectors hide: they are read and thrown away."""
    log_files: int
    """Commits that the folder of its log holds."""

    @property
    def small_share(self) -> float:
        """Share of the files that are small."""
        return round(self.small_files / self.files, 3) if self.files else 0.0

    @property
    def hidden_share(self) -> float:
        """Share of the rows that deletion vectors hide."""
        return round(self.hidden_rows / self.rows, 3) if self.rows else 0.0

    def document(self) -> dict[str, int | float]:
        """Return what a report tells."""
        return {**asdict(self), "small_share": self.small_share, "hidden_share": self.hidden_share}


def health_of(uri: str) -> Health | None:
    """Return the health of the newest version, from its log alone; None while there is no table."""
    snapshot = newest_snapshot(uri)
    return None if snapshot is None else health_in(snapshot)


def health_in(snapshot: Snapshot) -> Health:
    """Return the health of one version."""
    sizes = [file.size for file in snapshot.files]
    small = small_file_size(sum(sizes))
    return Health(
        files=len(sizes),
        bytes=sum(sizes),
        # The last file of a table may be as small as it likes.
        small_files=sum(size < small for size in sizes) if len(sizes) > 1 else 0,
        rows=sum(file.rows or 0 for file in snapshot.files),
        hidden_rows=sum(file.hidden_rows for file in snapshot.files),
        log_files=snapshot.log_files,
    )
