"""What the steps of the proof found, in a file that says what was run, and in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from crash.invariants import Findings  # type: ignore[import-not-found]

FOLDER = Path(__file__).with_name("results")
_CODE = (Path(__file__).parents[2] / "include" / "cdc_lakehouse", Path(__file__).parent)
_BAD = ("lost", "duplicated", "half_written", "stuck")
_MOST_SENTENCES = 20


@dataclass(slots=True)
class Results:
    """Counts are those of what was done and found, not of what was planned."""

    path: Path
    seed: int
    code: str
    """Of the product's own files, and of those of the proof: figures of other code are not kept."""
    recorded_anew: bool
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, *, seed: int, recorded_anew: bool) -> Results:
        """Goes on with what other calls found with the same seed and the same code."""
        found = cls(FOLDER / f"seed-{seed}.json", seed, _code(), recorded_anew)
        found.steps = found._known()
        return found

    def _known(self) -> dict[str, dict[str, Any]]:
        if not self.path.exists():
            return {}
        document = json.loads(self.path.read_text(encoding="utf-8"))
        steps: dict[str, dict[str, Any]] = document["steps"]
        return steps if document["code"] == self.code else {}

    def add(self, step: str, findings: Findings, *, seconds: float, **counts: Any) -> None:
        """Replaces what an earlier call of the step found."""
        found = {**asdict(findings), "sentences": findings.sentences[:_MOST_SENTENCES]}
        done = {"recorded_anew": self.recorded_anew, **counts, "seconds": round(seconds, 1), "found": found}
        self._keep(step, done)

    def break_off(self, step: str, sentence: str) -> None:
        """It did not come to its end: what it may have found is not known."""
        self._without_findings(step, unfinished=sentence)

    def leave_out(self, step: str, sentence: str) -> None:
        """This machine cannot take it: nothing of it is claimed."""
        self._without_findings(step, left_out=sentence)

    def _without_findings(self, step: str, **why: str) -> None:
        self._keep(step, {**why, "found": asdict(Findings())})

    def _keep(self, step: str, done: dict[str, Any]) -> None:
        known = self._known()  # another call may have added its own meanwhile
        self.steps = {**{name: known[name] for name in known if not _overlaps(name, step)}, step: done}
        document = {"seed": self.seed, "code": self.code, "summary": self.summary(), "steps": self.steps}
        FOLDER.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def summary(self) -> str:
        counts = " ".join(f"{name}={self._sum(name)}" for name in ("states", "kills", "zombies"))
        return counts + "".join(f" {kind}={self._found(kind)}" for kind in _BAD[:3])

    def hold(self) -> bool:
        return not (any(map(self._found, _BAD)) or any(self._alive()) or any(self._told("unfinished")))

    def sentences(self) -> Iterator[str]:
        for name, step in self._ours():
            yield from (f"{name}: {sentence}" for sentence in step["found"]["sentences"])
        yield from (f"nothing was noticed without {guard}" for guard in self._alive())
        yield from (f"did not finish: {sentence}" for sentence in self._told("unfinished"))
        yield from (f"not proved here: {sentence}" for sentence in self._told("left_out"))

    def _told(self, why: str) -> Iterator[str]:
        return (f"{name}: {step[why]}" for name, step in self.steps.items() if why in step)

    def _ours(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Not the baseline's, which is there to be compared with."""
        return ((name, step) for name, step in self.steps.items() if name != "baseline")

    def _sum(self, count: str) -> int:
        return sum(step.get(count, 0) for _, step in self._ours())

    def _found(self, kind: str) -> int:
        return sum(step["found"][kind] for _, step in self._ours())

    def _alive(self) -> Iterator[str]:
        for guard, told in self.steps.get("guards", {}).get("off", {}).items():
            if not told["noticed"]:
                yield guard


def _overlaps(one: str, other: str) -> bool:
    """Halves and quarters of a step, or a part and the whole, would count the same twice."""
    (name, _, part), (other_name, _, other_part) = one.partition(" "), other.partition(" ")
    return name == other_name and part.partition("/")[2] != other_part.partition("/")[2]


def _code() -> str:
    told = sha256()
    for folder in _CODE:
        for path in sorted(folder.rglob("*.py")):
            told.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return told.hexdigest()[:16]
