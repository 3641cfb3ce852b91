"""Writer schemas from a schema registry that speaks Confluent's REST interface."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Self
from urllib.parse import quote
from uuid import UUID

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from cdc_lakehouse.avro.schema_refs import SchemaRef, in_order
from cdc_lakehouse.errors import NotSupportedYetError, RegistryUnavailableError
from cdc_lakehouse.registry.references import with_references

logger = logging.getLogger(__name__)

_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"


class SchemaRegistry:
    """Every failure that another try may heal is `RegistryUnavailableError` (`guarantees` §2.5).

    401 and 403 count as such: credentials are rotated while jobs run. Only 404 means "not known".
    An id never changes its schema, so what was read once is kept.
    """

    def __init__(
        self,
        url: str,
        *,
        login: str | None = None,
        password: str | None = None,
        timeout_seconds: float = 10.0,
        attempts: int = 3,
        first_wait_seconds: float = 0.5,
    ) -> None:
        self._url = url.rstrip("/")
        self._client = httpx.Client(
            auth=(login, password or "") if login is not None else None,
            timeout=timeout_seconds,
            headers={"Accept": _ACCEPT},
            follow_redirects=True,
        )
        self._retrying = Retrying(
            retry=retry_if_exception_type(RegistryUnavailableError),
            stop=stop_after_attempt(attempts),
            wait=wait_exponential_jitter(
                multiplier=first_wait_seconds, max=10 * first_wait_seconds, jitter=0
            ),
            reraise=True,
        )
        self._texts: dict[SchemaRef, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def schema(self, ref: SchemaRef) -> str | None:
        """JSON text of a writer schema with its references written in; None for one nobody knows."""
        if ref not in self._texts:
            document = self._get(f"/schemas/{'guids' if isinstance(ref, UUID) else 'ids'}/{ref}")
            if document is None:
                return None
            self._texts[ref] = self._text(document)
        return self._texts[ref]

    def schemas(self, refs: Iterable[SchemaRef]) -> dict[SchemaRef, str]:
        """Those that the registry knows."""
        found = {ref: self.schema(ref) for ref in in_order(set(refs))}
        return {ref: text for ref, text in found.items() if text is not None}

    def versions(self, subject: str) -> list[tuple[int, str]]:
        """(id, JSON text) of all versions, the oldest first; empty for an unknown subject."""
        numbers = self._get(f"/subjects/{quote(subject, safe='')}/versions")
        found = []
        for number in sorted(self._list(numbers)) if numbers is not None else []:
            document = self._version(subject, number)
            if document is None:  # deleted between the two calls
                continue
            schema_id = document["id"]
            if schema_id not in self._texts:
                self._texts[schema_id] = self._text(document)
            found.append((schema_id, self._texts[schema_id]))
        return found

    def prefetch(self, topics: Iterable[str]) -> dict[int, str]:
        """All versions of the subjects `<topic>-key` and `<topic>-value`."""
        subjects = [f"{topic}-{side}" for topic in topics for side in ("key", "value")]
        texts = dict(pair for subject in subjects for pair in self.versions(subject))
        logger.info("schemas fetched", extra={"subjects": len(subjects), "schemas": len(texts)})
        return texts

    def _version(self, subject: str, number: int) -> Mapping[str, Any] | None:
        document = self._get(f"/subjects/{quote(subject, safe='')}/versions/{number}")
        if document is not None and not (isinstance(document, dict) and isinstance(document.get("id"), int)):
            raise self._unavailable("a version without an id")
        return document

    def _text(self, document: Any) -> str:
        if not isinstance(document, dict) or not isinstance(document.get("schema"), str):
            raise self._unavailable("an answer without a schema")
        kind = document.get("schemaType") or "AVRO"
        if kind != "AVRO":
            raise NotSupportedYetError(feature=f"a registry schema of the type {kind}")
        references = document.get("references") or []
        return with_references(document["schema"], [self._referenced(each) for each in references])

    def _referenced(self, reference: Mapping[str, Any]) -> str:
        document = self._version(reference["subject"], reference["version"])
        if document is None:
            raise self._unavailable(f"404 for the referenced subject {reference['subject']}")
        return self._text(document)

    def _list(self, document: Any) -> list[int]:
        if not isinstance(document, list):
            raise self._unavailable("versions that are not a list")
        return document

    def _get(self, path: str) -> Any:
        """The JSON document, or None for 404."""
        return self._retrying(self._get_once, path)

    def _get_once(self, path: str) -> Any:
        try:
            response = self._client.get(self._url + path)
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            # The class only: the text may repeat an address with credentials in it.
            raise self._unavailable(type(exc).__name__) from exc
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        if response.status_code != httpx.codes.OK:
            raise self._unavailable(f"status {response.status_code}")
        try:
            return json.loads(response.content)
        except ValueError as exc:
            raise self._unavailable("an answer that is not JSON") from exc

    def _unavailable(self, reason: str) -> RegistryUnavailableError:
        shown = httpx.URL(self._url).copy_with(userinfo=b"") if "@" in self._url else self._url
        return RegistryUnavailableError(url=str(shown), reason=reason)
