"""The decision about an alias that evidence is stored for: who asked for what and why, who approved it, and the cutoff
and the groups before and after, as data and as a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.http.schemas import AliasName, ModelsName, Resource, Timestamp
from app.models import alias_changes, repository, threshold_groups
from app.models.alias_schemas import AliasSide
from app.models.threshold_group_schemas import ThresholdGroups
from app.platform.documents import StoredMemo
from app.platform.sql import Session, read_clock
from app.platform.tables import Model, ModelAlias
from app.reports import document
from app.reports.document import Document, Paragraph, Section, Table
from app.reports.sections import VERDICTS, group_tables

Json = dict[str, Any]
_RATES = {"rows flagged": "flagged", "TPR": "tpr", "FPR": "fpr", "precision": "precision"}
_WITHOUT_GROUPS = 2
"""Sections of a page without groups."""


class DecisionSide(Resource):
    """What the alias served before the decision, or serves after it."""

    words: str
    """Model and threshold in words."""
    serves: AliasSide | None
    """Model, guarantee, cutoff, its rates and the calibration. Null if the alias does not exist, or if the change
    leaves it as it is."""
    groups: ThresholdGroups | None
    """Groups of protected columns on the validation rows, at this cutoff. Null without a cutoff or without protected
    columns."""


class DecisionApproval(Resource):
    """The approval of a request to change a protected alias."""

    alias_request_id: str
    """Id of the request."""
    approved_by: str | None
    """Name of the principal that approved it."""
    approved_at: Timestamp
    """When it was approved."""
    reason: str | None
    """The approver's reason. Null if none was given."""


class AliasDecision(Resource):
    """A change of an alias, for which a report is the evidence."""

    name: ModelsName
    alias: AliasName
    kind: str
    """What is changed, as in a request to change a protected alias."""
    before: DecisionSide
    """Before the change."""
    after: DecisionSide
    """After the change."""
    model_id: str
    """The model that the change concerns."""
    model_version: int
    """Version of this model."""
    artifact_sha256: str
    """SHA-256 of its artifact."""
    calibration_version: int | None
    """Its calibration. Null without one."""
    memo: StoredMemo | None
    """Capacity, costs and prevalence that the decision is based on. Null if none are recorded."""
    reason: str | None
    """Reason for the change. Null if none was given."""
    requested_by: str | None
    """Name of the principal that asked for it."""
    requested_at: Timestamp
    """When the evidence was collected."""
    protected: bool
    """True if the alias is protected: another person must approve the change."""
    approval: DecisionApproval | None = None
    """The approval. Null before it, and for a direct change."""


@dataclass(frozen=True)
class Change:
    """A change of an alias, in words and as data. `current` and `proposed` are the alias before and after it: None if
    it does not exist, or, of `proposed`, if the change concerns another property than what the alias points to.
    """

    kind: str
    before: str | None
    after: str
    model: Model
    current: ModelAlias | None
    proposed: ModelAlias | None
    reason: str | None
    author: str | None


def read_decision(
    session: Session, owner: str, name: str, alias: str, change: Change
) -> Callable[[], AliasDecision]:
    """Read what a change concerns; return a function that computes the rates without the database."""
    current = change.current
    model_before = None if current is None else repository.find(session, owner, current.model_id)
    before = _read_side(session, current, model_before)
    after = _read_side(session, change.proposed, change.model)
    model, memo = change.model, None if change.proposed is None else change.proposed.memo
    known: dict[str, Any] = {
        "name": name,
        "alias": alias,
        "kind": change.kind,
        "model_id": model.id,
        "model_version": model.version,
        "artifact_sha256": model.artifact_sha256,
        "calibration_version": model.calibration_version,
        "memo": memo,
        "reason": change.reason,
        "requested_by": change.author,
        "requested_at": read_clock(session),
        "protected": any(each and each.protected for each in (current, change.proposed)),
    }
    return lambda: AliasDecision(
        before=before(change.before or "no alias"), after=after(change.after), **known
    )


def _read_side(
    session: Session, alias: ModelAlias | None, model: Model | None
) -> Callable[[str], DecisionSide]:
    if alias is None or model is None:
        return lambda words: DecisionSide(words=words, serves=None, groups=None)
    side = alias_changes.read_side(session, model, alias.guarantee, alias.cutoff)
    groups = (
        None
        if alias.cutoff is None
        else threshold_groups.find_at_cutoff(session, model, alias.cutoff)
    )

    def compute(words: str) -> DecisionSide:
        found = None
        if groups is not None:
            computed = groups.compute(threshold_groups.NOT_FLAGGED)
            found = ThresholdGroups.model_validate(threshold_groups.members_of(computed))
        return DecisionSide(words=words, serves=side(), groups=found)

    return compute


def document_of_decision(found: Json) -> Document:
    """Return the page on a decision, given as JSON."""
    sides = [found["before"], found["after"]]
    sections = [
        Section("Decision", [Table((), list(_facts(found)))]),
        Section(
            "Before and after",
            [Table(("", "before", "after"), list(_rows(sides))), *map(Paragraph, _notes(sides))],
        ),
    ]
    for title, side in zip(("before", "after"), sides, strict=True):
        if side["groups"] is not None:
            sections.append(Section(f"Groups {title}", group_tables(side["groups"])))
    if len(sections) == _WITHOUT_GROUPS:
        words = "No groups were compared: the models have no protected columns, or the alias has no cutoff."
        sections.append(Section("Groups", [Paragraph(words)]))
    alias, model = f"{found['name']}@{found['alias']}", f"{found['name']}:{found['model_version']}"
    return Document(
        title=f"Decision: {alias}",
        subtitle=f"{sides[0]['words']} → {sides[1]['words']}",
        footer=f"{alias} · decision on {model} ({found['model_id']})",
        sections=sections,
    )


def _facts(found: Json) -> Iterator[list[str]]:
    """Yield who asked for what and why, and who approved it."""
    yield ["alias", f"{found['name']}@{found['alias']}"]
    yield ["change", found["kind"].replace("_", " ")]
    yield ["model", f"{found['name']}:{found['model_version']} ({found['model_id']})"]
    yield ["artifact, SHA-256", found["artifact_sha256"]]
    calibration = found["calibration_version"]
    yield ["calibration", "none" if calibration is None else f"version {calibration}"]
    yield [
        "requested",
        f"by {found['requested_by'] or 'an unnamed key'}, {_at(found['requested_at'])}",
    ]
    yield ["reason", found["reason"] or "none given"]
    if (approval := found["approval"]) is not None:
        yield ["request", approval["alias_request_id"]]
        yield [
            "approved",
            f"by {approval['approved_by'] or 'an unnamed key'}, {_at(approval['approved_at'])}",
        ]
        yield ["approver's reason", approval["reason"] or "none given"]
    elif found["protected"]:
        yield ["approved", "no"]
    else:
        yield ["approved", "not required: the alias is not protected"]
    memo = found["memo"] or {}
    if memo.get("review") is not None:
        yield ["review capacity", f"{memo['review']:,.0f} of {memo['rows']:,.0f} rows"]
    if memo.get("cost_false_positive") is not None:
        times = "" if memo["amount"] is None else f" times {memo['amount']}"
        yield [
            "costs",
            f"false positive {memo['cost_false_positive']:g}, false negative {memo['cost_false_negative']:g}{times}",
        ]


def _at(moment: str) -> str:
    return f"{moment[:19].replace('T', ' ')} UTC"


def _notes(sides: Sequence[Json]) -> Iterator[str]:
    """Say where the rates come from, if two models are compared."""
    served = [side["serves"] for side in sides]
    if all(each and each["point"] for each in served) and (
        served[0]["model_id"] != served[1]["model_id"]
    ):
        yield (
            "The rates come from each version's own validation rows, which may be different rows: their difference "
            "does not say which version is better."
        )


def _rows(sides: Sequence[Json]) -> Iterator[list[str]]:
    """Yield what the alias serves before and after, row by row."""
    yield ["serves", *(side["words"] for side in sides)]
    points = [side["serves"] and side["serves"]["point"] for side in sides]
    if any(points):
        for name, of in _RATES.items():
            yield [
                name,
                *("—" if point is None else document.interval(point[of], 3) for point in points),
            ]
    groups = [side["groups"] for side in sides]
    if any(groups):
        verdicts = ("—" if each is None else VERDICTS[each["passes"]] for each in groups)
        yield ["four-fifths rule for not flagged", *verdicts]
