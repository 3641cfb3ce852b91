"""Is whoever answers at the registry's URL a schema registry that lets us in?"""

from __future__ import annotations

import httpx

from cdc_lakehouse.config.rest_settings import registry_settings
from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.errors import RegistryUnavailableError
from cdc_lakehouse.rest_client import http_client, reason_of

_TIMEOUT_SECONDS = 10.0


def greet_registry(connection: Connection, transport: httpx.BaseTransport | None = None) -> int:
    """How many subjects it has. A job takes a refused login as something that may heal; a person asks."""
    settings = registry_settings(connection)
    try:
        with http_client(settings, timeout_seconds=_TIMEOUT_SECONDS, transport=transport) as client:
            answer = client.get(f"{settings.url}/subjects")
    except httpx.HTTPError as error:
        raise RegistryUnavailableError(url=settings.url, reason=reason_of(error)) from error
    if answer.status_code in (401, 403):
        raise connection.problem(f"the registry refuses its login (HTTP {answer.status_code})")
    if answer.status_code >= 500:
        raise RegistryUnavailableError(url=settings.url, reason=f"HTTP {answer.status_code}")
    subjects = _json(answer) if answer.status_code == 200 else None
    if not isinstance(subjects, list):
        raise connection.problem(
            f"{settings.url} is no schema registry; Apicurio's URL ends with /apis/ccompat/v7"
        )
    return len(subjects)


def _json(answer: httpx.Response) -> object:
    try:
        return answer.json()
    except ValueError:
        return None
