"""Roles of people and service accounts: what each role permits, and the file that assigns roles to groups.

This module has the only table of rules (`ROLES`) and the only function that applies it (`caller_of`). Keys have scopes
instead of roles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from app.platform.callers import Caller, PrincipalKind
from app.platform.errors import Forbidden, Invalid, Malformed, check_name, shown
from app.platform.json_files import BadFile, WatchedFile, read_json

Role = Literal["viewer", "scorer", "trainer", "approver", "admin"]
ROLES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "viewer": frozenset({"read"}),
        "scorer": frozenset({"read", "score", "outcomes"}),
        "trainer": frozenset({"read", "score", "train"}),
        "approver": frozenset({"read", "approve"}),
        "admin": frozenset({"read", "score", "outcomes", "train", "approve", "admin"}),
    }
)
"""The scopes of each role. The scope `operator`, which concerns all owners, is only for keys."""
CHANGING = frozenset({"train", "approve"})
"""The scopes that change models: a rule of a role with one of them may have model names."""
RESTRICTED = CHANGING | {"score"}
"""The scopes whose changes the model names of a rule restrict: those of models, and with `score` the decisions that are
recorded for an alias. Reading and scoring change nothing, and are per owner.
"""
OWNER_HEADER = "Rankwright-Owner"
MAX_RULES = 10_000
MAX_FILE_BYTES = 4 << 20
MAX_PATTERNS = 100
_REQUIRED, _OPTIONAL = ("issuer", "group", "owner", "role"), ("models",)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a token or a browser session belongs to, as its issuer states it."""

    issuer: str
    subject: str
    kind: PrincipalKind
    name: str
    groups: frozenset[str]
    expires_at: float | None
    """When the statement ends, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Members of an issuer's group have a role at an owner, for models whose names match one of the patterns."""

    issuer: str
    group: str
    owner: str
    role: str
    models: tuple[str, ...] | None = None
    """Shell patterns such as `fraud-*`, case-sensitive. None: all models."""


def read_rules(file: Path) -> tuple[Rule, ...]:
    """Raises BadFile."""
    given = read_json(file, MAX_FILE_BYTES)
    if not isinstance(given, list) or len(given) > MAX_RULES:
        got = f"{len(given):,} entries" if isinstance(given, list) else type(given).__name__
        raise BadFile(f"{file} must be a list of at most {MAX_RULES:,} entries, got {got}")
    rules = []
    for number, entry in enumerate(given, 1):
        try:
            rules.append(_rule_of(entry))
        except ValueError as error:
            raise BadFile(f"{file}, entry {number}: {error}") from None
    return tuple(rules)


def _rule_of(entry: Any) -> Rule:
    """Raises ValueError."""
    if not isinstance(entry, dict):
        raise ValueError(f"must be an object, got {shown(entry)}")
    if unknown := [name for name in entry if name not in (*_REQUIRED, *_OPTIONAL)]:
        known = ", ".join((*_REQUIRED, *_OPTIONAL))
        raise ValueError(f"has the unknown field {shown(unknown[0])}; the fields are {known}")
    for name in _REQUIRED:
        if not isinstance(entry.get(name), str) or not entry[name]:
            got = shown(entry[name]) if name in entry else "nothing"
            raise ValueError(f"{name} must be a text that is not empty, got {got}")
    try:
        check_name("owner", entry["owner"])
    except Invalid as error:
        raise ValueError(error.detail) from None
    role, models = entry["role"], entry.get("models")
    if role not in ROLES:
        raise ValueError(f"role must be one of {', '.join(ROLES)}, got {shown(role)}")
    if models is None:
        return Rule(entry["issuer"], entry["group"], entry["owner"], role)
    if not ROLES[role] & CHANGING or role == "admin":
        why = "manages all models" if role == "admin" else "changes no model"
        raise ValueError(f"models cannot be set for the role {role}, which {why}")
    if (
        not isinstance(models, list)
        or not 1 <= len(models) <= MAX_PATTERNS
        or not all(isinstance(each, str) and each for each in models)
    ):
        raise ValueError(
            f"models must be a list of 1 to {MAX_PATTERNS} patterns such as fraud-*, got {shown(models)}"
        )
    return Rule(entry["issuer"], entry["group"], entry["owner"], role, tuple(models))


class RoleFile(WatchedFile[Sequence[Rule]]):
    def __init__(self, file: Path | None) -> None:
        """Without a file there are no rules. Raises BadFile."""
        super().__init__(file, read_rules, (), "roles")


def owners_of(identity: Identity, rules: Sequence[Rule]) -> list[str]:
    """In alphabetical order."""
    return sorted(_by_owner(identity, rules))


def caller_of(
    identity: Identity, principal_id: str, rules: Sequence[Rule], owner: str | None = None
) -> Caller:
    """Return the caller for an identity at an owner, with the scopes of all its roles there.

    Without `owner`, it is the only one at which the identity has a role. Raises Forbidden if it has no role (there),
    and Malformed if it has roles at several owners and none was chosen.
    """
    at_owners = _by_owner(identity, rules)
    owners = sorted(at_owners)
    if not owners:
        raise Forbidden(
            f"{shown(identity.name)} has no role: none of the groups of {shown(identity.issuer)} that the token names "
            "has one",
            code="no_role",
        )
    if owner is None:
        if len(owners) > 1:
            raise Malformed(
                f"you have roles at several owners ({', '.join(owners[:20])}): choose one with the header "
                f"{OWNER_HEADER}",
                code="owner_ambiguous",
            )
        owner = owners[0]
    here = at_owners.get(owner)
    if here is None:
        raise Forbidden(
            f"you have no role at the owner {shown(owner)}; your owners are {', '.join(owners[:20])}",
            code="no_role",
        )
    scopes = frozenset[str]().union(*(ROLES[each.role] for each in here))
    models = {
        scope: found
        for scope in RESTRICTED & scopes
        if (found := _patterns([each for each in here if scope in ROLES[each.role]])) is not None
    }
    return Caller(
        owner=owner,
        scopes=scopes,
        principal_id=principal_id,
        kind=identity.kind,
        name=identity.name,
        roles=tuple(role for role in ROLES if any(each.role == role for each in here)),
        models=models,
        groups=identity.groups,
        expires_at=identity.expires_at,
    )


def _by_owner(identity: Identity, rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        if rule.issuer == identity.issuer and rule.group in identity.groups:
            found.setdefault(rule.owner, []).append(rule)
    return found


def _patterns(rules: Sequence[Rule]) -> tuple[str, ...] | None:
    """Return None if one rule holds for all models."""
    found: dict[str, None] = {}
    for rule in rules:
        if rule.models is None:
            return None
        found |= dict.fromkeys(rule.models)
    return tuple(found)
