"""Closed sets of what a run may be asked to do beside its job."""

from __future__ import annotations

from enum import StrEnum


class Recompute(StrEnum):
    """Which keys of an interval silver computes again from bronze."""

    ALL = "all"
    """All that have an event in it."""
    CHANGED = "changed"
    """Those whose rows in bronze have changed: filled, or decoded again."""


class RepairStep(StrEnum):
    """A part of a repair; each is a task of its own."""

    PLAN = "plan"
    """Write nothing that readers see; say what the repair would change."""
    ACT = "act"
    """Carry out plans that a person has approved."""
    VERIFY = "verify"
    """Compare the table with what the plan promised."""
