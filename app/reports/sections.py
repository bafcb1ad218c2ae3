"""The sections of a model's report: data, training, evaluation, baselines, importance and others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from app import __version__
from app.datasets.leaks import leak_in_words
from app.measures import (
    SEPARATED_CALIBRATION,
    area,
    is_separated,
    measures,
    metric,
    percent,
    rows_used,
)
from app.measures import baseline as words_of_baseline
from app.models import threshold_groups
from app.models.curves import PartCurve
from app.models.imported import dataset_of, imported_from
from app.models.simple import say_beats_baselines
from app.models.threshold_groups import GroupsAtThreshold, members_of
from app.platform.documents import Baseline, LeaderboardRow
from app.platform.tables import (
    DatasetKind,
    Model,
    ModelBaselines,
    ModelCalibration,
    ModelImportance,
    ModelLeaderboard,
)
from app.platform.text import (
    cross_validation_in_words,
    objective_in_words,
    validation_in_words,
)
from app.reports import document
from app.reports.brief import MAX_LIMITS, brief, first_page
from app.reports.document import (
    Bar,
    Block,
    Cell,
    Document,
    Items,
    Paragraph,
    Pictures,
    Section,
    Signatures,
    Table,
    Tile,
    Tiles,
)
from app.reports.plots import precision_recall_plot, reliability_plot, rows_of
from app.reports.service import Facts
from app.training.interpretation import METHODS
from core import metrics as core_metrics
from core.base.parameters import list_parameters
from core.registry import ALGORITHMS

MAX_DATA_FEATURES = 100


def data(facts: Facts) -> list[Block]:
    cutoff = document.list_more(facts.model.features, MAX_DATA_FEATURES, " features")
    return [Table((), list(_dataset(facts))), Table(*_data_features(facts)), *cutoff]


def _dataset(facts: Facts) -> Iterator[list[str]]:
    model, dataset = facts.model, facts.dataset
    if (known := dataset_of(model)) is None:
        yield ["dataset", model.dataset_id]
    else:
        yield ["dataset", document.version(known)]
        yield ["SHA-256 of the content", known["sha256"]]
    if dataset is None:
        yield ["dataset available", "no, deleted"]
    else:
        yield ["uploaded", f"{document.moment(dataset.created_at)}, {document.size(dataset.bytes)}"]
        yield ["SHA-256 of the upload", dataset.upload_sha256]
        yield ["rows", document.count(dataset.rows)]
        if dataset.positives is not None:
            yield [
                "positives, negatives",
                f"{document.count(dataset.positives)}, {document.count(dataset.negatives)}",
            ]
        if dataset.pairs is not None:
            yield [
                "pairs",
                f"{document.count(dataset.pairs.pairs)} (SHA-256 {dataset.pairs.sha256})",
            ]
        for name, column in (
            ("weight column", dataset.weight),
            ("group column", dataset.group),
            ("query column", dataset.query),
        ):
            if column is not None:
                yield [name, column]
        if (found := dataset.queries) is not None:
            sizes = f"{found['min_rows']:,} to {found['max_rows']:,} rows"
            yield ["queries", f"{document.count(found['queries'])} with {sizes} each"]
        if dataset.grades is not None:
            counts = (f"{each['grade']}: {each['rows']:,}" for each in dataset.grades)
            yield ["rows by grade", ", ".join(counts)]
    if model.validation_dataset is not None:
        yield ["validation dataset", document.version(model.validation_dataset)]
        yield ["SHA-256 of the content", model.validation_dataset["sha256"]]
    if model.label is not None and model.positive is None:
        yield ["label", f"{model.label}: grades, higher is better"]
    elif model.label is not None:
        yield [
            "label",
            f"{model.label}: positive is {model.positive}, negative is {model.negative}",
        ]
    for label in model.labels or ():
        yield [
            "label",
            f"{label['name']}: positive is {label['positive']}, negative is {label['negative']}",
        ]
    yield ["features", document.count(len(model.features))]


def _data_features(facts: Facts) -> tuple[list[str], list[list[str]]]:
    """Return head and rows, with each feature's own AUC if measured."""
    alone = {column["name"]: column for column in facts.profile.columns} if facts.profile else {}
    measured = any(column.get("auc") for column in alone.values())
    head = [
        "feature",
        "type",
        "has missing values",
        "categories",
        *(["feature AUC"] if measured else []),
    ]
    rows = []
    for feature in facts.model.features[:MAX_DATA_FEATURES]:
        row = [
            feature["name"],
            feature["type"],
            "yes" if feature["missing"] else "no",
            _categories(feature.get("categories"), feature.get("n_categories")),
        ]
        if measured:
            row.append(document.interval(alone.get(feature["name"], {}).get("auc"), 3))
        rows.append(row)
    return head, rows


def _categories(names: list[str] | None, number: int | None) -> str:
    if names is None or number is None:
        return "—"
    shown = ", ".join(names[:5])
    return f"{number:,}: {shown}{', …' if number > 5 else ''}"


MAX_CANDIDATES = 50


def training(facts: Facts) -> list[Block]:
    """Show algorithm, objective, validation, seed, parameters, and the results of a search."""
    model = facts.model
    if (found := model.imported) is not None:
        origin = [
            ["imported", f"from {found['source']}, not trained here"],
            ["imported by", found["imported_by"] or "an unnamed key"],
            ["file, SHA-256", found["sha256"]],
            ["algorithm", model.algorithm],
            _rows_used(facts),
        ]
        if (same := found["model"]) is not None:
            origin.append(["same artifact as", f"{same['name']}:{same['version']} ({same['id']})"])
        if (trained_on := found["dataset_sha256"]) is not None:
            stated = f"{trained_on}, stated by the file, not verified"
            origin.append(["training dataset, SHA-256", stated])
        return [
            Table((), origin),
            Table(("parameter", "value", "meaning"), list(_parameters(facts))),
        ]
    facts_of_it = [
        ["algorithm", model.algorithm],
        ["objective", objective_in_words(model.objective)],
        [
            "optimized by the algorithm",
            objective_in_words(model.optimised_for) if model.optimised_for else "—",
        ],
        [
            "parameters chosen by",
            objective_in_words(model.selected_by)
            if model.selected_by
            else "none, parameters as given",
        ],
        ["validation", validation_in_words(model.validation)],
        _rows_used(facts),
        ["seed", str(model.seed)],
        ["fit time", f"{model.fit_seconds:.3g} s"],
    ]
    if (proof := model.monotone) is not None:
        kept = "; ".join(f"{name}: {direction}" for name, direction in proof["columns"].items())
        verdict = proof["verdict"].replace("_", " ")
        facts_of_it.append(
            [
                "monotone constraints",
                f"{kept}. For the fitted model: {verdict}, by {proof['compared']:,} comparisons of its parts; "
                f"{proof['missing']}",
            ]
        )
    blocks: list[Block] = [Table((), facts_of_it)]
    if parameters := list(_parameters(facts)):
        blocks.append(Table(("parameter", "value", "meaning"), parameters))
    return [*blocks, *_search(facts)]


def _rows_used(facts: Facts) -> list[str]:
    return [facts.rows["unit"], rows_used(facts.rows, facts.model.validation["method"])]


def _parameters(facts: Facts) -> Iterator[list[str]]:
    """Yield name, value and meaning."""
    known = ALGORITHMS.get(facts.model.algorithm)
    meanings = {p.name: " ".join(p.doc.split()) for p in list_parameters(known)} if known else {}
    for name, value in facts.model.parameters.items():
        if name == "members":  # of `auto`, shown with its leaderboard
            continue
        yield [name, document.value(value), meanings.get(name, "")]


def _search(facts: Facts) -> Iterator[Block]:
    search = facts.model.search
    if search is None:
        return
    aim = objective_in_words(facts.model.selected_by) if facts.model.selected_by else "—"
    yield Paragraph(
        f"A {search['method']} search chose {document.settings(search['chosen'])} by {aim}, "
        f"in {search['seconds']:.3g} s. The values of the best candidates are too optimistic."
    )
    rows = [
        [
            document.settings(candidate["parameters"]),
            document.number(candidate["value"]),
            "chosen" if candidate["parameters"] == search["chosen"] else "",
        ]
        for candidate in search["candidates"][:MAX_CANDIDATES]
    ]
    yield Table(("candidate", "value", ""), rows)
    yield from document.list_more(search["candidates"], MAX_CANDIDATES)
    if folds := search["folds_chosen"]:
        yield Paragraph("Each fold chose its own parameters, using only its training rows.")
        yield Table(
            ("repeat", "fold", "chosen"),
            [[str(f["repeat"]), str(f["fold"]), document.settings(f["chosen"])] for f in folds],
        )


def lineage(facts: Facts) -> Table:
    model, job = facts.model, facts.job
    rows = [
        ["model", f"{model.id}, version {model.version} of {model.name}"],
        ["aliases", ", ".join(facts.aliases) or "none"],
        ["tags", ", ".join(f"{name} = {value}" for name, value in model.tags.items()) or "none"],
        ["artifact, SHA-256", model.artifact_sha256],
        ["artifact, size", document.size(model.artifact_bytes)],
        ["job", model.job_id],
    ]
    if job is not None:
        rows += [
            ["submitted", document.moment(job.created_at)],
            ["started", document.moment(job.started_at)],
            ["finished", document.moment(job.finished_at)],
            ["attempt", f"{job.attempt} of at most {job.max_attempts}"],
        ]
    rows += [
        ["dataset", document.version(known) if (known := dataset_of(model)) else model.dataset_id],
        ["model created", document.moment(model.created_at)],
        ["report created by", f"Rankwright {__version__}"],
    ]
    return Table((), rows)


MAX_FEATURES = 25


def importance(found: ModelImportance, labels: Sequence[str]) -> list[Block]:
    """With several labels, there is a column for each."""
    features = sorted(found.features, key=_greatest, reverse=True)
    scale = max(map(_greatest, features), default=0.0)
    rows: list[list[Cell]] = []
    for feature in features[:MAX_FEATURES]:
        value = feature["importance"]
        if labels:
            rows.append([feature["name"], *(f"{each:.4g}" for each in value)])
        else:
            bar = Bar(max(0.0, value) / scale if scale > 0.0 else 0.0)
            rows.append([feature["name"], f"{value:.4g}", bar])
    part = "training" if found.part == "train" else "held-out"
    return [
        Paragraph(f"{METHODS[found.method]} Computed on {part} rows."),
        Table(["feature", *(labels or ("importance", ""))], rows),
        *document.list_more(features, MAX_FEATURES),
    ]


def _greatest(feature: Mapping[str, Any]) -> float:
    value = feature["importance"]
    return float(max(value) if isinstance(value, list) else value)


MAX_BASELINES = 50

Json = dict[str, Any]


def baselines(found: ModelBaselines, model: Model) -> list[Block]:
    """Show each baseline by window, and whether the model is significantly better."""
    blocks: list[Block] = [Paragraph(say_beats_baselines(model, found).words)]
    if found.windows:
        head = ["measure", "ranker", "value", "difference", "p", "p, adjusted"]
        blocks.append(Table(head, list(_baseline_rows(found))))
    if baseline_notes := [line for each in found.baselines if (line := _baseline_note(each))]:
        blocks.append(Items(baseline_notes))
    return blocks


def _baseline_note(baseline: Baseline) -> str | None:
    """Say so if a baseline failed or was fitted on a sample."""
    if baseline["failed"]:
        return (
            f"{words_of_baseline(baseline['algorithm'])} could not be trained: {baseline['failed']}"
        )
    rows, of_rows = baseline["rows"], baseline["of_rows"]
    if rows is not None and of_rows is not None and rows < of_rows:
        return f"{words_of_baseline(baseline['algorithm'])} was trained on a sample ({rows:,} of {of_rows:,} rows)"
    return None


def _is_separated(found: ModelBaselines) -> bool:
    return any(is_separated(each["chosen"]["value"]) for each in found.windows)


def _baseline_rows(found: ModelBaselines) -> Iterator[list[str]]:
    for window in found.windows:
        named = _measure(window)
        yield [named, "this model", document.interval(window["chosen"]), "", "", ""]
        for baseline in window["baselines"]:
            difference = baseline["difference"]
            yield [
                named,
                words_of_baseline(baseline["algorithm"]),
                document.interval(baseline["area"]),
                document.signed(difference),
                *(
                    document.p_value(None if is_separated(window["chosen"]["value"]) else each)
                    for each in (difference["p_value"], difference["adjusted_p_value"])
                ),
            ]


def _measure(compared: Mapping[str, Any]) -> str:
    """Return the label of a metric, or of a window's area."""
    if "metric" in compared:
        return metric(compared["metric"])
    return area(compared["fpr_min"], compared["fpr_max"])


def leaderboard(found: ModelLeaderboard, microseconds: float | None = None) -> list[Block]:
    """Show the combined rankers, and all candidates. `microseconds` is the predicted cost of a row, where measured."""
    cost = "" if microseconds is None else f" Scoring a row takes about {microseconds:.3g} µs."
    members = [
        f"{each['algorithm']}, weight {each['weight']:.3g}: {document.settings(each['parameters'])}"
        for each in found.members
    ]
    head = ["candidate", "value", "time", "result"]
    rows = [_candidate(each) for each in found.candidates]
    note = "Values are from the rows used to compare candidates and are too optimistic for the best ones."
    number = len(found.members)
    searched = "The plan of another model has"
    if found.budget_seconds is not None:
        searched = f"The search took {found.seconds:.3g} s of a budget of {found.budget_seconds:.3g} s and chose"
    blocks: list[Block] = [
        Paragraph(
            f"{searched} {number} ranker{'s' if number > 1 else ''}. The score of several rankers is their weighted "
            f"mean rank.{cost}"
        ),
        Items(members),
    ]
    if rows:
        blocks += [Table(head, rows), Paragraph(" ".join([note, *found.notes]))]
    return blocks


def _candidate(each: LeaderboardRow) -> list[str]:
    rows = "" if each["rows"] in (0.0, 1.0) else f", {percent(each['rows'], 0)} of the rows"
    members = each["parameters"].get("members")
    parameters = document.settings(each["parameters"])
    if members is not None:  # their list and weights are the paragraph above the table
        parameters = f"{len(members)} rankers"
    return [
        f"{each['algorithm']}: {parameters}",
        document.number(each["value"]),
        f"{each['seconds']:.3g} s{rows}",
        f"{each['state']}: {each['reason']}",
    ]


def summary(facts: Facts) -> list[Block]:
    """Show the purpose, and key metrics."""
    blocks: list[Block] = [Paragraph(" ".join(_purpose(facts)))]
    tiles = list(_tiles(facts))
    return [*blocks, Tiles(tiles)] if tiles else blocks


def _purpose(facts: Facts) -> Iterator[str]:
    """Say what the model ranks, and where it was measured."""
    model = facts.model
    if model.kind == DatasetKind.PREFERENCES:
        yield "The model ranks items, better ones first. It was trained on pairs of items."
    elif model.kind == DatasetKind.GRADED:
        within = "" if model.query is None else f" within each {model.query}"
        yield f"The model ranks rows by {model.label}{within}, highest grades first."
    elif model.labels is not None:
        names = ", ".join(label["name"] for label in model.labels)
        yield f"The model ranks rows separately for each of {len(model.labels)} labels: {names}."
    else:
        yield f"The model ranks rows so that those with {model.label} = {model.positive} come first."
    if facts.part is None:
        yield "It was not validated."
        return
    rows = rows_of(model.validation, facts.part)
    if rows == "out-of-fold":
        folds = cross_validation_in_words(model.validation)
        yield f"It was validated by {folds}: each row was scored by rankers that were trained without it."
    elif facts.part == "validation":
        yield "It was validated on held-out rows."
    metrics = facts.metrics[facts.part]
    if facts.curve_part is not None:
        auc = metrics["auc"]
        yield (
            f"On these rows, a positive row scores higher than a negative one with probability {auc['value']:.3f} "
            f"({auc['low']:.3f} to {auc['high']:.3f})."
        )


def _tiles(facts: Facts) -> Iterator[Tile]:
    """Yield the key metrics of the main part."""
    if facts.part is None:
        return
    metrics, kind = facts.metrics[facts.part], facts.model.kind
    rows = rows_of(facts.model.validation, facts.part)
    of_labels = ""
    if kind == DatasetKind.MULTILABEL:
        of_labels = f"over {metrics['evaluated']} of {len(metrics['labels'])} labels, {rows} rows"
    for each in measures(metrics):
        if each.of in _IN_TABLE or (each.in_queries and each.of not in _LIST_TILES):
            continue
        note = "maximum of TPR − FPR" if each.of == "ks" else of_labels
        if each.low is not None:
            note = f"{each.low:.4f}–{each.high:.4f}"
        yield Tile(each.name, document.number(each.value), note)
    if kind == DatasetKind.PREFERENCES:
        note = f"of {metrics['items']:,} items, {rows}"
        yield Tile("Pairs evaluated", document.count(metrics["pairs"]), note)
    elif kind == DatasetKind.GRADED:
        note = ", ".join(f"{each['grade']}: {each['rows']:,}" for each in metrics["grades"])
        total = sum(each["rows"] for each in metrics["grades"])
        yield Tile(f"{rows.capitalize()} rows by grade", document.count(total), note)
    elif kind == DatasetKind.BIPARTITE:
        total = metrics["positives"] + metrics["negatives"]
        note = f"{metrics['positives']:,} positive, {metrics['negatives']:,} negative"
        yield Tile(f"{rows.capitalize()} rows", document.count(total), note)


_IN_TABLE = ("tpr", "labels", "order")
"""Metrics that only the table of all metrics has."""
_LIST_TILES = ("lists/auc", "lists/ndcg@10")


def evaluation(facts: Facts) -> list[Block]:
    """Show every metric with its interval, for each part."""
    if not facts.metrics:
        return [Paragraph("No metrics, because the model was not validated.")]
    level = next(iter(facts.metrics.values()))["level"]
    head = ["", *(f"{rows_of(facts.model.validation, part)} rows" for part in facts.metrics)]
    notes = [f"Values in parentheses are {percent(level, 0)} confidence intervals."]
    if facts.out_of_fold is not None:
        aucs = ", ".join(document.number(fold["auc"]) for fold in facts.out_of_fold.fold_aucs)
        notes.append(f"AUC by fold: {aucs}.")
    return [Table(head, list(_rows(facts))), Paragraph(" ".join(notes))]


def _rows(facts: Facts) -> Iterator[list[str]]:
    """Yield a metric's name, then its value on each part (validation, training)."""
    parts = list(facts.metrics.values())
    kind = facts.model.kind

    def row(name: str, write: Callable[[Any], str], key: str) -> list[str]:
        return [name, *(write(part[key]) for part in parts)]

    found = [{each.name: each for each in measures(part)} for part in parts]
    for name in dict.fromkeys(chain.from_iterable(found)):
        yield [name, *(document.interval(each.get(name)) for each in found)]
    lists = [part.get("lists") for part in parts]
    if any(lists):
        yield ["Queries", *(document.count(each and each["queries"]) for each in lists)]
    if kind == DatasetKind.PREFERENCES:
        yield row("Pairs out of order (ties count as 1)", document.number, "misrank_fraction")
        yield row("Tied pairs", document.number, "ties")
        yield row("Pairs", document.count, "pairs")
        yield row("Items", document.count, "items")
        effective = "Effective number of independent pairs"
        yield row(effective, lambda pairs: document.count(round(pairs)), "effective_pairs")
    elif kind == DatasetKind.MULTILABEL:
        yield from _label_rows(parts)
    elif kind == DatasetKind.GRADED:
        for grade in sorted({each["grade"] for part in parts for each in part["grades"]}):
            counts = ({each["grade"]: each["rows"] for each in part["grades"]} for part in parts)
            shown = (document.count(count.get(grade, 0)) for count in counts)
            yield [f"Rows of grade {grade}", *shown]
    else:
        yield row("Positives", document.count, "positives")
        yield row("Negatives", document.count, "negatives")
        if any(part["positive_weight"] != part["positives"] for part in parts):
            yield row("Weight of the positives", document.count, "positive_weight")
            yield row("Weight of the negatives", document.count, "negative_weight")
        yield row("Tied pairs", document.number, "ties")


def _label_rows(parts: list[Json]) -> Iterator[list[str]]:
    for k, label in enumerate(parts[0]["labels"]):
        for j, found in enumerate(label["pauc"]):
            areas = (part["labels"][k]["pauc"] for part in parts)
            yield [
                f"{area(found['fpr_min'], found['fpr_max'])} of {label['label']}",
                *(document.interval(each[j]) if len(each) > j else "—" for each in areas),
            ]
        yield [
            f"Positives of {label['label']}",
            *(document.count(part["labels"][k]["positives"]) for part in parts),
        ]


_MIN_ROWS = 30
_OVERFIT = 0.05


SIGNED_BY = ("Model developer", "Independent validator", "Approver")
"""Roles that sign a report."""


def document_of(facts: Facts) -> Document:
    model = facts.model
    found = warnings(facts)
    sections = []
    if window := list(facts.plots())[1:]:  # the whole curve is on the first pages
        sections.append(
            Section("ROC curve in the FPR range of the partial AUC", [Pictures(window)])
        )
    sections.append(Section("Metrics", evaluation(facts)))
    if facts.cutoffs:
        sections.append(Section("Operating points", _cutoffs(facts)))
    if facts.curve_part is not None:
        sections.append(Section("Top of the list", _top(facts, facts.curve_part)))
    if facts.calibration is not None:
        sections.append(Section("Probabilities", _probabilities(facts, facts.calibration)))
    if facts.groups is not None:
        sections.append(Section("Protected groups", _groups(facts, facts.groups)))
    if facts.baselines is not None:
        compared = baselines(facts.baselines, model)
        sections.append(Section("Comparison with baselines", compared))
    if facts.leaderboard is not None:
        cost = facts.model.parameters.get("score_microseconds")
        sections.append(Section("Candidates of auto", leaderboard(facts.leaderboard, cost)))
    sections += [Section("Data", data(facts)), Section("Training", training(facts))]
    if facts.importance is not None:
        labels = [label["name"] for label in model.labels or ()]
        sections.append(Section("Feature importance", importance(facts.importance, labels)))
    elif model.importance_job_id is not None:
        pending = f"Not computed yet: job {model.importance_job_id} computes it after the training."
        sections.append(Section("Feature importance", [Paragraph(pending)]))
    sections += [
        Section("Lineage", [lineage(facts)]),
        Section("How to read this report", [Items(list(_reading(facts)))]),
    ]
    source = imported_from(model)
    made = f"trained by {model.algorithm}" if source is None else f"imported from {source}"
    return Document(
        title=f"Model report: {model.name}:{model.version}",
        subtitle=f"{model.id}, {made} on {document.moment(model.created_at)}; "
        f"report written {document.moment(facts.written_at)}",
        footer=f"{model.name}, version {model.version} ({model.id}) · report of "
        f"{document.moment(facts.written_at)}",
        first=first_page(facts, found),
        sections=[
            *brief(facts, summary(facts), found),
            Section("Sign-off", [Signatures(SIGNED_BY)]),
        ],
        appendix=[*sections, *_warnings_left(found)],
    )


def _warnings_left(found: Sequence[str]) -> Iterator[Section]:
    """Only if the first pages have no room for all."""
    if len(found) > MAX_LIMITS:
        yield Section("All warnings", [Items(found)])


def warnings(facts: Facts) -> list[str]:
    """Return stored warnings, and others that a reader needs first."""
    return [*facts.model.warnings, *_cautions(facts)]


_MAX_LEAKS = 10


def _cautions(facts: Facts) -> Iterator[str]:
    """Yield warnings that follow from the facts."""
    if facts.part is None:
        yield "The model was not validated."
    elif facts.part == "train":
        yield "All metrics are from training rows and are too optimistic by an unknown amount."
    if facts.dataset is None:
        yield "The dataset was deleted, or replaced by an erasure, so its rows are no longer available."
    if facts.profile is not None:
        rows = 0 if facts.dataset is None else facts.dataset.rows or 0
        leaks = [leak_in_words(column, rows) for column in facts.profile.columns]
        yield from list(filter(None, leaks))[:_MAX_LEAKS]
        if facts.profile.over_time is not None and facts.profile.over_time["words"] is not None:
            yield facts.profile.over_time["words"]
        both = facts.profile.duplicates.get("rows_of_both_classes")
        if both:
            yield (
                f"{both:,} rows of the dataset have the same features as a row of the other class, so no ranker can "
                "separate them."
            )
    metrics = facts.metrics.get(facts.part or "", {})
    if (weak := metrics.get("weak_segments")) is not None:
        yield from (each["words"] for each in weak["found"])
    for name in ("positives", "negatives"):
        if 0 < metrics.get(name, _MIN_ROWS) < _MIN_ROWS:
            yield (
                f"The model was validated on only {metrics[name]} {name}, so the intervals are wide. Rely on the "
                "intervals, not on the values."
            )
    yield from (
        each.words
        for each in facts.findings
        if each.question == "beats_baselines" and each.answer == "no"
    )
    train = facts.metrics.get("train")
    if facts.part == "validation" and train and "auc" in train:
        gap = train["auc"]["value"] - metrics["auc"]["value"]
        if gap > _OVERFIT and metrics["auc"]["high"] < train["auc"]["value"]:
            yield f"The AUC is {gap:.3f} higher on the training rows, so the model has partly memorized them."


def _cutoffs(facts: Facts) -> list[Table | Paragraph]:
    head = ["cutoff", "threshold", "FPR", "TPR", "precision", "lift", "at exactly this rate"]
    rows = []
    for cutoff in facts.cutoffs:
        point = cutoff.point
        exactly = "—"
        if point.tpr_at_fpr is not None:
            exactly = f"TPR {document.interval(point.tpr_at_fpr, 3)}"
        elif point.fpr_at_tpr is not None:
            exactly = f"FPR {document.interval(point.fpr_at_tpr, 3)}"
        ends = f"{document.score(point.threshold_low)} to {document.score(point.threshold_high)}"
        rows.append(
            [
                cutoff.asked,
                f"{document.score(point.threshold)} ({ends})",
                document.interval(point.fpr, 3),
                document.interval(point.tpr, 3),
                document.interval(point.precision, 3),
                document.interval(point.lift, 2),
                exactly,
            ]
        )
    share = facts.cutoffs[0].point.prevalence
    note = (
        "Rows with a score at or above the threshold are flagged. Precision and lift assume that "
        f"{percent(share, 2)} of the rows are positive, as in this data. GET …/operating-point accepts another "
        "prevalence and costs."
    )
    return [Table(head, rows), Paragraph(note)]


def _top(facts: Facts, curve_part: PartCurve) -> list[Table | Paragraph | Pictures]:
    """Show gains, average precision, and the precision-recall curve."""
    head = ["top", "rows", "positives", "precision", "recall", "lift"]
    rows = [
        [
            f"{percent(gain.share, 0)}",
            f"{gain.size:,.0f}",
            f"{gain.positives:,.0f}",
            document.interval(gain.precision, 3),
            document.interval(gain.recall, 3),
            document.interval(gain.lift, 2),
        ]
        for gain in facts.gains()
    ]
    (found,) = core_metrics.measure_on_curve(
        curve_part.curve,
        curve_part.totals,
        [core_metrics.AveragePrecision()],
        level=curve_part.level,
    )
    share = curve_part.totals.prevalence
    note = (
        f"Average precision: {document.interval(found.interval, 3)} (random: {share:.3f}). All values assume that "
        f"{percent(share, 2)} of the rows are positive, as in this data. GET …/gains accepts another prevalence and "
        "other sizes. If rows with equal scores straddle the end of a size, the values are means over random choices "
        "of them."
    )
    metrics = facts.metrics[curve_part.part]
    plot = precision_recall_plot(curve_part, metrics)
    return [Table(head, rows), Paragraph(note), Pictures([plot])]


VERDICTS = {True: "passes", False: "fails", None: "not enough data"}


def _groups(facts: Facts, found: GroupsAtThreshold) -> list[Block]:
    """Return the content on the protected groups, and which decision uses the threshold, if any."""
    used = (
        "No alias has a cutoff and the objective has none, so no decision uses this threshold: at it, TPR and FPR "
        "differ most."
        if facts.threshold_in_use is None
        else f"This is the threshold of the {facts.threshold_in_use[1]}."
    )
    return [Paragraph(used), *group_tables(members_of(found))]


def group_tables(shown: Json) -> list[Block]:
    """Return the rates and the adverse impact ratio of each group of the protected columns, at one threshold, given as
    the members of the response.
    """
    threshold = shown["threshold"]
    score = document.score(math.inf if threshold is None else threshold)
    blocks: list[Block] = [
        Paragraph(
            f"Held-out rows with a score of at least {score} are flagged. The selection rate is the fraction that is "
            "not flagged, and the adverse impact ratio is this rate divided by the highest of any group. Each verdict "
            "is that of the four-fifths rule on the selection rate: a group passes if the interval of its ratio is at "
            "or above 0.8, and can only fail if more than 20 % of it are flagged. So also compare the flag rates; if a "
            "flag is an advantage, their ratio is the adverse impact ratio."
        )
    ]
    head = [
        "group",
        "rows",
        "selection rate (not flagged)",
        "ratio",
        "four-fifths rule",
        "flag rate",
        "ratio to the highest flag rate",
        "TPR",
        "FPR",
        "calibration, log odds",
    ]
    for column in shown["columns"]:
        feature = " It is a feature of the model." if column["is_feature"] else ""
        blocks.append(Paragraph(f"{document.sentence(column['words'])}{feature}"))
        rows = [
            [
                threshold_groups.say_value(group["value"]),
                f"{group['rows']:,}",
                _group_metric(group["not_flagged"]),
                _group_metric(group["not_flagged_ratio"]),
                VERDICTS[group["passes"]],
                _group_metric(group["flagged"]),
                _group_metric(group["flagged_ratio"]),
                _group_metric(group["tpr"]),
                _group_metric(group["fpr"]),
                _group_metric((group["calibration"] or {}).get("in_the_large")),
            ]
            for group in column["groups"]
        ]
        blocks.append(Table(head, rows))
    return blocks


def _group_metric(metric: Json | None) -> str:
    return "—" if metric is None or metric["value"] is None else document.interval(metric, 3)


def _probabilities(facts: Facts, found: ModelCalibration) -> list[Table | Paragraph | Pictures]:
    """Show the method, the quality of the probabilities, and the reliability diagram."""
    rows_fitted_on = "out-of-fold" if found.trained_on == "out_of_fold" else "held-out"
    method = (
        f"The calibration (method {found.method}) turns scores into probabilities. It was fitted on {found.rows:,} "
        f"{rows_fitted_on} rows, {found.positives:,} of them positive. Probabilities hold for data with "
        f"{percent(found.prevalence, 2)} positives; pass prevalence= for another fraction."
    )
    evaluated = found.reliability
    if evaluated is None:
        return [Paragraph(method), Paragraph("There are too few rows to test the probabilities.")]
    rows = []
    for name, score in (("Brier score", evaluated["brier"]), ("log loss", evaluated["log"])):
        parts = (score["score"], score["miscalibration"], score["discrimination"])
        values = (*parts, score["uncertainty"])
        rows.append([name, *("∞" if value is None else f"{value:.4f}" for value in values)])
    lines = [
        f"{name}: {document.interval(interval, 2)}; ideal: {right}"
        for name, interval, right in (
            ("calibration in the large, in log odds", evaluated["in_the_large"], 0),
            ("slope", evaluated["slope"], 1),
        )
        if interval is not None
    ]
    if (shape := evaluated.get("shape")) is not None:
        lines.append(
            f"shape, in log odds: {shape['value']:.2f} [{shape['low']:.2f}, {shape['high']:.2f}]; ideal: 0"
        )
    if (periods := evaluated.get("periods")) is not None:
        levels = ", ".join(f"{each['value']:+.2f}" for each in periods["levels"])
        lines.append(f"level by time window, in log odds: {levels}")
    where = (
        "Tested on the last time window, with a calibration fitted on the earlier windows"
        if evaluated.get("later")
        else "Cross-fitted on these rows, which does not test later rows"
    )
    note = f"{where}. Score = miscalibration − discrimination + uncertainty. {'. '.join(lines)}."
    if evaluated["separated"]:
        note += f" {SEPARATED_CALIBRATION}"
    head = ["score", "value", "miscalibration", "discrimination", "uncertainty"]
    plot = reliability_plot(facts.model, evaluated)
    return [Paragraph(method), Table(head, rows), Paragraph(note), Pictures([plot])]


def _reading(facts: Facts) -> Iterator[str]:
    level = facts.metrics[facts.part]["level"] if facts.part else 0.95
    if facts.model.kind == DatasetKind.PREFERENCES:
        yield (
            "Pairs in order: the weighted fraction of pairs in which the better item has the higher score. Ties count "
            "half. 0.5 is random, 1 is perfect."
        )
    else:
        yield (
            "AUC: the probability that a random positive row scores higher than a random negative row. Ties count "
            "half. 0.5 is random, 1 is perfect."
        )
        yield (
            "Partial AUC: the mean true positive rate over a window of false positive rates. The value for random "
            "scores is the midpoint of the window."
        )
    yield (
        f"Intervals: a {percent(level, 0)} confidence interval for the value on future rows, if the validation rows "
        "are a random sample of them. Two intervals can overlap although the models differ significantly; run a "
        "comparison to test the difference."
    )
    if facts.curve_part is not None:
        yield (
            "Band: the same for the height of the curve at each false positive rate. It reaches down to 0 where so few "
            "negatives are flagged that the threshold cannot be estimated."
        )
        yield (
            "Operating points: FPR and TPR are the rates of the given threshold. “At exactly this rate” is the other "
            "rate at exactly the requested one. Its interval includes the uncertainty about the threshold."
        )
        if facts.model.validation["method"] == "cross_validation":
            yield (
                "Cross-validation: areas are means over the folds. With repeats, their intervals are for the final "
                "ranker on future rows. The curve uses the scores of all folds, on the scale of the final ranker. "
                "Thresholds are approximate, because the final ranker is trained on all rows and was not validated "
                "itself. The band treats all scores as if one ranker had made them."
            )
    if facts.model.selected_by is not None:
        yield "Search: the metrics come from rows that the search did not use."
    if facts.importance is not None:
        yield "Importance shows what the model uses, not what causes the outcome. Do not compare values of two methods."
