"""Aliases: names that move from one version of a model to another, their guarantees and their history."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from app.models import repository
from app.models.curves import PartCurve, curve_on
from app.models.operating_points import cutoff_on, point_on
from app.models.revisions import check_revision
from app.models.service import HISTORY_SHOWN, VALIDATION, find
from app.platform.audit import allow_over_quota
from app.platform.documents import AliasCutoff, StoredGuarantee, StoredMemo
from app.platform.errors import NAME, Invalid, NotFound, check_name
from app.platform.sql import Page, Session
from app.platform.tables import Model, ModelAlias, ModelAliasHistory
from core import metrics as core_metrics


@dataclass(frozen=True)
class AliasState:
    """An alias, and its history."""

    alias: ModelAlias
    history: list[ModelAliasHistory]


def get_alias(session: Session, owner: str, name: str, alias: str) -> AliasState:
    """Return the alias with its history, newest first. Raises NotFound."""
    current = _find(session, owner, name, alias)
    return AliasState(current, list(repository.history(session, owner, name, alias, HISTORY_SHOWN)))


def _find(session: Session, owner: str, name: str, alias: str, *, lock: bool = False) -> ModelAlias:
    """Return the row of an alias; with `lock`, locked until the transaction ends. Raises NotFound."""
    current = None
    if re.fullmatch(NAME, name) and re.fullmatch(NAME, alias):
        current = repository.find_alias(session, owner, name, alias, lock=lock)
    if current is None:
        raise NotFound(f"there is no alias {name[:100]}@{alias[:100]}")
    return current


def list_aliases(
    session: Session, owner: str, name: str, *, limit: int, after: str | None
) -> Page[ModelAlias]:
    """Return a page of the aliases of a model name, the last moved first. Raises NotFound if there is no such model."""
    if not re.fullmatch(NAME, name) or repository.find_latest(session, owner, name) is None:
        raise NotFound(f"there is no model {name[:200]!r}")
    return repository.list_aliases(session, owner, name, limit=limit, after=after)


def set_alias(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    ref: str,
    *,
    guarantee: StoredGuarantee | Literal["keep"] | None = "keep",
    memo: StoredMemo | None = None,
    author: str | None = None,
    if_revision: int | None,
    must_be_new: bool = False,
) -> tuple[AliasState, bool]:
    """Point the alias at a model of the same name, given by any reference; returns the alias, and True if it is new.

    To move one that exists the caller gives the revision that they saw (`if_revision`), so that no move is lost.
    `guarantee` replaces that of the alias, None removes it; raises Invalid if the model cannot meet it.
    `memo` and `author` belong to this revision alone.
    """
    check_name("alias", alias)
    model = _check_target(session, owner, name, ref)
    current = repository.find_alias(session, owner, name, alias, lock=True)
    created = False
    if current is None and if_revision is None:
        created = repository.create(session, owner, name, alias, model.id)
        current = repository.find_alias(session, owner, name, alias, lock=True)
    if not created:
        # A bad version must be rolled back at once; an alias keeps at most HISTORY_SHOWN revisions.
        allow_over_quota(session)
        check_revision(f"{name}@{alias}", current, if_revision, must_be_new)
        assert current is not None
        repository.move(session, current, model.id)
    assert current is not None
    kept = current.guarantee if guarantee == "keep" else guarantee
    cutoff = (
        None if kept is None else _cutoff_to_keep(session, model, kept, given=guarantee != "keep")
    )
    repository.note_decision(
        session, current, guarantee=kept, cutoff=cutoff, memo=memo, author=author
    )
    repository.add_to_history(session, current, HISTORY_SHOWN)
    session.flush()
    return get_alias(session, owner, name, alias), created


def remove_alias(
    session: Session, owner: str, name: str, alias: str, *, if_revision: int | None
) -> None:
    """Delete the alias, given its revision as the caller has seen it. Its history is kept: a new alias of the same name
    continues it.
    """
    current = _find(session, owner, name, alias, lock=True)
    check_revision(f"{name}@{alias}", current, if_revision, must_be_new=False)
    repository.remove(session, current)


def _cutoff_to_keep(
    session: Session, model: Model, guarantee: StoredGuarantee, *, given: bool
) -> AliasCutoff:
    """Return the cutoff on the validation curve with which a model meets a guarantee. Raises Invalid if it cannot.

    `given`: the guarantee is part of the request.
    """
    try:
        threshold, point = _kept_on(curve_on(session, model, VALIDATION), guarantee)
    except (NotFound, Invalid) as error:
        detail = f"{model.name}:{model.version} cannot meet the guarantee: {error.detail}"
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
    """Return the threshold that meets a guarantee on a curve (inf if it flags no row), and its operating point."""
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


def _check_target(session: Session, owner: str, name: str, ref: str) -> Model:
    """Return the model of a reference, locked; raises NotFound, and Invalid for a model of another name."""
    try:
        found = find(session, owner, ref)
    except NotFound as error:
        raise NotFound(
            error.detail, errors=[{"pointer": "/model_id", "detail": error.detail}]
        ) from None
    if found.name != name:
        detail = f"an alias of {name[:100]!r} must point to a model of that name; {ref[:200]} is {found.name!r}"
        raise Invalid(detail, errors=[{"pointer": "/model_id", "detail": detail}])
    model = repository.find(session, owner, found.id, lock=True)
    if model is None:  # deleted between the two statements
        raise NotFound(f"there is no model {ref[:200]!r}")
    return model
