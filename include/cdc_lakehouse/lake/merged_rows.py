"""What a MERGE did, as its own commit says: for a writer whose answer was lost."""

from __future__ import annotations

from collections.abc import Mapping

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake.filesystem import delta_options

_COUNTS = {
    "num_inserted_rows": "numTargetRowsInserted",
    "num_updated_rows": "numTargetRowsUpdated",
    "num_deleted_rows": "numTargetRowsDeleted",
}
"""As the statement's answer names them, and as its commit does."""


def merged_rows(uri: str, version: int | None) -> Mapping[str, int]:
    """In the words of the answer."""
    try:
        commits = DeltaTable(uri, storage_options=delta_options(uri), version=version).history(1)
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    metrics = commits[0].get("operationMetrics", {})
    return {name: int(metrics.get(told, 0)) for name, told in _COUNTS.items()}
