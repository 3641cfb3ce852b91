"""The progress of a partition as a ledger's document tells it, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdc_lakehouse.lake.progress import Beginning, Log, Progress


def progress_of(document: Mapping[str, Any]) -> Progress:
    reached = document.get("reached")
    return Progress(
        floor=document["floor"],
        end=document["end"],
        gaps=tuple((a, b) for a, b in document["gaps"]),
        epochs=tuple((start, epoch) for start, epoch in document["epochs"]),
        seen=document.get("seen"),
        mark=_mark(document.get("mark")),
        known_to=document.get("known_to", 0),
        beginnings=tuple(Beginning.of(each) for each in document.get("beginnings", ())),
        log=Log.of(document.get("log")),
        turned=document.get("turned"),
        reached=None if reached is None else tuple((epoch, place) for epoch, place in reached),
    )


def _mark(document: Sequence[int] | None) -> tuple[int, int] | None:
    return None if document is None else (document[0], document[1])


def document_of(progress: Progress) -> dict[str, Any]:
    return {
        "floor": progress.floor,
        "end": progress.end,
        "gaps": [list(gap) for gap in progress.gaps],
        "epochs": [list(epoch) for epoch in progress.epochs],
        "seen": progress.seen,
        "mark": progress.mark,
        "known_to": progress.known_to,
        "beginnings": progress.beginnings,
        "log": progress.log,
        "turned": progress.turned,
        "reached": progress.reached,
    }
