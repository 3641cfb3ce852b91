"""How far a drain is, how fast, and when it will have ended: arithmetic on counts and seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Pace:
    """Records are counted as offsets: transactions and compaction leave fewer of them."""

    done: int
    """In bronze, that is, committed."""
    left: int
    seconds: float

    @property
    def per_second(self) -> float | None:
        return self.done / self.seconds if self.done and self.seconds > 0 else None

    def ends(self, now: datetime) -> datetime | None:
        """None before the first commit: nothing is known about its speed."""
        rate = self.per_second
        return None if rate is None else now + timedelta(seconds=self.left / rate)

    def facts(self, now: datetime) -> dict[str, object]:
        """For a line of the log."""
        rate, ends = self.per_second, self.ends(now)
        return {
            "done": self.done,
            "left": self.left,
            "per_second": None if rate is None else round(rate),
            "ends": None if ends is None else ends.isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 1),
        }

    def report(self) -> dict[str, float]:
        """For the run report."""
        rate = self.per_second
        known = {} if rate is None else {"per_second": round(rate, 1)}
        return {"done": self.done, "left": self.left, "seconds": round(self.seconds, 3), **known}
