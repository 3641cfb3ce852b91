"""The stack of one folder: start it, ask it, stop it, from Python or from the command line."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from artifacts.fetch import fetch
from artifacts.java import find_java
from artifacts.lock import DEFAULT_GROUPS, read_lock, select_groups
from artifacts.spark_conf import write_spark_conf
from local_stack.airflow import (
    AirflowApiServer,
    AirflowDagProcessor,
    AirflowMetadata,
    AirflowScheduler,
    AirflowTriggerer,
)
from local_stack.component import Component, Site
from local_stack.connect import Connect
from local_stack.connector import Connector
from local_stack.environment import job_environment, open_lake
from local_stack.errors import AlreadyRunningError, NotRunningError, UnknownComponentError
from local_stack.kafka import Kafka
from local_stack.layout import Layout
from local_stack.neighbours import settle_ports
from local_stack.object_store import ObjectStore
from local_stack.ports import OBJECT_STORE, USUAL
from local_stack.postgres import Postgres
from local_stack.process import kill_session, wait_until
from local_stack.registry import Registry
from local_stack.secrets_file import Secrets
from local_stack.starting import (
    Report,
    Spawner,
    bring_down,
    bring_up,
    interruptible,
    is_healthy,
    undisturbed,
)
from local_stack.state import State, one_command

_SECONDS_TO_ANSWER = 10.0
_AIRFLOW = (AirflowMetadata, AirflowScheduler, AirflowDagProcessor, AirflowTriggerer, AirflowApiServer)
_KINDS: tuple[type[Component], ...] = (Postgres, Kafka, Registry, Connect, Connector, ObjectStore, *_AIRFLOW)


def _quiet(_component: str, _event: str, _seconds: float) -> None:
    pass


class RunningStack:
    """The components of a stack that is up, by name."""

    def __init__(
        self, site: Site, state: State, *, owned: bool, airflow: bool = True, report: Report = _quiet
    ) -> None:
        self.site = site
        self.state = state
        self.postgres = Postgres(site)
        self.kafka = Kafka(site)
        self.registry = Registry(site)
        self.connect = Connect(site)
        self.connector = Connector(site)
        self.object_store = ObjectStore(site)
        self.airflow = AirflowApiServer(site)
        self._report = report
        self._with_airflow = airflow
        self._spawner = Spawner(state, owned=owned)

    def chain(self) -> list[Component]:
        """From the source database to Kafka."""
        return [self.postgres, self.kafka, self.registry, self.connect, self.connector]

    def components(self) -> list[Component]:
        lake = [self.object_store] if self.site.object_store else []
        return [*self.chain(), *lake, *(self._airflow_components() if self._with_airflow else ())]

    def _airflow_components(self) -> list[Component]:
        kinds = (AirflowMetadata, AirflowScheduler, AirflowDagProcessor, AirflowTriggerer)
        return [*(kind(self.site) for kind in kinds), self.airflow]

    def job_environment(self) -> dict[str, str]:
        """What `spark_jobs/*.py` need beside PATH; passwords are in it."""
        return job_environment(self.site)

    def lake_root(self) -> str:
        """From here on this process can read it."""
        return open_lake(self.site)

    def running(self) -> set[str]:
        """Names of components whose process lives."""
        return {name for name, record in self.state.processes.items() if record.is_alive}

    def start(self, *names: str) -> None:
        """Start these and what they need (all, without a name); running ones are left alone.

        With names, other components are left alone in any state: one that waits for these recovers by itself.
        """
        self._clear_remains()
        wanted = self._with_needs(names) if names else self.components()
        alive = self._stop_the_unfit(wanted)
        missing = [component for component in wanted if component.name not in alive]
        bring_up(missing, spawner=self._spawner, ready=alive, report=self._report)
        if names and {"postgres", "registry", "connect"} <= self.running():
            self.connector.settle()

    def stop(self, *names: str) -> None:
        """Stop these (all, without a name); the data stays."""
        chosen = self._named(names) if names else self.components()
        bring_down(chosen, state=self.state, report=self._report)

    def close(self) -> None:
        self._spawner.close()

    def health(self) -> dict[str, bool]:
        """Component -> whether it lives and answers as ours; those that were never started are left out."""
        records = self.state.processes
        return {c.name: is_healthy(c, records[c.name]) for c in self.components() if c.name in records}

    def _named(self, names: Sequence[str]) -> list[Component]:
        known = {component.name: component for component in self.components()}
        for name in names:
            if name not in known:
                raise UnknownComponentError(name, tuple(known))
        return [known[name] for name in dict.fromkeys(names)]

    def _stop_the_unfit(self, components: Sequence[Component]) -> set[str]:
        """Return the names of all that run; of `components`, those that do not answer are stopped first."""
        alive = self.running()
        unfit = [c for c in components if c.name in alive and not self._answers_soon(c)]
        bring_down(unfit, state=self.state, report=self._report)
        return alive - {component.name for component in unfit}

    def _answers_soon(self, component: Component) -> bool:
        record = self.state.processes[component.name]
        return wait_until(lambda: is_healthy(component, record), _SECONDS_TO_ANSWER)

    def _with_needs(self, names: Sequence[str]) -> list[Component]:
        found: dict[str, Component] = {}
        left = self._named(names)
        while left:
            component = left.pop()
            found[component.name] = component
            left += [needed for needed in self._named(component.needs) if needed.name not in found]
        return list(found.values())

    def _clear_remains(self) -> None:
        """Processes that a dead component left behind would hold its ports and locks."""
        for name, record in self.state.processes.items():
            if not record.is_alive:
                kill_session(record)
                self.state.forget_process(name)


class LocalStack:
    """A folder that holds a stack, running or not. `object_store`: whether the lake lies in one."""

    def __init__(
        self, root: Path | None = None, *, object_store: bool = False, report: Report = _quiet
    ) -> None:
        self.layout = Layout(root.absolute()) if root is not None else Layout.default()
        self.state = State(self.layout)
        self._report = report
        self._object_store = object_store

    @contextmanager
    def running(self, *only: str, airflow: bool = True) -> Iterator[RunningStack]:
        """Up for the length of the block, and down when its owner ends in whatever way.

        `only` these components and what they need, or all.
        """
        with interruptible(), one_command(self.layout):
            if alive := self._alive():
                raise AlreadyRunningError(self.layout.root, alive)
            stack = self._open(owned=True, airflow=airflow)
            try:
                stack.start(*only)
                yield stack
            finally:
                with undisturbed():
                    stack.stop()
                    stack.close()

    def up(self, *, fresh: bool = False, airflow: bool = True) -> RunningStack:
        """Start what does not run yet; it outlives this process."""
        with interruptible(), one_command(self.layout):
            if fresh:
                self._wipe()
            before = set(self._alive())
            stack = self._open(owned=False, airflow=airflow)
            try:
                stack.start()
            except BaseException:
                with undisturbed():
                    if started := stack.running() - before:
                        stack.stop(*started)
                raise
            finally:
                stack.close()
            return stack

    def attach(self) -> RunningStack:
        """The stack that `up` left running, or what is left of it."""
        if not self.state.ports or not self.layout.secrets_file.exists():
            raise NotRunningError("the stack")
        secrets = Secrets.kept_in(self.layout.secrets_file)
        used = self.state.has_object_store
        site = Site(self.layout, self.state.ports, secrets, find_java(), object_store=used)
        return RunningStack(site, self.state, owned=False, report=self._report)

    @contextmanager
    def attached_alone(self) -> Iterator[RunningStack]:
        """Like `attach`, for commands that change something."""
        with interruptible(), one_command(self.layout):
            stack = self.attach()
            try:
                yield stack
            finally:
                stack.close()

    def down(self) -> bool:
        """Stop everything and keep the data; False when nothing ran."""
        with one_command(self.layout), undisturbed():
            return self._down()

    def clean(self) -> None:
        """Stop everything and delete the folder's content."""
        with one_command(self.layout), undisturbed():
            self._wipe()

    def _down(self, names: Sequence[str] | None = None) -> bool:
        chosen = list(self.state.processes) if names is None else names
        if not chosen:
            return False
        stack = self.attach()
        stack.stop(*chosen)
        stack.close()
        return True

    def _wipe(self) -> None:
        self._down()
        for path in self.layout.root.iterdir():
            if path == self.layout.lock_file:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _alive(self) -> list[str]:
        return [name for name, record in self.state.processes.items() if record.is_alive]

    def _open(self, *, owned: bool, airflow: bool) -> RunningStack:
        began = time.monotonic()
        java = find_java()
        groups = (*DEFAULT_GROUPS, "spark-s3") if self._object_store else DEFAULT_GROUPS
        if fetch(select_groups(read_lock(), groups)):
            self._report("artifacts", "fetched", time.monotonic() - began)
        self._settle_storage()
        write_spark_conf(self.layout.spark_conf, object_store=self._object_store)
        self.layout.lake.mkdir(parents=True, exist_ok=True)
        secrets = Secrets.kept_in(self.layout.secrets_file)
        # a demo or a test that owns the stack says itself when something runs
        site = Site(
            self.layout,
            self._settle_ports(),
            secrets,
            java,
            schedules=not owned,
            object_store=self._object_store,
        )
        return RunningStack(site, self.state, owned=owned, airflow=airflow, report=self._report)

    def _settle_storage(self) -> None:
        """Airflow that still runs has the connection to the other lake."""
        if self.state.has_object_store != self._object_store:
            self._down([name for name in self._alive() if name.startswith(("airflow", "object-store"))])
            self.state.remember_object_store(used=self._object_store)

    def _settle_ports(self) -> dict[str, int]:
        alive = self._alive()
        listeners = {**USUAL, **OBJECT_STORE} if self._object_store else USUAL
        choice = settle_ports(self.layout, self.state, alive=alive, listeners=listeners, report=self._report)
        self._down(configured_with(choice.moved, alive))
        return dict(choice.ports)


def configured_with(moved: Collection[str], alive: Collection[str]) -> list[str]:
    """Return the running components that were started with a port of a listener that has moved."""
    return [kind.name for kind in _KINDS if kind.name in alive and kind.configured_with.intersection(moved)]
