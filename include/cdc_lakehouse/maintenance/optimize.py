"""Write small files and files with many hidden rows again. Commits that come meanwhile win."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdc_lakehouse.lake.delta_transaction import DeltaTransaction, Refusal, refusal_of, removal_of
from cdc_lakehouse.lake.file_commit import refuse_missing
from cdc_lakehouse.lake.snapshot import Snapshot, snapshot_at
from cdc_lakehouse.maintenance.plan import OptimizePlan, what_only_delta_keeps
from cdc_lakehouse.maintenance.rewriting import WrittenBin, write_bins

logger = logging.getLogger(__name__)

_TRIES = 3
"""Tries of one commit; one is lost where another commit takes files of ours behind the look at the table."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What the commits of one OPTIMIZE did together."""

    removed: int = 0
    """Files that left the table."""
    added: int = 0
    """Files that took their place."""
    bytes: int = 0
    """Size of the files that left."""
    commits: int = 0
    gave_way: bool = False
    """True if other commits changed some of the files meanwhile, so that work is left."""

    def followed_by(self, later: Packed) -> Packed:
        """Return what both did together; work is left if the later one left some."""
        return Packed(
            removed=self.removed + later.removed,
            added=self.added + later.added,
            bytes=self.bytes + later.bytes,
            commits=self.commits + later.commits,
            gave_way=later.gave_way,
        )


def optimize(session: SparkSession, snapshot: Snapshot, plan: OptimizePlan, *, attempt: str) -> Packed:
    """Write files of a snapshot again as `plan` says. Readers see no change; a second call finds no work.

    Each batch is a commit. A file that another commit changed or removed meanwhile costs its bin: the file
    that was written for it is in no commit, and the next VACUUM that lists the folder deletes it.
    """
    packed = Packed()
    for batch in plan.batches:
        written = write_bins(session, snapshot, batch, attempt=attempt)
        committed = _commit_unchanged(session, snapshot.uri, written)
        if len(committed) < len(written):
            logger.warning("optimize gave way to another commit", extra={"uri": snapshot.uri})
        done = _summarize(committed, gave_way=packed.gave_way or len(committed) < len(written))
        packed = packed.followed_by(done)
    return packed


def _commit_unchanged(session: SparkSession, uri: str, written: Sequence[WrittenBin]) -> list[WrittenBin]:
    """Replace the files of those bins that nobody changed, in one commit, and return these bins."""
    for _ in range(_TRIES):
        transaction = DeltaTransaction.start(session, uri, reads_rows=False)
        newest = snapshot_at(uri, transaction.read_version)
        if newest is None or what_only_delta_keeps(newest) is not None:
            return []
        now = {file.path: file.deleted for file in newest.files}
        done = [each for each in written if each.new is not None and each.new.name in now]
        if done:  # by a try whose answer was lost
            return done
        unchanged = [
            each
            for each in written
            if all(file.path in now and now[file.path] == file.deleted for file in each.files)
        ]
        if not unchanged:
            return []
        new = [each.new for each in unchanged if each.new is not None]
        refuse_missing(uri, new, table=uri.rpartition("/")[2])
        try:
            transaction.commit_rewrite(_to_actions(unchanged))
        except Exception as exc:
            if refusal_of(exc) is not Refusal.CHANGED:
                raise
        else:
            return unchanged
    return []


def _to_actions(written: Sequence[WrittenBin]) -> list[dict[str, object]]:
    at = time.time_ns() // 1_000_000
    removals = [{"remove": removal_of(file.action, at=at)} for each in written for file in each.files]
    additions = [each.new.action() for each in written if each.new is not None]
    return [
        {kind: {**facts, "dataChange": False} for kind, facts in action.items()}
        for action in (*removals, *additions)
    ]


def _summarize(committed: Sequence[WrittenBin], *, gave_way: bool) -> Packed:
    files = [file for each in committed for file in each.files]
    return Packed(
        removed=len(files),
        added=sum(each.new is not None for each in committed),
        bytes=sum(file.size for file in files),
        commits=1 if committed else 0,
        gave_way=gave_way,
    )
