"""What each job says of a table is what the readers of results are tested with (`tests/recorded_results`)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import NEW, ORDERS, know, order  # type: ignore[import-not-found]
from test_valid_through import observed  # type: ignore[import-not-found]

from cdc_lakehouse.bronze import table_decoder
from cdc_lakehouse.contract import REPAIRS, Job, TableResult
from cdc_lakehouse.errors import UnknownSchemaError
from cdc_lakehouse.maintenance.job import clean_tables, optimize_tables, vacuum_tables
from recorded_results import compare_or_record  # type: ignore[import-not-found]


@pytest.fixture(scope="module")
def results(engine, tmp_path_factory) -> dict[Job, TableResult]:
    """One of each kind of change, then a replay of the quarantine, then the nightly maintenance."""
    chain = Chain(engine, root=tmp_path_factory.mktemp("results").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    chain.merge(ORDERS)
    changes = [order(2, 1, op="u", note="changed"), order(3, 2, op="d"), order(4, 3, note="three")]
    ingested = chain.ingest(ORDERS, changes, confirmations=observed(chain, 5))
    merged = chain.merge(ORDERS)
    _damage(chain)
    chain.registry.hidden = NEW.schemas
    replayed = chain.replay(ORDERS)
    for offset in (6, 7, 8):
        chain.ingest(ORDERS, [order(offset, offset, note="more")])
    return {
        Job.BRONZE_INGEST: ingested,
        Job.SILVER_MERGE: merged,
        Job.QUARANTINE_REPLAY: replayed,
        Job.OPTIMIZE: optimize_tables(chain.application(ORDERS))[0],
        Job.VACUUM: vacuum_tables(chain.application(ORDERS))[0],
        Job.CLEAN_CHECKPOINTS: clean_tables(chain.application(ORDERS))[0],
    }


def _damage(chain: Chain) -> None:
    """One record that nobody can decode until its schema is known."""
    unreadable = [order(5, 4, note="unreadable", priority=1, writer=NEW)]
    with pytest.raises(UnknownSchemaError):
        chain.ingest(ORDERS, unreadable)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_decoder, "PERSISTS", timedelta())
        chain.ingest(ORDERS, unreadable)


@pytest.mark.parametrize("job", [each for each in Job if each not in (*REPAIRS, Job.VERIFY, Job.PREFLIGHT)])
def test_a_job_says_of_a_table_what_its_readers_are_tested_with(results, job):
    """`verify` needs a source: `tests/source/test_verify.py` has the same test."""
    compare_or_record(job, results[job])
