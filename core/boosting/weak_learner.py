"""What every weak learner gives the loop, and what a sum of its weak rankers can do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from core.checkpoint import Resumable
from core.ranker import Floats
from core.state import Arrays, Declared, Field, Meta, State
from core.table import Categories

StopReason = Literal["n_rounds", "no_edge", "perfect_ranker", "validation", "stopped"]

# An edge d+ - d- below this is rounding, not knowledge.
LEAST_EDGE = 1e-12


class WeakRanker(Protocol):
    """A weak ranker h.

    Attributes
    ----------
    d_plus, d_minus : float
        Mass that h gets right and wrong under the weights it was found by. NaN where they mean nothing.
    """

    @property
    def d_plus(self) -> float: ...

    @property
    def d_minus(self) -> float: ...

    def values(self, X: Floats) -> Floats:
        """Give h(x) of each row; the score grows by alpha times that."""


class Path(NamedTuple):
    """The rounds of a run of the loop.

    Attributes
    ----------
    found : list of WeakRanker
        The weak ranker of each round.
    alpha : list of float
        The step of each round.
    log_f : ndarray of shape (n_taken + 1, 2), float64
        ln F₊ and ln F₋ at the start and after each round; see `WeakLearner.log_f`.
    stop_reason : str
        "n_rounds"; "no_edge": no weak ranker gets more weight right than wrong; "perfect_ranker":
        the last one gets everything right, so that no weights could ask for another; "validation":
        the scores of the validation part have not become better for long; "stopped": a callback
        raised `StopFit`.
    """

    found: list[Any]
    alpha: list[float]
    log_f: Floats
    stop_reason: StopReason

    def cut(self, n_rounds: int) -> "Path":
        """Keep the first rounds only."""
        return Path(
            self.found[:n_rounds],
            self.alpha[:n_rounds],
            self.log_f[: n_rounds + 1],
            self.stop_reason,
        )

    def ended(self, stop_reason: StopReason) -> "Path":
        """Leave out the room for rounds that were not taken, and say why."""
        return self.cut(len(self.found))._replace(stop_reason=stop_reason)


class Ensemble(State, ABC):
    """Σ α_t h_t: a weighted sum of weak rankers of one kind.

    Attributes
    ----------
    type : str
        How `structure` calls it.
    rounds : structured ndarray of shape (n_rounds,)
        What each round has added, for the reader; it has the fields alpha, d_plus and d_minus.
    constant : float, or ndarray of shape (n_labels,)
        What the sum gives to every row alike.
    mean : float, or ndarray of shape (n_labels,)
        The sum's weighted mean over the rows that it was fitted on.
    """

    type: ClassVar[str]
    rounds: npt.NDArray[np.void]
    constant: Any
    mean: Any

    @abstractmethod
    def score(self, X: Floats, intercept: float) -> Floats:
        """Give intercept + Σ α_t h_t(x) of each row, unchecked; X is C-contiguous."""

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... weak rankers on each row; each array is new."""
        scores: Any = 0.0
        for found, alpha in zip(self.weak_rankers(), self.rounds["alpha"].tolist(), strict=True):
            scores = scores + alpha * found.values(X)
            yield scores

    @abstractmethod
    def contributions(self, X: Floats) -> Floats:
        """Give a part per row and feature; `mean` and a row's parts add up to its sum."""

    @abstractmethod
    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Describe the sum, ready for JSON and readable by a person.

        Parameters
        ----------
        name : callable feature -> str
        categories : tuple, one entry per feature
            None for a numeric one.
        """

    @abstractmethod
    def weak_rankers(self) -> list[Any]:
        """Give h_t of each round, all that summing up and scoring ask of it, each with the step alpha_t = 1.

        Only where the rounds' alpha is 1 is their sum this one.
        """

    def binary_weights(self) -> Floats | None:
        """Give what each round's weak ranker adds where it says 1 over where it says 0.

        None where weak rankers take more than two values.
        """
        return None


class EnsembleField(Field):
    """How a booster keeps its ensemble: by the arrays of that, which `read_ensemble`, which is known, takes."""

    def write(self, name: str, value: Any, arrays: Arrays, meta: Meta) -> None:
        """Put the arrays."""
        arrays |= value.arrays()

    def read(self, declared: Declared, reader: Any) -> Any:
        """Read the ensemble of as many rounds as have been learnt."""
        return reader.known["read_ensemble"](reader.arrays, reader.length("n_rounds"))


class WeakLearner(Resumable, ABC):
    """The training rows or pairs with their weights, and the search for the best weak ranker under them.

    Parameters
    ----------
    parameters : object
        A booster, of which it reads the parameters that it knows.
    rule : rules.Rule
        The algorithm's, of the type that the weak learner needs.
    data : data.Rows or data.ListedPairs
        Laid out at f = 0.
    """

    ensemble: ClassVar[type[Ensemble]]
    """What its weak rankers are summed up as."""

    takes_categories: ClassVar[bool] = True
    """Whether it can do with categorical features."""

    @abstractmethod
    def __init__(self, parameters: Any, rule: Any, data: Any) -> None: ...

    @property
    @abstractmethod
    def log_f(self) -> tuple[float, float]:
        """Logarithms of F₊ = Σ w_i e^{-f(x_i)} over positives and F₋ = Σ w_k e^{f(x_k)} over negatives.

        Of listed pairs half the logarithm of F̃ each: two classes would share it out so, and ½ ln(F₊/F₋) is 0.
        """

    @abstractmethod
    def scan(self) -> Any:
        """Find the best weak ranker under the present weights; None without an edge."""

    @abstractmethod
    def update(self, found: Any, alpha: float) -> None:
        """Let f grow by alpha h, h being what `scan` gave last, and reweigh."""

    @abstractmethod
    def collect(self, path: Path) -> Ensemble:
        """Sum up the weak rankers of a run of the loop."""


def rounds_of(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[np.void]:
    """Write rounds as a structured array: alpha, and by their names what the weak rankers have."""
    rounds = np.zeros(len(path.found), dtype=dtype)
    for name in dtype.names or ():
        if name == "alpha":
            rounds[name] = path.alpha
        elif path.found and hasattr(path.found[0], name):
            rounds[name] = [getattr(found, name) for found in path.found]
    return rounds


def fields_of(row: np.void, names: tuple[str, ...]) -> dict[str, Any]:
    """Read fields of a round as Python's numbers."""
    return {name: row[name].item() for name in names}
