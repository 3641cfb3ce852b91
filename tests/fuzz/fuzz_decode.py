"""Looks for bytes on which columns, the strict reader and fastavro disagree, or that raise or hang.

    PYTHONPATH=include:tests:tests/unit python tests/fuzz/fuzz_decode.py --seconds 60 [--seed 1] [--plain]
    … fuzz_decode.py --try FILE          one input again: what it is, and what is wrong with it
    … fuzz_decode.py --minimise          the fewest inputs that reach the lines of all, into tests/fuzz/corpus

Guided by coverage of the decoder's Python where atheris is installed, plain mutation where it is not.
Bounded. A find ends it with an exit code that is not 0 and lies, made small, in `.local/fuzz`; what a
guided run learnt is kept there for the next one.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import importlib
import importlib.util
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.inputs import (  # type: ignore[import-not-found]
    Input,
    changed,
    crossed,
    shrunk,
)

CORPUS = Path(__file__).with_name("corpus")
KEPT = Path(__file__).parents[2] / ".local" / "fuzz"
SLOWEST = 20
"""Seconds of work for one input, on any machine: beyond that something hangs."""
STUCK = 120
"""Seconds after which an input ends the run that never comes back to Python."""
MOST_MEMORY = 512 * 1024
"""KiB that the process may grow by at its peak, over what it took after the committed corpus."""
LEARNT, RUNNING = KEPT / "corpus", KEPT / "running"
FIRST_PER_SECOND = 4
"""Known inputs to begin with, per second of the run."""
SHRINKING = 60.0
WATCHED = ["cdc_lakehouse.avro", "cdc_lakehouse.debezium"]
NO_ATHERIS = "plain mutation, not guided by coverage: atheris is not installed (CONTRIBUTING, Fuzzing)"
Check = Callable[[bytes], None]


class Excess(Exception):  # noqa: N818 - what a fuzzer looks for is a find, not an error
    pass


def _late(_number: int, _frame: Any) -> None:
    raise Excess(f"more than {SLOWEST} seconds of work")


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def bounded(check: Check, data: bytes, *, memory: int) -> None:
    """`check` within its time; `memory` is the peak that it may not exceed."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SLOWEST)
    try:
        check(data)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if peak() > memory:
        raise Excess(f"more than {MOST_MEMORY // 1024} MiB of memory")


def failure(check: Check, data: bytes) -> Exception | None:
    try:
        bounded(check, data, memory=sys.maxsize)
    except Exception as exc:  # noqa: BLE001 - whatever it is, it is what we look for
        return exc
    return None


def kept(check: Check, data: bytes, exc: Exception) -> Path:
    """A find in the least form that still fails the same way."""
    until = time.monotonic() + SHRINKING

    def fails(case: Input) -> bool:
        return time.monotonic() < until and type(failure(check, case.data)) is type(exc)

    data = data if isinstance(exc, Excess) else shrunk(Input.of(data), fails).data
    path = KEPT / f"find-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    return path


def told(check: Check, data: bytes, exc: Exception) -> str:
    path = kept(check, data, exc)
    again = failure(check, path.read_bytes()) or exc
    return f"{type(again).__name__}: {again}\nkept as {path}; look at it with --try"


def files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.exists() else []


def learnt() -> list[bytes]:
    """By guided runs, the last one included."""
    return list(dict.fromkeys([*files(LEARNT), *files(RUNNING)]))


def mutate(targets: Any, seconds: float, seed: int, memory: int) -> int:
    chance = random.Random(seed)  # noqa: S311
    pool = [*targets.seeds(), *files(CORPUS)]
    until, inputs, records = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        data = chance.choice(pool)
        for _ in range(chance.choice((1, 2, 4, 30))):
            data = changed(data, chance, lambda record: targets.damaged(record, chance), targets.LARGEST)
        if chance.random() < 0.1:
            data = crossed(data, chance.choice(pool), chance, targets.LARGEST)
        faulthandler.dump_traceback_later(STUCK, exit=True)
        try:
            bounded(targets.check, data, memory=memory)
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is what we look for
            faulthandler.cancel_dump_traceback_later()
            print(told(targets.check, data, exc))
            return 1
        inputs, records = inputs + 1, records + len(Input.of(data).records)
    faulthandler.cancel_dump_traceback_later()
    print(f"{inputs} inputs with {records} records in {seconds:.0f} seconds, no disagreement")
    return 0


def guide(atheris: Any, targets: Any, seconds: float, seed: int, memory: int) -> None:
    """Does not return: libFuzzer ends the process, with 0 if it found nothing."""

    def one(data: bytes) -> None:
        try:
            bounded(targets.check, data, memory=memory)
        except Exception as exc:
            print(told(targets.check, data, exc), flush=True)
            raise

    def mutator(data: bytes, largest: int, number: int) -> bytes:
        chance = random.Random(number)  # noqa: S311

        def change(record: bytes) -> bytes:
            if chance.random() < 0.5:
                return targets.damaged(record, chance)  # type: ignore[no-any-return]
            return bytes(atheris.Mutate(record, len(record) + 64))

        return bytes(changed(data, chance, change, largest))

    def crossover(one: bytes, other: bytes, largest: int, number: int) -> bytes:
        return bytes(crossed(one, other, random.Random(number), largest))  # noqa: S311

    known, chance = learnt(), random.Random(seed)  # noqa: S311
    for data in known:
        (LEARNT / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    shutil.rmtree(RUNNING, ignore_errors=True)
    RUNNING.mkdir()
    # libFuzzer tries all that it is given before it looks at the time.
    pool = [*known, *targets.seeds()]
    for data in chance.sample(pool, min(len(pool), int(FIRST_PER_SECOND * seconds))):
        (RUNNING / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    arguments = [
        sys.argv[0],
        f"-max_total_time={int(seconds)}",
        f"-max_len={targets.LARGEST}",
        f"-seed={seed}",
        f"-timeout={STUCK}",
        "-rss_limit_mb=0",
        "-len_control=0",
        "-print_final_stats=1",
        f"-artifact_prefix={KEPT}/input-",
        *map(str, (RUNNING, CORPUS)),
    ]
    atheris.Setup(arguments, one, custom_mutator=mutator, custom_crossover=crossover)
    atheris.Fuzz()


def tried(targets: Any, path: Path) -> int:
    data = path.read_bytes()
    case = Input.of(data)
    print(f"{targets.target_of(data).name}, {case.options!r}")
    for record in case.records:
        print(f"  {record.hex(' ')}")
    exc = failure(targets.check, data)
    print("no disagreement" if exc is None else f"{type(exc).__name__}: {exc}")
    return int(exc is not None)


def loaded(*, plain: bool) -> tuple[Any, Any]:
    """atheris, where it is there and wanted, and the targets: only what is imported under it is watched."""
    if plain or importlib.util.find_spec("atheris") is None:
        return None, importlib.import_module("fuzz.targets")
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=WATCHED):
        return atheris, importlib.import_module("fuzz.targets")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="not guided, even where atheris is installed")
    parser.add_argument("--try", dest="again", type=Path, metavar="FILE")
    parser.add_argument("--minimise", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _late)
    LEARNT.mkdir(parents=True, exist_ok=True)
    once = options.again is not None or options.minimise
    atheris, targets = loaded(plain=options.plain or once)
    if options.again is not None:
        return tried(targets, options.again)
    if options.minimise:
        minimising = importlib.import_module("fuzz.minimising")
        print(minimising.minimised([*files(CORPUS), *learnt(), *targets.seeds()], targets, CORPUS))
        return 0
    for data in files(CORPUS):
        targets.check(data)
    memory = peak() + MOST_MEMORY
    if atheris is not None:
        print("guided by coverage, with atheris", flush=True)
        guide(atheris, targets, options.seconds, options.seed, memory)
    if not options.plain:
        print(NO_ATHERIS)
    return mutate(targets, options.seconds, options.seed, memory)


if __name__ == "__main__":
    sys.exit(main())
