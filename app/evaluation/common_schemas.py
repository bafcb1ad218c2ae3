"""What evaluations and comparisons share over HTTP."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.evaluation.requests import DEFAULT_LEVEL, LEVELS, MOST_WINDOWS
from app.http.schemas import Body, Rate, Resource

STATUS = (
    "`processing`, `ready`, or how its job ended otherwise: `failed`, `cancelled`, `timed_out`."
)
LEVEL = Field(default=DEFAULT_LEVEL, ge=LEVELS[0], le=LEVELS[1], description="Of the intervals.")


class NewWindow(Body):
    """A window of false positive rates."""

    fpr_min: Rate = 0.0
    fpr_max: Rate


Windows = Annotated[list[NewWindow], Field(min_length=1, max_length=MOST_WINDOWS)]


def pairs_of(windows: list[NewWindow]) -> list[tuple[float, float]]:
    """The windows as the service takes them."""
    return [(float(window.fpr_min), float(window.fpr_max)) for window in windows]


def same_fields(shape: type[Resource]) -> set[str]:
    """What a row has as its shape does."""
    return shape.model_fields.keys() - {"status", "metrics", "error"}
