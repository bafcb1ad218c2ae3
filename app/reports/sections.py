"""The sections of a model's report: data, training, evaluation, baselines, importance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from app import __version__
from app.models.service import PartCurve
from app.platform.documents import Baseline, LeaderboardRow
from app.platform.tables import (
    DatasetKind,
    Model,
    ModelBaselines,
    ModelCalibration,
    ModelImportance,
    ModelLeaderboard,
)
from app.reports import document
from app.reports.brief import MAX_LIMITS, brief
from app.reports.document import (
    Bar,
    Block,
    Cell,
    Document,
    Items,
    Paragraph,
    Pictures,
    Section,
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
    """Return the section on the dataset, its label and its features."""
    cutoff = document.list_more(facts.model.features, MAX_DATA_FEATURES, " features")
    return [Table((), list(_dataset(facts))), Table(*_data_features(facts)), *cutoff]


def _dataset(facts: Facts) -> Iterator[list[str]]:
    model, dataset = facts.model, facts.dataset
    if model.dataset is None:
        yield ["dataset", model.dataset_id]
    else:
        yield ["dataset", document.version(model.dataset)]
        yield ["SHA-256 of its content", model.dataset["sha256"]]
    if dataset is None:
        yield ["dataset is there", "no, it was deleted since"]
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
            ("row weights", dataset.weight),
            ("groups that stay together", dataset.group),
            ("queries, within which rows are put in order", dataset.query),
        ):
            if column is not None:
                yield [name, column]
        if (found := dataset.queries) is not None:
            sizes = f"{found['min_rows']:,} to {found['max_rows']:,} rows"
            yield ["queries", f"{document.count(found['queries'])}, of {sizes}"]
        if dataset.grades is not None:
            counts = (f"{each['grade']}: {each['rows']:,}" for each in dataset.grades)
            yield ["rows of each grade", ", ".join(counts)]
    if model.validation_dataset is not None:
        yield ["validation dataset", document.version(model.validation_dataset)]
        yield ["SHA-256 of its content", model.validation_dataset["sha256"]]
    if model.label is not None and model.positive is None:
        yield ["label", f"{model.label}: grades, the greater the better"]
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
    """Return the head and the rows of the table of features; a feature's own AUC is shown if it was measured."""
    alone = {column["name"]: column for column in facts.profile.columns} if facts.profile else {}
    measured = any(column.get("auc") for column in alone.values())
    head = [
        "feature",
        "type",
        "missing in training",
        "categories",
        *(["AUC alone"] if measured else []),
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
    """Return the section on training: algorithm, objective, validation, seed, parameters, and the results of a
    search.
    """
    model = facts.model
    facts_of_it = [
        ["algorithm", model.algorithm],
        ["objective", document.objective(model.objective)],
        ["the algorithm itself optimises", document.objective(model.optimised_for)],
        [
            "parameters chosen by",
            document.objective(model.selected_by)
            if model.selected_by
            else "nothing: they are as given",
        ],
        ["validation", document.validation(model.validation)],
        ["seed", str(model.seed)],
        ["time of the fit", f"{model.fit_seconds:.3g} s"],
    ]
    if (proof := model.monotone) is not None:
        kept = "; ".join(f"{name}: {direction}" for name, direction in proof["columns"].items())
        verdict = proof["verdict"].replace("_", " ")
        facts_of_it.append(
            [
                "monotone constraints",
                f"{kept}. On the fitted model: {verdict}, by {proof['compared']:,} comparisons of its parts; "
                f"{proof['missing']}",
            ]
        )
    blocks: list[Block] = [Table((), facts_of_it)]
    if parameters := list(_parameters(facts)):
        blocks.append(Table(("parameter", "value", "meaning"), parameters))
    return [*blocks, *_search(facts)]


def _parameters(facts: Facts) -> Iterator[list[str]]:
    known = ALGORITHMS.get(facts.model.algorithm)
    meanings = {p.name: " ".join(p.doc.split()) for p in list_parameters(known)} if known else {}
    for name, value in facts.model.parameters.items():
        if name == "members":  # of `auto`, told with its leaderboard
            continue
        yield [name, document.value(value), meanings.get(name, "")]


def _search(facts: Facts) -> Iterator[Block]:
    search = facts.model.search
    if search is None:
        return
    aim = document.objective(facts.model.selected_by)
    yield Paragraph(
        f"A {search['method']} search chose {document.settings(search['chosen'])} by {aim}, "
        f"in {search['seconds']:.3g} s. The values are too optimistic for what was chosen by them."
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
        yield Paragraph("Each fold has chosen for itself, by the rows that it learnt from.")
        yield Table(
            ("repeat", "fold", "chosen"),
            [[str(f["repeat"]), str(f["fold"]), document.settings(f["chosen"])] for f in folds],
        )


def lineage(facts: Facts) -> Table:
    """Return the section on lineage: the dataset and the job."""
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
            ["handed in", document.moment(job.created_at)],
            ["begun", document.moment(job.started_at)],
            ["ended", document.moment(job.finished_at)],
            ["attempt", f"{job.attempt} of at most {job.max_attempts}"],
        ]
    rows += [
        ["dataset", document.version(model.dataset) if model.dataset else model.dataset_id],
        ["model made", document.moment(model.created_at)],
        ["report by", f"Rankwright {__version__}"],
    ]
    return Table((), rows)


MAX_FEATURES = 25


def importance(found: ModelImportance, labels: Sequence[str]) -> list[Block]:
    """Return the section on importance; with several labels, a column for each."""
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
        Paragraph(f"{METHODS[found.method]} Measured on {part} rows."),
        Table(["feature", *(labels or ("importance", ""))], rows),
        *document.list_more(features, MAX_FEATURES),
    ]


def _greatest(feature: Mapping[str, Any]) -> float:
    value = feature["importance"]
    return float(max(value) if isinstance(value, list) else value)


MAX_BASELINES = 50

Json = dict[str, Any]


def baselines(found: ModelBaselines, beats: bool | None) -> list[Block]:
    """Return the section on baselines: each baseline on each window, and whether the model is significantly better."""
    blocks: list[Block] = [Paragraph(" ".join(_baselines_in_words(found, beats)))]
    if found.windows:
        head = ["measure", "ranker", "area", "the model's less this one's", "p", "p, adjusted"]
        blocks.append(Table(head, list(_baseline_rows(found))))
    if baseline_notes := [line for each in found.baselines if (line := _baseline_note(each))]:
        blocks.append(Items(baseline_notes))
    return blocks


def _baseline_note(baseline: Baseline) -> str | None:
    """Return a sentence if a baseline failed or was fitted on a sample."""
    if baseline["failed"]:
        return f"{baseline['algorithm']} could not be fitted: {baseline['failed']}"
    rows, of_rows = baseline["rows"], baseline["of_rows"]
    if rows is not None and of_rows is not None and rows < of_rows:
        return f"{baseline['algorithm']} was fitted on {rows:,} of {of_rows:,} rows"
    return None


def _baselines_in_words(found: ModelBaselines, beats: bool | None) -> Iterator[str]:
    if found.skipped is not None:
        yield f"None were fitted: {found.skipped}."
    if beats is None:
        return
    yield "Simple benchmark models were fitted on the same divisions of the rows, and compared in pairs."
    decided_on = next((each for each in found.windows if "metric" in each), found.decided_on)
    measure, level = _measure(decided_on), 1.0 - found.level
    if beats:
        yield f"By {measure} the model is better than each of them (adjusted p below {level:.2g})."
    else:
        yield f"By {measure} it is not shown to be better than every one of them: a plainer model may do as well."


def _baseline_rows(found: ModelBaselines) -> Iterator[list[str]]:
    for window in found.windows:
        named = _measure(window)
        yield [named, "this model", document.interval(window["chosen"]), "", "", ""]
        for baseline in window["baselines"]:
            difference = baseline["difference"]
            yield [
                named,
                baseline["algorithm"],
                document.interval(baseline["area"]),
                document.signed(difference),
                document.p_value(difference["p_value"]),
                document.p_value(difference["adjusted_p_value"]),
            ]


def _measure(compared: Mapping[str, Any]) -> str:
    """Return the name of a figure, or that of the area over a window."""
    if "metric" in compared:
        return str(compared["metric"])
    fpr_min, fpr_max = compared["fpr_min"], compared["fpr_max"]
    whole = (fpr_min, fpr_max) == (0.0, 1.0)
    return "AUC" if whole else f"partial AUC on {document.window(compared)}"


def leaderboard(found: ModelLeaderboard, microseconds: float | None = None) -> list[Block]:
    """Return the section on `auto`: the combined rankers, and all that were tried.

    `microseconds` is the predicted cost of a row, where it was measured.
    """
    cost = "" if microseconds is None else f" A row is scored in about {microseconds:.3g} µs."
    members = [
        f"{each['algorithm']}, weight {each['weight']:.3g}: {document.settings(each['parameters'])}"
        for each in found.members
    ]
    head = ["candidate", "value", "time", "result"]
    rows = [_candidate(each) for each in found.candidates[:MAX_BASELINES]]
    note = "Values and areas are of the rows that compared the candidates: they are too optimistic for the best ones."
    return [
        Paragraph(
            f"The search took {found.seconds:.3g} s of {found.budget_seconds:.3g} s. It came to "
            f"{len(members)} ranker{'s' if len(members) > 1 else ''}; of several the weighted mean rank is the score."
            f"{cost}"
        ),
        Items(members),
        Table(head, rows),
        *document.list_more(found.candidates, MAX_BASELINES),
        Paragraph(" ".join([note, *found.notes])),
    ]


def _candidate(each: LeaderboardRow) -> list[str]:
    rows = "" if each["rows"] in (0.0, 1.0) else f", from {each['rows']:.0%} of the rows"
    return [
        f"{each['algorithm']}: {document.settings(each['parameters'])}",
        document.number(each["value"]),
        f"{each['seconds']:.3g} s{rows}",
        f"{each['state']}: {each['reason']}",
    ]


def summary(facts: Facts) -> list[Block]:
    """Return the summary: what the model is for, and its key figures."""
    blocks: list[Block] = [Paragraph(" ".join(_purpose(facts)))]
    tiles = list(_tiles(facts))
    return [*blocks, Tiles(tiles)] if tiles else blocks


def _purpose(facts: Facts) -> Iterator[str]:
    model = facts.model
    if model.kind == DatasetKind.PREFERENCES:
        yield "The model puts items in order, the better ones first, as the pairs that it has learnt from say."
    elif model.kind == DatasetKind.GRADED:
        within = "" if model.query is None else f" within each {model.query}"
        yield f"The model ranks rows by their {model.label}{within}: those of the greatest grades come first."
    elif model.labels is not None:
        names = ", ".join(label["name"] for label in model.labels)
        yield f"The model ranks rows by each of {len(model.labels)} labels: {names}."
    else:
        yield f"The model ranks rows: those that probably have {model.label} = {model.positive} come first."
    if facts.part is None:
        yield "It was not judged."
        return
    rows = rows_of(model.validation, facts.part)
    if rows == "out-of-fold":
        yield "Each row was judged by a ranker of its kind that had not learnt from it."
    elif facts.part == "validation":
        yield "It was judged on data that it had not learnt from."
    metrics = facts.metrics[facts.part]
    if facts.curve_part is not None:
        auc = metrics["auc"]
        yield (
            f"There a positive row has a higher score than a negative one with probability {auc['value']:.3f} "
            f"({auc['low']:.3f} to {auc['high']:.3f})."
        )


def _tiles(facts: Facts) -> Iterator[Tile]:
    if facts.part is None:
        return
    metrics, kind = facts.metrics[facts.part], facts.model.kind
    rows = rows_of(facts.model.validation, facts.part)
    if kind == DatasetKind.PREFERENCES:
        yield _tile("Pairs in order", metrics["pair_order"])
        yield Tile(
            "Pairs judged",
            document.count(metrics["pairs"]),
            f"of {metrics['items']:,} items, {rows}",
        )
        return
    if kind == DatasetKind.MULTILABEL:
        note = f"over {metrics['evaluated']} of {len(metrics['labels'])} labels, {rows} rows"
        yield Tile("Mean AUC", document.number(metrics["mean_auc"]), note)
        for found in metrics["mean_pauc"]:
            yield Tile(
                f"Mean partial AUC, {document.window(found)}", document.number(found["value"]), note
            )
        return
    if (lists := metrics.get("lists")) is not None:
        for each in lists["metrics"]:
            if each["metric"] in _LIST_TILES:
                yield _tile(f"{_LIST_TILES[each['metric']]} of a query, mean", each)
    if kind == DatasetKind.GRADED:
        if (order := metrics["order"]) is not None:
            yield _tile("C-index", order["c_index"])
        note = ", ".join(f"{each['grade']}: {each['rows']:,}" for each in metrics["grades"])
        total = sum(each["rows"] for each in metrics["grades"])
        yield Tile(f"{rows.capitalize()} rows by grade", document.count(total), note)
        return
    yield _tile("AUC", metrics["auc"])
    yield _tile("Gini", metrics["gini"])
    if metrics["ks"] is not None:
        yield Tile("KS", document.number(metrics["ks"]), "greatest difference of TPR and FPR")
    for found in metrics["pauc"]:
        yield _tile(f"Partial AUC, {document.window(found)}", found)
    if (named := metrics["metric"]) is not None:
        yield _tile(document.objective(facts.model.objective).capitalize(), named)
    total = metrics["positives"] + metrics["negatives"]
    note = f"{metrics['positives']:,} positive, {metrics['negatives']:,} negative"
    yield Tile(f"{rows.capitalize()} rows", document.count(total), note)


def _tile(name: str, found: Json) -> Tile:
    note = ""
    if found["low"] is not None and found["high"] is not None:
        note = f"{found['low']:.4f}–{found['high']:.4f}"
    return Tile(name, document.number(found["value"]), note)


def evaluation(facts: Facts) -> list[Block]:
    """Return the section with every figure and its interval, for each part."""
    if not facts.metrics:
        return [Paragraph("There are none: the model was not judged.")]
    level = next(iter(facts.metrics.values()))["level"]
    head = ["", *(f"{rows_of(facts.model.validation, part)} rows" for part in facts.metrics)]
    notes = [f"Intervals hold at a level of {level:.0%}."]
    if facts.out_of_fold is not None:
        aucs = ", ".join(document.number(fold["auc"]) for fold in facts.out_of_fold.fold_aucs)
        notes.append(f"AUC fold by fold: {aucs}.")
    return [Table(head, list(_rows(facts))), Paragraph(" ".join(notes))]


def _rows(facts: Facts) -> Iterator[list[str]]:
    parts = list(facts.metrics.values())
    kind = facts.model.kind

    def row(name: str, write: Callable[[Any], str], key: str) -> list[str]:
        return [name, *(write(part[key]) for part in parts)]

    if kind == DatasetKind.PREFERENCES:
        yield row("pairs in order", document.interval, "pair_order")
        yield row("misranked, ties counted whole", document.number, "misrank_fraction")
        yield row("tied pairs", document.number, "ties")
        yield row("pairs", document.count, "pairs")
        yield row("items", document.count, "items")
        effective = "pairs that tell as much without a common item"
        yield row(effective, lambda pairs: document.count(round(pairs)), "effective_pairs")
        return
    if kind == DatasetKind.MULTILABEL:
        yield from _label_rows(parts)
        return
    yield from _list_rows(parts)
    if kind == DatasetKind.GRADED:
        yield from _grade_rows(parts)
        return
    yield row("AUC", document.interval, "auc")
    for k, found in enumerate(parts[0]["pauc"]):
        areas = (document.interval(part["pauc"][k]) for part in parts)
        yield [f"partial AUC, {document.window(found)}", *areas]
    for k, height in enumerate(parts[0]["tpr_at_fpr"]):
        shown = []
        for part in parts:
            heights = part["tpr_at_fpr"]
            found = heights[k] | {"value": heights[k]["tpr"]} if heights else None
            shown.append(document.interval(found))
        yield [f"TPR at FPR {height['fpr']:g}", *shown]
    yield row("positives", document.count, "positives")
    yield row("negatives", document.count, "negatives")
    if any(part["positive_weight"] != part["positives"] for part in parts):
        yield row("weight of the positives", document.count, "positive_weight")
        yield row("weight of the negatives", document.count, "negative_weight")
    yield row("tied pairs", document.number, "ties")


_LIST_TILES = {"auc": "AUC", "ndcg@10": "NDCG@10"}
_ORDER = {
    "c_index": "C-index: pairs of different grades in order",
    "mean_auc": "mean AUC of two grades",
    "volume": "probability that one row of each grade are all in order",
}


def _list_rows(parts: list[Json]) -> Iterator[list[str]]:
    """The figures within queries, where a part has them."""
    measured = [part.get("lists") for part in parts]
    names = [
        each["metric"]
        for each in next((one for one in measured if one), {"metrics": []})["metrics"]
    ]
    for name in names:
        shown = []
        for found in measured:
            metrics = {each["metric"]: each for each in (found or {"metrics": []})["metrics"]}
            shown.append(document.interval(metrics.get(name)))
        yield [f"{name} within queries, mean", *shown]
    if names:
        yield ["queries", *(document.count(found and found["queries"]) for found in measured)]


def _grade_rows(parts: list[Json]) -> Iterator[list[str]]:
    """The figures of grades as one list, and the rows of each grade."""
    if any(part["order"] for part in parts):
        for name, title in _ORDER.items():
            yield [title, *(document.interval((part["order"] or {}).get(name)) for part in parts)]
    for grade in sorted({each["grade"] for part in parts for each in part["grades"]}):
        counts = ({each["grade"]: each["rows"] for each in part["grades"]} for part in parts)
        yield [f"rows of grade {grade}", *(document.count(count.get(grade, 0)) for count in counts)]


def _label_rows(parts: list[Json]) -> Iterator[list[str]]:
    for k, label in enumerate(parts[0]["labels"]):
        yield [
            f"AUC, {label['label']}",
            *(document.interval(part["labels"][k]["auc"]) for part in parts),
        ]
        for j, found in enumerate(label["pauc"]):
            areas = (part["labels"][k]["pauc"] for part in parts)
            yield [
                f"partial AUC, {label['label']}, {document.window(found)}",
                *(document.interval(area[j]) if len(area) > j else "—" for area in areas),
            ]
        yield [
            f"positives, {label['label']}",
            *(document.count(part["labels"][k]["positives"]) for part in parts),
        ]
    yield ["mean AUC", *(document.number(part["mean_auc"]) for part in parts)]


_MIN_ROWS = 30
_OVERFIT = 0.05


def document_of(facts: Facts) -> Document:
    """Write the report of a model."""
    model = facts.model
    found = warnings(facts)
    sections = []
    if window := list(facts.plots())[1:]:  # the whole curve is on the first pages
        sections.append(Section("The curve of the objective's window", [Pictures(window)]))
    sections.append(Section("How good it is", evaluation(facts)))
    if facts.cutoffs:
        sections.append(Section("Operating points", _cutoffs(facts)))
    if facts.curve_part is not None:
        sections.append(Section("Top of the list", _top(facts, facts.curve_part)))
    if facts.calibration is not None:
        sections.append(Section("Probabilities", _probabilities(facts.model, facts.calibration)))
    if facts.baselines is not None:
        compared = baselines(facts.baselines, model.beats_baselines)
        sections.append(Section("Against simple benchmark models", compared))
    if facts.leaderboard is not None:
        cost = facts.model.parameters.get("score_microseconds")
        sections.append(Section("Leaderboard of auto", leaderboard(facts.leaderboard, cost)))
    sections += [Section("Data", data(facts)), Section("Training", training(facts))]
    if facts.importance is not None:
        labels = [label["name"] for label in model.labels or ()]
        sections.append(Section("Importance of the features", importance(facts.importance, labels)))
    elif model.importance_job_id is not None:
        pending = f"Not measured yet: it comes after the model, by {model.importance_job_id}."
        sections.append(Section("Importance of the features", [Paragraph(pending)]))
    sections += [
        Section("Lineage", [lineage(facts)]),
        Section("How to read it", [Items(list(_reading(facts)))]),
    ]
    return Document(
        title=f"Model report: {model.name}:{model.version}",
        subtitle=f"{model.id}, trained by {model.algorithm} on {document.moment(model.created_at)}; "
        f"report written {document.moment(facts.written_at)}",
        sections=brief(facts, summary(facts), found),
        appendix=[*sections, *_warnings_left(found)],
    )


def _warnings_left(found: Sequence[str]) -> Iterator[Section]:
    """Yield the section of all warnings, if the first pages have no room for them."""
    if len(found) > MAX_LIMITS:
        yield Section("All warnings", [Items(found)])


def warnings(facts: Facts) -> list[str]:
    """Return the warnings: the model's own, and others that a reader needs before trusting the figures."""
    return [*facts.model.warnings, *_cautions(facts)]


def _cautions(facts: Facts) -> Iterator[str]:
    if facts.part is None:
        yield "The model was not judged at all."
    elif facts.part == "train":
        yield "The figures are of rows that the model has learnt from: they are too optimistic, by an unknown amount."
    if facts.dataset is None:
        yield "The dataset was deleted: its rows cannot be read any more."
    if facts.profile is not None:
        leaks = [column["name"] for column in facts.profile.columns if column.get("leak")]
        if leaks:
            yield (
                f"These features rank so well alone that they may contain the label: {', '.join(leaks[:10])}. "
                "Leave out those that are not known when rows are scored."
            )
        both = facts.profile.duplicates.get("rows_of_both_classes")
        if both:
            yield (
                f"{both:,} rows of the dataset are equal in every feature to a row of the other class: no ranker can "
                "tell them apart."
            )
    metrics = facts.metrics.get(facts.part or "", {})
    for name in ("positives", "negatives"):
        if 0 < metrics.get(name, _MIN_ROWS) < _MIN_ROWS:
            yield (
                f"The model was judged on {metrics[name]} {name} only, so the intervals are wide: read these, not the "
                "figures alone."
            )
    if facts.model.beats_baselines is False:
        yield "The model is not shown to be better than simple benchmark models on the same rows."
    train = facts.metrics.get("train")
    if facts.part == "validation" and train and "auc" in train:
        gap = train["auc"]["value"] - metrics["auc"]["value"]
        if gap > _OVERFIT and metrics["auc"]["high"] < train["auc"]["value"]:
            yield f"The AUC on the training rows is higher by {gap:.3f}: the model has partly memorised them."


def _cutoffs(facts: Facts) -> list[Table | Paragraph]:
    head = ["asked for", "threshold", "FPR", "TPR", "precision", "lift", "at exactly this rate"]
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
        "Rows with a score at or above the threshold are flagged. Precision and lift hold where "
        f"{share:.2%} of the rows are positive, as here; GET …/operating-point takes another prevalence, and costs."
    )
    return [Table(head, rows), Paragraph(note)]


def _top(facts: Facts, curve_part: PartCurve) -> list[Table | Paragraph | Pictures]:
    """Return the gains table, average precision, and the curve of precision and recall."""
    head = ["first rows", "rows", "positives", "precision", "recall", "lift"]
    rows = [
        [
            f"{gain.share:.0%}",
            f"{gain.size:,.6g}",
            f"{gain.positives:,.6g}",
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
        f"Average precision: {document.interval(found.interval, 3)}; that of chance is {share:.3f}. All of this holds "
        f"where {share:.2%} of the rows are positive, as here; GET …/gains takes another prevalence and other sizes. "
        "Rows with equal scores at the end of a size are taken at random, and the figures are their mean."
    )
    metrics = facts.metrics[curve_part.part]
    plot = precision_recall_plot(curve_part, metrics)
    return [Table(head, rows), Paragraph(note), Pictures([plot])]


def _probabilities(model: Model, found: ModelCalibration) -> list[Table | Paragraph | Pictures]:
    """Return how scores become probabilities, how good these are, and the reliability diagram."""
    method = (
        f"Probabilities are made of scores by the method {found.method}, learnt on {found.rows:,} rows that the ranker "
        f"did not see, {found.positives:,} of them positive. They are for a population in which {found.prevalence:.2%} "
        "of the rows are positive; prevalence= asks for another."
    )
    evaluated = found.reliability
    if evaluated is None:
        return [Paragraph(method), Paragraph("There were too few rows to judge them.")]
    rows = []
    for name, score in (("Brier score", evaluated["brier"]), ("log loss", evaluated["log"])):
        parts = (score["score"], score["miscalibration"], score["discrimination"])
        values = (*parts, score["uncertainty"])
        rows.append([name, *("∞" if value is None else f"{value:.4f}" for value in values)])
    lines = [
        f"{name}: {document.interval(interval, 2)}; {right} is right"
        for name, interval, right in (
            ("calibration in the large, in log odds", evaluated["in_the_large"], 0),
            ("slope", evaluated["slope"], 1),
        )
        if interval is not None
    ]
    if (shape := evaluated.get("shape")) is not None:
        lines.append(
            f"shape, in log odds: {shape['value']:.2f} [{shape['low']:.2f}, {shape['high']:.2f}]; 0 is right"
        )
    if (periods := evaluated.get("periods")) is not None:
        levels = ", ".join(f"{each['value']:+.2f}" for each in periods["levels"])
        lines.append(f"level by time window, in log odds: {levels}")
    where = (
        "Tested on the last time window, with a calibration fitted on the windows before"
        if evaluated.get("later")
        else "Cross-fitted on these rows, which does not test later rows"
    )
    note = f"{where}. Score = miscalibration − discrimination + uncertainty. {'. '.join(lines)}."
    head = ["score", "value", "miscalibration", "discrimination", "uncertainty"]
    plot = reliability_plot(model, evaluated)
    return [Paragraph(method), Table(head, rows), Paragraph(note), Pictures([plot])]


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
    if facts.curve_part is not None:
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
                "Areas are means over the folds. The curve is of the scores of all folds together, on the scale of the "
                "ranker that is served. Its thresholds are approximate, for they were never tried on that ranker, "
                "which has learnt from all rows. The band takes the scores for those of one ranker."
            )
    if facts.model.selected_by is not None:
        yield "The rows by which a search has chosen are none of those that the figures come from."
    if facts.importance is not None:
        yield "Importance says what the model uses, not what causes what. Figures of two methods cannot be compared."
