"""A model's figures as text for a terminal, with its ROC curve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from rankwright import plots, types
from rankwright.cli.common import CommandFailed, Service, out
from rankwright.plots import Plot
from rankwright.printable import one_line
from rankwright.resources import Metrics, Model
from rankwright.terminal_plot import to_terminal

CURVE_POINTS = 1000


def show_model(client: Service, model: Model, svg: Path | None) -> None:
    """Print the figures of a model, and write its curve to an SVG file if one is given."""
    metrics = metrics_of(model)
    roc = curve_of(model) if has_curve(model.data) else None
    if not client.prints_json({"model": model.data.to_json(), "metrics": metrics.to_json()}):
        out.print(report(model.data, metrics, roc), markup=False)
        out.print(f"\n{provenance(model.data)}", markup=False)
        out.print(f"[bold]{model.id}[/]  {escape(one_line(model.name))}:{model.version}")
    if svg is not None:
        if roc is None:
            raise CommandFailed(f"{svg} was not written: {model.name} has no ROC curve")
        model.download("plot", svg)


def metrics_of(model: Model) -> Metrics:
    """Return the figures that count: on the validation part, unless the model was trained on all rows."""
    return model.metrics or model.read_metrics(on="train")


def curve_of(model: Model) -> Plot:
    """Fetch a model's validation curve; AUC and partial AUCs are its notes."""
    metrics = metrics_of(model)
    if not isinstance(metrics, types.Metrics):
        raise CommandFailed(f"{model.name} has no ROC curve")
    points = model.roc(max_points=CURVE_POINTS).points
    return plot_of(points, f"ROC of {_title(model.data, metrics)}", _legend(metrics))


KINDS = {
    "precision_recall": "Precision and recall",
    "gains": "Gains",
    "cost": "Costs",
    "histogram": "Scores by class",
}


def list_plot(model: Model, kind: str, on: str) -> Plot:
    """Fetch a plot beside the ROC curve: one of `KINDS`, or the `reliability` of the probabilities."""
    of = f"of {model.name}:{model.version}"
    if kind == "reliability":
        calibration = model.read_calibration()
        if calibration.reliability is None:
            raise CommandFailed(f"the probabilities {of} were not checked: too few rows of a class")
        notes = [f"on {calibration.reliability.n:,} held-out rows"]
        return plots.of_reliability(calibration.reliability, f"Reliability {of}", notes=notes)
    found = model.curve(kind, on=on, max_points=CURVE_POINTS)
    rows = "held-out" if on == "validation" else "its training rows"
    return plots.of_curve(found, f"{KINDS[kind]} {of}", notes=[f"on {rows} rows"])


def has_curve(model: types.Model) -> bool:
    """Return True if the model has a ROC curve: not if it ranks pairs or several labels, or was not validated."""
    return model.kind == "bipartite" and model.validation["method"] != "none"


def report(model: types.Model, metrics: Metrics, plot: Plot | None) -> str:
    """Return the text on a model: its metrics, and the results of a search for parameters."""
    if plot is not None:
        shown = to_terminal(plot)
    elif isinstance(metrics, types.PairMetrics):
        shown = _pairs(model, metrics)
    elif isinstance(metrics, types.MultilabelMetrics):
        shown = _labels(model, metrics)
    elif isinstance(metrics, types.GradedMetrics):
        counts = ", ".join(f"{each.grade}: {each.rows:,}" for each in metrics.grades)
        title = f"{model.name}:{model.version} on {_rows_name(metrics)} rows (grades {counts})"
        shown = "\n".join([title, *shown_grades(metrics)])
    else:
        shown = "\n".join([_title(model, metrics), *_legend(metrics)])
    if plot is not None and isinstance(metrics, types.Metrics):
        shown = "\n".join([shown, *shown_lists(metrics.lists)])
    more = ["\n".join(f"note: {each}" for each in model.warnings)] if model.warnings else []
    more += [_search(model.search, model.selected_by or {})] if model.search else []
    if model.algorithm["name"] == "auto":
        more.append(_members(model))
    if (proof := model.monotone) is not None:
        kept = ", ".join(f"{name} {direction}" for name, direction in proof.columns.items())
        more.append(f"monotone ({proof.verdict.replace('_', ' ')}): {kept}")
    if model.beats_baselines is not None:
        more.append(
            "significantly better than each baseline that was trained"
            if model.beats_baselines
            else "not significantly better than each baseline that was trained; `rankwright checks` names them"
        )
    return "\n\n".join([shown, *more])


def provenance(model: types.Model) -> str:
    """Return the datasets that a model was made with, each with the beginning of its hash."""
    made_with = (
        ("trained on", model.dataset),
        ("evaluated on", model.validation_dataset),
    )
    lines = [
        f"{how} {one_line(data.name)}, version {data.version}: {data.id}, SHA-256 {data.sha256[:16]}…"
        for how, data in made_with
        if data is not None
    ]
    if model.imported is not None:
        found = model.imported
        lines.insert(
            0,
            f"imported from {one_line(found.source)}, not trained here: file with SHA-256 {found.sha256[:16]}…",
        )
        if found.dataset_sha256 is not None:
            lines.append(
                f"trained on a dataset with SHA-256 {found.dataset_sha256[:16]}…, as the file states (not verified)"
            )
    return "\n".join(lines) or f"trained on {model.dataset_id}"


def plot_of(points: Sequence[types.Point], title: str, notes: list[str]) -> Plot:
    """Return the plot of the points that the service returned."""
    return plots.roc([(point.fpr, point.tpr) for point in points], title, notes=notes)


def _title(model: types.Model, metrics: types.Metrics) -> str:
    return (
        f"{model.name}:{model.version} on {_rows_name(metrics)} rows "
        f"({metrics.positives:,} positive, {metrics.negatives:,} negative)"
    )


def _legend(metrics: types.Metrics) -> list[str]:
    lines = [f"AUC  {shown_interval(metrics.auc)}"]
    lines += [shown_pauc(area) for area in metrics.pauc]
    if (cutoff := metrics.operating_point) is not None:
        least = "none" if cutoff.threshold is None else f"{cutoff.threshold:.6g}"
        lines.append(
            f"TPR  {shown_interval(cutoff.tpr)} at FPR {cutoff.fpr.value:.4g}: threshold {least}"
        )
    if (named := metrics.metric) is not None:
        lines.append(f"{named.metric}  {shown_interval(named)}")
    return lines


def shown_grades(metrics: types.GradedMetrics | types.EvaluatedGrades) -> list[str]:
    """Return the lines of the figures of grades: within queries, or of all rows as one list."""
    if (order := metrics.order) is None:
        return shown_lists(metrics.lists) or ["  too few queries with rows of different grades"]
    found = [("c-index", order.c_index), ("mean AUC of two grades", order.mean_auc)]
    if order.volume is not None:
        found.append(("all grades in order", order.volume))
    return [f"  {name:<23}{shown_interval(interval)}" for name, interval in found]


def shown_lists(lists: types.ListMetrics | None) -> list[str]:
    """Return the lines of the figures within queries; none without queries."""
    if lists is None:
        return []
    lines = [f"Means over {lists.queries:,} queries:"]
    for each in lists.metrics:
        skipped = f"  (undefined for {each.skipped:,} queries)" if each.skipped else ""
        interval = types.Interval(value=each.value, low=each.low, high=each.high)
        lines.append(f"  {each.metric:<13} {shown_interval(interval)}{skipped}")
    return lines


def _pairs(model: types.Model, metrics: types.PairMetrics) -> str:
    return "\n".join(
        [
            f"{model.name}:{model.version} on {_rows_name(metrics)} pairs "
            f"({metrics.pairs:,} of {metrics.items:,} items)",
            f"  in order      {shown_interval(metrics.pair_order)}",
            f"  not in order  {metrics.misrank_fraction:.4f}, including ties {metrics.ties:.4f}",
        ]
    )


def _labels(model: types.Model, metrics: types.MultilabelMetrics) -> str:
    labels = metrics.labels
    width = max(len("mean"), *(len(label.label) for label in labels))
    lines = [
        f"{model.name}:{model.version} on {_rows_name(metrics)} rows, AUC by label, and partial AUC"
    ]
    for label in labels:
        values = "too few rows of a class"
        if label.auc is not None:
            values = "  ".join([shown_interval(label.auc), *map(_area, label.pauc)])
        counts = f"({label.positives:,} positive, {label.negatives:,} negative)"
        lines.append(f"  {label.label:<{width}}  {values}  {counts}")
    if metrics.evaluated:
        means = [f"{metrics.mean_auc:.4f}", *map(_area, metrics.mean_pauc)]
        lines.append(f"  {'mean':<{width}}  {'  '.join(means)}")
    return "\n".join(lines)


def _search(search: types.Search, objective: dict[str, Any]) -> str:
    on = f"{100.0 * search.fraction:.0f} %" if search.folds is None else f"{search.folds} folds"
    lines = [f"tried on {on} of the training part, by {_objective(objective)}"]
    for candidate in search.candidates:
        named = ", ".join(f"{name}={value}" for name, value in candidate.parameters.items())
        worth = "failed" if candidate.value is None else f"{candidate.value:.4f}"
        chosen = "  chosen" if candidate.state == "chosen" else ""
        lines.append(f"  {named}  {worth}{chosen}")
    return "\n".join(lines)


def _members(model: types.Model) -> str:
    """Return the rankers that `auto` has combined."""
    members = [
        f"  {member['algorithm']}  weight {member['weight']:.3g}"
        for member in model.algorithm["members"]
    ]
    plan, budget = model.algorithm.get("plan"), model.algorithm.get("budget_seconds")
    head = f"auto, by the plan of {plan}" if budget is None else f"auto, within {budget:g} s"
    if (cost := model.algorithm.get("score_microseconds")) is not None:
        head += f"; scoring takes about {cost:.3g} µs per row"
    return "\n".join([head, *members])


def _objective(objective: dict[str, Any]) -> str:
    match objective["metric"]:
        case "pauc":
            return f"pauc on {shown_window(objective['fpr_min'], objective['fpr_max'])}"
        case "tpr":
            return f"tpr at FPR {objective['fpr']:g}"
    return metric_name(objective)


def metric_name(objective: dict[str, Any]) -> str:
    """Return the name of an objective that is a metric: `precision@100`, `precision@1%`, `precision_at_recall:0.8`."""
    metric = str(objective["metric"])
    if "recall" in objective:
        return f"{metric}:{objective['recall']:g}"
    if "count" in objective:
        return f"{metric}@{objective['count']}"
    return f"{metric}@{100.0 * objective['share']:g}%" if "share" in objective else metric


def _rows_name(metrics: Metrics) -> str:
    return "held-out" if metrics.on == "validation" else "its training rows"


def shown_window(fpr_min: float, fpr_max: float) -> str:
    """Return a window of false positive rates in words."""
    return f"FPR [{fpr_min:g}, {fpr_max:g}]"


def _area(area: types.WindowArea | types.MeanArea) -> str:
    return f"{area.value:.4f} on {shown_window(area.fpr_min, area.fpr_max)}"


def shown_interval(
    value: types.Interval
    | types.WindowArea
    | types.ComparedValue
    | types.MetricEstimate
    | types.GroupMetric
    | types.GroupArea
    | types.WorstGroup
    | types.ValueRecall,
) -> str:
    """Return a value with its interval, if it has one."""
    low, high = value.low, value.high
    bounds = f" [{low:.4f}, {high:.4f}]" if low is not None and high is not None else ""
    return f"{value.value:.4f}{bounds}"


def shown_pauc(area: types.WindowArea) -> str:
    """Return a partial AUC with its interval and its window."""
    return f"pAUC {shown_interval(area)} on {shown_window(area.fpr_min, area.fpr_max)}"
