"""Aliases: names that move from one version of a model to another, their guarantees and their history."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from app.access import quotas
from app.models import alias_request_repository as request_rows
from app.models import repository
from app.models.curves import PartCurve, curve_on
from app.models.operating_points import cutoff_on, point_on
from app.models.protection import BREAK_GLASS, Approval, approval_required, permit
from app.models.revisions import check_revision
from app.models.service import HISTORY_SHOWN, VALIDATION, find
from app.platform import catalogue, events
from app.platform.audit import allow_over_quota, describe
from app.platform.blobs import BlobWriter
from app.platform.callers import check_model
from app.platform.documents import AliasCutoff, EvidenceFile, StoredGuarantee, StoredMemo
from app.platform.errors import (
    NAME,
    Conflict,
    Invalid,
    NotFound,
    PreconditionFailed,
    check_name,
    invalid,
)
from app.platform.sql import Page, Session, read_clock
from app.platform.tables import AliasChange, Model, ModelAlias, ModelAliasHistory
from core import metrics as core_metrics


@dataclass(frozen=True)
class AliasState:
    alias: ModelAlias
    history: list[ModelAliasHistory]


def get_alias(session: Session, owner: str, name: str, alias: str) -> AliasState:
    """The history is the newest first. Raises NotFound."""
    current = _find(session, owner, name, alias)
    return AliasState(current, list(repository.history(session, owner, name, alias, HISTORY_SHOWN)))


def _find(session: Session, owner: str, name: str, alias: str, *, lock: bool = False) -> ModelAlias:
    """With `lock`, locked until the transaction ends. Raises NotFound."""
    current = None
    if re.fullmatch(NAME, name) and re.fullmatch(NAME, alias):
        current = repository.find_alias(session, owner, name, alias, lock=lock)
    if current is None:
        raise NotFound(f"there is no alias {name[:100]}@{alias[:100]}")
    return current


def list_aliases(
    session: Session, owner: str, name: str, *, limit: int, after: str | None
) -> Page[ModelAlias]:
    """The last moved first. Raises NotFound if there is no such model."""
    if not re.fullmatch(NAME, name) or repository.find_latest(session, owner, name) is None:
        raise NotFound(f"there is no model {name[:200]!r}")
    return repository.list_aliases(session, owner, name, limit=limit, after=after)


def list_revisions(
    session: Session, owner: str, name: str, alias: str, *, limit: int, after: str | None
) -> Page[ModelAliasHistory]:
    """Newest first, also of a deleted alias. Raises NotFound if it never existed, or its history was pruned."""
    if re.fullmatch(NAME, name) and re.fullmatch(NAME, alias):
        page = repository.list_revisions(session, owner, name, alias, limit=limit, after=after)
        if page.data or after is not None:
            return page
    raise NotFound(f"there is no alias {name[:100]}@{alias[:100]}")


def list_deleted(
    session: Session, owner: str, name: str, *, limit: int, after: str | None
) -> Page[ModelAliasHistory]:
    """Return deleted aliases' last revisions, last deleted first. NotFound: none, nor such a model."""
    if re.fullmatch(NAME, name):
        page = repository.list_deleted_aliases(session, owner, name, limit=limit, after=after)
        if page.data or repository.find_latest(session, owner, name) is not None:
            return page
    raise NotFound(f"there is no model {name[:200]!r}")


def find_revision(
    session: Session, owner: str, name: str, alias: str, revision: int
) -> ModelAliasHistory:
    """The alias may be deleted. Raises NotFound."""
    if re.fullmatch(NAME, name) and re.fullmatch(NAME, alias):
        found = repository.find_alias_revision(session, owner, name, alias, revision)
        if found is not None:
            return found
    raise NotFound(f"the alias {name[:100]}@{alias[:100]} has no revision {revision}")


def find_restorable(
    session: Session, owner: str, name: str, alias: str, revision: int
) -> ModelAliasHistory:
    """Return a revision in which the alias existed. Raises NotFound, and Invalid for its deletion."""
    found = find_revision(session, owner, name, alias, revision)
    if found.change == AliasChange.DELETED:
        raise invalid(
            "/revision",
            f"revision must be one in which {name}@{alias} existed; revision {revision} is its deletion",
        )
    return found


def model_deleted(revision: ModelAliasHistory) -> Conflict:
    """The revision cannot be restored."""
    return Conflict(
        f"revision {revision.revision} of {revision.name}@{revision.alias} points to the model "
        f"{revision.model_id} (version {revision.model_version}), which was deleted: "
        "restore the model from the trash first",
        code="model_deleted",
    )


def find_evidence(
    session: Session, owner: str, name: str, alias: str, revision: int
) -> tuple[str, list[EvidenceFile]]:
    """Return the key of the archive with the evidence, and its files. Raises NotFound with the reason."""
    found = find_revision(session, owner, name, alias, revision)
    if found.evidence is None:
        raise NotFound(
            f"revision {revision} of {name}@{alias} has no evidence: it is recorded when an alias is moved or restored",
            code="no_evidence",
        )
    if found.evidence_key is None:
        raise NotFound(
            f"the evidence of revision {revision} of {name}@{alias} was deleted with the model {found.model_id}, or by "
            "an erasure",
            code="no_evidence",
        )
    return found.evidence_key, found.evidence


@dataclass(frozen=True)
class CollectedEvidence:
    files: list[EvidenceFile]
    archive: BlobWriter


def check_change(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    ref: str,
    *,
    memo: Mapping[str, Any] | Literal["keep"] | None,
    if_revision: int | None,
    must_be_new: bool,
) -> None:
    """Raise the errors of `set_alias` that need no lock, before the evidence is computed, which takes long."""
    check_name("alias", alias)
    find_target(session, owner, name, ref)
    check_model(name)
    current = repository.find_alias(session, owner, name, alias)
    given = memo if isinstance(memo, Mapping) else {}
    if current is None and if_revision is None:
        quotas.check_one(session, owner, "aliases")
        current_or_last: _Protectable = repository.last_alias_revision(session, owner, name, alias)
    else:
        check_revision(f"{name}@{alias}", current, if_revision, must_be_new)
        current_or_last = current
    _permit(session, current_or_last, given.get("reason"), "/memo/reason", None)


def set_alias(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    ref: str,
    *,
    guarantee: StoredGuarantee | Literal["keep"] | None = "keep",
    memo: Mapping[str, Any] | Literal["keep"] | None = "keep",
    author: str | None = None,
    evidence: CollectedEvidence | None = None,
    if_revision: int | None,
    must_be_new: bool = False,
    approval: Approval | None = None,
) -> tuple[AliasState, bool]:
    """Point the alias at a model of the same name; returns the alias, and True if it is new.

    To move one that exists the caller gives the revision that they saw (`if_revision`), so that no move is lost.
    `guarantee` replaces that of the alias, None removes it; raises Invalid if the model cannot meet it. `memo` has the
    members of the memo to change, None removes it. Its `reason` belongs to this revision alone. Raises Conflict if the
    alias is protected and there is no `approval`.
    """
    check_name("alias", alias)
    model = _lock_target(session, owner, name, ref)
    check_model(name)
    current = repository.find_alias(session, owner, name, alias, lock=True)
    before, created = None, False
    if current is None and if_revision is None:
        last = repository.last_alias_revision(session, owner, name, alias)
        quotas.admit_one(session, owner, "aliases")
        created = repository.create(session, owner, name, alias, model.id)
        current = repository.find_alias(session, owner, name, alias, lock=True)
        if created and current is not None and last is not None:
            # Otherwise a deletion would lift the protection.
            current.protected = last.protected
    if not created:
        check_revision(f"{name}@{alias}", current, if_revision, must_be_new)
        assert current is not None
        before = in_words(session, owner, current)
        current.revision += 1
    assert current is not None
    given = memo if isinstance(memo, Mapping) else {}
    break_glass = _permit(session, current, given.get("reason"), "/memo/reason", approval)
    kept, cutoff = guarantee_to_keep(session, model, current, guarantee)
    current.model_id, current.guarantee, current.cutoff = model.id, kept, cutoff
    current.memo = _memo_to_store(current.memo, memo, approval)
    current.author = author
    change = _Change(AliasChange.SET, approval, break_glass, evidence=evidence)
    _record(session, current, model, change)
    after = words_of(name, model.version, cutoff)
    _describe(session, current, before, after, given.get("reason"), change)
    return get_alias(session, owner, name, alias), created


def restore(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    revision: int,
    *,
    reason: str | None,
    author: str | None,
    if_revision: int | None,
    approval: Approval | None = None,
) -> AliasState:
    """Restore an earlier revision as a new one, also of a deleted alias. Nothing is computed, so this is fast.

    `if_revision` is the newest revision that the caller saw, of a deleted alias that of its deletion. Raises NotFound,
    Invalid, Conflict if the model was deleted or if the alias is protected and there is no `approval`, and the errors
    of `check_revision`.
    """
    target = find_restorable(session, owner, name, alias, revision)
    check_model(name)
    model = repository.find(session, owner, target.model_id, lock=True)
    current = repository.find_alias(session, owner, name, alias, lock=True)
    newest = repository.last_alias_revision(session, owner, name, alias)
    assert newest is not None
    # A bad version must be rolled back at once: this stores no new evidence, and at most HISTORY_SHOWN revisions.
    allow_over_quota(session)
    check_revision(f"{name}@{alias}", current or newest, if_revision, must_be_new=False)
    if model is None:
        raise model_deleted(target)
    before = "deleted" if current is None else in_words(session, owner, current)
    if current is None:
        quotas.admit_one(session, owner, "aliases")
        created = repository.create(session, owner, name, alias, model.id)
        current = repository.find_alias(session, owner, name, alias, lock=True)
        if not created or current is None:  # another request has just done it
            raise PreconditionFailed(f"{name}@{alias} was changed at the same time: read it again")
        current.protected = newest.protected
    else:
        current.revision += 1
    break_glass = _permit(session, current, reason, "/reason", approval)
    current.model_id, current.guarantee, current.cutoff = model.id, target.guarantee, target.cutoff
    memo = {"reason": reason or f"Restores revision {revision}."}
    current.memo = _memo_to_store(target.memo, memo, approval)
    current.author = author
    change = _Change(AliasChange.RESTORED, approval, break_glass, restores=target)
    _record(session, current, model, change)
    after = words_of(name, model.version, target.cutoff)
    _describe(session, current, before, f"{after}, as in revision {revision}", reason, change)
    return get_alias(session, owner, name, alias)


def remove_alias(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    *,
    reason: str | None = None,
    author: str | None = None,
    if_revision: int | None,
    approval: Approval | None = None,
) -> None:
    """Delete the alias. A new one of the same name continues its history, whose newest revision is the deletion.

    Raises Conflict if the alias is protected and there is no `approval`.
    """
    current = _find(session, owner, name, alias, lock=True)
    check_model(name)
    check_revision(f"{name}@{alias}", current, if_revision, must_be_new=False)
    break_glass = _permit(session, current, reason, None, approval)
    model = repository.find(session, owner, current.model_id)
    assert model is not None  # a model with an alias cannot be deleted
    before = in_words(session, owner, current)
    current.revision += 1
    current.memo = _memo_to_store(current.memo, {"reason": reason}, approval)
    current.author = author
    change = _Change(AliasChange.DELETED, approval, break_glass)
    _record(session, current, model, change)
    _describe(session, current, before, "deleted", reason, change)
    repository.remove(session, current)


def protect(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    *,
    protected: bool,
    reason: str | None,
    author: str | None,
    if_revision: int | None,
    approval: Approval | None = None,
) -> AliasState:
    """Set or lift the protection of an alias, as a new revision. Raises Conflict if it is protected without an
    `approval`.

    To lift a protection needs one even while it is suspended. The given reason, the author and the time are stored with
    this revision only. The alias keeps the reason, the approval, the author and the time of its cutoff, and the
    revision keeps the evidence of the previous one.
    """
    current = _find(session, owner, name, alias, lock=True)
    check_model(name)
    check_revision(f"{name}@{alias}", current, if_revision, must_be_new=False)
    break_glass = _permit(session, current, reason, "/reason", approval)
    if break_glass and not protected:  # power for some hours must not become power for good
        raise approval_required(f"{name}@{alias}")
    model = repository.find(session, owner, current.model_id)
    assert model is not None  # a model with an alias cannot be deleted
    before = repository.last_alias_revision(session, owner, name, alias)
    decided = current.memo, current.author, current.updated_at
    current.protected = protected
    current.revision += 1
    current.memo = _memo_to_store(current.memo, {"reason": reason}, approval)
    current.author = author
    change = _Change(AliasChange.PROTECTION, approval, break_glass, evidence_of=before)
    _record(session, current, model, change)
    current.memo, current.author, current.updated_at = decided
    session.flush()
    words = ("not protected", "protected")[:: 1 if protected else -1]
    _describe(session, current, words[0], words[1], reason, change)
    return get_alias(session, owner, name, alias)


def forget_model(session: Session, owner: str, model_id: str) -> None:
    """Delete the evidence on a permanently deleted model. Revisions, with the hashes of the files, remain."""
    repository.drop_evidence(session, owner, model_id)
    request_rows.drop_evidence(session, owner, model_id)


_Protectable = ModelAlias | ModelAliasHistory | None


def _permit(
    session: Session,
    current: _Protectable,
    reason: str | None,
    pointer: str | None,
    approval: Approval | None,
) -> bool:
    """Raise Conflict unless the alias is not protected, the change approved, or the protection suspended (returns
    True).

    `current` may be the last revision of a deleted alias. Without a pointer, the reason is a parameter.
    """
    if current is None or not current.protected or approval is not None:
        return False
    position = {"parameter": "reason"} if pointer is None else {"pointer": pointer}
    permit(session, current.owner, f"{current.name}@{current.alias}", reason, position)
    return True


_NO_MEMO: StoredMemo = {
    "reason": None,
    "approved_by": None,
    "review": None,
    "rows": None,
    "cost_false_positive": None,
    "cost_false_negative": None,
    "amount": None,
    "prevalence": None,
}
_OF_ONE_REVISION = ("reason", "approved_by")
_PAIRS = (("review", "rows"), ("cost_false_positive", "cost_false_negative"))


def _memo_to_store(
    before: StoredMemo | None,
    given: Mapping[str, Any] | Literal["keep"] | None,
    approval: Approval | None = None,
) -> StoredMemo | None:
    """Return the memo of a new revision. Reason and approval are new; capacity, costs and prevalence are kept unless
    given.

    The amounts are those of its costs. None removes the memo.
    """
    if approval is not None:
        given = {
            **(given if isinstance(given, Mapping) else {}),
            "approved_by": approval.approved_by,
        }
    if given is None:
        return None
    memo: dict[str, Any] = {**_NO_MEMO, **(before or {})}
    memo |= dict.fromkeys(_OF_ONE_REVISION)
    if given != "keep":
        memo |= {"amount": None} if "cost_false_negative" in given else {}
        memo |= given
    for pair in _PAIRS:  # one of them may have been removed
        if any(memo[name] is None for name in pair):
            memo |= dict.fromkeys(pair)
    if memo["cost_false_negative"] is None:
        memo["amount"] = None
    return None if not any(value is not None for value in memo.values()) else cast(StoredMemo, memo)


def proposed(
    session: Session,
    name: str,
    alias: str,
    model: Model,
    current: ModelAlias | None,
    *,
    guarantee: StoredGuarantee | None,
    cutoff: AliasCutoff | None,
    memo: Mapping[str, Any] | Literal["keep"] | None,
    author: str | None,
) -> ModelAlias:
    """Return an alias as a change of it would leave it, for the evidence of the change. It is not stored."""
    newest = repository.last_alias_revision(session, model.owner, name, alias)
    return ModelAlias(
        owner=model.owner,
        name=name,
        alias=alias,
        revision=1 if newest is None else newest.revision + 1,
        model_id=model.id,
        guarantee=guarantee,
        cutoff=cutoff,
        memo=_memo_to_store(None if current is None else current.memo, memo),
        author=author,
        protected=newest is not None and (current or newest).protected,
        updated_at=read_clock(session),
    )


def words_of(name: str, version: int, cutoff: AliasCutoff | None) -> str:
    """Return a model and its cutoff in words.

    >>> words_of("credit", 4, {"threshold": -0.21, "fpr": 0.1, "tpr": 0.5})
    'credit v4 (threshold −0.21)'
    """
    if cutoff is None:
        return f"{name} v{version} (no threshold)"
    if cutoff["threshold"] is None:
        return f"{name} v{version} (flags no rows)"
    threshold = f"{cutoff['threshold']:.6g}".replace("-", "−")
    return f"{name} v{version} (threshold {threshold})"


def in_words(session: Session, owner: str, alias: ModelAlias) -> str:
    model = repository.find(session, owner, alias.model_id)
    assert model is not None  # a model with an alias cannot be deleted
    return words_of(alias.name, model.version, alias.cutoff)


def _describe(
    session: Session,
    alias: ModelAlias,
    before: str | None,
    after: str,
    reason: str | None,
    change: _Change,
) -> None:
    """State the change in the audit log: `live: credit v3 (threshold −0.483) → v4 (threshold −0.21). Reason: …`"""
    if before is not None and before != "deleted":
        after = after.removeprefix(f"{alias.name} ")
    because = f". Reason: {reason}" if reason else ""
    describe(session, f"{alias.alias}: {before or 'new'} → {after}{because}{_mark(change)}")


def _mark(change: _Change) -> str:
    """Return what an audit entry says of a change without the needed approval; empty for others."""
    return BREAK_GLASS if change.break_glass else ""


@dataclass(frozen=True)
class _Change:
    """What makes a revision: an approval, or a suspended protection; and its evidence, new or another revision's."""

    kind: AliasChange
    approval: Approval | None
    break_glass: bool
    evidence: CollectedEvidence | None = None
    restores: ModelAliasHistory | None = None
    evidence_of: ModelAliasHistory | None = None


def _record(session: Session, alias: ModelAlias, model: Model, change: _Change) -> None:
    more: dict[str, Any] = {} if change.restores is None else {"restores": change.restores.revision}
    source = change.approval or change.restores or change.evidence_of
    if source is not None:
        more |= {
            "evidence": source.evidence,
            "evidence_key": source.evidence_key,
            "evidence_bytes": source.evidence_bytes,
        }
    elif change.evidence is not None:
        blob = catalogue.commit(session, change.evidence.archive)
        more = {
            "evidence": change.evidence.files,
            "evidence_key": blob.key,
            "evidence_bytes": blob.bytes,
        }
    if (approval := change.approval) is not None:
        more |= {
            "alias_request_id": approval.alias_request_id,
            "principal_id": approval.principal_id,
            "approved_by_id": approval.approved_by_id,
        }
    repository.touch_alias(session, alias)
    repository.add_to_history(
        session,
        alias,
        HISTORY_SHOWN,
        model_version=model.version,
        calibration_version=model.calibration_version,
        change=change.kind,
        break_glass=change.break_glass,
        **more,
    )
    session.flush()
    events.record(
        session,
        alias.owner,
        "alias.deleted" if change.kind == AliasChange.DELETED else "alias.changed",
        f"{alias.name}@{alias.alias}",
        name=alias.name,
        alias=alias.alias,
        revision=alias.revision,
        change=change.kind,
        model_id=model.id,
        model_version=model.version,
    )
    request_rows.void(
        session,
        alias.owner,
        f"{alias.name}@{alias.alias} was changed: it is at revision {alias.revision}",
        alias=(alias.name, alias.alias),
        except_id=None if approval is None else approval.alias_request_id,
    )


def guarantee_to_keep(
    session: Session,
    model: Model,
    current: ModelAlias | None,
    guarantee: StoredGuarantee | Literal["keep"] | None,
) -> tuple[StoredGuarantee | None, AliasCutoff | None]:
    """Return the guarantee that an alias has once it points to a model, and the cutoff with which the model meets it;
    "keep" stands for that of the `current` alias. Raises Invalid if the model cannot meet it.
    """
    of_alias = None if current is None else current.guarantee
    kept = of_alias if guarantee == "keep" else guarantee
    if kept is None:
        return None, None
    return kept, cutoff_to_keep(session, model, kept, given=guarantee != "keep")


def cutoff_to_keep(
    session: Session, model: Model, guarantee: StoredGuarantee, *, given: bool
) -> AliasCutoff:
    """Return the validation cutoff that meets a guarantee. Raises Invalid. given: the guarantee is in the request."""
    try:
        threshold, point = _kept_on(curve_on(session, model, VALIDATION), guarantee)
    except (NotFound, Invalid) as error:
        what = "target" if guarantee["confidence"] is None else "guarantee"
        detail = f"{model.name}:{model.version} cannot meet the {what}: {error.detail}"
        first: dict[str, Any] = dict(error.errors[0]) if error.errors else {}
        parameter = first.pop("parameter", None)
        pointer = f"/guarantee/{parameter}" if given and parameter else "/model_id"
        errors = [first | {"pointer": pointer, "detail": detail}]
        code = "no_guarantee" if isinstance(error, NotFound) else error.code
        raise Invalid(detail, code=code, errors=errors) from error
    return {
        "threshold": threshold if math.isfinite(threshold) else None,
        "fpr": point.fpr.value,
        "tpr": point.tpr.value,
    }


def _kept_on(
    measured: PartCurve, guarantee: StoredGuarantee
) -> tuple[float, core_metrics.OperatingPoint]:
    """Return the threshold that meets a guarantee (inf if it flags no row), and its operating point."""
    if (threshold := guarantee.get("threshold")) is not None:
        return threshold, point_on(measured, threshold=threshold)
    if (share := guarantee.get("flagged")) is not None:
        point = point_on(measured, flagged=share)
        return point.threshold, point
    point, _ = cutoff_on(
        measured,
        threshold=None,
        fpr=guarantee["fpr"],
        tpr=guarantee["tpr"],
        confidence=guarantee["confidence"],
    )
    return point.threshold, point


def find_target(session: Session, owner: str, name: str, ref: str) -> Model:
    try:
        found = find(session, owner, ref)
    except NotFound as error:
        raise NotFound(
            error.detail, errors=[{"pointer": "/model_id", "detail": error.detail}]
        ) from None
    if found.name != name:
        detail = f"an alias of {name[:100]!r} must point to a model of that name; {ref[:200]} is {found.name!r}"
        raise Invalid(detail, errors=[{"pointer": "/model_id", "detail": detail}])
    return found


def _lock_target(session: Session, owner: str, name: str, ref: str) -> Model:
    found = find_target(session, owner, name, ref)
    model = repository.find(session, owner, found.id, lock=True)
    if model is None:  # deleted between the two statements
        raise NotFound(f"there is no model {ref[:200]!r}")
    return model
