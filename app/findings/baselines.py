"""Does a model rank significantly better than simple models that were trained on the same rows?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.findings.finding import Finding, FindingRows
from app.measures import SEPARATED_TESTS, area, baseline, is_separated, metric

Compared = Mapping[str, Any]
"""A comparison over a window, or by a metric, as `ModelBaselines.windows` has them."""


def beats_baselines(
    beats: bool | None,
    windows: Sequence[Compared],
    decided_on: Mapping[str, Any],
    fitted: Sequence[Mapping[str, Any]],
    level: float,
    skipped: str | None,
    *,
    is_easy: bool,
) -> Finding:
    """Say whether a model ranks significantly better than each baseline, by its objective.

    `beats` is what the training decided, None without a decision, and `skipped` is why there is none. `decided_on` is
    the window of the objective, unless one of the `windows` is a metric. `fitted` are the baselines, of which some may
    have failed. `is_easy`: the model is as easy to explain as they are.
    """
    named = {each["algorithm"]: _describe(each) for each in fitted if not each["failed"]}
    failed = [each["algorithm"] for each in fitted if each["failed"]]
    about: dict[str, Any] = {"used": list(named), "missing": failed}
    if named:
        about["rows"] = FindingRows("validation", "the validation rows")
    if beats is None:
        words = "The model was not compared with baselines"
        if windows:
            words = "The differences from the baselines are inconclusive"
        words += "." if skipped is None else f": {skipped}."
        return Finding("beats_baselines", "unknown", words, reason="not_measured", **about)
    if any(is_separated(each["chosen"]["value"]) for each in windows):
        words = SEPARATED_TESTS
        return Finding("beats_baselines", "unknown", words, reason="no_interval", **about)
    deciding = next((each for each in windows if "metric" in each), None) or next(
        each
        for each in windows
        if all(each.get(end) == decided_on[end] for end in ("fpr_min", "fpr_max"))
    )
    by = f"By {_measure(deciding)}, "
    lacking = f" Not trained: {_listed(map(baseline, failed))}." if failed else ""
    if beats:
        words = f"{by}the model is significantly better than {_each(named.values())}.{lacking}"
        return Finding("beats_baselines", "yes", words, **about)
    signs = {each["algorithm"]: _sign(each["difference"], level) for each in deciding["baselines"]}
    better, beaten, alike = (
        [name for algorithm, name in named.items() if signs.get(algorithm, 0) == sign]
        for sign in (-1, 1, 0)
    )
    if better:
        words = f"{by}{_each(better)} rank{'' if len(better) > 1 else 's'} significantly better than the model."
    else:
        words = f"{by}no significant improvement over {_each(alike, 'or')}."
    if beaten:
        words += f" The model is significantly better than {_each(beaten)}."
    words += lacking if is_easy else f"{lacking} A baseline is easier to explain."
    return Finding("beats_baselines", "no", words, **about)


def _sign(difference: Mapping[str, Any], level: float) -> int:
    """Return 1 if the model is significantly better than a baseline, -1 if it is worse, else 0."""
    p_value = difference["adjusted_p_value"]
    if p_value is None or p_value > 1.0 - level:
        return 0
    return 1 if difference["value"] > 0.0 else -1


def _measure(compared: Compared) -> str:
    if "metric" in compared:
        return metric(compared["metric"])
    return area(compared["fpr_min"], compared["fpr_max"], "p")


def _describe(each: Mapping[str, Any]) -> str:
    """Name a baseline, and how many rows it was trained on if these were fewer."""
    rows, of_rows = each.get("rows"), each.get("of_rows")
    is_sample = rows is not None and of_rows is not None and rows < of_rows
    sample = f" (on {rows:,} of {of_rows:,} rows)" if is_sample else ""
    return f"{baseline(each['algorithm'])}{sample}"


def _each(names: Any, word: str = "and") -> str:
    found = list(names)
    return f"the baseline{'s' if len(found) > 1 else ''} {_listed(found, word)}"


def _listed(names: Any, word: str = "and") -> str:
    return f" {word} ".join(names)
