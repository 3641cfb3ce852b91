"""Why bytes that are sound Avro still do not make a row."""

from __future__ import annotations

from enum import StrEnum


class ValueFault(StrEnum):
    """Codes beside those of `avro.faults`; both stand in bronze's `decode_error.code`."""

    VALUE_OUT_OF_RANGE = "value_out_of_range"
    """Infinity, a date beyond year 9999, more digits than the column's precision."""
    BAD_VALUE = "bad_value"
    """Not what the semantic type of the column promises."""
    INCOMPATIBLE_SCHEMA = "incompatible_schema"
    """The value fits no column of the table, as far as the table has evolved."""
    NOT_AN_ENVELOPE = "not_an_envelope"
    """The schema of the record is not the one of a change event, or of a key."""
