"""The feedback settings of an alias: which parts of its decisions are recorded, and how they are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.feedback import repository
from app.feedback.decision_ids import is_valid_id
from app.feedback.file_repository import BACKFILL, segments_of_origin
from app.ingest.values import CATEGORICAL
from app.models import aliases
from app.models import service as models
from app.models.revisions import check_revision
from app.models.service import why_not_recorded
from app.platform import catalogue
from app.platform.audit import allow_over_quota, describe, describe_changes
from app.platform.blobs import Blob, BlobMissing, BlobStore
from app.platform.callers import check_model
from app.platform.documents import MonitoredGroups, StoredFeedback
from app.platform.errors import (
    NotFound,
    PreconditionFailed,
    check_name,
    escape,
    invalid,
    refuse_all,
    shown,
)
from app.platform.ids import is_id, time_of
from app.platform.sql import Page, Reading, Session
from app.platform.tables import AliasFeedback, DecisionSegment, Model
from app.scoring.decisions import REPEAT_SECONDS
from core.linear.points import PointsScale

MAX_COMPARED = 20
"""Most groups that a monitor compares with a reference group."""
SLACK_SECONDS = 60.0
"""How far the time in an id may be from the time of the decision, because the request took long or a clock was set."""


def read(session: Session, owner: str, name: str, alias: str) -> AliasFeedback:
    """Return the newest settings. Raises NotFound if there are none."""
    aliases.get_alias(session, owner, name, alias)
    found = repository.newest(session, owner, name, alias)
    if found is None or found.settings is None:
        raise NotFound(f"{name}@{alias} has no feedback settings", code="no_feedback")
    return found


def replace(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    settings: StoredFeedback,
    *,
    author: str | None,
    if_revision: int | None,
    must_be_new: bool = False,
) -> tuple[AliasFeedback, bool]:
    """Store the next revision; returns it, and True if recording was off.

    Raises NotFound, the errors of `check_revision`, and Invalid for settings that do not fit the alias and its model.
    """
    check(session, owner, name, alias, settings)
    allow_over_quota(session)  # fewer days free the bytes of decisions
    current = repository.newest(session, owner, name, alias)
    is_on = current is not None and current.settings is not None
    if is_on or if_revision is not None:
        check_revision(
            f"the feedback settings of {name}@{alias}",
            current if is_on else None,
            if_revision,
            must_be_new,
        )
    _add(session, owner, name, alias, current, settings, author)
    before = current.settings if current is not None else None
    describe_changes(session, f"Feedback of {name}@{alias}", before or {}, settings)
    return read(session, owner, name, alias), not is_on


def remove(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    *,
    author: str | None,
    if_revision: int | None,
) -> None:
    """Stop recording. Recorded decisions are kept for the days of their settings."""
    current = read(session, owner, name, alias)
    check_model(name)
    allow_over_quota(session)
    check_revision(
        f"the feedback settings of {name}@{alias}", current, if_revision, must_be_new=False
    )
    _add(session, owner, name, alias, current, None, author)
    describe(session, f"Feedback of {name}@{alias}: decisions recorded → no longer recorded")


def _add(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    current: AliasFeedback | None,
    settings: StoredFeedback | None,
    author: str | None,
) -> None:
    row = {
        "owner": owner,
        "name": name,
        "alias": alias,
        "revision": 1 if current is None else current.revision + 1,
        "settings": settings,
        "author": author,
    }
    if not repository.add_revision(session, row):
        raise PreconditionFailed(
            f"the feedback settings of {name}@{alias} were changed at the same time: read them again"
        )


def check(session: Session, owner: str, name: str, alias: str, settings: StoredFeedback) -> None:
    """Raises NotFound, and Invalid for settings that do not fit the alias."""
    found = aliases.get_alias(session, owner, name, alias).alias
    check_model(name)
    model = models.find(session, owner, found.model_id)
    if (why := why_not_recorded(model)) is not None:
        raise invalid(
            "",
            "feedback needs a model that was trained on a positive and a negative class; "
            f"{_shown(model)} was not: {why}",
            code="feedback_not_available",
        )
    refuse_all(list(_errors_of(settings, model)))
    if settings["explore"] is not None and found.guarantee is None:
        raise invalid(
            "/explore",
            f"explore needs an alias that flags rows, but {name}@{alias} has no cutoff",
        )
    if settings["shadow"] is not None:
        _check_shadow(session, owner, settings, model)


def _shown(model: Model) -> str:
    return f"{model.name}:{model.version}"


def _errors_of(settings: StoredFeedback, model: Model) -> Iterator[dict[str, Any]]:
    """Yield the errors of settings that do not fit a model or each other."""
    known = {feature["name"] for feature in model.features}
    for place, feature in enumerate(settings["features"] or ()):
        pointer = f"/features/{place}"
        if feature not in known:
            detail = f"{_shown(model)} has no feature {shown(feature)}"
            yield {"pointer": pointer, "detail": detail, "code": "unknown_feature"}
        elif feature in (settings["features"] or ())[:place]:
            detail = f"features must name each feature once, got {shown(feature)} again"
            yield {"pointer": pointer, "detail": detail}
    if (groups := settings["protected"]) is not None:
        yield from _errors_of_groups(groups, model)
    horizon = settings["outcome"]["horizon_days"]
    if settings["days"] < horizon:
        detail = (
            f"days must be at least outcome.horizon_days ({horizon:g}), or decisions would be deleted before their "
            f"outcomes are final, got {settings['days']}"
        )
        yield {"pointer": "/days", "detail": detail}


def _errors_of_groups(groups: MonitoredGroups, model: Model) -> Iterator[dict[str, Any]]:
    numbers = {each["name"] for each in model.features if each["type"] != CATEGORICAL}
    for name, values in groups["columns"].items():
        pointer = f"/protected/columns/{escape(name)}"
        if name in numbers:
            detail = (
                f"a protected column must have strings, but {shown(name)} is a feature of {_shown(model)} of another "
                "type: send the groups in a column of another name"
            )
            yield {"pointer": pointer, "detail": detail}
        if len(set(values)) < len(values):
            again = next(each for i, each in enumerate(values) if each in values[:i])
            detail = f"{shown(name)} must name each group once, got {shown(again)} again"
            yield {"pointer": pointer, "detail": detail}
    compared = sum(len(values) - 1 for values in groups["columns"].values())
    if compared > MAX_COMPARED:
        detail = (
            f"columns can have at most {MAX_COMPARED} groups besides the reference groups, because all tests share "
            f"one probability of a false alarm; got {compared}"
        )
        yield {"pointer": "/protected/columns", "detail": detail}


def _check_shadow(session: Session, owner: str, settings: StoredFeedback, model: Model) -> None:
    """Raise NotFound and Invalid for a shadow model that cannot score the recorded features."""
    shadow = models.find_named(
        session, owner, settings["shadow"] or "", {"pointer": "/shadow"}
    ).model
    if shadow.id == model.id:
        raise invalid(
            "/shadow", f"shadow must be another model than that of the alias, {_shown(model)}"
        )
    if (why := why_not_recorded(shadow)) is not None:
        raise invalid(
            "/shadow", f"shadow must be a model with a positive and a negative class: {why}"
        )
    recorded = settings["features"]
    types = {
        each["name"]: each["type"]
        for each in model.features
        if recorded is None or each["name"] in recorded
    }
    for feature in shadow.features:
        name = feature["name"]
        if name not in types:
            raise invalid(
                "/shadow",
                f"shadow can read only recorded features, but {_shown(shadow)} needs {shown(name)}",
                code="unknown_feature",
            )
        if types[name] != feature["type"]:
            raise invalid(
                "/shadow",
                f"{shown(name)} is {feature['type']} in {_shown(shadow)}, but is recorded as {types[name]}",
            )


def list_files(
    session: Session,
    owner: str,
    name: str | None,
    alias: str | None,
    *,
    limit: int,
    after: str | None,
) -> tuple[Page[DecisionSegment], dict[str, Blob]]:
    """Return sealed files, oldest first, with their blobs."""
    for parameter, value in (("name", name), ("alias", alias)):
        if value is not None:
            check_name(parameter, value)
    page = repository.list_segments(session, owner, name, alias, limit=limit, after=after)
    return page, catalogue.entries(session, [row.segment_key for row in page.data])


def find_file(session: Session, owner: str, file_id: str) -> tuple[DecisionSegment, Blob]:
    """Raises NotFound."""
    found = None
    if is_id(file_id, "seg"):
        found = repository.find_segment(session, owner, file_id)
    if found is None:
        raise NotFound(f"there is no file of decisions {file_id[:100]!r}")
    return found, catalogue.find(session, found.segment_key)


@dataclass(frozen=True)
class FoundDecision:
    """A decision: its file, the values of its columns by name, and the scale of its model if that is a scorecard."""

    segment: DecisionSegment
    values: dict[str, Any]
    scale: PointsScale | None

    def columns(self, prefix: str) -> dict[str, Any]:
        """Return the recorded values by name; the prefix is `FEATURE` or `PROTECTED`."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.values.items()
            if name.startswith(prefix)
        }


def find_decision(
    reading: Reading, blobs: BlobStore, owner: str, decision_id: str
) -> FoundDecision:
    """Read the files of its time (an hour of them with an idempotency key), if we have made its id; else all files of
    other systems. Raises NotFound, also if not yet sealed.
    """
    if is_valid_id(decision_id):
        for segment, blob in reading(_files_of, owner, decision_id):
            try:
                values = _values(blobs.fetch(blob), decision_id)
            except BlobMissing:  # the file was deleted or rewritten since
                continue
            if values is not None:
                return FoundDecision(segment, values, reading(_scale_of, owner, values["model_id"]))
    raise NotFound(
        f"there is no decision {shown(decision_id)}. A decision can be read about a minute after its response"
    )


def _scale_of(session: Session, owner: str, model_id: str) -> PointsScale | None:
    try:
        return models.points_scale(models.find(session, owner, model_id))
    except NotFound:  # it was deleted
        return None


def _files_of(session: Session, owner: str, decision_id: str) -> list[tuple[DecisionSegment, Blob]]:
    """Return files that may have a decision, the likely ones first: our ids contain its time."""
    if is_id(decision_id, "dec"):
        at = time_of(decision_id)
        found = repository.segments_at(
            session, owner, at - SLACK_SECONDS, at + REPEAT_SECONDS + SLACK_SECONDS
        )
        found = sorted(found, key=lambda row: max(row.first_at - at, at - row.last_at, 0.0))
    else:
        found = segments_of_origin(session, owner, BACKFILL)[::-1]
    entries = catalogue.entries(session, [row.segment_key for row in found])
    return [(row, entries[row.segment_key]) for row in found if row.segment_key in entries]


def _values(path: Path, decision_id: str) -> dict[str, Any] | None:
    """Return None if the file does not have the decision."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False) as file:
        for group in range(file.num_row_groups):
            ids = file.read_row_group(group, columns=["decision_id"]).column("decision_id")
            row = pc.index(ids, decision_id).as_py()
            if row >= 0:
                values: dict[str, Any] = file.read_row_group(group).slice(row, 1).to_pylist()[0]
                return values
    return None
