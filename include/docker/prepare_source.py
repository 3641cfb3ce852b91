"""Create the shop's tables and first rows, then the Debezium connector; a second run changes nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import psycopg
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from local_stack.shop import create_tables, let_connector_read, seed

CONNECTOR = Path(__file__).with_name("connector.json")
_PATIENCE_SECONDS = 60


def main() -> None:
    with psycopg.connect(
        host="postgres", dbname="shop", user="shop", password=os.environ["SHOP_PASSWORD"]
    ) as connection:
        create_tables(connection)
        let_connector_read(connection, "debezium")
        seed(connection)
    settings = json.loads(CONNECTOR.read_text(encoding="utf-8"))
    configure("http://connect:8083/connectors/shop/config", settings)


def configure(url: str, settings: dict[str, str]) -> None:
    """PUT creates it or brings it up to date; 409 while the worker joins its group."""
    for attempt in Retrying(
        retry=retry_if_exception_type(httpx.HTTPStatusError),
        stop=stop_after_delay(_PATIENCE_SECONDS),
        wait=wait_fixed(1),
        reraise=True,
    ):
        with attempt:
            httpx.put(url, json=settings, timeout=30, trust_env=False).raise_for_status()


if __name__ == "__main__":
    main()
