"""The command line of all jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lakehouse.application.command import parse, refuse_options_without_effect
from cdc_lakehouse.contract import AirflowContext, ExitCode, Job, JobRequest
from cdc_lakehouse.errors import NotSupportedYetError

EVERYTHING = JobRequest(
    job=Job.BRONZE_INGEST,
    pipeline="shop",
    tables=("orders", "customers"),
    airflow=AirflowContext(
        "cdc_shop",
        "manual__2026-01-01T00:00:00+00:00",
        "main.bronze_ingest",
        3,
        triggered_by="Ann O'Call",
        note="--tables=x; ticket 7, 'too short'",
    ),
    from_time="2026-01-01T00:00:00Z",
    until_time="2026-01-02T00:00:00Z",
    accept_gap=("orders=shop.public.orders/0:5-9", "customers=shop.public.customers/1:0-2"),
    source_epoch={"orders": 2},
    acknowledge_foreign=("customers=v3@step2",),
    stop_reading=("orders=step7",),
    accept_deletes=("orders=step1@v2:3000rows",),
    fill_gaps=("orders",),
    dry_run=True,
)


def request(*arguments: str) -> JobRequest:
    return parse(["--pipeline", "shop", *arguments], job=Job.BRONZE_INGEST)


def test_every_option_comes_back_as_it_was_sent():
    assert parse(EVERYTHING.to_arguments(), job=Job.BRONZE_INGEST) == EVERYTHING


def test_a_pipeline_alone_means_all_its_tables():
    assert request() == JobRequest(job=Job.BRONZE_INGEST, pipeline="shop", tables=())


def test_a_person_at_a_shell_is_no_airflow():
    assert request("--tables", "orders").airflow is None


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_is_no_failure(option, capsys):
    with pytest.raises(SystemExit) as caught:
        parse([option], job=Job.VACUUM)

    assert caught.value.code == ExitCode.DONE
    assert "Usage: vacuum" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--pipeline"],
        ["--pipeline", "shop", "--unknown"],
        ["--pipeline", "shop", "stray"],
        ["--pipeline", "shop", "--try", "twice"],
        ["--pipeline", "shop", "--source-epoch", "orders"],
        ["--pipeline", "shop", "--source-epoch", "orders=two"],
        ["--pipeline", "shop", "--source-epoch", "=2"],
    ],
)
def test_a_usage_error_needs_a_person(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(arguments, job=Job.VACUUM)

    assert caught.value.code == ExitCode.CONFIG
    assert "Error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--from-time", "2026-01-01T00:00:00Z"], "--from-time"),
        (["--until-time", "2026-01-01T00:00:00Z"], "--until-time"),
        (["--also-drain"], "--also-drain"),
        (["--recompute", "changed"], "--recompute"),
    ],
)
def test_an_interval_is_refused_by_a_job_that_makes_none_complete(arguments, option):
    asked = replace(request(*arguments), job=Job.OPTIMIZE)

    with pytest.raises(NotSupportedYetError) as caught:
        refuse_options_without_effect(asked)

    assert caught.value.feature == f"the option {option} of optimize"


def test_the_options_of_this_release_are_not_refused():
    refuse_options_without_effect(request("--tables", "orders", "--dry-run"))


@pytest.mark.parametrize(
    "arguments",
    [("--accept-gap", "t"), ("--source-epoch", "t=2"), ("--acknowledge-foreign", "t"), ("--fill-gaps", "t")],
)
def test_a_decision_is_for_the_ingest_alone(arguments):
    refuse_options_without_effect(request(*arguments))

    with pytest.raises(NotSupportedYetError) as caught:
        refuse_options_without_effect(parse(["--pipeline", "shop", *arguments], job=Job.SILVER_MERGE))

    assert caught.value.feature == f"the option {arguments[0]} of silver_merge"


@pytest.mark.parametrize("option", ["--close-cases", "--reopen-cases"])
def test_cases_are_closed_by_the_replay_alone(option):
    lines = ("t=bad_frame:2records@5f1c09ae77d2", "t=shop.t/0@17", "u=bad_avro:1records@c7d64a0b39f1")
    arguments = ["--pipeline", "shop", *(word for line in lines for word in (option, line))]
    found = parse(arguments, job=Job.QUARANTINE_REPLAY)

    refuse_options_without_effect(found)
    assert (*found.close_cases, *found.reopen_cases) == lines
    assert parse(found.to_arguments(), job=Job.QUARANTINE_REPLAY) == found
    with pytest.raises(NotSupportedYetError):
        refuse_options_without_effect(parse(arguments, job=Job.BRONZE_INGEST))
