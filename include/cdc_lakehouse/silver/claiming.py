"""Up to when a silver table is complete, by what was observed at its source and what bronze holds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.lake.claims import Claim, claim_of_silver
from cdc_lakehouse.lake.confirmations import Confirmation
from cdc_lakehouse.lake.confirmations_file import read_confirmations
from cdc_lakehouse.lake.lag import read_unread
from cdc_lakehouse.lake.ledger import Ledger, Ranges
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.quarantine import open_cases
from cdc_lakehouse.lake.state import read_state


class Observation(NamedTuple):
    """Observations of ingests about a table's source and its topics."""

    confirmations: tuple[Confirmation, ...]
    """Newest first."""
    unread: Ranges
    """Offsets that Kafka had and bronze had not read."""


Observed = Callable[[Table], Observation]


def observed_in(lake: Lake) -> Observed:
    """Each group's files are read once, when the first of its tables is asked for."""
    confirmed = cache(lambda group: read_confirmations(lake.confirmations(group)))
    unread = cache(lambda group: read_unread(lake.unread(group)))
    return lambda table: Observation(
        tuple(confirmed(table.group).of(table.name)), unread(table.group).get(table.name, {})
    )


def claim_of_idle(
    lake: Lake, silver: Ledger, *, bronze: Ledger, confirmations: tuple[Confirmation, ...]
) -> Claim:
    """Of a silver that is level with its bronze. It moves on without a commit, as the observations do."""
    has_said_so = silver.valid_through is not None and not silver.passed_over
    counted = 0
    if confirmations and not has_said_so:
        counted = open_cases(lake.bronze(silver.table))
    return claim_beside(lake, silver, bronze=bronze, confirmations=confirmations, counted=counted)


def claim_beside(
    lake: Lake, silver: Ledger, *, bronze: Ledger, confirmations: tuple[Confirmation, ...], counted: int
) -> Claim:
    """`silver` has applied `bronze`, and then somebody has `counted` the open cases.

    Cases that were decoded between the two are none any more, and silver does not have them yet.
    """
    if not counted and silver.passed_over and confirmations:
        now = read_state(lake.bronze(silver.table), table=silver.table)
        counted = 0 if now is not None and now.seq == bronze.seq else 1
    return claim_of_silver(silver, confirmations, bronze=bronze, open_cases=counted)
