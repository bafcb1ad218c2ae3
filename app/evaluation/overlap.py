"""Rows to evaluate on that were there in training: a copy, an extract, a table that has grown since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.ingest.rows import Hashes

LEAST_SHARE = 0.01
"""Of the rows: fewer do not move a figure."""
BEYOND_CHANCE = 2.0
"""Times the share by which rows of the training table equal each other anyway: where features are few or coarse, new
rows often equal old ones, and no row has been seen."""

Features = tuple[str, ...]


class Overlap:
    """Says of models whether a table holds rows that they were trained on; reads each table once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows: dict[tuple[str, Features], Hashes] = {}
        self._shares: dict[tuple[str, Features], tuple[float, float]] = {}

    def notes(self, models: Sequence[Mapping[str, Any]]) -> list[str]:
        """A sentence for each model of whose training table too many rows are here.

        A model is its `name`, its `features` and `trained_on`, the path of that table; None where that is gone, or is
        this very one.
        """
        return [note for model in models if (note := self._note(model)) is not None]

    def _note(self, model: Mapping[str, Any]) -> str | None:
        if model["trained_on"] is None:
            return None
        here, anyway = self._measure(model["trained_on"], tuple(model["features"]))
        if here <= max(LEAST_SHARE, BEYOND_CHANCE * anyway):
            return None
        return (
            f"{here:.0%} of these rows equal a row of the table that {model['name']} was trained on, "
            f"where {anyway:.0%} equal each other: its figures may flatter it"
        )

    def _measure(self, trained_on: str, features: Features) -> tuple[float, float]:
        """The share of the rows here that are in training, and of those in training that are there again."""
        which = (trained_on, features)
        if which not in self._shares:
            known, counts = np.unique(self._hashes(trained_on, features), return_counts=True)
            here = np.isin(self._hashes(self._path, features), known)
            twins = counts[counts > 1].sum() / counts.sum()
            self._shares[which] = float(here.mean()), float(twins)
        return self._shares[which]

    def _hashes(self, path: str, features: Features) -> Hashes:
        from app.ingest.profile import hash_rows

        if (path, features) not in self._rows:
            self._rows[path, features] = hash_rows(Path(path), features)
        return self._rows[path, features]
