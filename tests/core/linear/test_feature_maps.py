"""Feature maps held to the exact kernel and to one-hot matrices."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from core import AUCSVM, PAUCSVM
from core.base.training import TrainingData
from core.errors import InvalidData
from core.linear import feature_maps
from core.linear.design import fit_design
from core.linear.feature_maps import fit_binned
from core.linear.svm import SupportVectorParameters, fit_map
from tests.core.linear.mapped_tables import NAMES, mixed_table, xor
from tests.core.linear.surrogate_oracle import minimum
from tests.sentences import Sentences

N_CATEGORIES = np.array([0, 3, 0, 2], dtype=np.int64)


def settings(
    name: str, n_components: int = 40, bandwidth: float = 2.0, max_bins: int = 5, seed: int = 0
) -> SupportVectorParameters:
    return SupportVectorParameters(
        feature_map=name,
        n_components=n_components,
        bandwidth=bandwidth,
        max_bins=max_bins,
        random_state=seed,
    )


def points(rows: Any) -> np.ndarray:
    """The rows' coordinates, each asked for by a unit vector."""
    return np.column_stack([rows.scores(unit) for unit in np.eye(rows.size)])


def exact_kernel(X: np.ndarray, weight: np.ndarray, bandwidth: float) -> np.ndarray:
    laid = fit_design(X, weight, N_CATEGORIES, standardize=True)
    return np.exp(-cdist(points(laid), points(laid), "sqeuclidean") / (2 * bandwidth**2))


def test_waves_come_near_the_kernel() -> None:
    X, positive, weight = mixed_table()
    K = exact_kernel(X, weight, 2.0)
    for n_components in (100, 800):
        squares = []
        for seed in range(6):
            asked = settings("fourier", n_components, seed=seed)
            found, _ = fit_map(asked, TrainingData(X, positive, weight, N_CATEGORIES))
            Z = found.features(X)
            assert (Z * Z).sum(axis=1) == pytest.approx(np.ones(60), abs=1e-12)
            squares.append(((Z @ Z.T - K) ** 2).mean())
        # the variance of a wave is at most 1/2, that of the mean of K at most 1/(2K)
        assert np.mean(squares) < 1.2 / n_components


def test_all_rows_as_landmarks_give_the_kernel_itself() -> None:
    X, positive, weight = mixed_table()
    K = exact_kernel(X, weight, 2.0)
    _, rows = fit_map(settings("nystroem", 60), TrainingData(X, positive, weight, N_CATEGORIES))
    Z = points(rows)
    assert abs(Z @ Z.T - K).max() < 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_nystroem_of_all_rows_is_the_kernel_machine(seed: int) -> None:
    """The objective is that of a general solver in the coordinates of the kernel's square root."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(8, 2)), np.arange(8) < 3
    ranker = PAUCSVM(
        feature_map="nystroem", n_components=8, bandwidth=1.0, C=5.0, fpr_max=0.6, anchor=None, tol=1e-9
    )  # fmt: skip
    ranker.fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    root = np.linalg.cholesky(np.exp(-cdist(Z, Z, "sqeuclidean") / 2) + 1e-13 * np.eye(8))
    best = minimum(root[:3], root[3:], 0, 3, 5.0)
    assert ranker.objective_ == pytest.approx(best, rel=1e-6)


def one_hot(codes: np.ndarray, sizes: np.ndarray) -> Any:
    parts = [
        sparse.csr_matrix(np.eye(size)[column]) for column, size in zip(codes.T, sizes, strict=True)
    ]
    return sparse.hstack(parts).tocsr()


def test_bins_are_a_sparse_matrix_of_ones() -> None:
    X, _, weight = mixed_table(300)
    found, rows = fit_binned(X, weight, N_CATEGORIES, 5)
    n_bins = found.n_bins
    assert n_bins.tolist() == [5, 3, 5, 2]
    codes = np.empty(X.shape, dtype=int)
    for j, edges in enumerate(found.bins.edges):
        known = np.nan_to_num(X[:, j])
        code = known.astype(int) if N_CATEGORIES[j] else (known[:, None] > edges).sum(axis=1)
        codes[:, j] = np.where(np.isnan(X[:, j]), n_bins[j], code)
    Z = one_hot(codes, n_bins + 1)
    rng = np.random.default_rng(0)
    w, share = rng.normal(size=found.size), rng.normal(size=300) * (rng.random(300) < 0.3)
    for laid in (rows, found.transform(X), found.transform(np.asfortranarray(X))):
        assert laid.scores(w) == pytest.approx(Z @ w)
        assert laid.weighted_sum(share) == pytest.approx(Z.T @ share)
    assert found.split(X, w).sum(axis=1) == pytest.approx(Z @ w)


@pytest.mark.parametrize("name", NAMES)
def test_scores_and_sums_are_transposes(name: str) -> None:
    X, positive, weight = mixed_table()
    _, rows = fit_map(settings(name), TrainingData(X, positive, weight, N_CATEGORIES))
    rng = np.random.default_rng(0)
    w, share = rng.normal(size=rows.size), rng.normal(size=60)
    share[::3] = 0.0
    assert (rows.weighted_sum(share) * w).sum() == pytest.approx((rows.scores(w) * share).sum())


@pytest.mark.parametrize("name", ["fourier", "nystroem"])
def test_features_kept_or_made_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, positive, weight = mixed_table(300)
    monkeypatch.setattr(feature_maps, "MAX_BLOCK_CELLS", 40 * 50)  # 50 rows at a time
    w, share = np.random.default_rng(0).normal(size=(2, 300))
    share[:70] = 0.0  # a block that is not read
    found = []
    for most in (2**29, 0):
        monkeypatch.setattr(feature_maps, "MAX_BYTES", most)
        _, rows = fit_map(settings(name), TrainingData(X, positive, weight, N_CATEGORIES))
        found.append((rows.scores(w[: rows.size]), rows.weighted_sum(share)))
    assert (found[0][0] == found[1][0]).all()
    assert (found[0][1] == found[1][1]).all()


def test_the_bandwidth_is_the_median_distance() -> None:
    X, positive, weight = mixed_table()
    _, first = np.unique(np.nan_to_num(X, nan=-9.0), axis=0, return_index=True)
    laid = fit_design(X, weight, N_CATEGORIES, standardize=True)
    at = points(laid)[first]
    distances = cdist(at, at)[np.triu_indices(len(at), 1)]
    rows = feature_maps.MapRows(X, positive, weight, laid.coordinates, 0)
    chosen = feature_maps.choose_bandwidth(rows, "auto")
    assert chosen == pytest.approx(np.median(distances[distances > 0]))
    assert feature_maps.choose_bandwidth(rows, 3) == 3.0
    one = feature_maps.MapRows(X[[0] * 60], positive, weight, laid.coordinates, 0)
    assert feature_maps.choose_bandwidth(one, "auto") == 1.0


def test_a_map_that_takes_too_much_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    monkeypatch.setattr(feature_maps, "MAX_CELLS", 99)
    X, y = xor(50)
    for name in ("fourier", "nystroem"):
        with sentences.raises(InvalidData):
            AUCSVM(feature_map=name, n_components=120, C=1.0).fit(X, y)
