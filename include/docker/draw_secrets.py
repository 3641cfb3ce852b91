"""Draw the passwords of the compose stack, once: `python3 include/docker/draw_secrets.py`.

Standard library only: it runs on the host, before any image is built.
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from pathlib import Path

EXAMPLE = Path(__file__).with_name("env.example")
TARGET = Path(__file__).parents[2] / ".local" / "compose.env"


def names(example: str) -> list[str]:
    """The variables of `env.example`, in its order."""
    return [line.partition("=")[0] for line in example.splitlines() if line and not line.startswith("#")]


def drawn(name: str) -> str:
    """Letters and digits, which need no quoting in JSON, JAAS or a URL; a Fernet key has its own form."""
    if name.endswith("_FERNET_KEY"):
        return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    if name.endswith("_CLUSTER_ID"):  # 16 bytes, as Kafka writes a UUID; a leading dash looks like an option
        text = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        return text.replace("-", "A").replace("_", "B")
    return secrets.token_hex(16)


def write(target: Path) -> bool:
    """False when the file is there already: other passwords would not open the volumes any more."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.writelines(f"{name}={drawn(name)}\n" for name in names(EXAMPLE.read_text(encoding="utf-8")))
    return True


if __name__ == "__main__":
    sys.stdout.write(f"{'wrote' if write(TARGET) else 'kept the existing'} {TARGET}\n")
