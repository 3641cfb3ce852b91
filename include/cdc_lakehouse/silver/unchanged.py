"""Whether silver is what the look saw: a merge that looked at another one has lost, and leaves it alone.

Asked before anything is written. What others do from then on is told by the commit itself, which says which
version it follows (`lake.commits`).
"""

from __future__ import annotations

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.silver.look import MergeTask


def refuse_changed(application: Application, task: MergeTask) -> None:
    """Raises also for data that is not ours.

    Attempts tell steps of one number apart: a silver that was deleted and made anew has them again.
    """
    name = task.table.name
    state = read_state(application.lake.silver(name), table=name)
    if _step(None if state is None else state.ledger) != _step(task.before):
        raise SupersededError(table=name, seq=task.before.seq, attempt=application.attempt)


def _step(ledger: Ledger | None) -> tuple[int, str]:
    return (0, "") if ledger is None else (ledger.seq, ledger.attempt)
