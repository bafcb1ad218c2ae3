"""/v1/overview: current, ended and failed jobs, models that need attention, and the newest resources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query
from pydantic import Field

from app.access.authentication import GuardedRoute, needs
from app.datasets import service as datasets
from app.datasets.schemas import ListedDataset
from app.evaluation import comparisons
from app.evaluation.repository import StandingAnswer, standing_answers
from app.findings.finding import Acknowledgement, Finding, Question, restored
from app.http.dependencies import CallerDep, ContextDep
from app.http.schemas import (
    DatasetId,
    EvaluationId,
    ModelId,
    ModelName,
    ModelsName,
    ModelVersion,
    Resource,
    Timestamp,
)
from app.jobs import service as jobs
from app.jobs.schemas import Job
from app.models import alias_request_repository as request_rows
from app.models import service as models
from app.models.alias_schemas import BreakGlass
from app.models.schemas import ListedModel, listed_of
from app.operations.live import LiveAlias, list_live
from app.platform.sql import Session
from app.platform.tables import FINAL_STATES

router = APIRouter(prefix="/v1/overview", tags=["overview"], route_class=GuardedRoute)

UNDER_WAY = ("running", "cancelling", "queued")
SEARCHED_JOBS = 50
"""Newest jobs among which the ended ones are looked for: behind 10,000 that wait they would be far."""
MAX_LIMIT = 200
_MOST_QUESTIONS = len(get_args(Question))


class DriftedModel(Resource):
    """A model, and an evaluation that found significant changes since its validation that still apply."""

    evaluation_id: EvaluationId
    model_id: ModelId
    model_name: ModelName
    model_version: ModelVersion
    alias: str | None
    """Alias that the evaluation was requested for. Null: for the version."""
    dataset_id: DatasetId
    dataset_name: str
    """Name of the dataset."""
    findings: list[Finding]
    """What changed: findings whose answer is `no`, which no newer evaluation has answered otherwise."""
    created_at: Timestamp
    """Time at which the evaluation was requested."""
    acknowledgement: Acknowledgement | None
    """Who has seen it, when, and why nothing else is done. Null if nobody has."""


class OutdatedAlias(Resource):
    """An alias that points to a model although there is a newer version."""

    name: ModelsName
    alias: str
    """The alias, such as `live`."""
    model_id: ModelId
    version: ModelVersion
    newest_model_id: str
    """Id of the newest version."""
    newest_version: int
    """Number of the newest version."""
    comparison_id: str | None
    """The newest comparison of both. Null if there is none, or if its rows are training rows of one of them."""


class Overview(Resource):
    """Running and ended jobs, resources that need attention, and the newest resources."""

    under_way: list[Job]
    """Running jobs, then jobs that are being cancelled, then queued jobs; up to `limit` of each."""
    ended: list[Job]
    """The newest jobs that have ended, among the newest `searched_jobs`."""
    searched_jobs: int = Field(
        description=f"Number of newest jobs that were searched for `ended`: at most {SEARCHED_JOBS}."
    )
    has_older_jobs: bool
    """True if there are older jobs that were not searched."""
    break_glass: list[BreakGlass]
    """Aliases whose protection is suspended now, the first that ends first."""
    live: list[LiveAlias]
    """The aliases, the most recently moved first."""
    failed: list[Job]
    """The newest unresolved failures, as listed by `GET /v1/jobs?kind=all&unresolved=true`."""
    failed_next: str | None
    """Cursor of the next page of that list: pass it as `after`. Null if there are no more failures."""
    drifted: list[DriftedModel]
    """Models that changed significantly according to the newest answers of evaluations of the version or of an alias:
    those that nobody has acknowledged first, and then the most recently evaluated first. If the model was recalibrated
    afterwards, changes of its probabilities and of the fraction of positives do not count."""
    has_more_drifted: bool
    """True if there are more such models than `limit`."""
    outdated: list[OutdatedAlias]
    """Aliases of models that have a newer version. Excluded is an alias whose model ranks better than the newest
    version in their newest comparison, on rows that its model was not trained on."""
    has_more_outdated: bool
    """True if more than `limit` aliases point to models that have a newer version."""
    models: list[ListedModel]
    """The newest models."""
    datasets: list[ListedDataset]
    """The newest datasets."""


@router.get("", summary="Read the overview")
@needs("read")
def read_overview(
    context: ContextDep,
    caller: CallerDep,
    limit: Annotated[
        int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries of each list.")
    ] = 10,
) -> Overview:
    """Return running, ended and failed jobs of every kind, the aliases in use with their last checks, models that
    changed, aliases of an older version, and the newest models and datasets. All of it is from the same moment.
    """
    return context.db.reading(find_overview, caller.owner, limit)


def _list_drifted(found: Iterable[StandingAnswer]) -> list[DriftedModel]:
    """Return an entry for each evaluation and alias, in the order of its first finding."""
    entries: dict[tuple[str, str | None], DriftedModel] = {}
    for each in found:
        seen = None
        if each.at is not None:
            seen = Acknowledgement.model_validate(each, from_attributes=True)
        entry = entries.setdefault(
            (each.evaluation_id, each.alias),
            DriftedModel.from_row(each, findings=[], acknowledgement=seen),
        )
        entry.findings.append(
            replace(restored(each.document), measured_at=each.created_at, acknowledgement=seen)
        )
    return list(entries.values())


def find_overview(session: Session, owner: str, limit: int) -> Overview:
    """The number of SQL statements is constant."""
    first: dict[str, Any] = {"limit": limit, "after": None}
    behind, has_more_outdated = models.outdated_aliases(session, owner, limit)
    pairs = {each: (each.newest_id, each.model.id) for each in behind}
    compared = comparisons.find_compared(session, owner, set(pairs.values()))
    outdated = {
        each: compared.get(pair)
        for each, pair in pairs.items()
        if pair not in compared or not compared[pair].is_worse
    }
    newer = {
        (each.model.name, each.alias)
        for each, found in outdated.items()
        if found is None or found.comparison_id is None
    }
    newest = jobs.list_page(session, owner, limit=SEARCHED_JOBS)
    ended = [job for job in newest.data if job.state in FINAL_STATES]
    failed = jobs.list_page(session, owner, unresolved=True, limit=limit)
    drifted = _list_drifted(
        standing_answers(session, owner, answers=("no",), limit=_MOST_QUESTIONS * (limit + 1))
    )
    return Overview(
        under_way=[
            Job.of_row(row)
            for state in UNDER_WAY
            for row in jobs.list_page(session, owner, state=state, limit=limit).data
        ],
        ended=[Job.of_row(row) for row in ended[:limit]],
        searched_jobs=len(newest.data),
        has_older_jobs=newest.has_more,
        break_glass=[
            BreakGlass.from_row(row) for row in request_rows.list_break_glass(session, owner)
        ],
        live=list_live(session, owner, limit, newer),
        failed=[Job.of_row(row) for row in failed.data],
        failed_next=failed.next,
        drifted=drifted[:limit],
        has_more_drifted=len(drifted) > limit,
        outdated=[
            OutdatedAlias.from_row(
                each.model,
                alias=each.alias,
                model_id=each.model.id,
                newest_model_id=each.newest_id,
                newest_version=each.newest_version,
                comparison_id=None if found is None else found.comparison_id,
            )
            for each, found in outdated.items()
        ],
        has_more_outdated=has_more_outdated,
        models=[
            listed_of(row) for row in models.list_page(session, owner, name=None, **first).data
        ],
        datasets=[
            ListedDataset.model_validate(row)
            for row in datasets.list_page(session, owner, **first).data
        ],
    )
