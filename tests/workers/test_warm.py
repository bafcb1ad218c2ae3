"""Warming up: whole tiny jobs, so it must speak the services' language of today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.infra.settings import Settings
from app.services import execution
from core.registry import ALGORITHMS
from workers.warm import warm_up

BINARY = [name for name, algorithm in ALGORITHMS.items() if algorithm.target == "binary"]


def test_every_kind_and_algorithm_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = execution.run
    seen = []

    def watched(payload: dict[str, object], callback: execution.Callback) -> dict[str, object]:
        seen.append(payload)
        return run(payload, callback)

    monkeypatch.setattr(execution, "run", watched)
    assert warm_up(Settings()) == []
    assert [payload["kind"] for payload in seen] == ["ingest", *["train"] * len(BINARY)]
    assert not Path(str(seen[0]["workdir"])).exists()


def test_what_fails_is_told_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    run = execution.run

    def broken(payload: dict[str, object], callback: execution.Callback) -> dict[str, object]:
        if payload["kind"] == "train":
            raise MemoryError("no luck")
        return run(payload, callback)

    monkeypatch.setattr(execution, "run", broken)
    assert [str(fault) for fault in warm_up(Settings())] == ["no luck"] * len(BINARY)


def test_the_kernels_that_score_many_rows_are_loaded() -> None:
    """In a process of its own: other tests load them here."""
    program = """
from app.infra.settings import Settings
from core.boosting.tree.questions import _add_scores
from workers.warm import warm_up
assert not _add_scores.signatures
assert warm_up(Settings()) == []
assert _add_scores.signatures
"""
    subprocess.run([sys.executable, "-c", program], check=True)
