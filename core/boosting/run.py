"""A run of the loop that can be stopped after any round, and go on later."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from core.checkpoint import Resumable
from core.errors import ArtifactError
from core.ranker import Arrays
from core.state import put_under, take_from

from .ensemble import Ensemble
from .kinds import CollectingLearner
from .loop import Path, Steps, begin, boost
from .validation import Watch

Read = Callable[[Mapping[str, npt.NDArray[Any]], int], Ensemble]


class Run(Resumable):
    """A learner, the rounds that it has taken, and what follows them.

    The rounds are kept as the sum of their weak rankers, each with a step of 1, in the form of an artifact.

    Parameters
    ----------
    learner : CollectingLearner
        At f = 0; changed in place.
    rule : Steps
    n_rounds : int
    watch : Watch
    read : callable (arrays, n_rounds) -> Ensemble
        The reader of the learner's kind.
    """

    changing = ("learner", "_watch")

    def __init__(
        self,
        learner: CollectingLearner,
        rule: Steps[Any],
        n_rounds: int,
        watch: Watch,
        read: Read,
    ) -> None:
        self.learner = learner
        self._rule = rule
        self._watch = watch
        self._read = read
        self._path = begin(learner, n_rounds)

    def finish(self) -> Path:
        """Take the rounds that are left."""
        if self._watch.ended:
            return self._path.ended("validation")
        return boost(self.learner, self._rule, self._path, self._watch)

    def get_state(self) -> Arrays:
        """Give what the rounds have changed; see `Resumable`."""
        path = self._path
        unit = path._replace(alpha=[1.0] * len(path.found))
        state = super().get_state() | put_under("rounds.", self.learner.collect(unit).arrays())
        state["alpha"] = np.array(path.alpha, dtype=np.float64)
        state["log_f"] = path.log_f[: len(path.found) + 1]
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to where another run was."""
        rest = {name: array for name, array in state.items() if not name.startswith("rounds.")}
        try:
            alpha, log_f = rest.pop("alpha"), rest.pop("log_f")
            found = self._read(take_from("rounds.", state), len(alpha)).weak_rankers()
        except KeyError as error:
            raise ArtifactError(f"a checkpoint must hold {error}") from error
        room = len(self._path.log_f)
        if log_f.shape != (len(alpha) + 1, 2) or len(log_f) > room:
            raise ArtifactError(
                f"log_f must hold 2 numbers for the start and each of {len(alpha)} rounds, "
                f"{room - 1} at most, got shape {log_f.shape}"
            )
        super().set_state(rest)
        self._path.found[:], self._path.alpha[:] = found, alpha.tolist()
        self._path.log_f[: len(log_f)] = log_f
        self._watch.go_on_from(self._path)

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Refuse what is no state of learner and watch."""
        for name in self.changing:
            getattr(self, name).check_state(take_from(f"{name}.", state))
