"""MartiRank programs whose nodes hold any weak ranker: a built-in classifier or a user's estimator."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from core.base.ranker import Floats
from core.base.state import Array, Index, Nested, Records, State, Totals
from core.base.table import Categories
from core.classifiers import STACKS, ClassifierName, Stack, fit_classifier, fit_estimator
from core.coding import effective_counts, youden_threshold
from core.coding.best_split import MIN_EDGE
from core.coding.rows import positives_first
from core.errors import ArtifactError

from .growth import Draw, Report
from .program import (
    NODE,
    RULES,
    Integers,
    Mass,
    Noise,
    Output,
    check_nodes,
    cut_node,
    describe_layers,
    layer,
    n_nodes,
    uniform_node,
)

Positive = npt.NDArray[np.bool_]

# Fraction of a row, relative to the greatest one at the node, below which the row is left out of a fit.
MIN_PRESENCE = 1e-6


class NodeRankers(ABC):
    """Base class of the list of a program's weak rankers, in the order in which they are fitted."""

    _fitted: list[Any]

    @property
    def n_fitted(self) -> int:
        return len(self._fitted)

    def drop(self) -> None:
        """Remove the weak ranker that was fitted last."""
        self._fitted.pop()

    @abstractmethod
    def fit(self, X: Floats, positive: Positive, weight: Floats) -> None:
        """Fit one more weak ranker to rows of both classes, and append it."""

    @abstractmethod
    def score(self, number: int, X: Floats) -> Floats:
        """Return the scores of rows by the weak ranker with this number."""

    @abstractmethod
    def describe(self, number: int) -> str:
        """Return the name of the weak ranker with this number."""


@dataclass
class NamedRankers(NodeRankers):
    """The built-in classifiers of a program; each fit has a random seed of its own, derived from the seed.

    `stack` holds the classifiers that were read from an artifact.
    """

    name: ClassifierName
    n_categories: Integers
    seed: int = 0
    stack: Stack | None = None

    def __post_init__(self) -> None:
        self._fitted: list[Stack] = []
        self._n_fits = 0

    def fit(self, X: Floats, positive: Positive, weight: Floats) -> None:
        draw = np.random.SeedSequence([self.seed, self._n_fits]).generate_state(1)
        self._n_fits += 1
        self._fitted.append(
            fit_classifier(self.name, X, positive, weight, self.n_categories, int(draw[0]))
        )

    def score(self, number: int, X: Floats) -> Floats:
        if self.stack is not None:
            return self.stack.score(number, X)
        return self._fitted[number].score(0, X)

    def joined(self) -> Stack:
        if self.stack is None:
            self.stack = STACKS[self.name].join(self._fitted, self.n_categories)
        return self.stack

    def describe(self, number: int) -> str:
        return f"{self.name} {number}"


class EstimatorRankers(NodeRankers):
    """The fitted clones of a user's scikit-learn estimator; they get X as it is, with NaN for missing values."""

    def __init__(self, template: BaseEstimator) -> None:
        self._template = template
        self._fitted = []

    def fit(self, X: Floats, positive: Positive, weight: Floats) -> None:
        self._fitted.append(fit_estimator(self._template, X, positive, weight, "weak ranker"))

    def score(self, number: int, X: Floats) -> Floats:
        """Return a clone's decision_function of rows, or else their probability of the positive class."""
        estimator = self._fitted[number]
        if hasattr(estimator, "decision_function"):
            return np.asarray(estimator.decision_function(X), dtype=np.float64)
        return np.asarray(estimator.predict_proba(X)[:, 1], dtype=np.float64)

    def describe(self, number: int) -> str:
        return f"{type(self._template).__name__} {number}"


def _is_fitted(number: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.asarray(number >= 0)


@dataclass
class AnyProgram:
    """A branching program whose nodes threshold the scores of weak rankers; same interface as `Program`."""

    n_layers: int
    nodes: npt.NDArray[np.void]
    """The "feature" of a node that cuts scores is 0: the score. Shape (T(T+1)/2,)."""
    number: Integers
    """Number of the weak ranker of each node; -1 if it has none. Shape (T(T+1)/2,)."""
    rankers: NodeRankers

    def score(self, X: Floats, output: Output) -> Floats:
        """Return the expected scores of rows over the program's coin flips; see `Program.score`."""
        mass, frozen = self.start(X), np.zeros(len(X))
        for t, position, node, here in self.walk(X, mass):
            if self.nodes[node]["frozen"]:
                label = self.nodes[node]["rise_below"]
                on = position + (self.n_layers - t) * label  # as if all steps were its label
                frozen += here * (label if output == "vote" else on / self.n_layers)
        ends = np.arange(self.n_layers + 1)
        values = 2 * ends >= self.n_layers if output == "vote" else ends / self.n_layers
        # Position by position: BLAS adds in an order that depends on the processor and the number of rows.
        for value, here in zip(values.tolist(), mass, strict=True):
            frozen += value * here
        return frozen

    def start(self, X: Floats) -> Floats:
        """Return the initial weights of rows by position, (T + 1, n_rows): all at position 0."""
        mass = np.zeros((self.n_layers + 1, len(X)))
        mass[0] = 1.0
        return mass

    def walk(self, X: Floats, mass: Floats) -> Iterator[tuple[int, int, int, Floats]]:
        """Move rows through the program; yield each node's layer, position and number, and the row weights at it.

        Each layer is processed from the highest position down, so that weight moving up never moves twice. Rows at a
        frozen node stay there.
        """
        for t in range(self.n_layers):
            for position in range(t, -1, -1):
                node, here = n_nodes(t) + position, mass[position].copy()
                yield t, position, node, here
                if self.nodes[node]["frozen"]:
                    mass[position] = 0.0
                    continue
                rises = self.rises(node, X, here > 0.0)
                mass[position + 1] += here * rises
                mass[position] -= here * rises

    def rises(self, node: int, X: Floats, there: Positive) -> Floats:
        """Return each row's probability of moving up at a node; `there` marks the rows at the node."""
        cut = self.nodes[node]
        rises = np.full(len(X), cut["rise_below"])
        if self.number[node] >= 0 and there.any():
            scores = self.rankers.score(int(self.number[node]), X[there])
            above = scores > cut["threshold"]
            rises[there] = np.where(above, cut["rise_above"], cut["rise_below"])
        return rises

    def describe(self, name: Callable[[int], str], categories: Categories) -> list[Any]:
        def condition(node: int) -> str | None:
            if self.number[node] < 0:
                return None
            ranker = self.rankers.describe(int(self.number[node]))
            return f"{ranker} > {self.nodes[node]['threshold']:.10g}"

        return describe_layers(self.nodes, self.n_layers, condition)


def grow(
    rankers: NodeRankers,
    X: Floats,
    positive: Positive,
    weight: Floats,
    n_layers: int,
    balance_classes: bool,
    noise: Noise,
    draw: Draw | None,
    report: Report,
) -> AnyProgram:
    """Return a program with a weak ranker fitted at each node, each layer on the rows drawn for it, or on all.

    For a weak ranker a row of weight k is k rows, and a row that is partly at a node is that part of a row. With
    `balance_classes` both classes weigh the same in each fit, else their weight at the node, as in the paper (§5).
    """
    weight = effective_counts(weight)
    nodes = np.zeros(n_nodes(n_layers), dtype=NODE)
    number = np.full(len(nodes), -1, dtype=np.int64)
    program = AnyProgram(n_layers, nodes, number, rankers)
    order, _ = positives_first(positive)
    rows: Any = slice(None)
    seen, labels, weights = X, positive, weight
    for t, position, node, here in program.walk(X, program.start(X)):
        if draw is not None and position == t:
            rows = order[draw(t)[0]]
            seen, labels, weights = X[rows], positive[rows], weight[rows]
        total = noise.total(Mass.by_label(weights, labels))
        nodes[node], has_ranker = _grow_node(
            rankers, seen, labels, here[rows] * weights, total, balance_classes, noise
        )
        if has_ranker:
            number[node] = rankers.n_fitted - 1
        if position == 0:
            report(t + 1, nodes[layer(t)])
    return program


def _grow_node(
    rankers: NodeRankers,
    X: Floats,
    positive: Positive,
    mass: Floats,
    total: Mass,
    balance_classes: bool,
    noise: Noise,
) -> tuple[npt.NDArray[np.void], bool]:
    labelled = Mass.by_label(mass, positive)
    share, end = noise.end(labelled, total)
    if end is not None:
        return end, False
    there = mass > MIN_PRESENCE * mass.max()
    half = 0.5 * sum(labelled)
    balanced = mass[there] * half / np.where(positive[there], *labelled)
    labels = positive[there]
    if labels.all() or not labels.any():
        return uniform_node(0.5, share), False
    rankers.fit(X[there], labels, balanced if balance_classes else mass[there])
    scores = rankers.score(rankers.n_fitted - 1, X[there])
    cut = youden_threshold(scores, labels, balanced)
    if cut is None or 1.0 - cut.p_plus - cut.p_minus < MIN_EDGE:
        rankers.drop()
        return uniform_node(0.5, share), False
    p, n = labelled
    above = Mass(p * (1.0 - cut.p_plus), n * cut.p_minus)
    below = Mass(p * cut.p_plus, n * (1.0 - cut.p_minus))
    return cut_node((0, cut.value, False, -1), above, below, share, noise.rate), True


@dataclass(frozen=True, eq=False)
class AnyPrograms(State):
    """Several programs with the same number of layers, as an artifact stores them with all their weak rankers."""

    nodes: Annotated[
        npt.NDArray[np.void],
        Records(
            NODE,
            "n_nodes",
            **RULES | {"feature": Index("1", least=-1), "word": Index("0", least=-1)},
        ),
    ]
    number: Annotated[
        Integers, Array("n_nodes"), Index("n_nodes", least=-1), Totals("n_fitted", _is_fitted)
    ]
    stack: Annotated[Stack, Nested(n_classifiers="n_fitted")]

    @classmethod
    def join(cls, programs: Sequence[AnyProgram]) -> "AnyPrograms":
        rankers = programs[0].rankers
        if not isinstance(rankers, NamedRankers):
            raise ArtifactError(
                f"only weak rankers given by name can be saved, got estimators: {rankers.describe(0)}; the "
                f"names are stump, {', '.join(STACKS)}"
            )
        return cls(
            np.concatenate([program.nodes for program in programs]),
            np.concatenate([program.number for program in programs]),
            rankers.joined(),
        )

    def split(self, n_layers: int, name: ClassifierName) -> list[AnyProgram]:
        rankers = NamedRankers(name, self.stack.n_categories, stack=self.stack)
        starts = range(0, len(self.nodes), n_nodes(n_layers))
        ranges = [slice(start, start + n_nodes(n_layers)) for start in starts]
        return [AnyProgram(n_layers, self.nodes[own], self.number[own], rankers) for own in ranges]

    def check(self) -> None:
        check_nodes(self.nodes)
        fitted = np.flatnonzero(_is_fitted(self.number))
        if (_is_fitted(self.number) != (self.nodes["feature"] >= 0)).any() or (
            np.sort(self.number[fitted]) != np.arange(len(fitted))
        ).any():
            raise ArtifactError("number must give each node that cuts a weak ranker of its own")
