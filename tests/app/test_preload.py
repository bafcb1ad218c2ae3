"""One thread imports modules in advance, and a caller that needs one meanwhile waits for it."""

from __future__ import annotations

import threading

import pytest

from app import preload
from tests.waiting import patience


def test_of_two_threads_one_imports_and_the_other_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, may_go, importing = threading.Event(), threading.Event(), []

    def slowly() -> None:
        importing.append(threading.current_thread())
        inside.set()
        assert may_go.wait(patience())

    monkeypatch.setattr(preload, "import_sklearn", slowly)
    first, second = (threading.Thread(target=preload.preload) for _ in range(2))
    first.start()
    assert inside.wait(patience())
    second.start()
    second.join(0.2)
    assert second.is_alive()
    assert importing == [first]
    may_go.set()
    first.join()
    second.join()
    assert importing == [first, second]
