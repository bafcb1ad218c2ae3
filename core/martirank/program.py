"""The layered branching program of MartiRank: its nodes (Lemma 4), expected scores, and stored state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le, Lt

from core.base import state
from core.base.ranker import Floats
from core.base.state import Array, Index, Records, State, Totals, pieces
from core.base.table import Categories
from core.coding import two_sided
from core.coding.categories import count_words, unpack
from core.errors import ArtifactError
from core.explain.conditions import ANY_NUMBER, CategorySet, Condition, in_words
from core.kernels import kernel

Integers = state.Integers

NODE = np.dtype(
    [
        ("feature", np.int64),
        ("threshold", np.float64),
        ("missing_above", np.bool_),
        ("word", np.int64),
        ("rise_above", np.float64),
        ("rise_below", np.float64),
        ("positive", np.float64),
        ("negative", np.float64),
        ("error", np.float64),
        ("frozen", np.bool_),
    ]
)
"""One node of a program.

feature: the feature of its cut; -1 if it treats all rows alike. threshold, missing_above: a row is above if
x > threshold. word: -1, or the first word of the set of categories above; threshold is then the number of
categories. rise_above, rise_below: probability of going one position up. positive, negative: fraction of the
class that reaches the node, as estimated at fit. error: of the two-sided classifier, on either class; NaN if
there is none. frozen: rows end here with the label rise_below, 0 or 1."""

RULES: dict[str, Any] = {
    "feature": Index("n_features", least=-1),
    "threshold": Lt(np.inf),
    "word": Ge(-1),
    "rise_above": (Ge(0.0), Le(1.0)),
    "rise_below": (Ge(0.0), Le(1.0)),
    "positive": (Ge(0.0), Le(1e9)),
    "negative": (Ge(0.0), Le(1e9)),
}
"""Constraints of a node's fields in an artifact; see `core.base.state.Records`."""

# Fraction of a class up to which a node is taken to hold the other class alone.
MIN_CLASS_FRACTION = 1e-9


class Mass(NamedTuple):
    """The total weight of the positives and of the negatives in a set of rows."""

    positive: float
    negative: float

    @classmethod
    def of(cls, weight: Floats, n_positives: int) -> "Mass":
        """Return the class weights of rows, of which the first n_positives are positive."""
        return cls(float(weight[:n_positives].sum()), float(weight[n_positives:].sum()))

    @classmethod
    def by_label(cls, weight: Floats, positive: npt.NDArray[np.bool_]) -> "Mass":
        return cls(float(weight[positive].sum()), float(weight[~positive].sum()))

    @property
    def share(self) -> float:
        return self.positive / (self.positive + self.negative)

    def without_noise(self, noise_rate: float) -> "Mass":
        """Return the estimated true class weights under label noise of rate η: (M_b - η M)/(1 - 2η), at least 0."""
        flipped = noise_rate * (self.positive + self.negative)
        kept = 1.0 - 2.0 * noise_rate
        return Mass(
            max((self.positive - flipped) / kept, 0.0), max((self.negative - flipped) / kept, 0.0)
        )

    def plus(self, other: "Mass") -> "Mass":
        return Mass(self.positive + other.positive, self.negative + other.negative)


NO_MASS = Mass(0.0, 0.0)


class CutProbabilities(NamedTuple):
    """The probabilities of moving up on both sides of a node's threshold, and the error on either class."""

    rise_above: float
    rise_below: float
    error: float


def split(above: Mass, below: Mass) -> CutProbabilities:
    """Return a threshold's two-sided classifier (Long & Servedio 2007, Lemma 4) from masses corrected for noise."""
    total = above.plus(below)
    above_p, above_n = above.positive / total.positive, above.negative / total.negative
    below_p, below_n = below.positive / total.positive, below.negative / total.negative
    if above_p >= above_n:
        h = two_sided(below_p, above_n)
        return CutProbabilities(_rise(h.above), _rise(h.below), h.error)
    h = two_sided(above_p, below_n)
    return CutProbabilities(_rise(h.below), _rise(h.above), h.error)


def _rise(expected: float) -> float:
    """Return the probability of 1 of a variable in {-1, 1} with this expected value."""
    return 0.5 * (1.0 + expected)


def uniform_node(rise: float, mass: Mass, frozen: bool = False) -> npt.NDArray[np.void]:
    """Return a node that moves all rows up with the same probability."""
    return np.array(
        (-1, 0.0, False, -1, rise, rise, mass.positive, mass.negative, np.nan, frozen), dtype=NODE
    )[()]


class Noise(NamedTuple):
    """The label noise for which `SampledMartiRank` corrects class weights."""

    rate: float = 0.0
    """η, the probability that a label is flipped."""
    least_share: float = 0.0
    """A node that is reached by at most this fraction of either class is frozen; 0 freezes none."""
    class_prior: float | None = None
    """True fraction of positives; None: that of the rows shown, corrected for noise."""

    def total(self, shown: Mass) -> Mass:
        """Return the estimated true class weights, given the observed weights by label."""
        if self.class_prior is None:
            return shown.without_noise(self.rate)
        both = shown.positive + shown.negative
        return Mass(self.class_prior * both, (1.0 - self.class_prior) * both)

    def end(self, labelled: Mass, total: Mass) -> tuple[Mass, npt.NDArray[np.void] | None]:
        """Return class fractions by labels, corrected, and a final node if frozen (eq. 2) or of one class."""
        here = labelled.without_noise(self.rate)
        # A draw of few rows of a class may seem to hold none after the correction.
        share = Mass(*(h / t if t > 0.0 else 0.0 for h, t in zip(here, total, strict=True)))
        if min(share) > max(self.least_share, MIN_CLASS_FRACTION):
            return share, None
        rise = 1.0 if share.positive > share.negative else 0.0
        return share, uniform_node(rise, share, frozen=self.least_share > 0.0)


NO_NOISE = Noise()


def cut_node(
    cut: tuple[int, float, bool, int], above: Mass, below: Mass, share: Mass, noise_rate: float
) -> npt.NDArray[np.void]:
    """Return a node with a split (feature, threshold, missing_above, word), given the class weights on both sides."""
    sides = split(above.without_noise(noise_rate), below.without_noise(noise_rate))
    return np.array(
        (*cut, sides.rise_above, sides.rise_below, *share, sides.error, False), dtype=NODE
    )[()]


def mean_error(nodes: npt.NDArray[np.void]) -> float:
    """Return the error by rows that reach each node; ½ without a cut. Below ½ the layer separates the classes."""
    share = nodes["positive"] + nodes["negative"]
    error = np.where(np.isnan(nodes["error"]), 0.5, nodes["error"])
    return float(np.average(error, weights=share)) if share.sum() > 0.0 else 0.5


def describe_layers(
    nodes: npt.NDArray[np.void], n_layers: int, condition: Callable[[int], str | None]
) -> list[list[dict[str, Any]]]:
    """Return a JSON description of nodes by layer; `condition` returns a node's upper side as text, or None."""
    return [
        [
            {"position": node - n_nodes(t)}
            | _describe_node(nodes[node], condition(node), n_layers - t)
            for node in range(n_nodes(t), n_nodes(t + 1))
        ]
        for t in range(n_layers)
    ]


def _describe_node(
    node: npt.NDArray[np.void], condition: str | None, layers_left: int
) -> dict[str, Any]:
    described = {name: float(node[name]) for name in ("positive", "negative")}
    if node["frozen"]:
        steps = layers_left * int(node["rise_below"])
        return described | {"rule": f"ends here, as if it rose {steps} more of {layers_left}"}
    if condition is None:
        return described | {"rule": f"rises with probability {node['rise_below']:.3g}"}
    above, below = float(node["rise_above"]), float(node["rise_below"])
    return described | {
        "rule": f"rises with probability {above:.3g} if {condition}, else {below:.3g}",
        "condition": condition,
        "rise_above": above,
        "rise_below": below,
        "error": float(node["error"]),
    }


def check_nodes(nodes: npt.NDArray[np.void]) -> None:
    """Raise ArtifactError if the fields of a node contradict each other; `RULES` have been checked before."""
    cuts = nodes["feature"] >= 0
    if not ((nodes["error"][cuts] >= 0.0) & (nodes["error"][cuts] <= 1.0)).all():
        raise ArtifactError("error must be from 0 to 1 where a node cuts")
    frozen, label = nodes["frozen"], nodes["rise_below"]
    if (frozen & (cuts | ((label != 0.0) & (label != 1.0)))).any():
        raise ArtifactError("a frozen node must look at no feature and hold a label, 0 or 1")


Output = Literal["position", "vote"]

Count = TypeVar("Count", int, Integers)


def n_nodes(n_layers: Count) -> Count:
    """Return the number of nodes of a program of n_layers layers; layer t, counted from 1, has t nodes."""
    return n_layers * (n_layers + 1) // 2


def layer(t: int) -> slice:
    """Return the slice of the t + 1 nodes of layer t, counted from 0."""
    return slice(n_nodes(t), n_nodes(t + 1))


ROWS = (
    64  # rows that are scored together: their masses at all positions stay in the first-level cache
)


def _array(dtype: Any, n_dimensions: int = 1) -> Any:
    return numba.types.Array(dtype, n_dimensions, "C", readonly=True)


_NODES = _array(numba.from_dtype(NODE))


@kernel(numba.void(numba.float64[::1], numba.float64[::1], numba.float64[::1]), inner=True)
def _move(here, up, rises):  # type: ignore[no-untyped-def]
    """Move the fraction rises[r] of here[r] to up[r]; all (n,) float64. A function of its own to be vectorised."""
    for r in range(len(rises)):
        moved = here[r] * rises[r]
        up[r] += moved
        here[r] -= moved


@kernel(
    numba.void(
        _array(numba.float64, 2),
        _NODES,
        _array(numba.uint64),
        numba.int64,
        numba.boolean,
        numba.float64[::1],
    )
)
def _score(X, nodes, words, n_layers, by_vote, scores):  # type: ignore[no-untyped-def]
    """Write each row's expected final position divided by T, or its expected vote, to scores.

    Rows are scored in blocks: columns is (n_features, block), mass (n_layers + 1, block) by position. The mass of a
    layer is moved to the next in place, from the highest position down: mass that rises joins mass that has already
    been moved.
    """
    n_rows, n_features = X.shape
    size = min(ROWS, n_rows)
    columns = np.empty((n_features, size))
    mass = np.empty((n_layers + 1, size))
    rises, ends = np.empty(size), np.empty(size)
    for start in range(0, n_rows, size):
        n = min(size, n_rows - start)
        for r in range(n):  # the last block is filled up with rows of the one before it
            for j in range(n_features):
                columns[j, r] = X[start + r, j]
        mass[:] = 0.0
        mass[0] = 1.0
        ends[:] = 0.0
        for t in range(n_layers):
            for position in range(t, -1, -1):
                node = t * (t + 1) // 2 + position
                here = mass[position]
                if nodes[node].frozen:
                    label = nodes[node].rise_below
                    end = label if by_vote else (position + (n_layers - t) * label) / n_layers
                    for r in range(size):
                        ends[r] += here[r] * end
                        here[r] = 0.0
                    continue
                if nodes[node].feature < 0:
                    rises[:] = nodes[node].rise_below
                else:
                    x = columns[nodes[node].feature]
                    above, below = nodes[node].rise_above, nodes[node].rise_below
                    missing = above if nodes[node].missing_above else below
                    threshold, word = nodes[node].threshold, nodes[node].word
                    if word < 0:
                        for r in range(size):  # selections, not branches: taken by vectors
                            known = above if x[r] > threshold else below
                            rises[r] = known if x[r] == x[r] else missing
                    else:  # a set of categories; an unknown category counts as missing
                        for r in range(size):
                            rises[r] = missing
                            if 0.0 <= x[r] < threshold:
                                category = np.uint64(x[r])
                                bits = words[word + np.int64(category >> np.uint64(6))]
                                is_held = (bits >> (category & np.uint64(63))) & np.uint64(1)
                                rises[r] = above if is_held == np.uint64(1) else below
                _move(here, mass[position + 1], rises)
        for position in range(1, n_layers + 1):
            end = position / n_layers
            if by_vote:
                end = 1.0 if 2 * position >= n_layers else 0.0
            for r in range(size):
                ends[r] += mass[position, r] * end
        for r in range(n):
            scores[start + r] = ends[r]


@dataclass(frozen=True, eq=False)
class Program:
    """A branching program of T layers; node (i, t), at position i of layer t, leads to (i, t+1) and (i+1, t+1)."""

    n_layers: int
    """T."""
    nodes: npt.NDArray[np.void]
    """Layer by layer, by position within each; see `NODE`. Shape (T(T+1)/2,)."""
    words: npt.NDArray[np.uint64]
    """Sets of categories: bit c % 64 of word c // 64 is 1 if category c lies above. Shape (n_words,)."""

    def score(self, X: Floats, output: Output) -> Floats:
        """Return the expected scores of rows over the program's coin flips, without checks.

        output: {"position", "vote"}; E[j]/T, where j is the position after the last layer; or P(j >= T/2). A row that
            froze at position i of layer t (from 0) with label b, 0 or 1, counts as one that went on to i + (T - t) b;
            its vote is b.

        Result: (n_rows,), float64; in [0, 1].

        O(n_rows · T²).
        """
        scores = np.empty(len(X))
        if len(X):  # the kernel takes rows in blocks, of one row at least
            _score(X, self.nodes, self.words, self.n_layers, output == "vote", scores)
        return scores

    def describe(self, name: Callable[[int], str], categories: Categories) -> list[Any]:
        """Describe the nodes as JSON, layer by layer. name: callable feature -> str."""
        return describe_layers(
            self.nodes,
            self.n_layers,
            lambda node: self._condition(self.nodes[node], name, categories),
        )

    def _condition(
        self, node: npt.NDArray[np.void], name: Callable[[int], str], categories: Categories
    ) -> str | None:
        feature, word = int(node["feature"]), int(node["word"])
        if feature < 0:
            return None
        missing, known = bool(node["missing_above"]), categories[feature] or ()
        above: Condition
        if word >= 0:
            above = CategorySet(unpack(self.words, word, len(known)), missing)
        else:
            above, _ = ANY_NUMBER.divide(float(node["threshold"]), missing_above=missing)
        return in_words(name(feature), above, known, mentions_missing=True)


@dataclass(frozen=True, eq=False)
class Programs(State):
    """Several programs, concatenated as stored. words: a node's `word` counts from its program's first."""

    n_categories: Integers
    n_layers: Annotated[
        Integers, Array("n_programs"), Index("n_rounds + 1"), Totals("n_nodes", n_nodes)
    ]
    n_words: Annotated[Integers, Array("n_programs"), Totals("n_all_words")]
    nodes: Annotated[npt.NDArray[np.void], Records(NODE, "n_nodes", **RULES)]
    words: Annotated[state.Words, Array("n_all_words")]

    @classmethod
    def join(cls, programs: Sequence[Program], n_categories: Integers) -> "Programs":
        return cls(
            n_categories,
            np.array([program.n_layers for program in programs]),
            np.array([len(program.words) for program in programs]),
            np.concatenate([program.nodes for program in programs]),
            np.concatenate([program.words for program in programs]),
        )

    def split(self) -> list[Program]:
        nodes = pieces(self.nodes, n_nodes(self.n_layers))
        words = pieces(self.words, self.n_words)
        return [Program(*each) for each in zip(self.n_layers.tolist(), nodes, words, strict=True)]

    def check(self) -> None:
        check_nodes(self.nodes)
        feature, word = self.nodes["feature"], self.nodes["word"]
        categories = np.where(feature >= 0, self.n_categories[feature], 0)
        sets = categories > 0
        if ((word >= 0) != sets).any():
            raise ArtifactError(
                "word must be that of a set where the feature is categorical, else -1"
            )
        room = np.repeat(self.n_words, n_nodes(self.n_layers))[sets] - count_words(categories[sets])
        if (word[sets] > room).any():
            raise ArtifactError("word must leave room for its set among its program's n_words")
        if (self.nodes["threshold"][sets] != categories[sets]).any():
            raise ArtifactError("threshold must be the number of categories beside a set")
