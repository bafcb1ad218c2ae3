"""The examples in the docstrings of the client run as they are printed, one after the other, against one service."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest
import rankwright
from rankwright import client, errors, operations, records, resources, sklearn

from tests.app.live_service import Service

EXAMPLES = [
    client.Client,
    resources.Dataset,
    resources.Job,
    resources.Model,
    client.Datasets,
    client.Jobs,
    client.Models,
    resources.Evaluation,
    client.Evaluations,
    resources.Comparison,
    client.Comparisons,
    client.Promotion,
    resources.BatchScore,
    client.BatchScores,
    client.Uploads,
    client.Trash,
    client.Erasures,
    client.Alarms,
    client.Keys,
    client.Webhooks,
    operations.Page,
    records.Record,
    client.AsyncClient,
    sklearn.RemoteRanker,
    *(getattr(errors, name) for name in rankwright.__all__ if hasattr(errors, name)),
]
"""The first trains a model, and others use what those before them have made."""


def write_table(path: Path) -> None:
    """Write the table of customers that the examples upload."""
    rng = np.random.default_rng(0)
    lines = ["age,plan,churned"]
    for age, plan in zip(
        rng.integers(18, 80, 200), rng.choice(["gold", "basic"], 200), strict=True
    ):
        churned = int(age + 30 * (plan == "basic") + rng.normal(0, 10) > 70)
        lines.append(f"{age},{plan},{churned}")
    path.write_text("\n".join(lines) + "\n")


def test_the_examples_of_the_client_run(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(tmp_path / "churn.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWRIGHT_URL", service.url)
    monkeypatch.setenv("RANKWRIGHT_API_KEY", service.key())
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    with service.at_work():
        for each in EXAMPLES:
            (test,) = finder.find(each, each.__name__, globs={})
            assert test.examples, each
            runner.run(test)
    assert runner.summarize().failed == 0, "see the output above"
