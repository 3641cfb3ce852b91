"""The HTTP client of a registry or of Kafka Connect: certificates, login or tokens, and what failed."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Generator

import httpx

from cdc_lakehouse.config.rest_settings import RestSettings
from cdc_lakehouse.config.tls_settings import Certificates, OAuthClient

_SECONDS_BEFORE_THE_END = 30.0
"""A token is renewed that long before it ends."""
_DEFAULT_SECONDS = 60.0
"""Lifetime of a token whose server does not state it."""


class TokenRefusedError(httpx.HTTPError):
    """The OAuth server gave no token. Its text names the status of the answer and nothing secret."""


class OAuthTokens(httpx.Auth):
    """Shows a token with each request, and asks for another one when it ends or is refused."""

    def __init__(self, oauth: OAuthClient, *, timeout_seconds: float) -> None:
        self._oauth = oauth
        self._context = Certificates(oauth.ca_pem).context()
        self._timeout = timeout_seconds
        self._token = ""
        self._until = 0.0
        self._lock = threading.Lock()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token = self._current_token()
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED:
            request.headers["Authorization"] = f"Bearer {self._current_token(refused=token)}"
            yield request

    def _current_token(self, *, refused: str = "") -> str:
        with self._lock:
            if self._token == refused or time.monotonic() >= self._until:
                self._token, seconds = self._request_token()
                self._until = time.monotonic() + max(seconds - _SECONDS_BEFORE_THE_END, 0.0)
            return self._token

    def _request_token(self) -> tuple[str, float]:
        oauth = self._oauth
        form = {"grant_type": "client_credentials", **({"scope": oauth.scope} if oauth.scope else {})}
        with httpx.Client(verify=self._context, timeout=self._timeout) as client:
            answer = client.post(oauth.url, data=form, auth=(oauth.client_id, oauth.client_secret))
        if answer.status_code != httpx.codes.OK:
            raise TokenRefusedError(f"the OAuth server answers with status {answer.status_code}")
        try:
            document = answer.json()
            return str(document["access_token"]), float(document.get("expires_in", _DEFAULT_SECONDS))
        except (ValueError, KeyError, TypeError, AttributeError):
            # Not as the cause: it may carry the token.
            raise TokenRefusedError("the OAuth server answers without a token") from None


def http_client(
    settings: RestSettings, *, timeout_seconds: float, transport: httpx.BaseTransport | None = None
) -> httpx.Client:
    """Return a client that follows redirects; httpx shows the login only to the host of the connection.

    Of an answer that leads to another request no byte is read: httpx would read and unpack it to its end.
    """
    return httpx.Client(
        auth=_choose_auth(settings, timeout_seconds=timeout_seconds),
        verify=settings.certificates.context(),
        timeout=timeout_seconds,
        follow_redirects=True,
        event_hooks={"response": [_drop_body_of_a_redirect]},
        transport=transport,
    )


def _drop_body_of_a_redirect(response: httpx.Response) -> None:
    is_followed = response.has_redirect_location or response.status_code == httpx.codes.UNAUTHORIZED
    if is_followed and isinstance(response.stream, httpx.SyncByteStream):
        response.stream.close()
        response.stream = httpx.ByteStream(b"")


def reason_of(exc: httpx.HTTPError | httpx.InvalidURL) -> str:
    """Return why there was no answer; mostly the class alone, since texts may repeat a URL with a login."""
    if isinstance(exc, TokenRefusedError):
        return str(exc)
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({cause.reason})"
        cause = cause.__cause__ or cause.__context__
    return type(exc).__name__


def _choose_auth(settings: RestSettings, *, timeout_seconds: float) -> httpx.Auth | tuple[str, str] | None:
    if settings.oauth is not None:
        return OAuthTokens(settings.oauth, timeout_seconds=timeout_seconds)
    return None if settings.login is None else (settings.login, settings.password or "")
