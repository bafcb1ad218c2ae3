"""Requests to change protected aliases: checked and bound when made, and applied when another person approves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from app.access import repository as access_rows
from app.evaluation import recalibration
from app.models import alias_request_repository as rows
from app.models import aliases, calibrations, repository
from app.models.protection import Approval, not_protected
from app.platform import catalogue
from app.platform.audit import allow_over_quota, describe
from app.platform.callers import Caller, check_model
from app.platform.documents import EvidenceFile, RequestedChange, StoredGuarantee
from app.platform.errors import Conflict, Forbidden, NotFound, check_name, counted, shown
from app.platform.ids import is_id, new_id
from app.platform.settings import Settings
from app.platform.sql import Page, Session, read_clock
from app.platform.tables import (
    AliasRequest,
    AliasRequestKind,
    AliasRequestState,
    Model,
    ModelAlias,
    ModelAliasHistory,
)
from app.reports.decision import Change

KEEP_SECONDS = 7 * 86_400.0
"""Time in seconds after which an open request expires."""
MAX_OPEN_OF_ALIAS, MAX_OPEN = 10, 100
"""Open requests that an alias, and an owner, can have."""
_UNDOING = {
    AliasRequestKind.RESTORE,
    AliasRequestKind.DELETE,
    AliasRequestKind.RESTORE_CALIBRATION,
}
"""Kinds that are allowed over the quota: a bad version must be replaced at once. The open requests are bounded, and
those that are withdrawn lose their evidence.
"""
MAX_CLOSED = 100
"""Requests of an alias that are kept although they came to nothing."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a caller asks for. Which members are set depends on the kind."""

    kind: AliasRequestKind
    name: str
    alias: str
    reason: str
    ref: str | None = None
    guarantee: StoredGuarantee | Literal["keep"] | None = "keep"
    memo: Mapping[str, Any] | None = None
    revision: int | None = None
    dataset_id: str | None = None
    version: int | None = None


class Evidence(NamedTuple):
    """The archive with the evidence of a change from one revision of an alias to a model."""

    alias_revision: int
    model_id: str
    collected: aliases.CollectedEvidence


class Binding(NamedTuple):
    """The model that a request concerns, the revision of its alias, and the change, as data and in words; `current` and
    `proposed` are the alias before and after it, as in `decision.Change`.
    """

    model: Model
    alias_revision: int
    change: RequestedChange
    before: str
    after: str
    current: ModelAlias | None
    proposed: ModelAlias | None

    def as_change(self, asked: Proposal, author: str | None) -> Change:
        """Return the change that evidence is collected for."""
        return Change(
            kind=asked.kind,
            before=self.before,
            after=self.after,
            model=self.model,
            current=self.current,
            proposed=self.proposed,
            reason=asked.reason,
            author=author,
        )


def bind(session: Session, owner: str, asked: Proposal, author: str | None) -> Binding:
    """Check a proposal of `author`, and return what it is bound to. Raises the errors of the direct change, except
    those of `If-Match` and of the protection; and Conflict if the alias is not protected, or has too many requests.
    """
    name, alias = asked.name, asked.alias
    check_name("name", name, pointer="/name")
    check_name("alias", alias, pointer="/alias")
    newest = repository.last_alias_revision(session, owner, name, alias)
    current = repository.find_alias(session, owner, name, alias)
    if newest is None:
        raise _no_alias(name, alias)
    check_model(name)
    if not (newest if current is None else current).protected:
        raise not_protected(f"{name}@{alias}")
    _check_open(session, owner, name, alias)
    before = "deleted" if current is None else aliases.in_words(session, owner, current)
    proposed = None
    if asked.kind == AliasRequestKind.SET:
        model, change, after, proposed = _to_model(session, owner, asked, current, author)
    elif asked.kind == AliasRequestKind.RESTORE:
        model, change, after, proposed = _to_revision(session, owner, asked, author)
    elif current is None:
        raise _no_alias(name, alias)
    else:
        found = repository.find(session, owner, current.model_id)
        if found is None:  # moved, and the model deleted, between the two statements
            raise Conflict(f"{name}@{alias} was moved: try again")
        model, change, after = found, {}, "deleted"
        if asked.kind == AliasRequestKind.UNPROTECT:
            before, after = "protected", "protection lifted"
        elif asked.kind == AliasRequestKind.RECALIBRATE:
            change, before, after = _to_dataset(session, owner, asked, model)
        elif asked.kind == AliasRequestKind.RESTORE_CALIBRATION:
            change, before, after = _to_calibration(session, asked, model)
    return Binding(model, newest.revision, change, before, after, current, proposed)


def _to_model(
    session: Session, owner: str, asked: Proposal, current: ModelAlias | None, author: str | None
) -> tuple[Model, RequestedChange, str, ModelAlias]:
    model = aliases.find_target(session, owner, asked.name, asked.ref or "")
    kept, cutoff = aliases.guarantee_to_keep(session, model, current, asked.guarantee)
    change: RequestedChange = {}
    if asked.guarantee != "keep":
        change["guarantee"] = asked.guarantee
    if asked.memo is not None:
        change["memo"] = asked.memo
    proposed = aliases.proposed(
        session,
        asked.name,
        asked.alias,
        model,
        current,
        guarantee=kept,
        cutoff=cutoff,
        memo={**(asked.memo or {}), "reason": asked.reason},
        author=author,
    )
    return model, change, aliases.words_of(asked.name, model.version, cutoff), proposed


def _to_revision(
    session: Session, owner: str, asked: Proposal, author: str | None
) -> tuple[Model, RequestedChange, str, ModelAlias]:
    revision = asked.revision or 0
    target = aliases.find_restorable(session, owner, asked.name, asked.alias, revision)
    model = repository.find(session, owner, target.model_id)
    if model is None:
        raise aliases.model_deleted(target)
    words = aliases.words_of(asked.name, model.version, target.cutoff)
    proposed = aliases.proposed(
        session,
        asked.name,
        asked.alias,
        model,
        None,
        guarantee=target.guarantee,
        cutoff=target.cutoff,
        memo={**(target.memo or {}), "reason": asked.reason},
        author=author,
    )
    return model, {"revision": revision}, f"{words}, as in revision {revision}", proposed


def _to_dataset(
    session: Session, owner: str, asked: Proposal, model: Model
) -> tuple[RequestedChange, str, str]:
    inputs = recalibration.check(session, owner, model.id, asked.dataset_id or "")
    after = f"recalibrated on {inputs.dataset.name} v{inputs.dataset.version}"
    return {"dataset_id": inputs.dataset.id}, _calibration_in_words(session, model), after


def _to_calibration(
    session: Session, asked: Proposal, model: Model
) -> tuple[RequestedChange, str, str]:
    version = asked.version or 0
    earlier = calibrations.find_restorable(session, model, version)
    after = f"calibration {earlier.version} ({earlier.method}) again"
    return {"calibration_version": version}, _calibration_in_words(session, model), after


def _calibration_in_words(session: Session, model: Model) -> str:
    row = calibrations.find_served(session, model)
    served = "no calibration" if row is None else f"calibration {row.version} ({row.method})"
    return f"{model.name} v{model.version}, {served}"


def _no_alias(name: str, alias: str) -> NotFound:
    return NotFound(f"there is no alias {name[:100]}@{alias[:100]}")


def _check_open(session: Session, owner: str, name: str, alias: str) -> None:
    """Raise Conflict at the limit of the alias, or the owner."""
    here, in_all = rows.count_open(session, owner, name, alias)
    for most, value, of in ((MAX_OPEN_OF_ALIAS, here, "an alias"), (MAX_OPEN, in_all, "an owner")):
        if value >= most:
            what = counted(most, "open request", "open requests")
            raise Conflict(
                f"{of} can have at most {what}: approve, reject or withdraw one first",
                code="too_many_alias_requests",
            )


def create(session: Session, caller: Caller, asked: Proposal, evidence: Evidence) -> AliasRequest:
    """Check a proposal again, and store it as an open request with the evidence on its model. Raises what `bind`
    raises, and Conflict if it concerns another model, or revision of the alias, than the evidence.
    """
    access_rows.take_turn(session, caller.owner)  # for the number of open requests
    if asked.kind in _UNDOING:
        allow_over_quota(session)
    model, alias_revision, change, before, after, *_ = bind(
        session, caller.owner, asked, caller.name
    )
    if (alias_revision, model.id) != (evidence.alias_revision, evidence.model_id):
        raise Conflict(f"{asked.name}@{asked.alias} was moved: try again")
    blob = catalogue.commit(session, evidence.collected.archive)
    rows.prune_closed(session, caller.owner, asked.name, asked.alias, MAX_CLOSED)
    row = AliasRequest(
        id=new_id("arq"),
        owner=caller.owner,
        name=asked.name,
        alias=asked.alias,
        kind=asked.kind,
        state=AliasRequestState.OPEN,
        change=change,
        reason=asked.reason,
        before=before,
        after=after,
        alias_revision=alias_revision,
        model_id=model.id,
        model_version=model.version,
        artifact_sha256=model.artifact_sha256,
        calibration_version=model.calibration_version,
        evidence=evidence.collected.files,
        evidence_key=blob.key,
        evidence_bytes=blob.bytes,
        author=caller.name,
        principal_id=caller.principal_id,
    )
    _describe(session, row, f"Reason: {asked.reason.rstrip('.')}. Requested by {caller.name}")
    added = rows.add(session, row, KEEP_SECONDS)
    rows.record_state(session, row.owner, row.state, row.id, row.name, row.alias, row.kind)
    return added


def list_page(
    session: Session,
    owner: str,
    *,
    state: str | None,
    name: str | None,
    alias: str | None,
    limit: int,
    after: str | None,
) -> tuple[Page[AliasRequest], float]:
    """Newest first, with the database's time."""
    for parameter, value in (("name", name), ("alias", alias)):
        if value is not None:
            check_name(parameter, value)
    page = rows.list_page(
        session, owner, state=state, name=name, alias=alias, limit=limit, after=after
    )
    return page, read_clock(session)


def get(session: Session, owner: str, alias_request_id: str) -> tuple[AliasRequest, float]:
    """Return the database's time, too. Raises NotFound."""
    return _find(session, owner, alias_request_id), read_clock(session)


def get_approvable(
    session: Session, caller: Caller, alias_request_id: str
) -> tuple[AliasRequest, float]:
    """Return an open request that the caller may approve, and the database's time.

    Raises NotFound, Forbidden for the person who made the request, and Conflict for a request that is not open.
    """
    row, now = get(session, caller.owner, alias_request_id)
    check_model(row.name)
    if _may_be_requester(session, caller, row):
        raise Forbidden(
            f"{alias_request_id} was requested by {row.author}: another person must approve it. A key counts as the "
            "person whom it is for, and as the one who created it",
            code="self_approval",
        )
    _refuse_closed(row, now)
    return row, now


def _find(
    session: Session, owner: str, alias_request_id: str, *, lock: bool = False
) -> AliasRequest:
    found = None
    if is_id(alias_request_id, "arq"):
        found = rows.find(session, owner, alias_request_id, lock=lock)
    if found is None:
        raise NotFound(f"there is no alias request {shown(alias_request_id)}")
    return found


def state_of(row: AliasRequest, now: float) -> str:
    """`now` is in seconds since 1970."""
    if row.state == AliasRequestState.OPEN and row.expires_at <= now:
        return AliasRequestState.EXPIRED
    return row.state


def approve(
    session: Session,
    settings: Settings,
    caller: Caller,
    alias_request_id: str,
    reason: str | None,
    evidence: aliases.CollectedEvidence | None,
) -> AliasRequest:
    """Approve a request and apply its change in the same transaction; returns the request. It is void instead if it is
    bound to something that has changed: the caller must look at the state.

    `evidence` is that of the request with the approval in it; None if it was deleted. Raises as `get_approvable` does,
    and the errors of the change, after which the request is still open.
    """
    row, _ = get_approvable(session, caller, alias_request_id)
    allow_over_quota(session)
    # The order of all changes of aliases, so that they do not wait for each other: model, alias, requests.
    model = repository.find(session, caller.owner, row.model_id, lock=True)
    current = repository.find_alias(session, caller.owner, row.name, row.alias, lock=True)
    row = _lock_open(session, caller, alias_request_id)
    newest = repository.last_alias_revision(session, caller.owner, row.name, row.alias)
    if (broken := _broken(row, newest, model)) is not None:
        _close(session, row, caller, AliasRequestState.VOID, broken)
        return row
    assert model is not None
    if evidence is not None and row.evidence_key is not None:
        blob = catalogue.commit(session, evidence.archive)
        row.evidence, row.evidence_key, row.evidence_bytes = evidence.files, blob.key, blob.bytes
    approval = Approval(
        alias_request_id=row.id,
        author=row.author,
        principal_id=row.principal_id,
        approved_by=caller.name,
        approved_by_id=caller.principal_id,
        evidence=row.evidence,
        evidence_key=row.evidence_key,
        evidence_bytes=row.evidence_bytes,
    )
    _apply(session, settings, row, current, approval)
    session.flush()
    session.refresh(row)  # the job or the calibration may have been noted
    _close(session, row, caller, AliasRequestState.APPROVED, reason)
    because = "" if reason is None else f": {reason}"
    _describe(
        session,
        row,
        f"Reason: {row.reason.rstrip('.')}. Requested by {row.author}, approved by {caller.name}{because}",
    )
    return row


def _may_be_requester(session: Session, caller: Caller, row: AliasRequest) -> bool:
    """Return True if the caller may have made the request."""
    same = access_rows.same_person
    return not same(session, caller.principal_id or "").isdisjoint(
        same(session, row.principal_id or "")
    )


def _broken(row: AliasRequest, newest: ModelAliasHistory | None, model: Model | None) -> str | None:
    """Return why a request no longer holds."""
    alias, name = f"{row.name}@{row.alias}", f"{row.name}:{row.model_version}"
    revision = None if newest is None else newest.revision
    if revision != row.alias_revision:
        return (
            f"{alias} is at revision {revision}, and the request was made at {row.alias_revision}"
        )
    if model is None:
        return f"the model {name} was deleted"
    if model.artifact_sha256 != row.artifact_sha256:
        return f"the artifact of {name} is not the one that was requested: its SHA-256 differs"
    if model.calibration_version != row.calibration_version:
        return (
            f"the calibration of {name} is at version {model.calibration_version}, and the request was made at "
            f"{row.calibration_version}"
        )
    return None


def _apply(
    session: Session,
    settings: Settings,
    row: AliasRequest,
    current: ModelAlias | None,
    approval: Approval,
) -> None:
    at = (session, row.owner, row.name, row.alias)
    revision = None if current is None else row.alias_revision
    change, by = row.change, row.author
    state: aliases.AliasState | None = None
    if row.kind == AliasRequestKind.SET:
        state, _ = aliases.set_alias(
            *at,
            row.model_id,
            guarantee=change.get("guarantee", "keep"),
            memo={**(change.get("memo") or {}), "reason": row.reason},
            author=by,
            if_revision=revision,
            approval=approval,
        )
    elif row.kind == AliasRequestKind.RESTORE:
        state = aliases.restore(
            *at,
            change["revision"],
            reason=row.reason,
            author=by,
            if_revision=row.alias_revision,
            approval=approval,
        )
    elif row.kind == AliasRequestKind.DELETE:
        aliases.remove_alias(
            *at, reason=row.reason, author=by, if_revision=revision, approval=approval
        )
        row.applied_revision = row.alias_revision + 1
    elif row.kind == AliasRequestKind.UNPROTECT:
        state = aliases.protect(
            *at,
            protected=False,
            reason=row.reason,
            author=by,
            if_revision=revision,
            approval=approval,
        )
    elif row.kind == AliasRequestKind.RECALIBRATE:
        job = recalibration.submit(
            session,
            settings,
            row.owner,
            row.model_id,
            change["dataset_id"],
            row.reason,
            by,
            approval,
        )
        row.job_id = job.id
    else:
        calibrations.restore(
            session,
            row.owner,
            row.model_id,
            change["calibration_version"],
            reason=row.reason,
            author=by,
            if_version=row.calibration_version,
            approval=approval,
        )
    if state is not None:
        row.applied_revision = state.alias.revision


def reject(session: Session, caller: Caller, alias_request_id: str, reason: str) -> AliasRequest:
    """Raises NotFound, and Conflict unless the request is open."""
    check_model(_find(session, caller.owner, alias_request_id).name)
    allow_over_quota(session)
    row = _lock_open(session, caller, alias_request_id)
    _close(session, row, caller, AliasRequestState.REJECTED, reason)
    return row


def withdraw(session: Session, caller: Caller, alias_request_id: str) -> AliasRequest:
    """Raises NotFound; Forbidden unless the caller made the request or is an admin; Conflict unless it is open."""
    found = _find(session, caller.owner, alias_request_id)
    check_model(found.name)
    allow_over_quota(session)
    if "admin" not in caller.scopes and not _may_be_requester(session, caller, found):
        raise Forbidden(
            f"{alias_request_id} was requested by {found.author}: only this person and admins can withdraw it",
            code="not_requester",
        )
    row = _lock_open(session, caller, alias_request_id)
    row.evidence_key = row.evidence_bytes = None
    _close(session, row, caller, AliasRequestState.WITHDRAWN, None)
    return row


def _lock_open(session: Session, caller: Caller, alias_request_id: str) -> AliasRequest:
    """Raises Conflict unless it is open."""
    row = _find(session, caller.owner, alias_request_id, lock=True)
    _refuse_closed(row, read_clock(session))
    return row


def _refuse_closed(row: AliasRequest, now: float) -> None:
    state = state_of(row, now)
    if state == AliasRequestState.EXPIRED:
        raise Conflict(
            f"{row.id} has expired: request the change again",
            code="alias_request_expired",
        )
    if state == AliasRequestState.VOID:
        raise void(row)
    if state != AliasRequestState.OPEN:
        by = "" if row.decided_by is None else f" by {row.decided_by}"
        raise Conflict(f"{row.id} was {state}{by}", code="alias_request_closed")


def void(row: AliasRequest) -> Conflict:
    """Return the error for a request that is void."""
    return Conflict(
        f"{row.id} is void: {row.decision_reason}. Request the change again",
        code="alias_request_void",
    )


def _close(
    session: Session,
    row: AliasRequest,
    caller: Caller,
    state: AliasRequestState,
    reason: str | None,
) -> None:
    row.state, row.decided_at, row.decision_reason = state, read_clock(session), reason
    words = str(state).capitalize()
    if state != AliasRequestState.VOID:
        row.decided_by, row.decided_by_id = caller.name, caller.principal_id
        words = f"{words} by {caller.name}"
    _describe(session, row, f"{words}. Reason: {reason}" if reason else words)
    session.flush()
    rows.record_state(session, row.owner, state, row.id, row.name, row.alias, row.kind)


def _describe(session: Session, row: AliasRequest, words: str) -> None:
    """State a step in the audit log."""
    after = row.after.removeprefix(f"{row.name} ") if row.before != "deleted" else row.after
    describe(session, f"{row.alias}: {row.before} → {after}. {words} ({row.id})")


def find_evidence(
    session: Session, owner: str, alias_request_id: str
) -> tuple[str, list[EvidenceFile]]:
    """Return the archive's key and files. Raises NotFound."""
    row = _find(session, owner, alias_request_id)
    if row.evidence_key is None:
        raise NotFound(
            f"the evidence of {alias_request_id} was deleted: the request was withdrawn, the model {row.model_id} was "
            "deleted, or an erasure removed it",
            code="no_evidence",
        )
    return row.evidence_key, row.evidence
