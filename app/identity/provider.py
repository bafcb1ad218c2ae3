"""An identity provider: its metadata and keys, cached, and its token endpoint. Nothing here blocks the event loop."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey, import_key

from app.platform.errors import Unavailable, shown
from app.platform.issuers import Issuer, is_provider_url

log = logging.getLogger(__name__)

FRESH_SECONDS = 300.0
"""Age at which metadata and keys are fetched again, while the old ones are in use."""
PROBE_SECONDS = 30.0
"""Age of the last fetch at which a health check fetches again."""
PAUSE_SECONDS = 10.0
"""Time between the starts of two fetches. Tokens with unknown key ids cause no more."""
ANSWER_SECONDS = 10.0
"""How long a provider may take for one answer, including the wait for a turn."""
FIRST_SECONDS = 0.8
"""How long a health check waits for the first answer."""
MAX_ANSWER_BYTES = 1 << 18
MAX_KEYS = 100
MAX_REQUESTS = 8
"""Requests to the token endpoint at once."""
MIN_RSA_BITS, MAX_RSA_BITS = 2048, 4096
"""Sizes of RSA keys. The time that a signature takes grows with the square of the size."""
DISCOVERY = "/.well-known/openid-configuration"
KEY_TYPES: Mapping[str, tuple[str, str | None]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
}
"""The algorithms that are accepted, and the type and curve of their keys. All are asymmetric."""


class ProviderAway(Unavailable):
    """The provider does not answer, or its answer cannot be used."""

    code = "identity_provider_unavailable"


class GrantRefused(Exception):
    """The token endpoint refused a code or a refresh token for good (`invalid_grant`)."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    kid: str | None
    algorithm: str | None
    """The only algorithm for which the key is meant; None if the provider does not say."""
    key: RSAKey | ECKey

    def fits(self, algorithm: str) -> bool:
        """Return True if the key can check such signatures."""
        kind, curve = KEY_TYPES[algorithm]
        return (
            self.key.key_type == kind
            and self.algorithm in (None, algorithm)
            and (curve is None or self.key.as_dict(private=False).get("crv") == curve)
        )


@dataclass(frozen=True, slots=True)
class Known:
    """What a provider said of itself, and when (`time.monotonic`)."""

    metadata: Mapping[str, Any]
    keys: tuple[SigningKey, ...]
    fetched_at: float

    def find_key(self, kid: str | None, algorithm: str) -> SigningKey | None:
        """Without an id, return the only key that fits."""
        fitting = [each for each in self.keys if each.fits(algorithm)]
        if kid is not None:
            fitting = [each for each in fitting if each.kid == kid]
        return fitting[0] if len(fitting) == 1 else None


@dataclass
class Provider:
    """One configured provider. Used only on the event loop."""

    issuer: Issuer
    stale_seconds: float
    _known: Known | None = None
    _fetching: asyncio.Task[None] | None = None
    _fetched_last: float = field(default=-PAUSE_SECONDS)
    _problem: str | None = None
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_REQUESTS))
    _tls: ssl.SSLContext | None = None

    def known_now(self) -> Known | None:
        """Never waits or sends a request."""
        known = self._known
        if known is None or time.monotonic() - known.fetched_at > self.stale_seconds:
            return None
        return known

    async def known(self) -> Known:
        """Raises ProviderAway if metadata and keys were not confirmed within the stale time."""
        known = self.known_now()
        if known is None:
            await self._fetch_again()
            if (known := self.known_now()) is None:
                raise ProviderAway(
                    f"the identity provider {self.issuer.issuer} cannot be used: {self._problem}",
                    retry_after=int(PAUSE_SECONDS),
                )
        elif time.monotonic() - known.fetched_at > FRESH_SECONDS:
            self._start_fetch()
        return known

    async def responds(self) -> bool:
        """Return True if they could be fetched, a moment ago. Waits only for the first fetch."""
        if time.monotonic() - self._fetched_last > PROBE_SECONDS:
            self._start_fetch()
        if self._known is None and self._problem is None and self._fetching is not None:
            await asyncio.wait([self._fetching], timeout=FIRST_SECONDS)
        return self._known is not None and self._problem is None

    async def find_key(self, kid: str | None, algorithm: str) -> SigningKey | None:
        """Return a signature's key. Unknown ids cause a fetch, at most once in `PAUSE_SECONDS`; only they wait."""
        found = (await self.known()).find_key(kid, algorithm)
        if found is None:
            await self._fetch_again()
            found = (await self.known()).find_key(kid, algorithm)
        return found

    def _start_fetch(self) -> asyncio.Task[None] | None:
        """Return None if the last fetch began a moment ago and has ended."""
        if self._fetching is not None:
            return self._fetching
        now = time.monotonic()
        if now - self._fetched_last < PAUSE_SECONDS:
            return None
        self._fetched_last = now
        self._fetching = asyncio.create_task(self._fetch())
        return self._fetching

    async def _fetch_again(self) -> None:
        if (task := self._start_fetch()) is not None:
            await asyncio.shield(task)  # others wait for the same one

    async def _fetch(self) -> None:
        """After an error, the earlier keys remain; it is logged once."""
        try:
            self._known = await self.fetch()
        except ProviderAway as error:
            if self._problem is None:
                log.warning("identity provider %s: %s", self.issuer.issuer, error.detail)
            self._problem = error.detail
        else:
            if self._problem is not None:
                log.info("identity provider %s answers again", self.issuer.issuer)
            self._problem = None
        finally:
            self._fetching = None

    async def fetch(self) -> Known:
        """Raises ProviderAway."""
        started = time.monotonic()
        url = self.issuer.issuer.rstrip("/") + DISCOVERY
        metadata = await self._ask("GET", url)
        self._check(metadata)
        keys = _signing_keys(await self._ask("GET", metadata["jwks_uri"]))
        if not keys:
            raise ProviderAway(f"{metadata['jwks_uri']} has no key for {', '.join(KEY_TYPES)}")
        return Known(metadata, keys, started)

    def _check(self, metadata: Mapping[str, Any]) -> None:
        """Raise ProviderAway for another issuer, or endpoints elsewhere."""
        if metadata.get("issuer") != self.issuer.issuer:
            raise ProviderAway(
                f"its metadata must be of the issuer {self.issuer.issuer!r}, got {shown(metadata.get('issuer'))}"
            )
        asked = ["jwks_uri"] if self.issuer.client_id is None else ["jwks_uri", "token_endpoint"]
        for name in asked:
            url = metadata.get(name)
            if not isinstance(url, str) or _origin(url) != _origin(self.issuer.issuer):
                raise ProviderAway(
                    f"its {name} must be a URL at the issuer's host, got {shown(url)}"
                )
        opened = [] if self.issuer.client_id is None else ["authorization_endpoint"]
        if "end_session_endpoint" in metadata:
            opened.append("end_session_endpoint")
        for name in opened:
            url = metadata.get(name)
            if not isinstance(url, str) or not is_provider_url(url.partition("?")[0]):
                raise ProviderAway(f"its {name} must be an https:// URL, got {shown(url)}")

    async def exchange(self, fields: Mapping[str, str]) -> Mapping[str, Any]:
        """Raises GrantRefused, and ProviderAway for any other error."""
        metadata = (await self.known()).metadata
        client_id = self.issuer.client_id or ""
        try:
            secret = await asyncio.to_thread(self.issuer.secret)
        except (OSError, UnicodeError):
            raise ProviderAway(f"{self.issuer.secret_file} cannot be read") from None
        fields, headers = dict(fields), {}
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if secret is not None and "client_secret_basic" in methods:
            pair = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        else:
            fields["client_id"] = client_id
            if secret is not None:
                fields["client_secret"] = secret
        return await self._ask("POST", metadata["token_endpoint"], fields, headers)

    async def _ask(
        self,
        method: str,
        url: str,
        fields: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Raises ProviderAway, and GrantRefused."""
        if self._tls is None and url.startswith("https:"):
            # reads the certificates of the system, which takes a while
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS),
                self._turns if method == "POST" else nullcontext(),  # keys wait for no sign-in
                # no proxy and no other host: only the provider is contacted
                httpx.AsyncClient(
                    verify=self._tls or False,
                    trust_env=False,
                    follow_redirects=False,
                    timeout=ANSWER_SECONDS,
                    headers={"Accept": "application/json", "Accept-Encoding": "identity"},
                ) as client,
                client.stream(method, url, data=fields, headers=headers) as answer,
            ):
                body = bytearray()
                async for piece in answer.aiter_raw():
                    body += piece
                    if len(body) > MAX_ANSWER_BYTES:
                        raise ProviderAway(f"{url} answered more than {MAX_ANSWER_BYTES} bytes")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
            why = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
            raise ProviderAway(f"{url} does not answer: {why}") from None
        found = _json_object(bytes(body))
        if (
            answer.status_code == 400
            and found is not None
            and found.get("error") == "invalid_grant"
        ):
            raise GrantRefused
        if answer.status_code != 200:
            said = "" if found is None else f" {shown(found.get('error'))}"
            raise ProviderAway(f"{url} answered with the status {answer.status_code}{said}")
        if found is None:
            raise ProviderAway(f"{url} did not answer with a JSON object")
        return found


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _origin(url: str) -> tuple[str, str | None, int | None] | None:
    """Return scheme, host and port; None for no provider's URL."""
    if not is_provider_url(url):
        return None
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _signing_keys(document: Mapping[str, Any]) -> tuple[SigningKey, ...]:
    """Leave out keys that check no signatures."""
    given = document.get("keys")
    found = (_signing_key(each) for each in given[:MAX_KEYS]) if isinstance(given, list) else ()
    return tuple(filter(None, found))


def _signing_key(given: Any) -> SigningKey | None:
    if not isinstance(given, dict) or given.get("kty") not in ("RSA", "EC"):
        return None
    kid, algorithm = given.get("kid"), given.get("alg")
    if given.get("use", "sig") != "sig" or not isinstance(kid, str | None):
        return None
    if algorithm is not None and algorithm not in KEY_TYPES:
        return None
    if given["kty"] == "RSA" and not _is_sized(given.get("n")):
        return None
    public = {name: given[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in given}
    try:
        key = import_key(public)
        if not isinstance(key, RSAKey | ECKey):
            return None
        bits = key.raw_value.key_size
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if isinstance(key, RSAKey) and not MIN_RSA_BITS <= bits <= MAX_RSA_BITS:
        return None
    return SigningKey(kid, algorithm, key)


def _is_sized(n: Any) -> bool:
    """Other sizes (of base64) are not even parsed."""
    return isinstance(n, str) and MIN_RSA_BITS <= 6 * len(n) <= MAX_RSA_BITS + 12
