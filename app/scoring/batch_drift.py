"""The drift of a batch of scored rows, without labels: their scores and their columns against validation and training.

The rows come block by block. A random sample of the rows is kept, so memory is bounded and the cost of a long table
is that of a short one. Which rows are in it depends only on their number, not on the blocks. The counts of flagged rows
are those of all rows. `app.findings.shift` has the rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired

import numpy as np
from typing_extensions import TypedDict

from app.findings.finding import Finding, stored
from app.findings.shift import listed, stable
from app.ingest.sampling import draws, limit_of
from app.models.column_drift import (
    bin_numbers,
    bin_words,
    compare_column,
    importance_shares,
    outside_range,
)
from app.models.operating_points import find_objective_curves, objective_point
from app.models.repository import find_profile
from app.models.row_order import SampledRows, in_time, most_sampled
from app.models.score_drift import (
    ScoreReference,
    all_scores,
    compare_scores,
    find_score_reference,
    sample_of,
)
from app.platform.documents import TableProfile
from app.platform.sql import Json, Session
from app.platform.tables import Model
from app.shift_tests import ALPHA
from core import metrics

if TYPE_CHECKING:
    import pyarrow as pa

    from app.ingest.sampling import Draws
    from app.models.row_order import Bins
    from app.scoring.service import Served
    from app.scoring.table_rows import Batch
    from core.base.ranker import Floats
    from core.metrics import RocCurve

LEVEL = 0.95
"""Of intervals, where the model has no validation to take it from."""
MIN_ROWS = 20
"""Fewer rows are not compared: with ten bins, approximations of their tests are too rough."""

TOO_FEW = f"fewer than {MIN_ROWS} rows"

_NO_LIMIT = np.uint64(2**64 - 1)


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
        self._most = most_sampled(len(self._profiles))
        self._limit, self._rows = _NO_LIMIT, 0
        self._parts: list[_SampledPart] = []
        self._flagged = 0

    def add(self, batch: Batch, scores: Floats | None) -> None:
        """`scores` is None if there are several per row, which are not compared."""
        if (threshold := self._reference.get("threshold")) is not None and scores is not None:
            self._flagged += int(np.count_nonzero(scores >= threshold))
        drawn = draws(self._rows, batch.size)
        self._rows += batch.size
        kept = np.flatnonzero(drawn <= self._limit)
        if kept.size > self._most:  # of a long block, most rows cannot be in the sample
            kept = kept[drawn[kept] <= limit_of(drawn[kept], self._most)]
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
        times = np.full(n_kept, np.nan) if batch.times is None else batch.times[kept]
        self._parts.append(_SampledPart(drawn[kept], numbers, words, own, times))
        if sum(part.size for part in self._parts) > 2 * self._most:
            self._thin()

    def _thin(self) -> None:
        """Keep the rows of the sample."""
        if sum(part.size for part in self._parts) > self._most:
            drawn = np.concatenate([part.draws for part in self._parts])
            self._limit = limit_of(drawn, self._most)
            self._parts = [part.thinned(self._limit) for part in self._parts]

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
        self._thin()
        n_sampled = sum(part.size for part in self._parts)
        found: Json = {
            "finding": None,
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
            words = f"Not compared: {TOO_FEW}."
            finding = Finding("stable", "unknown", words, reason="too_few_rows")
            return found | {"reason": TOO_FEW, "finding": stored(finding)}
        if (curve := self._served.curve) is not None and not isinstance(known, str):
            scores = np.concatenate([part.scores for part in self._parts])
            found["scores"] = self._compare_scores(scores, curve, known)
            found["flagged"] = self._compare_flagged(curve, known)
        features = self._compare_columns(level)
        if found["scores"] is None and not features:
            reason = found["no_scores"]
            words = f"Not compared: {reason}."
            finding = Finding("stable", "unknown", words, reason="not_measured")
            return found | {"reason": reason, "finding": stored(finding)}
        finding = stable(found["scores"], features, self._rows, self._alpha)
        found |= {"features": listed(features), "n_features": len(features)}
        return found | {"finding": stored(finding)}

    @cached_property
    def _by_time(self) -> Bins | None:
        """The order of the sample's rows in time; None if one has no time."""
        times = np.concatenate([part.times for part in self._parts])
        if np.isnan(times).any():
            return None
        return in_time(times, np.concatenate([part.draws for part in self._parts]))

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
        by_time = self._by_time
        return compare_scores(
            "all",
            samples,
            scores if by_time is None else scores[by_time],
            known["level"],
            by_time=by_time is not None,
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
        rows = SampledRows(
            self._by_time,
            time=profile["time"],
            grouped=profile["grouped"] or alone < 1.0,
            alone=alone,
        )
        found = []
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
    times: Floats
    """When each row was, (n_rows,); NaN if it is unknown."""

    @property
    def size(self) -> int:
        return int(self.draws.size)

    def thinned(self, limit: np.uint64) -> _SampledPart:
        """Return the rows that drew at most `limit`."""
        kept = self.draws <= limit
        scores = self.scores[kept] if self.scores.size else self.scores
        of_rows = self.numbers[:, kept], self.words[:, kept]
        return _SampledPart(self.draws[kept], *of_rows, scores, self.times[kept])


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
