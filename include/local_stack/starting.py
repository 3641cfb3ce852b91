"""Coming up and going down: which component when, side by side where possible, and nothing left behind."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType

from local_stack.component import Component
from local_stack.errors import ComponentFailedError, StackError
from local_stack.ports import LOOPBACK
from local_stack.process import ProcessRecord, last_words, spawn
from local_stack.state import State

Report = Callable[[str, str, float], None]
"""component, what happened, seconds since the start"""

_PAUSE = 0.1


class CancelledStartError(StackError):
    """Another component failed or somebody pressed Ctrl-C."""


class Spawner:
    """One thread that starts all processes: they are told to die when the thread that started them does."""

    def __init__(self, state: State, *, owned: bool) -> None:
        self._state = state
        self._owned = owned
        self._refuses = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spawner")

    def start(self, component: Component) -> ProcessRecord | None:
        """Returns when the process is remembered: from then on `down` finds it."""
        return self._thread.submit(self._start, component).result()

    def _start(self, component: Component) -> ProcessRecord | None:
        if self._refuses:
            raise CancelledStartError
        launch = component.launch()
        if launch is None:
            return None
        process, record = spawn(launch, log=component.log, owned=self._owned)
        self._state.remember_process(component.name, record)
        threading.Thread(target=process.wait, daemon=True, name=f"reap {component.name}").start()
        return record

    def refuse(self) -> None:
        """After this no process is started any more, by no thread."""
        self._refuses = True
        self._thread.submit(lambda: None).result()

    def close(self) -> None:
        """Owned processes must have been stopped before."""
        self._thread.shutdown()


def bring_up(components: Sequence[Component], *, spawner: Spawner, ready: set[str], report: Report) -> None:
    """Start all of them; `ready` names those that run already. On any failure the caller stops everything."""
    began = time.monotonic()
    cancel = threading.Event()
    healthy = {component.name: threading.Event() for component in components}

    def start(component: Component) -> None:
        component.prepare()
        for needed in component.needs:
            if needed not in ready:
                _wait_for(healthy[needed], cancel)
        report(component.name, "starting", time.monotonic() - began)
        _start_one(component, spawner, cancel)
        healthy[component.name].set()
        report(component.name, "healthy", time.monotonic() - began)

    pool = ThreadPoolExecutor(len(components) or 1, thread_name_prefix="start")
    try:
        running = [pool.submit(start, component) for component in components]
        for future in wait(running, return_when=FIRST_EXCEPTION).done:
            future.result()
    except BaseException:
        cancel.set()
        spawner.refuse()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _wait_for(event: threading.Event, cancel: threading.Event) -> None:
    while not event.wait(_PAUSE):
        if cancel.is_set():
            raise CancelledStartError


def _start_one(component: Component, spawner: Spawner, cancel: threading.Event) -> None:
    if cancel.is_set():
        raise CancelledStartError
    record = spawner.start(component)
    deadline = time.monotonic() + component.patience
    while record is not None and not _answers(component, record):
        if cancel.is_set():
            raise CancelledStartError
        if not record.is_alive:
            raise ComponentFailedError(component.name, last_words(component.log), component.log)
        if time.monotonic() > deadline:
            reason = f"no healthy answer in {component.patience:.0f} s; {last_words(component.log)}"
            raise ComponentFailedError(component.name, reason, component.log)
        time.sleep(_PAUSE)
    try:
        component.settle()
    except StackError:
        raise
    except Exception as problem:
        raise ComponentFailedError(
            component.name, f"{type(problem).__name__}: {problem}", component.log
        ) from problem


def _answers(component: Component, record: ProcessRecord) -> bool:
    """A first look at the port is cheap; libraries wait for seconds when nobody listens."""
    if component.listener is not None and not _accepts(component.site.ports[component.listener]):
        return False
    return is_healthy(component, record)


def is_healthy(component: Component, record: ProcessRecord) -> bool:
    try:
        return component.is_healthy(record)
    except Exception:  # noqa: BLE001 - every library has its own way to say "not yet"
        return False


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False


def bring_down(components: Sequence[Component], *, state: State, report: Report) -> None:
    """The reverse order: whatever needs a component stops before it; side by side where possible."""
    began = time.monotonic()
    records = state.processes
    left = [component for component in components if component.name in records]
    while left:
        needed = {name for component in left for name in (*component.needs, *component.stops_before)}
        wave = [component for component in left if component.name not in needed]
        with ThreadPoolExecutor(len(wave)) as pool:
            list(pool.map(lambda c: _stop_one(c, records[c.name], state, report, began), wave))
        left = [component for component in left if component not in wave]


def _stop_one(
    component: Component, record: ProcessRecord, state: State, report: Report, began: float
) -> None:
    was_alive = record.is_alive
    gently = component.stop(record)
    state.forget_process(component.name)
    how = "stopped" if gently else "killed"
    report(component.name, how if was_alive else "was not running", time.monotonic() - began)


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP end the work like Ctrl-C does."""
    with _handlers(dict.fromkeys((signal.SIGTERM, signal.SIGHUP), _interrupt)):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not break the cleaning up."""
    with _handlers(dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), signal.SIG_IGN)):
        yield


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _handlers(handlers: Mapping[signal.Signals, object]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
