"""Which columns will not be all that PostgreSQL holds: the known inequalities, as lines for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdc_lakehouse.debezium.inequalities import Concern, Trait, Weight, columns_concerned
from cdc_lakehouse.debezium.known_inequalities import KNOWN_INEQUALITIES
from cdc_lakehouse.debezium.schema_facts import shows
from cdc_lakehouse.debezium.source_facts import SourceFacts
from cdc_lakehouse.preflight.findings import Finding

PAGE = "include/docs/known-inequalities.md"


def inequality_findings(subject: str, columns: Iterable[SourceFacts]) -> Iterator[Finding]:
    """A warning for each inequality that usual values meet, and one note for all that few values meet."""
    concerns = columns_concerned(KNOWN_INEQUALITIES, columns)
    rare = [concern for concern in concerns if concern.inequality.weight is Weight.EDGE]
    for concern in concerns:
        if concern.inequality.weight is not Weight.EDGE:
            yield _warning(subject, concern)
    if rare:
        told = "; ".join(f"{each.inequality.id} in {', '.join(each.columns)}" for each in rare)
        yield Finding.note(subject, f"rare values will differ: {told}", f"{PAGE} says which.")


def unseen_finding() -> Finding:
    """What a schema cannot show, so that nobody takes silence for a yes."""
    unseen = [each.id for each in KNOWN_INEQUALITIES if not shows(each)]
    return Finding.note(
        "source",
        f"not looked at, and schemas do not always show it: {', '.join(unseen)}",
        f"Compare the types of the source's columns with {PAGE}.",
    )


def _warning(subject: str, concern: Concern) -> Finding:
    known = concern.inequality
    unless = ", unless its REPLICA IDENTITY is FULL" if known.trait is Trait.OLD_VALUE_NOT_SENT else ""
    return Finding.warning(
        subject,
        f"{known.id} in {', '.join(concern.columns)}: {known.source} becomes {known.lake}{unless}",
        f"Way out: {known.way_out}.",
    )
