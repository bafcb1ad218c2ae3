"""Boosting rounds of a bagged additive model: compiled kernels, held-out rows, and the choice of column pairs."""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from core.base.checkpoint import Resumable
from core.base.monotone import Directions
from core.base.ranker import Callback, Floats, StopFit, warn_stopped
from core.base.splits import column_keys, split_rows
from core.base.state import Integers, take_from
from core.base.training import Groups, TrainingData
from core.coding.bins import code_columns, learn_bins, missing_code
from core.coding.threads import ThreadPool
from core.errors import InvalidData
from core.kernels import INNER, kernel
from core.trees.sampling import uniform

from .additive_shapes import CELLS, Shapes, purify
from .data import Bools

HELD_OUT = 0.15  # fraction of the rows that each bag leaves out, to choose its number of rounds
PATIENCE = 50  # rounds without a lower loss of the rows left out before a bag ends
MIN_FALL = 1e-5  # fraction of a bag's loss: a smaller fall counts as none
UNEVALUATED_ROUNDS = 100  # rounds of a bag with too few rows of a class to leave any out
LEVEL_SMOOTHING = 30.0  # smoothing of a category, in that of a side of a threshold
CANDIDATES = 3  # thresholds of a column that a round compares, on average, drawn at random
MAX_STEP = 30.0  # greatest Newton step, before the learning rate, in units of the score
ODDS = (1e-100, 1e100)  # range of the odds of a row: steps that would leave it are shorter
MIN_LOG_ODDS, MAX_LOG_ODDS = math.log(ODDS[0]), math.log(ODDS[1])
MAX_SCREENED = 40  # columns, those of the largest effects, of which all pairs are compared
CHANCE = 0.05  # probability that chance alone would let any pair be chosen, about
CUTS = 25  # independent cuts of a pair, about: those of neighbouring thresholds are alike
STUMP, LEVELS, PAIR = 0, 1, 2
"""What a round adds: a stump of a numeric column, a step for each category, or a step for each quadrant of a pair."""
StopReason = Literal["n_rounds", "no_edge", "validation", "stopped"]
Bytes = npt.NDArray[np.uint8]
_LINE = numba.float64[::1]
_TABLE = numba.float64[:, ::1]
_CUBE = numba.float64[:, :, ::1]


@numba.njit(error_model="numpy", **INNER)
def _newton(gradient, curvature):  # type: ignore[no-untyped-def]
    """Clip -gradient / curvature to ± `MAX_STEP`; 0 without curvature."""
    if curvature <= 0.0:
        return 0.0
    return min(max(gradient / curvature, -MAX_STEP), MAX_STEP)


@numba.njit(inline="always")
def _shorten(steps, column, odds):  # type: ignore[no-untyped-def]
    """Shorten a column's steps to keep odds within `ODDS`; return whether a nonzero step remains.

    All steps up have one bound, and all steps down, so that monotone steps stay monotone.
    """
    least, greatest = ODDS[1], ODDS[0]
    for i in range(len(odds)):
        step = steps[column[i]]
        if step > 0.0:
            greatest = max(greatest, odds[i])
        elif step < 0.0:
            least = min(least, odds[i])
    down = min(MIN_LOG_ODDS - math.log(least), 0.0)
    up = max(MAX_LOG_ODDS - math.log(greatest), 0.0)
    has_step = False
    for c in range(len(steps)):
        steps[c] = min(max(steps[c], down), up)
        has_step = has_step or steps[c] != 0.0
    return has_step


@kernel(
    numba.boolean(
        _LINE,
        _LINE,
        _LINE,
        numba.int64,
        numba.int8,
        numba.float64,
        numba.float64,
        numba.uint64,
        numba.uint64,
        _LINE,
    ),
    inner=True,
    error_model="numpy",
)
def _cut(gradients, curvatures, masses, n_bins, direction, smoothing, least, key, start, steps):  # type: ignore[no-untyped-def]
    """Write the best piecewise-constant step over random splits (bins, then missing); return False without one."""
    gradient = curvature = mass = 0.0
    for b in range(n_bins):
        gradient += gradients[b]
        curvature += curvatures[b]
        mass += masses[b]
    best, cut, below, above = 0.0, -1, 0.0, 0.0
    left_g = left_h = left_m = 0.0
    for b in range(n_bins - 1):
        left_g += gradients[b]
        left_h += curvatures[b]
        left_m += masses[b]
        if left_m < least or mass - left_m < least:
            continue
        if (n_bins - 1) * uniform(key, start + np.uint64(b)) >= CANDIDATES:
            continue
        right_g, right_h = gradient - left_g, curvature - left_h
        gain = left_g**2 / (left_h + smoothing) + right_g**2 / (right_h + smoothing)
        if gain <= best:
            continue
        left, right = _newton(left_g, left_h + smoothing), _newton(right_g, right_h + smoothing)
        if direction * (right - left) < 0.0:
            continue
        best, cut, below, above = gain, b, left, right
    for b in range(n_bins):
        steps[b] = below if b <= cut else above
    missing = len(steps) - 1
    steps[missing] = 0.0
    lightest = min(masses[missing], mass)
    if lightest >= least and lightest > 0.0:
        steps[missing] = _newton(gradients[missing], curvatures[missing] + smoothing)
    return cut >= 0 or steps[missing] != 0.0


@kernel(
    numba.boolean(_LINE, _LINE, _LINE, numba.float64, numba.float64, _LINE),
    inner=True,
    error_model="numpy",
)
def _cut_twice(gradients, curvatures, masses, smoothing, least, steps):  # type: ignore[no-untyped-def]
    """Write the best step of a pair of columns, one value per quadrant of two splits; return False without one.

    A side of both cuts with less than the least mass has no step. Arrays as in `_cut`, (CELLS · CELLS,).
    """
    sums = np.zeros((3, CELLS + 1, CELLS + 1))  # of the cells before a row and a column
    for a in range(CELLS):
        for b in range(CELLS):
            c = a * CELLS + b
            for k in range(3):
                value = gradients[c] if k == 0 else (curvatures[c] if k == 1 else masses[c])
                sums[k, a + 1, b + 1] = (
                    value + sums[k, a, b + 1] + sums[k, a + 1, b] - sums[k, a, b]
                )
    best, cut_a, cut_b = 0.0, -1, -1
    corner = np.empty((3, 4))
    for a in range(1, CELLS):
        for b in range(1, CELLS):
            for k in range(3):
                _quadrants(sums[k], a, b, corner[k])
            gain = 0.0
            for q in range(4):
                if corner[2, q] >= least and corner[2, q] > 0.0:
                    gain += corner[0, q] ** 2 / (corner[1, q] + smoothing)
            if gain > best:
                best, cut_a, cut_b = gain, a, b
    if cut_a < 0:
        return False
    for k in range(3):
        _quadrants(sums[k], cut_a, cut_b, corner[k])
    for q in range(4):
        is_heavy = corner[2, q] >= least and corner[2, q] > 0.0
        corner[0, q] = _newton(corner[0, q], corner[1, q] + smoothing) if is_heavy else 0.0
    for a in range(CELLS):
        for b in range(CELLS):
            steps[a * CELLS + b] = corner[0, 2 * (a >= cut_a) + (b >= cut_b)]
    return True


@numba.njit(**INNER)
def _quadrants(sums, a, b, corner):  # type: ignore[no-untyped-def]
    n = CELLS
    corner[0] = sums[a, b]
    corner[1] = sums[a, n] - sums[a, b]
    corner[2] = sums[n, b] - sums[a, b]
    corner[3] = sums[n, n] - sums[a, n] - sums[n, b] + sums[a, b]


class RoundColumns(NamedTuple):
    """The columns that a boosting round updates: their bin codes, kinds, monotone directions and order."""

    codes: Any
    """Below n_slots. Shape (n_columns, n_rows), uint8."""
    kinds: Any
    n_bins: Any
    """Shape (n_columns,), int64."""
    directions: Any
    """Shape (n_columns,), int8."""
    order: Any
    """The columns in turn. Shape (n_columns,), int64."""
    keys: Any
    """Their part of the stream of random numbers. Shape (n_columns,), uint64."""


class RoundRows(NamedTuple):
    """What a boosting round reads: classes and weights of the rows; of each bag its held-out rows, weights and seed."""

    positive: Any
    weight: Any
    held: Any
    """The rows that a bag holds out. Shape (n_bags, n_rows), bool."""
    masses: Any
    """Weight of the training rows of a bag in each bin of a column, that of missing values last. Shape (n_bags,
    n_columns, n_slots), float64."""
    curvature: Any
    """The mean curvature of a row. Shape (n_bags,), float64."""
    keys: Any
    """The keys of the random numbers. Shape (n_bags,), uint64."""


class BagStates(NamedTuple):
    """The state of all bags that a boosting round changes: odds, step functions and losses."""

    ended: Any
    """Bags that take no more rounds; read. Shape (n_bags,), bool."""
    odds: Any
    """Shape (n_bags, n_rows), float64."""
    shapes: Any
    """Shape (n_bags, n_columns, n_slots), float64."""
    losses: Any
    """Of the rows left out. Shape (n_bags,), float64."""
    n_steps: Any
    """Shape (n_bags,), int64."""


_COUNTS = numba.int64[::1]
_COLUMNS_TYPE = numba.types.NamedTuple(
    (numba.uint8[:, ::1], _COUNTS, _COUNTS, numba.int8[::1], _COUNTS, numba.uint64[::1]),
    RoundColumns,
)
_ROWS_TYPE = numba.types.NamedTuple(
    (numba.boolean[::1], _LINE, numba.boolean[:, ::1], _CUBE, _LINE, numba.uint64[::1]), RoundRows
)
_BAGS_TYPE = numba.types.NamedTuple((numba.boolean[::1], _TABLE, _CUBE, _LINE, _COUNTS), BagStates)


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        _COLUMNS_TYPE,
        _ROWS_TYPE,
        _BAGS_TYPE,
        numba.types.UniTuple(numba.float64, 3),
        numba.int64,
    ),
    error_model="numpy",
)
def run_round(first, stride, n_bags, columns, rows, bags, how, number):  # type: ignore[no-untyped-def]
    """Run one round of the bags first, first + stride, ...: a step along each column, in turn.

    The odds are renewed after each column, so a step along a column sees those before it: a round of trees, whose
    histograms of all columns are summed up at once, would not.

    columns: `RoundColumns`; rows: `RoundRows`; bags: `BagStates`; how: learning rate, smoothing and least mass; number:
    of the round.
    """
    codes, kinds, n_bins, directions, order, column_keys = columns
    positive, weight, held, masses, curvature, keys = rows
    ended, odds, shapes, losses, n_steps = bags
    rate, smoothing, least = how
    n_rows = codes.shape[1]
    n_slots = shapes.shape[2]
    gradients, curvatures = np.empty(n_slots), np.empty(n_slots)
    steps, factors = np.empty(n_slots), np.empty(n_slots)
    for k in range(first, n_bags, stride):
        if ended[k]:
            continue
        own, out = odds[k], held[k]
        added = smoothing * curvature[k]
        n_steps[k] = 0
        # The logarithms of all odds are between these: they are found once, and widened by each step.
        lower, upper = math.log(own.min()), math.log(own.max())
        for j in order:
            column = codes[j]
            steps[:] = 0.0
            gradients[:] = 0.0
            curvatures[:] = 0.0
            for i in range(n_rows):
                if not out[i]:
                    p = own[i] / (1.0 + own[i])
                    c = column[i]
                    gradients[c] += weight[i] * ((1.0 - p) if positive[i] else -p)
                    curvatures[c] += weight[i] * (p * (1.0 - p))
            has_step = False
            if kinds[j] == STUMP:
                key = keys[k] ^ column_keys[j]
                has_step = _cut(
                    gradients,
                    curvatures,
                    masses[k, j],
                    n_bins[j],
                    directions[j],
                    added,
                    least,
                    key,
                    np.uint64(number * n_slots),
                    steps,
                )
            elif kinds[j] == PAIR:
                has_step = _cut_twice(gradients, curvatures, masses[k, j], added, least, steps)
            elif (masses[k, j] > 0.0).sum() > 1:
                for c in range(n_slots):
                    if masses[k, j, c] > 0.0:
                        steps[c] = _newton(gradients[c], curvatures[c] + LEVEL_SMOOTHING * added)
                        has_step = has_step or steps[c] != 0.0
            if not has_step:
                continue
            for c in range(n_slots):
                steps[c] *= rate
            lower, upper = lower + min(steps.min(), 0.0), upper + max(steps.max(), 0.0)
            if lower < MIN_LOG_ODDS or upper > MAX_LOG_ODDS:
                if not _shorten(steps, column, own):
                    continue
                lower, upper = MIN_LOG_ODDS, MAX_LOG_ODDS
            n_steps[k] += 1
            for c in range(n_slots):
                shapes[k, j, c] += steps[c]
                factors[c] = math.exp(steps[c])
            for i in range(n_rows):
                own[i] = min(max(own[i] * factors[column[i]], ODDS[0]), ODDS[1])
        loss = total = 0.0
        for i in range(n_rows):
            if out[i]:
                total += weight[i]
                loss += weight[i] * (
                    math.log1p(1.0 / own[i]) if positive[i] else math.log1p(own[i])
                )
        losses[k] = loss / total if total > 0.0 else np.nan


@kernel(
    numba.void(
        numba.int64, numba.int64, numba.int64, numba.uint8[:, ::1], numba.int64[:, ::1], _LINE, _LINE, _LINE,
        numba.float64, numba.float64, _LINE,
    ),
    error_model="numpy",
)  # fmt: skip
def screen_pairs(  # type: ignore[no-untyped-def]
    first,
    stride,
    n_pairs,
    cells,
    pairs,
    gradient,
    curvature,
    weight,
    smoothing,
    least,
    gains,
):
    """Write the score of each pair of columns: how much two crossed splits explain of the gradients beyond two stumps.

    cells: (n_columns, n_rows) uint8, below CELLS; pairs: (n_pairs, 2) int64; gradient, curvature, weight: (n_rows,)
    float64; gains: (n_pairs,) float64. With values r = G/H of the quadrants and curvatures H a cut explains
    (r₁ - r₂ - r₃ + r₄)² / Σ 1/H.
    """
    sums, corner = np.empty((3, CELLS + 1, CELLS + 1)), np.empty((3, 4))
    for pair in range(first, n_pairs, stride):
        one, other = cells[pairs[pair, 0]], cells[pairs[pair, 1]]
        sums[:] = 0.0
        for i in range(len(gradient)):
            a, b = one[i] + 1, other[i] + 1
            sums[0, a, b] += gradient[i]
            sums[1, a, b] += curvature[i]
            sums[2, a, b] += weight[i]
        for k in range(3):
            for a in range(1, CELLS + 1):
                for b in range(1, CELLS + 1):
                    sums[k, a, b] += sums[k, a - 1, b] + sums[k, a, b - 1] - sums[k, a - 1, b - 1]
        best = 0.0
        for a in range(1, CELLS):
            for b in range(1, CELLS):
                for k in range(3):
                    _quadrants(sums[k], a, b, corner[k])
                contrast = inverse = 0.0
                heavy = True
                for q in range(4):
                    heavy = heavy and corner[2, q] >= least and corner[2, q] > 0.0
                    sign = 1.0 if q in (0, 3) else -1.0
                    contrast += sign * corner[0, q] / (corner[1, q] + smoothing)
                    inverse += 1.0 / (corner[1, q] + smoothing)
                if heavy and contrast**2 / inverse > best:
                    best = contrast**2 / inverse
        gains[pair] = best


class _Stage(Resumable):
    """Boosting rounds of all bags over given columns, with the current and the best functions.

    best: (n_bags, n_columns, n_slots), the functions after the round of the lowest loss on held-out rows. first: the
    number of rounds before this stage.
    """

    changing = ("odds", "shapes", "best", "best_loss", "best_round", "first", "ended")

    def __init__(
        self,
        bags: "Bags",
        codes: Bytes,
        kinds: Integers,
        n_bins: Integers,
        directions: Directions,
        n_slots: int,
        log_odds: Floats,
        column_keys: Groups,
        first: int = 0,
        best_loss: Floats | None = None,
    ) -> None:
        n_bags, n_columns = len(bags.held), len(codes)
        self._bags = bags
        self.order = np.argsort(column_keys, kind="stable")
        self.odds = np.clip(np.exp(np.clip(log_odds, -500.0, 500.0)), *ODDS)
        self.shapes = np.zeros((n_bags, n_columns, n_slots))
        self.best = self.shapes.copy()
        self.best_loss = np.full(n_bags, np.inf) if best_loss is None else best_loss.copy()
        self.best_round = np.full(n_bags, first)
        self.first = first
        self.ended = np.zeros(n_bags, dtype=np.bool_)
        masses = np.empty((n_bags, n_columns, n_slots))
        for k, held in enumerate(bags.held):
            weight = np.where(held, 0.0, bags.weight)
            for j, column in enumerate(codes):
                masses[k, j] = np.bincount(column, weight, n_slots)
        self._columns = RoundColumns(codes, kinds, n_bins, directions, self.order, column_keys)
        self._rows = RoundRows(
            bags.positive, bags.weight, bags.held, masses, bags.curvature, bags.keys
        )
        # About what a round takes, so that it is worth the while of a thread.
        self._pool = ThreadPool(codes.size * n_bags)

    def advance(self, number: int) -> float:
        """Run one round with this (unique) round number; return the bags' mean loss on the rows that they leave out."""
        bags, n_bags = self._bags, len(self.ended)
        losses, n_steps = self.best_loss.copy(), np.zeros(n_bags, dtype=np.int64)
        states = BagStates(self.ended, self.odds, self.shapes, losses, n_steps)
        self._pool.run(run_round, n_bags, self._columns, self._rows, states, bags.how, number)
        for k in np.flatnonzero(~self.ended).tolist():
            if n_steps[k] == 0:
                self.ended[k] = True
            elif not bags.held[k].any():  # the last of a fixed number
                self.best[k], self.best_round[k] = self.shapes[k], self.best_round[k] + 1
                self.ended[k] = self.best_round[k] - self.first == UNEVALUATED_ROUNDS
            elif losses[k] < self.best_loss[k] * (1.0 - MIN_FALL):
                self.best[k], self.best_round[k] = self.shapes[k], number + 1
                self.best_loss[k] = losses[k]
            else:
                self.ended[k] = number + 1 - self.best_round[k] >= PATIENCE
        evaluated = bags.held.any(axis=1)
        return float(losses[evaluated].mean()) if evaluated.any() else math.nan


class _Axis(NamedTuple):
    """One column of a pair, coarsened to at most CELLS cells: the rows and columns of a pair's table."""

    column: int
    cells: Integers
    """The cell of each slot, shape (n_slots,)."""


class Bags(Resumable):
    """The bags of a fit: draws of the rows, and their rounds over single columns and then over pairs.

    losses: list of float; mean loss of the rows left out after each round; NaN if no bag could leave any out.
    columns, pairs: _Stage; `pairs` is None until all bags have ended their rounds over single columns.
    """

    changing = ("losses", "columns", "pairs")

    def __init__(self, parameters: Any, data: TrainingData) -> None:
        X, positive, weight = data.X, data.positive, data.weight
        n_bags, n_categories = parameters.n_bags, data.n_categories
        rows = np.arange(len(X))
        self.bins = learn_bins(X, rows, weight, parameters.max_bins, n_categories)
        self.codes = code_columns(X, rows, self.bins)
        self.n_slots = int(self.bins.n_bins.max()) + 1
        self.codes[self.codes == missing_code(self.codes.dtype)] = self.n_slots - 1
        self.positive = positive
        self.weight = np.asarray(weight / min(1.0, float(weight.mean())))
        self.held = np.array(
            [leave_out(data, parameters.random_state + (k << 32)) for k in range(n_bags)]
        )
        masses = [
            [float(self.weight[~held & own].sum()) for own in (positive, ~positive)]
            for held in self.held
        ]
        # Bounded as the odds are.
        log_odds = [math.log(p / n) if p > 0.0 < n else 0.0 for p, n in masses]
        self.log_odds = np.clip(np.array(log_odds), MIN_LOG_ODDS, MAX_LOG_ODDS)
        self.curvature = np.array([p / (p + n) * (n / (p + n)) for p, n in masses])
        self.keys = np.random.Generator(np.random.Philox(parameters.random_state)).integers(
            0, 2**64, n_bags, dtype=np.uint64
        )
        least = float(parameters.min_samples_leaf)
        self.how = parameters.learning_rate, float(parameters.smoothing), least
        directions = parameters.find_directions()
        self.directions = np.zeros(len(self.codes), np.int8) if directions is None else directions
        kinds = np.where(self.bins.is_categorical, LEVELS, STUMP)
        self._n_pairs = parameters.n_pairs
        # Steps are taken in the order of these keys, so that no result depends on the order of the columns.
        self._column_keys = column_keys(X, positive, weight)
        self.losses: list[float] = []
        self.columns = _Stage(
            self, self.codes, kinds, self.bins.n_bins, self.directions, self.n_slots,
            np.repeat(self.log_odds[:, None], len(X), axis=1), self._column_keys,
        )  # fmt: skip
        self.pairs: _Stage | None = None
        self.chosen: list[tuple[_Axis, _Axis]] = []

    def finish(self, n_rounds: int, callback: Callback) -> StopReason:
        while True:
            stage = self.columns if self.pairs is None else self.pairs
            if stage.ended.all():
                if not self.columns.best_round.any():
                    return "no_edge"
                if self.pairs is None and len(self.losses) < n_rounds and self._start_pairs():
                    continue
                return "validation"
            if len(self.losses) >= n_rounds:
                return "n_rounds"
            loss = stage.advance(len(self.losses))
            if not self.columns.best_round.any() and stage.ended.all():
                continue
            self.losses.append(loss)
            try:
                callback(len(self.losses), n_rounds, {} if math.isnan(loss) else {"loss": loss})
            except StopFit:
                if len(self.losses) < n_rounds:
                    warn_stopped(len(self.losses), n_rounds, "rounds")
                    return "stopped"

    def set_state(self, state: Mapping[str, Any]) -> None:
        with_pairs = any(name.startswith("pairs.") for name in state)
        if with_pairs and self.pairs is None:
            self.columns.set_state(take_from("columns.", state))
            self._start_pairs()
        super().set_state(state)

    def _start_pairs(self) -> bool:
        """Choose pairs from the first stage's residuals, and start the second; return False without pairs."""
        shapes = self.columns.best.mean(axis=0)
        weight = self.weight / self.weight.max()
        shares = np.array([np.bincount(c, weight, self.n_slots) for c in self.codes])
        shares /= weight.sum()
        effects = ((shapes - (shapes * shares).sum(axis=1)[:, None]) ** 2 * shares).sum(axis=1)
        effects[self.directions != 0] = 0.0
        screened = np.argsort(-effects, kind="stable")[:MAX_SCREENED]
        screened = np.sort(screened[effects[screened] > 0.0])
        if self._n_pairs == 0 or len(screened) < 2:
            return False
        axes = [_Axis(j, self._cells(j, shapes[j], shares[j])) for j in screened.tolist()]
        cells = np.array([axis.cells[self.codes[axis.column]] for axis in axes], dtype=np.uint8)
        pairs = np.array([(a, b) for b in range(len(axes)) for a in range(b)])
        odds = np.exp(self._sum(shapes, float(self.log_odds.mean())))
        p = odds / (1.0 + odds)
        gains = np.zeros(len(pairs))
        curvature = self.weight * p * (1.0 - p)
        _, smoothing, least = self.how
        ThreadPool(cells.size * len(axes)).run(
            screen_pairs, len(pairs), cells, pairs, self.weight * (self.positive - p), curvature, self.weight,
            smoothing * float(curvature.mean()), least, gains,
        )  # fmt: skip
        best = np.argsort(-gains, kind="stable")[: self._n_pairs]
        # Without an effect the gain at a cut has the distribution of χ² with one degree of freedom.
        best = np.sort(best[gains[best] > chdtri(1.0, CHANCE / (len(pairs) * CUTS))])
        if not len(best):
            return False
        self.chosen = [(axes[a], axes[b]) for a, b in pairs[best].tolist()]
        codes = np.array([cells[a] * CELLS + cells[b] for a, b in pairs[best]], dtype=np.uint8)
        log_odds = np.array(
            [
                self._sum(shape, start)
                for shape, start in zip(self.columns.best, self.log_odds.tolist(), strict=True)
            ]
        )
        keys = np.array([[self._column_keys[axis.column] for axis in pair] for pair in self.chosen])
        n = len(codes)
        numbers = np.full(n, PAIR), np.full(n, CELLS * CELLS), np.zeros(n, np.int8)
        self.pairs = _Stage(
            self, codes, *numbers, CELLS * CELLS, log_odds, keys[:, 0] ^ keys[:, 1], len(self.losses),
            self.columns.best_loss,
        )  # fmt: skip
        return True

    def _sum(self, shapes: Floats, start: float) -> Floats:
        scores = np.full(len(self.positive), start)
        for shape, codes in zip(shapes, self.codes, strict=True):
            if shape.any():
                scores += shape[codes]
        bound: Floats = np.clip(scores, MIN_LOG_ODDS, MAX_LOG_ODDS)
        return bound

    def _cells(self, column: int, shape: Floats, shares: Floats) -> Integers:
        """Make cells of about equal weight, with categories sorted by fitted value."""
        n = int(self.bins.n_bins[column])
        order = np.arange(n)
        if self.bins.is_categorical[column]:
            order = np.argsort(shape[:n], kind="stable")
        cells = np.full(self.n_slots, CELLS - 1, dtype=np.int64)
        if n < CELLS:
            cells[order] = np.arange(n)
            return cells
        mass = np.cumsum(shares[order]) - 0.5 * shares[order]
        cells[order] = np.minimum(mass / shares[:n].sum() * (CELLS - 1), CELLS - 2).astype(np.int64)
        return cells

    def collect(self) -> tuple[float, Shapes]:
        """Return the mean score of the training rows, and the step functions and tables averaged over the bags."""
        shapes, n_bags = self.columns.best.copy(), len(self.held)
        weight = self.weight / self.weight.max()
        tables = np.zeros((n_bags, 0, CELLS, CELLS))
        if self.pairs is not None:
            tables = self.pairs.best.reshape(n_bags, -1, CELLS, CELLS).copy()
        for k, (one, other) in enumerate(self.chosen):
            own = [axis.cells[self.codes[axis.column]] for axis in (one, other)]
            mass = np.bincount(own[0] * CELLS + own[1], weight, CELLS * CELLS).reshape(CELLS, CELLS)
            for moved, axis in zip(purify(tables[:, k], mass), (one, other), strict=True):
                shapes[:, axis.column] += moved[:, axis.cells]
        shares = np.array([np.bincount(c, weight, self.n_slots) for c in self.codes])
        shares /= weight.sum()
        means = (shapes * shares).sum(axis=2)
        shapes -= means[:, :, None]
        shapes[:, ~self.bins.has_missing, -1] = 0.0
        offset = float((self.log_odds + means.sum(axis=1)).mean())
        return offset, self._store(shapes, tables)

    def _store(self, shapes: Floats, tables: Floats) -> Shapes:
        values, deviations = shapes.mean(axis=0), shapes.std(axis=0)
        used = np.flatnonzero(values.any(axis=1) | deviations.any(axis=1)).tolist()
        steps = [self._steps(j, values[j], deviations[j]) for j in used]
        axes = {axis.column: axis for pair in self.chosen for axis in pair}
        ends = sorted(axes)
        cells = [self._steps(j, axes[j].cells) for j in ends]
        pairs = [[ends.index(axis.column) for axis in pair] for pair in self.chosen]
        none = np.empty(0)
        return Shapes(
            n_categories=np.array([0 if b is None else len(b) for b in self.bins.category_bins]),
            features=np.array(used, dtype=np.int64),
            n_thresholds=np.array([len(own) for own, _ in steps], dtype=np.int64),
            thresholds=np.concatenate([none, *(own for own, _ in steps)]),
            shape_values=np.concatenate([none, *(own[0] for _, own in steps)]),
            shape_deviations=np.concatenate([none, *(own[1] for _, own in steps)]),
            axis_features=np.array(ends, dtype=np.int64),
            n_axis_thresholds=np.array([len(own) for own, _ in cells], dtype=np.int64),
            axis_thresholds=np.concatenate([none, *(own for own, _ in cells)]),
            axis_cells=np.concatenate([none, *(own[0] for _, own in cells)]).astype(np.int64),
            pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
            tables=tables.mean(axis=0),
            table_deviations=tables.std(axis=0),
        )

    def _steps(self, column: int, *of_slots: npt.NDArray[Any]) -> tuple[Floats, list[Floats]]:
        """Return the thresholds at which a column's values change, and the values between them, that of NaN last."""
        own = self.bins.category_bins[column]
        values = np.stack(of_slots)
        missing = values[:, -1:]
        if own is not None:
            steps = np.where(own >= 0, values[:, own], missing)
            return np.arange(len(own) - 1.0), [*np.concatenate([steps, missing], axis=1)]
        values = values[:, : int(self.bins.n_bins[column])]
        changes = np.flatnonzero((np.diff(values, axis=1) != 0.0).any(axis=0))
        kept = values[:, np.append(changes, values.shape[1] - 1)]
        return self.bins.edges[column][changes], [*np.concatenate([kept, missing], axis=1)]


def leave_out(data: TrainingData, seed: int) -> Bools:
    """Return the mask of the rows that a bag holds out for validation; empty if a class has too few rows or groups."""
    try:
        return split_rows(
            data.X, data.positive, data.weight, 1, fraction=HELD_OUT, group=data.group, seed=seed
        )[0]
    except InvalidData:
        return np.zeros(len(data.X), dtype=np.bool_)
