"""What a search has tried and chosen, over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from app.http.schemas import Resource


class Candidate(Resource):
    """Values that a search has tried."""

    parameters: dict[str, Any]
    value: float | None = Field(
        description="Of `selected_by`, on the rows that chose, the mean over the folds; higher is better. "
        "Null where it could not be fitted."
    )
    auc: float | None = None
    rows: float = Field(
        default=1.0, description="Share of the rows to learn from that it was last given."
    )
    seconds: float | None = None
    state: str | None = Field(default=None, description="`chosen`, `left` or `failed`.")
    reason: str | None = None


class FoldChosen(Resource):
    """What a fold's search has chosen."""

    repeat: int
    fold: int
    chosen: dict[str, Any]


class Search(Resource):
    """What was tried, on splits of the training part, and chosen. These rows are not those of any metrics.

    Under cross-validation every fold has chosen for itself, by its own rows to learn from: `folds_chosen`. The rest
    is how the served ranker was chosen.
    """

    method: str
    space: dict[str, Any]
    n_candidates: int | None = None
    folds: int | None = Field(
        default=None, description="Inner folds; null where one part was held out."
    )
    fraction: float = Field(
        description="Share of the training part that judged the candidates, without folds."
    )
    candidates: list[Candidate]
    chosen: dict[str, Any] = Field(
        description="The best, the fewest rounds among equals; with it the whole training part was fitted anew."
    )
    folds_chosen: list[FoldChosen] = Field(default_factory=list)
    seconds: float = Field(
        description="Time of the search, beside `fit_seconds` of the model's own fit."
    )
