"""One thread imports modules in advance, and a caller that needs one meanwhile waits for it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from app.platform import preload


def test_of_two_threads_one_imports_and_the_other_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, may_go, imported = threading.Event(), threading.Event(), []

    def slowly(name: str) -> Any:
        imported.append(name)
        inside.set()
        assert may_go.wait(10)

    monkeypatch.setattr(preload, "MODULES", ("one",))
    monkeypatch.setattr(preload, "import_module", slowly)
    preload.import_all.cache_clear()
    first, second = (threading.Thread(target=preload.preload) for _ in range(2))
    first.start()
    assert inside.wait(10)
    second.start()
    second.join(0.2)
    assert second.is_alive()
    may_go.set()
    first.join()
    second.join()
    assert imported == ["one"]
    preload.import_all.cache_clear()
