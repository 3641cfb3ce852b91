"""What a MERGE did, as its own commit says: for a writer whose answer was lost."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake.newest_ledger import metrics_of_commit

_COUNTS = {
    "num_inserted_rows": "numTargetRowsInserted",
    "num_updated_rows": "numTargetRowsUpdated",
    "num_deleted_rows": "numTargetRowsDeleted",
}
"""As the statement's answer names them, and as its commit does."""


def merged_rows(uri: str, version: int) -> Mapping[str, int]:
    """In the words of the answer."""
    try:
        metrics = metrics_of_commit(uri, version)
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return {name: int(metrics.get(told, 0)) for name, told in _COUNTS.items()}
