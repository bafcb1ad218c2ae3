"""Does a model rank better than random, and as well as at its validation?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.findings.finding import Finding, FindingRows, FindingSize, rows_needed, say_needed

Area = Mapping[str, Any]
"""A ranking metric of a validation, or its change (`evaluation.drift`)."""

# Differences within these margins count as none. docs/statistics-evidence.md has how often that is wrong.
AREA_MARGIN = 0.05
"""The largest irrelevant drop of the AUC, the C-index or the fraction of ordered pairs, unless `EXCESS_FRACTION` is
less.
"""
EXCESS_FRACTION = 0.25
"""The largest irrelevant drop as a fraction of the excess over one half that the validation has."""
_OF_CHANCE = {"auc": "AUC", "pair_order": "fraction of ordered pairs", "grades": "C-index"}
"""The metrics that are one half for a random order, with their names."""


def ranks(areas: Sequence[Area], effect_of_time: str) -> Finding:
    """Say whether the validation shows that a model ranks better than random. `effect_of_time` is a sentence, if a
    baseline ranks significantly differently on the newest rows.
    """
    comparable = [area for area in areas if area["of"] in _OF_CHANCE]
    if not comparable:
        words = "The model has no validation metrics."
        return Finding("ranks", "unknown", words, reason="not_measured", missing=["auc"])
    least = min(comparable, key=lambda area: area["low"])
    is_better = least["low"] > 0.5
    value, low, high = (f"{least[end]:.3f}" for end in ("value", "low", "high"))
    used = list(dict.fromkeys(area["of"] for area in comparable))
    return Finding(
        "ranks",
        "yes" if is_better else "no",
        f"The {area_name(least)} is {value} ({low} to {high}), {'' if is_better else 'not '}significantly better than "
        f"random (0.5).{effect_of_time and f' {effect_of_time}'}",
        rows=FindingRows("validation", "the validation rows"),
        size=FindingSize(least["of"], least["value"], least["low"], least["high"]),
        used=[*used, *(["random_splits"] if effect_of_time else [])],
    )


def ranking_kept(changes: Sequence[Area], level: float, n_rows: int | None) -> Finding:
    """Say whether a model ranks as well as at its validation. `changes` are tested (`shift.adjust`)."""
    areas = [area for area in changes if area["of"] in _OF_CHANCE] or changes
    unknown = [area for area in areas if not _is_complete(area)]
    known = [area for area in areas if _is_complete(area)]
    margins = [_margin_of(area) for area in known]
    about: dict[str, Any] = {
        "margin": min(margins, default=None),
        "used": list(dict.fromkeys(area["of"] for area in known)),
        "missing": list(dict.fromkeys(area["of"] for area in unknown))
        or ([] if known else ["auc"]),
    }
    if fallen := [area for area in changes if area["changed"] and area["change"]["value"] < 0]:
        words = f"The model ranks significantly worse: {_named(fallen)}."
        return Finding("ranking_kept", "no", words, size=_size(fallen[0]), **about)
    if unknown:
        words = f"The change of the {area_name(unknown[0])} has no confidence interval."
        return Finding("ranking_kept", "unknown", words, reason="no_interval", **about)
    if not known:
        words = "No metric can be compared with the validation of the model."
        return Finding("ranking_kept", "unknown", words, reason="not_measured", **about)
    pairs = list(zip(known, margins, strict=True))
    undecided = [(area, most) for area, most in pairs if area["change"]["low"] <= -most]
    area, most = max(undecided or pairs, key=lambda each: -each[0]["change"]["low"] - each[1])
    about["size"] = _size(area)
    risen = [each for each in changes if each["changed"]]
    change = area["change"]
    said = (
        f"The model ranks significantly better: {_named(risen)}."
        if risen
        else f"The {area_name(area)} is {area['after']['value']:.3f}, after {area['before']['value']:.3f} at "
        f"validation (change {change['value']:+.3f}, {change['low']:+.3f} to {change['high']:+.3f})."
    )
    if not undecided:
        words = f"{said} A drop of more than {about['margin']:.3g} is ruled out."
        return Finding("ranking_kept", "yes", words, **about)
    if most <= 0.0:
        words = f"{said} No drop is negligible, because the ranking was not better than random at validation."
        return Finding("ranking_kept", "unknown", words, reason="not_better_than_random", **about)
    factors = [_factor(each, margin, level) for each, margin in undecided]
    more = rows_needed(n_rows, factors)
    words = f"{said} There are too few rows to rule out a drop of more than {most:.3g}."
    if n_rows is not None and None in factors:
        words += " More new rows do not help, because the validation has too few rows."
    words += say_needed(more)
    about["more_rows"] = more
    return Finding("ranking_kept", "unknown", words, reason="too_few_rows", **about)


def area_margin(value: float) -> float:
    """Return the largest irrelevant difference of an area whose value by chance is 0.5; 0 if it is not better."""
    return max(0.0, min(AREA_MARGIN, EXCESS_FRACTION * (value - 0.5)))


def area_name(area: Area) -> str:
    match area["of"]:
        case "prevalence":
            return "fraction of positives"
        case "list":
            return f"mean {area['metric']} per query"
        case "pauc":
            return f"partial AUC (FPR {area['fpr_min']:g} to {area['fpr_max']:g})"
    return _OF_CHANCE[area["of"]] + (f" of {area['label']}" if "label" in area else "")


def _named(areas: Sequence[Area]) -> str:
    return ", ".join(
        f"{area_name(area)} {area['after']['value']:.3f} here, {area['before']['value']:.3f} at validation"
        for area in areas
    )


def _size(area: Area) -> FindingSize:
    change = area["change"]
    return FindingSize(area["of"], change["value"], change["low"], change["high"])


def _is_complete(area: Area) -> bool:
    """The metric needs a value and an interval before, after, and for its change."""
    found = (area[sample] for sample in ("before", "after", "change"))
    return not any(each[end] is None for each in found for end in ("value", "low", "high"))


def _margin_of(area: Area) -> float:
    return area_margin(area["before"]["value"]) if area["of"] in _OF_CHANCE else AREA_MARGIN


def _factor(area: Area, margin: float, level: float) -> float | None:
    """Return the factor for the rows until the interval of the change fits the margin; None if none suffices."""
    from core.metrics.equivalence import rows_factor

    if margin <= 0.0:
        return None
    before, after = area["before"], area["after"]
    varying, fixed = after["value"] - after["low"], before["high"] - before["value"]
    return rows_factor(varying, margin, level, change=-area["change"]["value"], fixed=fixed)
