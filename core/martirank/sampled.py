"""SampledMartiRank (Long & Servedio 2007, Section 5): correction for label noise, row sampling, streams."""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt
from sklearn.utils import column_or_1d

from core.base.parameters import check_values
from core.base.ranker import Callback, FitCost, Floats
from core.base.splits import row_keys
from core.base.state import Value
from core.base.target import check_class_weights
from core.base.training import TrainingData
from core.base.warning import warn
from core.coding import Bins, effective_counts, fit_bins
from core.coding.bins import code_columns
from core.coding.rows import positives_first
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.metrics import auc, wilson_interval

from .growth import CodedRows, Growth, draw_rows, start_masses
from .martirank import ProgramParameters, ProgramRanker
from .program import NO_MASS, Mass, Noise, Program, mean_error

GUESSES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)

# Fraction of the held-out rows at each end of the ranking that bound the noise rate, and their minimum number.
END_FRACTION = 0.1
MIN_END_ROWS = 20


class NoiseBound(NamedTuple):
    """The fraction of the rarer label among the rows with the purest labels, and its 95 % upper limit."""

    share: float
    upper: float


def bound_noise_rate(scores: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> NoiseBound:
    """Return an upper bound of the label noise rate, from the purest end of a ranking of held-out rows.

    If labels are flipped at rate η, the rarer label is at least a fraction η of every set of rows, and exactly η only
    if all rows of the set are of one class. So the purest set bounds η from above, by Wilson's limit; if the classes
    overlap everywhere nothing more can be known. `scores` are those of rows that the ranking was not fitted on,
    `positive` their labels with noise.
    """
    order = np.argsort(scores, kind="stable")
    n = min(max(int(END_FRACTION * len(order)), MIN_END_ROWS), len(order))
    ends = []
    for rows, odd in ((order[:n], positive), (order[-n:], ~positive)):
        share = float(np.average(odd[rows], weights=weight[rows]))
        ends.append(NoiseBound(min(share, 0.5), min(wilson_interval(share, n).high, 0.5)))
    return min(ends, key=lambda end: end.upper)


SLICE_ROWS = 1 << 14  # rows that are coded together, so that memory does not grow with a batch


class Demand(NamedTuple):
    """How many rows each layer needs."""

    least_examples: float = 100.0
    """m_A: rows of each true class that a node needs for its weak ranker."""
    confidence: float = 0.95
    """1 - δ, the probability that `draws_needed` are enough at all nodes."""
    layer_rows: float = 100_000.0
    """Mass of rows after which a layer has seen enough in any case: the number of the theorem, which provides for nodes
    that hardly any row reaches, is large."""


def draws_needed(
    n_layers: int, epsilon: float, class_prior: float, noise_rate: float, demand: Demand
) -> float:
    """Return how many rows a layer needs by Theorem 10 of Long & Servedio; T is `n_layers`, η the noise rate.

    A node that is not frozen is reached by a share ε/(4T(T+1)) of each class at least, so that a row is one of the
    rarer class's, of share p, at that node with probability q = p ε/(4T(T+1)). By Chernoff's bound (2/q)(m_A +
    ln(T(T+1)/δ)) rows hold m_A of them at every node with probability 1 - δ. One draw serves all nodes of a layer,
    which the paper's T(T+1)/2 separate ones do not: T layers take O(T³ m_A/(εp)) rows rather than O(T⁴ m_A/(εp)). To
    tell classes apart under noise takes 1/(1 - 2η)² as many.
    """
    n_nodes = n_layers * (n_layers + 1)
    rarer = guess_and_halve(min(class_prior, 1.0 - class_prior))
    q = rarer * epsilon / (4 * n_nodes) * (1.0 - 2.0 * noise_rate) ** 2
    return 2.0 / q * (demand.least_examples + math.log(n_nodes / (1.0 - demand.confidence)))


def guess_and_halve(fraction: float) -> float:
    """Return the greatest of ½, ¼, ... that is at most `fraction`."""
    guess = 0.5
    while guess > fraction and guess > 2.0**-40:
        guess /= 2.0
    return guess


@dataclass
class Stream:
    """Programs grown from a stream of row batches: no node sees a row twice.

    The bins are those of the first batch; `seen` is the mass of all rows shown, by their labels; `turn` counts slices.
    """

    bins: Bins
    growths: list[Growth]
    n_layers: int
    epsilon: float
    noise_rate: float
    demand: Demand
    seen: Mass = NO_MASS
    turn: int = 0

    @property
    def is_complete(self) -> bool:
        return all(growth.n_closed == self.n_layers for growth in self.growths)

    def programs(self) -> list[Program]:
        return [growth.program() for growth in self.growths]

    def feed(self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> None:
        """Give a batch of rows to the programs that need more."""
        for start in range(0, len(X), SLICE_ROWS):
            growing = [g for g in self.growths if g.n_closed < self.n_layers]
            if not growing:
                return
            part = slice(start, start + SLICE_ROWS)
            rows, n_positives = positives_first(positive[part])
            growth = growing[self.turn % len(growing)]
            self.turn += 1
            codes, own = code_columns(X[part], rows, self.bins), weight[part][rows]
            self._show(growth, CodedRows(self.bins, codes, own, n_positives, effective_counts(own)))

    def _show(self, growth: Growth, rows: CodedRows) -> None:
        masses = start_masses(rows.weight, self.n_layers)
        growth.descend(rows.codes, masses)
        growth.sums.add(rows, masses)
        self.seen = self.seen.plus(rows.mass)
        true = self.seen.without_noise(self.noise_rate)
        if min(true) <= 0.0:
            return
        max_shown = draws_needed(
            self.n_layers, self.epsilon, true.share, self.noise_rate, self.demand
        )
        max_shown = min(max_shown, self.demand.layer_rows)
        if growth.is_satisfied(self.demand.least_examples, max_shown):
            growth.close_layer()


# Fraction of each class that is held out to choose the noise rate.
CHECKED_FRACTION = 0.25

DEMAND = Demand()

Bagged = Callable[[float, int], Any]
"""Returns the program of a noise rate and a bag."""

MAX_DRAWS = 1 << 18  # draws of a fit: no two seeds share a draw


@dataclass(kw_only=True, eq=False, repr=False)
class SampledParameters(ProgramParameters):
    """The parameters that `SampledMartiRank` has in addition to those of `MartiRank`."""

    epsilon: Annotated[
        float,
        Gt(0),
        Lt(1),
        Doc(
            "A node is frozen if the fraction of a class that reaches it is at most ε/(4T(T+1)). All "
            "frozen nodes together then lose at most ε/2 of a class."
        ),
    ] = 0.05
    noise_rate: Annotated[
        float | None,
        Ge(0),
        Lt(0.5),
        Doc("Probability that a label is flipped. None: estimated from the AUC on held-out rows."),
    ] = None
    class_prior: Annotated[
        float | None,
        Gt(0),
        Lt(1),
        Doc("True fraction of positives. None: that of the labels, corrected for the noise."),
    ] = None
    n_bags: Annotated[
        int, Ge(1), Le(1000), Doc("Number of programs. Their scores are averaged.")
    ] = 10
    subsample: Annotated[
        float, Gt(0), Le(1), Doc("Fraction of the rows of each class that a layer is grown on.")
    ] = 0.5


class SampledMartiRank(SampledParameters, ProgramRanker):
    """MartiRank with a correction for label noise, sampled rows and bagging.

    Use it if a known or estimated fraction of the labels is flipped. The fit estimates the noise rate if you do not
    give it. With clean labels, `RankBoost` with trees is more accurate.

    Each layer of each program is grown on rows drawn without replacement, so a node uses a row only once. With labels
    flipped at rate η, an estimate of a class's mass is corrected to (M_b - η M)/(1 - 2η), both in the test that freezes
    a node and in the coin of Lemma 4. A node is frozen if hardly any rows of one class reach it. Scores are means over
    `n_bags` programs.

    Attributes
    ----------
    nodes_ : structured ndarray of shape (n_bags · T(T+1)/2,)
        The nodes by program, layer and position; see `program.NODE`.
    intercept_ : float
        Part of every score: minus the threshold with the greatest TPR - FPR on the training rows.
    loss_ : ndarray of shape (n_bags,), float64
        Mean error of the nodes of each program; see `program.mean_error`.
    noise_rate_ : float
        η, as given or estimated.
    noise_rate_range_ : tuple of (float, float)
        Values of an estimated η that the data allow: from 0 to the fraction of the rarer label among the rows with the
        purest labels, with its upper 95 % limit. Overlapping classes look like noise, so the upper end is a bound, not
        an estimate. (η, η) if η was given.
    noise_rate_auc_ : ndarray of shape (n_guesses, 2), float64
        Each candidate η with the AUC on held-out rows, by their uncorrected labels; empty if η was given.
    class_prior_ : float
        Fraction of positives, corrected for the noise.

    Notes
    -----
    The theorem's T is 8 ln(1/ε)/γ² (from Azuma's inequality); far fewer layers are useful in practice.

    Differences from the paper: coins are not tossed, as in `MartiRank`. The coin of Lemma 4 is corrected for noise,
    too; otherwise the proof of Theorem 8 has a gap. At a node with 10 % positives, η = 0.3 and true errors p₊ = 0.4, p₋
    = 0, the plain coin leaves an advantage of 0.04 instead of 0.21. Other nodes use the rows again, whereas the paper
    draws fresh rows.

    Estimating η costs one fit of a single program per candidate.

    References
    ----------
    P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007: Section 5,
    eq. 2, Theorems 9 and 10.

    Examples
    --------
    >>> from core import SampledMartiRank
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> ranker = SampledMartiRank(n_rounds=3, n_bags=2, noise_rate=0.1, subsample=1.0).fit(X, y)
    >>> ranker.expected_position(X).round(2).tolist()
    [0.0, 0.0, 0.72, 0.51, 0.88, 0.88]
    """

    fit_cost = FitCost(250e-9, times="n_rounds")

    noise_rate_: Annotated[float, Value(), Ge(0.0), Le(1.0)]
    noise_rate_range_: Annotated[tuple[float, float], Value(), Ge(0.0), Le(1.0)]
    noise_rate_auc_: Floats
    class_prior_: Annotated[float, Value(), Ge(0.0), Le(1.0)]

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        demand: Demand = DEMAND,
    ) -> Self:
        """Fit on a batch of rows; each row is used once, so memory does not grow with their number.

        Each layer of each program takes rows until each of its nodes has seen enough of both classes, and keeps a
        histogram per node. Scores are those of the layers that are complete.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows. The first batch determines the bins, the columns and their categories, so give it a few thousand rows.
        y : array-like of shape (n_samples,)
            Labels. The first batch needs both labels, unless you pass `classes`. Later batches may have one.
        classes : array-like of shape (2,), optional
            The two labels. Used in the first call only.
        sample_weight : array-like of shape (n_samples,), optional
            As for `fit`.
        demand : Demand, optional
            How many rows a layer needs. Used in the first call only.

        Returns
        -------
        self
            `is_complete_` tells whether all layers are complete; further rows are ignored.

        Raises
        ------
        InvalidParameter, InvalidData
            As for `fit`, or the weak ranker is not a stump: only stumps can be found from a histogram.

        Warns
        -----
        UserWarning
            noise_rate is None: a rate cannot be guessed from rows that are not kept, and 0 is taken.
        """
        fresh = self._unfitted()
        if hasattr(self, "_stream"):
            for name in self._fitted:
                setattr(fresh, name, vars(self)[name])
            fresh._stream = deepcopy(self._stream)  # a batch that fails must not be in it
        fresh._learn_batch(X, y, classes, sample_weight, demand)
        self._take_state_of(fresh)
        return self

    def _learn_batch(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, demand: Demand
    ) -> None:
        check_values(type(self), self.get_params(deep=False))
        if self.weak_ranker != "stump":
            raise InvalidParameter(
                "weak_ranker must be 'stump' for partial_fit, which stores histograms but no rows, got "
                f"{self.weak_ranker!r}"
            )
        stream = getattr(self, "_stream", None)
        X = self._matrix(X, reset=stream is None)
        if stream is None:
            if self.noise_rate is None:
                warn(
                    "noise_rate is None and cannot be estimated in partial_fit, which keeps no rows: 0 is used. Set "
                    "noise_rate"
                )
            labels = y if classes is None else classes
            self.classes_, _ = self._check_target(
                labels, len(X) if classes is None else np.size(classes)
            )
            positive, weight = self._check_batch(y, sample_weight, len(X))
            self._stream = stream = self._start_stream(X, positive, weight, demand)
        else:
            positive, weight = self._check_batch(y, sample_weight, len(X))
        present = weight > 0
        stream.feed(X[present], positive[present], weight[present])
        self._take_stream(stream, X, positive, weight)

    def _start_stream(
        self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, demand: Demand
    ) -> Stream:
        self._check_noise_rate(positive, weight)
        rows = np.flatnonzero(weight > 0)
        bins, _ = fit_bins(X, rows, weight[rows], self.max_bins, self._n_categories())
        noise = self._noise(self.noise_rate or 0.0)
        growths = [Growth(bins, self.n_rounds, noise) for _ in range(self.n_bags)]
        return Stream(bins, growths, self.n_rounds, self.epsilon, self.noise_rate or 0.0, demand)

    def _check_batch(
        self, y: Any, sample_weight: Any, n_rows: int
    ) -> tuple[npt.NDArray[np.bool_], Floats]:
        """A batch need not contain both classes."""
        try:
            labels = np.concatenate([self.classes_, column_or_1d(y, warn=True)])
        except ValueError as error:
            raise InvalidData(str(error)) from error
        classes, positive = self._check_target(labels, n_rows + 2)
        if (classes != self.classes_).any():
            raise InvalidData(
                f"y must contain {self.classes_.tolist()} as in the first batch, got {classes.tolist()}"
            )
        if sample_weight is None:
            return positive[2:], np.ones(n_rows)
        weight = np.concatenate([[1.0, 1.0], np.ravel(sample_weight)])
        return positive[2:], check_class_weights(weight, positive, classes)[2:]

    def _take_stream(
        self, stream: Stream, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats
    ) -> None:
        programs = stream.programs()
        self._take(programs, getattr(self, "intercept_", 0.0), _mean_errors(programs))
        if weight[positive].any() and weight[~positive].any():
            self.intercept_ = -self._find_cut(X, positive, weight)
        self._set_noise_rate(self.noise_rate or 0.0, stream.seen)
        self.is_complete_ = stream.is_complete

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        X, positive, weight = data.X, data.positive, data.weight
        grow = self._bagged(data)
        mass = Mass.by_label(weight / weight.sum(), positive)
        if self.noise_rate is None:
            self._guess_noise_rate(data, mass)
        else:
            self._check_noise_rate(positive, weight)
            self._set_noise_rate(self.noise_rate, mass)
        programs: list[Any] = []
        for bag in range(self.n_bags):
            programs.append(grow(self.noise_rate_, bag))
            callback(bag + 1, self.n_bags, {"loss": mean_error(programs[-1].nodes)})
        self._take(programs, 0.0, _mean_errors(programs))
        self.intercept_ = -self._find_cut(X, positive, weight)

    def structure(self) -> dict[str, Any]:
        low, high = self.noise_rate_range_
        noise: dict[str, Any] = {"rate": self.noise_rate_, "guessed": self.noise_rate is None}
        if self.noise_rate is None:
            noise |= {
                "low": low,
                "high": high,
                "guesses": [
                    {"rate": rate, "held_out_auc": area}
                    for rate, area in self.noise_rate_auc_.tolist()
                ],
                "note": "where the classes overlap, high bounds the rate and is no estimate of it",
            }
        return super().structure() | {"class_prior": self.class_prior_, "label_noise": noise}

    @property
    def _noise_rate_auc(
        self,
    ) -> Annotated[tuple[tuple[float, float], ...], Value(), Ge(0.0), Le(1.0)]:
        return tuple((rate, area) for rate, area in self.noise_rate_auc_.tolist())

    @_noise_rate_auc.setter
    def _noise_rate_auc(self, tried: Sequence[tuple[float, float]]) -> None:
        if len(tried) > len(GUESSES):
            raise ArtifactError(
                f"noise_rate_auc must contain {len(GUESSES)} guesses at most, got {len(tried)}"
            )
        self.noise_rate_auc_ = np.array(tried, dtype=np.float64).reshape(-1, 2)

    def _sizes(self) -> tuple[int, int]:
        return self.n_bags, self.n_bags

    def _check_noise_rate(self, positive: npt.NDArray[np.bool_], weight: Floats) -> None:
        """Raise InvalidData if the noise rate is not below the fraction of the rarer label."""
        rarer = min(weight[positive].sum(), weight[~positive].sum()) / weight.sum()
        if self.noise_rate and self.noise_rate >= rarer:
            raise InvalidData(
                f"noise_rate must be less than the fraction of the rarer label ({rarer:.4g}), which flipped "
                f"labels would otherwise exceed, got {self.noise_rate}"
            )

    def _set_noise_rate(
        self,
        rate: float,
        mass: Mass,
        high: float | None = None,
        tried: Sequence[tuple[float, float]] = (),
    ) -> None:
        """Set the noise rate η and the attributes that depend on it; `high` is its upper bound if it was estimated."""
        self.noise_rate_ = float(rate)
        self.noise_rate_range_ = (float(rate),) * 2 if high is None else (0.0, high)
        self._noise_rate_auc = tried
        self.class_prior_ = self.class_prior or mass.without_noise(rate).share

    def _guess_noise_rate(self, data: TrainingData, mass: Mass) -> None:
        """Estimate the noise rate: the candidate with the best AUC on held-out rows."""
        positive, weight = data.positive, data.weight
        held_out = data.hold_out(CHECKED_FRACTION, self.random_state)
        if held_out is None:  # too few rows to check a guess on
            self._set_noise_rate(0.0, mass, high=0.5)
            return
        rest = ~held_out
        grow = self._bagged(data.take(rest))
        checked = np.ascontiguousarray(data.X[held_out])
        labels, weights = positive[held_out], weight[held_out]
        plain = grow(0.0, 0).score(checked, self.output)
        bound = bound_noise_rate(plain, labels, weights)
        # the rates that leave each class some rows
        least = min(weight[rest & own].sum() for own in (positive, ~positive)) / weight[rest].sum()
        tried = [(0.0, auc(labels, plain, weights))]
        for guess in GUESSES[1:]:
            if guess < min(bound.upper, least):
                scores = grow(guess, 0).score(checked, self.output)
                tried.append((guess, auc(labels, scores, weights)))
        rate, _ = max(tried, key=lambda guessed: guessed[1])
        self._set_noise_rate(rate, mass, bound.upper, tried)

    @property
    def _least_share(self) -> float:
        """The fraction of a class at or below which a node is frozen."""
        return self.epsilon / (4 * self.n_rounds * (self.n_rounds + 1))

    def _noise(self, rate: float) -> Noise:
        return Noise(rate, self._least_share, self.class_prior)

    def _bagged(self, data: TrainingData) -> Bagged:
        grower = self._grower(data)
        order, n_positives = positives_first(data.positive)
        keys = row_keys(data.X, data.positive, data.weight)[order]

        def program(noise_rate: float, bag: int) -> Any:
            def draw(t: int) -> tuple[npt.NDArray[np.int64], int]:
                seed = self.random_state * MAX_DRAWS + bag * self.n_rounds + t
                return draw_rows(keys, n_positives, self.subsample, seed)

            return grower(self._noise(noise_rate), draw, lambda t, nodes: None)

        return program


def _mean_errors(programs: Sequence[Any]) -> Floats:
    return np.array([mean_error(program.nodes) for program in programs])
