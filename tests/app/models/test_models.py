"""Models by reference, and aliases that no two callers move at once."""

from __future__ import annotations

import functools
from collections import Counter

import pytest
from queue_steps import at_once
from workbench import OWNER, Workbench, breast_cancer, on_both

from app.models import service as models
from app.platform.errors import (
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
    state, _ = bench.db.writing(
        models.set_alias, OWNER, "churn", alias, model_id, if_revision=revision
    )
    return state.alias.revision


NOTHING = [
    *("", "churn:", "churn@", "churn:0", "churn:4", "churn:01", "churn:9999999999"),
    *("churn@live:1", "Churn", "mdl_x", "\0"),
]


@on_both
def test_what_refers_to_nothing(bench: Workbench, trained: list[str]) -> None:
    for owner, ref in [*((OWNER, ref) for ref in NOTHING), ("bob", "churn")]:
        with pytest.raises(NotFound):
            bench.db.reading(models.get, owner, ref)


@on_both
def test_of_many_movers_one_wins(bench: Workbench, trained: list[str]) -> None:
    move(bench, trained[0], None)
    moves = [functools.partial(move, bench, model_id, 1) for model_id in trained * 2]
    assert Counter(map(type, at_once(*moves))) == {int: 1, PreconditionFailed: 5}
    assert len(bench.db.reading(models.get_alias, OWNER, "churn", "live").history) == 2


@on_both
def test_of_many_makers_one_wins(bench: Workbench, trained: list[str]) -> None:
    makes = [functools.partial(move, bench, model_id, None, "new") for model_id in trained * 2]
    assert Counter(map(type, at_once(*makes))) == {int: 1, PreconditionRequired: 5}
    assert bench.db.reading(models.get_alias, OWNER, "churn", "new").alias.revision == 1
