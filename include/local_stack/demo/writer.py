"""Somebody who keeps changing the shop: a thread that can be paused."""

from __future__ import annotations

import threading
from random import Random
from types import TracebackType
from typing import Self

from local_stack.errors import StackError
from local_stack.postgres import Postgres
from local_stack.shop import change

_TRANSACTIONS = 2
_PAUSE = 0.25


class WriterFailedError(StackError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"the shop's database could not be changed: {reason}")


class ShopWriter:
    """Writes from `with` on until its end; `pause` returns when the last transaction has ended."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._may_write = threading.Event()
        self._may_write.set()
        self._ended = threading.Event()
        self._writing = threading.Lock()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="shop writer", daemon=True)
        self.transactions = 0

    def pause(self) -> None:
        self._may_write.clear()
        with self._writing:
            pass
        if self._failure is not None:
            raise WriterFailedError(str(self._failure)) from self._failure

    def go_on(self) -> None:
        self._may_write.set()

    def _run(self) -> None:
        try:
            with self._postgres.connect(user="shop") as connection:
                rng = Random()  # noqa: S311 - a shop, not a secret
                while not self._ended.wait(_PAUSE):
                    with self._writing:
                        if self._may_write.is_set():
                            self.transactions += change(connection, rng, transactions=_TRANSACTIONS)
        except Exception as problem:  # noqa: BLE001 - told by `pause` to whoever waits
            self._failure = problem

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=5)
