"""Exit 65: maintenance could not do its work for so long that a person has to look."""

from __future__ import annotations

from cdc_lakehouse.errors.data import DataError


class OptimizeOverdueError(DataError):
    code = "OPTIMIZE_OVERDUE"
    sentence = "OPTIMIZE of {table} gave way to other commits on {nights} nights in a row: {where}"
    advice = (
        "No row is wrong; reading the table gets slower from night to night. Merges of it run whenever "
        "maintenance does: pause the pipeline's DAG, trigger its maintenance DAG with this table in "
        "`tables`, and move `maintenance.schedule` to a quieter hour. `maintenance.conflict_nights` says "
        "how many nights are too many."
    )
    table: str
    nights: int
    where: str
