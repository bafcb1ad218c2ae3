"""Requests to change protected aliases over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from app.http.schemas import (
    AliasName,
    Body,
    CreatedAt,
    ModelsName,
    PageOf,
    ReasonText,
    Resource,
    Text,
    Timestamp,
    one_of,
)
from app.models.alias_schemas import AliasGuarantee, DecisionFacts
from app.platform.documents import EvidenceFile, StoredGuarantee
from app.platform.tables import AliasRequest as AliasRequestRow
from app.platform.tables import AliasRequestKind, AliasRequestState
from app.reports.alias_requests import Proposal, state_of

Kind = Literal["set", "restore", "delete", "unprotect", "recalibrate", "restore_calibration"]
State = Literal["open", "approved", "rejected", "withdrawn", "expired", "void"]
_KINDS = (
    "`set`: point the alias to `model_id`. `restore`: restore its `revision`. `delete`: delete it. `unprotect`: lift "
    "its protection. `recalibrate`: fit the calibration of its model on `dataset_id`. `restore_calibration`: serve the "
    "calibration `calibration_version` of its model again."
)
_NEEDS: dict[str, str] = {
    AliasRequestKind.SET: "model_id",
    AliasRequestKind.RESTORE: "revision",
    AliasRequestKind.RECALIBRATE: "dataset_id",
    AliasRequestKind.RESTORE_CALIBRATION: "calibration_version",
}
_ONLY_SET = ("guarantee", "memo")


class AliasRequestBody(Body):
    """A change of a protected alias to request."""

    kind: Kind = Field(description=_KINDS)
    name: Text = Field(examples=["churn"])
    """Name of the models."""
    alias: Text = Field(examples=["live"])
    """The protected alias."""
    reason: ReasonText = Field(examples=["Better on the data of March."])
    """Reason for the change."""
    model_id: Text | None = Field(default=None, examples=["mdl_01a1f77425d3792391ae38bebae6593b"])
    """Of `set`: a model with the alias's name, by any reference."""
    guarantee: AliasGuarantee | None = None
    """Of `set`: the guarantee or target of the alias from then on. Null removes it. If absent, the alias keeps its
    current one."""
    memo: DecisionFacts | None = None
    """Of `set`: capacity, costs and prevalence. Those that are absent stay as they are."""
    revision: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Of `restore`: a revision in which the alias existed."""
    dataset_id: Text | None = None
    """Of `recalibrate`: a ready dataset with rows that the model was not trained on."""
    calibration_version: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Of `restore_calibration`: an earlier version of the calibration."""

    @model_validator(mode="after")
    def _of_kind(self) -> Self:
        for kind, member in _NEEDS.items():
            given = getattr(self, member) is not None
            if given and self.kind != kind:
                raise ValueError(f"{member} is allowed only for the kind {kind}, got {self.kind}")
            if not given and self.kind == kind:
                raise ValueError(f"the kind {kind} needs {member}")
        for member in _ONLY_SET:
            if member in self.model_fields_set and self.kind != "set":
                raise ValueError(f"{member} is allowed only for the kind set, got {self.kind}")
        return self

    def as_proposal(self) -> Proposal:
        guarantee: Any = "keep"
        if "guarantee" in self.model_fields_set:
            guarantee = None if self.guarantee is None else self.guarantee.as_stored()
        memo = None
        if self.memo is not None:
            memo = self.memo.model_dump(mode="json", exclude_unset=True)
        return Proposal(
            kind=AliasRequestKind(self.kind),
            name=self.name,
            alias=self.alias,
            reason=self.reason,
            ref=self.model_id,
            guarantee=guarantee,
            memo=memo,
            revision=self.revision,
            dataset_id=self.dataset_id,
            version=self.calibration_version,
        )


class AliasApproval(Body):
    """Why a request is approved."""

    reason: ReasonText | None = Field(
        default=None, examples=["Checked the groups at the new cutoff."]
    )
    """Reason for the approval, stored with the evidence. Null if none is given."""


class AliasRejection(Body):
    """Why a request is rejected."""

    reason: ReasonText = Field(examples=["Compare both versions on March first."])
    """Reason for the rejection."""


class AliasRequest(Resource):
    """A request to change a protected alias. It is bound to `alias_revision`, `model_id`, `artifact_sha256` and
    `calibration`: with any other of these it is void.
    """

    id: str = Field(examples=["arq_0198f0c2a6d37c1e8a4b5c6d7e8f9012"])
    """Id of the request."""
    kind: Annotated[str, one_of(AliasRequestKind)] = Field(description=_KINDS)
    state: Annotated[str, one_of(AliasRequestState)]
    """`open`; `approved`: the change was made, or its job was started; `rejected`; `withdrawn` by the requester;
    `expired`; `void`: the alias, the model or its calibration was changed, or the model was deleted."""
    name: ModelsName
    alias: AliasName
    reason: str
    """Reason for the change."""
    before: str
    """What the alias served when the change was requested, in words."""
    after: str
    """What it would serve, in words."""
    alias_revision: int
    """Revision of the alias for which the change was requested."""
    model_id: str
    """The model that the change concerns."""
    model_version: int
    """Version of this model."""
    artifact_sha256: str
    """SHA-256 of its artifact."""
    calibration: int | None
    """Version of its calibration when the change was requested. Null without one."""
    keeps_guarantee: bool
    """True if the alias keeps its guarantee or target, or if the kind is not `set`."""
    guarantee: StoredGuarantee | None
    """The requested guarantee or target. Null if `keeps_guarantee`, or if it is to be removed."""
    revision: int | None
    """The revision to restore. Null for other kinds."""
    dataset_id: str | None
    """The dataset of a recalibration. Null for other kinds."""
    calibration_version: int | None
    """The calibration to restore. Null for other kinds."""
    author: str | None
    """Name of the principal that requested the change."""
    principal_id: str | None
    """Id of this principal."""
    created_at: CreatedAt
    expires_at: Timestamp
    """When an open request expires."""
    decided_at: Timestamp | None
    """When the request was approved, rejected, withdrawn or void. Null before."""
    decided_by: str | None
    """Name of the principal that approved, rejected or withdrew it. Null before, and if it is void."""
    decided_by_id: str | None
    """Id of this principal."""
    decision_reason: str | None
    """Why the request was approved, rejected or is void. Null if no reason was given, and before."""
    applied_revision: int | None
    """The revision of the alias that the approval made. Null without one."""
    applied_calibration: int | None
    """The calibration that the approval made; of a recalibration, once its job has succeeded. Null without one."""
    job_id: str | None
    """The job of an approved recalibration. It fails if the alias, the model or its calibration was changed in the
    meantime. Null otherwise."""
    evidence: list[EvidenceFile]
    """The decision, and what was known about the model when the change was requested, as files with their SHA-256.
    `…/evidence` returns them. The approval is added to the decision."""
    evidence_available: bool
    """True if the files are stored. They are deleted when the model is permanently deleted, and when an erasure finds
    the erased id in them."""


class AliasRequestPage(PageOf[AliasRequest]):
    """One page of requests to change protected aliases."""


def request_of(row: AliasRequestRow, now: float) -> AliasRequest:
    change = row.change
    return AliasRequest.from_row(
        row,
        state=state_of(row, now),
        calibration=row.calibration_version,
        keeps_guarantee="guarantee" not in change,
        guarantee=change.get("guarantee"),
        revision=change.get("revision"),
        dataset_id=change.get("dataset_id"),
        calibration_version=change.get("calibration_version"),
        evidence_available=row.evidence_key is not None,
    )
