"""Warming up: whole tiny jobs, so it must speak the services' language of today."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.infra.settings import Settings
from app.services import execution
from workers import warm


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The jobs that are run."""
    run = execution.run
    seen = []

    def watched(payload: dict[str, object], callback: execution.Callback) -> dict[str, object]:
        seen.append(payload)
        return run(payload, callback)

    monkeypatch.setattr(execution, "run", watched)
    return seen


def test_an_upload_and_a_training_job_are_run(
    seen: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "is_complete", lambda: True)
    warm.warm_up(Settings(), lambda: False)
    assert [payload["kind"] for payload in seen] == ["ingest", "train"]
    assert not Path(str(seen[0]["workdir"])).exists()


def test_where_kernels_are_missing_nothing_is_run(
    seen: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "is_complete", lambda: False)
    warm.warm_up(Settings(), lambda: False)
    assert seen == []


@pytest.mark.parametrize("looks", [0, 3])
def test_it_gives_way_to_a_real_job(
    seen: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    monkeypatch.setattr(warm, "is_complete", lambda: True)
    left = iter([False] * looks)
    warm.warm_up(Settings(), lambda: next(left, True))
    assert len(seen) < 2
