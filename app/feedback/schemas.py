"""Feedback over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import Field

from app.feedback.monitor_schemas import DetectableDrop
from app.feedback.segments import FEATURE, PROTECTED
from app.feedback.service import FoundDecision
from app.http.schemas import AliasName, Body, ModelsName, PageOf, Resource, Text, Timestamp
from app.platform.blobs import Blob
from app.platform.documents import (
    Exploration,
    MonitoredGroups,
    MonitorSettings,
    OutcomeRule,
    PeriodKind,
    StoredFeedback,
)
from app.platform.tables import DecisionSegment

_Fraction = Annotated[float, Field(gt=0, le=1)]


class ExplorationRequest(Body):
    """Rows to review at random, so that the outcomes of the others can be estimated."""

    of: Literal["unflagged", "flagged"]
    """Rows to draw from. `unflagged`: flagged rows are always reviewed. `flagged`: the outcomes of unflagged rows are
    always known, as in lending."""
    rate: _Fraction = Field(examples=[0.02])
    """Fraction of these rows that is drawn."""


class OutcomeRuleRequest(Body):
    """How outcomes are attributed to decisions, and when a decision without an outcome is mature."""

    horizon_days: Annotated[float, Field(gt=0, le=3650)] = 90.0
    """Days after a decision at which its outcome counts as final."""
    silence: Literal["negative"] | None = None
    """How a decision without an outcome counts at the horizon. Null: unknown."""
    attribute: Literal["last_before_event", "first_before_event", "all_before_event"] = (
        "last_before_event"
    )
    """Decisions of an entity that an outcome without a decision id belongs to."""


class MonitoredGroupsRequest(Body):
    """Groups of entities between which decisions should not differ."""

    columns: Annotated[
        dict[Text, Annotated[list[Text], Field(min_length=2, max_length=20)]],
        Field(min_length=1, max_length=10),
    ] = Field(examples=[{"sex": ["male", "female"]}])
    """Protected columns, each with the values that are compared; the first one is the reference group. Requests may
    send these columns beside the features. They are recorded with the decision, apart from the features, and are never
    scored. A value that is not listed is recorded as missing."""
    favourable: Literal["not_flagged", "flagged"] = "not_flagged"
    """Which decision is favourable to the entity. Its rates are compared between groups."""


class MonitorRequest(Body):
    """The scheduled tests of an alias."""

    period: PeriodKind = "week"
    """Length of a period. A test is made at the end of each."""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Probability of a false alarm within a year, over all families together."""
    tolerance: Annotated[
        dict[Literal["auc", "calibration"], Annotated[float, Field(ge=0, le=1)]],
        Field(max_length=2),
    ] = Field(default={}, examples=[{"auc": 0.01}])
    """Differences from the validation, by metric, up to which nothing is wrong: of the AUC, and of the log-odds of
    calibrated probabilities. Default: 0."""


class FeedbackRequest(Body):
    """Which parts of the decisions of an alias to record. Every member has a default."""

    keep: _Fraction = 1.0
    """Fraction of the decisions that is recorded. Explored rows are always recorded."""
    features: Annotated[list[Text], Field(max_length=10_000)] | None = Field(
        default=None, examples=[["age", "income"]]
    )
    """Features to record with each decision. Null: all. A later version of the model may lack one, which is then not
    recorded."""
    days: Annotated[int, Field(ge=1, le=3650)] = 400
    """Days after which decisions are deleted."""
    explore: ExplorationRequest | None = None
    """Rows to review at random. Needs an alias with a guarantee. Null: none."""
    outcome: OutcomeRuleRequest = OutcomeRuleRequest()
    """Attribution and maturity of outcomes."""
    shadow: Text | None = Field(default=None, examples=["churn:7"])
    """Model to compare on the same rows. It can read only recorded features. Null: none."""
    protected: MonitoredGroupsRequest | None = None
    """Groups to record with each decision. They are compared if `monitor` is set. Null: none."""
    monitor: MonitorRequest | None = None
    """Scheduled tests. Null: none."""

    def as_stored(self) -> StoredFeedback:
        return cast(StoredFeedback, self.model_dump(mode="json"))


class Feedback(Resource):
    """The feedback settings of an alias."""

    name: str = Field(examples=["churn"])
    """Name of the models."""
    alias: str = Field(examples=["live"])
    """The alias."""
    revision: int
    """Revision number, from 1. It is also the ETag."""
    keep: float
    """Fraction of the decisions that is recorded."""
    features: list[str] | None
    """Features that are recorded with each decision. Null: all."""
    days: int
    """Days after which decisions are deleted."""
    explore: Exploration | None
    """Rows to review at random. Null: none."""
    outcome: OutcomeRule
    """Attribution and maturity of outcomes."""
    shadow: str | None
    """Model to compare on the same rows. Null: none."""
    protected: MonitoredGroups | None
    """Groups to record with each decision. They are compared if `monitor` is set. Null: none."""
    monitor: MonitorSettings | None
    """Scheduled tests. Null: none."""
    detectable: DetectableDrop | None
    """The smallest fall of the AUC that the monitor can find. Null without a monitor or a validation curve, and if the
    service is busy: `…/monitor` also returns it."""
    author: str | None
    """Name of the key that made this revision."""
    at: Timestamp
    """Time of this revision."""


class Decision(Resource):
    """A recorded decision: one scoring of one entity by an alias."""

    decision_id: str
    """Id of the decision."""
    id: str | None
    """Id of the entity, as it was sent. Null if none was sent."""
    at: Timestamp
    """Time of the decision."""
    name: ModelsName
    alias: AliasName
    revision: int
    """Revision of the feedback settings."""
    alias_revision: int
    """Revision of the alias."""
    model_id: str
    """Id of the model."""
    score: float
    """Score."""
    points: float | None
    """The score in points. Null unless the model is of the algorithm `scorecard` and still exists."""
    probability: float | None
    """Calibrated probability. Null if the model had no calibration."""
    threshold: float | None
    """Scores of at least this are flagged. Null if the alias had no guarantee, or flagged no score."""
    flag: bool | None
    """Whether the row was flagged. Null without a guarantee."""
    explored: bool
    """Whether the row was drawn for review at random."""
    propensity: float | None
    """Probability that the outcome is looked for. Null if it is unknown, because nothing is explored."""
    keep: float
    """Probability with which the decision was recorded."""
    caller: str | None
    """Id of the key of the request."""
    origin: Literal["score", "batch", "backfill"]
    """How the row was scored."""
    request_id: str | None
    """Id of the request."""
    features: dict[str, float | bool | str | None]
    """The recorded features. Null: missing, or a category that did not occur in training."""
    protected: dict[str, str | None]
    """The recorded protected columns, which are not scored. Null: missing, or not one of the groups of the settings."""


def decision_of(found: FoundDecision) -> Decision:
    values = {name: found.values[name] for name in Decision.model_fields if name in found.values}
    if values["threshold"] is not None and abs(values["threshold"]) == float("inf"):
        values["threshold"] = None
    features: dict[str, Any] = {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in found.columns(FEATURE).items()
    }
    protected = found.columns(PROTECTED)
    points = None if found.scale is None else found.scale.total(float(values["score"]))
    return Decision.model_validate(
        values
        | {"name": found.segment.name, "alias": found.segment.alias}
        | {"points": points, "features": features, "protected": protected}
    )


class DecisionFile(Resource):
    """A final file of decisions. It never changes, unless an entity is erased from it."""

    id: str
    """Id of the file."""
    name: ModelsName
    alias: AliasName
    origin: Literal["score", "batch", "backfill"]
    """How the rows were scored."""
    rows: int
    """Number of decisions in the file."""
    lost: int
    """Number of decisions that are missing, because the log was full or a process was killed."""
    first_at: Timestamp
    """Time of the first decision."""
    last_at: Timestamp
    """Time of the last decision."""
    sealed_at: Timestamp
    """Time at which the last of the decisions were stored."""
    bytes: int
    """Size of the file."""
    sha256: str
    """SHA-256 of the file."""


def file_of(row: DecisionSegment, blob: Blob) -> DecisionFile:
    return DecisionFile.from_row(row, bytes=row.segment_bytes, sha256=blob.sha256)


class DecisionFilePage(PageOf[DecisionFile]):
    """A page of files of decisions, oldest first."""

    next: str | None
    """Cursor of the next page: pass it as `after`. Also set on the last page, from which you can continue later. Null
    only if there is no file yet."""
