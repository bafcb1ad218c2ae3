"""Reason codes over HTTP."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import Field, StringConstraints

from app.http.schemas import Body, Resource, Text, Timestamp
from app.models.letters import MAX_LETTER
from app.models.reason_codes import MAX_ENTRIES, ReasonCodesRevision
from app.platform import documents
from app.platform.documents import ReasonDirection, StoredReasonEntry
from app.platform.errors import NO_NUL_PATTERN, PLAIN_PATTERN


class ReasonEntry(Body):
    """One reason code: its text and the features it covers. Contributions of features with the same code are summed."""

    code: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=PLAIN_PATTERN)] = (
        Field(examples=["R12"])
    )
    """Reason code."""
    text: Annotated[
        str, StringConstraints(min_length=1, max_length=500, pattern=NO_NUL_PATTERN)
    ] = Field(examples=["Income too low"])
    """Text of the reason. It must be the same in all entries with this code."""
    columns: Annotated[list[Text], Field(min_length=1, max_length=1000)] = Field(
        examples=[["income"]]
    )
    """Features of the latest version of the model that this code covers."""
    direction: ReasonDirection | None = None
    """Use this code only for contributions that raise the score, or only for those that lower it. Null: both."""
    min: float | str | None = None
    """Use this code only for values of at least this; write a date as text. This and the next three members require
    exactly one column."""
    max: float | str | None = None
    """Use this code only for values of at most this; write a date as text."""
    categories: Annotated[list[Text], Field(min_length=1, max_length=1000)] | None = None
    """Use this code only for these categories."""
    missing: bool | None = None
    """True: also for missing values and new categories, or only for them if no other condition is set. False: only for
    known values. Null: for all values, or only for known values if `min`, `max` or `categories` is set."""

    letter: (
        Annotated[
            str,
            StringConstraints(min_length=1, max_length=MAX_LETTER, pattern=NO_NUL_PATTERN),
        ]
        | None
    ) = Field(default=None, examples=["Your {feature} of {value} cost you {points_lost} points."])
    """Paragraph for this code in a letter. Placeholders: {feature}, {value}, {points}, {points_lost}, {cutoff_points},
    {text} and {code}; write {{ and }} for braces. It must be the same in all entries with this code. Null: `text`."""

    def as_stored(self) -> documents.StoredReasonEntry:
        """Without a letter, equal that of a release before letters."""
        absent = {"letter"} if self.letter is None else None
        return cast(documents.StoredReasonEntry, self.model_dump(mode="json", exclude=absent))


class ReasonCodesRequest(Body):
    """Reason codes for a model name."""

    entries: Annotated[list[ReasonEntry], Field(max_length=MAX_ENTRIES)]
    """The reason codes. The first entry that matches a feature, its value and its direction is used. A feature without
    a matching entry gets a generic text such as `income is 52000`."""


class ReasonCodesStep(Resource):
    """One revision of the reason codes."""

    revision: int
    """Revision number, from 1."""
    at: Timestamp
    """Time of the change."""


class ReasonCodes(Resource):
    """The reason codes of a model name. They apply to all its versions."""

    name: str = Field(examples=["churn"])
    """Name of the models."""
    revision: int
    """Revision number, from 1. It is also the ETag."""
    entries: list[StoredReasonEntry]
    """The reason codes, in the order in which they are matched."""
    at: Timestamp
    """Time of this revision."""
    history: list[ReasonCodesStep]
    """Up to 100 revisions, the newest first. Read one with `?revision=`."""


def reason_codes_of(found: ReasonCodesRevision) -> ReasonCodes:
    history = [ReasonCodesStep(revision=revision, at=at) for revision, at in found.revisions]
    return ReasonCodes.from_row(found.row, history=history)
