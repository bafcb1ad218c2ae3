"""One node: a cut of its weak ranker, made two-sided by Lemma 4, with noise taken out of the masses."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le, Lt

from core.coding import two_sided
from core.errors import ArtifactError
from core.state import Index

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

feature: what it looks at; -1 where every row is treated alike. threshold, missing_above: a row lies
above if x > threshold. word: -1, or the first word of the set of categories that lie above; threshold is
then the number of categories.
rise_above, rise_below: probability of going one position up. positive, negative: share of the class
that gets here, as estimated at fit. error: of the two-sided classifier, on either class; NaN where
there is none. frozen: rows end here; rise_below tells with which label, 0 or 1."""

RULES: dict[str, Any] = {
    "feature": Index("n_features", least=-1),
    "threshold": Lt(np.inf),
    "word": Ge(-1),
    "rise_above": (Ge(0.0), Le(1.0)),
    "rise_below": (Ge(0.0), Le(1.0)),
    "positive": (Ge(0.0), Le(1e9)),
    "negative": (Ge(0.0), Le(1e9)),
}
"""What a node's fields may be in an artifact; see `core.state.Records`."""

# A node that no more of a class than this reaches is taken to hold the other class alone.
LEAST_SHARE = 1e-9

LEAST_EDGE = 1e-12  # below this, TPR - FPR is rounding, not knowledge


class Mass(NamedTuple):
    """Mass of the positives and of the negatives."""

    positive: float
    negative: float

    def without_noise(self, noise_rate: float) -> "Mass":
        """Undo labels flipped with some probability: (M_b - η M)/(1 - 2η), 0 where that is negative.

        Source: Long & Servedio 2007, Section 5, the estimate of p^b_{i,t}.
        """
        flipped = noise_rate * (self.positive + self.negative)
        kept = 1.0 - 2.0 * noise_rate
        return Mass(
            max((self.positive - flipped) / kept, 0.0), max((self.negative - flipped) / kept, 0.0)
        )

    def plus(self, other: "Mass") -> "Mass":
        """Add masses class by class: `+` would put tuples one after the other."""
        return Mass(self.positive + other.positive, self.negative + other.negative)


class Sides(NamedTuple):
    """Probabilities of rising on both sides of a cut, and the error on either class."""

    rise_above: float
    rise_below: float
    error: float


def split(above: Mass, below: Mass) -> Sides:
    """Make a two-sided classifier of a cut, whichever side the positives prefer.

    Parameters
    ----------
    above, below : Mass
        Noise taken out; each class has some.

    Returns
    -------
    Sides

    References
    ----------
    P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007: Lemma 4.
    """
    total = above.plus(below)
    above_p, above_n = above.positive / total.positive, above.negative / total.negative
    below_p, below_n = below.positive / total.positive, below.negative / total.negative
    if above_p >= above_n:
        h = two_sided(below_p, above_n)
        return Sides(_rise(h.above), _rise(h.below), h.error)
    h = two_sided(above_p, below_n)
    return Sides(_rise(h.below), _rise(h.above), h.error)


def _rise(said: float) -> float:
    """Give the probability of 1 from the expected value of what is 1 or -1."""
    return 0.5 * (1.0 + said)


def alike(rise: float, mass: Mass, frozen: bool = False) -> npt.NDArray[np.void]:
    """Make a node that treats every row alike."""
    return np.array(
        (-1, 0.0, False, -1, rise, rise, mass.positive, mass.negative, np.nan, frozen), dtype=NODE
    )[()]


def mean_error(nodes: npt.NDArray[np.void]) -> float:
    """Give the error of a layer's nodes on either class, by the share of the classes that they see.

    A node without a cut errs on half of what it sees; below ½, the layer parts the classes.
    """
    share = nodes["positive"] + nodes["negative"]
    error = np.where(np.isnan(nodes["error"]), 0.5, nodes["error"])
    return float(np.average(error, weights=share)) if share.sum() > 0.0 else 0.5


def describe_node(
    node: npt.NDArray[np.void], condition: str | None, layers_left: int
) -> dict[str, Any]:
    """Describe a node, ready for JSON; the condition is that of its upper side."""
    described: dict[str, Any] = {
        "positive": float(node["positive"]),
        "negative": float(node["negative"]),
    }
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
    """Refuse nodes whose fields contradict each other with ArtifactError; those of `RULES` are checked."""
    cuts = nodes["feature"] >= 0
    if not ((nodes["error"][cuts] >= 0.0) & (nodes["error"][cuts] <= 1.0)).all():
        raise ArtifactError("error must be from 0 to 1 where a node cuts")
    frozen = nodes["frozen"]
    if (cuts & frozen).any() or not np.isin(nodes["rise_below"][frozen], (0.0, 1.0)).all():
        raise ArtifactError("a frozen node must look at no feature and hold a label, 0 or 1")
