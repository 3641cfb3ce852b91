"""Take a layer of a table back to a version of its own, rows and ledger together (decision 0063)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.repair.moment import LAYER, TO_TIME, TO_VERSION, Layer, Moment
from cdc_lakehouse.repair.operation import Outcome
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord
from cdc_lakehouse.repair.rewind_bronze import AskKafka, RewindBronze, ask_kafka
from cdc_lakehouse.repair.rewind_silver import RewindSilver


class Rewind:
    """What is the same for both layers; what differs is in a class for each."""

    job = Job.REWIND
    options = frozenset({LAYER, TO_VERSION, TO_TIME})

    def __init__(self, ask: AskKafka = ask_kafka) -> None:
        self._ask = ask

    def plan(self, application: Application, table: Table) -> TablePlan:
        options, timezone = application.request.options, application.pipeline.timezone
        moment = Moment.asked_for(options, table=table.name, timezone=timezone)
        return self._layer(moment.layer, application, table).plan(moment)

    def facts_before(self, application: Application, table: Table) -> Mapping[str, Any]:
        """Return the versions that readers have: a rewind to them brings their rows back."""
        lake, name = application.lake, table.name
        snapshots = {Layer.SILVER: lake.silver(name), Layer.BRONZE: lake.bronze(name)}
        found = {layer.value: newest_snapshot(uri) for layer, uri in snapshots.items()}
        return {
            "before": {layer: snapshot.version for layer, snapshot in found.items() if snapshot is not None}
        }

    def act(self, application: Application, table: Table, plan: TablePlan) -> Outcome:
        return self._layer(Layer(plan.options[LAYER]), application, table).act(plan)

    def verify(self, application: Application, table: Table, record: RepairRecord) -> Outcome:
        return self._layer(Layer(record.plan.options[LAYER]), application, table).verify(record)

    def _layer(self, layer: Layer, application: Application, table: Table) -> RewindSilver | RewindBronze:
        match layer:
            case Layer.SILVER:
                return RewindSilver(application, table)
            case Layer.BRONZE:
                return RewindBronze(application, table, self._ask)
        assert_never(layer)
