"""Decisions and outcomes with a known truth: drift, delay, and selection by the model itself.

Rows have the features `a` (which alone says something), `b` and `word`. A row is positive with the probability
sigmoid(slope · a − 1.5). The rows are scored by the model and written as segments, as the service writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy import func, select, update

from app.feedback.outcomes import Outcomes
from app.feedback.segments import (
    FEATURE,
    PROTECTED,
    SegmentFeature,
    hash_ids,
    schema_of,
    write_segment,
)
from app.platform import catalogue
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.documents import StoredFeedback
from app.platform.ids import new_id
from app.platform.tables import (
    AliasFeedback,
    Dataset,
    DecisionSegment,
    ModelAlias,
    OutcomeSegment,
)
from app.scoring.service import ModelCache, Served

DAY = 86400.0
WEEK = 7 * DAY
SLOPE = 2.0
WORDS = ("red", "green", "blue")
MONDAY = 1735516800.0
"""2024-12-30, the start of a week."""


def feedback(**changes: Any) -> StoredFeedback:
    """Return settings with a weekly monitor."""
    found: dict[str, Any] = {
        "keep": 1.0,
        "features": None,
        "days": 20_000,
        "explore": None,
        "outcome": {"horizon_days": 30.0, "silence": None, "attribute": "last_before_event"},
        "shadow": None,
        "monitor": {"period": "week", "alpha": 0.05, "tolerance": {}},
        "protected": None,
    }
    return found | changes  # type: ignore[return-value]


@dataclass(frozen=True)
class Rows:
    """Rows with their truth."""

    a: np.ndarray
    b: np.ndarray
    word: np.ndarray
    y: np.ndarray

    @property
    def size(self) -> int:
        return len(self.y)


def draw(rng: np.random.Generator, size: int, slope: float = SLOPE, shift: float = 0.0) -> Rows:
    """Draw rows. `shift` moves the feature `a`."""
    a, b = rng.normal(size=(2, size))
    a = a + shift
    p = 1.0 / (1.0 + np.exp(1.5 - slope * a))
    return Rows(a, b, rng.choice(WORDS, size), rng.random(size) < p)


def table(rows: Rows) -> str:
    """Return rows as CSV."""
    lines = (
        f"{a:.6f},{b:.6f},{word},{int(y)}"
        for a, b, word, y in zip(rows.a, rows.b, rows.word, rows.y, strict=True)
    )
    return "\n".join(["a,b,word,y", *lines, ""])


@dataclass
class Simulator:
    """An alias whose decisions are written directly."""

    db: Database
    blobs: BlobStore
    owner: str
    name: str
    alias: str = "live"
    seed: int = 0
    flag_share: float | None = None
    """Part of the rows that is flagged. None: those at or above the threshold of the alias, if it has one."""
    explore: float = 0.0
    keep: float = 1.0
    rng: np.random.Generator = field(init=False)
    _cache: ModelCache = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self._cache = ModelCache(self.db.reading, self.blobs, 10, lambda task: None)

    def served(self) -> Served:
        """Return the model behind the alias."""
        return self._cache.find(self.owner, f"{self.name}@{self.alias}")

    def put_settings(self, settings: StoredFeedback | None) -> int:
        """Add a revision of the feedback settings; returns it."""
        with self.db.write() as session:
            columns = AliasFeedback.__table__.c
            newest = session.scalar(
                select(func.max(columns.revision)).where(
                    columns.owner == self.owner,
                    columns.name == self.name,
                    columns.alias == self.alias,
                )
            )
            revision = (newest or 0) + 1
            session.add(
                AliasFeedback(
                    owner=self.owner,
                    name=self.name,
                    alias=self.alias,
                    revision=revision,
                    settings=settings,
                    author=None,
                    at=1.0,
                )
            )
        return revision

    def decide(
        self,
        start: float,
        rows: Rows,
        *,
        ids: Sequence[str | None] | None = None,
        model: Served | None = None,
        duplicates: int = 0,
        sex: Sequence[str | None] | None = None,
    ) -> list[str]:
        """Record decisions about rows, evenly over a week from `start`; returns their ids."""
        served = self.served() if model is None else model
        X = self.matrix(served, rows)
        scores = served.ranker.score_rows(X)
        n = rows.size
        decision_ids = [new_id("dec") for _ in range(n)]
        flag, threshold = None, served.flag_threshold
        if self.flag_share is not None:
            threshold = float(np.quantile(scores, 1.0 - self.flag_share))
        if threshold is not None:
            flag = scores >= threshold
        explored = np.zeros(n, np.bool_)
        propensity = np.full(n, np.nan, np.float32)
        if flag is not None:
            explored = ~flag & (self.rng.random(n) < self.explore)
            propensity[flag] = 1.0
            if self.explore:
                propensity[~flag] = self.explore
        calibration = served.calibration
        probability = None if calibration is None else calibration.calibration.probability(scores)
        with self.db.read() as session:
            alias = session.scalars(
                select(ModelAlias).where(
                    ModelAlias.name == self.name, ModelAlias.alias == self.alias
                )
            ).one()
            alias_revision = alias.revision
        features = [
            SegmentFeature("a", "numeric"),
            SegmentFeature("b", "numeric"),
            SegmentFeature("word", "categorical"),
        ]
        if sex is not None:
            features.append(SegmentFeature("sex", "categorical", True))
        schema = schema_of(features)
        hashes = None
        if ids is not None:
            hashes = pa.array(hash_ids(self.owner, [each or "" for each in ids]))
        at = start + np.arange(n) * (WEEK / n)
        columns: dict[str, Any] = {
            "decision_id": pa.array(decision_ids, pa.string()),
            "id": pa.nulls(n, pa.string()) if ids is None else pa.array(ids, pa.string()),
            "id_hash": pa.nulls(n, pa.uint64()) if hashes is None else hashes,
            "at": pa.array(at),
            "revision": pa.array([1] * n, pa.int32()),
            "alias_revision": pa.array([alias_revision] * n, pa.int32()),
            "model_id": pa.array([served.model_id] * n).dictionary_encode(),
            "score": pa.array(scores),
            "probability": pa.nulls(n, pa.float64()) if probability is None else probability,
            "threshold": pa.array([threshold] * n, pa.float64()),
            "flag": pa.nulls(n, pa.bool_()) if flag is None else pa.array(flag),
            "explored": pa.array(explored),
            "propensity": pa.array(propensity, from_pandas=True),
            "keep": pa.array(np.where(explored, 1.0, self.keep)),
            "caller": pa.array([None] * n, pa.string()).dictionary_encode(),
            "origin": pa.array(["score"] * n).dictionary_encode(),
            "request_id": pa.nulls(n, pa.string()),
            FEATURE + "a": pa.array(rows.a),
            FEATURE + "b": pa.array(rows.b),
            FEATURE + "word": pa.array(rows.word.tolist()).dictionary_encode(),
        }
        if sex is not None:
            columns[PROTECTED + "sex"] = pa.array(sex, pa.string()).dictionary_encode()
        batch = pa.RecordBatch.from_arrays(
            [
                (values if isinstance(values, pa.Array) else pa.array(values)).cast(each.type)
                for values, each in zip(columns.values(), schema, strict=True)
            ],
            schema=schema,
        )
        recorded = self.rng.random(n) < self.keep
        batch = batch.filter(pa.array(recorded | explored))
        batches = [batch, *([batch.slice(0, duplicates)] if duplicates else [])]
        blob = write_segment(self.blobs, batches, schema)
        with self.db.write() as session:
            catalogue.add(session, [blob])
            session.add(
                DecisionSegment(
                    id=new_id("seg"),
                    owner=self.owner,
                    name=self.name,
                    alias=self.alias,
                    log_id=new_id("log"),
                    first_sequence=1,
                    last_sequence=n,
                    origin="score",
                    first_at=float(at[0]),
                    last_at=float(at[-1]),
                    rows=batch.num_rows,
                    lost=0,
                    segment_key=blob.key,
                    segment_bytes=blob.bytes,
                    sealed_at=float(at[-1]),
                    final_at=float(at[-1]),
                )
            )
        self.flags = flag
        self.explored = explored
        return decision_ids

    @staticmethod
    def matrix(served: Served, rows: Rows) -> np.ndarray:
        """Return rows as the model scores them."""
        known = served.ranker.categories_
        assert known is not None
        words = {word: float(i) for i, word in enumerate(known[2])}
        return np.column_stack([rows.a, rows.b, [words.get(word, np.nan) for word in rows.word]])

    def know(
        self,
        decision_ids: Sequence[str],
        labels: Sequence[bool | None],
        known_at: float | Sequence[float],
        *,
        event_at: float | None = None,
        entities: bool = False,
    ) -> None:
        """Record outcomes of decisions, or with `entities` of ids."""
        n = len(decision_ids)
        times = [known_at] * n if isinstance(known_at, float) else [*known_at]
        nothing: list[Any] = [None] * n
        outcomes = Outcomes(
            decision_id=nothing if entities else [*decision_ids],
            id=[*decision_ids] if entities else nothing,
            label=[None if label is None else str(int(label)) for label in labels],
            event_at=[event_at] * n,
            known_at=times,
            source=nothing,
            weight=nothing,
            amount=nothing,
            has_known_at=[True] * n,
        )
        with self.db.write() as session:
            session.add(
                OutcomeSegment(
                    id=new_id("seg"),
                    owner=self.owner,
                    rows=n,
                    first_known_at=min(times),
                    last_known_at=max(times),
                    segment_key=None,
                    segment_bytes=None,
                    content=outcomes.as_json(),
                    received_at=max(times),
                )
            )

    def week(self, number: int, size: int = 1000, *, slope: float = SLOPE, **given: Any) -> Rows:
        """Record a week of decisions and all outcomes, ten days later. The first week is number 1."""
        rows = draw(self.rng, size, slope, given.pop("shift", 0.0))
        start = MONDAY + (number - 1) * WEEK
        ids = self.decide(start, rows, **given)
        self.know(ids, rows.y.tolist(), start + WEEK + 10 * DAY)
        return rows


def age_datasets(db: Database) -> None:
    """Make all datasets older than the simulated decisions: a shadow model is compared only on later ones."""
    with db.write() as session:
        session.execute(update(Dataset).values(created_at=1.0))
