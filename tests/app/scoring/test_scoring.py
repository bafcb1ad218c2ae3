"""The models that a process serves from: loaded once, checked every second, dropped when gone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from app.models import service as models
from app.platform.database import Database
from app.platform.documents import ModelFeature
from app.platform.errors import NotFound
from app.platform.host_tokens import HostTokens
from app.platform.sql import Reading
from app.scoring import service as scoring
from app.scoring.features import FeatureIndex
from app.scoring.service import ModelCache
from tests.app.live_service import table
from tests.app.workbench import OWNER, Workbench


class Bench:
    """A trained model and a cache whose background tasks wait for the test."""

    def __init__(self, db: Database, folder: Path, size: int = 10) -> None:
        self.bench = Workbench(db, folder)
        dataset = self.bench.upload(table(200), label="left", positive="yes")
        self.bench.work()
        self.dataset = dataset
        self.tasks: list[Callable[[], object]] = []
        self.cache = ModelCache(
            db.reading, self.bench.blobs, size, self.tasks.append, token=db.tokens.models.read
        )

    def train(self) -> str:
        job = self.bench.submit(self.dataset)
        self.bench.work()
        with self.bench.db.read() as session:
            return str(models.find(session, OWNER, "rankboost").id) if job else ""


@pytest.fixture
def db(sqlite_url: str, tmp_path: Path) -> Database:
    """A loaded model is served even if the database is away."""
    tokens = HostTokens.of(tmp_path)
    tokens.models.create()
    return Database(sqlite_url, tokens=tokens)


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Bench:
    return Bench(db, tmp_path)


def test_a_model_is_loaded_once_and_stays_the_same_object(bench: Bench) -> None:
    bench.cache.recent.seconds = 60.0  # longer than the slowest machine takes for this
    model_id = bench.train()
    served = bench.cache.find(OWNER, model_id)
    assert bench.cache.cached(OWNER, model_id) is served
    assert bench.cache.find(OWNER, "rankboost") is served
    assert bench.cache.cached(OWNER, "rankboost") is served
    assert bench.cache.cached("stranger", model_id) is None
    with pytest.raises(NotFound):
        bench.cache.find("stranger", model_id)


def test_one_transaction_finds_a_model_and_what_it_is_loaded_with(bench: Bench) -> None:
    reading: Any = bench.bench.db.reading
    looks: list[Any] = []

    def counted(work: Any, *args: Any) -> Any:
        looks.append(args)
        return reading(work, *args)

    model_id = bench.train()
    cache = ModelCache(cast(Reading, counted), bench.bench.blobs, 10, bench.tasks.append)
    served = cache.find(OWNER, "rankboost")
    assert served.curve is not None
    assert len(looks) == 1
    model = bench.bench.db.reading(models.find, OWNER, model_id)
    assert cache.serve(model) is served
    assert len(looks) == 1
    cache.forget(OWNER, model_id)
    assert cache.serve(model).curve is not None
    assert len(looks) == 2


def test_a_model_deleted_elsewhere_is_found_out(bench: Bench) -> None:
    model_id = bench.train()
    bench.cache.recent.seconds = 0.0  # each look is due for another at once
    bench.cache.find(OWNER, model_id)
    assert bench.cache.cached(OWNER, model_id) is None
    bench.cache.recent.seconds = 3600.0
    bench.cache.find(OWNER, model_id)
    bench.bench.db.writing(models.delete, OWNER, model_id)
    bench.cache.refresh(OWNER, model_id)
    assert bench.cache.cached(OWNER, model_id) is None
    with pytest.raises(NotFound):
        bench.cache.find(OWNER, model_id)


def test_the_least_recently_used_goes_first(db: Database, tmp_path: Path) -> None:
    bench = Bench(db, tmp_path, size=2)
    first, second, third = (bench.train() for _ in range(3))
    kept = {name: bench.cache.find(OWNER, name) for name in (first, second)}
    bench.cache.find(OWNER, first)
    bench.cache.find(OWNER, third)
    assert bench.cache.find(OWNER, first) is kept[first]
    assert bench.cache.find(OWNER, second) is not kept[second]


def test_what_they_take_in_all_is_bounded_and_one_always_stays(bench: Bench) -> None:
    first, second = (bench.train() for _ in range(2))
    one = bench.cache.find(OWNER, first)
    assert one.n_bytes > 0
    bench.cache = ModelCache(
        bench.bench.db.reading,
        bench.bench.blobs,
        10,
        bench.tasks.append,
        max_bytes=one.n_bytes,
        token=bench.bench.db.tokens.models.read,
    )
    kept = bench.cache.find(OWNER, first)
    assert bench.cache.find(OWNER, first) is kept
    bench.cache.find(OWNER, second)  # as large: there is room for either
    assert bench.cache.cached(OWNER, first) is None
    assert bench.cache.find(OWNER, first) is not kept


def test_words_count_as_what_they_take() -> None:
    given: list[ModelFeature] = [{"name": "x", "type": "categorical", "missing": False}]
    tracemalloc.start()
    try:
        words = [f"word {i}" for i in range(5_000)]
        features = FeatureIndex(given, [words])
        took, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert features.names == ["x"]
    assert 0.5 * took < scoring.count_bytes(0, [None, words]) < 2 * took


def test_tags_tell_models_and_inputs_apart(bench: Bench) -> None:
    one, other = (bench.cache.find(OWNER, bench.train()) for _ in range(2))
    assert one.artifact_sha256 == other.artifact_sha256  # same data, same seed, same bits
    row = np.zeros((1, 3))
    assert one.entity_tag(row) == one.entity_tag(row.copy())
    assert one.entity_tag(row) != other.entity_tag(row)
    assert one.entity_tag(row) != one.entity_tag(row + 1)
