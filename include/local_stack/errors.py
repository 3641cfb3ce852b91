"""What can go wrong while the stack starts, runs or stops, each as one sentence for a person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class StackError(Exception):
    """Root; its text is a whole sentence that says what to do."""


class BusyError(StackError):
    def __init__(self, root: Path) -> None:
        super().__init__(
            f"another command is at work on the stack in {root}, or a demo or a test owns it; "
            "wait until it is done"
        )


class AlreadyRunningError(StackError):
    def __init__(self, root: Path, names: Sequence[str]) -> None:
        super().__init__(
            f"the stack in {root} runs already ({', '.join(names)}); "
            "stop it with `python -m local_stack down`"
        )


class ComponentFailedError(StackError):
    """A process that should have come up did not."""

    def __init__(self, name: str, reason: str, log: Path) -> None:
        super().__init__(f"{name} did not come up: {reason} (log: {log})")
        self.name = name


class PreparationFailedError(StackError):
    """A command that makes a component's folder failed."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} could not be prepared: {reason}")


class UnknownComponentError(StackError):
    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"the stack has no component {name!r}; it has {', '.join(known)}")


class NotRunningError(StackError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} does not run; start the stack with `python -m local_stack up`")


class NotCapturedError(StackError):
    """The connector did not catch up in time."""

    def __init__(self, wanted: str, confirmed: str, seconds: float) -> None:
        super().__init__(
            f"after {seconds:.0f} s the connector has confirmed {confirmed}, but the database stood at "
            f"{wanted}; look at `python -m local_stack logs connect`"
        )


class UnsupportedPlatformError(StackError):
    def __init__(self, why: str) -> None:
        super().__init__(f"the local stack cannot run here: {why}")
