"""Items, what they are worth, and pairs that see it dimly."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from app.models import repository
from app.platform.tables import Dataset, Model
from tests.app.workbench import Workbench

Floats = np.ndarray


def worths(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Features of items and what they are worth."""
    X = np.round(np.random.default_rng(seed).normal(size=(n, 3)), 3)
    return X, X[:, 0] - 0.5 * X[:, 1] ** 2


def items_csv(X: Floats, groups: int = 0) -> str:
    """Items named item0, item1, …; with groups, neighbours share one."""
    head = "item,a,b,c" + (",query" if groups else "")
    per_group = len(X) // groups if groups else 1
    rows = (
        f"item{i},{a},{b},{c}" + (f",q{i // per_group}" if groups else "")
        for i, (a, b, c) in enumerate(X.tolist())
    )
    return "\n".join([head, *rows, ""])


def draw_pairs(worth: Floats, n_pairs: int, seed: int = 0) -> list[tuple[int, int]]:
    """Pairs that see the worth dimly."""
    rng = np.random.default_rng(seed)
    found: list[tuple[int, int]] = []
    while len(found) < n_pairs:
        i, k = rng.integers(0, len(worth), 2).tolist()
        if i != k:
            noise = rng.normal(size=2) * 0.3
            found.append((i, k) if worth[i] + noise[0] > worth[k] + noise[1] else (k, i))
    return found


def pairs_csv(pairs: list[tuple[int, int]], weights: list[float] | None = None) -> str:
    lines = [f"item{i},item{k}" for i, k in pairs]
    if weights is None:
        return "\n".join(["better,worse", *lines, ""])
    weighed = (f"{line},{weight}" for line, weight in zip(lines, weights, strict=True))
    return "\n".join(["better,worse,weight", *weighed, ""])


def upload_items(bench: Workbench, n: int = 80, **given: str) -> tuple[Dataset, Floats, Floats]:
    X, worth = worths(n)
    dataset = bench.ready(items_csv(X), kind="preferences", **given)
    return dataset, X, worth


def metrics_of(bench: Workbench, model: Model, part: str = "validation") -> SimpleNamespace:
    with bench.db.read() as session:
        return SimpleNamespace(**(repository.find_metrics(session, model.id, part) or {}))
