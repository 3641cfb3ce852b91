"""Topics that carry no rows of a table, by their names: no pattern takes one of them for a table.

Kafka, its Connect, Streams and MirrorMaker, schema registries and Debezium keep topics of their own beside
those of tables. Their names are settings, so only those count that no table can have: Debezium names the
topic of a table `<prefix>.<schema>.<table>`, so a name with three parts is a table's unless its documentation
says otherwise. A topic that a pipeline names in full, or under `include:`, is read whatever its name.
"""

from __future__ import annotations

import re

_BEGINNINGS = (
    "__",  # Kafka's own, and Debezium's heartbeats (`__debezium-heartbeat.shop`)
    ".",
)
_WHATEVER_ITS_PARTS = re.compile(
    r"""
      (?:.*[.])?(?:debezium|dbz)[_-](?:signals?|notifications?|heartbeats?)
    | mm2-.* | .*[.]checkpoints[.]internal
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OF_FEWER_PARTS = re.compile(
    r"""
      _.*
    | [^.]*(?:^|[_-])connect[_-](?:[^.]*[_-])?(?:configs?|offsets?|status(?:es)?)
    | (?:debezium|dbz)[_-](?:signals?|notifications?|heartbeats?)[.].*
    | (?:.*[.])?(?:schema[_-]?history|schema-?changes|db[_-]?history)(?:[.].*)?
    | [^.]+-signal
    | (?:[^.]+[.])?heartbeats
    | [^.]+-(?:changelog|repartition)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OF_A_CONNECTOR = ("transaction", "message")
"""`shop.transaction` and `shop.message`: boundaries of transactions and messages of the log. A table's topic
has a third part, so a table may be called like that."""
_RESEMBLING = re.compile(
    r"""
      _.*
    | .*(?:^|[._-])connect[._-](?:.*[._-])?(?:configs?|offsets?|status(?:es)?)
    | (?:.*[._-])?(?:debezium|dbz)[._-](?:signals?|notifications?|heartbeats?)(?:[._-].*)?
    | (?:.*[._-])?(?:schema[._-]?history|schema-?changes|db[._-]?history)(?:[._-].*)?
    | .*-(?:changelog|repartition)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PARTS_OF_A_TABLE = 3


def is_control_topic(topic: str) -> bool:
    """Return whether no table can have this name."""
    if topic.startswith(_BEGINNINGS) or _WHATEVER_ITS_PARTS.fullmatch(topic) is not None:
        return True
    parts = topic.split(".")
    if len(parts) >= _PARTS_OF_A_TABLE:
        return False
    is_of_a_connector = len(parts) == 2 and parts[1] in _OF_A_CONNECTOR
    return is_of_a_connector or _OF_FEWER_PARTS.fullmatch(topic) is not None


def resembles_control_topic(topic: str) -> bool:
    """Return whether it may be a control topic as well as a table's: it is taken, and listed in each run."""
    return not is_control_topic(topic) and _RESEMBLING.fullmatch(topic) is not None
