"""Values that the source did not send (TOAST) and for which a placeholder stands (`cdc-semantics` §3)."""

from __future__ import annotations

PLACEHOLDER = "__debezium_unavailable_value"
