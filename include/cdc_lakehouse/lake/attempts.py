"""Which attempts may still write: every process that starts Spark keeps a record of itself in the lake.

The record says that the attempt has begun, then at intervals that it is alive, and at last that it ended.
Maintenance asks these records before it deletes what an attempt may still need. A record that a loss of power
tore is replaced by what its file tells: its name says when the attempt began, its age when it was last alive.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake, began_at

logger = logging.getLogger(__name__)

BEAT_SECONDS = 300.0
SILENCE = timedelta(hours=1)
"""A process that has not written its record for so long is dead or frozen. One that wakes up later finds no
file of its own that VACUUM took: its commit is refused (`FILES_GONE`)."""
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    attempt: str
    job: str
    began: datetime
    seen: datetime
    """When the process last said that it is alive."""
    ended: datetime | None = None
    silence: timedelta = SILENCE
    """How long after its last sign of life it may still write."""
    is_torn: bool = False
    """Whether the file holds no record, so that this one is made of its name and age."""

    def may_write(self, now: datetime) -> bool:
        """Whether files that this attempt wrote may still be committed."""
        return self.ended is None and now - self.seen < self.silence

    @property
    def last_sign(self) -> datetime:
        return self.ended or self.seen

    def to_json(self) -> str:
        document = {
            "attempt": self.attempt,
            "job": self.job,
            "began": self.began,
            "seen": self.seen,
            "ended": self.ended,
        }
        return json.dumps(document, default=datetime.isoformat)

    @classmethod
    def from_json(cls, text: str) -> AttemptRecord:
        document = json.loads(text)
        ended = document["ended"]
        return cls(
            attempt=document["attempt"],
            job=document["job"],
            began=datetime.fromisoformat(document["began"]),
            seen=datetime.fromisoformat(document["seen"]),
            ended=None if ended is None else datetime.fromisoformat(ended),
        )


class RunningAttempt:
    """The record of this process. `begin` must have returned before the first file is written."""

    def __init__(
        self,
        lake: Lake,
        attempt: str,
        *,
        job: str,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._uri = f"{lake.attempts}/{attempt}{_SUFFIX}"
        self._clock = clock
        now = clock()
        self._record = AttemptRecord(attempt=attempt, job=job, began=now, seen=now)
        self._stopped = Event()
        self._thread: Thread | None = None

    def begin(self) -> None:
        """Write the record and keep it alive. A second call changes nothing."""
        if self._thread is not None:
            return
        self.beat()
        self._thread = Thread(target=self._keep_alive, name="attempt-record", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        self._record = replace(self._record, seen=self._clock())
        files.write_text(self._uri, self._record.to_json(), durably=True)

    def end(self) -> None:
        """Say that no commit will come any more. Never raises: the record then ends by silence."""
        if self._thread is None:
            return
        self._stopped.set()
        self._thread.join()
        self._thread = None
        self._record = replace(self._record, ended=self._clock())
        self._try(lambda: files.write_text(self._uri, self._record.to_json()))

    def _keep_alive(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            self._try(self.beat)

    @staticmethod
    def _try(write: Callable[[], None]) -> None:
        try:
            write()
        except LakehouseError as exc:
            logger.warning("record of the attempt not written", extra={"sentence": str(exc)})


def read_attempts(
    lake: Lake, *, longest: timedelta, began_after: datetime | None = None
) -> dict[str, AttemptRecord]:
    """Attempt -> its record, of all attempts or of those that `began_after` a moment.

    A file that holds none may be that of a running attempt, which writes it again within minutes. So its
    attempt counts as alive until the file is as old as the `longest` that Airflow lets an attempt run, and
    never less than after a record's silence.
    """
    records = {}
    for file in files.listed_files(lake.attempts):
        if file.name.endswith(_SUFFIX) and not file.name.startswith("."):
            name = file.name.removesuffix(_SUFFIX)
            began = began_at(name)
            if began_after is not None and began is not None and began <= began_after:
                continue
            text = files.read_text_if_there(file.uri)
            if text is not None:
                records[name] = _parsed(text) or _told_by_file(name, file.modified, longest=longest)
    return records


def _parsed(text: str) -> AttemptRecord | None:
    """None for what is no record."""
    try:
        return AttemptRecord.from_json(text)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _told_by_file(name: str, modified: datetime, *, longest: timedelta) -> AttemptRecord:
    logger.warning("record of an attempt is torn", extra={"of": name, "modified": modified.isoformat()})
    return AttemptRecord(
        attempt=name,
        job="unknown",
        began=min(began_at(name) or modified, modified),
        seen=modified,
        silence=max(SILENCE, longest),
        is_torn=True,
    )


def oldest_writer(records: Iterable[AttemptRecord], *, now: datetime, besides: str) -> AttemptRecord | None:
    """The attempt that began first of those that may still write, `besides` the one that asks."""
    writers = [record for record in records if record.attempt != besides and record.may_write(now)]
    return min(writers, key=lambda record: record.began, default=None)


def forget_ended(
    lake: Lake, records: Mapping[str, AttemptRecord], *, now: datetime, retention: timedelta
) -> int:
    """Delete records of attempts that ended before the retention, and torn ones as soon as their attempts
    cannot be alive. A second call deletes none."""
    old = [
        name
        for name, record in records.items()
        if not record.may_write(now) and (record.is_torn or record.last_sign < now - retention)
    ]
    for name in old:
        files.delete_file(f"{lake.attempts}/{name}{_SUFFIX}")
    return len(old)
