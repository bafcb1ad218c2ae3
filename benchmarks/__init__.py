"""Benchmarks against peers. Each prints tables, and ends with an error if nothing was measured; none asserts a time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

ABSENT: Mapping[str, str] = {"xgboost": "XGBoost", "lightgbm": "LightGBM"}


def is_here(module: str) -> bool:
    """Return True if a peer is installed; otherwise print once that its figures are left out."""
    if find_spec(module) is not None:
        return True
    if module not in _told:
        _told.add(module)
        print(f"{ABSENT.get(module, module)} is not installed: left out", file=sys.stderr)
    return False


_told: set[str] = set()


def with_peers(names: Iterable[str], modules: Mapping[str, str]) -> list[str]:
    """Return the names without those of missing peers; `modules` maps the start of a name to a peer's module."""
    return [
        name
        for name in names
        if all(is_here(module) for start, module in modules.items() if name.startswith(start))
    ]


def at_least_one(text: str) -> int:
    """Read an argument that says how often something is measured; at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def shown_ratio(ratio: float) -> str:
    """Write how many times as long a peer takes; a dash if it is missing."""
    return "–" if ratio != ratio else f"{ratio:.2f}"
