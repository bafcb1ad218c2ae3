"""Aliases over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal, Self, cast

from pydantic import Field, StringConstraints, model_validator

from app.http.schemas import Body, ModelId, PageOf, Resource, Text, Timestamp
from app.models.aliases import AliasState
from app.platform.documents import AliasCutoff, StoredGuarantee, StoredMemo
from app.platform.errors import NO_NUL_PATTERN

_Share = Annotated[float, Field(gt=0, lt=1)]


_KEPT = ("fpr", "tpr", "flagged", "threshold")


class AliasGuarantee(Body):
    """The guarantee of every version behind an alias. Set exactly one of `fpr`, `tpr`, `flagged` and `threshold`."""

    fpr: _Share | None = Field(
        default=None, description="The FPR is at most this.", examples=[0.01]
    )
    tpr: _Share | None = Field(default=None, description="The TPR is at least this.")
    flagged: _Share | None = Field(
        default=None,
        description="At most this fraction of the rows is flagged, measured on the validation rows. Use it for a "
        "fixed review capacity.",
    )
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        default=None,
        description="Rows with at least this score are flagged. Another version may have another score scale, so "
        "the same threshold can flag other rows.",
    )
    confidence: _Share | None = Field(
        default=None,
        description="Guarantees `fpr` or `tpr` for future rows with this confidence, as `…/operating-point` does. "
        "Null: the rate holds on the validation rows.",
        examples=[0.95],
    )

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        """Raise ValueError unless exactly one rate is set, and a confidence only with `fpr` or `tpr`."""
        kept = [name for name in _KEPT if getattr(self, name) is not None]
        if len(kept) != 1:
            got = " and ".join(kept) or "none"
            raise ValueError(f"a guarantee must have exactly one of {', '.join(_KEPT)}, got {got}")
        if self.confidence is not None and kept[0] not in ("fpr", "tpr"):
            raise ValueError(f"confidence must come with fpr or tpr, got {kept[0]}")
        return self

    def as_stored(self) -> StoredGuarantee:
        """Return the guarantee as a document."""
        return cast(StoredGuarantee, self.model_dump(mode="json"))


_Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=2000, pattern=NO_NUL_PATTERN),
]


_Rows = Annotated[float, Field(gt=0.0, le=1e12, allow_inf_nan=False)]


_Cost = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class DecisionMemo(Body):
    """Why an alias is moved. The service stores the memo but does not compute anything from it."""

    reason: _Words | None = Field(
        default=None,
        description="Reason for the decision.",
        examples=["Review team of four since May."],
    )
    approved_by: _Words | None = Field(
        default=None, description="Who approved the decision.", examples=["Credit committee"]
    )
    review: _Rows | None = Field(
        default=None,
        description="Number of rows that can be reviewed, of every `rows` rows. Set both or neither.",
        examples=[200],
    )
    rows: _Rows | None = Field(
        default=None,
        description="Number of rows that arrive, for example in a day.",
        examples=[5000],
    )
    cost_false_positive: _Cost | None = Field(
        default=None, description="Cost of a false positive, in any unit.", examples=[1]
    )
    cost_false_negative: _Cost | None = Field(
        default=None,
        description="Cost of a false negative, in the unit of `cost_false_positive`. Set both or neither.",
        examples=[20],
    )
    prevalence: _Share | None = Field(
        default=None, description="Expected fraction of positives among future rows."
    )

    @model_validator(mode="after")
    def _in_pairs(self) -> Self:
        """Raise ValueError unless the related members are given together."""
        for one, other in (("review", "rows"), ("cost_false_positive", "cost_false_negative")):
            given = [name for name in (one, other) if getattr(self, name) is not None]
            if len(given) == 1:
                raise ValueError(f"{one} and {other} must be given together, got only {given[0]}")
        if self.review is not None and self.rows is not None and self.review > self.rows:
            raise ValueError(f"review must be at most rows = {self.rows:g}, got {self.review:g}")
        return self

    def as_stored(self) -> StoredMemo:
        """Return the memo as a document."""
        return cast(StoredMemo, self.model_dump(mode="json"))


class AliasTarget(Body):
    """The model that an alias should point to."""

    model_id: Text = Field(
        description="A model with the alias's name: its id, `name:version`, `name` (latest version) or another "
        "`name@alias`.",
        examples=["mdl_01a1f77425d3792391ae38bebae6593b"],
    )
    guarantee: AliasGuarantee | None = Field(
        default=None,
        description="The guarantee of the alias from now on. Null removes the guarantee. If absent, the alias "
        "keeps its current guarantee.",
    )

    memo: DecisionMemo | None = Field(
        default=None,
        description="Why the alias is moved. The memo is stored with this revision.",
    )

    def new_guarantee(self) -> StoredGuarantee | Literal["keep"] | None:
        """Return the guarantee to store; "keep" if the request has none."""
        if "guarantee" not in self.model_fields_set:
            return "keep"
        return None if self.guarantee is None else self.guarantee.as_stored()


class AliasStep(Resource):
    """One revision of an alias: its model, guarantee and cutoff from this time on."""

    revision: int = Field(description="Revision number, from 1.")
    model_id: ModelId
    guarantee: StoredGuarantee | None = Field(
        description="Guarantee of this revision. Null without one."
    )
    cutoff: AliasCutoff | None = Field(
        description="Cutoff of this revision. Null without a guarantee."
    )
    memo: StoredMemo | None = Field(
        description="Why the alias was moved. Null if no memo was given."
    )
    author: str | None = Field(
        description="Name of the key that moved the alias. Null if it was moved without a key."
    )
    at: Timestamp = Field(description="Time of the change.")


class AliasSummary(Resource):
    """An alias: a name that can be moved from one version of a model to another."""

    name: str = Field(description="Name of the models.")
    alias: str = Field(description="The alias, such as `live`.")
    revision: int = Field(description="Revision number, from 1. It is also the ETag.")
    model_id: str = Field(description="Id of the model that the alias points to.")
    guarantee: StoredGuarantee | None = Field(
        description="Guarantee of every version behind the alias. Null: there is none, and score responses have "
        "no `flag`."
    )
    cutoff: AliasCutoff | None = Field(
        description="Threshold with which the current version meets the guarantee. Null without a guarantee."
    )
    memo: StoredMemo | None = Field(
        description="Why the alias was last moved. Null if no memo was given."
    )
    author: str | None = Field(
        description="Name of the key that last moved the alias. Null if it was moved without a key."
    )
    updated_at: Timestamp = Field(description="Time of the last change.")


class AliasPage(PageOf[AliasSummary]):
    """One page of aliases."""


class Alias(AliasSummary):
    """An alias with its history."""

    history: list[AliasStep] = Field(description="The revisions of the alias, the newest first.")


def alias_of(state: AliasState) -> Alias:
    """Return the response for an alias with its history."""
    return Alias.from_row(state.alias, history=state.history)
