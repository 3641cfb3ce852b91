"""Which connectors' changes are known to be put into the order in which their source made them.

Order decides which change of a row wins (`cdc-semantics` §2). It is proven for PostgreSQL: by records of the
real connector, random histories and comparison with the database. With every other connector a run can be
green and wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from cdc_lakehouse.errors import UnprovenSourceError

PROVEN = frozenset({"postgresql"})
_SOURCE_RECORD = re.compile(r"io\.debezium\.connector\.(\w+)\.Source")
_WHAT_IS_KNOWN = {
    "mariadb": "from MariaDB 11.4 on, all changes of one transaction may carry one position of the log, so "
    "that updates are lost and deleted rows stay; rows of an incremental snapshot lose to streamed events",
    "mysql": "rows of an incremental snapshot lose to every streamed event of the same binlog file, and "
    "foreign keys that cascade are never sent",
}
_UNKNOWN = "its changes would be ordered by their offsets in Kafka alone"


def connector_of(text: str) -> str:
    """The connector that writes events of this value schema: `postgresql`.

    Debezium names the `source` record after it. A record with another name is told as it is called.
    """
    root: Any = json.loads(text)
    fields = root.get("fields", ()) if isinstance(root, dict) else ()
    node = next((field["type"] for field in fields if field["name"] == "source"), None)
    names = [
        name for branch in (node if isinstance(node, list) else [node]) for name in _full_names(branch, root)
    ]
    matches = (_SOURCE_RECORD.fullmatch(name) for name in names)
    return next((match.group(1) for match in matches if match), names[0] if names else "without a source")


def refuse_unproven(texts: Iterable[str], *, table: str) -> None:
    """Raises for the first value schema that a connector which was never proven has written."""
    for connector in unproven_connectors(texts):
        why = _WHAT_IS_KNOWN.get(connector, _UNKNOWN)
        raise UnprovenSourceError(table=table, connector=connector, why=why)


def unproven_connectors(texts: Iterable[str]) -> list[str]:
    return sorted({connector_of(text) for text in texts} - PROVEN)


def _full_names(node: object, root: dict[str, Any]) -> list[str]:
    """The full names that one branch goes by: what Kafka Connect called it, and Avro's own."""
    if isinstance(node, str):
        return [node] if node != "null" else []
    if not isinstance(node, dict) or "name" not in node:
        return []
    namespace = node.get("namespace", root.get("namespace", ""))
    full = node["name"] if "." in node["name"] or not namespace else f"{namespace}.{node['name']}"
    return [*([node["connect.name"]] if "connect.name" in node else []), full]
