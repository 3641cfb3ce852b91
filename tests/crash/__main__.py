"""`make crash`: the whole proof, one line at its end, and an exit code that is 0 only if it holds."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from crash.broker import World, world  # type: ignore[import-not-found]
from crash.golden import Golden, golden_of, record, sent_again  # type: ignore[import-not-found]
from crash.proof import STEPS, Course, Size  # type: ignore[import-not-found]
from crash.recorder import can_record  # type: ignore[import-not-found]
from crash.recording import COMMITTED, Recording  # type: ignore[import-not-found]
from crash.repair_crashes import trials_of  # type: ignore[import-not-found]
from crash.repair_recording import COMMITTED_REPAIRS, record_repairs  # type: ignore[import-not-found]
from crash.results import Results  # type: ignore[import-not-found]
from crash.states import collapsed, enumerated  # type: ignore[import-not-found]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make crash", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=STEPS, nargs="+", help="steps of the proof")
    parser.add_argument("--part", default="1/1", help="of the states: 2/4 is the second of four parts")
    parser.add_argument(
        "--record", action="store_true", help="only record the golden run and the repairs, to be committed"
    )
    parser.add_argument("--recorded", action="store_true", help="replay the committed recording")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="crash-", ignore_cleanup_errors=True) as folder,
        world(Path(folder)) as here,
    ):
        return _recorded(here, again=chosen.recorded) if chosen.record else _proved(here, chosen)


def _recorded(here: World, *, again: bool) -> int:
    """Record both, or the repairs of the golden run that is committed."""
    if again:
        golden = sent_again(here, Recording.load(COMMITTED))
    else:
        recording = record(here)
        recording.save(COMMITTED)
        golden = golden_of(recording)
    found = collapsed(enumerated(golden.mutations, golden.states, seed=1), witnesses=0, seed=1)
    print(f"{COMMITTED}: {len(golden.mutations)} changes of storage,", end=" ")
    print(f"{found.enumerated} states, {len(found.work)} of them different to a run")
    repairs = record_repairs(here, golden)
    repairs.save(COMMITTED_REPAIRS)
    trials = trials_of(here, repairs, witnesses=0, seed=1)
    print(
        f"{COMMITTED_REPAIRS}: {sum(len(each.mutations) for each in repairs.repairs)} changes of storage,",
        end=" ",
    )
    print(f"{trials.enumerated} states, {len(trials.trials)} runs of them")
    return 0


def _proved(here: World, chosen: argparse.Namespace) -> int:
    golden = _golden(here, recorded=chosen.recorded)
    results = Results.of(seed=chosen.seed, recorded_anew=here.identity is None)
    part, parts = map(int, chosen.part.split("/"))
    with Course(here, golden, Size(seed=chosen.seed, part=(part, parts)), results) as course:
        is_whole = course.take(chosen.only or STEPS)
    for sentence in results.sentences():
        print(sentence, file=sys.stderr)
    print(results.summary())
    return 0 if is_whole and results.hold() else 1


def _golden(here: World, *, recorded: bool) -> Golden:
    """Made anew where strace is, from the file in the repository where it is not."""
    if can_record() and not recorded:
        return golden_of(record(here))
    print("the golden run is not recorded anew: the committed recording is replayed", file=sys.stderr)
    return sent_again(here, Recording.load(COMMITTED))


if __name__ == "__main__":
    sys.exit(main())
