"""A check is a line with a way out, and its exit code is the one a job would give."""

from __future__ import annotations

import pytest

from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.preflight.findings import Finding, exit_code_of, verdict

FINE = Finding.fine("lake", "file:///lake can be written")
WARNED = Finding.warning("topic a", "it is compacted", "Set cleanup.policy=delete.")
CONFIG = Finding.problem("schema of a", "no key", advice="Give it one.", exit_code=ExitCode.CONFIG)
AWAY = Finding.from_error("kafka", BrokerUnavailableError(bootstrap="k:9092", reason="refused"))


def test_the_way_out_stands_below_the_line():
    assert WARNED.lines() == ["warning  topic a: it is compacted", "         -> Set cleanup.policy=delete."]
    assert FINE.lines() == ["ok       lake: file:///lake can be written"]


def test_a_problem_from_an_error_carries_its_sentence_and_code():
    assert AWAY.sentence == "Kafka at k:9092 did not answer: refused"
    assert AWAY.exit_code is ExitCode.RETRY


@pytest.mark.parametrize(
    ("findings", "code", "last_line"),
    [
        ([FINE], 0, "shop is ready"),
        ([FINE, WARNED], 0, "shop is ready, with 1 warning"),
        ([WARNED, CONFIG], 78, "shop is not ready: 1 problem, 1 warning"),
        ([CONFIG, AWAY], 75, "shop is not ready: 2 problems, 0 warnings"),
    ],
)
def test_only_problems_stand_in_the_way(findings, code, last_line):
    assert exit_code_of(findings) == code
    assert verdict("shop", findings) == last_line
