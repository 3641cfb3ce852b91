"""The plan of a repair: what it would change, and what must still be true when it is carried out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from cdc_lakehouse.contract import Job

_DIGEST_LENGTH = 12


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What one repair would do to one table. A person approves it by its digest."""

    operation: Job
    pipeline: str
    table: str
    options: Mapping[str, str]
    basis: Mapping[str, Any]
    """Facts that the plan was made from. The repair refuses to run once one of them has changed."""
    effects: Mapping[str, int] = field(default_factory=dict)
    """Name -> count of what would change; 0 where nothing of this kind does."""
    summary: str = ""
    """One sentence for the person who decides."""
    details: tuple[str, ...] = ()
    """Further sentences: examples, what cannot be undone, what else has to be done."""
    is_needed: bool = True
    """Whether carrying it out would change anything."""
    made_by: str = ""
    """Attempt that made the plan: the same plan, made again, has another digest and record."""

    @property
    def digest(self) -> str:
        """Return the name of the plan: another basis or another effect is another plan."""
        text = json.dumps(self.to_document(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]

    def to_document(self) -> dict[str, Any]:
        return asdict(self)

    def to_report(self) -> dict[str, Any]:
        """Return what result, log and approval form show; the rest stays in the record of the lake."""
        hidden = {"basis", "made_by"}
        shown = {name: value for name, value in self.to_document().items() if name not in hidden}
        return {**shown, "digest": self.digest}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        fields = {**document, "operation": Job(document["operation"]), "details": tuple(document["details"])}
        return cls(**fields)
