"""Growing programs from rows that come by once: the paper's distribution oracle."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.coding import Bins, Codes, count_rows, missing_code
from core.coding.bins import encode, encode_categories
from core.ranker import Floats

from .growth import Growth
from .node import Mass
from .program import Program

SLICE_ROWS = 1 << 14  # that are coded and walked together: memory does not grow with a batch


class Demand(NamedTuple):
    """When a layer has been shown enough rows.

    Attributes
    ----------
    least_examples : float
        m_A: rows of either true class that a node needs for its weak ranker.
    confidence : float
        1 - δ, the probability that `draws_needed` are enough at all nodes.
    layer_rows : float
        Mass of rows after which a layer has seen enough in any case: the theorem's number, which
        looks after nodes that next to nothing reaches, is large.
    """

    least_examples: float = 100.0
    confidence: float = 0.95
    layer_rows: float = 100_000.0


def draws_needed(
    n_layers: int, epsilon: float, class_prior: float, noise_rate: float, demand: Demand
) -> float:
    """Bound the rows that a layer must be shown, as Theorem 10 counts.

    A node that is not frozen is reached by a share ε/(4T(T+1)) of each class at least, so that a row
    is one of the rarer class's at that node with probability q = p ε/(4T(T+1)). By Chernoff's bound
    (2/q)(m_A + ln(T(T+1)/δ)) rows hold m_A of them at every node with probability 1 - δ. One draw
    serves all nodes of a layer, which the paper's T(T+1)/2 separate ones do not: T layers take
    O(T³ m_A/(εp)) rows rather than O(T⁴ m_A/(εp)). To tell classes apart under noise takes
    1/(1 - 2η)² as many.

    Parameters
    ----------
    n_layers : int
        T.
    epsilon : float
    class_prior : float
        Share of positives; p is that of the rarer class.
    noise_rate : float
        η.
    demand : Demand

    Returns
    -------
    float

    References
    ----------
    P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007: Theorem 10.
    """
    n_nodes = n_layers * (n_layers + 1)
    rarer = guess_and_halve(min(class_prior, 1.0 - class_prior))
    q = rarer * epsilon / (4 * n_nodes) * (1.0 - 2.0 * noise_rate) ** 2
    return 2.0 / q * (demand.least_examples + math.log(n_nodes / (1.0 - demand.confidence)))


def guess_and_halve(share: float) -> float:
    """Give a guess of a class's share that is within a factor of two: ½, ¼, ... not above it."""
    guess = 0.5
    while guess > share and guess > 2.0**-40:
        guess /= 2.0
    return guess


class Stream:
    """Programs under construction, fed by turns: no row is asked twice, by any node of any program.

    Parameters
    ----------
    bins : Bins
        Learnt from the first batch.
    growths : list of Growth
        One per program.
    n_layers : int
    epsilon : float
    noise_rate : float
    demand : Demand
    """

    def __init__(
        self,
        bins: Bins,
        growths: list[Growth],
        n_layers: int,
        epsilon: float,
        noise_rate: float,
        demand: Demand,
    ) -> None:
        self._bins = bins
        self._growths = growths
        self._n_layers = n_layers
        self._epsilon = epsilon
        self._noise_rate = noise_rate
        self._demand = demand
        self._turn = 0
        self.seen = Mass(0.0, 0.0)

    @property
    def is_complete(self) -> bool:
        """Whether all programs have all their layers."""
        return all(growth.n_closed == self._n_layers for growth in self._growths)

    def programs(self) -> list[Program]:
        """Give the programs of the layers closed so far."""
        return [growth.program() for growth in self._growths]

    def feed(self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> None:
        """Show rows to the programs that still want some."""
        for start in range(0, len(X), SLICE_ROWS):
            growing = [g for g in self._growths if g.n_closed < self._n_layers]
            if not growing:
                return
            rows = np.arange(start, min(start + SLICE_ROWS, len(X)))
            rows = np.concatenate([rows[positive[rows]], rows[~positive[rows]]])
            growth = growing[self._turn % len(growing)]
            self._turn += 1
            n_positives = int(positive[rows].sum())
            self._show(growth, self._code(X, rows), weight[rows], n_positives)

    def _show(self, growth: Growth, codes: Codes, weight: Floats, n_positives: int) -> None:
        masses = growth.start(weight)
        growth.walk(codes, masses)
        growth.add(codes, masses, n_positives, count_rows(weight))
        mass = Mass(float(weight[:n_positives].sum()), float(weight[n_positives:].sum()))
        growth.count(mass)
        self.seen = self.seen.plus(mass)
        true = self.seen.without_noise(self._noise_rate)
        if min(true) <= 0.0:
            return
        prior = true.positive / (true.positive + true.negative)
        most = draws_needed(self._n_layers, self._epsilon, prior, self._noise_rate, self._demand)
        most = min(most, self._demand.layer_rows)
        if growth.is_satisfied(self._demand.least_examples, most):
            growth.close_layer()

    def _code(self, X: Floats, rows: npt.NDArray[np.int64]) -> Codes:
        bins = self._bins
        codes = np.empty((X.shape[1], len(rows)), dtype=bins.dtype)
        missing = missing_code(bins.dtype)
        for j, edges in enumerate(bins.edges):
            column, of_categories = np.ascontiguousarray(X[rows, j]), bins.category_bins[j]
            if of_categories is None:
                encode(column, edges, missing, codes[j])
            else:
                encode_categories(column, of_categories, missing, codes[j])
        return codes
