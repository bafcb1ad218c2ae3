"""Verification of the tokens of identity providers: bearer tokens, ID tokens and logout tokens."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry

from app.identity.provider import KEY_TYPES, Provider
from app.platform.errors import Forbidden, Unauthenticated, shown
from app.platform.issuers import Issuer, read_issuers
from app.platform.roles import Identity
from app.platform.settings import Settings

MAX_TOKEN_BYTES = 1 << 14
MAX_ID_TOKEN_BYTES = 1 << 16
MAX_TOKEN_AGE = 86_400.0
"""Age in seconds from which a token is refused, whenever it expires."""
MAX_SUBJECT = 255
MAX_BRACKETS = 500
"""Most JSON objects and lists in a part of a token: deep nesting takes long to parse."""
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_FORM = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_OF_ID_TOKENS = ("nonce", "at_hash", "c_hash", "s_hash")
_APPLICATION = "application/"


class InvalidToken(Unauthenticated):
    """A token that is not accepted. `lasting` is False if it might be accepted later."""

    code = "invalid_token"

    def __init__(self, detail: str, *, lasting: bool = True) -> None:
        super().__init__(
            f"the token {detail}", headers={"WWW-Authenticate": 'Bearer error="invalid_token"'}
        )
        self.reason, self.lasting = detail, lasting


@dataclass(frozen=True, slots=True)
class Statement:
    provider: Provider
    claims: Mapping[str, Any]


class Tokens:
    """Verifies tokens of the configured providers. Used only on the event loop."""

    def __init__(self, settings: Settings) -> None:
        found = () if settings.oidc_file is None else read_issuers(settings.oidc_file)
        self.skew_seconds = settings.oidc_skew_seconds
        self.providers = {
            each.issuer: Provider(each, settings.oidc_stale_seconds) for each in found
        }

    @property
    def for_people(self) -> list[Issuer]:
        """Issuers with which people can sign in to the console."""
        issuers = (each.issuer for each in self.providers.values())
        return [each for each in issuers if each.client_id is not None]

    async def of_bearer(self, token: bytes) -> Identity:
        """Raises InvalidToken, Forbidden without groups, and ProviderAway."""
        statement = await self._verify(token, MAX_TOKEN_BYTES, ("jwt", "at+jwt"))
        issuer, claims = statement.provider.issuer, statement.claims
        self._check_times(claims)
        audiences = _audiences(claims)
        if issuer.audience not in audiences:
            raise InvalidToken(
                f"must be for the audience {issuer.audience!r}, got {shown(audiences)}"
            )
        # An ID token is proof of a sign-in to a client, and may be known to others than its subject.
        of_id_token = [name for name in _OF_ID_TOKENS if name in claims]
        if of_id_token or issuer.client_id in audiences or claims.get("typ", "Bearer") != "Bearer":
            why = f": it has {of_id_token[0]}" if of_id_token else ""
            raise InvalidToken(f"must be an access token, not an ID token or another one{why}")
        if "events" in claims:
            raise InvalidToken("must be an access token, not one of an event")
        return self.identity_of(statement)

    async def of_sign_in(self, provider: Provider, token: str, nonce: str) -> Statement:
        """Raises InvalidToken and ProviderAway."""
        statement = await self._of_client(provider, token, ("jwt",))
        given = statement.claims.get("nonce")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), nonce.encode()):
            raise InvalidToken("is not of this sign-in: its nonce differs")
        return statement

    async def of_refresh(self, provider: Provider, token: str, subject: str) -> Statement:
        """Raises InvalidToken and ProviderAway."""
        statement = await self._of_client(provider, token, ("jwt",))
        if statement.claims["sub"] != subject:
            raise InvalidToken("is of another subject than the session")
        return statement

    async def of_logout(self, token: str) -> Statement:
        """It states `sub` or `sid`, or both. Raises InvalidToken and ProviderAway."""
        statement = await self._verify(token.encode(), MAX_TOKEN_BYTES, ("jwt", "logout+jwt"))
        issuer, claims = statement.provider.issuer, statement.claims
        self._check_times(claims, subject=False)
        if issuer.client_id is None or issuer.client_id not in _audiences(claims):
            raise InvalidToken("must be for the client_id of its issuer")
        events = claims.get("events")
        if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
            raise InvalidToken(f"must have the event {LOGOUT_EVENT}")
        if "nonce" in claims:
            raise InvalidToken("must not have a nonce")
        named = [claims.get("sub"), claims.get("sid")]
        if named == [None, None] or not all(
            each is None or (isinstance(each, str) and _is_storable(each)) for each in named
        ):
            raise InvalidToken("must have sub or sid")
        return statement

    def identity_of(self, statement: Statement) -> Identity:
        """Raises InvalidToken and Forbidden."""
        issuer, claims = statement.provider.issuer, statement.claims
        names = (claims.get(name) for name in ("name", "preferred_username", "email"))
        name = next((each for each in names if isinstance(each, str) and each), claims["sub"])
        is_service = issuer.client_id is None or claims.get("idtyp") == "app"
        is_service |= claims["sub"] in [claims.get(each) for each in ("client_id", "azp", "cid")]
        return Identity(
            issuer.issuer,
            claims["sub"],
            "service" if is_service else "person",
            "".join(each if each.isprintable() else " " for each in name[:MAX_SUBJECT]),
            _groups(issuer, claims),
            min(float(claims["exp"]), float(claims["iat"]) + MAX_TOKEN_AGE),
        )

    async def _of_client(self, provider: Provider, token: str, types: tuple[str, ...]) -> Statement:
        """Raises InvalidToken and ProviderAway."""
        statement = await self._verify(token.encode(), MAX_ID_TOKEN_BYTES, types)
        if statement.provider is not provider:
            raise InvalidToken("is of another issuer than the sign-in")
        claims, client_id = statement.claims, provider.issuer.client_id
        self._check_times(claims)
        audiences = _audiences(claims)
        if client_id not in audiences:
            raise InvalidToken(f"must be for the client {client_id!r}, got {shown(audiences)}")
        if claims.get("azp", client_id) != client_id or (
            len(audiences) > 1 and "azp" not in claims
        ):
            raise InvalidToken(f"must be for the client {client_id!r} (azp)")
        return statement

    async def _verify(self, token: bytes, most: int, types: tuple[str, ...]) -> Statement:
        """Return claims signed by their issuer. Raises InvalidToken and ProviderAway.

        What costs more comes later: nothing is decoded of a token that is too long, and no signature is checked before
        issuer, algorithm and key are known.
        """
        if len(token) > most:
            raise InvalidToken(f"must have at most {most} bytes, got {len(token)}")
        if not _FORM.fullmatch(token):
            raise InvalidToken(
                "must be a signed JWT: three parts in base64url, separated by dots. Opaque tokens cannot be verified, "
                "and API keys begin with rw_"
            )
        parts = token.split(b".")
        header, claims = _decoded(parts[0], "header"), _decoded(parts[1], "claims")
        # Only keys of the configured issuers are used: jwk, jku, x5c and x5u of the header are never read.
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in KEY_TYPES:
            raise InvalidToken(
                f"must be signed by one of {', '.join(KEY_TYPES)}, got {shown(algorithm)}"
            )
        if "crit" in header:
            raise InvalidToken("must not have the header crit: no extension is supported")
        kind = header.get("typ", "JWT")
        if not isinstance(kind, str) or kind.lower().removeprefix(_APPLICATION) not in types:
            raise InvalidToken(f"must have the typ {' or '.join(types)}, got {shown(kind)}")
        if not isinstance(kid, str | None):
            raise InvalidToken(f"must have a text as kid, got {shown(kid)}")
        issuer = claims.get("iss")
        provider = self.providers.get(issuer) if isinstance(issuer, str) else None
        if provider is None:
            raise InvalidToken(f"must be of a configured issuer, got {shown(issuer)}")
        found = await provider.find_key(kid, algorithm)
        if found is None:
            raise InvalidToken(
                f"must be signed with a key of its issuer; there is none for {algorithm} with the kid {shown(kid)}",
                lasting=False,
            )
        registry = JWSRegistry(algorithms=[algorithm], strict_check_header=False)
        registry.max_header_length = registry.max_payload_length = most
        try:
            jws.deserialize_compact(token, found.key, registry=registry)
        except (JoseError, ValueError, TypeError):
            raise InvalidToken("is not signed with the key of its issuer") from None
        return Statement(provider, claims)

    def _check_times(self, claims: Mapping[str, Any], *, subject: bool = True) -> None:
        """Raise InvalidToken unless the token is valid now, and says whose it is."""
        now, skew = time.time(), self.skew_seconds
        expires, issued = _time(claims, "exp"), _time(claims, "iat")
        begins = _time(claims, "nbf") if "nbf" in claims else -math.inf
        if now >= expires + skew:
            raise InvalidToken("has expired")
        if begins > now + skew:
            raise InvalidToken("is not valid yet (nbf)", lasting=False)
        if issued > now + skew:
            raise InvalidToken("was issued in the future (iat): compare the clocks", lasting=False)
        if now - issued > MAX_TOKEN_AGE + skew:
            raise InvalidToken(f"must be at most {MAX_TOKEN_AGE:g} s old (iat)")
        sub = claims.get("sub")
        if subject and not (
            isinstance(sub, str) and 1 <= len(sub) <= MAX_SUBJECT and _is_storable(sub)
        ):
            raise InvalidToken(
                f"must have a sub of 1 to {MAX_SUBJECT} Unicode characters other than NUL, got {shown(sub)}"
            )


def _decoded(part: bytes, what: str) -> dict[str, Any]:
    """Raises InvalidToken."""
    try:
        text = base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
        if text.count(b"[") + text.count(b"{") > MAX_BRACKETS:  # deep nesting takes longest
            raise ValueError(what)
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError, binascii.Error):
        raise InvalidToken(f"must have {what} that are a JSON object") from None
    if not isinstance(found, dict):
        raise InvalidToken(f"must have {what} that are a JSON object")
    return found


def _is_storable(text: str) -> bool:
    """False for NUL, and for half of a surrogate pair (JSON can have it)."""
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _time(claims: Mapping[str, Any], name: str) -> float:
    """Raises InvalidToken if it is absent or no number."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        got = shown(value) if name in claims else "none"
        raise InvalidToken(f"must have a time {name}, got {got}")
    return float(value)


def _audiences(claims: Mapping[str, Any]) -> list[str]:
    value = claims.get("aud")
    found = value if isinstance(value, list) else [value]
    return [each for each in found if isinstance(each, str)]


def _groups(issuer: Issuer, claims: Mapping[str, Any]) -> frozenset[str]:
    """Raises Forbidden without the claim, and InvalidToken for a wrong one."""
    name = issuer.groups_claim
    if name not in claims:
        links = claims.get("_claim_names")
        if (isinstance(links, dict) and name in links) or claims.get("hasgroups"):
            why = "there are too many groups for it. Let the provider name only the groups of this application"
        else:
            why = f"configure {issuer.issuer} to add it, as a list that may be empty"
        raise Forbidden(f"the token lacks the claim {name!r}: {why}", code="groups_missing")
    value = claims[name]
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(
        isinstance(each, str) and _is_storable(each) for each in found
    ):
        raise InvalidToken(f"must have a text or a list of texts as {name!r}, got {shown(value)}")
    return frozenset(found)
