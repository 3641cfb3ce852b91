"""The trigger form of each kind of repair: what it is for, and what a person has to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk import Param

from cdc_lakehouse.contract import Job
from cdc_lakehouse.orchestration.decisions import NOTE, note_param
from cdc_lakehouse.orchestration.form_fields import LINES, choice_field, lines_field, text_field
from cdc_lakehouse.orchestration.interval_run import TABLES, named_tables


@dataclass(frozen=True, slots=True)
class Choice:
    """The values of an option, and what the form shows as long as nothing is chosen."""

    values: tuple[str, ...]
    nothing: str


@dataclass(frozen=True, slots=True)
class RepairForm:
    about: str
    """What the repair does, in the DAG's text."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Name of an option -> its help."""
    by_lines: frozenset[str] = frozenset()
    """Options with one value per line."""
    choices: Mapping[str, Choice] = field(default_factory=dict)
    """Options with a list of values."""


REPAIR_FORMS: Mapping[Job, RepairForm] = {
    Job.REBUILD: RepairForm(
        about=(
            "Computes silver of a table, its history and its tombstones again from bronze, beside the live "
            "ones, shows what would change, and puts them in their place once somebody approves. For tables "
            "whose settings changed (`SHAPE_CHANGED`, `MODE_CHANGED`), that were edited by hand, or that are "
            "wrong. Readers see the old rows or the new ones, never half. Merges go on meanwhile."
        ),
        options={
            "undo": (
                "The digest of an earlier rebuild of the table: brings back what it replaced, as long as "
                "VACUUM has not taken the files. Empty: rebuild."
            )
        },
    ),
    Job.RESYNC: RepairForm(
        about=(
            "Asks the connector for an incremental snapshot of a table, waits for its end, reads and merges "
            "its rows, and removes rows that the source does not have any more. For tables that differ from "
            "their source (`SILVER_DIFFERS`, `OFFSETS_LOST`, `COLUMNS_UNTOLD`). The stream of other tables "
            "goes on, and readers have the old rows until each merge."
        ),
        options={
            "condition": (
                "Only rows that meet this SQL condition of the source are sent again, and no row is removed. "
                "Empty: the whole table."
            ),
            "wait_minutes": "How long one try waits for the end of the snapshot; by default 60.",
        },
    ),
    Job.REWIND: RepairForm(
        about=(
            "Takes one layer of a table back to a version or a time, rows and progress together. Silver gets "
            "the rows of then, and the next merge applies again what bronze has since. Bronze gets the rows "
            "and offsets of then, and the next ingest reads from Kafka again what came since."
        ),
        options={
            "layer": "The layer that goes back; silver if nothing is chosen.",
            "to_version": "A version of its Delta table, as `DESCRIBE HISTORY` lists it.",
            "to_time": (
                "Or a time, like `2026-11-03T14:00:00+00:00`: the newest commit at or before it. Without an "
                "offset it is a time of the pipeline's timezone."
            ),
        },
        choices={"layer": Choice(("silver", "bronze"), nothing="silver, if nothing is chosen")},
    ),
    Job.QUARANTINE_REPAIR: RepairForm(
        about=(
            "Decodes undecodable records again, or ends or reopens their cases, after a person has seen what "
            "comes of it: the plan tries to decode them and writes nothing."
        ),
        options={
            "do": "*replay* decodes again, *close* ends the wait for records, *reopen* begins it again.",
            "cases": (
                "Per line one value as `make quarantine` prints it, like "
                "`orders=bad_frame:2records@5f1c09ae77d2`, or one record, like "
                "`orders=shop.public.orders/0@17`. Empty for a replay: all that wait."
            ),
        },
        by_lines=frozenset({"cases"}),
        choices={"do": Choice(("replay", "close", "reopen"), nothing="choose one")},
    ),
    Job.RETIRE: RepairForm(
        about=(
            "For a table that is gone at its source, or that nobody wants. `keep` ends its reading and "
            "leaves all rows, `archive` moves its files to the archive of the lake, `remove` deletes them "
            "with all versions. Before `archive` and `remove` take the table out of the pipeline file."
        ),
        options={
            "what": "What becomes of the table.",
            "undo": "The digest of the plan of an archiving: its tables come back. Empty otherwise.",
        },
        choices={"what": Choice(("keep", "archive", "remove"), nothing="choose one, or fill in undo")},
    ),
    Job.ERASE: RepairForm(
        about=(
            "Takes the keys of a person out of bronze, silver, history, tombstones and quarantine. Delete "
            "the rows at the source first, and let a run read that. Kafka, backups and older versions until "
            "VACUUM keep them for a while: the plan says how long."
        ),
        options={
            "keys": (
                'Per line a key as a JSON object of its columns at the source, like `{"id": 7}`. Airflow '
                "keeps what is typed here in its database, but not what *keys_file* names."
            ),
            "keys_file": "The name of a file with such lines in `_ops/<pipeline>/erase/` of the lake.",
            "where": "Or an SQL condition on silver's columns; the plan fixes the keys.",
        },
        by_lines=frozenset({"keys"}),
    ),
}


def repair_params(form: RepairForm) -> dict[str, Param]:
    """Return the fields of the trigger form."""
    tables = Param(
        [], description_md="Per line the name of a table that the repair is about; at least one.", **LINES
    )
    return {
        TABLES: tables,
        **{name: _option_param(form, name) for name in form.options},
        NOTE: note_param(),
    }


def options_of(form: RepairForm, conf: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the options that a person filled in; lines are joined by line breaks."""
    options = {}
    for name in form.options:
        value = (conf or {}).get(name)
        lines = value if isinstance(value, list | tuple) else [value or ""]
        text = "\n".join(filter(None, (str(line).strip(" \t`") for line in lines)))
        if text:
            options[name] = text
    return options


def tables_to_repair(conf: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the tables that the form names; the job refuses a form that names none."""
    return named_tables(conf)


def _option_param(form: RepairForm, name: str) -> Param:
    text = form.options[name]
    if name in form.by_lines:
        return lines_field(text)
    if name in form.choices:
        choice = form.choices[name]
        return choice_field(text, choice.values, nothing=choice.nothing)
    return text_field(text)
