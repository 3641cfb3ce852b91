"""The command line that all jobs share, as a `JobRequest`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import click

from cdc_lakehouse.contract import (
    ENV_OPTIONS,
    REPAIRS,
    AirflowContext,
    ExitCode,
    Job,
    JobRequest,
    table_named_by,
)
from cdc_lakehouse.errors import NotSupportedYetError
from cdc_lakehouse.run_modes import Recompute, RepairStep

_OF_A_JOB = {
    Job.BRONZE_INGEST: ("accept_gap", "source_epoch", "acknowledge_foreign", "stop_reading", "fill_gaps"),
    Job.SILVER_MERGE: ("accept_deletes",),
    Job.QUARANTINE_REPLAY: ("close_cases", "reopen_cases"),
}
_OF_AN_INTERVAL = ("from_time", "until_time", "recompute", "also_drain")
_WITH_INTERVAL = (Job.BRONZE_INGEST, Job.SILVER_MERGE)
_OF_A_REPAIR = ("step", "plans", "approved_by", "options")


def _epochs(context: click.Context, parameter: click.Parameter, pairs: Sequence[str]) -> dict[str, int]:
    found = {}
    for pair in pairs:
        table, _, epoch = pair.partition("=")
        if not table or not epoch.isdecimal():
            raise click.BadParameter(f"{pair!r} is not <table>=<number>", param=parameter, ctx=context)
        found[table] = int(epoch)
    return found


def _options(context: click.Context, parameter: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{pair!r} is not <name>=<value>", param=parameter, ctx=context)
        options[name] = value
    return options


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--pipeline", required=True, help="Name of a file in include/pipelines.")
@click.option("--tables", default="", help="Comma-separated tables of the pipeline; all of them by default.")
@click.option("--group", help="All tables of this group, discovered ones included.")
@click.option("--dag-id", help="Who asks: Airflow's dag_id …")
@click.option("--dag-run-id", help="… its run_id …")
@click.option("--task-id", help="… its task_id …")
@click.option("--try", "try_number", type=int, default=1, help="… and the number of the try.")
@click.option("--triggered-by", help="The user who triggered that run …")
@click.option("--note", help="… and why: both are kept with decisions.")
@click.option("--from-time", help="First instant of the interval that is made complete …")
@click.option("--until-time", help="… and the first one behind it.")
@click.option(
    "--recompute",
    type=click.Choice([each.value for each in Recompute]),
    help="Which keys of the interval silver computes again: all of them by default.",
)
@click.option("--also-drain", is_flag=True, help="Read what is new in Kafka, too.")
@click.option(
    "--accept-gap",
    multiple=True,
    metavar="TABLE=OFFSETS",
    help="Go on without records that are lost, as OFFSETS_LOST names them.",
)
@click.option(
    "--source-epoch",
    multiple=True,
    metavar="TABLE=N",
    callback=_epochs,
    help="The source, or its topic, is another incarnation from here on.",
)
@click.option(
    "--acknowledge-foreign",
    multiple=True,
    metavar="TABLE=COMMIT",
    help="Rows were changed by hand, and meant so, as FOREIGN_COMMIT names it.",
)
@click.option(
    "--stop-reading",
    multiple=True,
    metavar="TABLE=STEP",
    help="The table is gone at its source, as TOPIC_MISSING names it: keep what is there.",
)
@click.option(
    "--accept-deletes",
    multiple=True,
    metavar="TABLE=REMOVAL",
    help="Remove rows that `deletes_limit` holds back, as DELETES_LIMIT names them.",
)
@click.option("--fill-gaps", multiple=True, metavar="TABLE", help="Read what is missing and Kafka still has.")
@click.option(
    "--close-cases",
    multiple=True,
    metavar="TABLE=CASES",
    help="Nobody waits for these undecodable records any more, as `make quarantine` names them.",
)
@click.option("--reopen-cases", multiple=True, metavar="TABLE=CASES", help="Wait for them again.")
@click.option(
    "--step",
    type=click.Choice([each.value for each in RepairStep]),
    help="The part of a repair: make a plan, carry out an approved one, verify what it did.",
)
@click.option("--plan", "plans", multiple=True, metavar="TABLE=DIGEST", help="An approved plan of a repair.")
@click.option("--approved-by", help="The user who approved it.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_options,
    help="What only this kind of repair knows.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, do nothing.")
def _command(**options: Any) -> dict[str, Any]:
    return options


def parse(arguments: Sequence[str], *, job: Job) -> JobRequest:
    """Raises `SystemExit` after a usage line on standard error."""
    try:
        options = _command.main(list(arguments), prog_name=job.value, standalone_mode=False)
    except click.ClickException as exc:
        exc.show()
        raise SystemExit(ExitCode.CONFIG) from exc
    if not isinstance(options, dict):  # --help printed the page and asks for exit 0
        raise SystemExit(ExitCode.DONE)
    return JobRequest(
        job=job,
        pipeline=options["pipeline"],
        tables=tuple(name for name in options["tables"].split(",") if name),
        group=options["group"],
        airflow=_airflow(options),
        from_time=options["from_time"],
        until_time=options["until_time"],
        recompute=None if options["recompute"] is None else Recompute(options["recompute"]),
        also_drain=options["also_drain"],
        accept_gap=options["accept_gap"],
        source_epoch=options["source_epoch"],
        acknowledge_foreign=options["acknowledge_foreign"],
        stop_reading=options["stop_reading"],
        accept_deletes=options["accept_deletes"],
        fill_gaps=options["fill_gaps"],
        close_cases=options["close_cases"],
        reopen_cases=options["reopen_cases"],
        step=_step(options["step"], job),
        plans=options["plans"],
        approved_by=options["approved_by"],
        options={**_options_of_environment(), **options["options"]},
        dry_run=options["dry_run"],
    )


def _options_of_environment() -> dict[str, str]:
    """Return what Airflow hands over beside the command line, which others can read."""
    options: dict[str, str] = json.loads(os.environ.get(ENV_OPTIONS, "{}"))
    return options


def _step(name: str | None, job: Job) -> RepairStep | None:
    """Return the step that is asked for: a repair without one makes a plan, which changes nothing."""
    if name is not None:
        return RepairStep(name)
    return RepairStep.PLAN if job in REPAIRS else None


def refuse_options_without_effect(request: JobRequest) -> None:
    """Refuse what another job does: a run that is green must have done all that it was asked for."""
    of_others = [name for job, names in _OF_A_JOB.items() if job is not request.job for name in names]
    if request.job not in _WITH_INTERVAL:
        of_others += _OF_AN_INTERVAL
    if request.job not in REPAIRS:
        of_others += _OF_A_REPAIR
    for name in of_others:
        if getattr(request, name):
            raise NotSupportedYetError(feature=f"the option --{name.replace('_', '-')} of {request.job}")


def tables_decided_on(request: JobRequest) -> dict[str, set[str]]:
    """Return the tables that each decision of this run names, by parameter."""
    names = [name for of_job in _OF_A_JOB.values() for name in of_job]
    return {name: {table_named_by(value) for value in getattr(request, name)} for name in names}


def _airflow(options: dict[str, Any]) -> AirflowContext | None:
    if options["dag_id"] is None:
        return None
    return AirflowContext(
        dag_id=options["dag_id"],
        run_id=options["dag_run_id"] or "",
        task_id=options["task_id"] or "",
        try_number=options["try_number"],
        triggered_by=options["triggered_by"],
        note=options["note"],
    )
