"""`rankwright evaluate | compare | calibration | recalibrate`: models judged on rows that they have not seen."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwright import api, types
from rankwright.cli.common import (
    STDIN,
    Model,
    PairsFile,
    Service,
    asks,
    err,
    given,
    out,
    table_file,
    takes,
)
from rankwright.cli.datasets import find_dataset, send_table
from rankwright.cli.metrics import (
    CURVE_POINTS,
    plot_of,
    shown_grades,
    shown_interval,
    shown_lists,
    shown_pauc,
    shown_window,
)
from rankwright.cli.training import wait_for_job
from rankwright.client import Client
from rankwright.plots import Plot
from rankwright.printable import one_line
from rankwright.resources import Comparison, Evaluation
from rankwright.terminal_plot import to_terminal

Windows = Annotated[
    list[str] | None,
    typer.Option(
        "--window",
        help="Window of false positive rates, for example 0,0.05. Repeat it for several windows.",
    ),
]
CostsGiven = Annotated[
    list[str] | None,
    typer.Option(
        "--cost",
        help="Cost of errors: false_positive=5, false_negative=1*amount, benefit=2+0.1*amount or review=3. "
        "Repeat it for several.",
    ),
]


_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[+-]?[0-9]{1,3})?"
_PRICE = re.compile(rf"(?P<fixed>{_NUMBER})|(?:(?P<base>{_NUMBER})\+)?(?P<rate>{_NUMBER})\*amount")


ROLES = ("label", "positive", "weight", "group", "query", "item")
"""Fields of an upload by which columns are told that a model has otherwise."""


@asks()
@takes(api.UploadDataset, only=ROLES)
@takes(api.CreateEvaluation, but=["at"])
def evaluate(
    client: Service,
    model: Model,
    data: Annotated[
        str, typer.Argument(help="Id or name of a dataset, or a file, which is uploaded first.")
    ],
    *,
    windows: Windows = None,
    fpr: Annotated[
        float | None, typer.Option(help="Evaluate at the model's cutoff with at most this FPR.")
    ] = None,
    tpr: Annotated[
        float | None, typer.Option(help="Evaluate at the model's cutoff with at least this TPR.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Evaluate at this threshold.")] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Also show the cutoff that guarantees the FPR or TPR with this confidence; with --group-by in "
            "every group."
        ),
    ] = None,
    costs: CostsGiven = None,
    pairs: PairsFile = None,
    **fields: Any,
) -> None:
    """Evaluate a model on other rows, and show what has changed since its validation.

    The columns of a file are used as in the model's training table; --label and --positive are needed only if their
    names differ.
    """
    asked = [_window(text) for text in windows or []] or None
    if confidence is not None and (fpr is None) == (tpr is None):
        raise typer.BadParameter("--confidence requires one of --fpr and --tpr")
    roles = {name: fields.pop(name) for name in ROLES if name in fields}
    described = client.models.get(model).data
    dataset_id = _send(client, described, data, pairs, roles)
    found = client.evaluate(
        model,  # under an alias the alias's cut counts
        dataset_id,
        **fields,
        windows=asked,
        at=given(fpr=fpr, tpr=tpr, threshold=threshold) or None,
        costs=_costs(costs),
        wait=False,
    )
    _follow(client, found)
    guaranteed = None
    if confidence is not None:
        by_group = "together" if "group_by" in fields else None
        guaranteed = found.operating_point(
            fpr=fpr, tpr=tpr, confidence=confidence, by_group=by_group
        )
    if client.as_json:
        kept = {} if guaranteed is None else {"guaranteed": guaranteed.to_json()}
        out.print_json(data=found.data.to_json() | kept)
        return
    for warning in found.data.warnings:
        err.print_line(f"note: {warning}")
    out.print(_evaluation(found), markup=False)
    if guaranteed is not None:
        out.print("\n".join(["", *_guarantees(guaranteed)]), markup=False)


@asks()
@takes(api.UploadDataset, only=["label", "positive", "weight", "group"])
def recalibrate(
    client: Service,
    model: Model,
    data: Annotated[
        str,
        typer.Argument(
            help="Id of a dataset that the model was not trained on, or a file, which is uploaded first."
        ),
    ],
    **roles: Any,
) -> None:
    """Fit a model's calibration on newer rows. Scores do not change, only the probabilities.

    The columns of a file are used as in the model's training table.
    """
    described = client.models.get(model).data
    dataset_id = _send(client, described, data, None, roles)
    own = client.models[described.id]
    wait_for_job(own.recalibrate(dataset_id, wait=False))
    found = own.read_calibration()
    _show_calibration(client, f"{described.name}:{described.version}", found)


@asks()
def calibration(client: Service, model: Model) -> None:
    """Show how a model's scores are converted to probabilities, and how well these match the outcomes."""
    described = client.models.get(model).data
    found = client.models[described.id].read_calibration()
    _show_calibration(client, f"{described.name}:{described.version}", found)


@asks()
@takes(api.CreateComparison)
def compare(
    client: Service,
    models: Annotated[
        list[str],
        typer.Argument(help="Two or more models, each as id, name, name:version or name@alias."),
    ],
    *,
    dataset: Annotated[
        str, typer.Option(help="Id or name of a dataset that none of the models was trained on.")
    ],
    windows: Windows = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="Another metric to compare by, such as average_precision or precision@100. Repeat it for "
            "several.",
        ),
    ] = None,
    costs: CostsGiven = None,
    **fields: Any,
) -> None:
    """Compare models on the rows of a dataset, by AUC or over windows, with tests of significance."""
    asked = [_window(text) for text in windows or []] or None
    found = client.compare(
        models,
        find_dataset(client, dataset),
        **fields,
        windows=asked,
        metrics=metrics or None,
        costs=_costs(costs),
        wait=False,
    )
    _follow(client, found)
    if client.prints_json(found.data.to_json()):
        return
    for warning in found.data.warnings:
        err.print_line(f"note: {warning}")
    if found.data.result is not None:
        out.print(_comparison(found.data, found.data.result), markup=False)


def _send(
    client: Client,
    model: types.Model,
    data: str,
    pairs: Path | None,
    roles: dict[str, Any],
) -> str:
    """Return the id of the dataset that `data` names; a file is uploaded, with the columns of the model."""
    path = Path(data)
    if path == STDIN or path.is_file():
        with table_file(path) as table:
            return send_table(client, table, pairs, _fields(model, table) | roles, path).id
    if pairs is not None or any(roles.values()):
        raise typer.BadParameter(f"the options for columns require a file; {data!r} is not a file")
    return find_dataset(client, data)


def _show_calibration(client: Service, name: str, found: types.Calibration) -> None:
    if client.prints_json(found.to_json()):
        return
    trained_on = {"validation": "its validation rows", "out_of_fold": "out-of-fold scores"}
    rows = trained_on.get(found.trained_on)
    if rows is None:
        rows = "a later dataset" if found.dataset is None else found.dataset.name
    lines = [
        f"Calibration {found.version} of {name}: {found.method}, fitted on {rows} ({found.positives:,} "
        f"positive of {found.rows:,}; prevalence {found.prevalence:.4g})"
    ]
    lines += [f"  log loss of {method}: {loss:.4f}" for method, loss in found.log_losses.items()]
    evaluated = found.reliability
    if evaluated is None:
        lines.append("  too few rows of a class to check the probabilities")
    else:
        lines += _reliability(evaluated)
        lines += _held_out(evaluated)
    lines += [
        f"  version {each.version}: {each.method}, {each.rows:,} rows, {each.created_at}"
        for each in found.history
    ]
    out.print("\n".join(lines), markup=False)


def _held_out(evaluated: types.Reliability) -> list[str]:
    """Return the lines that say which rows these are, and how the level has moved."""
    if evaluated.later:
        rows = "tested on the last time window, with a calibration fitted on the windows before"
    else:
        rows = "cross-fitted on the same rows: later rows are not tested"
    lines = [f"  {rows}"]
    if (periods := evaluated.periods) is not None:
        levels = ", ".join(f"{each.value:+.3f}" for each in periods.levels)
        lines.append(
            f"  level by time window, in log odds: {levels} (p {periods.p_value:.4f} for a constant level)"
        )
    return lines


def _reliability(evaluated: types.Reliability) -> list[str]:
    """Return the lines that say how good probabilities are."""
    lines = [
        f"  mean probability {evaluated.predicted:.4f}, fraction of positives {evaluated.observed:.4f}"
    ]
    for what, metric in (
        ("calibration in the large, in log odds", evaluated.in_the_large),
        ("calibration slope", evaluated.slope),
    ):
        if metric is not None:
            lines.append(f"  {what}: {shown_interval(metric)}")
    if (shape := evaluated.shape) is not None:
        lines.append(
            f"  calibration shape, in log odds: {shape.value:.4f} [{shape.low:.4f}, {shape.high:.4f}], "
            f"p {shape.p_value:.4f}"
        )
    for what, score in (("Brier score", evaluated.brier), ("log loss", evaluated.log)):
        if score.score is not None and score.miscalibration is not None:
            lines.append(
                f"  {what} {score.score:.4f}: miscalibration {score.miscalibration:.4f}, "
                f"discrimination {score.discrimination:.4f}, uncertainty {score.uncertainty:.4f}"
            )
    return lines


def _window(text: str) -> dict[str, float]:
    low, comma, high = text.partition(",")
    try:
        ends = [float(end) for end in ((low, high) if comma else (low,))]
    except ValueError:
        ends = [math.nan]
    if not all(map(math.isfinite, ends)):
        raise typer.BadParameter(f"a window must have the form 0,0.05, got {text!r}")
    return dict(zip(("fpr_min", "fpr_max") if comma else ("fpr_max",), ends, strict=True))


def _costs(given: list[str] | None) -> dict[str, Any] | None:
    """Return the costs that were asked for: each `name=fixed`, `name=rate*amount` or `name=fixed+rate*amount`."""
    found: dict[str, Any] = {}
    for text in given or ():
        name, _, price = text.partition("=")
        match = _PRICE.fullmatch(price)
        if not name or match is None:
            raise typer.BadParameter(
                f"a cost must have the form false_positive=5 or false_negative=5+0.1*amount, got {text!r}"
            )
        if name in found:
            raise typer.BadParameter(f"each cost can be given only once; {name} is given twice")
        fixed, rate = float(match["fixed"] or match["base"] or 0.0), float(match["rate"] or 0.0)
        found[name] = fixed if match["rate"] is None else {"fixed": fixed, "rate": rate}
    return found or None


def _fields(model: types.Model, path: Path) -> dict[str, Any]:
    """Return the fields of an upload whose columns match a model."""
    fields: dict[str, Any] = {"name": path.name.split(".")[0], "kind": model.kind}
    if model.label is not None:
        fields |= {"label": model.label, "positive": model.positive}
    if model.query is not None:
        fields["query"] = model.query
    if model.labels:
        fields["labels"] = _listed([label.name for label in model.labels])
    words = [one.name for one in model.features if one.type == "categorical"]
    if words:
        fields["categorical"] = _listed(words)
    return fields


def _listed(names: list[str]) -> str:
    """Return the names separated by commas; a name with a comma is quoted."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _follow(client: Client, found: Evaluation | Comparison) -> None:
    """Follow the job of an evaluation or a comparison, and read its result."""
    wait_for_job(client.jobs.get(found.data.job_id))
    found.refresh()


def _evaluation(evaluation: Evaluation) -> str:
    """Return the text of an evaluation: metrics, the curve if there is one, and drift."""
    found = evaluation.data
    title = f"{found.model_name}:{found.model_version} on {found.dataset_name}"
    match metrics := found.metrics:
        case types.EvaluatedCurve():
            plot = to_terminal(_roc(evaluation, metrics, title))
            shown = "\n".join([plot, *shown_lists(metrics.lists)])
        case types.EvaluatedGrades():
            shown = "\n".join([title, *shown_grades(metrics)])
        case types.EvaluatedPairs():
            counts = f"({metrics.pairs:,} pairs of {metrics.items:,} items)"
            shown = f"{title} {counts}\n  in order  {shown_interval(metrics.pair_order)}"
        case types.EvaluatedLabels():
            shown = "\n".join([title, *_labels(metrics)])
        case None:
            shown = title
    if found.groups is not None:
        shown = "\n".join([shown, "", *_groups(found.groups)])
    if found.amounts is not None:
        shown = "\n".join([shown, "", *_amounts(found.amounts)])
    drift = found.drift
    if drift is None:
        return shown
    prevalence = [] if drift.prevalence is None else [drift.prevalence]
    tests: list[
        types.AreaDrift | types.ProbabilityDrift | types.FeatureDrift | types.ScoreDrift
    ] = [
        *drift.areas,
        *prevalence,
        *(drift.probabilities or []),
        *(drift.features or []),
        *drift.scores,
    ]
    lines = [f"  {'!' if test.changed else ' '} {test.words}" for test in tests]
    answers = [
        f"{each.question}: {each.answer}. {one_line(each.words)}" for each in found.findings or ()
    ]
    return "\n".join([shown, "", *answers, *lines])


def _groups(found: types.EvaluatedGroups) -> list[str]:
    """Return the lines of the groups: figures of each, the worst, and the tests."""
    at = "" if found.threshold is None else f" at the threshold {found.threshold:.6g}"
    lines = [f"By {found.column}{at}:"]
    names = [_group_name(group.value) for group in found.groups]
    width = max(map(len, names))
    for name, group in zip(names, found.groups, strict=True):
        metrics: list[tuple[str, types.GroupMetric | types.GroupArea]] = [("AUC", group.auc)]
        metrics += [("pAUC", area) for area in group.pauc]
        rates = (("TPR", group.tpr), ("FPR", group.fpr))
        metrics += [(what, rate) for what, rate in rates if rate is not None]
        said = "  ".join(
            f"{what} {shown_interval(one)}" for what, one in metrics if one.value is not None
        )
        lacking: dict[str, list[str]] = {}
        for what, one in metrics:
            if one.reason is not None:
                lacking.setdefault(one.reason, []).append(what)
        counts = f"({group.positives:,} positive, {group.negatives:,} negative)"
        lines.append("  ".join([f"  {name:<{width}}", counts, *filter(None, [said])]))
        lines += [
            f"  {'':<{width}}  no {', '.join(dict.fromkeys(whats))}: {reason}"
            for reason, whats in lacking.items()
        ]
        if group.cutoff is not None:
            cutoff = "none" if group.cutoff.threshold is None else f"{group.cutoff.threshold:.6g}"
            lines.append(
                f"  {'':<{width}}  cutoff of the group ({found.cutoffs}) {cutoff}: TPR "
                f"{shown_interval(group.cutoff.tpr)} at FPR {shown_interval(group.cutoff.fpr)}"
            )
    lines += _group_calibrations(names, found.groups)
    lines += [
        f"  worst {_measure(worst)}: {_group_name(worst.value_of)}, {shown_interval(worst)}"
        for worst in found.worst
    ]
    lines += [f"  {'!' if test.differs else ' '} {test.words}" for test in found.tests]
    return [*lines, found.note] if found.note is not None else lines


def _guarantees(found: types.EvaluationOperatingPoint) -> list[str]:
    """Return the lines of a promised cut, and of those of the groups."""
    guarantee = found.guarantee
    if guarantee is None:
        return []
    bound = "at most" if guarantee.rate == "fpr" else "at least"
    lines = [
        f"Guaranteed: {guarantee.rate.upper()} {bound} {guarantee.limit:g} with confidence "
        f"{guarantee.confidence:g}",
        f"  all rows: {_shown_cutoff(found.threshold)}, {guarantee.rows:,} rows ({guarantee.needed:,} are needed)",
    ]
    groups = found.groups
    if groups is None:
        return lines
    for group in groups.groups:
        rates = (("FPR", group.fpr), ("TPR", group.tpr))
        shown = [f"{name} {shown_interval(rate)}" for name, rate in rates if rate is not None]
        cutoff = "too few rows" if group.threshold is None else _shown_cutoff(group.threshold)
        counts = f"{group.rows:,} rows ({group.needed:,} are needed)"
        lines.append(f"  {_group_name(group.value)}: {', '.join([cutoff, counts, *shown])}")
    single = "none, because a group has too few rows"
    if groups.threshold is not None:
        single = f"{groups.threshold:.6g}"
    return [*lines, f"  one threshold for all groups: {single}", groups.note]


def _shown_cutoff(threshold: float | None) -> str:
    return "no row is flagged" if threshold is None else f"threshold {threshold:.6g}"


def _group_calibrations(names: list[str], groups: Sequence[types.EvaluatedGroup]) -> list[str]:
    """Return the lines on the probabilities of each group; none if the model has no calibration."""
    width = max(map(len, names))
    lines = []
    for name, group in zip(names, groups, strict=True):
        found = group.calibration
        if found is None or found.predicted is None:
            continue
        said = [f"  {name:<{width}}  mean probability {found.predicted:.4f}"]
        if found.observed.value is not None:
            said.append(f"positives {shown_interval(found.observed)}")
        large = found.in_the_large
        said.append(
            f"log odds off by {shown_interval(large)}" if large.reason is None else large.reason
        )
        lines.append(", ".join(said))
    return ["Probabilities:", *lines] if lines else []


def _amounts(found: types.EvaluatedAmounts) -> list[str]:
    """Return the lines of the value that is caught, and of what errors cost."""
    lines = []
    if found.column is not None:
        lines = [f"By {found.column}:"]
        if found.effective is not None:
            lines[0] = (
                f"By {found.column}, {found.amount_of_positives:.6g} of the positives "
                f"(as {found.effective:.1f} equal amounts):"
            )
        for value in found.values:
            over = value.over.replace("_", " ")
            if value.area is None:
                lines.append(f"  over {over}: {value.reason}")
                continue
            lines.append(f"  area over {over} {shown_interval(value.area)}")
            lines += [
                f"    {100.0 * one.share:.0f} % of the {over} catch {shown_interval(one)} of the amount"
                for one in value.recalls
            ]
    costs = found.costs
    if costs is None:
        return lines
    lines += [
        "Costs per row:",
        f"  flag no row    {_money(costs.flag_none)}",
        f"  flag every row {_money(costs.flag_all)}",
        *_least(costs.least),
    ]
    if costs.at is not None:
        lines.append(f"  at the threshold {_cutoff(costs.threshold)}: {_decided(costs.at)}")
    if costs.by_probability is not None:
        lines.append(f"  by probability: {_decided(costs.by_probability)}")
    if (saves := costs.probability_saves) is not None:
        lines.append(
            f"    saves {_money(saves)} compared with the cutoff, p {_p_value(saves.p_value)}"
        )
    return [*lines, costs.note]


def _least(least: types.LeastCost | types.ComparedCost) -> list[str]:
    lines = [
        f"  lowest at the cutoff {_cutoff(least.threshold)}: {least.in_sample:.6g} on these rows"
    ]
    if least.held_out is not None:
        ends = f"cutoffs {_cutoff(least.threshold_low)} to {_cutoff(least.threshold_high)}"
        lines.append(f"    held out in {least.parts} parts ({ends}): {_decided(least.held_out)}")
    return lines


def _decided(decision: types.DecisionCost) -> str:
    return (
        f"{_money(decision.cost)}, {100.0 * decision.flagged:.1f} % flagged; saves "
        f"{_money(decision.saved_to_none)} compared with none, {_money(decision.saved_to_all)} "
        "compared with all"
    )


def _money(interval: types.Interval | types.ProbabilitySaving) -> str:
    return f"{interval.value:.6g} [{interval.low:.6g}, {interval.high:.6g}]"


def _cutoff(threshold: float | None) -> str:
    return "none" if threshold is None else f"{threshold:.6g}"


def _group_name(value: str | None) -> str:
    return "(no value)" if value is None else value


def _measure(worst: types.WorstGroup) -> str:
    if worst.fpr_min is None or worst.fpr_max is None:
        return worst.of.upper()
    return f"pAUC on {shown_window(worst.fpr_min, worst.fpr_max)}"


def _roc(evaluation: Evaluation, metrics: types.EvaluatedCurve, title: str) -> Plot:
    points = evaluation.roc(max_points=CURVE_POINTS).points
    legend = [f"AUC  {shown_interval(metrics.auc)}"]
    legend += [shown_pauc(area) for area in metrics.pauc]
    if (cutoff := metrics.operating_point) is not None:
        evaluated = evaluation.data.cutoff
        of_alias = ""
        if evaluated is not None and evaluated.source == "alias":
            of_alias = f" of alias {evaluation.data.alias}"
        legend.append(
            f"threshold{of_alias} {_cutoff(cutoff.threshold)}: TPR {shown_interval(cutoff.tpr)} "
            f"at FPR {shown_interval(cutoff.fpr)}"
        )
    return plot_of(points, f"ROC of {title} {_counts(metrics, metrics.groups)}", legend)


def _labels(metrics: types.EvaluatedLabels) -> list[str]:
    width = max(len("mean"), *(len(label.label) for label in metrics.labels))
    lines = []
    for label in metrics.labels:
        values = "too few rows of a class"
        if label.auc is not None:
            values = f"AUC {shown_interval(label.auc)}"
        lines.append(f"  {label.label:<{width}}  {values}  {_counts(label)}")
    return [*lines, f"  {'mean':<{width}}  AUC {metrics.mean_auc:.4f}"]


def _comparison(found: types.Comparison, result: types.ComparisonResult) -> str:
    """Return the text of a comparison: for each window the areas, then the differences."""
    names = {model.model_id: f"{model.name}:{model.version}" for model in found.models}
    lines = [
        f"{', '.join(names.values())} on {found.dataset_name} {_counts(result, result.groups)}"
    ]
    parts: list[tuple[str, types.ComparedWindow | types.ComparedMetric | types.ComparedLists]] = []
    for window in result.windows:
        whole = (window.fpr_min, window.fpr_max) == (0.0, 1.0)
        what = "AUC" if whole else f"pAUC on {shown_window(window.fpr_min, window.fpr_max)}"
        parts.append((what, window))
    parts += [(metric.metric, metric) for metric in result.metrics or ()]
    parts += [(f"mean {each.metric} of a query", each) for each in result.lists or ()]
    for what, part in parts:
        lines += ["", f"{what}, all equal: p {_p_value(part.p_value)}"]
        rows = [(names[one.model_id], shown_interval(one)) for one in part.values]
        for pair in part.differences:
            low, high = f"{pair.low:+.4f}", f"{pair.high:+.4f}"
            adjusted = pair.adjusted_p_value
            beyond = adjusted is not None and adjusted < 1.0 - found.level
            rows.append(
                (
                    f"{names[pair.first]} minus {names[pair.second]}",
                    f"{pair.value:+.4f} [{low}, {high}]  p {_p_value(pair.p_value)}, adjusted "
                    f"{_p_value(adjusted)}{'  significant' if beyond else ''}",
                )
            )
        width = max(len(name) for name, _ in rows)
        lines += [f"  {name:<{width}}  {metrics}" for name, metrics in rows]
    if result.costs is not None:
        lines += ["", "Costs per row:"]
        for model in result.costs.models:
            lines += [f"  {names[model.model_id]}", *("  " + line for line in _least(model))]
        lines += [
            f"  {names[each.first]} minus {names[each.second]}  {each.value:+.6g} [{each.low:+.6g}, "
            f"{each.high:+.6g}]  p {_p_value(each.p_value)}, adjusted {_p_value(each.adjusted_p_value)}"
            for each in result.costs.differences
        ]
    if len(result.windows) > 1:
        lines += ["", f"all equal in every window: p {_p_value(result.p_value)}"]
    return "\n".join(lines)


def _counts(
    metrics: types.EvaluatedCurve | types.EvaluatedLabel | types.ComparisonResult,
    groups: int | None = None,
) -> str:
    grouped = "" if groups is None else f", in {groups:,} groups"
    return f"({metrics.positives:,} positive, {metrics.negatives:,} negative{grouped})"


def _p_value(value: float | None) -> str:
    if value is None:
        return "not tested (too few rows)"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
