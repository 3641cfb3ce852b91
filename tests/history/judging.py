"""Both sides of a quiet point: silver now, and its histories as of every earlier one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from cdc_lakehouse.lake.rows import read_rows
from history.appended import rows_alive, told_twice  # type: ignore[import-not-found]
from history.comparing import Difference, compare  # type: ignore[import-not-found]
from history.content import Content, keep, kept, quiet_point  # type: ignore[import-not-found]
from history.evidence import arrived, events_of  # type: ignore[import-not-found]
from history.inequalities import Unwritten  # type: ignore[import-not-found]
from history.tables import Table  # type: ignore[import-not-found]
from history.versions import versions_at  # type: ignore[import-not-found]
from history.world import World  # type: ignore[import-not-found]
from history.writers import Writers  # type: ignore[import-not-found]


@dataclass(slots=True)
class Judge:
    """Remembers what columns had not been sent by then."""

    world: World
    writers: Writers
    folder: Path
    counts: Counter[str]
    _unsent: list[int] = field(default_factory=list)

    def differences(self) -> list[Difference]:
        """Of all tables, at a moment at which nobody writes and everything is merged."""
        self._unsent.append(len(self.writers.unsent))
        with self.world.connect() as connection:
            point = quiet_point(connection, self.world.tables, number=len(self._unsent))
        keep(self.folder, point)
        self.counts["quiet points"] += 1
        found: list[Difference] = []
        for content, table in zip(point.contents, self.world.tables, strict=True):
            found += self._now(content, table)
        return found + self._at_earlier_points()

    def explained(self, found: list[Difference]) -> list[str]:
        """The first differences of each table, and the events of one of its keys."""
        lines = [f"{len(found)} values or rows differ"]
        for table in self.world.tables:
            ours = [difference for difference in found if difference.table == table.name]
            lines += [str(difference) for difference in ours[:8]]
            if ours:
                lines.append(f"events of {table.name} {ours[0].key}:")
                lines += [f"  {line}" for line in events_of(self.world.lake, ours[0], table)]
                topic, kafka = self.world.topic(table), self.world.stack.kafka.client_settings()
                lines += arrived(self.world.lake, table, topic=topic, kafka=kafka)
        return lines

    def _now(self, content: Content, table: Table) -> list[Difference]:
        silver = read_rows(self.world.lake.silver(table.name))
        twice: list[Difference] = []
        if silver is not None and not table.key:
            twice = [Difference(table.name, (each,), "", "one row", "several") for each in told_twice(silver)]
            silver = rows_alive(silver)
        compared = compare(content, silver, Unwritten(self.writers.unsent, self.writers.read_again))
        self.counts["rows compared"] += compared.rows
        self.counts["values compared"] += compared.values
        self.counts["values exempt"] += compared.exempt
        return [*twice, *compared.differences]

    def _at_earlier_points(self) -> list[Difference]:
        found: list[Difference] = []
        for table in self.world.tables:
            history = read_rows(self.world.lake.history(table.name)) if table.historic else None
            for number in range(1, len(self._unsent) + 1) if history is not None else ():
                point = kept(self.folder, number)
                content = next(each for each in point.contents if each.table == table.name)
                unwritten = Unwritten(
                    self.writers.unsent[: self._unsent[number - 1]], self.writers.read_again
                )
                compared = compare(content, versions_at(history, point.moment), unwritten)
                self.counts["rows of histories compared"] += compared.rows
                found += [each.at(f"quiet point {number}") for each in compared.differences]
        return found
