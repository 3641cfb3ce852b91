"""Who may talk to the engine of a job, and where it puts aside what others must not read."""

from __future__ import annotations

import pytest

from cdc_lakehouse.application.session import private_settings

FOLDER = "/tmp/cdc_lakehouse_12345678"
SECRET = "s3cret"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[2,4]"])
def test_an_engine_of_one_process_asks_for_a_secret_that_it_draws_itself(master):
    found = private_settings(master=master, folder=FOLDER, secret=SECRET)

    assert found["spark.authenticate"] == "true"
    assert SECRET not in found.values()


def test_a_cluster_is_told_its_secret_and_encrypts_what_it_sends():
    found = private_settings(master="spark://m:7077", folder=FOLDER, secret=SECRET)

    assert (
        found.items()
        >= {
            "spark.authenticate": "true",
            "spark.authenticate.secret": SECRET,
            "spark.network.crypto.enabled": "true",
        }.items()
    )


@pytest.mark.parametrize(
    ("master", "secret"), [("spark://m:7077", None), ("spark://m:7077", ""), ("yarn", SECRET)]
)
def test_a_cluster_whose_secret_is_not_ours_to_set_keeps_its_own_settings(master, secret):
    found = private_settings(master=master, folder=FOLDER, secret=secret)

    assert not [name for name in found if name.startswith(("spark.authenticate", "spark.network"))]


def test_sockets_of_workers_are_in_the_private_folder_of_the_only_process_alone():
    name = "spark.python.unix.domain.socket.dir"

    assert private_settings(master="local[2]", folder=FOLDER, secret=None)[name] == FOLDER
    assert name not in private_settings(master="spark://m:7077", folder=FOLDER, secret=None)
    assert name not in private_settings(master="local[2]", folder=f"/{'long' * 20}", secret=None)
