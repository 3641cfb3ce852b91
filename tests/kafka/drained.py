"""One table on its topic at a real broker, drained as the job drains it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from broker import Broker  # type: ignore[import-not-found]
from chain import Chain, table_of  # type: ignore[import-not-found]
from orders import order  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.ingest import ReadAgain, TableIngest
from cdc_lakehouse.bronze.interval import IntervalTask, look_at_interval
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.bronze.planning import plan_table
from cdc_lakehouse.bronze.read_again import read_again as read_outside_spark
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import JobRequest, TableResult
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.registry.client import SchemaRegistry

KEY = order(0, 1).key
ANY_TIMESTAMP = {
    "message_timestamp_before_max_ms": str(2**63 - 1),
    "message_timestamp_after_max_ms": str(2**63 - 1),
    "retention_ms": "-1",  # by their own timestamps records are old enough to be deleted
}
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class Drained:
    """One table on its topic; each call is a run of its own."""

    broker: Broker
    chain: Chain
    topic: str

    @property
    def table(self) -> Table:
        return cast(Table, table_of("orders", self.topic))

    def send_in_transactions(self) -> None:
        """Two records as they are, one that is aborted, one that is committed."""
        self.send(1, 2)
        with self.broker.transaction(self.topic, [value(3)], key=KEY) as producer:
            producer.abort_transaction(30)
        with self.broker.transaction(self.topic, [value(4)], key=KEY) as producer:
            producer.commit_transaction(30)

    def send(self, *numbers: int, **message: Any) -> None:
        """Orders that decode, all with one key."""
        self.broker.send(self.topic, [value(number) for number in numbers], **{"key": KEY, **message})

    def plan(self, *, start: str = "earliest", **decisions: Any) -> DrainPlan:
        application = self.chain.application(self.table)
        pipeline = application.pipeline.model_copy(update={"start": start})
        object.__setattr__(application, "pipeline", pipeline)
        request = JobRequest(job=application.request.job, pipeline="p", tables=(), **decisions)
        object.__setattr__(application, "request", request)
        cluster = self.broker.cluster
        facts = cluster.facts([self.topic])
        session = lambda: self.chain.session  # noqa: E731
        return plan_table(application, self.table, cluster=cluster, facts=facts, session=session)

    def plan_interval(self, interval: Interval) -> tuple[DrainPlan, IntervalTask]:
        """Return what a run with this interval does to the table."""
        application = replace(self.chain.application(self.table), interval=interval)
        plan = self.plan(from_time=interval.start.isoformat(), until_time=interval.until.isoformat())
        return look_at_interval(application, self.table, plan, interval, cluster=self.broker.cluster)

    def run(
        self, plan: DrainPlan | None = None, *, read_again: ReadAgain | None = None, **decisions: Any
    ) -> TableResult:
        known = plan or self.plan(**decisions)
        run = TableIngest(
            self.chain.application(self.table),
            self.table,
            plan=known,
            registry=cast(SchemaRegistry, self.chain.registry),
            topic_ids=self.broker.cluster.topic_ids,
            read_again=read_again or partial(read_outside_spark, settings=self.broker.settings),
        )
        return run.run(kafka=self._java())

    def rows(self) -> list[dict[str, Any]]:
        """Times as numbers: Python has no year 10000."""
        columns = "* EXCEPT (kafka_timestamp), unix_micros(kafka_timestamp) AS micros"
        rows = self.chain.sql(f"SELECT {columns} FROM {{t}}", self.chain.lake.bronze("orders"))
        return sorted(rows, key=lambda row: (row["partition"], row["offset"]))

    def offsets(self) -> list[tuple[int, int]]:
        return [(row["partition"], row["offset"]) for row in self.rows()]

    def _java(self) -> dict[str, str]:
        known = self.broker.settings
        login = f'username="{known["sasl.username"]}" password="{known["sasl.password"]}"'
        return {
            "bootstrap.servers": known["bootstrap.servers"],
            "security.protocol": known["security.protocol"],
            "sasl.mechanism": known["sasl.mechanism"],
            "sasl.jaas.config": f"{LOGIN} required {login};",
        }


def value(number: int) -> bytes:
    sent = order(number, number, note=f"note {number}").value
    assert sent is not None
    return bytes(sent)
