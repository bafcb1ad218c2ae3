"""Warming up: whole tiny jobs, so it must speak the services' language of today."""

from __future__ import annotations

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
