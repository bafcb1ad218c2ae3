"""The callers of bearer tokens: who their identity provider says they are, with the roles of their groups."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from app.access import person_repository
from app.http.dependencies import Context
from app.identity.tokens import InvalidToken, Tokens
from app.platform.background import TtlCache
from app.platform.callers import Caller
from app.platform.roles import Identity, RoleFile, caller_of

REFUSED_SECONDS = 60.0
"""How long a token that can never become valid is refused without another check."""
PRINCIPAL_SECONDS = 60.0
"""How long the id of a principal is remembered."""


@dataclass(slots=True)
class _Verified:
    """A token that was verified a moment ago, and its callers by the owner that a request names."""

    identity: Identity
    principal_id: str
    callers: dict[str | None, tuple[object, Caller]] = field(default_factory=dict)


class TokenCallers:
    """Verifies bearer tokens, and caches each for less than a second: so changed roles take effect as with keys."""

    def __init__(self, context: Context, roles: RoleFile) -> None:
        self.tokens = Tokens(context.settings)
        self._db = context.db
        self._memory = context.memory
        self._roles = roles
        self._verified: TtlCache[str, _Verified] = TtlCache(lambda _: None)
        self._refused: TtlCache[str, str] = TtlCache(lambda _: None, seconds=REFUSED_SECONDS)
        self._principals: TtlCache[tuple[str, str, str], str] = TtlCache(
            lambda _: None, seconds=PRINCIPAL_SECONDS
        )

    def cached(self, sha256: str, owner: str | None) -> Caller | None:
        """Return the caller of a token verified within the last second. Never waits. Raises as `caller_of` does."""
        verified = self._verified.get(sha256)
        return None if verified is None else self._caller(verified, owner)

    async def find(self, sha256: str, token: bytes, owner: str | None) -> Caller:
        """Raises InvalidToken, Forbidden (no groups or role), Malformed (the owner must be named), and Unavailable."""
        if (why := self._refused.get(sha256)) is not None:
            raise InvalidToken(why)
        looked_at = time.monotonic()
        try:
            identity = await self.tokens.of_bearer(token)
        except InvalidToken as error:
            if error.lasting:
                self._refused.put(sha256, error.reason, looked_at)
            raise
        # refuses who has no role, before anything is stored
        caller_of(identity, "", self._roles.content(), owner)
        verified = _Verified(identity, await self.principal_of(identity))
        self._verified.put(sha256, verified, looked_at)
        return self._caller(verified, owner)

    async def principal_of(self, identity: Identity) -> str:
        """It is stored when it is seen for the first time."""
        key = (identity.issuer, identity.subject, identity.name)
        known = self._principals.get(key)
        if known is None:
            looked_at = time.monotonic()
            known = await run_in_threadpool(self._find_principal, identity)
            self._principals.put(key, known, looked_at)
        return known

    def _find_principal(self, identity: Identity) -> str:
        issuer, subject = identity.issuer, identity.subject
        found = self._memory.ask(
            ("principal", issuer, subject),
            lambda: self._db.reading(person_repository.find_principal, issuer, subject),
        )
        if found is not None and (found[1] == identity.name or self._memory.away_seconds):
            return found[0]
        return self._db.writing(person_repository.put_principal, identity)

    def _caller(self, verified: _Verified, owner: str | None) -> Caller:
        rules = self._roles.content()
        made_by, caller = verified.callers.get(owner, (None, None))
        if caller is None or made_by is not rules:
            caller = caller_of(verified.identity, verified.principal_id, rules, owner)
            verified.callers[owner] = (rules, caller)
        return caller
