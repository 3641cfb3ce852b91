"""One PostgreSQL for the tier, a schema and a lake of their own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from connector import FakeConnector  # type: ignore[import-not-found]
from shelf import ROWS, Shelf  # type: ignore[import-not-found]

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


@pytest.fixture
def items(shelf):
    """Three rows that silver has, delivered by the connector."""
    shelf.sql("CREATE TABLE items (id int PRIMARY KEY, name text)")
    shelf.sql("INSERT INTO items VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    shelf.deliver()
    shelf.silver(ROWS)
    return shelf
