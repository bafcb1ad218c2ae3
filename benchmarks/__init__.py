"""What is measured against peers. Prints tables, and ends with an error where nothing is measured; asserts no time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

ABSENT: Mapping[str, str] = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "simdjson": "pysimdjson"}


def is_here(module: str) -> bool:
    """Whether a peer is installed; where it is not, say so once: its figures are left out."""
    if find_spec(module) is not None:
        return True
    if module not in _told:
        _told.add(module)
        print(f"{ABSENT.get(module, module)} is not installed: left out", file=sys.stderr)
    return False


_told: set[str] = set()


def with_peers(names: Iterable[str], modules: Mapping[str, str]) -> list[str]:
    """The names without those of peers that are not installed; `modules` has a peer's module by how its names begin."""
    return [
        name
        for name in names
        if all(is_here(module) for start, module in modules.items() if name.startswith(start))
    ]


def at_least_one(text: str) -> int:
    """Read an argument that says how often something is measured: of none there would be no figure."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def shown_ratio(ratio: float) -> str:
    """Write how many times as long a peer takes; a dash where it is not there."""
    return "–" if ratio != ratio else f"{ratio:.2f}"
