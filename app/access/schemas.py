"""Request and response bodies of /v1/keys, /v1/quotas, /v1/usage and /v1/audit."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from app.access.authentication import Scope
from app.access.service import MAX_GRACE_SECONDS
from app.http.schemas import Body, CreatedAt, Name, PageOf, Resource, Timestamp, one_of
from app.platform.callers import PrincipalKind
from app.platform.roles import Role

MAX_LIFETIME_SECONDS = 3.2e9
"""Longest lifetime of a key, in seconds: a century."""


class KeyRequest(Body):
    """An API key to create, for the same owner as the caller's key."""

    name: Name
    """Name of the key, for your own use."""
    scopes: Annotated[
        list[Scope], Field(min_length=1, max_length=20, description="Scopes of the key.")
    ]
    expires_in_seconds: Annotated[float, Field(gt=0, le=MAX_LIFETIME_SECONDS)] | None = None
    """Lifetime in seconds. Null: the key does not expire."""
    holder_id: Annotated[str, Field(max_length=255)] | None = None
    """Id of the principal that the key is for: a person, a service account or a key. Null: it is for the caller.
    Required with the scope `approve`."""


class Rotation(Body):
    """How to replace an API key."""

    grace_seconds: Annotated[float, Field(ge=0, le=MAX_GRACE_SECONDS)] = 0.0
    """Seconds for which the old key remains valid. 0: it is revoked immediately."""


class Key(Resource):
    """An API key, without its secret."""

    id: str
    """Id of the key."""
    owner: str
    """Owner of the key and of all resources created with it."""
    name: str
    """Name of the key."""
    prefix: str
    """First characters of the secret, to identify the key."""
    holder_id: str | None
    """Id of the principal that the key is for. Null: it is for its creator."""
    scopes: list[Annotated[str, one_of(get_args(Scope))]]
    """Scopes of the key."""
    created_at: CreatedAt
    expires_at: Timestamp | None
    """Time of expiry. Null: the key does not expire."""
    last_used_at: Timestamp | None
    """Time of the last use. Null: it has not been used."""
    revoked_at: Timestamp | None
    """Time of revocation. Null: it has not been revoked."""
    successor_id: str | None
    """Id of the key that replaced this one. Null if it has not been replaced."""


class KeyPage(PageOf[Key]):
    """One page of keys."""


class KeyWithSecret(Key):
    """A new API key with its secret."""

    secret: str | None = Field(examples=["rw_Q3J5cHRvZ3JhcGhpY2FsbHktcmFuZG9tLXNlY3JldA"])
    """The secret. It is shown only once; null in a replayed response."""


class Me(Resource):
    """The caller of a request, and what it may do."""

    principal_id: str
    """Id of the principal. The audit log and revisions refer to it."""
    kind: Annotated[str, one_of(get_args(PrincipalKind))]
    """`key`: an API key. `person` or `service`: from an identity provider."""
    name: str
    """Name of the key, the person or the service account."""
    owner: str
    """Owner of the resources that this request can access."""
    roles: list[Annotated[str, one_of(get_args(Role))]]
    """Roles of the person or the service account at this owner. Empty for a key."""
    scopes: list[Annotated[str, one_of(get_args(Scope))]]
    """Scopes of the key or of the roles."""
    models: dict[str, list[str]]
    """Patterns of the model names that can be changed, for each scope that is restricted. Scopes that are absent are
    not restricted."""
    key_id: str | None
    """Id of the key that authenticates the request, or that started the browser session. Null for a person or a service
    account."""
    expires_at: Timestamp | None
    """Time when the key, token or session expires. Null: never."""


Limit = Annotated[int, Field(ge=0, le=2**53)] | None


class QuotaLimits(Body):
    """The limits of an owner. Null or absent: the setting of the service applies, otherwise no limit."""

    bytes: Limit = None
    """Bytes in files and in database rows that the owner can delete, with the trash."""
    dataset_rows: Limit = None
    """Rows of all versions of all datasets, with the trash."""
    models: Limit = None
    """Models, with the trash and with unfinished training jobs."""
    aliases: Limit = None
    """Aliases of models."""
    keys: Limit = None
    """Keys that are neither revoked nor expired."""
    queued_jobs: Limit = None
    """Queued jobs, without parts of jobs."""
    running_jobs: Annotated[int, Field(ge=1, le=2**53)] | None = None
    """Running jobs and parts of jobs. Further jobs wait."""


class OwnerQuota(Resource):
    """The limits of an owner. Null: the setting of the service applies, otherwise no limit."""

    owner: str
    """The owner."""
    bytes: int | None
    """Bytes in files and deletable database rows."""
    dataset_rows: int | None
    """Rows of all datasets."""
    models: int | None
    """Models and unfinished training jobs."""
    aliases: int | None
    """Aliases of models."""
    keys: int | None
    """Valid keys."""
    queued_jobs: int | None
    """Queued jobs."""
    running_jobs: int | None
    """Running jobs and parts of jobs."""
    updated_at: Timestamp | None
    """Time of the last change. Null: the owner has no individual limits."""


class OwnerQuotaPage(PageOf[OwnerQuota]):
    """One page of the owners with individual limits."""


class Used(Resource):
    """What counts against a limit, and the limit."""

    used: int
    """What counts against the limit."""
    limit: int | None
    """The limit that applies. Null: no limit; for jobs, the owner's fair share of the service."""


class Usage(Resource):
    """What an owner uses, and the limits that apply to it."""

    owner: str
    """The owner."""
    bytes: Used
    """Bytes in files and in database rows that the owner can delete, with the trash. Measured at intervals."""
    dataset_rows: Used
    """Rows of all versions of all datasets, with the trash."""
    models: Used
    """Models, with the trash and with unfinished training jobs."""
    aliases: Used
    """Aliases of models."""
    keys: Used
    """Keys that are neither revoked nor expired."""
    queued_jobs: Used
    """Queued jobs, without parts of jobs."""
    running_jobs: Used
    """Running jobs and parts of jobs."""


OutcomeName = Literal["done", "denied", "read"]
"""The names of `app.platform.audit.Outcome`."""


class AuditEntry(Resource):
    """One entry of the audit log."""

    id: str
    """Id of the entry."""
    created_at: Timestamp
    """Time of the change or of the request."""
    outcome: OutcomeName
    """`done`: something was changed. `denied`: the request was not permitted. `read`: decisive or personal data was
    read."""
    principal_id: str | None
    """Id of the principal that sent the request. Null for the command line on the server, and for failed
    authentications."""
    author: str | None
    """Name of the principal at that time. Null as `principal_id` is."""
    key_id: str | None
    """Id of the key of the request. Null for a person, a service account, and the command line on the server."""
    action: str
    """The route or command."""
    path: str | None
    """Path of the request, without its query. Null for the command line."""
    made: list[str]
    """Ids of the created resources."""
    summary: str | None
    """The change in words, such as the versions and thresholds between which an alias moved; for `denied`, the reason.
    Null if the route and the path say it."""
    request_id: str | None
    """Id of the request. Null for the command line."""
    client: str | None
    """Network address of the caller. Null for the command line."""
    position: int | None
    """Position in the order of sealing, in which the export returns entries. It grows, and entries of other owners lie
    between. Null until the entry is sealed, which takes about a second."""


class AuditEntryPage(PageOf[AuditEntry]):
    """One page of the audit log."""
