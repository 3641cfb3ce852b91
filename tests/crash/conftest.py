"""One broker, one golden run and one warm driver for the tier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crash.broker import World, world  # type: ignore[import-not-found]
from crash.driver import WarmDriver  # type: ignore[import-not-found]
from crash.golden import Golden, sent_again  # type: ignore[import-not-found]
from crash.recording import COMMITTED, Recording  # type: ignore[import-not-found]
from crash.replay import Bench  # type: ignore[import-not-found]


@pytest.fixture(scope="session")
def here(tmp_path_factory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("crash")) as made:
        yield made


@pytest.fixture(scope="session")
def golden(here: World) -> Golden:
    """As it was recorded: nobody needs strace for this tier. `make crash` records it anew."""
    return sent_again(here, Recording.load(COMMITTED))


@pytest.fixture(scope="session")
def bench(here: World, golden: Golden) -> Iterator[Bench]:
    """A warm driver, which is told who the recorded broker was."""
    with WarmDriver(here, "warm") as driver:
        yield Bench(here, driver.ready())
