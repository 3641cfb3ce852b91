"""Header names that mean something (`cdc-semantics` §5, §6); bronze keeps all headers as they came."""

from __future__ import annotations

NEW_KEY = "__debezium.newkey"
"""On the `d` and the tombstone of the old key: the key that the row has now."""
OLD_KEY = "__debezium.oldkey"
"""On the `c` of the new key: the key that the row had."""
KEY_SCHEMA_ID = "__key_schema_id"
VALUE_SCHEMA_ID = "__value_schema_id"
"""Where newer serializers put what otherwise stands before the payload."""
