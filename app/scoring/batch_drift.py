"""The drift of a batch of scored rows, without labels: their scores and their columns against validation and training.

The rows come block by block. A random sample of the rows is kept, so memory is bounded and the cost of a long table
is that of a short one. Which rows are in it depends only on their number, not on the blocks. The counts of flagged rows
are those of all rows.

**Verdict.** `shifted` if the scores, or a column that matters to the model, have a significant and at least moderate
PSI. Tests of a batch are at 1 % for all of them together, because batches recur. `stable` if the interval of the PSI of
the score excludes a large shift, and so do those of columns with at least half of the importance. Else the rows are
`insufficient`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired

import numpy as np
from typing_extensions import TypedDict

from app.models.column_drift import (
    LARGE,
    MODERATE,
    bin_numbers,
    bin_words,
    by_weight,
    compare_column,
    importance_shares,
    matters_to_model,
    name_columns,
    outside_range,
    say_column,
    say_scores,
    say_untested,
)
from app.models.operating_points import find_objective_curves, objective_point
from app.models.repository import find_profile
from app.models.row_order import SampledRows
from app.models.score_drift import (
    UNTESTED_FOLDS,
    ScoreReference,
    all_scores,
    compare_scores,
    find_score_reference,
    sample_of,
)
from app.platform.documents import TableProfile
from app.platform.sql import Json, Session
from app.platform.tables import Model
from core import metrics

if TYPE_CHECKING:
    import pyarrow as pa

    from app.models.row_order import Bins
    from app.scoring.service import Served
    from app.scoring.table_rows import Batch
    from core.base.ranker import Floats
    from core.metrics import RocCurve

STABLE, SHIFTED, INSUFFICIENT = "stable", "shifted", "insufficient"
VERDICTS = (STABLE, SHIFTED, INSUFFICIENT)
ALPHA = 0.01
"""The probability of a false alarm of a batch."""
LEVEL = 0.95
"""Of intervals, where the model has no validation to take it from."""
ENOUGH = 0.5
"""Of the importance: the share whose columns must be tested well enough for the verdict `stable`."""
MIN_ROWS = 20
"""Fewer rows are not compared: with ten bins, approximations of their tests are too rough."""

TOO_FEW = f"fewer than {MIN_ROWS} rows"

_MOST_ROWS = 1 << 13  # of the sample; the PSI has then a standard error of 0.001
_MAX_CELLS = 1 << 20  # of the sample
Draws = np.ndarray[Any, np.dtype[np.uint64]]
_ALL = np.uint64(2**64 - 1)
_STEP, _MIXES = 0x9E3779B97F4A7C15, ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LISTED, _WITH_BINS = 100, 20  # columns of the result, and of these with bins


class DriftReference(TypedDict):
    """What a batch is compared with: the training table's profile, importances and validation scores, or a reason
    instead.

    `scores` lacks the curve, which is the model's.
    """

    profile: TableProfile
    importance: dict[str, float]
    scores: ScoreReference | str
    threshold: NotRequired[float]


def find_reference(session: Session, model: Model, threshold: float | None) -> DriftReference:
    """Return what batches are compared with. `threshold` is the alias's; without one, that of the objective is used."""
    if threshold is None:
        point = objective_point(find_objective_curves(session, model))
        threshold = None if point is None else point.threshold
    found: DriftReference = {
        "profile": find_profile(session, model.id),
        "importance": importance_shares(session, model),
        "scores": find_score_reference(session, model),
    }
    if threshold is not None and math.isfinite(threshold):
        found["threshold"] = threshold
    return found


class DriftMonitor:
    """Collects a sample of the rows of a batch, and compares it with the reference."""

    def __init__(
        self, reference: DriftReference, served: Served, alpha: float = ALPHA, alone: float = 1.0
    ) -> None:
        """`alpha` is the probability of a false alarm, of all tests together.

        `alone` is the number of independent rows that a row of the batch counts as, where its entities have several
        rows.
        """
        self._reference, self._served, self._alpha = reference, served, alpha
        self._alone = alone
        self._profiles = reference["profile"]["columns"]
        index = {name: i for i, name in enumerate(served.features.names)}
        self._positions = [index[each["name"]] for each in self._profiles]
        self._numbers = [i for i, each in enumerate(self._profiles) if each["common"] is None]
        self._words = [i for i, each in enumerate(self._profiles) if each["common"] is not None]
        self._most = max(2, min(_MOST_ROWS, _MAX_CELLS // max(1, len(self._profiles))))
        self._limit, self._rows = _ALL, 0
        self._parts: list[_SampledPart] = []
        self._flagged = 0

    def add(self, batch: Batch, scores: Floats | None) -> None:
        """`scores` is None if there are several per row, which are not compared."""
        if (threshold := self._reference.get("threshold")) is not None and scores is not None:
            self._flagged += int(np.count_nonzero(scores >= threshold))
        draws = _draw(self._rows, batch.size)
        self._rows += batch.size
        kept = np.flatnonzero(draws <= self._limit)
        n_before = sum(part.size for part in self._parts)
        while n_before + kept.size > self._most:
            self._limit >>= np.uint64(1)
            self._parts = [part.thinned(self._limit) for part in self._parts]
            n_before = sum(part.size for part in self._parts)
            kept = kept[draws[kept] <= self._limit]
        n_kept = kept.size
        # Numbers are binned at the end: most of the first rows will have been dropped by then.
        numbers = np.empty((len(self._numbers), n_kept))
        for row, number in enumerate(self._numbers):
            values = batch.features.get(self._positions[number])
            numbers[row] = np.nan if values is None else values[kept]
        words = np.empty((len(self._words), n_kept), dtype=np.uint8)
        for row, number in enumerate(self._words):
            words[row] = self._bin_words(number, batch, kept)
        own = np.empty(0) if scores is None else scores[kept]
        self._parts.append(_SampledPart(draws[kept], numbers, words, own))

    def _bin_words(self, number: int, batch: Batch, kept: Bins) -> Bins:
        """Return the bins of a categorical column; an absent column is missing."""
        profile, position = self._profiles[number], self._positions[number]
        texts = batch.texts.get(position)
        if texts is None:
            return bin_words(profile, [None], None).repeat(kept.size)
        return _bin_texts(profile, texts, kept, self._served.features.categories[position])

    def describe(self) -> Json:
        """Return the drift of all rows that were added."""
        reference, level = self._reference, LEVEL
        known = reference["scores"]
        if not isinstance(known, str):
            level = known["level"]
        n_sampled = sum(part.size for part in self._parts)
        found: Json = {
            "verdict": None,
            "summary": "",
            "level": level,
            "alpha": self._alpha,
            "rows": self._rows,
            "sampled_rows": n_sampled,
            "scores": None,
            "no_scores": known if isinstance(known, str) else None,
            "flagged": None,
            "features": [],
            "n_features": 0,
            "reason": None,
        }
        if n_sampled * self._alone < MIN_ROWS:
            summary = f"Not compared: {TOO_FEW}."
            return found | {"verdict": INSUFFICIENT, "reason": TOO_FEW, "summary": summary}
        if (curve := self._served.curve) is not None and not isinstance(known, str):
            scores = np.concatenate([part.scores for part in self._parts])
            found["scores"] = self._compare_scores(scores, curve, known)
            found["flagged"] = self._compare_flagged(curve, known)
        features = self._compare_columns(level)
        if found["scores"] is None and not features:
            reason = found["no_scores"]
            return found | {"reason": reason, "summary": f"Not compared: {reason}."}
        _adjust([*features, *filter(None, [found["scores"]])], self._alpha)
        features.sort(key=by_weight)
        for each in features[_WITH_BINS:]:
            each["bins"] = None
        verdict = _judge(found["scores"], features)
        summary = _sum_up(verdict, found["scores"], features, self._rows)
        found |= {"features": features[:_LISTED], "n_features": len(features)}
        return found | {"verdict": verdict, "summary": summary}

    @property
    def _worth(self) -> float:
        """How many independent rows a row of the reference counts as, where rows come in groups (as in the batch)."""
        known, profile = self._reference["scores"], self._reference["profile"]
        if isinstance(known, str) or not profile["grouped"]:
            return 1.0
        return known["worth"]

    def _compare_scores(self, scores: Floats, curve: RocCurve, known: ScoreReference) -> Json:
        before = all_scores(curve, known["prevalence"], known["effective"])
        samples = before, sample_of(scores, min(self._worth, self._alone))
        return compare_scores(
            "all",
            samples,
            scores,
            known["level"],
            grouped=self._reference["profile"]["grouped"] or self._alone < 1.0,
            of_folds=known["of_folds"],
            untested=known["approximate"],
        )

    def _compare_flagged(self, curve: RocCurve, known: ScoreReference) -> Json | None:
        """Compare the fraction of flagged rows; None without a threshold."""
        from core.metrics.comparison import change

        if (threshold := self._reference.get("threshold")) is None:
            return None
        level = known["level"]
        sample = all_scores(curve, known["prevalence"], known["effective"])
        point = int(np.searchsorted(-sample.thresholds, -threshold, side="right")) - 1
        before = metrics.wilson_interval(float(sample.shares[point]), sample.rows, level)
        n_rows = self._rows * min(self._worth, self._alone)
        after = metrics.wilson_interval(self._flagged / self._rows, n_rows, level)
        moved = change(before, after, level)
        return {
            "threshold": threshold,
            "before": before._asdict(),
            "after": after._asdict(),
            "change": {"value": moved.value, "low": moved.low, "high": moved.high},
            "p_value": moved.p_value,
        }

    def _compare_columns(self, level: float) -> list[Json]:
        profile, importance = self._reference["profile"], self._reference["importance"]
        numbers, words = (
            np.concatenate(of_parts, axis=1)
            for of_parts in zip(*((part.numbers, part.words) for part in self._parts), strict=True)
        )
        places = {number: row for row, number in enumerate(self._numbers)}
        places |= {number: row for row, number in enumerate(self._words)}
        alone = min(
            1.0, self._alone / self._worth
        )  # beyond that of the reference, which counts for both
        rows, found = SampledRows(grouped=profile["grouped"] or alone < 1.0, alone=alone), []
        for number, column in enumerate(profile["columns"]):
            outside, place = None, places[number]
            if column["common"] is None:
                values = numbers[place]
                bins, outside = bin_numbers(column, values), outside_range(column, values)
            else:
                bins = words[place].astype(np.intp)
            test = compare_column(
                column, profile, bins, rows, level, worth=self._worth, outside=outside
            )
            name = column["name"]
            found.append({"name": name, "importance": importance.get(name)} | test)
        return found


class _SampledPart(NamedTuple):
    """The rows of one block in the sample."""

    draws: Draws
    """What each row drew, (n_rows,)."""
    numbers: Floats
    """Values of the numeric columns, (n_numeric, n_rows)."""
    words: np.ndarray[Any, np.dtype[np.uint8]]
    """Bins of the categorical columns, (n_categorical, n_rows)."""
    scores: Floats

    @property
    def size(self) -> int:
        return int(self.draws.size)

    def thinned(self, limit: np.uint64) -> _SampledPart:
        """Return the rows that drew at most `limit`."""
        kept = self.draws <= limit
        scores = self.scores[kept] if self.scores.size else self.scores
        return _SampledPart(self.draws[kept], self.numbers[:, kept], self.words[:, kept], scores)


def _draw(first: int, n_rows: int) -> Draws:
    """Return a random number of 64 bits for each row, which depends on the number of the row only (SplitMix64).

    So a sample does not depend on the blocks in which a table arrives. Every n-th row would be no sample: rows may
    alternate, such as buyer and seller.
    """
    drawn = np.arange(first + 1, first + n_rows + 1, dtype=np.uint64) * np.uint64(_STEP)
    for shift, factor in _MIXES:
        drawn = (drawn ^ (drawn >> np.uint64(shift))) * np.uint64(factor)
    return drawn ^ (drawn >> np.uint64(31))


def _bin_texts(
    profile: Any, texts: pa.DictionaryArray, rows: Bins, known: Mapping[Any, float] | None
) -> Bins:
    """Only categories of these rows are looked up."""
    import pyarrow as pa

    indices = texts.indices.take(pa.array(rows)).fill_null(-1).to_numpy()
    used, places = np.unique(indices, return_inverse=True)
    words = [None if i < 0 else texts.dictionary[int(i)].as_py() for i in used]
    names = (
        None
        if known is None
        else {word for word in words if word is not None and not math.isnan(known[word])}
    )
    return bin_words(profile, words, names)[places]


def _adjust(tests: Sequence[Json], alpha: float) -> None:
    """Add the adjusted p-value (Holm), whether the change matters, and words to each test."""
    from core.metrics.estimates import holm

    made = [test for test in tests if test["p_value"] is not None]
    adjusted = holm(np.array([test["p_value"] for test in made])).tolist()
    for test in tests:
        test["adjusted_p_value"] = test["changed"] = None
    for test, p_value in zip(made, adjusted, strict=True):
        test["adjusted_p_value"] = p_value
        test["changed"] = bool(p_value < alpha and test["psi"]["value"] >= MODERATE)
    for test in tests:
        if test["p_value"] is None:
            test["words"] = say_untested(test)
            continue
        p_value = test["adjusted_p_value"]
        chance = "statistically significant" if p_value < alpha else "not statistically significant"
        if p_value < alpha and not test["changed"]:
            chance += " but small"
        said = say_column(test) if "name" in test else say_scores(test)
        shown = "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"
        test["words"] = f"{said}, {chance} (adjusted p {shown})"


def _judge(scores: Json | None, features: Sequence[Json]) -> str:
    weighty = [each for each in features if matters_to_model(each)]
    if any(each["changed"] for each in (*weighty, *filter(None, [scores]))):
        return SHIFTED
    is_tested = scores is not None and scores["reason"] not in UNTESTED_FOLDS
    if is_tested and not _excludes_large(scores):
        return INSUFFICIENT
    weights = [1.0 if each["importance"] is None else each["importance"] for each in features]
    whole = sum(weights)
    excluded = sum(
        weight for weight, each in zip(weights, features, strict=True) if _excludes_large(each)
    )
    if whole > 0.0 and excluded < ENOUGH * whole:
        return INSUFFICIENT
    return STABLE


def _excludes_large(test: Json | None) -> bool:
    """Return True if a test was made, and the interval of its PSI excludes a large shift."""
    return test is not None and test["psi"] is not None and bool(test["psi"]["high"] < LARGE)


def _sum_up(verdict: str, scores: Json | None, features: Sequence[Json], n_rows: int) -> str:
    """Return the verdict in sentences, with the columns that explain it."""
    moved = [each for each in features if each["changed"]]
    weighty = [each for each in moved if matters_to_model(each)]
    psi = None if scores is None or scores["psi"] is None else scores["psi"]["value"]
    of_scores = "" if psi is None else f" (PSI of the score {psi:.2f})"
    untested = [
        each["name"] for each in features if each["reason"] is not None and matters_to_model(each)
    ]
    if verdict == SHIFTED:
        if scores is not None and scores["changed"]:
            size = "large" if psi is not None and psi >= LARGE else "moderate"
            said = [f"The scores have shifted since validation: {size}, PSI {psi:.2f}."]
            said.append(
                f"Columns that explain it: {name_columns(weighty)}."
                if weighty
                else "No single column that matters to the model has shifted."
            )
        else:
            said = [f"Columns have shifted since training: {name_columns(weighty)}."]
            if psi is not None:
                said.append(f"The scores have not shifted significantly (PSI {psi:.2f}).")
    elif verdict == STABLE:
        said = [f"No shift that matters since validation{of_scores}."]
        if moved:
            said.append(f"Columns of little importance have shifted: {name_columns(moved)}.")
    else:
        said = [
            f"{n_rows:,} rows are too few for a verdict: a large shift (PSI {LARGE:g} or more) cannot be "
            f"excluded{of_scores}."
        ]
    if untested:
        named = ", ".join(untested[:5]) + (
            f" and {len(untested) - 5} more" if len(untested) > 5 else ""
        )
        reason = next(each["reason"] for each in features if each["reason"] is not None)
        said.append(f"Not tested: {named} ({reason}).")
    if scores is not None and scores["reason"] is not None:
        said.append(f"The scores were not tested: {scores['reason']}.")
    return " ".join(said)
