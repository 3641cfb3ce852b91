"""Passwords and keys of one stack, drawn once and kept in a file that only its owner reads."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from local_stack.layout import write_private


@dataclass(frozen=True, slots=True)
class Secrets:
    """Field names say whose password it is."""

    postgres: str
    debezium: str
    shop: str
    airflow: str
    verify: str
    kafka: str
    registry: str
    object_store: str
    object_store_servers: str
    airflow_fernet_key: str
    airflow_jwt_secret: str
    airflow_api_secret: str

    def __repr__(self) -> str:
        return "Secrets(…)"

    @classmethod
    def drawn(cls) -> Secrets:
        drawn = {field.name: secrets.token_hex(16) for field in fields(cls)}
        drawn["airflow_fernet_key"] = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
        return cls(**drawn)

    @classmethod
    def kept_in(cls, path: Path) -> Secrets:
        """Those of the file; what it does not have yet is drawn and written."""
        drawn = asdict(cls.drawn())
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if set(drawn) - set(kept):
            write_private(path, json.dumps({**drawn, **kept}, indent=1))
        return cls(**{**drawn, **kept})
