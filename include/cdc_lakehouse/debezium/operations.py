"""What an event does to its row (`cdc-semantics` §1)."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """The `op` texts that Debezium defines; bronze keeps any other text as it came."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    READ = "r"
    TRUNCATE = "t"
    MESSAGE = "m"


ROW_OPERATIONS = frozenset({Operation.CREATE, Operation.UPDATE, Operation.DELETE, Operation.READ})
"""Operations that concern exactly one row."""
IMAGES = frozenset({Operation.CREATE, Operation.UPDATE, Operation.READ})
"""Operations that tell what the row is."""
ERASED = "erased"
"""`op` of a bronze row whose values were taken out for good (decision 0062). Debezium sends no such event."""
