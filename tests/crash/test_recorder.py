"""The recorder reads every kind of change, in order, and refuses what it cannot make again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crash.mutations import Kind, Mutation, Storage, states_of  # type: ignore[import-not-found]
from crash.recorder import UnknownChangeError, can_record, recorded, tracing  # type: ignore[import-not-found]

pytestmark = pytest.mark.skipif(not can_record(), reason="recording needs strace; replaying does not")
_CHANGES = """
import os, sys, threading
os.chdir(sys.argv[1])
root = os.getcwd()
os.makedirs(f"{root}/a/b")
with open(f"{root}/a/one", "wb") as stream:
    stream.write(b"x" * 70000)
    stream.flush()
    stream.seek(10)
    stream.write(b"second")
os.rename(f"{root}/a/one", f"{root}/a/two")
os.link(f"{root}/a/two", f"{root}/a/three")
os.unlink(f"{root}/a/two")
os.rmdir(f"{root}/a/b")
threads = [threading.Thread(target=lambda n=n: open(f"{root}/{n}", "w").write(str(n))) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
_APPENDS = "import sys; open(sys.argv[1] + '/log', 'a').write('x')"


def traced(program: str, root: Path, output: Path) -> list[Mutation]:
    subprocess.run([*tracing(output), sys.executable, "-c", program, str(root)], check=True)
    return list(recorded(output, root))


def test_the_record_leads_to_the_same_files(tmp_path):
    root = tmp_path / "root"
    root.mkdir()

    mutations = traced(_CHANGES, root, tmp_path / "trace")

    assert states_of(mutations)[-1].files == Storage.of(root).files
    assert [each.kind for each in mutations[:2]] == [Kind.FOLDER, Kind.FOLDER]
    assert {each.kind for each in mutations} == set(Kind) - {Kind.CUT}


def test_a_write_may_be_torn(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    mutations = traced(_CHANGES, root, tmp_path / "trace")
    place = next(n for n, each in enumerate(mutations) if each.kind is Kind.WRITE)

    torn = states_of(mutations)[place].after(mutations[place].half())

    assert 0 < len(torn.files["a/one"]) < 70000


def test_a_file_that_grows_by_appending_is_refused(tmp_path):
    root = tmp_path / "root"
    root.mkdir()

    with pytest.raises(UnknownChangeError, match="appending"):
        traced(_APPENDS, root, tmp_path / "trace")
