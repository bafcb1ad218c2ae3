"""/v1/models/{ref}/groups: groups of protected columns at a threshold."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep
from app.models import service as models
from app.models import threshold_groups
from app.models.service import VALIDATION
from app.models.threshold_group_schemas import ModelThresholdGroups

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)

Threshold = Annotated[
    float | None,
    Query(
        allow_inf_nan=False,
        description="Flag every row with a score of at least this. Default: the cutoff of the alias, else the "
        "threshold of the objective, else the one with the largest KS distance.",
    ),
]
Favourable = Annotated[
    Literal["not_flagged", "flagged"],
    Query(
        description="The favourable outcome. `not_flagged`: a flag means a disadvantage, such as a rejected loan. "
        "`flagged`: a flag means an advantage, such as an offer. Default: `not_flagged`."
    ),
]


@router.get("/{ref}/groups", summary="Compare protected groups at a threshold")
@needs("read")
async def read_groups(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    threshold: Threshold = None,
    favourable: Favourable = "not_flagged",
) -> ModelThresholdGroups:
    """Return the selection rate, adverse impact ratio, TPR, FPR and calibration of each group of each protected column,
    with intervals, on the held-out rows of the training. The four-fifths rule is applied to the favourable outcome.
    Returns 404 `no_groups` for a model without them.
    """

    def work() -> ModelThresholdGroups:
        model, found = context.db.reading(threshold_groups.read, caller.owner, ref, threshold)
        return ModelThresholdGroups.model_validate(
            {
                "model_id": model.id,
                "approximate": models.is_approximate(model, VALIDATION),
                **threshold_groups.members_of(found.compute(favourable)),
            }
        )

    return await context.compute(caller.owner, work)
