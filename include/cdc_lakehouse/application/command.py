"""The command line that all jobs share, as a `JobRequest`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from cdc_lakehouse.contract import AirflowContext, ExitCode, Job, JobRequest, Recompute, table_named_by
from cdc_lakehouse.errors import NotSupportedYetError

_OF_A_JOB = {
    Job.BRONZE_INGEST: ("accept_gap", "source_epoch", "acknowledge_foreign", "stop_reading", "fill_gaps"),
    Job.SILVER_MERGE: ("accept_deletes",),
    Job.QUARANTINE_REPLAY: ("close_cases", "reopen_cases"),
}
_OF_AN_INTERVAL = ("from_time", "until_time", "recompute", "also_drain")
_WITH_INTERVAL = (Job.BRONZE_INGEST, Job.SILVER_MERGE)


def _epochs(context: click.Context, parameter: click.Parameter, pairs: Sequence[str]) -> dict[str, int]:
    found = {}
    for pair in pairs:
        table, _, epoch = pair.partition("=")
        if not table or not epoch.isdecimal():
            raise click.BadParameter(f"{pair!r} is not <table>=<number>", param=parameter, ctx=context)
        found[table] = int(epoch)
    return found


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
        dry_run=options["dry_run"],
    )


def refuse_options_without_effect(request: JobRequest) -> None:
    """Refuse what another job does: a run that is green must have done all that it was asked for."""
    of_others = [name for job, names in _OF_A_JOB.items() if job is not request.job for name in names]
    if request.job not in _WITH_INTERVAL:
        of_others += _OF_AN_INTERVAL
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
