"""The registry of models: finding by reference, listing, deletion."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from app.access import holds
from app.models import alias_request_repository as request_rows
from app.models import repository
from app.platform.audit import describe
from app.platform.callers import check_model
from app.platform.documents import AliasCutoff, RocMetrics, StoredFeedback
from app.platform.errors import NAME, Conflict, Invalid, NotFound, check_id, check_name
from app.platform.ids import is_id
from app.platform.sql import ALL_ROWS, Page, RowFilter, Session
from app.platform.tables import DatasetKind, Model
from core.linear.points import PointsScale

SCORECARD = "scorecard"
"""The algorithm whose models have bins, and points on a scale of their own."""
VALIDATION = "validation"
PARTS = (VALIDATION, "train")
HISTORY_SHOWN = 100
_REF = re.compile(rf"({NAME})(?:@({NAME})|:([1-9][0-9]{{0,8}}))?")


class AliasFeedback(NamedTuple):
    """The feedback settings of an alias, their revision, and that of the alias."""

    name: str
    alias: str
    alias_revision: int
    revision: int
    settings: StoredFeedback


class ResolvedModel(NamedTuple):
    """A model, the cutoff of the alias that referred to it (if guaranteed), and its feedback settings (if recorded)."""

    model: Model
    cutoff: AliasCutoff | None
    feedback: AliasFeedback | None = None


def find(session: Session, owner: str, ref: str) -> Model:
    """Return the owner's model by id, `name` (the latest version), `name@alias` or `name:version`. Raises NotFound."""
    return find_with_cutoff(session, owner, ref).model


def find_with_cutoff(session: Session, owner: str, ref: str) -> ResolvedModel:
    """Return the cutoff of the alias, too. Raises NotFound."""
    model, cutoff, feedback = None, None, None
    if is_id(ref, "mdl"):
        model = repository.find(session, owner, ref)
    elif match := _REF.fullmatch(ref):
        name, alias, version = match.groups()
        if alias is not None:
            found = repository.find_by_alias(session, owner, name, alias)
            if found is not None:
                model, cutoff = found.model, found.cutoff
                if found.settings is not None and why_not_recorded(model) is None:
                    feedback = AliasFeedback(
                        name, alias, found.alias_revision, found.feedback_revision, found.settings
                    )
        elif version is not None:
            model = repository.find_version(session, owner, name, int(version))
        else:
            model = repository.find_latest(session, owner, name)
    if model is None:
        raise NotFound(f"there is no model {ref[:200]!r}")
    return ResolvedModel(model, cutoff, feedback)


def why_not_recorded(model: Model) -> str | None:
    """Return why decisions cannot be recorded, None if they can: an outcome is positive or negative."""
    if model.kind != DatasetKind.BIPARTITE:
        return f"its dataset is of kind {model.kind}"
    return None if model.query is None else "it ranks the rows of lists"


def points_scale(model: Model) -> PointsScale | None:
    """Return the scale of a scorecard's points, by its parameters; None for another model."""
    if model.algorithm != SCORECARD:
        return None
    own = {field.name for field in fields(PointsScale)}
    return PointsScale(**{name: value for name, value in model.parameters.items() if name in own})


def is_approximate(model: Model, part: str) -> bool:
    """True for out-of-fold scores: their thresholds were never applied to the model."""
    return part == VALIDATION and model.validation.get("method") == "cross_validation"


@dataclass(frozen=True)
class Listed:
    """A model in a list, with its aliases and its metrics on the validation rows."""

    model: Model
    aliases: list[str]
    metrics: RocMetrics | None


def list_page(
    session: Session,
    owner: str,
    *,
    name: str | None,
    dataset_id: str | None = None,
    aliased: bool = False,
    outdated: bool = False,
    only: RowFilter = ALL_ROWS,
    limit: int,
    after: str | None,
) -> Page[Listed]:
    """`aliased` selects models with an alias, `outdated` those of them that have a newer version."""
    if name is not None:
        check_name("name", name)
    check_id("dataset_id", dataset_id, "ds")
    page = repository.list_page(
        session,
        owner,
        name=name,
        dataset_id=dataset_id,
        aliased=aliased,
        outdated=outdated,
        only=only,
        limit=limit,
        after=after,
    )
    ids = [model.id for model in page.data]
    aliases: dict[str, list[str]] = {model_id: [] for model_id in ids}
    for model_id, alias in repository.aliases_of(session, owner, ids):
        aliases[model_id].append(alias)
    metrics = repository.areas_of(session, ids, VALIDATION)
    data = [Listed(model, aliases[model.id], metrics.get(model.id)) for model in page.data]
    return Page(data, page.has_more, page.next)


class OutdatedAlias(NamedTuple):
    """An alias that points to an older version of its name, and the newest version."""

    alias: str
    model: Model
    newest_id: str
    newest_version: int


def outdated_aliases(session: Session, owner: str, limit: int) -> tuple[list[OutdatedAlias], bool]:
    """Return outdated aliases of up to `limit` models, the newest first, and True if there are more such models."""
    behind = list_page(session, owner, name=None, outdated=True, limit=limit, after=None)
    names = {each.model.name for each in behind.data}
    newest = repository.find_newest(session, owner, names)
    aliases = [
        OutdatedAlias(alias, each.model, *newest[each.model.name])
        for each in behind.data
        for alias in each.aliases
    ]
    return aliases, behind.has_more


def delete(session: Session, owner: str, model_id: str) -> None:
    """Only an id is accepted, so that nobody deletes a newer version than they looked at."""
    if not is_id(model_id, "mdl"):
        raise Invalid(f"to delete a model, use its id (mdl_…), got {model_id[:100]!r}")
    if (found := repository.find(session, owner, model_id)) is not None:
        check_model(found.name)
    holds.lock(session, owner)
    holds.check(session, owner, model_id=model_id)
    model = repository.find(session, owner, model_id, lock=True)
    if model is None:
        raise NotFound(f"there is no model {model_id!r}")
    names = repository.pointing_at(session, owner, model_id)
    if names:
        shown = ", ".join(f"{model.name}@{alias}" for alias in names[:5])
        raise Conflict(
            f"model {model_id} is in use as {shown}: move or delete these aliases first",
            code="model_in_use",
        )
    busy = repository.unfinished_jobs(session, owner, model_id)
    if busy:
        raise Conflict(
            f"model {model_id} is used by {len(busy)} unfinished job{'' if len(busy) == 1 else 's'}: "
            f"{', '.join(busy[:5])}",
            code="model_in_use",
        )
    repository.trash(session, owner, model_id)
    words = f"the model {model.name}:{model.version} was deleted"
    request_rows.void(session, owner, words, model_id=model_id)
    describe(session, f"Model {model.name}:{model.version} → trash")


def forget_name(session: Session, owner: str, name: str) -> None:
    """Delete the reason codes of a name whose last version was permanently deleted."""
    repository.lock_name(session, owner, name)
    if not repository.has_version(session, owner, name):
        repository.empty_reason_codes(session, owner, name)


def find_label(labels: Sequence[str] | None, name: str | None) -> int:
    """Return a label's position; for a model with one score per row, `name` must be None. Raises Invalid."""
    if labels is None and name is None:
        return 0
    known = labels or []
    if name not in known:
        rule = f"must be one of {', '.join(map(repr, known[:20]))}"
        if labels is None:
            rule = "is not allowed: the model has one score per row"
        got = "it is missing" if name is None else f"got {name[:100]!r}"
        detail = f"label {rule}; {got}"
        raise Invalid(detail, errors=[{"parameter": "label", "detail": detail}])
    return known.index(name)


def find_named(session: Session, owner: str, ref: str, position: dict[str, Any]) -> ResolvedModel:
    """Raises NotFound with the `position` in the request, such as `{"pointer": "/model"}`."""
    try:
        return find_with_cutoff(session, owner, ref)
    except NotFound as error:
        raise NotFound(error.detail, errors=[position | {"detail": error.detail}]) from error


def find_to_read(session: Session, owner: str, model_id: str) -> Model:
    model = repository.find(session, owner, model_id)
    if model is None:
        raise Conflict(f"model {model_id} was deleted before the job ran", code="model_deleted")
    return model


def find_to_use(session: Session, owner: str, ref: str, position: dict[str, Any]) -> ResolvedModel:
    """As `find_named`, for a new job: locks the model against deletion until the transaction ends."""
    found = find_named(session, owner, ref, position)
    if not repository.lock_shared(session, owner, found.model.id):
        detail = f"model {found.model.id} was just deleted"
        raise NotFound(detail, errors=[position | {"detail": detail}])
    return found
