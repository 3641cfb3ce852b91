"""The text that Airflow shows beside DAGs and tasks: what it does, what red means, what to press."""

from __future__ import annotations

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.contract import ExitCode, Job
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.run_modes import RepairStep

_WHAT_A_JOB_DOES = {
    Job.PREFLIGHT: (
        "Tries the pipeline file and every connection, as `make check` does, and writes nothing but its "
        "report: the XCom `report` has each finding with its way out. Red if a finding is a problem."
    ),
    Job.BRONZE_INGEST: (
        "Reads everything that Kafka holds now for these tables and appends it to their bronze tables. "
        "Rows and progress are one commit; a table that has nothing new costs nothing. A table that fails "
        "for a reason that may pass is left to `retry_tables`, and the others are merged at once."
    ),
    Job.SILVER_MERGE: (
        "Merges the bronze rows that silver has not applied yet. It runs although the ingest failed for "
        "some table, so that healthy tables go on."
    ),
    Job.VERIFY: (
        "Compares the rows of silver with those of the source database, for tables that say `verify: true`. "
        "`equal`: every row and every compared column is the same. `open`: keys differ that the next merge "
        "may bring; the next runs look at them again. Red (`SILVER_DIFFERS`): silver has applied everything "
        "up to the mark, and keys still differ; the run report names them and their columns. It only reads."
    ),
    Job.OPTIMIZE: (
        "Packs small files and takes out rows that deletion vectors hide, where it pays; the report says "
        "why. It waits for merges, and gives way to them: skipped, and green. Red (`OPTIMIZE_OVERDUE`): a "
        "table was skipped on too many nights in a row."
    ),
    Job.VACUUM: (
        "Deletes files that no version within the retention needs any more. Once a week it lists the folder "
        "of a table, in the nights between it reads its log."
    ),
    Job.QUARANTINE_REPLAY: (
        "Decodes records again that could not be decoded when they came, and closes the cases of those that "
        "can be now: press **Clear** after the registry was repaired, or a release that knows more is "
        "installed. The next merge puts them where they belong. What still cannot be decoded stays, until "
        "somebody triggers the DAG with `close_cases`: the log prints the lines to paste."
    ),
    Job.CLEAN_CHECKPOINTS: (
        "Deletes scratch checkpoints of attempts that ended, old reports of runs, temporary folders of "
        "killed processes on this machine, and what was kept about tables that are gone. None is needed "
        "again."
    ),
}

_WHAT_AN_EXIT_CODE_MEANS = {
    ExitCode.DONE: ("success", "done, or nothing to do", "nothing"),
    ExitCode.RETRY: (
        "retried",
        "a service was away, or another attempt was faster",
        "wait for the retries; look at the service named in the log; then **Clear**",
    ),
    ExitCode.BUG: (
        "retried",
        "unexpected",
        "**Clear** once; if it comes back, report the traceback of the log",
    ),
    ExitCode.CONFIG: (
        "fails at once",
        "something must be changed first",
        "do what the table below says for the code, then **Clear**",
    ),
    ExitCode.DATA: (
        "fails at once",
        "the data needs a decision; the other tables went on",
        "do what the table below says for the code, then **Clear**",
    ),
}

_CLEAR_IS_SAFE = (
    "**Clear is always safe**, also twice, also while an old attempt still runs: each commit is conditional "
    "on the table's own progress, so nothing is doubled or lost. Clear *with downstream tasks*, so that "
    "`outcome` is judged again. Marking a task as success skips its work."
)


def dag_text(pipeline: Pipeline) -> str:
    """For `cdc_<pipeline>`."""
    rows = [f"| `{group}` | {_names(tables)} |" for group, tables in _groups(pipeline).items()]
    return "\n\n".join(
        [
            f"Drains the topics of pipeline `{pipeline.name}` into bronze, then merges them into silver. "
            f"Ask **{pipeline.owner}** when it stays red.",
            "\n".join(["| group | tables |", "|---|---|", *rows]),
            "Red? Open `outcome`: its first line names tables and error codes; its link leads to the first "
            "failed task, whose log ends with one sentence and one piece of advice per table.",
            _CLEAR_IS_SAFE,
            "To catch up, trigger a run and leave its form empty; it drains to now. The form is for "
            "decisions that an error code asks for: `accept_gap`, `source_epoch`, `acknowledge_foreign`, "
            "`stop_reading`, `accept_deletes`; and for `fill_gaps`. Copy the values from the error's "
            "sentence: a decision holds for what it names, and a retry or a clear of such a run finds it "
            "done.",
            "To make a stretch of time right again, trigger one run with *Specify Manually*, or with "
            "`from_time` and `until_time`: it fills what bronze misses of it, decodes its records again and "
            "computes its rows in silver again. It drains nothing. A backfill does the same, in one run for "
            "each interval of the schedule. Pause a backfill, do not cancel it.",
        ]
    )


def maintenance_text(pipeline: Pipeline) -> str:
    """For `cdc_<pipeline>_maintenance`."""
    return "\n\n".join(
        [
            f"Keeps the tables of pipeline `{pipeline.name}` small and fast. Nothing waits for it: it may "
            f"fail for a night without harm. Ask **{pipeline.owner}** when it stays red for days.",
            "For one table, trigger it with `tables`, a name per line; with `dry_run` it says in log, report "
            "and XCom what it would do. Backfills are forbidden: maintenance is about the tables as they are "
            "now.",
            "Its form is also for undecodable records that nobody will ever decode: `close_cases` ends the "
            "wait for them, `reopen_cases` begins it again. Copy the lines from the log of "
            "`quarantine_replay`: they mean the records that were there then. A retry or a clear of such a "
            "run finds it done.",
            _CLEAR_IS_SAFE,
        ]
    )


def job_text(job: Job, *, tables: tuple[str, ...], more: bool = False) -> str:
    """For the task of a job; `more`: tables of the pipeline's `discover:` too, which only a run knows."""
    return "\n\n".join(
        [
            _WHAT_A_JOB_DOES[job],
            f"Tables: {_names(tables)}{', and those that `discover:` finds' if more else ''}.",
            *_what_red_means(),
        ]
    )


def _what_red_means() -> list[str]:
    """Return the part about a red task: where to look, every exit code and every error."""
    exits = [
        f"| {code.value} | {airflow} | {meaning} | {press} |"
        for code, (airflow, meaning, press) in _WHAT_AN_EXIT_CODE_MEANS.items()
    ]
    errors = [f"| `{e.code}` | {e.exit_code.value} | {e.advice} |" for e in error_classes()]
    return [
        "The last log line says what happened to every table; the first line of the exception counts "
        "the failed ones.",
        "\n".join(
            [
                "| exit code | Airflow | means | press |",
                "|---|---|---|---|",
                *exits,
                "| killed (137, 143, -9, …) | retried | memory, time limit or a person | **Clear** |",
            ]
        ),
        "\n".join(["| error code | exit | what to do |", "|---|---|---|", *errors]),
        _CLEAR_IS_SAFE,
    ]


def retry_text() -> str:
    """Return the text of `<group>.retry_tables`."""
    return "\n\n".join(
        [
            "Reads and merges tables again whose ingest failed for a reason that may pass, while the others "
            "were merged at once. `bronze_ingest` is green then, and its log names the tables that it left. "
            "This task has the retries; it is red when they are used up. Where nothing was left it does "
            "nothing.",
            "If all tables of the group fail, `bronze_ingest` itself is retried: nothing waits for it.",
            *_what_red_means(),
        ]
    )


def repair_text(job: Job, about: str) -> str:
    """Return the text of the DAG `cdc_<pipeline>_<repair>`."""
    return "\n\n".join(
        [
            about,
            "Name the tables in the form and trigger a run. `plan` changes nothing; then `approve` waits for "
            "a day at most: open it, read the plan, type the table's name, press **Approve** or **Reject**. "
            "`act` carries out exactly that plan, once. `verify` compares what it did with what it promised.",
            f"Who asked and why (`note`), who approved, and what was changed lie in the lake under "
            f"`_ops/<pipeline>/repairs/<table>/<plan>.json` for every {job}.",
            _CLEAR_IS_SAFE,
        ]
    )


_WHAT_A_STEP_DOES = {
    RepairStep.PLAN: (
        "Finds out what the repair would change, and changes nothing. Clearing it makes a new plan."
    ),
    RepairStep.ACT: (
        "Carries out the approved plan. It refuses where the table is not what the plan was made from "
        "(`PLAN_CHANGED`). Cleared after it succeeded, it finds the plan carried out and changes nothing."
    ),
    RepairStep.VERIFY: (
        "Compares the table with what the plan promised, and deletes what only the plan needed."
    ),
}


def repair_step_text(job: Job, step: RepairStep) -> str:
    """Return the text of a task that runs one step of a repair."""
    return "\n\n".join([f"Step `{step}` of `{job}`. {_WHAT_A_STEP_DOES[step]}", *_what_red_means()])


def approve_text() -> str:
    """Return the text of `approve`."""
    return (
        "Waits for a person, at *Required Actions*. The field `plan` says what is approved: if `plan` was "
        "cleared after the form was opened, the answer is refused. To approve, type the name of the table. "
        "Where nobody answers within a day the task is red, and nothing was changed."
    )


def announce_text() -> str:
    """For `<group>.announce`."""
    return (
        "Emits one asset event per table that advanced, `<pipeline>.<layer>.<table>`, also when other tables "
        "failed. Clearing it emits the same events again; the DAGs that wait for them must bear that."
    )


def outcome_text() -> str:
    """For `outcome`."""
    return (
        "Gives the run its true state: red when any task is not a success. It does no work of its own. "
        "Clear the task it names *with downstream tasks*; clearing `outcome` alone only judges again."
    )


def error_classes() -> list[type[LakehouseError]]:
    """Every error that a job can report, in the order of the tree."""
    found: list[type[LakehouseError]] = []
    waiting = LakehouseError.__subclasses__()
    while waiting:
        error = waiting.pop(0)
        waiting = [*error.__subclasses__(), *waiting]
        found += [error] if error.code else []
    return found


def _groups(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    return {group: tuple(table.name for table in tables) for group, tables in pipeline.groups.items()}


def _names(tables: tuple[str, ...]) -> str:
    return ", ".join(f"`{table}`" for table in tables)
