"""All that is fuzzed, found by the code that an input begins with, and sound inputs to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from fuzz import any_frames, change_events  # type: ignore[import-not-found]
from fuzz.batches import LARGEST  # type: ignore[import-not-found]
from fuzz.damage import damaged  # type: ignore[import-not-found]
from fuzz.inputs import Input, Option, code  # type: ignore[import-not-found]

__all__ = ["LARGEST", "check", "damaged", "seeds", "target_of"]
PLAIN = Option(0)
CHOICES = (
    PLAIN,
    Option.GUID,
    Option.HEADER | Option.SLICED,
    Option.HEADER | Option.GUID | Option.AS_NULL,
    Option.WHOLE,
    Option.AS_NULL,
    Option.DROPPED,
    Option.MANY,
    Option.MANY | Option.DROPPED | Option.AS_NULL | Option.SLICED,
    Option.KEYS,
    Option.KEYS | Option.GUID | Option.HEADER | Option.MANY,
)


class Target(Protocol):
    name: str

    def seeds(self, choices: Sequence[Option]) -> list[bytes]: ...

    def check(self, case: Input) -> None:
        """Raises `Disagreement`, or whatever a decoder wrongly raises."""


@lru_cache(maxsize=1)
def made() -> tuple[Target, ...]:
    return (change_events.envelope(), *any_frames.made())


@lru_cache(maxsize=1)
def _by_code() -> dict[int, Target]:
    targets: list[Target] = [*made(), *change_events.captured()]
    by_code = {code(target.name): target for target in targets}
    if len(by_code) != len(targets):
        raise ValueError("two targets have one code: rename one")
    return by_code


def check(data: bytes) -> None:
    """Raises `Disagreement`, or whatever a decoder wrongly raises."""
    target_of(data).check(Input.of(data))


def target_of(data: bytes) -> Target:
    """Codes that no target has stand for any."""
    by_code = _by_code()
    number = Input.of(data).target
    return by_code.get(number) or list(by_code.values())[number % len(by_code)]


def seeds() -> list[bytes]:
    """Sound records of every target; of those that were captured with fewer choices of options."""
    some = [data for target in made() for data in target.seeds(CHOICES)]
    few = (Option.MANY | Option.AS_NULL, Option.DROPPED | Option.GUID, Option.KEYS)
    for target in _by_code().values():
        if target not in made():
            some += target.seeds([PLAIN])
            some += [data for options in few for data in target.seeds([options])[:1]]
    return some
