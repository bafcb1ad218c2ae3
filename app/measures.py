"""Labels of a model's metrics and objective, for pages and reports. The metrics are JSON documents of the API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

Json = Mapping[str, Any]


class MetricLabel(NamedTuple):
    """A metric's label, unit ("" for a plain number), and value for random scores: a number, a text if it depends, or
    None.
    """

    name: str
    unit: str
    chance: float | str | None


METRICS: Mapping[str, MetricLabel] = {
    "auc": MetricLabel("AUC", "0 to 1", 0.5),
    "gini": MetricLabel("Gini", "-1 to 1", 0.0),
    "pauc": MetricLabel("Partial AUC", "0 to 1", "the midpoint of the window"),
    "tpr": MetricLabel(
        "True positive rate", "fraction of the positives", "the false positive rate"
    ),
    "fpr": MetricLabel("False positive rate", "fraction of the negatives", None),
    "precision": MetricLabel(
        "Precision", "fraction of the flagged rows", "the fraction of positives"
    ),
    "average_precision": MetricLabel("Average precision", "0 to 1", "the fraction of positives"),
    "precision_at_recall": MetricLabel(
        "Precision at a recall", "fraction of the flagged rows", "the fraction of positives"
    ),
    "lift": MetricLabel("Lift of the top rows", "times the fraction of positives", 1.0),
    "ndcg": MetricLabel("NDCG", "0 to 1", None),
    "pair_order": MetricLabel("Pairs in order", "fraction of the pairs", 0.5),
    "c_index": MetricLabel("C-index", "fraction of the pairs", 0.5),
    "mean_auc": MetricLabel("Mean AUC of two grades", "0 to 1", 0.5),
}
TIME_ALPHA = 0.05
"""Significance level of the test for an effect of time."""
BASELINES = {
    "logistic": "logistic regression on quantile-transformed columns",
    "auc_svm": "linear SVM for the AUC",
}
"""What each baseline is, by its name."""
CHOSEN_ON_ROWS = ("cost", "objective", "ks", "fpr", "tpr")
"""What a cutoff can be the best for, by the labels of the rows that it is chosen on. The share of flagged rows does not
depend on labels.
"""
OPTIMISTIC = "The cutoff was chosen on these rows, so its rates on them are optimistic."


def optimism(chosen_by: Iterable[str], confidence: float | None = None) -> str | None:
    """Return what to say of a cutoff's rates on the rows that it was chosen on; None if it was not chosen by them, or
    with a confidence, which allows for the choice.
    """
    is_chosen = confidence is None and any(name in CHOSEN_ON_ROWS for name in chosen_by)
    return OPTIMISTIC if is_chosen else None


def note_of_kept(kept: Json) -> str | None:
    """Return what to say of the rates of a cutoff that keeps a limit of a rate, where it was set."""
    rates = [name for name in ("fpr", "tpr") if kept.get(name) is not None]
    return optimism(rates, kept.get("confidence"))


QUESTIONS = {
    "ranks": "Better than random?",
    "beats_baselines": "Better than the baselines?",
    "probabilities": "Well calibrated?",
    "ranking_kept": "Ranks as well on newer data?",
    "positives_kept": "As many positives?",
    "stable": "Same scores and columns on newer data?",
    "rates_kept": "Same rates at a cutoff?",
    "groups": "Equal across groups?",
}
"""The question of each finding about a model, for people."""


SEPARATED_TESTS = (
    "The model ranks every positive above every negative here. Its errors cannot be estimated from such rows, so the "
    "p-values are left out."
)
SEPARATED_CALIBRATION = (
    "The scores separate the classes. The slope and the shape of the log odds cannot be estimated from such rows, so "
    "they are left out."
)
"""What is said in place of values that are not estimable if a ranking makes no error."""


def is_separated(area: float | None) -> bool:
    """Whether a ranking with this AUC, or mean TPR over a range of FPRs that ends below 1, misranks no pair."""
    return area == 1.0


MAX_ROWS_FACTOR = 10.0
"""Greatest multiple of the rows there are that is stated as needed: a projection farther than that says nothing."""


def is_within_reach(further: float, rows: float) -> bool:
    """Say whether a number of further rows may be stated as needed, beside the `rows` that it was computed from."""
    return rows + further <= MAX_ROWS_FACTOR * rows


def share_interval(part: float, whole: float, inflation: float = 1.0) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a fraction. `inflation` is the factor of the variance by recurring entities."""
    from core.metrics import wilson_interval

    found = wilson_interval(part / whole, whole / inflation, 0.95)
    return found.low, found.high


def percent(share: float, digits: int = 1) -> str:
    """Return a fraction as a percentage."""
    return f"{100.0 * share:.{digits}f} %"


def metric(name: str) -> str:
    """Label names such as `precision@1%`, `pauc:0,0.2`, `precision_at_recall:0.8`."""
    first, _, size = name.partition("@")
    kind, _, terms = first.partition(":")
    low, _, high = terms.partition(",")
    if kind == "two_way":
        return f"Two-way area, FPR at most {low}, TPR at least {high}"
    known = METRICS.get(kind)
    if known is None:
        return name
    if size:
        rows = f"{size[:-1]} %" if size.endswith("%") else f"{size} rows"
        return f"{known.name.removesuffix(' of the top rows')} of the top {rows}"
    if kind == "pauc" and terms:
        return f"{known.name}, FPR {low} to {high}"
    return f"{known.name} of {terms}" if terms else known.name


def area(fpr_min: float, fpr_max: float, first: str = "P") -> str:
    if (fpr_min, fpr_max) == (0.0, 1.0):
        return "AUC"
    return f"{first}artial AUC, FPR {fpr_min:g} to {fpr_max:g}"


def area_by_chance(fpr_min: float, fpr_max: float) -> float:
    """Return the area of random scores, normalised to 0 to 1: the diagonal's mean TPR in the window."""
    return (fpr_min + fpr_max) / 2


class Measure(NamedTuple):
    """A metric with its label, interval, and value for random scores. `of` is the API's name of it."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    of: str = ""
    window: tuple[float, float] | None = None

    @property
    def in_queries(self) -> bool:
        return self.of.startswith("lists/")


def measures(metrics: Json) -> Iterator[Measure]:
    """The main one is the first."""

    def one(
        name: str, of: str, chance: float | None, found: Json | None = None
    ) -> Iterator[Measure]:
        found = metrics.get(of) if found is None else found
        if found is not None:
            yield Measure(name, found["value"], found["low"], found["high"], chance, of)

    if "pair_order" in metrics:
        yield from one("Pairs in order", "pair_order", 0.5)
    elif "labels" in metrics:
        if "mean_auc" in metrics:
            yield Measure("Mean AUC", metrics["mean_auc"], chance=0.5, of="mean_auc")
        yield from _areas("mean_pauc", metrics.get("mean_pauc") or [], "Mean {}", "p")
        for each in metrics["labels"]:
            if each["auc"] is not None:
                yield from one(f"AUC of {each['label']}", "labels", 0.5, each["auc"])
    elif "order" in metrics:
        order = metrics["order"] or {}
        yield from one("C-index", "c_index", 0.5, order.get("c_index"))
        yield from one("Mean AUC of two grades", "order", 0.5, order.get("mean_auc"))
        yield from one("All grades in order", "order", None, order.get("volume"))
    else:
        yield from one("AUC", "auc", 0.5)
        yield from one("Gini", "gini", 0.0)
        if metrics.get("ks_interval") is not None:
            yield from one("KS", "ks", 0.0, metrics["ks_interval"])
        elif metrics["ks"] is not None:
            yield Measure("KS", metrics["ks"], of="ks")
        yield from _areas("pauc", metrics["pauc"])
        for each in metrics["tpr_at_fpr"]:
            rate = each["fpr"]
            yield Measure(
                f"TPR at FPR {rate:g}", each["tpr"], each["low"], each["high"], rate, "tpr"
            )
        if (named := metrics.get("metric")) is not None:
            yield from one(metric(named["metric"]), "metric", named["chance"], named)
    for each in (metrics.get("lists") or {"metrics": []})["metrics"]:
        chance = 0.5 if each["metric"] == "auc" else None
        name = f"{metric(each['metric'])} within queries"
        yield Measure(
            name, each["value"], each["low"], each["high"], chance, f"lists/{each['metric']}"
        )


def _areas(of: str, found: list[Json], label: str = "{}", first: str = "P") -> Iterator[Measure]:
    for each in found:
        ends = (each["fpr_min"], each["fpr_max"])
        name, chance = label.format(area(*ends, first)), area_by_chance(*ends)
        yield Measure(name, each["value"], each.get("low"), each.get("high"), chance, of, ends)


def rows_used(rows: Json, method: str) -> str:
    """Describe a model's rows: `8,060 rows: 6,045 for training, 2,015 for validation`."""
    unit, total = rows["unit"], rows["dataset"]
    trained, validated = rows["training"], rows["validation"]
    of_training = "" if trained is None else f"{trained:,} for training"
    if method == "cross_validation":
        whole = "" if validated is None else f" of {validated:,} {unit}"
        validation = f"cross-validation{whole}"
    elif method == "dataset":
        of = "" if trained is None else " of another dataset"  # None: the model was imported
        validation = "" if validated is None else f"{validated:,}{of} for validation"
    elif method == "none":
        validation = "none for validation"
    else:
        validation = "" if validated is None else f"{validated:,} for validation"
    parts = [part for part in (of_training, validation) if part]
    unused = 0 if None in (total, trained, validated) else total - trained - validated
    if method == "holdout" and unused > 0:
        parts.append(f"{unused:,} in neither")
    if total is None:
        return ", ".join(parts)
    return ": ".join([f"{total:,} {unit}", *([", ".join(parts)] if parts else [])])


def positives_over_time(train: Json, newest: Json) -> str:
    """Compare the fractions of positives among newest and earlier rows, if they differ significantly.

    The test is a two-sided normal one at 5 %, for rows without weights.
    """
    (early, rows), (late, new_rows) = (
        (each["positives"], each["positives"] + each["negatives"]) for each in (train, newest)
    )
    if not rows or not new_rows:
        return ""
    pooled = (early + late) / (rows + new_rows)
    variance = pooled * (1.0 - pooled) * (1.0 / rows + 1.0 / new_rows)
    difference = late / new_rows - early / rows
    if difference**2 <= 1.96**2 * variance:
        return ""
    return (
        f"The fraction of positives has {'risen' if difference > 0 else 'fallen'} significantly: "
        f"{percent(late / new_rows)} of the newest rows are positive, and {percent(early / rows)} of the earlier ones. "
        "If this continues, the probabilities of later rows will be wrong."
    )


_WIDE = 0.05
"""Range of the AUCs of random splits from which on a single split is called imprecise."""


def baseline(name: str) -> str:
    """Return what a baseline is: `linear SVM for the AUC`."""
    return BASELINES.get(name, name)


def time_effect(name: str, found: Json) -> str:
    """Return sentences on a baseline's AUC on the newest rows beside its AUCs on random splits, `random_split` of the
    API. They claim an effect of time only if the test has found one.
    """
    ends = f"{found['low']:.3f} to {found['high']:.3f}"
    algorithm = f"a {baseline(name)}, fitted again for this test,"
    newest, splits = found["newest"], found["splits"]
    here = f"{newest['value']:.3f} ({newest['low']:.3f} to {newest['high']:.3f})"
    several = f"{splits} random splits of the same {found['rows']:,} rows (mean {found['value']:.3f}, {ends})"
    p_value = f"p = {found['p_value']:.2g}"
    if found["p_value"] <= TIME_ALPHA:
        lower = newest["value"] < found["value"]
        words = (
            f"There is a significant effect of time on the AUC ({p_value}): {algorithm} has {here} on the newest rows, "
            f"{'less' if lower else 'more'} than on any of {several}. Validation on random rows would be too "
            f"{'optimistic' if lower else 'pessimistic'}."
        )
    else:
        words = (
            f"No significant effect of time on the AUC ({p_value}): {algorithm} has {here} on the newest rows, within "
            f"the range of {several}."
        )
    if found["high"] - found["low"] > _WIDE:
        words += " The AUC of a single random split is imprecise here."
    return words


def describe_segments(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return weak segments with their sentences."""
    if found is None:
        return None
    segments = [
        {**each, "words": segment_in_words(each, found["segments"])} for each in found["found"]
    ]
    return {**found, "found": segments}


_VERDICTS = {
    "worse": "ranks worse than elsewhere",
    "random": "ranks hardly better than at random",
    "wrong_way_round": "ranks rows the wrong way round",
}


def segment_in_words(segment: Mapping[str, Any], segments: int) -> str:
    """Return the sentences about one weak segment of `segments` that were looked at."""
    conditions = segment["conditions"]
    where = " and ".join(f"{each['column']} is {each['value'] or 'missing'}" for each in conditions)
    others = (
        f"values of {conditions[0]['column']}" if len(conditions) == 1 else "pairs of their values"
    )
    return (
        f"Where {where} ({100.0 * segment['share']:.2g} % of the rows, {segment['positives']:,} positives) the model "
        f"{_VERDICTS[segment['verdict']]}: AUC {segment['auc']:.2f}, against {segment['auc_of_others']:.2f} within the "
        f"other {others}. That is at least {segment['drop_low']:.2f} less, with 95 % confidence over all "
        f"{segments:,} segments that were looked at."
    )
