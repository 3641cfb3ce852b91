"""What is read out of /proc."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.processes import (  # type: ignore[import-not-found]
    TAG,
    Process,
    cpu_seconds,
    descendants,
    forked,
    megabytes,
    parse_environment,
    parse_megabytes,
    parse_stat,
    tree_of,
)

STAT = "412 (a ) (b) S 17 412 412 0 -1 4194560 900 800 1 2 30 12 500 600 20 0 1 0 99 1000 50"
STATUS = "Name:\tpython\nVmPeak:\t  900000 kB\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\nThreads:\t3\n"


def test_the_command_of_a_process_may_hold_blanks_and_parentheses():
    assert parse_stat(STAT) == Process(pid=412, parent=17, cpu_ticks=42)


def test_memory_is_told_in_megabytes():
    assert parse_megabytes(STATUS, "VmHWM") == 200.0
    assert parse_megabytes(STATUS, "VmRSS") == 100.0


def test_a_process_that_waits_to_be_reaped_has_no_memory():
    assert parse_megabytes("Name:\tpython\nState:\tZ (zombie)\n", "VmHWM") == 0.0


def test_a_value_in_the_environment_may_hold_an_equals_sign():
    assert parse_environment(b"A=1\0B=x=y\0\0") == {"A": "1", "B": "x=y"}


def test_descendants_are_found_whatever_the_order():
    everyone = [Process(4, 3, 0), Process(3, 1, 0), Process(1, 0, 0), Process(9, 8, 0)]

    assert sorted(descendants(1, everyone)) == [1, 3, 4]


def test_nothing_descends_from_a_process_that_is_not_there():
    assert descendants(2, [Process(3, 2, 0)]) == {}


def test_workers_are_the_children_of_the_daemon_with_their_tag():
    tree = {
        1: Process(1, 0, 0),
        2: Process(2, 1, 0),
        3: Process(3, 2, 0),
        4: Process(4, 1, 0),
        5: Process(5, 4, 0),
    }
    tags = {1: "", 2: "ours", 3: "ours", 4: "baseline", 5: "baseline"}

    assert forked(tree, tags, "ours") == [3]


def test_cpu_time_counts_from_the_first_look_or_from_the_start_of_a_process():
    tick = os.sysconf("SC_CLK_TCK")
    before = {1: Process(1, 0, 5 * tick), 2: Process(2, 1, 9 * tick)}
    after = {1: Process(1, 0, 8 * tick), 3: Process(3, 1, 2 * tick)}

    assert cpu_seconds(before, after) == 5.0


def test_a_child_of_this_process_is_in_its_tree_and_has_memory():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={TAG: "x"})
    try:
        assert tree_of(os.getpid())[child.pid].parent == os.getpid()
        assert megabytes(child.pid, "VmRSS") > 0
    finally:
        child.communicate(b"\n")
