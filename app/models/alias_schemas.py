"""Aliases over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, model_validator

from app.http.schemas import (
    AliasName,
    Body,
    ModelId,
    ModelsName,
    ModelVersion,
    PageOf,
    ReasonText,
    Resource,
    Text,
    Timestamp,
    one_of,
)
from app.models.aliases import AliasState
from app.models.operating_point_schemas import OperatingPoint
from app.models.protection import DEFAULT_SECONDS, MAX_SECONDS
from app.platform.documents import AliasCutoff, EvidenceFile, StoredGuarantee, StoredMemo
from app.platform.tables import AliasChange, ModelAliasHistory

_Share = Annotated[float, Field(gt=0, lt=1)]


_KEPT = ("fpr", "tpr", "flagged", "threshold")


class AliasGuarantee(Body):
    """What every version behind an alias keeps: with a `confidence`, a guarantee for future rows; otherwise a target
    that the validation rows meet. Set exactly one of `fpr`, `tpr`, `flagged` and `threshold`.
    """

    fpr: _Share | None = Field(default=None, examples=[0.01])
    """The FPR is at most this."""
    tpr: _Share | None = None
    """The TPR is at least this."""
    flagged: _Share | None = None
    """At most this fraction of the rows is flagged, measured on the validation rows. Use it for a fixed review
    capacity."""
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Rows with at least this score are flagged. Another version may have another score scale, so the same threshold
    can flag other rows."""
    confidence: _Share | None = Field(default=None, examples=[0.95])
    """Guarantees `fpr` or `tpr` for future rows with this confidence, as `…/operating-point` does. Null: the rate holds
    on the validation rows."""

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        kept = [name for name in _KEPT if getattr(self, name) is not None]
        if len(kept) != 1:
            got = " and ".join(kept) or "none"
            raise ValueError(f"a guarantee must have exactly one of {', '.join(_KEPT)}, got {got}")
        if self.confidence is not None and kept[0] not in ("fpr", "tpr"):
            raise ValueError(f"confidence must come with fpr or tpr, got {kept[0]}")
        return self

    def as_stored(self) -> StoredGuarantee:
        return cast(StoredGuarantee, self.model_dump(mode="json"))


_Rows = Annotated[float, Field(gt=0.0, le=1e12, allow_inf_nan=False)]


_Cost = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class DecisionFacts(Body):
    """Capacity, costs and prevalence on which a decision is based. The service stores them but does not compute
    anything from them.
    """

    review: _Rows | None = Field(default=None, examples=[200])
    """Number of rows that can be reviewed, of every `rows` rows. Set both or neither."""
    rows: _Rows | None = Field(default=None, examples=[5000])
    """Number of rows that arrive, for example in a day."""
    cost_false_positive: _Cost | None = Field(default=None, examples=[1])
    """Cost of a false positive, in any unit."""
    cost_false_negative: _Cost | None = Field(default=None, examples=[20])
    """Cost of a false negative, in the unit of `cost_false_positive`. Set both or neither."""
    amount: Text | None = Field(default=None, examples=["loan_amount"])
    """Column of the amounts that multiply `cost_false_negative`, as in `GET …/operating-point`. Needs both costs."""
    prevalence: _Share | None = None
    """Expected fraction of positives among future rows."""

    @model_validator(mode="after")
    def _in_pairs(self) -> Self:
        for one, other in (("review", "rows"), ("cost_false_positive", "cost_false_negative")):
            given = [name for name in (one, other) if getattr(self, name) is not None]
            if len(given) == 1:
                raise ValueError(f"{one} and {other} must be given together, got only {given[0]}")
        if self.amount is not None and self.cost_false_negative is None:
            raise ValueError("amount needs cost_false_positive and cost_false_negative")
        if self.review is not None and self.rows is not None and self.review > self.rows:
            raise ValueError(f"review must be at most rows = {self.rows:g}, got {self.review:g}")
        return self


class DecisionMemo(DecisionFacts):
    """Why an alias is moved."""

    reason: ReasonText | None = Field(default=None, examples=["Review team of four since May."])
    """Reason for the decision."""


class AliasTarget(Body):
    """The model that an alias should point to."""

    model_id: Text = Field(examples=["mdl_01a1f77425d3792391ae38bebae6593b"])
    """A model with the alias's name: its id, `name:version`, `name` (latest version) or another `name@alias`."""
    guarantee: AliasGuarantee | None = None
    """The guarantee or target of the alias from now on. Null removes it. If absent, the alias keeps its current one."""

    memo: DecisionMemo | None = None
    """Why the alias is moved. Capacity, costs and prevalence that are absent here stay as they are; `reason` belongs to
    this revision alone. Null removes the memo."""

    def new_memo(self) -> dict[str, Any] | Literal["keep"] | None:
        """Return the members to change; "keep" if the request has none."""
        if "memo" not in self.model_fields_set:
            return "keep"
        return None if self.memo is None else self.memo.model_dump(mode="json", exclude_unset=True)

    def new_guarantee(self) -> StoredGuarantee | Literal["keep"] | None:
        """ "keep" if the request has none."""
        return _given(self)


class AliasProposal(Body):
    """A change of an alias to preview: to a model, or back to an earlier revision."""

    model_id: Text | None = Field(default=None, examples=["mdl_01a1f77425d3792391ae38bebae6593b"])
    """The model that the alias would point to, by any reference. Set exactly one of this and `revision`."""
    guarantee: AliasGuarantee | None = None
    """The guarantee or target from then on. Null removes it. If absent, the alias keeps its current one."""
    revision: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """The revision that would be restored."""

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.model_id is None) == (self.revision is None):
            got = "neither" if self.model_id is None else "both"
            raise ValueError(f"exactly one of model_id and revision must be given, got {got}")
        if self.revision is not None and "guarantee" in self.model_fields_set:
            raise ValueError("guarantee must come with model_id: a revision has its own")
        return self

    def new_guarantee(self) -> StoredGuarantee | Literal["keep"] | None:
        """ "keep" if the request has none."""
        return _given(self)


def _given(body: AliasTarget | AliasProposal) -> StoredGuarantee | Literal["keep"] | None:
    """ "keep" if the request has none."""
    if "guarantee" not in body.model_fields_set:
        return "keep"
    return None if body.guarantee is None else body.guarantee.as_stored()


class AliasRestoration(Body):
    """The revision of an alias to restore."""

    revision: int = Field(ge=1, le=2**31 - 1, examples=[3])
    """A revision in which the alias existed. Its model, guarantee, cutoff and memo apply again."""
    reason: ReasonText | None = Field(
        default=None, examples=["Version 4 rejects too many students."]
    )
    """Reason for the change."""


class AliasProtection(Body):
    """Whether an alias is protected."""

    protected: bool
    """True: another person must approve every change of the alias, and of the calibration of its model."""
    reason: ReasonText | None = None
    """Reason for the change."""


class BreakGlassRequest(Body):
    """An emergency in which the protection of an alias is suspended."""

    reason: ReasonText = Field(examples=["Version 4 rejects everybody; approvers are away."])
    """Reason for the emergency."""
    seconds: float = Field(default=DEFAULT_SECONDS, ge=60, le=MAX_SECONDS)
    """Time after which the protection is in force again, in seconds: at most 4 hours."""


class BreakGlass(Resource):
    """A suspended protection: until it ends, admins can change the alias directly."""

    name: ModelsName
    alias: AliasName
    reason: str
    """Reason for the emergency."""
    author: str | None
    """Name of the principal that suspended the protection."""
    principal_id: str | None
    """Id of this principal."""
    at: Timestamp
    """When it was suspended."""
    until: Timestamp
    """When it expires."""


class AliasStep(Resource):
    """One revision of an alias: its model, guarantee and cutoff from this time on. It remains when the alias or the
    model is deleted.
    """

    revision: int
    """Revision number, from 1."""
    change: Annotated[str, one_of(AliasChange)]
    """`set`: the alias was created or moved, or got another guarantee or memo. `restored`: an earlier revision was
    restored. `deleted`: the alias was deleted. `protection`: its protection was set or lifted."""
    restores: int | None
    """The restored revision. Null for other changes."""
    model_id: ModelId
    model_version: ModelVersion
    calibration_version: int | None
    """Calibration that the model served at that time. Null without one."""
    protected: bool
    """True if the alias is protected from this revision on."""
    guarantee: StoredGuarantee | None
    """Guarantee or target of this revision. Null without one."""
    cutoff: AliasCutoff | None
    """Cutoff of this revision. Null without a guarantee or target."""
    memo: StoredMemo | None
    """Why the alias was moved. Null if no memo was given."""
    author: str | None
    """Name of the principal that changed the alias; of an approved change, the one that requested it. Null if it was
    changed without a key."""
    principal_id: str | None
    """Id of this principal. Null if there was no key."""
    alias_request_id: str | None
    """The approved request that made this revision. Null for a direct change."""
    approved_by_id: str | None
    """Id of the principal that approved it; `memo.approved_by` is its name. Null for a direct change."""
    break_glass: bool
    """True if the alias was protected, and was changed without approval during a break-glass."""
    at: Timestamp
    """Time of the change."""
    evidence: list[EvidenceFile] | None
    """What was known about the model at that time, as files with their SHA-256: its report, its newest evaluation,
    those that its checks are based on, and the newest comparison with the model before.
    `…/revisions/{revision}/evidence` returns them. Null if none was recorded."""
    evidence_available: bool
    """True if the files are stored. They are deleted when the model is permanently deleted, and when an erasure finds
    the erased id in them."""


class AliasRevisionPage(PageOf[AliasStep]):
    """One page of the revisions of an alias."""


class AliasSummary(Resource):
    """An alias: a name that can be moved from one version of a model to another."""

    name: ModelsName
    alias: str
    """The alias, such as `live`."""
    revision: int
    """Revision number, from 1. It is also the ETag."""
    model_id: str
    """Id of the model that the alias points to."""
    guarantee: StoredGuarantee | None
    """What every version behind the alias keeps. Null: nothing, and score responses have no `flag`."""
    cutoff: AliasCutoff | None
    """Threshold with which the current version meets the guarantee or target. Null without one."""
    memo: StoredMemo | None
    """Why the alias was last moved. Null if no memo was given."""
    author: str | None
    """Name of the key that last moved the alias. Null if it was moved without a key."""
    protected: bool
    """True if another person must approve every change of the alias, and of the calibration of its model."""
    break_glass_until: Timestamp | None
    """Until when the protection is suspended, so that admins can change the alias directly. Null if it is not
    suspended."""
    updated_at: Timestamp
    """Time of the last change, apart from changes of the protection."""


class DeletedAlias(AliasSummary):
    """A deleted alias, as it was. `revision` and `memo` are those of the deletion, `updated_at` is its time."""


class DeletedAliasPage(PageOf[DeletedAlias]):
    """One page of deleted aliases."""


class AliasPage(PageOf[AliasSummary]):
    """One page of aliases."""


class Alias(AliasSummary):
    """An alias with its history."""

    history: list[AliasStep]
    """The revisions of the alias, the newest first."""


class AliasSide(Resource):
    """What an alias serves, before or after a change."""

    model_id: ModelId
    version: ModelVersion
    guarantee: StoredGuarantee | None
    """The guarantee or target. Null without one."""
    cutoff: AliasCutoff | None
    """The cutoff. Null without a guarantee or target."""
    point: OperatingPoint | None
    """The rates of the cutoff on the validation rows of this model, with intervals. Null without a cutoff, if it flags
    no row, or without a validation curve."""
    calibration_version: int | None
    """Calibration that the model serves. Null without one."""
    calibration_method: str | None
    """Its method. Null without one."""
    probability: float | None
    """Calibrated probability of a positive at the threshold. Null without both."""
    words: str
    """Model and threshold in words."""


class AliasPreview(Resource):
    """What a change of an alias would do. Nothing was changed."""

    name: ModelsName
    alias: AliasName
    revision: int | None
    """Newest revision, also of a deleted alias: send it as `If-Match`. Null for a new alias."""
    protected: bool
    """True if the alias is protected."""
    approval_required: bool
    """True if another person must approve this change: use `POST /v1/alias-requests`."""
    before: AliasSide | None
    """What the alias serves now. Null if it does not exist."""
    after: AliasSide
    """What it would serve."""


def step_of(row: ModelAliasHistory) -> AliasStep:
    return AliasStep.from_row(
        row,
        change=row.change,
        evidence_available=row.evidence_key is not None,
    )


def alias_of(state: AliasState) -> Alias:
    return Alias.from_row(state.alias, history=[step_of(row) for row in state.history])


def deleted_of(row: ModelAliasHistory) -> DeletedAlias:
    return DeletedAlias.from_row(row, updated_at=row.at)
