"""What reading a table costs: its files, how many are small, its hidden rows, the length of its log."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from cdc_lakehouse.lake.snapshot import newest_snapshot

SMALL_FILE = 16 * 2**20
"""Bytes. Below, opening a file costs more than reading it."""


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
    if snapshot is None:
        return None
    sizes = [file.size for file in snapshot.files]
    return Health(
        files=len(sizes),
        bytes=sum(sizes),
        # The last file of a table may be as small as it likes.
        small_files=sum(size < SMALL_FILE for size in sizes) if len(sizes) > 1 else 0,
        rows=sum(file.rows or 0 for file in snapshot.files),
        hidden_rows=sum(file.deleted.cardinality for file in snapshot.files if file.deleted is not None),
        log_files=snapshot.log_files,
    )
