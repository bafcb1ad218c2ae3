"""How good a model is, as text for a terminal, with its ROC curve drawn in characters."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.cli.api_client import ApiClient

_BRAILLE = 0x2800
# The bit of each dot in a braille cell of 4 rows × 2 columns (Unicode 16, §21.1).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


@dataclass(frozen=True)
class Roc:
    """A curve to draw: its points from (0, 0) to (1, 1), a title and a legend."""

    fpr: Sequence[float]
    tpr: Sequence[float]
    title: str
    legend: Sequence[str]


def terminal_plot(roc: Roc, *, width: int = 48, height: int = 16) -> str:
    """Draw the curve and the chance diagonal in `height` lines of braille, with axes."""
    columns, rows = width * 2, height * 4
    dots = [[False] * columns for _ in range(rows)]
    # The diagonal is dotted, so that the two lines differ without colour.
    for i in range(0, columns, 6):
        dots[round((1.0 - i / (columns - 1)) * (rows - 1))][i] = True
    for fpr, tpr in _along(roc, 4 * (rows + columns)):
        dots[round((1.0 - tpr) * (rows - 1))][round(fpr * (columns - 1))] = True

    lines = [roc.title, *(f"  {note}" for note in roc.legend)]
    for row in range(height):
        cells = (chr(_BRAILLE + _cell(dots, row * 4, column * 2)) for column in range(width))
        label = {0: "1.0", height // 2: "0.5", height - 1: "0.0"}.get(row, "")
        lines.append(f"{label:>5} ┤{''.join(cells)}")
    lines.append(f"{'':>5} └{'─' * width}")
    lines.append(f"{'TPR':>5}  0.0{'0.5':^{width - 6}}1.0  FPR")
    return "\n".join(lines)


def _along(roc: Roc, n: int) -> Iterator[tuple[float, float]]:
    """Yield points of the curve in `n` equal steps of FPR + TPR, which grows on a vertical rise, too."""
    way = [fpr + tpr for fpr, tpr in zip(roc.fpr, roc.tpr, strict=True)]
    for step in range(n):
        at = 2.0 * step / (n - 1)
        k = bisect_right(way, at)
        if k == len(way):
            yield roc.fpr[-1], roc.tpr[-1]
            continue
        share = (at - way[k - 1]) / (way[k] - way[k - 1])
        yield (
            roc.fpr[k - 1] + share * (roc.fpr[k] - roc.fpr[k - 1]),
            roc.tpr[k - 1] + share * (roc.tpr[k] - roc.tpr[k - 1]),
        )


def _cell(dots: Sequence[Sequence[bool]], top: int, left: int) -> int:
    return sum(_DOTS[r][c] for r in range(4) for c in range(2) if dots[top + r][left + c])


CURVE_POINTS = 1000

Json = dict[str, Any]


def evaluated_on(model: Json) -> str:
    """The part whose metrics count: validation, unless the model was trained on all rows."""
    return "train" if model["validation"]["method"] == "none" else "validation"


def has_curve(model: Json) -> bool:
    """Whether the model has a ROC curve: not if it ranks pairs or several labels, or was not validated."""
    return bool(model["kind"] == "bipartite" and evaluated_on(model) == "validation")


def report(model: Json, metrics: Json, roc: Roc | None) -> str:
    """The text on a model: its metrics, and what a search for parameters found."""
    if roc is not None:
        shown = terminal_plot(roc)
    elif model["kind"] == "preferences":
        shown = _pairs(model, metrics)
    elif model["kind"] == "multilabel":
        shown = _labels(model, metrics)
    else:
        shown = "\n".join([_title(model, metrics), *_legend(metrics)])
    more = ["\n".join(f"note: {each}" for each in model["warnings"])] if model["warnings"] else []
    more += [_search(model)] if model["search"] else []
    if model["algorithm"]["name"] == "auto":
        more.append(_members(model))
    if model["beats_controls"] is not None:
        more.append(
            f"{'better' if model['beats_controls'] else 'not better'} than logistic regression and an SVM for the AUC, "
            "beyond chance"
        )
    return "\n\n".join([shown, *more])


def provenance(model: Json) -> str:
    """The datasets that a model was made with; the content by the beginning of its hash."""
    made_with = (
        ("trained on", model["dataset"]),
        ("judged by", model["validation_dataset"]),
    )
    lines = [
        f"{how} {data['name']}, version {data['version']}: {data['id']}, SHA-256 {data['sha256'][:16]}…"
        for how, data in made_with
        if data is not None
    ]
    return "\n".join(lines) or f"trained on {model['dataset_id']}"


def curve_of(client: ApiClient, model: Json, metrics: Json) -> Roc:
    """Fetch a model's validation curve; AUC and partial AUCs are its legend."""
    points = client.model(model["id"], "roc", max_points=CURVE_POINTS)["points"]
    return Roc(
        fpr=[point["fpr"] for point in points],
        tpr=[point["tpr"] for point in points],
        title=f"ROC of {_title(model, metrics)}",
        legend=_legend(metrics),
    )


def _title(model: Json, metrics: Json) -> str:
    return (
        f"{model['name']}:{model['version']} on {_rows_name(metrics)} rows "
        f"({metrics['positives']:,} positive, {metrics['negatives']:,} negative)"
    )


def _legend(metrics: Json) -> list[str]:
    lines = [f"AUC  {shown_interval(metrics['auc'])}"]
    lines += [
        f"pAUC {shown_interval(window)} on {shown_window(window)}" for window in metrics["pauc"]
    ]
    if (cut := metrics["operating_point"]) is not None:
        least = "none" if cut["threshold"] is None else f"{cut['threshold']:.6g}"
        lines.append(
            f"TPR  {shown_interval(cut['tpr'])} at FPR {cut['fpr']['value']:.4g}: threshold {least}"
        )
    return lines


def _pairs(model: Json, metrics: Json) -> str:
    return "\n".join(
        [
            f"{model['name']}:{model['version']} on {_rows_name(metrics)} pairs "
            f"({metrics['pairs']:,} of {metrics['items']:,} items)",
            f"  in order      {shown_interval(metrics['pair_order'])}",
            f"  not in order  {metrics['misrank_fraction']:.4f}, of them tied {metrics['ties']:.4f}",
        ]
    )


def _labels(model: Json, metrics: Json) -> str:
    labels = metrics["labels"]
    width = max(len("mean"), *(len(label["label"]) for label in labels))
    lines = [
        f"{model['name']}:{model['version']} on {_rows_name(metrics)} rows, AUC by label, and partial AUC"
    ]
    for label in labels:
        figures = "too few rows of a class"
        if label["auc"] is not None:
            figures = "  ".join([shown_interval(label["auc"]), *map(_area, label["pauc"])])
        counts = f"({label['positives']:,} positive, {label['negatives']:,} negative)"
        lines.append(f"  {label['label']:<{width}}  {figures}  {counts}")
    if metrics["judged"]:
        means = [f"{metrics['mean_auc']:.4f}", *map(_area, metrics["mean_pauc"])]
        lines.append(f"  {'mean':<{width}}  {'  '.join(means)}")
    return "\n".join(lines)


def _search(model: Json) -> str:
    search = model["search"]
    on = f"{search['fraction']:.0%}" if search["folds"] is None else f"{search['folds']} folds"
    lines = [f"tried on {on} of the training part, by {_objective(model['selected_by'])}"]
    for candidate in search["candidates"]:
        named = ", ".join(f"{name}={value}" for name, value in candidate["parameters"].items())
        worth = "failed" if candidate["value"] is None else f"{candidate['value']:.4f}"
        chosen = "  chosen" if candidate["state"] == "chosen" else ""
        lines.append(f"  {named}  {worth}{chosen}")
    return "\n".join(lines)


def _members(model: Json) -> str:
    """The rankers that `auto` has combined."""
    members = [
        f"  {member['algorithm']}  weight {member['weight']:.3g}"
        for member in model["algorithm"]["members"]
    ]
    return "\n".join([f"auto, within {model['algorithm']['budget_seconds']:g} s", *members])


def _objective(objective: Json) -> str:
    match objective["metric"]:
        case "pauc":
            return f"pauc on {shown_window(objective)}"
        case "tpr":
            return f"tpr at FPR {objective['fpr']:g}"
    return str(objective["metric"])


def _rows_name(metrics: Json) -> str:
    return "held-out" if metrics["on"] == "validation" else "its own training"


def shown_window(window: Json) -> str:
    """A window of false positive rates."""
    return f"FPR [{window['fpr_min']:g}, {window['fpr_max']:g}]"


def _area(window: Json) -> str:
    return f"{window['value']:.4f} on {shown_window(window)}"


def shown_interval(value: Json) -> str:
    """A value with its interval, if it has one."""
    low, high = value["low"], value["high"]
    bounds = f" [{low:.4f}, {high:.4f}]" if low is not None and high is not None else ""
    return f"{value['value']:.4f}{bounds}"
