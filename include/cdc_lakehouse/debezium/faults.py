"""Why sound Avro still is no change event."""

from __future__ import annotations

from enum import StrEnum


class EventFault(StrEnum):
    """Codes beside those of `avro.faults`; all stand in bronze's `decode_error.code`."""

    NOT_AN_ENVELOPE = "not_an_envelope"
    """The schema of the record is not the one of a change event, or of a key."""
