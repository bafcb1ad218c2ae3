"""Artifacts to take apart: fitted rankers, and bytes that were put together by hand."""

import json
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from core.artifact import load, save
from core.errors import ArtifactError


def training_table(n_rows: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    X = rng.normal(size=(n_rows, 4)) + y[:, None] * [1.0, 0.5, 0.0, 0.0]
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def table_for(algorithm: type[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and what the algorithm learns from them: one label, or two."""
    X, y = training_table()
    return X, np.column_stack([y, X[:, 1] > 0]) if algorithm.target == "multilabel" else y


def with_categories(X: np.ndarray) -> pd.DataFrame:
    """The same rows with two columns as text, one of more than 64 categories; some are missing."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    steps = np.round(frame["a"] * 15)
    frame["a"] = steps.map(lambda step: f"step {step:g}", na_action="ignore")
    frame["b"] = np.where(X[:, 1] > 0, "up", np.where(X[:, 1] < -1, "down", None))
    return frame


def take_apart(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of an artifact."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])["__metadata__"]["rankwright"]
    return json.loads(header), load_arrays(data)


def put_together(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    text = header if isinstance(header, str) else json.dumps(header)
    return save_arrays(arrays, metadata={"rankwright": text})


def raw_safetensors(layout: dict[str, Any], data: bytes = b"") -> bytes:
    text = layout if isinstance(layout, bytes) else json.dumps(layout).encode()
    return len(text).to_bytes(8, "little") + text + data


def load_or_refuse(data: bytes) -> None:
    """Load an artifact; if it loads, it must score. Any error but ArtifactError fails the test."""
    try:
        ranker = load(data)
    except ArtifactError:
        return
    with np.errstate(all="ignore"):
        ranker.score_rows(np.full((1, ranker.n_features_in_), np.nan))
        ranker.score_rows(np.zeros((2, ranker.n_features_in_)))
    load(save(ranker))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
