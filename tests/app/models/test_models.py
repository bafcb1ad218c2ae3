"""Models by reference, and aliases that no two callers move at once."""

from __future__ import annotations

import functools
from collections import Counter

import pytest
from queue_steps import at_once
from test_models_repo import OWNER, insert

from app.models import service as models
from app.platform.database import Database
from app.platform.errors import (
    NotFound,
    PreconditionFailed,
    PreconditionRequired,
)


@pytest.fixture
def ids(db: Database) -> list[str]:
    """Three versions of `churn`."""
    return [insert(db).id for _ in range(3)]


def move(db: Database, model_id: str, revision: int | None, alias: str = "live") -> int:
    state, _ = db.writing(models.set_alias, OWNER, "churn", alias, model_id, if_revision=revision)
    return state.alias.revision


NOTHING = [
    *("", "churn:", "churn@", "churn:0", "churn:4", "churn:01", "churn:9999999999"),
    *("churn@live:1", "Churn", "mdl_x", "\0"),
]


def test_what_refers_to_nothing(db: Database, ids: list[str]) -> None:
    for owner, ref in [*((OWNER, ref) for ref in NOTHING), ("bob", "churn")]:
        with pytest.raises(NotFound):
            db.reading(models.get, owner, ref)


def test_of_many_movers_one_wins(db: Database, ids: list[str]) -> None:
    move(db, ids[0], None)
    moves = [functools.partial(move, db, model_id, 1) for model_id in ids * 2]
    assert Counter(map(type, at_once(*moves))) == {int: 1, PreconditionFailed: 5}
    assert len(db.reading(models.get_alias, OWNER, "churn", "live").history) == 2


def test_of_many_makers_one_wins(db: Database, ids: list[str]) -> None:
    makes = [functools.partial(move, db, model_id, None, "new") for model_id in ids * 2]
    assert Counter(map(type, at_once(*makes))) == {int: 1, PreconditionRequired: 5}
    assert db.reading(models.get_alias, OWNER, "churn", "new").alias.revision == 1
