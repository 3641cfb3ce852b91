"""The HTTP client of a registry: its certificates, its login or its tokens, and why it did not answer."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Generator

import httpx

from cdc_lakehouse.config.registry_settings import RegistrySettings
from cdc_lakehouse.config.tls_settings import Certificates, OAuthClient

_SECONDS_BEFORE_THE_END = 30.0
"""A token is renewed that long before it ends."""
_SECONDS_IF_UNTOLD = 60.0


class TokenRefusedError(httpx.HTTPError):
    """The OAuth server gave no token. Its text names the server and its status, nothing secret."""


class OAuthTokens(httpx.Auth):
    """Shows a token with each request, and asks for another one when it ends or is refused."""

    requires_response_body = True

    def __init__(self, oauth: OAuthClient, *, timeout_seconds: float) -> None:
        self._oauth = oauth
        self._context = Certificates(oauth.ca_pem).context()
        self._timeout = timeout_seconds
        self._token = ""
        self._until = 0.0
        self._lock = threading.Lock()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token = self._current()
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED:
            request.headers["Authorization"] = f"Bearer {self._current(refused=token)}"
            yield request

    def _current(self, *, refused: str = "") -> str:
        with self._lock:
            if self._token == refused or time.monotonic() >= self._until:
                self._token, seconds = self._ask()
                self._until = time.monotonic() + max(seconds - _SECONDS_BEFORE_THE_END, 0.0)
            return self._token

    def _ask(self) -> tuple[str, float]:
        oauth = self._oauth
        form = {"grant_type": "client_credentials", **({"scope": oauth.scope} if oauth.scope else {})}
        with httpx.Client(verify=self._context, timeout=self._timeout) as client:
            answer = client.post(oauth.url, data=form, auth=(oauth.client_id, oauth.client_secret))
        if answer.status_code != httpx.codes.OK:
            raise TokenRefusedError(f"the OAuth server answers with status {answer.status_code}")
        try:
            document = answer.json()
            return str(document["access_token"]), float(document.get("expires_in", _SECONDS_IF_UNTOLD))
        except (ValueError, KeyError, TypeError, AttributeError):
            # Not as the cause: it may carry the token.
            raise TokenRefusedError("the OAuth server answers without a token") from None


def http_client(
    settings: RegistrySettings, *, timeout_seconds: float, transport: httpx.BaseTransport | None = None
) -> httpx.Client:
    """Follows redirects; httpx shows the login to nobody but the host that was named."""
    return httpx.Client(
        auth=_auth(settings, timeout_seconds=timeout_seconds),
        verify=settings.certificates.context(),
        timeout=timeout_seconds,
        follow_redirects=True,
        transport=transport,
    )


def reason_of(exc: httpx.HTTPError | httpx.InvalidURL) -> str:
    """Why there was no answer. Of most only the class: their texts may repeat a URL with a login in it."""
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


def _auth(settings: RegistrySettings, *, timeout_seconds: float) -> httpx.Auth | tuple[str, str] | None:
    if settings.oauth is not None:
        return OAuthTokens(settings.oauth, timeout_seconds=timeout_seconds)
    return None if settings.login is None else (settings.login, settings.password or "")
