"""Why one record cannot be decoded."""

from __future__ import annotations

from enum import StrEnum


class AvroFault(StrEnum):
    """Codes of faults in the bytes."""

    BAD_FRAME = "bad_frame"
    TOO_LARGE = "record_too_large"
    TRUNCATED = "truncated"
    TRAILING_BYTES = "trailing_bytes"
    BAD_AVRO = "bad_avro"
    INVALID_UTF8 = "invalid_utf8"


class SchemaFault(StrEnum):
    """Codes of faults in what the frame says."""

    UNKNOWN_SCHEMA = "unknown_schema"
    """It names a schema that nobody knows."""
    WRONG_SCHEMA = "wrong_schema"
    """It names a registered schema that belongs to something else: another topic, or the other side."""


class ValueFault(StrEnum):
    """Codes of faults in what sound bytes say."""

    VALUE_OUT_OF_RANGE = "value_out_of_range"
    """Infinity, a date beyond year 9999, more digits than the column's precision."""
    BAD_VALUE = "bad_value"
    """Not what the type of the column promises."""
    INCOMPATIBLE_SCHEMA = "incompatible_schema"
    """The value does not fit its column, as far as the column's type has evolved."""


class RecordFault(Exception):  # noqa: N818 - travels inside the decoder only and becomes a row, not an error
    """`detail` names places, sizes and ids; never a value of the payload (`guarantees` §5)."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail = code, detail

    def at(self, place: str) -> RecordFault:
        """The same fault, with its detail told from one level further out."""
        return RecordFault(self.code, f"{place}: {self.detail}")
