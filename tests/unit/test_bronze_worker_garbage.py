"""What the garbage collector of a worker looks at."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from cdc_lakehouse.bronze.worker_garbage import spare_loaded_modules


class Knot:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _looked_at_again() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_is_loaded_is_spared_once_per_process():
    spare_loaded_modules()
    spared = gc.get_freeze_count()
    later = [Knot() for _ in range(100)]
    spare_loaded_modules()

    assert spared > 1_000
    assert gc.get_freeze_count() <= spared
    assert len(later) == 100


def test_garbage_that_is_made_later_is_collected():
    spare_loaded_modules()
    gone = weakref.ref(Knot())
    gc.collect()

    assert gone() is None
