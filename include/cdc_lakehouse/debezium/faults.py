"""Why sound Avro still is no change event that can be applied."""

from __future__ import annotations

from enum import StrEnum


class EventFault(StrEnum):
    """Codes beside those of `avro.faults`; all stand in bronze's `decode_error.code`."""

    NOT_AN_ENVELOPE = "not_an_envelope"
    """The schema of the record is not the one of a change event, or of a key."""
    UNKNOWN_OPERATION = "unknown_operation"
    """An `op` that Debezium does not define, or none."""
    MISSING_KEY = "missing_key"
    """An event of a row does not say of which, although the table has a key."""
    MISSING_POSITION = "missing_position"
    """Whether the event is newer than another one would be a matter of chance."""
    MISSING_AFTER = "missing_after"
    """A row was created, read or updated, and there is no row."""
