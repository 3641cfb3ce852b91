"""What of a recorded state a bucket can hold, and which files lie between their writing and their commit."""

from __future__ import annotations

from crash.golden import Golden  # type: ignore[import-not-found]
from crash.identity import Identity  # type: ignore[import-not-found]
from crash.in_a_bucket import golden_in_a_bucket, unnamed  # type: ignore[import-not-found]
from crash.mutations import Kind, Mutation, states_of  # type: ignore[import-not-found]

TABLE = "bronze/crash/orders"
DATA, COMMIT = f"{TABLE}/one.parquet", f"{TABLE}/_delta_log/{0:020d}.json"
SCRATCH = f"{TABLE}/_delta_log/.{0:020d}.json.1.tmp"
MUTATIONS = [
    Mutation(Kind.CREATE, DATA),
    Mutation(Kind.WRITE, DATA, data=b"PA"),
    Mutation(Kind.WRITE, DATA, offset=2, data=b"R1"),
    Mutation(Kind.CREATE, SCRATCH),
    Mutation(Kind.WRITE, SCRATCH, data=b'{"add": {"path": "one.parquet"}}'),
    Mutation(Kind.LINK, SCRATCH, to=COMMIT),
]


def golden() -> Golden:
    return Golden(
        mutations=MUTATIONS,
        states=states_of(MUTATIONS),
        results=[],
        in_quarantine=0,
        first_round=0,
        baseline=[],
        identity=Identity("cluster", {}),
    )


def test_an_object_is_there_when_its_last_byte_is_written():
    found = [sorted(state.files) for state in golden_in_a_bucket(golden()).states]

    assert found == [[], [], [], [DATA], [DATA], [DATA], [COMMIT, DATA]]


def test_files_are_nobodys_until_a_version_names_them():
    found = [sorted(unnamed(state)) for state in golden_in_a_bucket(golden()).states]

    assert found == [[], [], [], [DATA], [DATA], [DATA], []]
