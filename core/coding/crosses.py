"""Crosses: numeric columns derived from pairs of categorical features, by target encoding of the pair.

A tree needs two splits, by sets of categories, to see that a town sells well in one month only; with many towns and
months it never does, and a linear score cannot. A cross is a column of its own: for each row the fraction of positives
among the rows of the same town and month, found without the row itself, and the number of these rows. Trees read these
two numbers. Linear scores read logarithms: of 1 plus the number of rows, and the log odds less those that the two
categories have alone. The categories have coefficients of their own, learnt from all rows, so that the whole log odds,
found without some of the rows, would tell the labels of these. So would a cross of two features of which one
settles the other, as a town settles its region: linear scores have none.

Few rows say little, so that the fraction is drawn towards what the two categories say alone: towards the sum of their
log odds, as if they acted independently (their own fractions are drawn towards that of all rows). A pair of categories
without training rows has just this number. So a cross adds to its two features what they do not tell apart, and a cheap
screen keeps the pairs of features for which this is most: beyond the sum, and beyond each of them alone.

A numeric feature of few distinct values, such as a day or an hour, is crossed with categorical ones as if it were one.

A model holds a cross as a lookup: sorted keys, a fraction and a number of rows for each, and for each category of its
features the log odds that it adds. Rare pairs of categories are left out: they have the number of a pair without rows.

References
----------
D. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes in classification and
prediction problems", SIGKDD Explorations 3(1), 2001: section 4.2, hierarchical estimates.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base import state
from core.base.monotone import Directions, Violation
from core.base.ranker import Floats, StopFit, warn_stopped
from core.base.state import FINITE, Array, Index, Known, State, Totals
from core.base.training import TrainingData
from core.errors import ArtifactError
from core.kernels import kernel

from .folds import N_FOLDS, PRIOR_ROWS, Folds, scale_to_all
from .threads import ThreadPool

Integers = state.Integers
Indices = state.Indices
Singles = Annotated[npt.NDArray[np.float32], np.dtype(np.float32)]
Bools = npt.NDArray[np.bool_]

MAX_CROSSES = 100  # of a ranker
COLUMNS = 2  # of each cross: the fraction of positives, and the number of rows

# Names of these columns in sentences, as numbers and as logarithms.
NAMES = "fraction of positives of {}", "rows of {}"
LOG_NAMES = "log odds of {} beyond those of each", "log rows of {}"

CROSSES_DOC = (
    "maximum number of crosses. A cross describes a pair of categorical features (one of them may be numeric, with at "
    "most 50 distinct values) by two numbers: the fraction of positives among the rows of both categories, and the "
    "number of these rows. The most informative pairs are chosen. 0: none"
)
"""Description of a parameter `crosses`, without its first and its last words."""

SCREENED_ROWS = 20_000  # that the screen of pairs looks at, at most
SCREENED_FEATURES = 24  # whose pairs are screened, at most: those that tell most alone

# Distinct values from which a numeric feature is crossed, and up to which it is. Fewer need no cross: two splits do.
MIN_VALUES = 3
MAX_VALUES = 50

# Gain in log-likelihood, on the screen's rows, from which a pair of features is kept.
MIN_GAIN = 2.0

MIN_PAIR_ROWS = 2  # rows from which a pair of categories has a number of its own
MAX_PAIRS = 20_000  # pairs of categories that a cross holds, at most, 12 bytes each: of most rows

# A pair of categories with this fraction of the rows of one of them is as good as settled by that one,
MIN_SETTLED_SHARE = 0.8
# and linear scores cross no features with more than this fraction of the rows in such pairs.
MAX_SETTLED_ROWS = 0.7

# Greatest absolute value of log odds: fractions are from 2e-9 to 1 - 2e-9.
MAX_LOG_ODDS = 20.0
MIN_SHARE = 1.0 / (1.0 + math.exp(MAX_LOG_ODDS))

MAX_MASS = 1e30  # of a pair of categories, in rows: a float32 holds it

MAX_TRIED_CELLS = (
    1 << 22
)  # numbers of the rows that are scored against a monotone constraint: 32 MB

MAX_KEYS_PER_ROW = 4  # up to which rows are numbered by a table of all keys; then by sorting

TASK_ROWS = 1 << 13  # rows of a task of a thread


@dataclass(frozen=True)
class Crosses(State):
    """The crosses of a model: pairs of features, and the fraction of positives of each pair of their values.

    One feature of a pair is categorical, the other is categorical or numeric. Every value has a code: the number of its
    category, or, in a numeric feature, the number of edges at or below it. The last code of a feature stands for a
    missing value. The key of a pair of codes (a, b) is a n_b + b, where n_b is the number of codes of the second
    feature.
    """

    n_categories: Integers
    feature: Annotated[Integers, Array("n_crosses", 2, name="cross_feature"), Index("n_features")]
    """The first below the second; each pair once; at least one of them is categorical."""
    n_edges: Annotated[
        Integers,
        Array("n_crossed", name="cross_n_edges"),
        Le(MAX_VALUES - 1),
        Totals("n_all_edges"),
    ]
    """For each feature of a cross, in ascending order, its number of edges; 0 if it is categorical."""
    edges: Annotated[Floats, Array("n_all_edges", name="cross_edges"), FINITE]
    """Of these features, ascending in each: the midpoints of its neighbouring distinct values at fit."""
    n_pairs: Annotated[
        Integers,
        Array("n_crosses", name="cross_n_pairs"),
        Le(MAX_PAIRS),
        Totals("n_all_pairs"),
    ]
    """Pairs of categories that have a number of their own."""
    keys: Annotated[Indices, Array("n_all_pairs", name="cross_keys")]
    """Of the pairs of categories of each cross, ascending. Shape (n_all_pairs,), uint32."""
    share: Annotated[Singles, Array("n_all_pairs", name="cross_share"), Ge(0.0), Le(1.0)]
    mass: Annotated[Singles, Array("n_all_pairs", name="cross_mass"), Ge(0.0), Le(MAX_MASS)]
    """The fraction of positives of each pair of categories, and its number of rows. Shape (n_all_pairs,), float32."""
    base: Annotated[Floats, Array(1, name="cross_base"), Ge(-MAX_LOG_ODDS), Le(MAX_LOG_ODDS)]
    """Log odds of all rows."""
    effect: Annotated[
        Floats,
        Array("n_effects", name="cross_effect"),
        Ge(-2.0 * MAX_LOG_ODDS),
        Le(2.0 * MAX_LOG_ODDS),
    ]
    """For each feature of a cross, in ascending order, what each code adds to the log odds."""

    @property
    def n_columns(self) -> int:
        return COLUMNS * len(self.feature)

    @property
    def extended_categories(self) -> Integers:
        """Number of categories of each feature, then of each column of the crosses, which are numeric."""
        return np.append(self.n_categories, np.zeros(self.n_columns, dtype=np.int64))

    @cached_property
    def _tables(self) -> tuple[Integers, ...]:
        """Codes per feature, and where its effects, edges and each cross's keys start; of the last two also the end."""
        used = np.unique(self.feature)
        n_codes = self.n_categories + 1
        n_codes[used] += np.where(self.n_edges > 0, self.n_edges + 1, 0)
        effect_start = np.zeros(len(n_codes), dtype=np.int64)
        effect_start[used] = np.cumsum(n_codes[used]) - n_codes[used]
        n_edges = np.zeros(len(n_codes), dtype=np.int64)
        n_edges[used] = self.n_edges
        return (
            n_codes,
            effect_start,
            np.append(0, np.cumsum(n_edges)),
            np.append(0, np.cumsum(self.n_pairs)),
        )

    def check(self) -> None:
        if len(self.feature) > MAX_CROSSES:
            raise ArtifactError(
                f"cross_feature must contain at most {MAX_CROSSES} pairs of features, got {len(self.feature)}"
            )
        first, second = self.feature.T
        if (first >= second).any() or len(np.unique(self.feature, axis=0)) < len(self.feature):
            raise ArtifactError("cross_feature must contain pairs of ascending features, each once")
        if not (self.n_categories[self.feature] > 0).any(axis=1).all():
            raise ArtifactError("cross_feature must name a categorical feature in each pair")
        used = np.unique(self.feature)
        is_numeric = self.n_categories[used] == 0
        if len(self.n_edges) != len(used) or ((self.n_edges > 0) != is_numeric).any():
            raise ArtifactError("cross_n_edges must be above 0 for the numeric features alone")
        n_codes, _, edge_start, key_start = self._tables
        if not _ascends(self.edges, edge_start):
            raise ArtifactError("cross_edges must ascend within a feature")
        n_effects = int(n_codes[used].sum())
        if len(self.effect) != n_effects:
            raise ArtifactError(
                f"cross_effect must contain {n_effects} values, got {len(self.effect)}"
            )
        keys = self.keys.astype(np.int64)
        n_keys = np.repeat(n_codes[first] * n_codes[second], self.n_pairs)
        if (keys >= n_keys).any():
            raise ArtifactError("cross_keys must stand for codes of both features")
        if not _ascends(keys, key_start):
            raise ArtifactError("cross_keys must ascend within a cross")

    def extend(self, X: Floats, *, logs: bool = False) -> Floats:
        """Return the rows with the crosses' columns appended; O(n_rows · n_crosses · log n_pairs).

        X: (n_rows, n_features); a value that is no category counts as missing.
        logs: return log odds beyond those of both categories, and log(1 + rows), in place of fractions and rows.

        Result: (n_rows, n_features + n_columns), float64.
        """
        extended = np.empty((len(X), X.shape[1] + self.n_columns))
        extended[:, : X.shape[1]] = X
        base = float(self.base[0])
        learnt = (self.edges, self.keys, self.share, self.mass, self.effect, base, logs)
        n_tasks = -(-len(X) // TASK_ROWS)
        arguments = (extended, self.n_categories, self.feature, *self._tables, *learnt)
        if n_tasks <= 1:
            _look_up(0, 1, n_tasks, *arguments)
        else:
            ThreadPool(extended.size).run(_look_up, n_tasks, *arguments)
        return extended

    def extend_known(self, known: Known) -> Mapping[str, Any]:
        """Return the known sizes (see `State.from_arrays`) of a matrix with the crosses' columns appended."""
        n_categories = self.extended_categories
        return {**known, "n_features": len(n_categories), "n_categories": n_categories}

    def try_constraints(
        self, read: Iterable[int], directions: Directions, score: Callable[[Floats], Floats]
    ) -> Iterator[Violation]:
        """Yield, per cross of a constrained feature, the two rows between which scores violate the constraint most.

        Rows differ in the code of that feature, by one; a row for each category of the other one is tried, if they are
        not too many. Where no score falls, other rows might still.

        read: the crosses that scores depend on.
        directions: (n_features,), int8.
        score: callable (X) -> shape (n_rows,), float64.
        """
        n_features = len(directions)
        for k in read:
            constrained = self.feature[k][directions[self.feature[k]] != 0]
            if not len(constrained):
                continue
            # A number: categories have no order, and one feature is categorical.
            column = int(constrained[0])
            partner = int(self.feature[k].sum()) - column
            values = self._values_of(column)
            n_tried = MAX_TRIED_CELLS // (len(values) * len(self.extended_categories))
            n_partners = min(int(self.n_categories[partner]), max(n_tried, 1))
            rows = np.zeros((n_partners, len(values), n_features))
            rows[:, :, column] = values
            rows[:, :, partner] = np.arange(n_partners)[:, None]
            scores = score(rows.reshape(-1, n_features)).reshape(rows.shape[:2])
            rises = np.diff(scores, axis=1) * directions[column]
            i, at = np.unravel_index(np.argmin(rises), rises.shape)
            pair = rows[i, at : at + 2]
            part = f"cross {k + 1}"
            yield Violation(column, float(pair[0, column]), float(pair[1, column]), pair, part)

    def _values_of(self, feature: int) -> Floats:
        """Return one value per code of a cross's numeric feature, ascending, without the code of missing values."""
        _, _, start, _ = self._tables
        edges = self.edges[start[feature] : start[feature + 1]]
        below = max(np.nextafter(edges[0], -np.inf), np.finfo(np.float64).min)
        return np.append(below, edges)

    def fold(self, parts: Floats) -> Floats:
        """Divide a cross's contributions equally between its two features."""
        n_features = len(self.n_categories)
        folded = parts[:, :n_features].copy()
        for k, (first, second) in enumerate(self.feature.tolist()):
            half = 0.5 * parts[:, n_features + COLUMNS * k :][:, :COLUMNS].sum(axis=1)
            folded[:, first] += half
            folded[:, second] += half
        return folded

    def name(self, column: int, name: Callable[[int], str], *, logs: bool = False) -> str:
        """Return the name of a cross's column, such as "fraction of positives of town × month"."""
        n_features = len(self.n_categories)
        if column < n_features:
            return name(column)
        k, which = divmod(column - n_features, COLUMNS)
        return (LOG_NAMES if logs else NAMES)[which].format(self.title(k, name))

    def describe(self, name: Callable[[int], str]) -> list[dict[str, Any]]:
        return [
            {
                "name": self.title(k, name),
                "features": [name(j) for j in pair],
                "pairs": int(self.n_pairs[k]),
            }
            for k, pair in enumerate(self.feature.tolist())
        ]

    def title(self, cross: int, name: Callable[[int], str]) -> str:
        return " × ".join(map(name, self.feature[cross].tolist()))


def _ascends(values: npt.NDArray[Any], start: Integers) -> bool:
    ascends = np.ones(len(values), dtype=np.bool_)
    ascends[1:] = values[1:] > values[:-1]
    ascends[start[:-1][np.diff(start) > 0]] = True
    return bool(ascends.all())


@kernel(
    numba.int64(
        numba.float64, numba.int64, numba.int64, numba.float64[::1], numba.int64, numba.int64
    ),
    inner=True,
)
def _code(x, n_codes, n_categories, edges, start, stop):  # type: ignore[no-untyped-def]
    """Return the code of a value: its category, or the number of edges[start:stop] at or below it."""
    if n_categories > 0:
        if 0.0 <= x < n_categories:
            return np.int64(x)
        return n_codes - 1
    if np.isnan(x):
        return n_codes - 1
    code = 0
    while start + code < stop and edges[start + code] <= x:
        code += 1
    return code


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        numba.float64[:, ::1],
        numba.int64[::1],
        numba.int64[:, ::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.float64[::1],
        numba.uint32[::1],
        numba.float32[::1],
        numba.float32[::1],
        numba.float64[::1],
        numba.float64,
        numba.boolean,
    )
)
def _look_up(  # type: ignore[no-untyped-def]
    first_task,
    step,
    n_tasks,
    extended,
    n_categories,
    feature,
    n_codes,
    effect_start,
    edge_start,
    key_start,
    edges,
    keys,
    share,
    mass,
    effect,
    base,
    logs,
):
    """Write the crosses' columns, after those of the features, for every step-th block of rows.

    extended: (n_rows, n_features + 2 n_crosses); edges, keys, share, mass, effect, base: see `Crosses`; logs: see
    `Crosses.extend`.
    """
    for task in range(first_task, n_tasks, step):
        low = task * TASK_ROWS
        for k in range(len(feature)):
            first, second = feature[k, 0], feature[k, 1]
            column = len(n_categories) + COLUMNS * k
            for i in range(low, min(low + TASK_ROWS, len(extended))):
                a = _code(
                    extended[i, first],
                    n_codes[first],
                    n_categories[first],
                    edges,
                    edge_start[first],
                    edge_start[first + 1],
                )
                b = _code(
                    extended[i, second],
                    n_codes[second],
                    n_categories[second],
                    edges,
                    edge_start[second],
                    edge_start[second + 1],
                )
                key = a * n_codes[second] + b
                start, stop = key_start[k], key_start[k + 1]
                while start < stop:
                    middle = (start + stop) // 2
                    if np.int64(keys[middle]) < key:
                        start = middle + 1
                    else:
                        stop = middle
                is_known = start < key_start[k + 1] and np.int64(keys[start]) == key
                if is_known and not logs:
                    extended[i, column] = share[start]
                    extended[i, column + 1] = mass[start]
                    continue
                odds = base + effect[effect_start[first] + a] + effect[effect_start[second] + b]
                odds = min(max(odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)
                if is_known:
                    of_pair = min(max(np.float64(share[start]), MIN_SHARE), 1.0 - MIN_SHARE)
                    of_pair = math.log(of_pair) - math.log1p(-of_pair)
                    of_pair = min(max(of_pair, -MAX_LOG_ODDS), MAX_LOG_ODDS)
                    extended[i, column] = of_pair - odds
                    extended[i, column + 1] = math.log1p(np.float64(mass[start]))
                else:
                    extended[i, column] = 0.0 if logs else 1.0 / (1.0 + math.exp(-odds))
                    extended[i, column + 1] = 0.0


class Crossed(NamedTuple):
    """Fitted crosses, and their columns for the training rows."""

    crosses: Crosses
    X: Floats
    """See `Crosses.extend`. The numbers of a row are found without the rows of its fold. Shape (n_rows, n_columns), in
    Fortran order."""


def find_crosses(
    data: TrainingData,
    at_most: int,
    is_free: Bools,
    seed: int,
    report: Callable[[], None] = lambda: None,
    *,
    logs: bool = False,
) -> Crossed:
    """Choose the most useful pairs of features, and fit their crosses.

    O(n_pairs · n_screened log n_screened + at_most · n_rows log n_rows), where n_screened is the number of rows that
    the screen looks at.

    If `report` raises StopFit, the crosses that are learnt by then are returned, none if it was the screen that ended;
    a UserWarning says how many.

    data: weights may be in any unit: a row of mean weight counts as one. Rows of a group are in one fold; see
        `folds.Folds`. X may be a scipy.sparse matrix if no feature is categorical.
    at_most: maximum number of crosses.
    is_free: (n_features,), bool; features that may be crossed.
    seed: of the folds, and of the draw of the screen's rows.
    report: callable () -> None; called after each numeric feature, when folds are drawn, after each feature and each
        pair of the screen, and after each cross.
    logs: whether the columns are logarithms: see `Crosses.extend`.
    """
    n_categories = data.n_categories
    weight = data.weight / float(data.weight.mean())
    is_word = (n_categories >= 2) & is_free
    chosen: list[tuple[int, int]] = []
    lookups: list[tuple[npt.NDArray[np.uint32], Singles, Singles]] = []
    columns = np.empty((len(weight), 0), order="F")
    coded = _Data(data.X, data.positive, weight, n_categories, {})
    if at_most and is_word.any() and np.count_nonzero(is_free) > 1:
        draw = np.random.Generator(np.random.Philox(key=seed))
        rows = np.sort(draw.permutation(len(weight))[:SCREENED_ROWS])
        numbers = np.flatnonzero((n_categories == 0) & is_free)
        n_chosen = at_most
        try:
            coded = coded.with_edges(numbers, rows, report)
            folds = Folds.of(replace(data, weight=weight), seed)
            report()
            features = np.union1d(
                np.flatnonzero(is_word), np.array(list(coded.edges), dtype=np.int64)
            )
            chosen = _screen(
                coded.take(rows), folds.take(rows), features, at_most, report, logs=logs
            )
            n_chosen = len(chosen)
            columns = np.empty((len(weight), COLUMNS * n_chosen), order="F")
            for k, pair in enumerate(chosen):
                cross = _Cross(coded, folds, *pair, logs=logs)
                columns[:, COLUMNS * k : COLUMNS * (k + 1)] = cross.columns()
                lookups.append(cross.look_up())
                report()
        except StopFit:
            if len(lookups) < n_chosen:
                warn_stopped(len(lookups), n_chosen, "crosses")
    chosen, columns = chosen[: len(lookups)], columns[:, : COLUMNS * len(lookups)]
    used = np.unique(np.array(chosen, dtype=np.int64)).tolist()
    effects = [coded.effect(j, None) for j in used]
    edges = [coded.edges.get(j, np.empty(0)) for j in used]
    crosses = Crosses(
        n_categories,
        np.array(chosen, dtype=np.int64).reshape(-1, 2),
        np.array([len(of_feature) for of_feature in edges], dtype=np.int64),
        np.concatenate([np.empty(0), *edges]),
        np.array([len(keys) for keys, _, _ in lookups], dtype=np.int64),
        np.concatenate([np.empty(0, dtype=np.uint32), *(keys for keys, _, _ in lookups)]),
        np.concatenate([np.empty(0, dtype=np.float32), *(share for _, share, _ in lookups)]),
        np.concatenate([np.empty(0, dtype=np.float32), *(mass for _, _, mass in lookups)]),
        np.array([coded.base]),
        np.concatenate([np.empty(0), *effects]),
    )
    return Crossed(crosses, columns)


def _screen(
    data: "_Data",
    folds: Folds,
    features: Integers,
    at_most: int,
    report: Callable[[], None],
    *,
    logs: bool,
) -> list[tuple[int, int]]:
    """Return the pairs of features whose combination predicts the label best beyond the two features alone.

    The baseline is the log-odds of one feature, or the sum of both, whichever predicts better: if one feature
    determines the other, such as a town its region, the sum counts the same information twice.
    """
    alone: dict[int, float] = {}
    for j in features.tolist():
        alone[j] = data.gain(data.own_odds(j, folds))
        report()
    strongest = sorted(alone, key=lambda j: -alone[j])[:SCREENED_FEATURES]
    gains: dict[tuple[int, int], float] = {}
    for pair in combinations(sorted(strongest), 2):
        if not data.edges.keys() >= set(pair):  # numbers alone are cut well by trees
            cross = _Cross(data, folds, *pair, logs=logs)
            apart = max(data.gain(cross.odds), alone[pair[0]], alone[pair[1]])
            if not (logs and cross.is_settled()):
                gains[pair] = data.gain(_log_odds(cross.share)) - apart
            report()
    chosen: list[tuple[int, int]] = []
    seen: set[float] = set()
    for pair, gain in sorted(gains.items(), key=lambda item: -item[1]):
        # Two pairs of the same gain divide the rows alike, as columns of codes and of their names do.
        if gain < MIN_GAIN or len(chosen) == at_most:
            break
        if round(gain, 6) not in seen:
            seen.add(round(gain, 6))
            chosen.append(pair)
    return chosen


class _Data:
    """The training rows, and statistics of single categories, to search for crosses. edges: of numeric features to
    cross.
    """

    def __init__(
        self,
        X: Floats,
        positive: Bools,
        weight: Floats,
        n_categories: Integers,
        edges: dict[int, Floats],
    ) -> None:
        self.X, self.positive, self.weight = X, positive, weight
        self.n_categories, self.edges = n_categories, edges
        mean = float(weight[positive].sum() / weight.sum())
        self.mean = min(max(mean, MIN_SHARE), 1.0 - MIN_SHARE)
        self.base = float(_log_odds(np.array([self.mean]))[0])
        # With the folds of each, so that no later array has their id.
        self._effects: dict[tuple[int, int], tuple[Integers | None, Floats]] = {}
        self._codes: dict[int, Integers] = {}

    def with_edges(self, features: Integers, rows: Integers, report: Callable[[], None]) -> "_Data":
        edges = {}
        for j in features.tolist():
            values = np.unique(self.X[rows, j])
            values = values[~np.isnan(values)]
            if MIN_VALUES <= len(values) <= MAX_VALUES:
                # A value of fewer bits, or after another sum, is a little beside: it keeps its code.
                middle = 0.5 * values[:-1] + 0.5 * values[1:]
                edges[j] = np.where(middle > values[:-1], middle, values[1:])
            report()
        return _Data(self.X, self.positive, self.weight, self.n_categories, edges)

    def take(self, rows: Integers) -> "_Data":
        return _Data(
            self.X[rows], self.positive[rows], self.weight[rows], self.n_categories, self.edges
        )

    def n_codes(self, feature: int) -> int:
        if feature in self.edges:
            return len(self.edges[feature]) + 2
        return int(self.n_categories[feature]) + 1

    def codes(self, feature: int) -> Integers:
        if feature not in self._codes:
            self._codes[feature] = self._find_codes(feature)
        return self._codes[feature]

    def _find_codes(self, feature: int) -> Integers:
        x = self.X[:, feature]
        if feature in self.edges:
            reached = np.searchsorted(self.edges[feature], x, side="right")
            x = np.where(np.isnan(x), np.nan, reached)
        return np.where(np.isnan(x), self.n_codes(feature) - 1, x).astype(np.int64)

    def tally(self, codes: Integers, n_codes: int, fold: Integers) -> tuple[Floats, Floats]:
        """Return weights of all rows and of positives, (N_FOLDS, n_codes) each."""
        index, shape = fold * n_codes + codes, (N_FOLDS, n_codes)
        mass = np.bincount(index, self.weight, math.prod(shape)).reshape(shape)
        hits = np.bincount(index, self.weight * self.positive, math.prod(shape)).reshape(shape)
        return mass.astype(np.float64, copy=False), hits.astype(np.float64, copy=False)

    def effect(self, feature: int, fold: Integers | None) -> Floats:
        """Return what codes add to the log-odds, outside each fold, (N_FOLDS, n_codes); fold=None: on all rows,
        (n_codes,).
        """
        key = feature, id(fold)
        if key not in self._effects:
            by = np.zeros(len(self.weight), dtype=np.int64) if fold is None else fold
            mass, hits = self.tally(self.codes(feature), self.n_codes(feature), by)
            if fold is None:
                mass, hits = mass.sum(axis=0), hits.sum(axis=0)
            else:
                mass, hits = _others(mass), _others(hits)
            odds = _log_odds((hits + PRIOR_ROWS * self.mean) / (mass + PRIOR_ROWS))
            effect = np.clip(odds - self.base, -2.0 * MAX_LOG_ODDS, 2.0 * MAX_LOG_ODDS)
            self._effects[key] = fold, effect
        return self._effects[key][1]

    def own_odds(self, feature: int, folds: Folds) -> Floats:
        """Return the log-odds of each row given its category of this feature alone, estimated out of fold."""
        codes = self.codes(feature)
        fold = folds.choose(np.ones(len(codes), dtype=np.bool_), codes)
        odds: Floats = self.base + self.effect(feature, fold)[fold, codes]
        return odds

    def gain(self, odds: Floats) -> float:
        """Return the log-likelihood of predicted log-odds, minus that of the overall mean."""
        sign = np.where(self.positive, -1.0, 1.0)
        losses = np.logaddexp(0.0, sign * self.base) - np.logaddexp(0.0, sign * odds)
        return float((self.weight * losses).sum())


class _Cross:
    """One cross fitted on the training rows.

    odds: (n_rows,), float64; sum of the log odds of both categories, by the rows of the other folds.
    share: (n_rows,), float64; the fraction of positives of the pair of categories, by the rows of the other folds.
    mass: (n_rows,), float32; its number of rows in the other folds, and as many more as if they were all folds. A row's
        own weight would tell its label if weights differ by class. For logarithms rows are counted without their
        weights: the coefficients of the categories know the weights of all folds, so that those of the other folds
        would tell the row's own.
    """

    def __init__(self, data: _Data, folds: Folds, first: int, second: int, *, logs: bool) -> None:
        self._data, self._pair, self._logs = data, (first, second), logs
        self._n_second = data.n_codes(second)
        a, b = data.codes(first), data.codes(second)
        self._keys, index = _number(a * self._n_second + b, data.n_codes(first) * self._n_second)
        fold = folds.choose(np.ones(len(index), dtype=np.bool_), index)
        mass, hits = data.tally(index, len(self._keys), fold)
        self._mass, self._hits = mass.sum(axis=0), hits.sum(axis=0)
        count = np.bincount(fold * len(self._keys) + index, minlength=mass.size)
        rows: Floats = count.reshape(mass.shape).astype(np.float64)
        self._rows = rows.sum(axis=0)
        # By rows, not by mass: with weights by class a row's own weight would tell its label.
        self._is_kept = self._rows >= MIN_PAIR_ROWS
        if np.count_nonzero(self._is_kept) > MAX_PAIRS:
            most = np.argsort(-self._rows, kind="stable")[:MAX_PAIRS]
            self._is_kept = np.zeros_like(self._is_kept)
            self._is_kept[most] = True
        odds = data.base + data.effect(first, fold)[fold, a] + data.effect(second, fold)[fold, b]
        self.odds = np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        others, hits_of_others = _others(mass), _others(hits)
        is_known = self._is_kept & (_others(rows) >= MIN_PAIR_ROWS)
        cells = fold, index
        self._has_number = is_known[cells]
        self.share = _shrink(
            np.where(is_known, hits_of_others, 0.0)[cells],
            np.where(is_known, others, 0.0)[cells],
            self.odds,
        )
        mass = rows if logs else mass
        self.mass = _as_rows(np.where(is_known, scale_to_all(mass), 0.0)[cells])

    def is_settled(self) -> bool:
        """Return True if one feature of the cross nearly determines the other, as a town its region.

        The cross then divides the rows as this category does. Its number leaves the row's fold out, and beside the
        category's coefficient, learnt from all rows, tells the labels of the fold.
        """
        first, second = (np.bincount(self._data.codes(j)) for j in self._pair)
        of_one = np.minimum(
            first[self._keys // self._n_second], second[self._keys % self._n_second]
        )
        settled = self._rows[self._rows >= MIN_SETTLED_SHARE * of_one].sum()
        return bool(settled > MAX_SETTLED_ROWS * self._rows.sum())

    def columns(self) -> Floats:
        if not self._logs:
            return np.column_stack([self.share, self.mass])
        beyond = np.where(self._has_number, _log_odds(self.share) - self.odds, 0.0)
        return np.column_stack([beyond, np.log1p(self.mass, dtype=np.float64)])

    def look_up(self) -> tuple[npt.NDArray[np.uint32], Singles, Singles]:
        data, keys = self._data, self._keys[self._is_kept]
        first, second = (data.effect(j, None) for j in self._pair)
        odds = data.base + first[keys // self._n_second] + second[keys % self._n_second]
        share = _shrink(
            self._hits[self._is_kept],
            self._mass[self._is_kept],
            np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS),
        )
        mass = self._rows if self._logs else self._mass
        return keys.astype(np.uint32), share.astype(np.float32), _as_rows(mass[self._is_kept])


def _number(keys: Integers, n_keys: int) -> tuple[Integers, Integers]:
    if n_keys > MAX_KEYS_PER_ROW * len(keys):
        distinct, index = np.unique(keys, return_inverse=True)
        return distinct, index
    present = np.zeros(n_keys, dtype=np.bool_)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[keys]


def _others(by_fold: Floats) -> Floats:
    """Return, for each fold, the sum over all other folds, clipped at 0 against rounding."""
    others: Floats = np.maximum(by_fold.sum(axis=0) - by_fold, 0.0)
    return others


def _as_rows(mass: Floats) -> Singles:
    return np.minimum(mass, MAX_MASS).astype(np.float32)


def _shrink(hits: Floats, mass: Floats, odds: Floats) -> Floats:
    """Return the fraction of positives hits / mass (both weights), shrunk towards that of the given log-odds."""
    share = (hits + PRIOR_ROWS / (1.0 + np.exp(-odds))) / (mass + PRIOR_ROWS)
    clipped: Floats = np.clip(share, MIN_SHARE, 1.0 - MIN_SHARE)
    return clipped


def _log_odds(share: Floats) -> Floats:
    share = np.clip(share, MIN_SHARE, 1.0 - MIN_SHARE)
    odds: Floats = np.clip(np.log(share) - np.log1p(-share), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    return odds
