"""One PostgreSQL for the tier, a schema and a lake of their own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from connector import FakeConnector  # type: ignore[import-not-found]
from shelf import Shelf  # type: ignore[import-not-found]

from local_stack import LocalStack
from local_stack.stack import RunningStack


@pytest.fixture(scope="session")
def stack(tmp_path_factory) -> Iterator[RunningStack]:
    with LocalStack(tmp_path_factory.mktemp("source")).running("postgres", airflow=False) as stack:
        yield stack


@pytest.fixture
def shelf(stack, tmp_path) -> Iterator[Shelf]:
    """`public.items` in the source, and silver beside it."""
    with stack.postgres.connect() as connection:
        connection.autocommit = True
        connection.execute("DROP TABLE IF EXISTS items")
        connector = FakeConnector(connection)
        yield Shelf(connection, connector, root=tmp_path.as_uri(), site=stack.postgres.site)
        connector.end()
