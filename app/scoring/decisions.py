"""Decisions: the scorings of entities by an alias with feedback, with what outcomes need later to be interpreted.

Scoring draws the rows to review and encodes the decisions. A `DecisionSink` stores them; scoring knows only this
interface of it (`app.feedback.log` implements it).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, spell
from app.models.service import AliasFeedback
from app.platform.callers import Caller
from app.platform.documents import PeriodKind, StoredFeedback
from app.platform.ids import id_at, new_id

if TYPE_CHECKING:
    import pyarrow as pa

    from app.scoring.features import FeatureIndex, LoadedModel
    from core.base.ranker import Floats

Flags = npt.NDArray[np.bool_]

KIND = "decisions"
"""Kind of the blobs that have decisions."""
DECISION_ID, REVIEW = "decision_id", "review"
"""Columns of a response: the id of the decision, and whether the row is to be reviewed."""
FEATURE = "feature."
"""Prefix of the columns of features, so that no feature has the name of another column."""
PROTECTED = "protected."
"""Prefix of the protected columns, which are recorded apart from the features."""
PIECE_BYTES = 1 << 18
"""Decisions are encoded in pieces of about this size."""
REPEAT_SECONDS = 3600
"""A repeated request has the same decision ids if it is of the same hour."""
_ID_HASH_BYTES = 8
_PREFIX = "dec"


class SegmentFeature(NamedTuple):
    """A recorded feature and its type (`app.ingest.values`), or a protected column, which is categorical."""

    name: str
    type: str
    protected: bool = False

    @property
    def column(self) -> str:
        """The name of its column in a segment."""
        return (PROTECTED if self.protected else FEATURE) + self.name


class DecisionStream(NamedTuple):
    """What the decisions of one file have in common: the alias, the recorded features of its model, and then the
    protected columns.
    """

    owner: str
    name: str
    alias: str
    features: tuple[SegmentFeature, ...]


class DecisionSink(Protocol):
    """Takes encoded decisions."""

    def append(self, stream: DecisionStream, piece: Piece, *, wait: bool = False) -> None:
        """Store a piece, or count its decisions as lost. In the API's process it never raises.

        With `wait`, it may wait some seconds for space, else it returns at once.
        """


class Piece(NamedTuple):
    """Some encoded decisions, and their number."""

    rows: int
    content: bytes


class SegmentFile:
    """A sink that writes decisions to a Parquet file of this machine, which becomes a segment."""

    def __init__(self, path: Path, features: Sequence[SegmentFeature]) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(path, schema_of(features), compression="zstd")
        self.rows = 0

    def append(self, stream: DecisionStream, piece: Piece, *, wait: bool = False) -> None:
        """Raises OSError."""
        self._writer.write_batch(decode(stream.owner, stream.features, [piece.content]))
        self.rows += piece.rows

    def close(self) -> None:
        """It may be called again."""
        self._writer.close()


class DecisionBlock(msgspec.Struct, array_like=True, frozen=True):
    """A request's encoded decisions: what they share, and columns. Numbers are little-endian, flags one byte."""

    at: float
    revision: int
    alias_revision: int
    model_id: str
    threshold: float | None
    caller: str | None
    origin: str
    request_id: str | None
    decision_ids: list[str]
    ids: list[str | None] | None
    scores: bytes
    probabilities: bytes | None
    explored: bytes
    propensities: bytes
    keeps: bytes
    numbers: bytes
    """The features that are not categorical, row by row."""
    words: list[list[str | None]]
    """The categorical features, each with its categories of the rows."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(DecisionBlock).decode


class Decisions(NamedTuple):
    """The ids of the decisions about rows, and which of the rows are to be reviewed."""

    ids: list[str]
    review: Flags

    def columns(self) -> dict[str, Any]:
        import pyarrow as pa

        return {DECISION_ID: pa.array(self.ids, pa.string()), REVIEW: self.review}

    def take(self, rows: npt.NDArray[np.intp]) -> Decisions:
        return Decisions([self.ids[row] for row in rows], self.review[rows])

    @staticmethod
    def join(parts: Sequence[Decisions | None]) -> Decisions | None:
        """Return None if the decisions were not recorded."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        ids = [id_ for part in known for id_ in part.ids]
        return Decisions(ids, np.concatenate([part.review for part in known]))


class Drawn(NamedTuple):
    """What was drawn for rows: `propensities` (the probability that the outcome is looked for, NaN if unknown), `keeps`
    (that the decision is recorded), and the `kept` decisions.
    """

    review: Flags
    explored: Flags
    propensities: npt.NDArray[np.float32]
    keeps: npt.NDArray[np.float32]
    kept: Flags


_YES, _NO, _ONE = np.ones(1, np.bool_), np.zeros(1, np.bool_), np.ones(1, np.float32)
_FLAGGED = Drawn(_YES, _NO, _ONE, _ONE, _YES)
_UNFLAGGED = Drawn(_NO, _NO, np.full(1, np.nan, np.float32), _ONE, _YES)
"""What is drawn for one row if nothing is explored and all decisions are recorded."""


def hash_ids(owner: str, ids: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Hash ids of entities to 64 bits, keyed by the owner, so that those of two owners cannot be compared."""
    return _hash(blake2b(digest_size=_ID_HASH_BYTES, key=_key(owner)), ids)


def hash_id(owner: str, id_: str) -> int:
    """Return the hash of one id, as `hash_ids` does."""
    return int(hash_ids(owner, [id_])[0])


def _key(*words: str) -> bytes:
    return blake2b("\0".join(words).encode(), digest_size=16).digest()


def _hash(keyed: blake2b, texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return the 64 bits of a keyed hash of each text."""
    digests = bytearray()
    for text in texts:
        hashed = keyed.copy()
        hashed.update(text.encode())
        digests += hashed.digest()
    return np.frombuffer(bytes(digests), "<u8").astype(np.uint64, copy=False)


def period_of(at: float, period: PeriodKind) -> str:
    """Return the name of the calendar period of a time in UTC, such as 2026-W05."""
    moment = time.gmtime(at)
    if period == "day":
        return time.strftime("%Y-%m-%d", moment)
    return time.strftime("%Y-%m" if period == "month" else "%G-W%V", moment)


class Recorder:
    """Draws and encodes the decisions of an alias with one version of its model; immutable."""

    def __init__(
        self,
        owner: str,
        feedback: AliasFeedback,
        served: LoadedModel,
        sink: DecisionSink,
        types: Sequence[str] | None = None,
    ) -> None:
        """A feature of the settings that this version lacks is not recorded. `types` replace those of `served`."""
        self.sink = sink
        self._feedback, settings = feedback, feedback.settings
        features, categories = served.features, served.ranker.categories_
        wanted = features.names if settings["features"] is None else settings["features"]
        known = set(wanted)
        self._positions = [i for i, name in enumerate(features.names) if name in known]
        types = features.types if types is None else types
        words = [None if categories is None else categories[i] for i in self._positions]
        self.columns, protected = _with_protected(settings, served)
        self._words: list[tuple[int, Sequence[str]]] = [
            (i, w) for i, w in zip(self._positions, words, strict=True) if w is not None
        ]
        self._words += [(i, w) for _, i, w in protected]
        self._numbers = [i for i, w in zip(self._positions, words, strict=True) if w is None]
        self._is_whole = self._numbers == list(range(len(self.columns.names)))
        self.stream = DecisionStream(
            owner,
            feedback.name,
            feedback.alias,
            tuple(
                SegmentFeature(features.names[i], CATEGORICAL if word is not None else types[i])
                for i, word in zip(self._positions, words, strict=True)
            )
            + tuple(SegmentFeature(name, CATEGORICAL, True) for name, *_ in protected),
        )
        alias = f"{feedback.name}@{feedback.alias}"
        self._ids = blake2b(digest_size=10, key=_key(owner, alias, "ids"))
        self._exploration = blake2b(digest_size=8, key=_key(owner, alias, "explore"))
        self._sampling = blake2b(digest_size=8, key=_key(owner, alias, "keep"))
        # Every row counts: ids, hashes and numbers of a decision take about 120 bytes.
        self.rows_per_piece = max(1, PIECE_BYTES // (120 + 16 * len(self._positions)))

    def decision_ids(
        self, X: Floats, ids: Sequence[str | None] | None, at: float, key: str | None, start: int
    ) -> list[str]:
        """Return a new id for each row. With the `key` of a repeatable request, a repetition gets the same ids.

        start: the number of the first row within the request.
        """
        if key is None:
            return [new_id(_PREFIX) for _ in range(len(X))]
        begin = at // REPEAT_SECONDS * REPEAT_SECONDS
        made = []
        for row, (values, id_) in enumerate(zip(X, ids or repeat(None), strict=False), start):
            hashed = self._ids.copy()
            hashed.update(f"{key}\0{row}\0{'' if id_ is None else id_}\0".encode())
            hashed.update(np.ascontiguousarray(values).data)
            made.append(id_at(_PREFIX, begin, hashed.digest()))
        return made

    def draw(
        self,
        flags: Flags | None,
        decision_ids: Sequence[str],
        ids: Sequence[str | None] | None,
        at: float,
    ) -> Drawn:
        """Draw the rows to explore, and the decisions to record.

        The same entity is explored in all or none of its decisions of one period. An explored row is always recorded:
        its review costs more than its storage, and given that it is explored, its `keep` is 1.
        """
        n, settings = len(decision_ids), self._feedback.settings
        if n == 1 and settings["explore"] is None and settings["keep"] == 1:  # the most frequent
            return _FLAGGED if flags is not None and flags[0] else _UNFLAGGED
        flagged = np.zeros(n, np.bool_) if flags is None else flags
        explored = np.zeros(n, np.bool_)
        # Without exploration, nobody knows how likely the outcome of an unflagged row is to be looked for.
        propensities = np.where(flagged, 1.0, np.nan).astype(np.float32)
        review, explore = flagged, settings["explore"]
        if explore is not None:
            side = flagged if explore["of"] == "flagged" else ~flagged
            rows = np.flatnonzero(side)
            monitor = settings["monitor"]
            period = period_of(at, "week" if monitor is None else monitor["period"])
            names = (
                decision_ids
                if ids is None
                else [a or b for a, b in zip(ids, decision_ids, strict=True)]
            )
            drawn = _hash(self._exploration, [f"{period}\0{names[row]}" for row in rows.tolist()])
            explored[rows] = _below(drawn, explore["rate"])
            propensities = np.where(side, explore["rate"], 1.0).astype(np.float32)
            review = explored | ~side
        keep = settings["keep"]
        keeps, kept = np.ones(n, np.float32), np.ones(n, np.bool_)
        if keep < 1:
            kept = _below(_hash(self._sampling, decision_ids), keep) | explored
            keeps = np.where(explored, 1.0, keep).astype(np.float32)
        return Drawn(review, explored, propensities, keeps, kept)

    def encode(
        self,
        served: LoadedModel,
        X: Floats,
        scores: Floats,
        decision_ids: Sequence[str],
        ids: Sequence[str | None] | None,
        drawn: Drawn,
        common: Common,
    ) -> Iterator[Piece]:
        """Yield the recorded decisions, encoded in pieces."""
        probabilities = _probabilities(served, scores)
        if len(X) == 1 and drawn.kept[0]:  # the most frequent
            numbers = X if self._is_whole else X[:, self._numbers]
            columns = (scores, drawn.explored, drawn.propensities, drawn.keeps)
            words = [(X[:, i], texts) for i, texts in self._words]
            yield self._piece(
                served, common, decision_ids, ids, columns, probabilities, numbers, words
            )
            return
        rows: npt.NDArray[np.intp] | slice = slice(None)  # mostly all are recorded, often one
        count = len(X)
        if not drawn.kept.all():
            rows = np.flatnonzero(drawn.kept)
            count = len(rows)
        numbers = X[rows] if self._is_whole else X[rows][:, self._numbers]
        words = [(X[rows, i], texts) for i, texts in self._words]
        taken = np.arange(len(X))[rows].tolist()
        columns = (scores, drawn.explored, drawn.propensities, drawn.keeps)
        kept = [column[rows] for column in columns]
        if probabilities is not None:
            probabilities = probabilities[rows]
        for start in range(0, count, self.rows_per_piece):
            some = slice(start, start + self.rows_per_piece)
            yield self._piece(
                served,
                common,
                [decision_ids[row] for row in taken[some]],
                None if ids is None else [ids[row] for row in taken[some]],
                [column[some] for column in kept],
                None if probabilities is None else probabilities[some],
                numbers[some],
                [(column[some], texts) for column, texts in words],
            )

    def _piece(
        self,
        served: LoadedModel,
        common: Common,
        decision_ids: Sequence[str],
        ids: Sequence[str | None] | None,
        columns: Iterable[npt.NDArray[Any]],
        probabilities: Floats | None,
        numbers: Floats,
        words: Iterable[tuple[Floats, Sequence[str]]],
    ) -> Piece:
        """`columns` are scores, explored, propensities and keeps."""
        score, explored, propensity, keep = columns
        block = DecisionBlock(
            common.at,
            self._feedback.revision,
            self._feedback.alias_revision,
            served.model_id,
            served.flag_threshold,
            common.caller,
            common.origin,
            common.request_id,
            list(decision_ids),
            None if ids is None else list(ids),
            score.tobytes(),
            None if probabilities is None else probabilities.tobytes(),
            explored.tobytes(),
            propensity.tobytes(),
            keep.tobytes(),
            numbers.tobytes(),
            [_as_words(column, texts) for column, texts in words],
        )
        return Piece(len(decision_ids), _encode(block))


def _with_protected(
    settings: StoredFeedback, served: LoadedModel
) -> tuple[FeatureIndex, list[tuple[str, int, Sequence[str]]]]:
    """Return the columns that a row to record may have, and the protected ones: name, position and words.

    One that is a categorical feature of the model is recorded from it. One that is another feature is not recorded.
    """
    features, groups = served.features, settings["protected"]
    if groups is None:
        return features, []
    columns, categories = groups["columns"], served.ranker.categories_
    added = {name: words for name, words in columns.items() if name not in features.names}
    found: list[tuple[str, int, Sequence[str]]] = [
        (name, len(features.names) + i, words) for i, (name, words) in enumerate(added.items())
    ]
    for name in columns.keys() - added.keys():
        position = features.names.index(name)
        own = None if categories is None else categories[position]
        if own is not None:
            found.append((name, position, own))
    return features.with_protected(added), sorted(found)


class Common(NamedTuple):
    """What the decisions of a request have in common."""

    at: float
    caller: str | None
    origin: str
    request_id: str | None


def _probabilities(served: LoadedModel, scores: Floats) -> Floats | None:
    if served.calibration is None:
        return None
    calibration = served.calibration.calibration
    if len(scores) == 1:  # which is faster
        return np.array([calibration.probability_of(scores.item())])
    return calibration.probability(scores)


def _below(hashes: npt.NDArray[np.uint64], rate: float) -> Flags:
    """Return which hashes are among this fraction of the smallest."""
    return hashes < np.uint64(min(rate * 2.0**64, 2**64 - 1)) if rate < 1 else hashes >= 0


def _as_words(positions: Floats, words: Sequence[str]) -> list[str | None]:
    """Return None for a missing value or an unknown category."""
    return [None if at != at else words[int(at)] for at in positions.tolist()]  # noqa: PLR0124  # NaN


@dataclass(eq=False)
class Recording:
    """The decisions of one request. They reach the sink only by `commit`, so a request that fails records nothing.

    `spool`: a file for the encoded decisions of a table that is too large for memory.
    """

    recorder: Recorder
    common: Common
    repeat_key: str | None = None
    spool: BinaryIO | None = None

    def __post_init__(self) -> None:
        self._start = 0
        self._pieces: list[Piece] = []

    def add(
        self, served: LoadedModel, X: Floats, scores: Floats, ids: Sequence[Any] | None
    ) -> Decisions:
        """Make decisions about the next rows of the request, which may lack the protected columns."""
        if absent := len(self.recorder.columns.names) - X.shape[1]:
            X = np.pad(X, ((0, 0), (0, absent)), constant_values=np.nan)
        named = None if ids is None else [_as_text(each) for each in ids]
        at, recorder = self.common.at, self.recorder
        decision_ids = recorder.decision_ids(X, named, at, self.repeat_key, self._start)
        self._start += len(X)
        flags = None if served.flag_threshold is None else scores >= served.flag_threshold
        drawn = recorder.draw(flags, decision_ids, named, at)
        pieces = recorder.encode(served, X, scores, decision_ids, named, drawn, self.common)
        if self.spool is None:
            self._pieces += pieces
        else:
            for count, content in pieces:
                self.spool.write(b"%d %d\n" % (count, len(content)) + content)
        return Decisions(decision_ids, drawn.review)

    def commit(self) -> None:
        """Hand the decisions to the sink. Those of a large table may wait for space."""
        for piece in self._pieces:
            self.recorder.sink.append(self.recorder.stream, piece)
        self._pieces.clear()
        if self.spool is not None:
            self.spool.seek(0)
            while head := self.spool.readline():
                count, size = map(int, head.split())
                piece = Piece(count, self.spool.read(size))
                self.recorder.sink.append(self.recorder.stream, piece, wait=True)


def recording_of(
    recorder: Recorder, scope: Mapping[str, Any], caller: Caller, spool: BinaryIO | None = None
) -> Recording:
    """`scope` is the request's ASGI scope."""
    # Not X-Request-ID: a proxy may send the same one with every request.
    keys = [value for name, value in scope["headers"] if name == b"idempotency-key"]
    key = keys[-1].decode("latin-1") if keys and keys[-1] else None
    common = Common(time.time(), caller.key_id, "score", scope["request_id"])
    return Recording(recorder, common, key, spool)


def _as_text(id_: object) -> str | None:
    """Return the text under which outcomes are found, without surrounding spaces."""
    return None if id_ is None else spell(id_) or None  # type: ignore[arg-type]  # of JSON


def schema_of(features: Iterable[SegmentFeature] = ()) -> pa.Schema:
    """Return the columns of a segment with these features.

    `propensity` is the probability that the outcome is looked for (1 for rows that are always reviewed, null if it is
    unknown), and `keep` the probability that the decision was recorded. A decision without a calibrated model has no
    `probability`; one without a guarantee has no `threshold` and no `flag`.
    """
    import pyarrow as pa

    words = pa.dictionary(pa.int32(), pa.string())
    columns = {
        "decision_id": pa.string(),
        "id": pa.string(),
        "id_hash": pa.uint64(),
        "at": pa.float64(),
        "revision": pa.int32(),
        "alias_revision": pa.int32(),
        "model_id": words,
        "score": pa.float64(),
        "probability": pa.float64(),
        "threshold": pa.float64(),
        "flag": pa.bool_(),
        "explored": pa.bool_(),
        "propensity": pa.float32(),
        "keep": pa.float32(),
        "caller": words,
        "origin": words,
        "request_id": pa.string(),
    }
    null = {
        "id",
        "id_hash",
        "probability",
        "threshold",
        "flag",
        "propensity",
        "caller",
        "request_id",
    }
    types = {CATEGORICAL: words, BOOLEAN: pa.bool_(), DATETIME: pa.timestamp("us", tz="UTC")}
    fields = [pa.field(name, kind, name in null) for name, kind in columns.items()]
    fields += [pa.field(each.column, types.get(each.type, pa.float64())) for each in features]
    return pa.schema(fields)


def decode(
    owner: str, features: Sequence[SegmentFeature], contents: Iterable[bytes]
) -> pa.RecordBatch:
    """Return encoded decisions as rows of a segment. Raises msgspec.DecodeError, or ValueError, if one is damaged."""
    import pyarrow as pa

    blocks, schema = [_decode(content) for content in contents], schema_of(features)
    sizes = [len(block.decision_ids) for block in blocks]

    def constant(name: str) -> pa.Array:
        """Return a column of what a block's decisions have in common."""
        values = pa.array([getattr(block, name) for block in blocks])
        return values.take(pa.array(np.repeat(np.arange(len(blocks)), sizes)))

    def numbers(name: str, kind: str) -> npt.NDArray[Any]:
        parts = [getattr(block, name) for block in blocks]
        if None in parts:
            absent = np.array([np.nan]).tobytes()
            parts = [
                absent * n if part is None else part for part, n in zip(parts, sizes, strict=True)
            ]
        return np.frombuffer(b"".join(parts), kind)

    def texts(name: str) -> list[str | None]:
        found: list[str | None] = []
        for block, n in zip(blocks, sizes, strict=True):
            found += getattr(block, name) or [None] * n
        return found

    scores, thresholds, ids = numbers("scores", "<f8"), constant("threshold"), texts("ids")
    limits = thresholds.cast(pa.float64()).to_numpy(zero_copy_only=False)
    unflagged = np.array([block.threshold is None for block in blocks], np.bool_)
    columns = [
        pa.array(texts("decision_ids"), pa.string()),
        pa.array(ids, pa.string()),
        pa.array(
            hash_ids(owner, [id_ or "" for id_ in ids]),
            mask=np.array([id_ is None for id_ in ids], np.bool_),
        ),
        constant("at"),
        constant("revision"),
        constant("alias_revision"),
        constant("model_id"),
        pa.array(scores),
        pa.array(numbers("probabilities", "<f8"), from_pandas=True),
        thresholds,
        pa.array(scores >= limits, mask=np.repeat(unflagged, sizes)),
        pa.array(numbers("explored", "?")),
        pa.array(numbers("propensities", "<f4"), from_pandas=True),
        pa.array(numbers("keeps", "<f4")),
        constant("caller"),
        constant("origin"),
        constant("request_id"),
    ]
    n_numbers = sum(feature.type != CATEGORICAL for feature in features)
    table = np.frombuffer(b"".join(block.numbers for block in blocks), "<f8")
    by_number = iter(table.reshape(len(scores), n_numbers).T)
    by_word = iter(zip(*(block.words for block in blocks), strict=True))
    for feature in features:
        if feature.type == CATEGORICAL:
            columns.append(pa.array(list(chain.from_iterable(next(by_word))), pa.string()))
        else:
            columns.append(_as_column(feature.type, next(by_number)))
    return pa.RecordBatch.from_arrays(
        [_cast(column, field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return column.cast(pa.string()).dictionary_encode()
    return column if column.type == kind else column.cast(kind)


def _as_column(kind: str, found: Floats) -> pa.Array:
    import pyarrow as pa

    absent = np.isnan(found)
    if kind == BOOLEAN:
        return pa.array(found == 1, mask=absent)
    if kind == DATETIME:
        micro = np.round(np.where(absent, 0.0, found) * 1e6)
        return pa.array(micro.astype(np.int64), mask=absent).cast(pa.timestamp("us", tz="UTC"))
    return pa.array(found, mask=absent)
