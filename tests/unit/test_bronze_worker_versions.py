"""Workers with other packages are refused, and the refusal reaches the driver as an error of ours."""

import pytest

from cdc_lakehouse.bronze.worker_versions import (
    WorkerVersionError,
    installed,
    mismatch_in,
    refuse_other_versions,
)


def test_equal_versions_are_not_refused():
    refuse_other_versions(installed(), worker=installed())


def test_a_worker_with_another_pyarrow_is_refused_with_both_versions():
    with pytest.raises(WorkerVersionError) as caught:
        refuse_other_versions({"pyarrow": "26.0.1"}, worker={"pyarrow": "25.0.0"})

    error = mismatch_in(f"PythonException: …\n  WorkerVersionError: {caught.value}\n  at org.apache")
    assert error is not None
    assert (error.package, error.worker, error.driver) == ("pyarrow", "25.0.0", "26.0.1")


def test_another_failure_is_no_mismatch():
    assert mismatch_in("No space left on device") is None
