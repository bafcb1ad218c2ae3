"""Tables for feature maps: columns of all kinds, and classes that no linear score tells apart."""

import numpy as np
import pandas as pd

NAMES = ["fourier", "nystroem", "bins"]


def mixed_table(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, and categories by position; some of the first three columns are missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 1.0, 50.0, 1.0]
    X[:, 1], X[:, 3] = rng.integers(0, 3, n), rng.integers(0, 2, n)
    X[:, :3][rng.random((n, 3)) < 0.1] = np.nan
    return X, rng.random(n) < 0.4, rng.uniform(0.5, 2.0, n)


def frame_of(X: np.ndarray) -> pd.DataFrame:
    words = np.array(["a", "b", "c"], dtype=object)
    columns = {"x": X[:, 0], "kind": [None if np.isnan(v) else words[int(v)] for v in X[:, 1]]}
    return pd.DataFrame(columns | {"z": X[:, 2], "flag": words[X[:, 3].astype(int)]})


def xor(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)
