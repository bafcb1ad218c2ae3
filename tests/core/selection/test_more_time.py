"""A longer budget of `auto` must not give a worse ranker: a simulation, in which the true worth of each is known.

Each population has its own best number of leaves, share of features, and worth of the other families. A ranker's scores
are its signal, plus noise that all rankers share, noise of its own, and noise of its seed: so averages of rankers are
better, the candidate that is best on the validation rows is partly lucky, and too many rounds overfit.
"""

from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest
from scipy.stats import rankdata

from core.metrics import auc
from core.selection import Auto, HeldOut, Member, run_plan
from core.selection.candidates import RUN_PARAMETERS
from tests.core.selection.test_auto import World, is_grown
from tests.long_form import LONG_FORM, long_form, one_in

PREVALENCE = 0.1
TEST_Y = (np.arange(20_000) % 10 == 0).astype(np.int8)
TEST_STREAM = 99
N_POPULATIONS = 24 if LONG_FORM else 6
BUDGETS = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0) if LONG_FORM else (4.0, 16.0, 64.0)


class Outcome(NamedTuple):
    """What a budget gave."""

    auc: float
    seconds: float


class Population(World):
    """A simulated population of rows, and the rankers fitted to it."""

    def __init__(self, seed: int, n_rows: int) -> None:
        super().__init__(n_rows=0.8 * n_rows, price=2e-7)
        rng = np.random.default_rng(seed)
        self.seed, self.n_all = seed, n_rows
        self.leaves, self.features = rng.uniform(1.5, 7.0), rng.uniform(0.2, 1.0)
        self.families = rng.uniform(0.5, 1.0)

    def strength(self, algorithm: str, parameters: Any, identity: int) -> float:
        """Distance of the classes, in units of the noise that all rankers share."""
        luck = float(np.random.default_rng(identity).normal())
        if not is_grown(parameters):
            return float(1.2 * (self.families + 0.08 * luck))
        leaves, features = np.log2(parameters["max_leaves"]), parameters.get("max_features", 1.0)
        distance = 0.012 * (leaves - self.leaves) ** 2 + 0.1 * (features - self.features) ** 2
        return float(1.2 * (1.0 - distance) + 0.03 * luck)

    def draw(
        self, algorithm: str, parameters: Any, learned: float, y: Any, stream: int, seed: int = 0
    ) -> Any:
        """Scores of the rows `y`, which are those of a split or of the test."""
        own = sorted((k, v) for k, v in parameters.items() if k not in RUN_PARAMETERS)
        identity = crc32(repr((self.seed, algorithm, own)).encode())
        progress = (1.0 - 0.5 ** (6.0 * learned)) * (1.0 - 0.05 * max(learned - 1.0, 0.0))
        streams = [self.seed, stream], [identity, stream], [identity, stream, seed]
        shared, own_noise, drawn = (np.random.default_rng(s).normal(size=len(y)) for s in streams)
        signal = self.strength(algorithm, parameters, identity) * progress
        return signal * y + 0.85 * shared + 0.4 * own_noise + 0.33 * drawn

    def scores(self, trial: Any, learned: float) -> Any:
        return self.draw(trial.algorithm, trial.parameters, learned, self.y, trial.split)

    def spend(self, budget: float) -> Outcome:
        """Search and fit on all rows with this budget; the AUC is that of rows that nothing was chosen on."""
        self.now = 0.0
        auto = Auto(
            n_rows=self.n_all,
            n_rare=round(PREVALENCE * self.n_all),
            n_features=10,
            budget_seconds=budget,
        )
        n_held = round(self.n_all * (auto.fraction if auto.n_splits == 1 else 1 / auto.n_splits))
        self.y = (np.arange(n_held) < PREVALENCE * n_held).astype(np.int8)
        chosen, _ = run_plan(auto, [HeldOut(self.y)] * auto.n_splits, self.fit, clock=self.clock)
        self.fit_all(chosen)
        ranks = [member.weight * rankdata(self.test_scores(member)) for member in chosen.members]
        return Outcome(auc(TEST_Y, np.sum(ranks, axis=0)), self.now)

    def test_scores(self, member: Member) -> Any:
        of = member.parameters
        learned = of["n_rounds"] * of["learning_rate"] / self.learning if is_grown(of) else 1.0
        seed = of.get("random_state", 0)
        return self.draw(member.algorithm, of, learned, TEST_Y, TEST_STREAM, seed)


@pytest.mark.parametrize("n_rows", one_in(2, [20_000, 3_000]))
@long_form
def test_more_time_is_never_worse(n_rows: int) -> None:
    """Each longer budget is at least as good on average, up to two standard errors, and the longest is better."""
    found = [
        [Population(seed, n_rows).spend(budget) for budget in BUDGETS]
        for seed in range(N_POPULATIONS)
    ]
    areas = np.array([[outcome.auc for outcome in own] for own in found])
    gains = np.diff(areas, axis=1)
    error = gains.std(axis=0, ddof=1) / np.sqrt(N_POPULATIONS)
    assert (gains.mean(axis=0) >= -2.0 * error - 1e-4).all(), areas.mean(axis=0)
    whole = areas[:, -1] - areas[:, 0]
    assert whole.mean() > 2.0 * whole.std(ddof=1) / np.sqrt(N_POPULATIONS)
