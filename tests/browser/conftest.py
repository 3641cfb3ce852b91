"""The real chain, started once, and Airflow in a real browser: the screen of a laptop, light theme, UTC."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from airflow_pages import AirflowPages  # type: ignore[import-not-found]
from playwright.sync_api import sync_playwright

from local_stack import LocalStack, RunningStack
from local_stack.airflow_client import AirflowClient
from local_stack.shop import seed
from stack.driver import Chain  # type: ignore[import-not-found]

SCREEN = {"width": 1366, "height": 768}
CHROMIUM = ("chromium", "chromium-browser")


@pytest.fixture(scope="session")
def browser_program() -> str:
    """Return the browser of the machine: none is fetched."""
    programs = [found for name in CHROMIUM if (found := shutil.which(name)) is not None]
    if not programs:
        pytest.fail("no Chromium on the PATH; on Debian: apt-get install chromium", pytrace=False)
    return programs[0]


@pytest.fixture(scope="session")
def stack(browser_program, tmp_path_factory) -> Iterator[RunningStack]:
    """Own folder, own ports; nothing of it outlives the tests."""
    with LocalStack(tmp_path_factory.mktemp("stack")).running() as running:
        with running.postgres.connect(user="shop") as connection:
            seed(connection, customers=5, products=5, orders=5)
        yield running


@pytest.fixture(scope="session")
def chain(stack) -> Iterator[Chain]:
    airflow = AirflowClient(stack.airflow.client())
    for dag_id in ("cdc_shop", "cdc_shop_rebuild"):
        airflow.wait_for_dag(dag_id)
        airflow.unpause(dag_id)
    with Chain(stack, airflow) as driven:
        yield driven
    airflow.close()


@pytest.fixture(scope="session")
def pages(chain, browser_program) -> Iterator[AirflowPages]:
    """The user `admin`, logged in by the form."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_program)
        context = browser.new_context(
            viewport=SCREEN,
            color_scheme="light",
            locale="en-GB",
            timezone_id="UTC",
            reduced_motion="reduce",
        )
        pages = AirflowPages(context.new_page(), chain.stack.airflow.url)
        pages.log_in("admin")
        yield pages
        browser.close()
