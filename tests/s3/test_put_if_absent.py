"""A store that lets a second writer replace the first one's file holds no lake."""

from __future__ import annotations

from dataclasses import replace

import pytest
from faulty_store import PROBES, Fault, FaultyStore  # type: ignore[import-not-found]

from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors import StorageUnavailableError, UnsafeStoreError
from cdc_lakehouse.lake.put_if_absent import require_put_if_absent
from cdc_lakehouse.preflight.lake import lake_finding
from certificates import Authority  # type: ignore[import-not-found]
from local_stack.object_store import BUCKET


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    require_put_if_absent.cache_clear()


def test_a_store_that_refuses_is_asked_once_and_left_clean(storage, faulty, stack):
    with faulty.behaving(Fault(PROBES)) as seen:
        require_put_if_absent(storage)
        require_put_if_absent(storage)

    assert seen.met == 2
    found = stack.object_store.filesystem().get_file_info(f"{BUCKET}/tests/_ops")
    assert not found.is_file


def test_a_store_that_ignores_the_condition_is_refused(storage, faulty):
    with faulty.behaving(Fault(PROBES, ignores_condition=True)), pytest.raises(UnsafeStoreError) as caught:
        require_put_if_absent(storage)

    assert caught.value.exit_code is ExitCode.CONFIG
    assert "it ignores If-None-Match" in caught.value.reason


def test_a_store_that_does_not_know_the_condition_is_refused(storage, faulty):
    with faulty.behaving(Fault(PROBES, refuse_with=501)), pytest.raises(UnsafeStoreError) as caught:
        require_put_if_absent(storage)

    assert caught.value.reason == "it does not know If-None-Match"


def test_a_store_that_is_away_is_tried_again_later(storage):
    nowhere = replace(storage, s3=replace(storage.s3, endpoint="http://127.0.0.1:9"))

    with pytest.raises(StorageUnavailableError):
        require_put_if_absent(nowhere)


def test_a_store_of_an_authority_that_nobody_named_gets_no_request(storage, stack, tmp_path):
    stranger = FaultyStore(
        stack.site.address("object-store"),
        login=storage.s3.login,
        password=storage.s3.password,
        certificate=Authority("somebody else").server().files_in(tmp_path),
    )
    elsewhere = replace(storage, s3=replace(storage.s3, endpoint=stranger.endpoint))

    with pytest.raises(StorageUnavailableError):
        require_put_if_absent(elsewhere)

    stranger.close()


def test_a_wrong_password_is_no_unsafe_store(storage):
    stranger = replace(storage, s3=replace(storage.s3, password="wrong"))

    with pytest.raises(StorageUnavailableError) as caught:
        require_put_if_absent(stranger)

    assert "wrong" not in str(caught.value)


def test_make_check_says_so(storage, faulty):
    with faulty.behaving(Fault(PROBES, ignores_condition=True)):
        refused = lake_finding(storage)

    assert (refused.exit_code, lake_finding(storage).level) == (ExitCode.CONFIG, "ok")
