"""Ensembles of rankers by mean rank, and parallel fits of several rankers.

A single fit of a small table gains nothing from threads, but several fits can run in one thread each.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Annotated, Any, Self, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt
from sklearn.base import clone

from core.base.mixed import MixedRows
from core.base.monotone import Direction, Directions, Monotone, Verification
from core.base.parameters import check_values
from core.base.ranker import Callback, Floats, Ranker, StopFit, warn_stopped
from core.base.state import Array, Arrays, State, put_under, take_from
from core.base.table import CodedTable
from core.base.training import TrainingData
from core.base.warning import called_from, find_caller
from core.boosting import LogitBoost, RankBoost
from core.coding import youden_threshold
from core.errors import ArtifactError, InvalidParameter
from core.registry import ALGORITHMS, name_of, unknown_algorithm

NAME = "rank_average"
"""The name of the algorithm in artifacts."""

MAX_MEMBERS = 32

MAX_KNOTS = 2048
"""Scores whose rank is stored, at most; between them ranks are interpolated."""

MAX_LISTED = 5
"""Entries that `structure` shows of each list in a member's structure."""

Result = TypeVar("Result")
Report = Callable[[int, int, int, Mapping[str, float]], None]
"""A callback of several fits: it is called with (index of the fit, step, of, info)."""

MAX_CELLS = 100_000_000
"""Largest rows times features of a table with several fits at the same time, as each has its own copies of it."""

# State that all members share with the ensemble, so that it is stored once.
_COMMON = ("n_features_in", "feature_names_in", "categories", "classes")


@dataclass(frozen=True, eq=False)
class Ranks(State):
    """An increasing function from a ranker's scores to ranks in (0, 1) among the training rows' scores."""

    scores: Annotated[Floats, Array("n_knots"), Ge(-1e300), Le(1e300)]
    """Strictly ascending. Shape (n_knots,), float64."""
    ranks: Annotated[Floats, Array("n_knots"), Gt(0.0), Lt(1.0)]
    """Ranks of these scores, ascending, in (0, 1). Shape (n_knots,), float64."""

    def check(self) -> None:
        if not 1 <= len(self.scores) <= MAX_KNOTS + 2:
            raise ArtifactError(
                f"scores must contain 1 to {MAX_KNOTS + 2} knots, got {len(self.scores)}"
            )
        if not (np.diff(self.scores) > 0).all():
            raise ArtifactError("scores must be ascending, each once")
        if not (np.diff(self.ranks) >= 0).all():
            raise ArtifactError("ranks must be ascending")

    def of(self, scores: Floats) -> Floats:
        """Return the rank of each score: linear between knots; beyond them it approaches 0 and 1.

        Returns ndarray of shape (n_rows,), float64, in [0, 1]. A greater score never has a lower rank.

        scores: (n_rows,).
        """
        low, high = self.scores[0], self.scores[-1]
        unit = high - low if high > low else 1.0
        beyond = 1.0 / (1.0 + np.maximum(np.maximum(low - scores, scores - high), 0.0) / unit)
        ranks: Floats = np.interp(scores, self.scores, self.ranks)
        # Rounding may take a rank between two knots above that of the upper one.
        upper = np.searchsorted(self.scores, scores, side="right").clip(max=len(self.ranks) - 1)
        ranks = np.minimum(ranks, self.ranks[upper])
        below, above = scores < low, scores > high
        return np.where(below, ranks * beyond, np.where(above, 1.0 - (1.0 - ranks) * beyond, ranks))


def fit_ranks(scores: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> Ranks:
    """Return the rank function of a ranker's training scores; O(n_rows log n_rows).

    scores: (n_rows,); scores of the training rows.

    Result: the rank of a score is its mid-rank: the fraction of the weight below it, plus half of the weight at it. Of
        more than 2048 distinct scores 2048 are knots, evenly spaced by a weight of which each class has half.
    """
    values, index = np.unique(scores, return_inverse=True)
    mass = np.bincount(index, weights=weight)
    ranks = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    if len(values) > MAX_KNOTS:
        balanced = np.zeros(len(values))
        for rows in (positive, ~positive):
            own = np.bincount(index[rows], weights=weight[rows], minlength=len(values))
            balanced += own / own.sum()
        wanted = np.linspace(0.0, 2.0, MAX_KNOTS)
        knots = np.minimum(np.searchsorted(np.cumsum(balanced), wanted), len(values) - 1)
        knots = np.unique([0, *knots, len(values) - 1])
        values, ranks = values[knots], ranks[knots]
    return Ranks(values, ranks)


class RankAverage(Ranker):
    """Ensemble of rankers: the score is the weighted mean rank of its members.

    Use it to combine fitted or unfitted rankers of different kinds; `auto_ranker` returns one. Its cost is the sum of
    its members' costs, so do not use it if a single member is as accurate.

    Each member's score of a row is replaced by its rank among the member's scores of the training rows, so different
    scales count equally. A row's score does not depend on the other rows in the call.

    Attributes
    ----------
    members_ : list of Ranker
        The fitted members, in the order of `members`.
    kept_ : list of int
        Indices of these in `members`. All, unless a callback ended the fit early: then the members whose fit was
        complete or, if none was, those that were interrupted.
    weights_ : ndarray of shape (n_members,), float64
        Weights with the sum 1.
    intercept_ : float
        Minus the mean rank with the greatest TPR - FPR on the training rows. The score is the mean rank plus this
        value.
    ranks_ : list of Ranks
        For each member the function that turns its scores into ranks.

    Notes
    -----
    Members make different errors. On 14 public tables, the mean rank of three boosters had a higher partial AUC on [0,
    0.05] than LightGBM on 9. The single booster with the best validation value was better on 7.

    Ranks are taken among the training rows, on which members are more certain than on other rows. That distorts a
    member's scale, but never changes the order of two scores. Ranks are linear between two training scores, and
    approach 0 and 1 beyond the lowest and the highest.

    References
    ----------
    C. Dwork, R. Kumar, M. Naor and D. Sivakumar, "Rank aggregation methods for the web", WWW 2001: Borda's
    method. R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes, "Ensemble selection from libraries of
    models", ICML 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from core import Logistic, RankAverage, TreeRank
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> y = X[:, 0] >= 6
    >>> ranker = RankAverage(members=[Logistic(), TreeRank(min_samples_leaf=2)], weights=[3, 1])
    >>> ranker.fit(X, y).weights_
    array([0.75, 0.25])
    """

    members_: list[Ranker]
    kept_: list[int]
    weights_: Floats
    intercept_: float
    ranks_: list[Ranks]
    _is_cut_short: bool

    def __init__(
        self,
        *,
        members: Annotated[
            list | tuple | None,  # type: ignore[type-arg]  # values are checked by isinstance
            Doc(
                "The rankers. Clones of them are fitted. None: boosted trees of RankBoost with closed and with "
                "Newton leaves, and of LogitBoost."
            ),
        ] = None,
        weights: Annotated[
            list | tuple | None,  # type: ignore[type-arg]  # as above
            Doc("Weight of each member, above 0. None: equal weights."),
        ] = None,
        monotone: Monotone = None,
    ) -> None:
        self.members = members
        self.weights = weights
        self.monotone = monotone

    def score_rows(self, X: Floats) -> Floats:
        return (
            self._mean_ranks([member.score_rows(X) for member in self.members_]) + self.intercept_
        )

    def score_mixed(self, mixed: MixedRows) -> Floats:
        return (
            self._mean_ranks([member.score_mixed(mixed) for member in self.members_])
            + self.intercept_
        )

    def keep_length(self) -> bool:
        """Drop the members that were not fitted in time, and call `keep_length` of the stopped ones.

        Returns
        -------
        bool
            Whether another fit with these parameters gives the same ranker, bit for bit.
        """
        templates, is_exact = self._templates(), True
        self.weights = None if self.weights is None else [self.weights[k] for k in self.kept_]
        self.members = [templates[k] for k in self.kept_]
        self.kept_ = list(range(len(self.members)))
        if self._is_cut_short:
            for template, fitted in zip(self.members, self.members_, strict=True):
                is_exact &= fitted.keep_length()
                template.set_params(**fitted.get_params(deep=False))
        return is_exact

    def takes_categories(self) -> bool:
        return all(member.takes_categories() for member in self._templates())

    def find_directions(
        self, monotone: Mapping[str | int, Direction] | None = None
    ) -> Directions | None:
        """Return the direction of each column under the constraints that all members have."""
        given = super().find_directions(monotone)
        if given is not None or monotone is not None or not hasattr(self, "members_"):
            return given
        of_members = [member.find_directions() for member in self.members_]
        common = of_members[0]
        for other in of_members[1:]:
            if common is not None:
                common = None if other is None else np.where(common == other, common, 0)
        return common if common is not None and common.any() else None

    def walk_monotone(self, directions: Directions) -> Verification:
        """Verify the monotone constraints of every member; the mean rank obeys those that all members obey."""
        walk = Verification(0, is_sum=True)
        for k, member in enumerate(self.members_):
            of_member = member.walk_monotone(directions)
            parts = (
                f"member {k + 1}" + (f", {each.part}" if each.part else "")
                for each in of_member.violations
            )
            violations = [
                replace(each, part=part)
                for each, part in zip(of_member.violations, parts, strict=True)
            ]
            walk += replace(of_member, violations=violations)
        return walk

    def get_parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON values: each member by its name and its parameters."""
        members = [
            {"algorithm": _name(member), "parameters": member.get_parameters()}
            for member in self._templates()
        ]
        return {"members": members, "weights": None if self.weights is None else list(self.weights)}

    @classmethod
    def from_state(
        cls,
        params: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
        meta: Mapping[str, Any],
    ) -> Self:
        members = params.get("members")
        if not isinstance(members, list) or not 1 <= len(members) <= MAX_MEMBERS:
            raise ArtifactError(f"members must be a list of 1 to {MAX_MEMBERS}")
        return super().from_state({**params, "members": [_make(m) for m in members]}, arrays, meta)

    def structure(self) -> dict[str, Any]:
        """Describe each member: its name, weight, and structure with long lists truncated."""
        members = []
        for member, weight in zip(self.members_, self.weights_.tolist(), strict=True):
            structure = {
                key: value[:MAX_LISTED] if isinstance(value, list) else value
                for key, value in member.structure().items()
            }
            members.append({"algorithm": _name(member), "weight": weight, "structure": structure})
        return {
            "type": NAME,
            "intercept": self.intercept_,
            "most_listed": MAX_LISTED,
            "members": members,
        }

    def check_parameters(self) -> None:
        members = self._templates()
        if not 1 <= len(members) <= MAX_MEMBERS:
            raise InvalidParameter(
                f"members must be 1 to {MAX_MEMBERS} rankers, got {len(members)}"
            )
        for k, member in enumerate(members):
            if not isinstance(member, Ranker) or member.target != "binary":
                raise InvalidParameter(
                    f"members must be rankers for two classes, got {member!r} at {k}"
                )
            if self.monotone and "monotone" not in member.get_params(deep=False):
                raise InvalidParameter(
                    f"members must support monotone constraints; {type(member).__name__} at {k} does not"
                )
        if self.weights is None:
            return
        if len(self.weights) != len(members):
            raise InvalidParameter(
                f"weights must be one per member ({len(members)}), got {len(self.weights)}"
            )
        for k, weight in enumerate(self.weights):
            number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not number or not 1e-9 <= weight <= 1e9:
                raise InvalidParameter(f"weights must be from 1e-9 to 1e9, got {weight!r} at {k}")

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        """Fit members, in parallel if that pays, and rank functions; drop members without a fit in time."""
        templates = self._templates()
        X = rows = data.X
        if data.n_categories.any() or hasattr(self, "feature_names_in_"):
            names = tuple(self._feature_name(j) for j in range(X.shape[1]))
            rows = CodedTable(X, names, self.categories_)
        progress = _Progress(callback, len(templates))

        whole: dict[int, Ranker] = {}
        cut_short: dict[int, Ranker] = {}

        def fit(k: int) -> Callable[[Callback], None]:
            def run(report: Callback) -> None:
                fitted = whole

                def watched(step: int, of: int, info: Mapping[str, float]) -> None:
                    nonlocal fitted
                    try:
                        report(step, of, info)
                    except StopFit:
                        fitted = whole if step >= of else cut_short
                        raise

                member = clone(templates[k]).fit(
                    rows, data.positive, data.weight, groups=data.group, callback=watched
                )
                fitted[k] = member

            return run

        fits = [fit(k) for k in range(len(templates))]
        try:
            fit_together(fits, progress, count_at_once(*X.shape))
        except StopFit:
            if not (whole or cut_short):
                raise
        members = whole or cut_short
        self._is_cut_short = not whole
        self.kept_ = sorted(members)
        self.members_ = [members[k] for k in self.kept_]
        if len(whole) < len(templates):
            warn_stopped(len(whole), len(templates), "members")
        self._take_weights()
        dense = np.ascontiguousarray(X)
        scores = [member.score_rows(dense) for member in self.members_]
        self.ranks_ = [fit_ranks(each, data.positive, data.weight) for each in scores]
        self.intercept_ = -_find_cut(self._mean_ranks(scores), data.positive, data.weight)
        if len(whole) == len(templates):
            progress.end()

    def _templates(self) -> Sequence[Ranker]:
        members: Sequence[Ranker] = (
            RankBoost(weak_ranker="tree"),
            RankBoost(weak_ranker="tree", leaf="newton"),
            LogitBoost(),
        )
        if self.members is not None:
            members = self.members
        if not self.monotone:
            return members
        able = [
            isinstance(member, Ranker) and "monotone" in member.get_params(deep=False)
            for member in members
        ]
        return [
            clone(member).set_params(monotone=self._merge_monotone(k, member)) if keeps else member
            for k, (member, keeps) in enumerate(zip(members, able, strict=True))
        ]

    def _merge_monotone(self, k: int, member: Ranker) -> Any:
        own = member.get_params(deep=False)["monotone"] or {}
        if not isinstance(own, dict) or not isinstance(self.monotone, dict):
            return own or self.monotone  # refused where values are checked
        merged, of_column = dict(own), {str(key): direction for key, direction in own.items()}
        for key, direction in self.monotone.items():
            of_member = of_column.get(str(key))
            if of_member is None:
                merged[key] = direction
            elif of_member != direction:
                raise InvalidParameter(
                    f"monotone has {key!r} {direction}, but {type(member).__name__} at {k} has it {of_member}"
                )
        return merged

    def _take_weights(self) -> None:
        given = [1.0] * len(self._templates()) if self.weights is None else self.weights
        weights = np.array(given, dtype=np.float64)[self.kept_]
        self.weights_ = weights / weights.sum()

    def _mean_ranks(self, scores: Sequence[Floats]) -> Floats:
        mean = np.zeros(len(scores[0]))
        for weight, ranks, each in zip(self.weights_.tolist(), self.ranks_, scores, strict=True):
            mean += weight * ranks.of(each)
        return mean

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays: Arrays = {}
        states = []
        for k, (member, ranks) in enumerate(zip(self.members_, self.ranks_, strict=True)):
            own, state = member.get_state()
            arrays |= put_under(f"member.{k}.", own) | put_under(f"rank.{k}.", ranks.arrays())
            states.append({key: value for key, value in state.items() if key not in _COMMON})
        meta = {"intercept": self.intercept_, "members": states}
        whole = len(self.kept_) == len(self._templates())
        return arrays, meta if whole else meta | {"kept": self.kept_}

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        templates, states = self._templates(), meta["members"]
        kept = meta.get("kept", list(range(len(templates))))
        known = range(len(templates))
        if (
            not kept
            or not all(type(k) is int and k in known for k in kept)
            or sorted({*kept}) != kept
        ):
            raise ArtifactError(
                f"kept must list some of the {len(templates)} members, got {kept!r}"
            )
        if len(states) != len(kept):
            raise ArtifactError(f"state must contain {len(kept)} members, got {len(states)}")
        self.kept_ = kept
        templates = [templates[k] for k in kept]
        if type(meta["intercept"]) is not float or not -1.0 <= meta["intercept"] <= 0.0:
            raise ArtifactError(f"intercept must be from -1 to 0, got {meta['intercept']!r}")
        common = {name: meta[name] for name in _COMMON}
        common["classes"] = {"dtype": "bool", "values": [False, True]}
        self.members_, self.ranks_ = [], []
        for k, (template, state) in enumerate(zip(templates, states, strict=True)):
            own = take_from(f"member.{k}.", arrays)
            parameters = template.get_parameters()
            self.members_.append(type(template).from_state(parameters, own, {**state, **common}))
            self.ranks_.append(Ranks.from_arrays(take_from(f"rank.{k}.", arrays), {}))
        self.intercept_ = meta["intercept"]
        self._take_weights()


def _find_cut(mean: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> float:
    """Return a threshold at the Youden point (greatest TPR - FPR) of mean ranks, on which no row lies exactly."""
    cut = youden_threshold(mean, positive, weight)
    if cut is None:
        return float(mean[0])
    return float(0.5 * (cut.value + mean[mean > cut.value].min()))


class _Progress:
    def __init__(self, callback: Callback, n_members: int) -> None:
        self._callback = callback
        self._done = [0] * n_members

    def __call__(self, k: int, step: int, of: int, info: Mapping[str, float]) -> None:
        self._done[k] = min(1000 * step // of, 999)
        self._callback(max(sum(self._done), 1), 1000 * len(self._done), info)

    def end(self) -> None:
        with suppress(StopFit):
            self._callback(1000 * len(self._done), 1000 * len(self._done), {})


def _name(member: Ranker) -> str:
    name = name_of(member)
    if name is None:
        raise ArtifactError(f"only registered algorithms can be saved, got {type(member).__name__}")
    return name


def _make(member: Any) -> Ranker:
    if not isinstance(member, dict) or member.keys() != {"algorithm", "parameters"}:
        raise ArtifactError("each of members must have the name of an algorithm and parameters")
    algorithm = ALGORITHMS.get(member["algorithm"])
    if algorithm is None:
        raise ArtifactError(unknown_algorithm(member["algorithm"]))
    check_values(algorithm, member["parameters"])
    return algorithm(**member["parameters"])


def count_at_once(n_rows: int, n_features: int) -> int:
    return int(numba.get_num_threads()) if n_rows * n_features <= MAX_CELLS else 1


def fit_together(
    fits: Sequence[Callable[[Callback], Result]], report: Report, at_once: int
) -> list[Result]:
    """Run several fits, `at_once` of them at the same time, and return their results in order.

    The results do not depend on `at_once`.

    fits: sequence of callable (callback) -> Result; each gives the callback to a ranker's fit.
    report: callable (index, step, of, info) -> None; called at every step of every fit, by one thread at a time. What
        it raises, `StopFit` too, or what a fit raises by itself, or Ctrl-C, stops all other fits, each at its next
        step, and reaches the caller.
    """
    shared = _Shared(report)
    caller = find_caller()
    submitted = Event()

    def run(k: int) -> Result:
        submitted.wait()
        shared.check()
        try:
            with called_from(caller):
                result = fits[k](shared.of(k))
        except BaseException as error:
            shared.stop(error)
            raise
        shared.check()  # a fit that was stopped may keep what it has, and return
        return result

    if at_once == 1 or len(fits) == 1:
        submitted.set()
        return [run(k) for k in range(len(fits))]
    of_each = max(int(numba.get_num_threads()) // at_once, 1)
    pool = ThreadPoolExecutor(at_once, initializer=numba.set_num_threads, initargs=(of_each,))
    try:
        # A thread that is being started while Ctrl-C arrives is unknown to the pool, which would not wait for it. So no
        # fit begins before all threads have started.
        futures = [pool.submit(run, k) for k in range(len(fits))]
        submitted.set()
        # Ctrl-C that arrives just before a thread blocks does not wake it, so it must not block for long.
        while wait(futures, timeout=0.5).not_done:
            pass
    except BaseException as error:  # Ctrl-C
        shared.stop(error)
        raise
    finally:
        submitted.set()
        pool.shutdown(cancel_futures=True)
    shared.check()
    return [future.result() for future in futures]


class _Shared:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._lock = Lock()
        self._raised: BaseException | None = None

    def check(self) -> None:
        if self._raised is not None:
            raise self._raised

    def stop(self, error: BaseException) -> None:
        if self._raised is None:
            self._raised = error

    def of(self, k: int) -> Callback:
        def step(done: int, of: int, info: Mapping[str, float]) -> None:
            with self._lock:
                self.check()
                try:
                    self._report(k, done, of, info)
                except BaseException as error:
                    self.stop(error)
                    raise

        return step
