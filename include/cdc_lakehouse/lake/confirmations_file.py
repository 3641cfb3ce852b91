"""The file of `lake.confirmations`: one for each group of a pipeline, replaced as a whole."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.lake.confirmations import Confirmation, Confirmations
from cdc_lakehouse.lake.files import read_text_if_there, write_text

logger = logging.getLogger(__name__)

VERSION = 1


def read_confirmations(uri: str) -> Confirmations:
    """Nothing where there is no file, or one that is not of this version: it is only a memory."""
    try:
        text = read_text_if_there(uri)
        if text is None:
            return Confirmations()
        document = json.loads(text)
        return _confirmations(document) if document["v"] == VERSION else Confirmations()
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        logger.warning("a file is not what it should be", extra={"file": uri, "reason": type(exc).__name__})
        return Confirmations()


def write_confirmations(uri: str, found: Confirmations) -> None:
    """Of two writers the last one's observations stay; the other's are made again."""
    write_text(uri, json.dumps(_document(found)))


def _document(found: Confirmations) -> dict[str, Any]:
    return {
        "v": VERSION,
        "address": found.address,
        "moments": [[each.at.isoformat(), str(each.position)] for each in found.moments],
        "known": [
            {
                table: {
                    "position": str(each.position),
                    "time": None if each.time is None else each.time.isoformat(),
                    "epoch": each.epoch,
                    "ends": each.ends,
                }
                for table, each in tables.items()
            }
            for tables in found.known
        ],
    }


def _confirmations(document: Mapping[str, Any]) -> Confirmations:
    return Confirmations(
        address=document["address"],
        moments=tuple(
            Moment(datetime.fromisoformat(at), LogPosition.from_text(position))
            for at, position in document["moments"]
        ),
        known=tuple(
            {table: _confirmation(each) for table, each in tables.items()} for tables in document["known"]
        ),
    )


def _confirmation(document: Mapping[str, Any]) -> Confirmation:
    time = document["time"]
    return Confirmation(
        position=LogPosition.from_text(document["position"]),
        time=None if time is None else datetime.fromisoformat(time),
        epoch=document["epoch"],
        ends={
            source: {int(partition): end for partition, end in partitions.items()}
            for source, partitions in document["ends"].items()
        },
    )
