"""Sign-in of people at an identity provider (authorization code with PKCE), and the refresh of their sessions.

A started sign-in is stored nowhere but in a cookie of the browser, encrypted: any API process can complete it, and who
starts many of them costs no storage.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool

from app.access import person_repository, sessions
from app.access.person_repository import DueSession
from app.access.sessions import Confirmation
from app.access.tokens import TokenCallers
from app.http.dependencies import Context
from app.identity.provider import GrantRefused, Provider, ProviderAway
from app.identity.tokens import InvalidToken, Statement
from app.platform.callers import Caller, Credential
from app.platform.encryption import Cipher, Undecryptable, read_keys
from app.platform.errors import Forbidden, Malformed, NotFound, ServiceError, Unavailable, shown
from app.platform.roles import RoleFile, caller_of, owners_of
from app.platform.sql import read_clock

log = logging.getLogger(__name__)

STARTED_SECONDS = 600
"""How long a sign-in may take at the provider."""
LOOK_SECONDS = 5.0
"""Time between two looks for sessions to refresh."""
BATCH = 20
"""Sessions that a process refreshes at once."""
MAX_NEXT = 1000
"""Characters of the address that a started sign-in remembers; a longer one is dropped."""
MAX_CODE = 4096
_ASKED_IF_SUPPORTED = ("groups", "offline_access")
"""Scopes that not every provider knows: some need them for groups or for a refresh token."""


@dataclass(frozen=True, slots=True)
class Started:
    """A sign-in that was started in a browser."""

    issuer: str
    state: str
    nonce: str
    verifier: str
    next: str


class SignIns:
    """Starts, completes and refreshes sign-ins. Used only on the event loop."""

    def __init__(self, context: Context, callers: TokenCallers, roles: RoleFile) -> None:
        settings = context.settings
        self._db = context.db
        self._tokens = callers.tokens
        self._callers = callers
        self._roles = roles
        self._valid_seconds = settings.oidc_stale_seconds
        keys = () if settings.secrets_keys_file is None else read_keys(settings.secrets_keys_file)
        self._cipher = Cipher(keys)
        self.issuers = self._tokens.for_people

    def _provider(self, issuer: str) -> Provider:
        """Raises NotFound."""
        if all(each.issuer != issuer for each in self.issuers):
            raise NotFound(f"there is no identity provider {shown(issuer)} for sign-in")
        return self._tokens.providers[issuer]

    async def begin(self, issuer: str, where: str) -> tuple[str, str, str]:
        """Return the address at the provider, the state, and the cookie that completes the sign-in.

        Raises NotFound and ProviderAway.
        """
        provider = self._provider(issuer)
        metadata = (await provider.known()).metadata
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        started = Started(issuer, state, nonce, verifier, where if len(where) <= MAX_NEXT else "")
        challenge = hashlib.sha256(verifier.encode()).digest()
        supported = metadata.get("scopes_supported", ())
        also = [each for each in _ASKED_IF_SUPPORTED if each in supported]
        query = {
            "response_type": "code",
            "client_id": provider.issuer.client_id,
            "redirect_uri": provider.issuer.redirect_uri,
            "scope": " ".join(["openid", "profile", *also]),
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        endpoint = metadata["authorization_endpoint"]
        address = f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"
        return address, state, self._cipher.encrypt(json.dumps(asdict(started)))

    def check_answer(self, cookie: str, answer: Mapping[str, str]) -> tuple[Started, str]:
        """Return the started sign-in and the provider's code from its redirect's query `answer`.

        Raises Malformed if it does not belong to the sign-in, and Forbidden if the provider or the person refused.
        """
        started = self._started(cookie)
        if not hmac.compare_digest(started.state.encode(), answer.get("state", "").encode()):
            raise _not_started_here()
        if answer.get("iss", started.issuer) != started.issuer:
            raise Malformed(
                f"the answer must be of {started.issuer!r}, got {shown(answer['iss'])}",
                code="sign_in_refused",
            )
        if "error" in answer:
            said = answer.get("error_description", "")[:200]
            raise Forbidden(
                f"the identity provider refused the sign-in: {shown(answer['error'])} {said}".strip(),
                code="sign_in_refused",
            )
        code = answer.get("code", "")
        if not 1 <= len(code) <= MAX_CODE:
            raise Malformed(
                f"the answer must have a code of 1 to {MAX_CODE} characters, got {len(code)}",
                code="sign_in_refused",
            )
        return started, code

    async def redeem(self, started: Started, code: str) -> Confirmation:
        """Raises Malformed if the code is refused, Forbidden without groups, InvalidToken and ProviderAway."""
        provider = self._provider(started.issuer)
        grant = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": provider.issuer.redirect_uri or "",
            "code_verifier": started.verifier,
        }
        try:
            granted = await provider.exchange(grant)
        except GrantRefused:
            raise Malformed(
                "the identity provider refused the code: sign in again", code="sign_in_refused"
            ) from None
        id_token = granted.get("id_token")
        if not isinstance(id_token, str):
            raise InvalidToken("is missing: the identity provider sent no id_token")
        statement = await self._tokens.of_sign_in(provider, id_token, started.nonce)
        return self._confirmation(statement, granted)

    async def caller_of(self, confirmed: Confirmation) -> tuple[Caller, list[str]]:
        """Return the caller at the first of the owners, and all owners. Raises Forbidden without a role."""
        identity, rules = confirmed.identity, self._roles.content()
        owners = owners_of(identity, rules)
        first = next(iter(owners), None)
        caller_of(identity, "", rules, first)  # refuses who has no role, before anything is stored
        return caller_of(identity, await self._callers.principal_of(identity), rules, first), owners

    async def owners(self, token: str) -> list[str]:
        """Return the owners for which the person may act; none if a key started the session."""
        found = await run_in_threadpool(
            self._db.reading, person_repository.find_session, Credential.of("session", token)
        )
        return [] if found is None else owners_of(found.identity, self._roles.content())

    def _started(self, cookie: str) -> Started:
        try:
            return Started(**json.loads(self._cipher.decrypt(cookie, STARTED_SECONDS)))
        except (Undecryptable, ValueError, TypeError):
            raise _not_started_here() from None

    def _confirmation(self, statement: Statement, granted: Mapping[str, Any]) -> Confirmation:
        """Raises Forbidden without groups, and InvalidToken."""
        sid, refresh_token = statement.claims.get("sid"), granted.get("refresh_token")
        return Confirmation(
            self._tokens.identity_of(statement),
            self._valid_seconds,
            sid if isinstance(sid, str) else None,
            self._cipher.encrypt(refresh_token) if isinstance(refresh_token, str) else None,
        )

    async def end_by_provider(self, logout_token: str) -> int:
        """End the sessions of a logout token. Raises InvalidToken and ProviderAway."""
        statement = await self._tokens.of_logout(logout_token)
        claims = statement.claims
        return await run_in_threadpool(
            self._db.writing,
            person_repository.end_at_provider,
            statement.provider.issuer.issuer,
            claims.get("sub"),
            claims.get("sid"),
            # a repeated token must not end sessions that began after it
            claims["iat"] + self._tokens.skew_seconds,
        )

    async def sign_out_address(self, principal_id: str) -> tuple[str, str] | None:
        """Return the provider's label and its sign-out address, if it has one. Never waits for the provider."""
        issuer = await run_in_threadpool(
            self._db.reading, person_repository.issuer_of, principal_id
        )
        provider = self._tokens.providers.get(issuer or "")
        known = None if provider is None else provider.known_now()
        if provider is None or known is None:
            return None
        endpoint = known.metadata.get("end_session_endpoint")
        if not isinstance(endpoint, str):
            return None
        query = urlencode({"client_id": provider.issuer.client_id})
        return provider.issuer.label, f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    # --- refresh of sessions ---------------------------------------------------------------------

    async def run(self) -> None:
        """Refresh sessions before they end, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.refresh_due()
            except Unavailable as error:
                log.warning("sessions are not refreshed: %s", error.detail)
            except Exception:
                log.exception("sessions are not refreshed; the next look will try again")

    async def refresh_due(self) -> int:
        """Refresh sessions that are due, and that no other process refreshes."""
        if not await run_in_threadpool(self._db.reading, person_repository.any_due):
            return 0
        due = await run_in_threadpool(self._db.writing, person_repository.claim_due, BATCH)
        await asyncio.gather(*map(self._refresh, due))
        return len(due)

    async def _refresh(self, due: DueSession) -> None:
        """End the session if the provider refuses. If it is away, the next lease tries again before expiry."""
        try:
            granted = await self._ask_again(due)
            if granted is not None:
                await self._store(due, granted)
        except (GrantRefused, Forbidden, InvalidToken, NotFound) as error:
            why = "the provider refused" if isinstance(error, GrantRefused) else str(error)
            log.warning("the session of %s ends: %s", due.principal_id, why)
            await run_in_threadpool(self._db.writing, person_repository.end_refused, due, why)
        except ProviderAway as error:
            log.warning("the session of %s is not refreshed: %s", due.principal_id, error.detail)

    async def _ask_again(self, due: DueSession) -> Mapping[str, Any] | None:
        """Return None if the refresh token cannot be decrypted."""
        try:
            refresh_token = self._cipher.decrypt(due.refresh_token)
        except Undecryptable as error:
            log.warning("the session of %s cannot be refreshed: %s", due.principal_id, error)
            return None
        grant = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return await self._provider(due.issuer).exchange(grant)

    async def _store(self, due: DueSession, granted: Mapping[str, Any]) -> None:
        """Store the new refresh token first: the provider accepts no other from now on.

        Raises Forbidden if the groups are missing or give no role at the owner, and InvalidToken.
        """
        now = await run_in_threadpool(self._db.reading, read_clock)
        refresh_at = now + sessions.refresh_seconds(self._valid_seconds)
        new, id_token = granted.get("refresh_token"), granted.get("id_token")
        encrypted = self._cipher.encrypt(new) if isinstance(new, str) else due.refresh_token
        until = min(due.created_at + sessions.SESSION_SECONDS, now + self._valid_seconds)
        if not isinstance(id_token, str):  # allowed by OpenID Connect Core 12.2: the groups stay
            await run_in_threadpool(
                self._db.writing,
                partial(person_repository.store_refresh, expires_at=until),
                due,
                encrypted,
                refresh_at,
            )
            return
        statement = await self._confirmed(due, id_token, encrypted)
        identity = self._tokens.identity_of(statement)
        if due.owner not in owners_of(identity, self._roles.content()):
            raise Forbidden(f"its groups have no role at {shown(due.owner)} any more")

        def store(session: Any) -> None:
            person_repository.put_principal(session, identity)
            person_repository.store_refresh(
                session, due, encrypted, refresh_at, groups=identity.groups, expires_at=until
            )

        await run_in_threadpool(self._db.writing, store)

    async def _confirmed(self, due: DueSession, id_token: str, encrypted: str) -> Statement:
        """Verify the ID token of a refresh. If keys cannot be read now, store the refresh token for the next try."""
        provider = self._provider(due.issuer)
        try:
            return await self._tokens.of_refresh(provider, id_token, due.subject)
        except ProviderAway:
            with suppress(ServiceError):
                await run_in_threadpool(
                    self._db.writing, person_repository.store_refresh, due, encrypted, due.lease
                )
            raise


def _not_started_here() -> Malformed:
    return Malformed(
        f"this sign-in was not started in this browser, or more than {STARTED_SECONDS // 60} minutes ago: "
        "sign in again",
        code="sign_in_expired",
    )
