"""The job that compares models on one table: reads artifacts, and returns differences with intervals and p-values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NotRequired, cast

import numpy as np
from typing_extensions import TypedDict

from app.datasets.matrices import Floats, Table
from app.datasets.service import lineage_of
from app.datasets.tasks import find_to_read, lock_inputs, table_of
from app.evaluation import repository
from app.evaluation.amounts import AmountSpec, amounts_of, costs_of, read_amounts
from app.evaluation.metrics import EvaluatedModel, Overlap, load_ranker, model_of, read_rows
from app.evaluation.requests import ComparisonRequest
from app.evaluation.service import (
    CURVE_POINTS,
    Seen,
    check_comparison,
    how_seen,
    say_seen,
    seen_in,
)
from app.jobs import service as jobs
from app.jobs.execution import complete_output
from app.jobs.kinds import Claim, Docs, JobKind, Output, PublishedOutput, Routes, Submission, Work
from app.jobs.progress import Callback
from app.models import service as model_service
from app.models.objectives import Window
from app.platform.blobs import Publisher
from app.platform.documents import DatasetLineage, TableFile, document_of
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.platform.tables import Comparison
from app.training import lists
from app.training.interpretation import score
from core import metrics as core_metrics

if TYPE_CHECKING:
    from core.base.ranker import Floats


COMPARE = "compare"
"""The kind of job."""
COMPARED_METRICS = ("auc", "ndcg@10", "map")
"""Metrics of lists by which models are compared where the dataset has queries."""
COMPARISONS = Output(Comparison, "cmp", "comparison")
UNSEEN = "new", "validated"
"""What `seen_in` says of rows that a model was not trained on."""
COMPARISONS_READ = 20
"""Newest comparisons of two models among which one that shows something of them is looked for."""


class CapacitySpec(TypedDict):
    """The review capacity, and the metric by which the models are compared at it."""

    review: int
    rows: int
    metric: str


class ComparisonSpec(TypedDict):
    """The specification of a comparison job."""

    comparison_id: str
    dataset: DatasetLineage
    metrics: NotRequired[list[str]]
    amounts: NotRequired[AmountSpec]
    capacity: NotRequired[CapacitySpec]
    seen: NotRequired[dict[str, Seen]]


class ComparedArtifact(EvaluatedModel):
    """A compared model, with its id."""

    model_id: str


class ComparisonPayload(Work):
    table: TableFile
    models: list[ComparedArtifact]
    windows: list[Window]
    metrics: list[str]
    amounts: AmountSpec | None
    capacity: CapacitySpec | None
    level: float
    warnings: list[str]


class ComparisonOutcome(Work):
    """`result`: members of `schemas.ComparisonResult`; `overlaps`: by model, if too many rows are training rows."""

    warnings: list[str]
    result: Json


def submit(
    session: Session, settings: Settings, owner: str, request: ComparisonRequest
) -> Comparison:
    """Check a request, and create the comparison and its job in the caller's transaction."""
    inputs, windows = check_comparison(session, owner, request, lock=True)
    models, dataset = inputs.models, inputs.dataset
    seen = {model.id: how_seen(session, model, dataset) for model in models}
    spec: ComparisonSpec = {
        "comparison_id": COMPARISONS.new_id(),
        "dataset": lineage_of(dataset),
        "metrics": [*request.metrics],
        "seen": seen,
    }
    if (amounts := amounts_of(request)) is not None:
        spec["amounts"] = amounts
    if (capacity := request.capacity) is not None:
        spec["capacity"] = {
            "review": capacity.review,
            "rows": capacity.rows,
            "metric": capacity.metric,
        }
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=COMPARE,
        name=dataset.name,
        spec=spec,
        dataset_id=dataset.id,
    )
    comparison = COMPARISONS.insert(
        session,
        job,
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        dataset_version=dataset.version,
        dataset_sha256=dataset.sha256,
        windows=windows,
        level=request.level,
        warnings=[words for model in models for words in say_seen(model, seen[model.id])],
    )
    repository.insert_models(
        session,
        comparison.id,
        [{"model_id": model.id, "name": model.name, "version": model.version} for model in models],
    )
    return comparison


class ComparedPair(NamedTuple):
    """What the newest comparison of two models shows of the first."""

    is_worse: bool
    """True if it ranks worse in one window and better in none."""
    comparison_id: str | None
    """None if the rows were, or may have been, training rows of the first model, which then seems better than it is."""


def find_compared(
    session: Session, owner: str, pairs: Collection[tuple[str, str]]
) -> dict[tuple[str, str], ComparedPair]:
    """Return the newest comparison of each pair that has one.

    Comparisons on rows that the other model was, or may have been, trained on are ignored.
    """
    compared: dict[tuple[str, str], ComparedPair] = {}
    if pairs:
        found = repository.find_comparisons_of_pairs(session, owner, pairs, COMPARISONS_READ)
        for pair, comparison in found:
            if pair not in compared and (lead := _lead_in(comparison, *pair)) is not None:
                is_fair = seen_in(comparison, pair[0]) in UNSEEN
                compared[pair] = ComparedPair(lead < 0, comparison.id if is_fair else None)
    return compared


def _lead_in(row: Comparison, model_id: str, other_id: str) -> float | None:
    """Return the largest significant lead; 0 if there is none, None if the comparison is no evidence."""
    if row.result is None or seen_in(row, other_id) not in UNSEEN:
        return None
    leads = [
        pair["value"] if pair["first"] == model_id else -pair["value"]
        for window in row.result["windows"]
        for pair in window["differences"]
        if {pair["first"], pair["second"]} == {model_id, other_id}
        and pair["adjusted_p_value"] is not None
        and pair["adjusted_p_value"] < 1 - row.level
    ]
    return max(leads, default=0.0)


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> ComparisonPayload:
    comparison = COMPARISONS.find_to_make(session, claim)
    dataset = find_to_read(session, claim.owner, claim.dataset_id)
    models = [
        model_service.find_to_read(session, claim.owner, compared.model_id)
        for compared in comparison.models
    ]
    described: list[ComparedArtifact] = [
        {"model_id": model.id, **model_of(session, model, dataset)} for model in models
    ]
    return {
        "workdir": str(workdir),
        "table": table_of(dataset),
        "models": described,
        "windows": [(window["fpr_min"], window["fpr_max"]) for window in comparison.windows],
        "metrics": cast(ComparisonSpec, claim.spec).get("metrics", []),
        "amounts": cast(ComparisonSpec, claim.spec).get("amounts"),
        "capacity": cast(ComparisonSpec, claim.spec).get("capacity"),
        "level": comparison.level,
        "warnings": comparison.warnings,
    }


def run(payload: ComparisonPayload, callback: Callback) -> ComparisonOutcome:
    """Score the table with each model and compare the scores. Only computes, on the files that the payload names.

    The table is read once for all models with the same features in the same order.
    """
    models, scores = payload["models"], []
    features: list[str] | None = None
    for number, model in enumerate(models, start=1):
        if model["features"] != features:
            features = model["features"]
            table = read_rows(payload["table"], features)
        scores.append(score(load_ranker(model), table))
        callback(number, len(models), {})
    names = [model["model_id"] for model in models]
    found = core_metrics.compare(
        table.y,
        scores,
        [(fpr_min, fpr_max) for fpr_min, fpr_max in payload["windows"]],
        level=payload["level"],
        sample_weight=table.weight,
        group=table.group,
        names=names,
    )

    def compare_by(metrics: Sequence[str]) -> Sequence[core_metrics.MetricComparison]:
        if not metrics:
            return ()
        return core_metrics.compare_metrics(
            table.y,
            scores,
            [core_metrics.metric_named(name) for name in metrics],
            level=payload["level"],
            sample_weight=table.weight,
            group=table.group,
            names=names,
        )

    # Each has its own family of tests: a capacity does not change what the metrics say.
    compared, capacity = compare_by(payload["metrics"]), payload.get("capacity")
    at_capacity = compare_by([] if capacity is None else [capacity["metric"]])
    present = np.ones(len(table.y), dtype=bool) if table.weight is None else table.weight > 0
    positives = int(table.y[present].sum())
    overlap = Overlap(payload["table"]["path"])
    equal_rows = {model["model_id"]: overlap.describe(model) for model in models}
    rows = positives, int(present.sum()) - positives
    doubts = _doubt_areas(table, models, scores, found, rows)
    return {
        "workdir": payload["workdir"],
        "warnings": [
            *payload["warnings"],
            *chain(*(words for _, words in equal_rows.values())),
            *doubts,
            *found.warnings,
            *(each.warning for each in (*compared, *at_capacity) if each.warning is not None),
        ],
        "result": {
            "positives": positives,
            "negatives": rows[1],
            "groups": None if table.group is None else len(np.unique(table.group[present])),
            "n_tests": found.n_tests,
            "p_value": found.joint_p_value,
            "windows": [
                {"fpr_min": window.fpr_min, "fpr_max": window.fpr_max} | _compared(window, names)
                for window in found.windows
            ],
            "metrics": [{"metric": each.metric.name} | _compared(each, names) for each in compared],
            "capacity": None
            if capacity is None
            else capacity | _found_of(_compared(at_capacity[0], names), capacity["review"]),
            "costs": _compare_costs(payload, table, scores, names),
            "lists": _compare_lists(table, scores, names, payload["level"]),
            "curves": [
                {"model_id": name, "points": _curve(table, of_model)}
                for name, of_model in zip(names, scores, strict=True)
            ],
            "overlaps": {name: overlaps for name, (overlaps, _) in equal_rows.items()},
        },
    }


def _doubt_areas(
    table: Table,
    models: Sequence[EvaluatedModel],
    scores: Sequence[Floats],
    found: core_metrics.Comparison,
    rows: tuple[int, int],
) -> list[str]:
    """Warn of models that separate the classes, and else of unreliable intervals of areas.

    `rows` are the numbers of positives and negatives.
    """
    from core.metrics.groups import check_rows, effective_units
    from core.metrics.intervals import area_warnings
    from core.metrics.separation import separation, separation_warning

    effective = effective_units(check_rows(table.y, {}, table.weight, table.group))
    windows = [(each.fpr_min, each.fpr_max) for each in found.windows]
    doubts = []
    for number, (model, own) in enumerate(zip(models, scores, strict=True)):
        separated = separation_warning(
            separation(table.y, own, sample_weight=table.weight, group=table.group)
        )
        areas = [each.values[number] for each in found.windows]
        said = [separated] if separated else area_warnings(windows, areas, rows, effective)
        doubts += [f"{model['name']}: {words}" for words in said]
    return doubts


def _curve(table: Table, scores: Floats) -> list[Json]:
    """Thin the curve for storage."""
    shown = core_metrics.roc_curve(table.y, scores, table.weight).thin(CURVE_POINTS)
    ends = zip(shown.fpr.tolist(), shown.tpr.tolist(), strict=True)
    return [{"fpr": fpr, "tpr": tpr} for fpr, tpr in ends]


def _compare_lists(
    table: Table, scores: Sequence[Floats], names: list[str], level: float
) -> list[Json]:
    """Compare scores within queries, for each metric; nothing without queries, or with too few."""
    query = table.query
    if query is None or lists.count_informative(table.y, query, table.weight) < lists.MIN_QUERIES:
        return []
    found = core_metrics.compare_lists(
        table.y,
        scores,
        query,
        [core_metrics.list_metric_named(name) for name in COMPARED_METRICS],
        level=level,
        sample_weight=table.weight,
        names=names,
    )
    return [
        {"metric": each.metric.name, "queries": each.queries, "skipped": each.skipped}
        | _compared(each, names)
        for each in found
    ]


def _compared(
    of: core_metrics.WindowComparison | core_metrics.MetricComparison | core_metrics.ListComparison,
    names: list[str],
) -> Json:
    """Return a comparison as JSON: the value of each model, the differences and the joint p-value."""
    return {
        "values": [
            {"model_id": name, **document_of(value)}
            for name, value in zip(names, of.values, strict=True)
        ],
        "differences": document_of(of.differences),
        "p_value": of.joint_p_value,
    }


def _found_of(compared: Json, review: int) -> Json:
    """Convert precisions to numbers of positives among so many reviewed rows."""

    def scaled(each: Json) -> Json:
        ends = ("value", "low", "high")
        found = {name: None if each[name] is None else review * each[name] for name in ends}
        return {**each, **found}

    return {name: [*map(scaled, compared[name])] for name in ("values", "differences")} | {
        "p_value": compared["p_value"]
    }


def _compare_costs(
    payload: ComparisonPayload, table: Table, scores: list[Floats], names: list[str]
) -> Json | None:
    """Return None if costs were not requested."""
    amounts = payload["amounts"]
    if amounts is None or amounts["costs"] is None:
        return None
    found = core_metrics.compare_costs(
        table.y,
        scores,
        costs_of(amounts["costs"]),
        read_amounts(payload["table"]["path"], amounts),
        level=payload["level"],
        sample_weight=table.weight,
        group=table.group,
        names=names,
    )
    return {
        "models": [
            {"model_id": name, **document_of(each)}
            for name, each in zip(names, found.reports, strict=True)
        ],
        "differences": document_of(found.differences),
    }


def publish(blobs: Publisher, claim: Claim, result: ComparisonOutcome) -> PublishedOutput:
    """There are no files."""
    columns = {"result": result["result"], "warnings": result["warnings"]}
    return PublishedOutput(columns, messages=result["warnings"])


def _routes() -> Routes:
    from app.evaluation.schemas import (
        Comparison,
        ListedComparison,
        comparison_of,
        listed_comparison_of,
    )

    return Routes(
        path="/v1/comparisons",
        tag="comparisons",
        shape=Comparison,
        show=comparison_of,
        listed=(ListedComparison, listed_comparison_of),
        create=Submission(
            body=ComparisonRequest,
            check=check_comparison,
            submit=submit,
            docs=Docs(
                "Compare models on a dataset",
                "Score a dataset with 2 to 20 models and test whether they differ significantly. For every "
                "window the result has the area of each model, the difference of each pair of models with its "
                "interval, p-values adjusted for the number of tests, and joint p-values. The tests are "
                "paired, because all models rank the same rows. With `costs`, and `amount` for costs that "
                "depend on a column, the models are also compared by the cost of their errors at their "
                "cutoffs of lowest cost; `amount` also needs the scope `read`. A job of kind `compare` does "
                "the work.\n\nThe dataset must fit every model, as for an evaluation, and have exactly one "
                "label.",
            ),
            read_field=lambda request: None if request.amount is None else "amount",
        ),
        list_docs=Docs(
            "List comparisons",
            "Return the owner's comparisons, in the order of `sort`, each with its joint p-value.",
        ),
        read_docs=Docs(
            "Read a comparison",
            "Return the comparison and its status. If it is `ready`: areas, paired differences and "
            "p-values.",
        ),
        delete_docs=Docs(
            "Delete a comparison",
            "Move it to the trash. It can be restored for 30 days. Returns 409 while its job is "
            "unfinished.",
        ),
    )


KIND = JobKind(
    name=COMPARE,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete_output,
    output=COMPARISONS,
    before_retry=lock_inputs,
    routes=_routes,
)
