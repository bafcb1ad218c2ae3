"""Items and their pairs: their splits, and their metric, the weighted fraction of correctly ordered pairs.

**Split.** A pair is about both of its items, so it is held out only if neither item was trained on: *by items*, a
fraction s of the items is held out; pairs of two held-out items are for validation, pairs of two other items are for
training, and mixed pairs are not used. So about (1 - s)² of the pairs are for training and s² for validation. If there
are so few items that a part would have fewer than `MIN_PAIRS`, the split is *by pairs* instead: all pairs of the same
two items, in either direction, stay together, and the metric is then about new comparisons between known items; a
warning of the model explains this. The split is by a hash: of the group, or of the features, so that equal items stay
together, and the split does not depend on any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import Columns, Table, read_table
from app.ingest.rows import Hashes, mix
from app.models import margins
from app.platform.documents import (
    MarginsRecord,
    Objective,
    PairCounts,
    PairMetrics,
    TableFile,
    interval_of,
)
from app.platform.errors import Invalid
from app.training.interpretation import draw, score
from app.training.records import TrainPayload
from app.training.splits import (
    InnerSplits,
    SplitData,
    check_fraction,
    check_one_split,
    cut,
    hash_units,
    no_such_validation,
)
from core import metrics, selection

if TYPE_CHECKING:
    from core.base.ranker import Callback, Floats, Ranker
    from core.metrics.pairs import PairSummary


MIN_PAIRS = 30
"""Pairs that each part needs for a split by items: the intervals of fewer are very wide."""
MIN_PAIRS_BY_PAIRS = 2
"""Pairs that each part needs for a split by pairs."""


@runtime_checkable
class PairLearner(Protocol):
    """A ranker that can be trained on pairs."""

    def fit_pairs(
        self, X: Any, pairs: Any, pair_weight: Any = None, *, callback: Callback | None = None
    ) -> Any:
        """Fit the ranker, so that the better item of each pair scores above the worse one."""


@dataclass(frozen=True)
class ItemPairs:
    """Item numbers (better, worse), int64 of shape (pairs, 2), and float64 weights, if any."""

    rows: npt.NDArray[np.int64]
    weight: Floats | None

    def take(self, which: npt.NDArray[np.bool_]) -> ItemPairs:
        return ItemPairs(self.rows[which], None if self.weight is None else self.weight[which])


class PreferenceSplitData(SplitData):
    def __init__(self, payload: TrainPayload, names: list[str]) -> None:
        spec = payload["spec"]
        validation = spec["validation"]
        self._features = payload["table"]["features"]
        self._table, self.train = read_items(payload["table"], names)
        self._held_out_table = self._table
        self.validation: ItemPairs | None = None
        if validation["method"] == "dataset":
            assert payload["validation_table"] is not None
            self._held_out_table, self.validation = read_items(payload["validation_table"], names)
        elif validation["method"] == "holdout":
            self._split(validation["fraction"], spec["seed"])
        elif validation["method"] != "none":
            raise no_such_validation("pairs", validation["method"])
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
        """Return the weighted fraction of validation pairs in the right order."""
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
        """Return a sample of the items of a part's pairs."""
        if part == "train":
            return draw(self._table, seed, np.unique(self.train.rows))
        if self.validation is None:
            return None
        return draw(self._held_out_table, seed, np.unique(self.validation.rows))

    def training_values(self, feature: int) -> Floats:
        values: Floats = self._table.X[np.unique(self.train.rows), feature]
        return values

    def _split(self, fraction: float, seed: int) -> None:
        """Split by items, groups or pairs."""
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
        """Restrict the categories to those of items in training pairs."""
        is_same = self._held_out_table is self._table
        self._table = self._table.known_to(np.unique(self.train.rows))
        self._held_out_table = (
            self._table if is_same else self._held_out_table.coded_as(self._table)
        )


def _too_few(by: str, train: ItemPairs, validation: ItemPairs, least: int) -> Invalid:
    return Invalid(
        f"a split by {by} must leave at least {least} pairs in each part, got {len(train.rows)} for "
        f"training and {len(validation.rows)} for validation",
        code="too_few_rows",
    )


def _hold_out_items(hashes: Hashes, pairs: ItemPairs, fraction: float) -> npt.NDArray[np.bool_]:
    """Return whether each item of a pair is held out, shape (pairs, 2)."""
    occur = hashes[np.unique(pairs.rows)]
    units, items = np.unique(occur, return_counts=True)  # ascending hashes are a random order
    held_out = units[: cut(items, fraction)]
    ends: npt.NDArray[np.bool_] = np.isin(hashes, held_out)[pairs.rows]
    return ends


def _hold_out_pairs(hashes: Hashes, pairs: ItemPairs, fraction: float) -> npt.NDArray[np.bool_]:
    """Return whether each pair is held out. Pairs of the same two units stay together."""
    # A sum, because it does not depend on which item is better.
    both = mix(hashes[pairs.rows[:, 0]] + hashes[pairs.rows[:, 1]])
    units, counts = np.unique(both, return_counts=True)
    chosen: npt.NDArray[np.bool_] = np.isin(both, units[: cut(counts, fraction)])
    return chosen


def read_items(table: TableFile, names: Sequence[str]) -> tuple[Table, ItemPairs]:
    """Pairs of weight 0 are left out."""
    import pyarrow.parquet as pq

    items = read_table(Path(table["path"]), Columns(names, None, None, table["group"]))
    listed = pq.read_table(table["pairs"])
    rows = np.stack([listed.column(end).to_numpy() for end in ("better", "worse")], axis=1)
    weight = None
    if "weight" in listed.column_names:
        weight = listed.column("weight").to_numpy()
        present = weight > 0
        rows, weight = rows[present], weight[present]
    return items, ItemPairs(rows, weight)


def _metrics(scores: Floats, pairs: ItemPairs, measured: MarginsRecord | None) -> PairMetrics:
    summary = metrics.summarise_pairs(scores, pairs.rows, pairs.weight)
    return {
        **interval_of(summary.order),
        "level": summary.level,
        **pair_counts(summary),
        "margins": measured,
    }


def pair_counts(summary: PairSummary) -> PairCounts:
    """Return the counts that are reported with the fraction of correctly ordered pairs."""
    return cast(PairCounts, {name: getattr(summary, name) for name in PairCounts.__required_keys__})
