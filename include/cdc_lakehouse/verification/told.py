"""What a verification tells: keys, columns, counts; of values no more than whether two are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cdc_lakehouse.verification.columns import ColumnPlan
from cdc_lakehouse.verification.compare import Comparison
from cdc_lakehouse.verification.differences import NO_VALUE, Difference, Kind
from cdc_lakehouse.verification.subject import NewColumn, Subject
from cdc_lakehouse.verification.verdict import Judgement, Look, Verdict

_MOST_TOLD = 100


@dataclass(frozen=True, slots=True)
class Verified:
    """A table that was compared."""

    subject: Subject
    relation: str
    now: Look
    plan: ColumnPlan
    comparison: Comparison
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict(all_known=not self.comparison.opened.not_opened)

    def as_document(self, difference: Difference, *, state: Verdict) -> dict[str, Any]:
        columns = {name: list(hashes) for name, hashes in difference.columns.items()}
        return {
            "key": self._key(difference),
            "kind": difference.kind,
            "state": state,
            "columns": columns,
            "source": difference.token,
        }

    def _key(self, difference: Difference) -> dict[str, str]:
        return dict(zip(self.subject.key, difference.key, strict=True))


def counts_of(found: Verified) -> dict[str, int]:
    return {
        "rows_source": found.comparison.source.rows,
        "rows_silver": found.comparison.silver.rows,
        "different": len(found.judgement.wrong),
        "open": len(found.judgement.late),
        "chunks_not_opened": found.comparison.opened.not_opened,
    }


def report_of(found: Verified) -> dict[str, Any]:
    """The wrong ones first, and no more than a person can read; the counts have all."""
    comparison, opened = found.comparison, found.comparison.opened
    wrong = [found.as_document(each, state=Verdict.DIFFERENT) for each in found.judgement.wrong]
    late = [found.as_document(each, state=Verdict.OPEN) for each in found.judgement.late]
    report: dict[str, Any] = {
        "verdict": found.verdict,
        "relation": found.relation,
        "mark": str(found.now.mark),
        "rows": {"source": comparison.source.rows, "silver": comparison.silver.rows},
        "checksum": {"source": comparison.source.checksum, "silver": comparison.silver.checksum},
        "chunks": {
            "all": len(opened.chunks),
            "different": opened.different,
            "not_opened": opened.not_opened,
        },
        "columns": [column.silver for column in found.plan.compared],
        "left_out": dict(found.plan.left_out),
        "stored_as_null": comparison.as_null,
        "lacks": found.subject.lacks(),
        "differences": [*wrong, *late][:_MOST_TOLD],
        "witnesses": found.judgement.witnesses,
    }
    if late:
        report["open"] = {"keys": len(late), "await": str(found.now.mark)}
    return report


def kinds_in_words(wrong: Iterable[Difference]) -> str:
    counted = Counter(str(each.kind) for each in wrong)
    columns = sorted({name for each in wrong for name in each.columns})
    kinds = ", ".join(f"{count} {kind}" for kind, count in counted.items())
    return f"{kinds} in {', '.join(columns)}" if columns else kinds


def lacks_in_words(lacks: Mapping[str, int]) -> str:
    told = ", ".join(f"{name} {count}" for name, count in lacks.items())
    return (
        f"it says that it lacks something: {told}" if told else "nothing that the table knows of explains it"
    )


def unsent_columns(difference: Difference, new: Mapping[str, NewColumn]) -> tuple[str, ...] | None:
    """Return the new columns in which a row differs because no event has sent them for it.

    None where the row differs in anything else.
    """
    if difference.kind is not Kind.CHANGED:
        return None
    names = []
    for name, (_source, silver) in difference.columns.items():
        column = new.get(name)
        if column is None or (silver != NO_VALUE and not column.was_sent_before):
            return None
        names.append(column.name)
    return tuple(names)
