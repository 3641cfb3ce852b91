"""Findings about the settings of a connector, as Kafka Connect shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.connect.connectors import Connector
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.debezium.signals import SnapshotKind, snapshot_advice
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.preflight.findings import Finding

_UNWRAPPING = ("ExtractNewRecordState", "ExtractNewDocumentState")
_AVRO = "AvroConverter"


def connector_findings(connector: Connector, pipeline: Pipeline) -> Iterator[Finding]:
    """Return one finding for the connector, and one for each setting that does harm, with its way out."""
    subject = f"connector {connector.name}"
    if connector.problem is None:
        yield Finding.fine(subject, f"runs, topics {connector.prefix}.*")
    else:
        way_out = (
            "Read why in Kafka Connect's log, mend it, then POST "
            f"<connect>/connectors/{connector.name}/restart?includeTasks=true&onlyFailed=true."
        )
        yield Finding.problem(subject, connector.problem, advice=way_out, exit_code=ExitCode.CONFIG)
    yield from _check_transforms(subject, connector)
    yield from _check_converters(subject, connector)
    yield from _check_placeholder(subject, connector, pipeline)
    yield from _check_losses(subject, connector)
    yield from _check_snapshot_mode(subject, connector, pipeline)
    yield from _check_values(subject, connector)
    yield from _check_heartbeat(subject, connector)
    yield from _check_signals(subject, connector, pipeline)


def missing_connector(prefix: str, others: Iterable[str]) -> Finding:
    names = ", ".join(sorted(others)) or "none"
    return Finding.warning(
        f"connector of {prefix}",
        f"Kafka Connect has no connector whose topic.prefix is {prefix}; it has {names}",
        "Create it, or name the right cluster as `lakehouse_connect`. Topics that a transform renames are "
        "not found by their prefix.",
    )


def _check_transforms(subject: str, connector: Connector) -> Iterator[Finding]:
    names = [name.strip() for name in connector.settings.get("transforms", "").split(",") if name.strip()]
    for name in names:
        type_ = connector.settings.get(f"transforms.{name}.type", "")
        if type_.endswith(_UNWRAPPING):
            yield Finding.problem(
                subject,
                f"its transform {name} ({type_}) removes the envelope",
                advice="Take it out of `transforms`: silver is computed from op, source and position.",
                exit_code=ExitCode.CONFIG,
            )
        else:
            yield Finding.note(
                subject,
                f"its transform {name} ({type_ or 'of unknown type'}) changes records",
                "Records that it drops or renames are missing here, without an error; tables whose topics it "
                "renames have no valid-through.",
            )


def _check_converters(subject: str, connector: Connector) -> Iterator[Finding]:
    for side in ("key", "value"):
        converter = connector.settings.get(f"{side}.converter")
        if converter is None:
            yield Finding.note(
                subject,
                f"has no {side}.converter, so the setting of the Kafka Connect worker counts",
                "It must be one that writes Avro in Confluent's wire format.",
            )
        elif not converter.endswith(_AVRO):
            yield Finding.problem(
                subject,
                f"{side}.converter is {converter}, which writes no Avro",
                advice="Set a converter that writes Avro in Confluent's wire format, as in connector.json.",
                exit_code=ExitCode.CONFIG,
            )
        elif (
            "apicurio" in converter
            and connector.settings.get(f"{side}.converter.apicurio.registry.as-confluent") != "true"
        ):
            yield Finding.warning(
                subject,
                f"{side}.converter writes Apicurio's frame of eight bytes before each record",
                f"Set {side}.converter.apicurio.registry.as-confluent=true.",
            )


def _check_placeholder(subject: str, connector: Connector, pipeline: Pipeline) -> Iterator[Finding]:
    try:
        connector.refuse_other_placeholder(pipeline.unavailable_value_placeholder, table="this pipeline")
    except LakehouseError as error:
        yield Finding.from_error(subject, error)


def _check_losses(subject: str, connector: Connector) -> Iterator[Finding]:
    """Settings by which changes are lost."""
    settings = connector.settings
    skipped = settings.get("skipped.operations", "t").replace(" ", "")
    if skipped != "none":
        kinds = {"c": "INSERT", "u": "UPDATE", "d": "DELETE", "t": "TRUNCATE"}
        operations = ", ".join(kinds.get(letter, letter) for letter in skipped.split(","))
        default = "" if "skipped.operations" in settings else " (the default)"
        yield Finding.warning(
            subject,
            f"skipped.operations={skipped}{default}: {operations} of the source never reaches the lake",
            "Set skipped.operations=none.",
        )
    if settings.get("errors.tolerance", "none") != "none":
        yield Finding.warning(
            subject,
            "errors.tolerance=all: records that cannot be converted are dropped silently",
            "Set errors.tolerance=none: the task fails then, which is seen.",
        )
    if settings.get("producer.override.acks", "all") not in ("all", "-1"):
        yield Finding.warning(
            subject,
            f"producer.override.acks={settings['producer.override.acks']}: Kafka may lose records",
            "Take it out, or set it to all.",
        )
    if settings.get("slot.drop.on.stop", "false") == "true":
        yield Finding.warning(
            subject,
            "slot.drop.on.stop=true: what is changed while the connector is stopped is lost",
            "Set slot.drop.on.stop=false.",
        )


def _check_snapshot_mode(subject: str, connector: Connector, pipeline: Pipeline) -> Iterator[Finding]:
    mode = connector.settings.get("snapshot.mode", "initial")
    if mode in ("no_data", "never", "schema_only"):
        topics = [topic for table in pipeline.tables for topic in table.topics]
        yield Finding.warning(
            subject,
            f"snapshot.mode={mode}: rows from before the connector was made are not sent",
            snapshot_advice(SnapshotKind.INCREMENTAL, topics, signals=pipeline.signal_table),
        )
    elif mode == "always":
        yield Finding.note(
            subject,
            "snapshot.mode=always: each restart sends all rows again and opens a source epoch",
            "Set snapshot.mode=initial unless that is meant.",
        )


def _check_values(subject: str, connector: Connector) -> Iterator[Finding]:
    """Settings by which values become others."""
    if connector.settings.get("decimal.handling.mode") == "double":
        yield Finding.warning(
            subject,
            "decimal.handling.mode=double: decimals lose digits",
            "Set decimal.handling.mode=precise before the first record; a later change is one of types.",
        )
    if connector.settings.get("time.precision.mode") == "connect":
        yield Finding.warning(
            subject,
            "time.precision.mode=connect: times lose all below a millisecond",
            "Set time.precision.mode=adaptive before the first record; a later change is one of types.",
        )


def _check_heartbeat(subject: str, connector: Connector) -> Iterator[Finding]:
    settings = connector.settings
    if settings.get("heartbeat.interval.ms", "0") in ("0", ""):
        yield Finding.warning(
            subject,
            "has no heartbeat: while its tables do not change it confirms nothing, the source keeps its log, "
            "and valid-through does not advance",
            "Set heartbeat.interval.ms=10000 and a heartbeat.action.query, as in connector.json.",
        )
    elif not settings.get("heartbeat.action.query"):
        yield Finding.note(
            subject,
            "its heartbeat writes nothing to the source (no heartbeat.action.query)",
            "While the whole database is quiet it confirms nothing, and `fresh_within` is broken.",
        )


def _check_signals(subject: str, connector: Connector, pipeline: Pipeline) -> Iterator[Finding]:
    signals = connector.setting("signal.data.collection", "")
    if signals == "":
        yield Finding.warning(
            subject,
            "has no signal.data.collection: no snapshot can be asked for, and most ways out end with one",
            f"Create {pipeline.signal_table} (id varchar(42) PRIMARY KEY, type varchar(32), data "
            f"varchar(2048)) and set signal.data.collection={pipeline.signal_table}.",
        )
    elif signals is not None and signals != pipeline.signal_table:
        yield Finding.warning(
            subject,
            f"signal.data.collection={signals}, the pipeline says `signal_table: {pipeline.signal_table}`",
            f"Set `signal_table: {signals}`: statements that advice prints name it.",
        )
