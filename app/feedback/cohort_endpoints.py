"""The cohort table of an alias."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from app.access.authentication import GuardedRoute, needs
from app.feedback import service
from app.feedback.cohort_schemas import CohortTable
from app.http.dependencies import AsOf, CallerDep, Context, ContextDep
from app.platform.documents import PeriodKind, StoredFeedback
from app.platform.errors import Invalid
from app.platform.sql import Session, read_clock

MAX_DECISIONS = 5_000_000
"""Maximum number of decisions that a request reads: more would take longer than a caller waits."""
MAX_PERIODS = 400
router = APIRouter(prefix="/v1/models", tags=["feedback"], route_class=GuardedRoute)


@router.get("/{name}/aliases/{alias}/cohorts", summary="Read the cohorts of an alias")
@needs("read")
async def read_cohorts(
    *,
    name: str,
    alias: str,
    context: ContextDep,
    caller: CallerDep,
    as_of: AsOf = None,
    period: Annotated[
        PeriodKind | None,
        Query(description="Length of a period. Default: that of the monitor, or `week`."),
    ] = None,
    periods: Annotated[
        int, Query(ge=1, le=MAX_PERIODS, description="Number of periods, up to `as_of`.")
    ] = 26,
) -> CohortTable:
    """Return decisions by the period in which they were made, with the state of their outcomes: how many are
    mature, pending, positive, corrected; and how outcomes arrive over time. Models and thresholds are also counted
    separately.
    """
    asked = None if as_of is None else as_of.timestamp()
    return await context.compute(
        caller.owner, lambda: _table(context, caller.owner, name, alias, asked, period, periods)
    )


def _table(
    context: Context,
    owner: str,
    name: str,
    alias: str,
    as_of: float | None,
    period: PeriodKind | None,
    periods: int,
) -> CohortTable:
    # Imported here: they need pyarrow and the statistics.
    from app.feedback import cohorts, joining

    def find(
        session: Session,
    ) -> tuple[StoredFeedback, float, PeriodKind, joining.DecisionsOfAlias]:
        settings = service.read(session, owner, name, alias).settings
        assert settings is not None
        now = read_clock(session)
        at = now if as_of is None else min(as_of, now)
        monitor = settings["monitor"]
        kind = period or ("week" if monitor is None else monitor["period"])
        found = joining.find_decisions(
            session,
            owner,
            name,
            alias,
            settings["outcome"],
            since=cohorts.first_start(at, kind, periods),
            until=at,
        )
        return settings, at, kind, found

    settings, at, kind, decisions = context.db.reading(find)
    if decisions.rows > MAX_DECISIONS:
        raise Invalid(
            f"the periods can have at most {MAX_DECISIONS} decisions here, got {decisions.rows}: choose fewer periods",
            code="too_many_rows",
        )
    rule = settings["outcome"]
    joined = joining.join(
        context.db.reading, context.blobs, owner, decisions, rule, cohorts.COLUMNS
    )
    found = cohorts.tabulate(decisions, joined, kind, rule["horizon_days"])
    return CohortTable(
        name=name,
        alias=alias,
        as_of=at,
        period=kind,
        outcome=rule,
        **found._asdict(),
    )
