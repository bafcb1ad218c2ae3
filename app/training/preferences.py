"""Items and their pairs: their splits, and their metric, the weighted fraction of pairs put in order.

**Split.** A pair says something about both of its items, so a pair is held out honestly only if neither item was
learnt from: *by items*, a fraction s of the items is held out; pairs of two held-out items validate, pairs of two other
items train, and mixed pairs do neither. So about (1 - s)² of the pairs train and s² validate. Where the items are so
few that either part would be left with fewer than `MIN_PAIRS`, the split is *by pairs* instead: all pairs of the same
two items, in either direction, stay together, and the metric is then about new comparisons of known items; the model
says so in a warning. Either way the split goes by a hash: of the group, else of the features, so that equal items stay
together, and the split does not depend on any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import Columns, Table, read_table
from app.ingest.rows import Hashes, mix
from app.models import margins
from app.platform.documents import MarginsRecord, Objective, TableFile
from app.platform.errors import Invalid
from app.training.bipartite import as_record
from app.training.interpretation import draw, score
from app.training.records import PairCounts, PairMetrics, TrainPayload
from app.training.splits import (
    InnerSplits,
    SplitData,
    check_fraction,
    check_one_split,
    cut,
    hash_units,
)
from core import metrics, selection

if TYPE_CHECKING:
    from core.base.ranker import Callback, Floats, Ranker
    from core.metrics.pairs import PairSummary


MIN_PAIRS = 30
"""Pairs that each part needs for a split by items: fewer say little, and their interval less."""
MIN_PAIRS_BY_PAIRS = 2
"""Pairs that each part needs for a split by pairs."""


@runtime_checkable
class PairLearner(Protocol):
    """A ranker that learns from pairs."""

    def fit_pairs(
        self, X: Any, pairs: Any, pair_weight: Any = None, *, callback: Callback | None = None
    ) -> Any:
        """Fit: score the better item of each pair above the worse one."""


@dataclass(frozen=True)
class Pairs:
    """Item numbers (better, worse), int64 of shape (pairs, 2), and float64 weights where there are any."""

    rows: npt.NDArray[np.int64]
    weight: Floats | None

    def take(self, which: npt.NDArray[np.bool_]) -> Pairs:
        """Return the pairs that a bool array of shape (pairs,) marks, in their order."""
        return Pairs(self.rows[which], None if self.weight is None else self.weight[which])


class PreferenceSplitData(SplitData):
    """Training and validation pairs."""

    def __init__(self, payload: TrainPayload, names: list[str]) -> None:
        spec = payload["spec"]
        validation = spec["validation"]
        self._features = payload["table"]["features"]
        self._table, self.train = read_items(payload["table"], names)
        self._held_out_table = self._table
        self.validation: Pairs | None = None
        if validation["method"] == "dataset":
            assert payload["validation_table"] is not None
            self._held_out_table, self.validation = read_items(payload["validation_table"], names)
        elif validation["method"] == "holdout":
            self._split(validation["fraction"], spec["seed"])
        elif validation["method"] != "none":
            raise Invalid(
                "validation.method must be holdout, dataset or none with pairs, "
                f"got {validation['method']!r}",
                code="unsupported",
            )
        self._learn_categories()

    def fit(self, ranker: Ranker, callback: Callback) -> None:
        assert isinstance(ranker, PairLearner)  # else the job was refused
        items, pairs = self._table, self.train
        ranker.fit_pairs(
            items.coded, pairs.rows, pairs.weight, groups=items.group, callback=callback
        )

    def thinned(self, fraction: float, seed: int) -> PreferenceSplitData:
        pairs = self.train
        chosen = np.zeros(len(pairs.rows), dtype=bool)
        chosen[selection.draw_rows(chosen, fraction, seed)] = True
        thin = copy(self)
        thin.train = pairs.take(chosen)
        thin._learn_categories()
        return thin

    def inner(self, inner: InnerSplits, split: int, seed: int) -> PreferenceSplitData:
        check_one_split(inner, "pairs")
        divided = copy(self)
        divided._held_out_table = self._table
        divided._split(inner.fraction, seed)
        divided._learn_categories()
        return divided

    @property
    def n_learnt(self) -> int:
        return len(self.train.rows)

    def table(self, part: str) -> Table | None:
        if part == "train":
            return self._table
        return None if self.validation is None else self._held_out_table

    def value(self, scores: Floats, objective: Objective) -> float:
        """Return the weighted fraction of validation pairs that the scores put in order."""
        assert self.validation is not None
        return metrics.pair_order(scores, self.validation.rows, self.validation.weight)

    def evaluate(
        self, ranker: Ranker, objective: Objective, workdir: Path
    ) -> dict[str, PairMetrics]:
        scores = score(ranker, self._table)
        train = self.train
        measured = margins.measure_listed(
            ranker, self._features, train.rows, train.weight, scores, workdir
        )
        parts = {"train": _metrics(scores, train, measured)}
        if self.validation is not None:
            if self._held_out_table is not self._table:
                scores = score(ranker, self._held_out_table)
            parts["validation"] = _metrics(scores, self.validation, None)
        return parts

    def sample(self, part: str, seed: int) -> Table | None:
        """Return a few of the items of a part's pairs."""
        if part == "train":
            return draw(self._table, seed, np.unique(self.train.rows))
        if self.validation is None:
            return None
        return draw(self._held_out_table, seed, np.unique(self.validation.rows))

    def training_values(self, feature: int) -> Floats:
        values: Floats = self._table.X[np.unique(self.train.rows), feature]
        return values

    def _split(self, fraction: float, seed: int) -> None:
        check_fraction(fraction)
        pairs, notes = self.train, []
        hashes = hash_units(self._table, seed)
        ends = _hold_out_items(hashes, pairs, fraction)
        train = pairs.take(~(ends[:, 0] | ends[:, 1]))
        validation = pairs.take(ends[:, 0] & ends[:, 1])
        if min(len(train.rows), len(validation.rows)) < MIN_PAIRS:
            if self._table.group is not None:
                raise _too_few("groups", train, validation, MIN_PAIRS)
            chosen = _hold_out_pairs(hashes, pairs, fraction)
            train, validation = pairs.take(~chosen), pairs.take(chosen)
            if min(len(train.rows), len(validation.rows)) < MIN_PAIRS_BY_PAIRS:
                raise _too_few("pairs", train, validation, MIN_PAIRS_BY_PAIRS)
            notes = [
                "split by pairs, because there are too few items to hold some out. The validation uses new pairs of "
                "items that also occur in training"
            ]
        self.notes, self.train, self.validation = notes, train, validation

    def _learn_categories(self) -> None:
        """Keep only the categories of items that are learnt from."""
        is_same = self._held_out_table is self._table
        self._table = self._table.known_to(np.unique(self.train.rows))
        self._held_out_table = (
            self._table if is_same else self._held_out_table.coded_as(self._table)
        )


def _too_few(by: str, train: Pairs, validation: Pairs, least: int) -> Invalid:
    return Invalid(
        f"a split by {by} must leave at least {least} pairs in each part, got {len(train.rows)} for "
        f"training and {len(validation.rows)} for validation",
        code="too_few_rows",
    )


def _hold_out_items(hashes: Hashes, pairs: Pairs, fraction: float) -> npt.NDArray[np.bool_]:
    """Return a bool array of shape (pairs, 2): whether each end of a pair is a held-out item."""
    occur = hashes[np.unique(pairs.rows)]
    units, items = np.unique(occur, return_counts=True)  # ascending hashes are a random order
    held_out = units[: cut(items, fraction)]
    ends: npt.NDArray[np.bool_] = np.isin(hashes, held_out)[pairs.rows]
    return ends


def _hold_out_pairs(hashes: Hashes, pairs: Pairs, fraction: float) -> npt.NDArray[np.bool_]:
    """Return a bool per pair: whether it is held out. Pairs of the same two units stay together."""
    both = mix(hashes[pairs.rows[:, 0]] + hashes[pairs.rows[:, 1]])  # whichever is the better
    units, counts = np.unique(both, return_counts=True)
    chosen: npt.NDArray[np.bool_] = np.isin(both, units[: cut(counts, fraction)])
    return chosen


def read_items(table: TableFile, names: Sequence[str]) -> tuple[Table, Pairs]:
    """Return the items, and the pairs of weight above 0, read from their files."""
    import pyarrow.parquet as pq

    items = read_table(Path(table["path"]), Columns(names, None, None, table["group"]))
    listed = pq.read_table(table["pairs"])
    rows = np.stack([listed.column(end).to_numpy() for end in ("better", "worse")], axis=1)
    weight = None
    if "weight" in listed.column_names:
        weight = listed.column("weight").to_numpy()
        present = weight > 0
        rows, weight = rows[present], weight[present]
    return items, Pairs(rows, weight)


def _metrics(scores: Floats, pairs: Pairs, measured: MarginsRecord | None) -> PairMetrics:
    summary = metrics.summarise_pairs(scores, pairs.rows, pairs.weight)
    return {
        **as_record(summary.order),
        "level": summary.level,
        **pair_counts(summary),
        "margins": measured,
    }


def pair_counts(summary: PairSummary) -> PairCounts:
    """Return what is reported of pairs beside the fraction in order."""
    return {
        "misrank_fraction": summary.misrank_fraction,
        "ties": summary.ties,
        "pairs": summary.pairs,
        "items": summary.items,
        "weight": summary.weight,
        "effective_pairs": summary.effective_pairs,
    }
