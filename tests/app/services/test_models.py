"""Models by reference, and aliases that no two callers move at once."""

from __future__ import annotations

import threading

import pytest
from workbench import OWNER, Workbench, breast_cancer, on_both

from app.models import service as models
from app.platform.errors import (
    Conflict,
    Invalid,
    NotFound,
    PreconditionFailed,
    PreconditionRequired,
)


@pytest.fixture
def trained(bench: Workbench) -> list[str]:
    """Three versions of `churn`."""
    dataset = bench.ready(breast_cancer(), label="diagnosis", positive="malignant")
    return [bench.model(bench.work_on(dataset, name="churn")).id for _ in range(3)]


def move(bench: Workbench, model_id: str, revision: int | None, alias: str = "live") -> int:
    state, _ = models.set_alias(bench.db, OWNER, "churn", alias, model_id, if_revision=revision)
    return state.alias.revision


NOTHING = [
    *("", "churn:", "churn@", "churn:0", "churn:4", "churn:01", "churn:9999999999"),
    *("churn@live:1", "Churn", "mdl_x", "\0"),
]


@on_both
def test_what_refers_to_nothing(bench: Workbench, trained: list[str]) -> None:
    for owner, ref in [*((OWNER, ref) for ref in NOTHING), ("bob", "churn")]:
        with pytest.raises(NotFound):
            models.get(bench.db, owner, ref)


@on_both
def test_an_alias_moves_only_from_what_was_seen(bench: Workbench, trained: list[str]) -> None:
    first, second, third = trained
    with pytest.raises(PreconditionFailed, match="does not exist yet"):
        move(bench, first, 1)
    assert move(bench, first, None) == 1
    with pytest.raises(PreconditionRequired, match='If-Match: "1"'):
        move(bench, second, None)
    assert move(bench, second, 1) == 2
    with pytest.raises(PreconditionFailed, match="revision 2, not 1"):
        move(bench, third, 1)
    state = models.get_alias(bench.db, OWNER, "churn", "live")
    assert [step.model_id for step in state.history] == [second, first]
    assert models.get(bench.db, OWNER, "churn@live")[0].id == second


@on_both
def test_of_many_movers_one_wins(bench: Workbench, trained: list[str]) -> None:
    move(bench, trained[0], None)
    outcomes: list[str] = []

    def try_to_move(model_id: str) -> None:
        try:
            move(bench, model_id, 1)
            outcomes.append("moved")
        except PreconditionFailed:
            outcomes.append("refused")

    threads = [threading.Thread(target=try_to_move, args=(model_id,)) for model_id in trained * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["moved"] + ["refused"] * 5
    assert len(models.get_alias(bench.db, OWNER, "churn", "live").history) == 2


@on_both
def test_of_many_makers_one_wins(bench: Workbench, trained: list[str]) -> None:
    outcomes: list[str] = []

    def try_to_make(model_id: str) -> None:
        try:
            move(bench, model_id, None, alias="new")
            outcomes.append("made")
        except PreconditionRequired:
            outcomes.append("refused")

    threads = [threading.Thread(target=try_to_make, args=(model_id,)) for model_id in trained * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made"] + ["refused"] * 5
    assert models.get_alias(bench.db, OWNER, "churn", "new").alias.revision == 1


@on_both
def test_deleting(bench: Workbench, trained: list[str]) -> None:
    move(bench, trained[0], None)
    with pytest.raises(Conflict, match="churn@live"):
        models.delete(bench.db, OWNER, trained[0])
    with pytest.raises(Invalid, match="deleted by its id"):
        models.delete(bench.db, OWNER, "churn")
    with pytest.raises(NotFound):
        models.delete(bench.db, "bob", trained[2])
    models.delete(bench.db, OWNER, trained[2])
    assert models.get(bench.db, OWNER, "churn")[0].id == trained[1]
    with pytest.raises(NotFound):
        models.set_alias(bench.db, OWNER, "churn", "other", trained[2], if_revision=None)
