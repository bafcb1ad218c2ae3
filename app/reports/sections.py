"""The report as a document: what an auditor asks for, in the order in which it is asked."""

from __future__ import annotations

from collections.abc import Iterator

from app.platform.tables import DatasetKind
from app.reports import document
from app.reports.baselines_section import controls, leaderboard
from app.reports.data_section import data
from app.reports.document import Document, Items, Paragraph, Pictures, Section, Table
from app.reports.evaluation_section import judgement, summary
from app.reports.importance_section import importance
from app.reports.service import Facts
from app.reports.training_section import lineage, training

_LEAST_ROWS = 30
_OVERFIT = 0.05


def document_of(facts: Facts) -> Document:
    """Write the report of a model."""
    model = facts.model
    found = warnings(facts)
    sections = [
        Section("Summary", summary(facts)),
        Section("Warnings", [Items(found) if found else Paragraph("None.")]),
    ]
    if plots := list(facts.plots()):
        sections.append(Section("Curves", [Pictures(plots)]))
    sections.append(Section("How good it is", judgement(facts)))
    if facts.cuts:
        sections.append(Section("Operating points", _cuts(facts)))
    if facts.controls is not None:
        compared = controls(facts.controls, model.beats_controls)
        sections.append(Section("Against plain algorithms", compared))
    if facts.leaderboard is not None:
        sections.append(Section("Leaderboard of auto", leaderboard(facts.leaderboard)))
    sections += [Section("Data", data(facts)), Section("Training", training(facts))]
    if facts.importance is not None:
        labels = [label["name"] for label in model.labels or ()]
        sections.append(Section("Importance of the features", importance(facts.importance, labels)))
    sections += [
        Section("Lineage", [lineage(facts)]),
        Section("How to read it", [Items(list(_reading(facts)))]),
    ]
    return Document(
        title=f"Model report: {model.name}:{model.version}",
        subtitle=f"{model.id}, trained by {model.algorithm} on {document.moment(model.created_at)}; "
        f"report written {document.moment(facts.written_at)}",
        sections=sections,
    )


def warnings(facts: Facts) -> list[str]:
    """The model's own, and what else a reader should know before believing the figures."""
    return [*facts.model.warnings, *_doubts(facts)]


def _doubts(facts: Facts) -> Iterator[str]:
    if facts.part is None:
        yield "The model was not judged at all."
    elif facts.part == "train":
        yield "The figures come from rows that the model has learnt from: they flatter it, nobody knows by how much."
    if facts.dataset is None:
        yield "The dataset was deleted: what was in it cannot be looked up any more."
    if facts.profile is not None:
        leaks = [column["name"] for column in facts.profile.columns if column.get("leak")]
        if leaks:
            yield f"These features rank so well alone that they may have seen the label: {', '.join(leaks[:10])}."
        both = facts.profile.duplicates.get("rows_of_both_classes")
        if both:
            yield f"{both:,} rows of the dataset have an equal of the other class: no ranker can tell them apart."
    metrics = facts.metrics.get(facts.part or "", {})
    for name in ("positives", "negatives"):
        if 0 < metrics.get(name, _LEAST_ROWS) < _LEAST_ROWS:
            yield f"Judged on {metrics[name]} {name} only: the intervals are wide, and they are what to go by."
    if facts.model.beats_controls is False:
        yield "The model is not shown to be better than plain algorithms on the same rows."
    train = facts.metrics.get("train")
    if facts.part == "validation" and train and "auc" in train:
        gap = train["auc"]["value"] - metrics["auc"]["value"]
        if gap > _OVERFIT and metrics["auc"]["high"] < train["auc"]["value"]:
            yield f"AUC on the rows learnt from is higher by {gap:.3f}: the model knows them partly by heart."


def _cuts(facts: Facts) -> list[Table | Paragraph]:
    head = ["asked for", "threshold", "FPR", "TPR", "precision", "lift", "at exactly this rate"]
    rows = []
    for cut in facts.cuts:
        point = cut.point
        exactly = "—"
        if point.tpr_at_fpr is not None:
            exactly = f"TPR {document.interval(point.tpr_at_fpr, 3)}"
        elif point.fpr_at_tpr is not None:
            exactly = f"FPR {document.interval(point.fpr_at_tpr, 3)}"
        ends = f"{document.score(point.threshold_low)} to {document.score(point.threshold_high)}"
        rows.append(
            [
                cut.asked,
                f"{document.score(point.threshold)} ({ends})",
                document.interval(point.fpr, 3),
                document.interval(point.tpr, 3),
                document.interval(point.precision, 3),
                document.interval(point.lift, 2),
                exactly,
            ]
        )
    share = facts.cuts[0].point.prevalence
    note = (
        "Rows with a score at or above the threshold are flagged. Precision and lift hold where "
        f"{share:.2%} of the rows are positive, as here; GET …/operating-point takes another prevalence, and costs."
    )
    return [Table(head, rows), Paragraph(note)]


def _reading(facts: Facts) -> Iterator[str]:
    level = facts.metrics[facts.part]["level"] if facts.part else 0.95
    if facts.model.kind == DatasetKind.PREFERENCES:
        yield (
            "Pairs in order: the weighted share of pairs of which the better item has the higher score, ties counted "
            "half. Half would be chance, 1 is perfect."
        )
    else:
        yield (
            "AUC: the probability that a row drawn from the positives has a higher score than one drawn from the "
            "negatives, ties counted half. Half is chance, 1 is perfect."
        )
        yield (
            "Partial AUC on a window of false positive rates: the mean share of the positives that is caught while so "
            "few of the negatives are flagged. Chance is the middle of the window."
        )
    yield (
        f"In brackets: an interval that holds the population's value with a probability of {level:.0%}, if the rows "
        "that judged are a random sample of those to come. Two such intervals may overlap though the values differ; "
        "ask for a comparison."
    )
    if facts.judged is not None:
        yield (
            "The band holds the height of the curve at any one false positive rate with that probability. Where so few "
            "negatives are flagged that no threshold for it is known, it reaches down to 0."
        )
        yield (
            "FPR and TPR of a cut say what its threshold, as it is, will do. “At exactly this rate” is what "
            "the ranker can do at the rate asked for, with the uncertainty of where the threshold must be for that."
        )
        if facts.model.validation["method"] == "cross_validation":
            yield (
                "Areas are means over the folds. The curve joins the folds' own; its thresholds are approximate, for "
                "they were never tried on the ranker that is served, which has learnt from all rows. The band takes "
                "the scores for those of one ranker."
            )
    if facts.model.selected_by is not None:
        yield "The rows by which a search has chosen are none of those that the figures come from."
    if facts.importance is not None:
        yield "Importance says what the model uses, not what causes what. Figures of two methods cannot be compared."
