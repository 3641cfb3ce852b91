"""What a check found, as a line for a person and an exit code for a script."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from cdc_lakehouse.contract import ExitCode, combined_exit_code
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.redaction import printable_lines


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing. A problem stops the pipeline; a warning will hurt somebody, a note seldom does."""

    level: Level
    subject: str
    sentence: str
    advice: str = ""
    exit_code: ExitCode = ExitCode.DONE

    @classmethod
    def fine(cls, subject: str, sentence: str) -> Finding:
        return cls(Level.OK, subject, sentence)

    @classmethod
    def note(cls, subject: str, sentence: str, advice: str) -> Finding:
        return cls(Level.NOTE, subject, sentence, advice)

    @classmethod
    def warning(cls, subject: str, sentence: str, advice: str) -> Finding:
        return cls(Level.WARNING, subject, sentence, advice)

    @classmethod
    def problem(cls, subject: str, sentence: str, *, advice: str, exit_code: ExitCode) -> Finding:
        return cls(Level.PROBLEM, subject, sentence, advice, exit_code)

    @classmethod
    def from_error(cls, subject: str, error: LakehouseError) -> Finding:
        return cls(Level.PROBLEM, subject, str(error), error.advice, error.exit_code)

    def to_document(self) -> dict[str, str]:
        """Return what a report shows."""
        texts = {"subject": self.subject, "sentence": self.sentence, "advice": self.advice}
        return {"level": self.level.value, **{name: printable_lines(text) for name, text in texts.items()}}

    def lines(self) -> list[str]:
        """The line, and below it the way out where there is one."""
        first = printable_lines(f"{self.level:<8} {self.subject}: {self.sentence}")
        return [first, f"{'':<8} -> {printable_lines(self.advice)}"] if self.advice else [first]


def exit_code_of(findings: Iterable[Finding]) -> ExitCode:
    """0 when nothing stands in the way; warnings do not."""
    return combined_exit_code(finding.exit_code for finding in findings)


def verdict(pipeline: str, findings: Iterable[Finding]) -> str:
    """The last line."""
    levels = [finding.level for finding in findings]
    problems, warnings = levels.count(Level.PROBLEM), levels.count(Level.WARNING)
    if problems:
        return f"{pipeline} is not ready: {_counted(problems, 'problem')}, {_counted(warnings, 'warning')}"
    return f"{pipeline} is ready" + (f", with {_counted(warnings, 'warning')}" if warnings else "")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
