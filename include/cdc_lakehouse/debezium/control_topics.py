"""Topics that carry no rows of a table, by their names: no pattern ever takes one of them for a table.

Kafka, its Connect, Streams and MirrorMaker, schema registries and Debezium keep topics of their own beside
those of tables. Their names are settings, so these are the names that their documentation gives, in its
spellings. A topic that a pipeline file names in full is read whatever it is called.
"""

from __future__ import annotations

import re

_BEGINNINGS = (
    "_",  # Kafka's own, registries, Debezium's heartbeats (`__debezium-heartbeat.shop`), by convention
    ".",
)
_WHOLE = re.compile(
    r"""
      .*(?:^|[._-])connect[._-](?:.*[._-])?(?:configs?|offsets?|status(?:es)?)
    | (?:.*[._-])?(?:debezium|dbz)[._-](?:signals?|notifications?|heartbeats?)(?:[._-].*)?
    | (?:.*[._-])?(?:schema[._-]?history|schema-?changes|db[._-]?history)(?:[._-].*)?
    | [^.]+[._-]signals?
    | heartbeats | mm2-.* | .*[.]checkpoints[.]internal
    | .*-(?:changelog|repartition)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OF_A_CONNECTOR = ("transaction", "message")
"""`shop.transaction` and `shop.message`: boundaries of transactions and messages of the log. A table's topic
has a third part, so a table may be called like that."""


def is_control_topic(topic: str) -> bool:
    if topic.startswith(_BEGINNINGS) or _WHOLE.fullmatch(topic) is not None:
        return True
    parts = topic.split(".")
    return len(parts) == 2 and parts[1] in _OF_A_CONNECTOR
