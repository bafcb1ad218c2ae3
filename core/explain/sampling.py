"""Shapley values of any score against reference rows: exact if few features differ, else sampled, with errors.

The game: of a row x only some features are known. The others are those of a reference row z, and v is the mean score
over the reference rows: v(S) = Σ_z w_z score(x on S, z elsewhere), with Σ w_z = 1. So v of no feature is the mean score
of the reference rows, v of all is the score of x, and the values of a row sum to the difference, whatever is sampled.
"""

import hashlib
import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from core.base.mixed import MixedRows
from core.base.parameters import check_value
from core.base.target import as_numbers
from core.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    from core.base.ranker import Ranker

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Booleans = npt.NDArray[np.bool_]

MAX_EXACT = 7
"""Features that differ between two rows, at most, for all their 2⁷ sets to be scored."""
N_PAIRS = 2
"""Pairs of permutations for each reference row: two are the fewest that have a variance."""
MIN_SAMPLED = 8
"""Reference rows, each of an equal share, from which on a variance of their pairs is worth its name: of fewer, or of
unequal ones, some are sampled several times, so that none has more than this part of the sum."""
_CELLS_AT_ONCE = 1 << 20  # of rows that are scored in one call: 8 MB


class ShapleyEstimate(NamedTuple):
    """Shapley values of rows with their standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from core import Logistic
    >>> from core.explain import shapley_estimate
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> found = shapley_estimate(Logistic().fit(X, X[:, 0] > 0), X[:1], X)
    >>> found.values.shape, found.exact
    ((1, 2), array([ True]))
    """

    values: Floats
    """Values that sum to the row's score minus the mean score of the reference rows. Shape (n_rows, n_features)."""
    errors: Floats
    """Standard errors from the sampling of permutations; 0 if a value is exact. Shape (n_rows, n_features)."""
    exact: Booleans
    """Whether all values of a row are exact. Shape (n_rows,)."""


class _Pairs(NamedTuple):
    """Pairs of a row and a reference row that differ, with the feature orders to sample."""

    row: Integers
    reference: Integers
    differs: Booleans
    """Shape (n_pairs, n_features)."""
    share: Floats
    """Share of the reference row, divided by the number of times it is sampled. Shape (n_pairs,)."""
    order: Integers
    """Permutations of those that differ, then the others, shape (n_pairs, N_PAIRS, n_features)."""

    @property
    def size(self) -> Integers:
        size: Integers = self.differs.sum(axis=1, dtype=np.int64)
        return size

    def take(self, chosen: Any) -> "_Pairs":
        return _Pairs(*(each[chosen] for each in self))


def shapley_estimate(
    ranker: "Ranker", X: Any, references: Any, weight: Any = None
) -> ShapleyEstimate:
    """Estimate the Shapley values of scores against reference rows, for any ranker.

    Use it if `Ranker.shapley_values` is not available, or if you want to compare with specific rows.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker with one score per row.
    X : array or table of shape (n_samples, n_features)
        Rows to explain.
    references : array or table of shape (n_references, n_features)
        Rows to compare with.
    weight : array-like of shape (n_references,), optional
        Weights of the references: finite, with a sum that is not 0. A weight may be negative.

    Returns
    -------
    ShapleyEstimate
        Values and errors. It scores at most `count_scored` rows for each row.

    Notes
    -----
    A ranking tree or a forest of them divides its scores exactly, if that does not take longer than
    `Ranker.divide_exactly` allows. If at most `MAX_EXACT` features of a row differ from those of a reference row, all
    subsets of them are scored. Otherwise permutations of the differing features are drawn, `N_PAIRS` for each reference
    row, and each is read forwards and backwards (antithetic sampling, which is exact if features act alone or in
    pairs). The variance between the pairs of a reference row is the sampling variance. A reference row with more than
    the `MIN_SAMPLED`-th part of the sampled ones is sampled several times. Draws depend only on the row and the
    reference rows, so the same rows have the same values, with any other rows and any number of threads.

    A variance of few pairs is uncertain. So an error is the standard error times the factor of Student's t that makes
    two errors cover 95 %, as two standard errors of a normal distribution do.

    References
    ----------
    J. Castro, D. Gómez and J. Tejada, "Polynomial calculation of the Shapley value based on sampling", Computers &
    Operations Research 36, 2009. S. Lundberg and S.-I. Lee, "A unified approach to interpreting model predictions",
    NeurIPS 2017: the game. R. Mitchell, J. Cooper, E. Frank and G. Holmes, "Sampling permutations for Shapley value
    estimation", JMLR 23, 2022: antithetic permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import shapley_estimate
    >>> from core import MartiRank
    >>> X = np.arange(40.0).reshape(-1, 2) % 7
    >>> ranker = MartiRank().fit(X, X[:, 0] > X[:, 1])
    >>> found = shapley_estimate(ranker, X[:3], X[5:])
    >>> scores = ranker.decision_function(X)
    >>> bool(np.allclose(found.values.sum(axis=1), scores[:3] - scores[5:].mean())), found.exact.all()
    (True, np.True_)
    """
    from core.base.ranker import Ranker

    check_value("ranker", Ranker, ranker)
    rows, others = ranker.checked_rows(X), ranker.checked_rows(references)
    share = _shares(weight, len(others))
    others, share = others[share != 0.0], share[share != 0.0]
    if ranker.target != "binary":
        raise InvalidParameter("Shapley values require a ranker with one score per row")
    tops, bases = ranker.score_rows(rows), ranker.score_rows(others)
    values, variances, squares = np.zeros((3, *rows.shape))
    exact = np.ones(len(rows), dtype=np.bool_)
    todo = []
    for i, x in enumerate(rows):
        parts = ranker.divide_exactly(x, others, share)
        if parts is None:
            todo.append(i)
        else:
            values[i] = parts
    for pairs in _batches(rows, others, share, todo):
        gains, spreads = np.zeros((2, len(pairs.row), rows.shape[1]))
        small = pairs.size <= MAX_EXACT
        for is_small, find in ((small, _find_exact), (~small, _find_sampled)):
            if is_small.any():
                some = pairs.take(is_small)
                gains[is_small], spreads[is_small] = find(ranker, rows, others, some, tops, bases)
        exact[pairs.row[~small]] = False
        of_pairs = pairs.share[:, np.newaxis]
        # One after the other, in their order: a row's sums do not depend on which pairs are together.
        np.add.at(values, pairs.row, of_pairs * gains)
        np.add.at(variances, pairs.row, of_pairs**2 * spreads)
        np.add.at(squares, pairs.row, (of_pairs**2 * spreads) ** 2)
    return ShapleyEstimate(values, _errors(variances, squares), exact)


def _errors(variances: Floats, squares: Floats) -> Floats:
    """Return standard errors adjusted for few samples: ±2 of them cover as often as ±2 of a normal distribution.

    A variance is the sum of one for each sampled reference row, with one degree of freedom (of `N_PAIRS` - 1) each;
    `squares` is the sum of their squares. The degrees of the sum are Satterthwaite's, whose squares are those of the
    true variances: a third of the expected ones. For a single reference row this is 1.
    """
    from scipy.special import ndtr, stdtrit

    shown = squares > 0.0
    parts = np.where(shown, variances, 1.0) ** 2 / np.where(shown, squares, 1.0)
    degrees = np.maximum(3.0 * parts - 2.0, 1.0)
    errors: Floats = np.sqrt(variances) * stdtrit(degrees, ndtr(2.0)) / 2.0
    return errors


def count_scored(n_features: int, n_references: int) -> int:
    """Return the maximum number of rows that `shapley_estimate` scores for one row.

    Parameters
    ----------
    n_features : int
        Number of features.
    n_references : int
        Number of reference rows.

    Returns
    -------
    int

    Examples
    --------
    >>> from core.explain import count_scored
    >>> count_scored(4, 64), count_scored(30, 64)
    (896, 8992)
    """
    check_value("n_features", Annotated[int, Ge(1)], n_features)
    check_value("n_references", Annotated[int, Ge(1)], n_references)
    if n_features <= MAX_EXACT:
        return n_references * max((1 << n_features) - 2, 0)
    sampled = 2 * N_PAIRS * (n_features - 1)
    return n_references * max((1 << MAX_EXACT) - 2, sampled) + MIN_SAMPLED * sampled


def _shares(weight: Any, n: int) -> Floats:
    given = np.ones(n) if weight is None else as_numbers("weight", weight)
    if given.shape != (n,):
        raise InvalidData(f"weight must have one number for each of {n} rows, got {given.shape}")
    total = given.sum()
    if not np.isfinite(total) or total == 0:
        raise InvalidData(f"weight must be finite, with a sum that is not 0, got {total}")
    shares: Floats = given / total
    return shares


def _batches(rows: Floats, others: Floats, share: Floats, todo: list[int]) -> Iterator[_Pairs]:
    most = max(1, _CELLS_AT_ONCE // max(rows.shape[1], 1))
    content = _bytes(others)
    held: list[_Pairs] = []
    n_scored = 0
    for i in todo:
        pairs = _pairs_of(i, rows[i], others, share, content)
        size = pairs.size
        n_sets = np.where(
            size > MAX_EXACT, 2 * N_PAIRS * (size - 1), 1 << np.minimum(size, MAX_EXACT)
        )
        at = (n_scored + np.cumsum(n_sets)) // most
        for part in np.split(np.arange(len(size)), np.flatnonzero(np.diff(at)) + 1):
            if len(part) and held and at[part[0]] > 0:
                yield _Pairs(*map(np.concatenate, zip(*held, strict=True)))
                held = []
            held.append(pairs.take(part))
        n_scored = 0 if not len(at) else int((n_scored + n_sets.sum()) % most)
    if held:
        yield _Pairs(*map(np.concatenate, zip(*held, strict=True)))


def _pairs_of(i: int, x: Floats, others: Floats, share: Floats, content: bytes) -> _Pairs:
    """Return the pairs of one row with all reference rows, with random orders that depend on the values alone."""
    differs = ~((others == x) | (np.isnan(others) & np.isnan(x)))
    weight = np.where(differs.sum(axis=1) > MAX_EXACT, np.abs(share), 0.0)
    times = np.ceil(weight * (MIN_SAMPLED / (weight.sum() or 1.0)) * (1.0 - 1e-12))
    times = np.maximum(times, 1.0).astype(np.intp)
    reference = np.repeat(np.arange(len(others)), times)
    differs = differs[reference]
    words = _draw(content, x, (len(reference), N_PAIRS, len(x)))
    # Features that agree come after the others.
    order = np.lexsort((words, np.broadcast_to(~differs[:, np.newaxis], words.shape)), axis=2)
    found = np.flatnonzero(differs.any(axis=1))
    reference = reference[found]
    shares = share[reference] / times[reference]
    return _Pairs(np.full(len(found), i), reference, differs[found], shares, order[found])


def _find_exact(
    ranker: "Ranker", rows: Floats, others: Floats, pairs: _Pairs, tops: Floats, bases: Floats
) -> tuple[Floats, Floats]:
    """Score all feature subsets of pairs: exact values, (n_pairs, n_features), and zeros."""
    features = [np.flatnonzero(differs) for differs in pairs.differs]
    known = [_sets(len(each))[1:-1] for each in features]
    counts = list(map(len, known))
    table = np.repeat(others[pairs.reference], counts, axis=0)
    starts = np.concatenate([[0], np.cumsum(counts)]).tolist()
    for p, start in enumerate(starts[:-1]):
        part = table[start : starts[p + 1]]
        part[:, features[p]] = np.where(
            known[p], rows[pairs.row[p], features[p]], part[:, features[p]]
        )
    scores = ranker.score_rows(table) if len(table) else np.empty(0)
    gains = np.zeros(pairs.differs.shape)
    for p, start in enumerate(starts[:-1]):
        top, base = tops[pairs.row[p]], bases[pairs.reference[p]]
        gains[p, features[p]] = _divide(scores[start : starts[p + 1]], top, base)
    return gains, np.zeros(gains.shape)


def _find_sampled(
    ranker: "Ranker", rows: Floats, others: Floats, pairs: _Pairs, tops: Floats, bases: Floats
) -> tuple[Floats, Floats]:
    mixed = MixedRows(rows, others, pairs.row, pairs.reference, pairs.order, pairs.size)
    scores = ranker.score_mixed(mixed)
    gains, spreads = np.zeros((2, *pairs.differs.shape))
    for n in np.unique(mixed.size).tolist():
        here = np.flatnonzero(mixed.size == n)
        steps = np.empty((len(here), N_PAIRS, 2, n + 1))
        steps[..., 0] = bases[pairs.reference[here]][:, np.newaxis, np.newaxis]
        steps[..., n] = tops[pairs.row[here]][:, np.newaxis, np.newaxis]
        numbers = mixed.start[here][:, np.newaxis] + np.arange(2 * N_PAIRS * (n - 1))
        steps[..., 1:n] = scores[numbers].reshape(len(here), N_PAIRS, 2, n - 1)
        by_place = np.diff(steps, axis=3)
        each = np.zeros((len(here), N_PAIRS, rows.shape[1]))
        each[..., :n] = 0.5 * (by_place[:, :, 0] + by_place[:, :, 1, ::-1])
        each = np.take_along_axis(each, mixed.position[here], axis=2)
        gains[here], spreads[here] = each.mean(axis=1), each.var(axis=1, ddof=1) / N_PAIRS
    return gains, spreads


def _bytes(rows: Floats) -> bytes:
    """Return rows as bytes that are equal for equal rows, regardless of signed zeros and NaN bits."""
    return np.where(np.isnan(rows), np.nan, rows + 0.0).astype("<f8").tobytes()


def _draw(content: bytes, x: Floats, shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
    seed = int.from_bytes(hashlib.blake2b(_bytes(x) + content, digest_size=16).digest(), "little")
    words: npt.NDArray[np.uint64] = np.random.Philox(key=seed).random_raw(math.prod(shape))
    return words.reshape(shape)


def _divide(scores: Floats, top: float, base: float) -> Floats:
    game = np.concatenate([[base], scores, [top]])
    n = int(np.log2(len(game)))
    values: Floats = _coefficients(n) @ game
    return values


@cache
def _sets(n: int) -> Booleans:
    """Return all subsets of n features as masks, the empty one first and the full one last, shape (2ⁿ, n)."""
    return np.array(list(itertools.product((False, True), repeat=n)))


@cache
def _coefficients(n: int) -> Floats:
    """Return the weight of each subset's score in each feature's Shapley value, shape (n, 2ⁿ)."""
    sets = _sets(n)
    size = sets.sum(axis=1)
    with_it = [1.0 / (n * math.comb(n - 1, k - 1)) if k else 0.0 for k in range(n + 1)]
    without = [-1.0 / (n * math.comb(n - 1, k)) if k < n else 0.0 for k in range(n + 1)]
    coefficients: Floats = np.where(sets.T, np.array(with_it)[size], np.array(without)[size])
    return coefficients
