"""The table of 569 breast tumours that benchmarks and tests take: small, of numbers alone, and easy to rank."""

from __future__ import annotations

import csv
from pathlib import Path


def write_table(path: Path) -> None:
    """Write the Wisconsin diagnostic breast cancer table (569 × 30, Street et al. 1993) as CSV."""
    from sklearn.datasets import load_breast_cancer  # slow to import

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "diagnosis"])
        for row, target in zip(data.data, data.target, strict=True):
            writer.writerow([*row, data.target_names[target]])
