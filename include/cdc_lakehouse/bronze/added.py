"""What batches added, as the files that hold it tell: for reports, and for warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from cdc_lakehouse.bronze.written_file import BAD_ROWS_SHOWN, BadRow, WrittenFile
from cdc_lakehouse.lake.instants import instant


@dataclass(frozen=True, slots=True)
class Added:
    rows: int = 0
    out_of_range: int = 0
    """Rows in which a value became NULL because its column cannot hold it."""
    errors_by_code: Mapping[str, int] = field(default_factory=dict)
    bad_rows: Mapping[str, tuple[BadRow, ...]] = field(default_factory=dict)
    """The first few of each code."""
    key_ids: frozenset[int] = frozenset()
    """Null where a GUID names the schema, here and in `BadRow`."""
    value_ids: frozenset[int] = frozenset()
    seen_through: datetime | None = None
    decode_seconds: float = 0.0
    """Of the tasks that succeeded."""

    @classmethod
    def of_files(cls, files: Iterable[WrittenFile]) -> Added:
        """Of one batch, whose files come in any order."""
        in_order = sorted(files, key=lambda file: [(s.topic, s.partition, s.first) for s in file.spans])
        return cls.together(
            cls(
                rows=file.rows,
                out_of_range=file.out_of_range,
                errors_by_code=file.errors_by_code,
                bad_rows=file.bad_rows,
                key_ids=frozenset(file.key_ids),
                value_ids=frozenset(file.value_ids),
                seen_through=instant(None if file.commits is None else file.commits[1]),
                decode_seconds=file.decode_seconds,
            )
            for file in in_order
        )

    @classmethod
    def together(cls, batches: Iterable[Added]) -> Added:
        """Of all batches of a run, in their order."""
        all_ = list(batches)
        errors: Counter[str] = Counter()
        for each in all_:
            errors.update(each.errors_by_code)
        bad = {code: [row for each in all_ for row in each.bad_rows.get(code, ())] for code in errors}
        return cls(
            rows=sum(each.rows for each in all_),
            out_of_range=sum(each.out_of_range for each in all_),
            errors_by_code=dict(errors),
            bad_rows={code: tuple(rows[:BAD_ROWS_SHOWN]) for code, rows in bad.items()},
            key_ids=frozenset().union(*(each.key_ids for each in all_)),
            value_ids=frozenset().union(*(each.value_ids for each in all_)),
            seen_through=max((e.seen_through for e in all_ if e.seen_through is not None), default=None),
            decode_seconds=sum(each.decode_seconds for each in all_),
        )

    def schema_ids(self) -> dict[str, list[int]]:
        """As a report tells them."""
        return {"key": sorted(self.key_ids), "value": sorted(self.value_ids)}

    def bad_rows_by_code(self) -> dict[str, list[dict[str, Any]]]:
        """As a report tells them."""
        return {code: [asdict(row) for row in rows] for code, rows in self.bad_rows.items()}
