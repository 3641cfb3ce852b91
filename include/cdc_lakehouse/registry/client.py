"""Writer schemas from a schema registry that speaks Confluent's REST interface."""

from __future__ import annotations

import json
import time
from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Self
from urllib.parse import quote
from uuid import UUID

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.config.rest_settings import RestSettings
from cdc_lakehouse.errors import NotSupportedYetError, RegistryUnavailableError
from cdc_lakehouse.registry.naming import registry_name
from cdc_lakehouse.registry.references import with_references
from cdc_lakehouse.registry.versions import Version
from cdc_lakehouse.rest_client import http_client, reason_of

_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_ABSENT = frozenset({404})
_NOT_SERVED = frozenset({400, 404, 405, 501})
"""How registries answer a question of the interface that they do not know."""
_PAGE = 1000
"""As many as Confluent's registry lists at once."""
_MOST_PAGES, _MOST_VERSIONS, _MOST_REFERENCES = 100, 5_000, 100
"""Limits of one list, of one subject and of one schema; each unit is a request, or many."""
_LARGEST_ANSWER = 32 * 2**20
"""Bytes of an answer after it was unpacked."""
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
"""An answer has at most one of them: of one that is packed twice, a piece of 64 KB can become 64 GB."""


class _TooLongError(Exception):
    """An answer of more bytes than are read."""


@dataclass(slots=True)
class _Learnt:
    """What all views of one registry know together."""

    texts: dict[SchemaRef, str] = field(default_factory=dict)
    lists: bool = True
    """Whether it serves `/schemas`, as far as it was asked."""
    resting_until: float = 0.0
    reason: str = ""


class SchemaRegistry:
    """Every failure that another try may heal is `RegistryUnavailableError` (`guarantees` §2.5).

    401 and 403 count as such: credentials are rotated while jobs run. Only 404 means "not known".
    An id never changes its schema, so what was read once is kept. Answers are input: their length, time and
    form are bounded, and one beyond a bound is `RegistryUnavailableError` with the reason.
    """

    def __init__(
        self,
        registry: str | RestSettings,
        *,
        timeout_seconds: float = 10.0,
        answer_seconds: float = 60.0,
        attempts: int = 3,
        first_wait_seconds: float = 0.5,
        rest_seconds: float = 30.0,
    ) -> None:
        """`registry`: its connection, or the URL of one that asks for no login."""
        settings = RestSettings(registry) if isinstance(registry, str) else registry
        self._url = settings.url.rstrip("/")
        self._generation = settings.generation
        self._client = http_client(settings, timeout_seconds=timeout_seconds)
        self._client.headers["Accept"] = _ACCEPT
        self._client.headers["Accept-Encoding"] = "gzip"
        self._retrying = Retrying(
            retry=retry_if_exception_type(RegistryUnavailableError),
            stop=stop_after_attempt(attempts),
            wait=wait_exponential_jitter(
                multiplier=first_wait_seconds, max=10 * first_wait_seconds, jitter=0
            ),
            reraise=True,
        )
        self._rest_seconds = rest_seconds
        self._answer_seconds = answer_seconds
        self._learnt = _Learnt()
        self.calls = 0
        """Requests that were sent, repeated ones included."""

    @property
    def name(self) -> str:
        return registry_name(self._url, self._generation)

    def for_table(self) -> Self:
        """The same connections and knowledge; only the calls are counted anew."""
        view = copy(self)
        view.calls = 0
        return view

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def schema(self, ref: SchemaRef) -> str | None:
        """JSON text of a writer schema with its references written in; None for one nobody knows."""
        if ref not in self._learnt.texts:
            document = self._get(f"/schemas/{'guids' if isinstance(ref, UUID) else 'ids'}/{ref}")
            if document is None:
                return None
            self._learnt.texts[ref] = self._text(document)
        return self._learnt.texts[ref]

    def latest(self, subject: str) -> Version | None:
        """The newest version, in one call; None for an unknown subject."""
        document = self._version(subject, "latest")
        return None if document is None else self._known(document)

    def versions(self, subject: str) -> list[Version]:
        """All versions, the oldest first, one call each; empty for an unknown subject."""
        numbers = self._get(f"/subjects/{quote(subject, safe='')}/versions")
        found = (self._version(subject, number) for number in self._check_numbers(numbers or [], subject))
        # None: deleted between the two calls
        return [self._known(document) for document in found if document is not None]

    def listed(self, topic: str) -> list[Version] | None:
        """All versions of the topic's two subjects in one call; None where that is not served.

        Deleted versions count: records that they wrote are still in Kafka.
        """
        if not self._learnt.lists:
            return None
        wanted = (f"{topic}-key", f"{topic}-value")  # the prefix matches `<topic>-archive-key` too
        query = f"/schemas?subjectPrefix={quote(topic, safe='')}-&deleted=true&limit={_PAGE}"
        found: list[Version] = []
        page: Any = None
        pages, full = 0, True
        while full:
            if pages == _MOST_PAGES:
                raise self._unavailable(f"more than {pages} pages of schemas")
            before, page = page, self._read_page(f"{query}&offset={pages * _PAGE}")
            if page is None or page == before:  # not served, or served without pages
                self._learnt.lists = False
                return None
            pages, full = pages + 1, len(self._list(page)) == _PAGE
            found += [
                self._known(each) for each in page if isinstance(each, dict) and each.get("subject") in wanted
            ]
        return sorted(found, key=lambda version: version.number)

    def _read_page(self, path: str) -> Any:
        """Return a page; None also for one that is too long, since versions one by one are shorter."""
        try:
            return self._get(path, absent=_NOT_SERVED, too_long=True)
        except _TooLongError:
            return None

    def _version(self, subject: str, number: int | str) -> Any:
        return self._get(f"/subjects/{quote(subject, safe='')}/versions/{number}")

    def _check_numbers(self, document: Any, subject: str) -> list[int]:
        numbers = self._list(document)
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise self._unavailable("versions that are not numbers")
        if len(numbers) > _MOST_VERSIONS:
            raise self._unavailable(f"{len(numbers)} versions of {subject}")
        return sorted(numbers)

    def _known(self, document: Any) -> Version:
        match document:
            case {"subject": str(subject), "version": int(number), "id": int(ref)} if (
                number >= 0 and 0 <= ref < 2**31
            ):
                if ref not in self._learnt.texts:
                    self._learnt.texts[ref] = self._text(document)
                return Version(subject, number, ref, self._learnt.texts[ref])
        raise self._unavailable("a version without subject, number and id")

    def _text(self, document: Any) -> str:
        """Return the schema with its references written in; each of them is requested once."""
        text, waiting = self._schema_of(document)
        referenced: dict[tuple[str, int], str] = {}
        while waiting:
            subject, number = waiting.pop()
            if (subject, number) in referenced:
                continue
            if len(referenced) == _MOST_REFERENCES:
                raise self._unavailable(f"a schema with more than {_MOST_REFERENCES} references")
            document = self._version(subject, number)
            if document is None:
                raise self._unavailable(f"404 for the referenced subject {subject}")
            referenced[subject, number], more = self._schema_of(document)
            waiting += more
        try:
            return with_references(text, list(referenced.values()))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
            raise self._unavailable("references that are not Avro schemas") from exc

    def _schema_of(self, document: Any) -> tuple[str, list[tuple[str, int]]]:
        """Return the text as it is registered, and the subjects and versions that it refers to."""
        if not isinstance(document, dict) or not _is_text(document.get("schema")):
            raise self._unavailable("an answer without a schema")
        kind = document.get("schemaType") or "AVRO"
        if kind != "AVRO":
            raise NotSupportedYetError(feature=f"a registry schema of the type {kind}")
        references: list[tuple[str, int]] = []
        for each in self._list(document.get("references") or []):
            match each:
                case {"subject": str(subject), "version": int(number)} if _is_text(subject):
                    references.append((subject, number))
                case _:
                    raise self._unavailable("a reference without subject and version")
        return document["schema"], references

    def _list(self, document: Any) -> list[Any]:
        if not isinstance(document, list):
            raise self._unavailable("something that is not a list")
        return document

    def _get(self, path: str, *, absent: frozenset[int] = _ABSENT, too_long: bool = False) -> Any:
        """Return the JSON document, or None for a status that says that there is none.

        A registry that failed every attempt is left alone for a while: an outage costs a run its
        waiting once, not once per table. `too_long`: such an answer is `_TooLongError` to the caller.
        """
        if time.monotonic() < self._learnt.resting_until:
            raise self._unavailable(self._learnt.reason)
        try:
            return self._retrying(self._get_once, path, absent)
        except _TooLongError:
            if too_long:
                raise
            raise self._unavailable(f"an answer of more than {_LARGEST_ANSWER} bytes") from None
        except RegistryUnavailableError as exc:
            self._learnt.resting_until = time.monotonic() + self._rest_seconds
            self._learnt.reason = exc.reason
            raise

    def _get_once(self, path: str, absent: frozenset[int]) -> Any:
        self.calls += 1
        status, content = self._request_answer(path)
        if status in absent:
            return None
        if status != httpx.codes.OK:
            raise self._unavailable(f"status {status}")
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as exc:
            raise self._unavailable("an answer that is not JSON") from exc

    def _request_answer(self, path: str) -> tuple[int, bytes]:
        """Return status and content, read in a thread: httpx bounds each wait, and not their sum."""
        deadline = time.monotonic() + self._answer_seconds
        answered: Future[tuple[int, bytes]] = Future()

        def ask() -> None:
            try:
                answered.set_result(self._read_answer(path, deadline=deadline))
            except BaseException as exc:  # noqa: BLE001 - raised below, where the answer is awaited
                answered.set_exception(exc)

        Thread(target=ask, name="schema-registry", daemon=True).start()
        try:
            return answered.result(timeout=self._answer_seconds)
        except TimeoutError as exc:
            reason = f"an answer that took longer than {self._answer_seconds:g} seconds"
            raise self._unavailable(reason) from exc
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise self._unavailable(reason_of(exc)) from exc

    def _read_answer(self, path: str, *, deadline: float) -> tuple[int, bytes]:
        content = bytearray()
        with self._client.stream("GET", self._url + path) as response:
            encoding = response.headers.get("content-encoding", "").strip().lower()
            if encoding not in _ENCODINGS:
                raise self._unavailable("an answer in an encoding that was not asked for")
            for piece in response.iter_bytes():
                content += piece
                if len(content) > _LARGEST_ANSWER:
                    raise _TooLongError
                if time.monotonic() > deadline:
                    raise TimeoutError
        return response.status_code, bytes(content)

    def _unavailable(self, reason: str) -> RegistryUnavailableError:
        shown = httpx.URL(self._url).copy_with(userinfo=b"") if "@" in self._url else self._url
        return RegistryUnavailableError(url=str(shown), reason=reason)


def _is_text(value: Any) -> bool:
    """Return whether it is text that can be written: JSON may hold half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
