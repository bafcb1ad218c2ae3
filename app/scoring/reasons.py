"""Reasons beside scores: what a caller may ask, and the columns of an answer.

A reason is a part of the difference between the row's score and the score of a reference, told by the dictionary of
the model's name. All parts of a row, told or not, sum to that difference.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, cast

import numpy as np
import numpy.typing as npt

from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, spell_date
from app.models import reason_codes, repository
from app.platform.documents import ReasonEntry
from app.platform.errors import Invalid, NotFound, refuse_all, shown
from app.platform.sql import Json, Reading, Session
from app.platform.tables import ModelReference
from app.scoring.features import FeatureIndex

if TYPE_CHECKING:
    import pyarrow as pa

    from core.base.ranker import Ranker
    from core.explain import Reference

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.object_]

REASONS, REFERENCE, DIRECTION, THRESHOLD = "reasons", "reference", "direction", "threshold"
NAMES = (REASONS, REFERENCE, DIRECTION, THRESHOLD)
"""The parameters of a query. A model's feature of the same name goes first."""
NEGATIVE, AVERAGE, CUT = "negative", "average", "cut"
REFERENCES = (NEGATIVE, AVERAGE, CUT)
RAISES, LOWERS, BOTH = "raises", "lowers", "both"
DIRECTIONS = (RAISES, LOWERS, BOTH)
REASON_DOCS = {
    REASONS: "Number of reasons, 1 to 20: the parts of the score that set it most apart from the reference. Only for "
    "models whose scores are sums.",
    REFERENCE: "What the score is compared with. `negative`: the average negative row. `average`: the average training "
    "row. `cut`: the threshold of the alias, or `threshold`. Default: `negative`.",
    DIRECTION: "`raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`. Default: `raises`.",
    THRESHOLD: "For `reference=cut`: a score to explain the distance to.",
}
MAX_REASONS = 20
REASON_SCHEMAS: Mapping[str, Json] = {
    REASONS: {"type": "integer", "minimum": 1, "maximum": MAX_REASONS},
    REFERENCE: {"type": "string", "enum": [*REFERENCES]},
    DIRECTION: {"type": "string", "enum": [*DIRECTIONS]},
    THRESHOLD: {"type": "number"},
}
"""What OpenAPI says of the parameters."""
MAX_ROWS = 1_000
"""Rows of a request whose reasons are computed at once. Jobs have no such limit."""
MAX_STEPS = 5_000_000_000
"""Steps that the Shapley values of a request's rows may take: some seconds."""
REST, REFERENCE_SCORE = "reasons_rest", "reference_score"

_MARKS = tuple(name.encode() for name in NAMES)
_CELLS_AT_ONCE = 1 << 20
_AVERAGE_ROWS_FILE = "average_rows.npy"


@dataclass(frozen=True)
class ReasonOptions:
    """The reasons that a caller wants: how many, against what, in which direction."""

    n: int
    reference: str = NEGATIVE
    direction: str = RAISES
    threshold: float | None = None

    def as_json(self) -> Json:
        """Return the options as a job's row stores them."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, kept: Mapping[str, Any] | None) -> ReasonOptions | None:
        """Return the options of `as_json`."""
        return None if kept is None else cls(**kept)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are added to a table."""
        numbered = range(1, self.n + 1)
        told = (f"reason_{k}_{what}" for k in numbered for what in ("code", "text", "contribution"))
        return (*told, REST, REFERENCE_SCORE)


def options_of(parameters: Mapping[str, str]) -> ReasonOptions | None:
    """Return the options that parameters state, None for no reasons; raises Invalid with all errors."""
    if not parameters:
        return None
    errors: list[Json] = []

    def refuse(name: str, detail: str) -> None:
        errors.append({"parameter": name, "detail": detail})

    text = parameters.get(REASONS)
    if text is None:
        for name in parameters:
            refuse(name, f"{name} is for reasons: ask for some, as in reasons=3")
        refuse_all(errors)
    n = int(text) if text and text.isascii() and text.isdigit() and len(text) < 5 else 0
    if not 1 <= n <= MAX_REASONS:
        refuse(
            REASONS, f"reasons must be a whole number from 1 to {MAX_REASONS}, got {shown(text)}"
        )
    chosen = {}
    for name, choices in ((REFERENCE, REFERENCES), (DIRECTION, DIRECTIONS)):
        chosen[name] = parameters.get(name, choices[0])
        if chosen[name] not in choices:
            refuse(name, f"{name} must be {', '.join(choices)}, got {shown(chosen[name])}")
    threshold = None
    if (number := parameters.get(THRESHOLD)) is not None:
        threshold = _number(number)
        if not math.isfinite(threshold):
            refuse(THRESHOLD, f"threshold must be a finite number, got {shown(number)}")
        elif chosen[REFERENCE] != CUT:
            refuse(THRESHOLD, f"threshold needs reference=cut, got {shown(chosen[REFERENCE])}")
    refuse_all(errors)
    return ReasonOptions(n, chosen[REFERENCE], chosen[DIRECTION], threshold)


def _number(text: str) -> float:
    if not text.isascii() or "_" in text or not text.strip():
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def is_asked(query: bytes) -> bool:
    """Return True if a query may have a parameter of `NAMES`; quick, for most have none."""
    return any(mark in query for mark in _MARKS)


def has_parts(algorithm: str) -> bool:
    """Return False for an algorithm whose scores are known not to be sums of exact parts."""
    from core.base.ranker import Ranker
    from core.registry import ALGORITHMS

    known = algorithm in ALGORITHMS
    return not known or ALGORITHMS[algorithm].shapley_values is not Ranker.shapley_values


def additive_algorithms() -> list[str]:
    """Return the algorithms whose scores are sums of exact parts, with some or all parameters."""
    from core.registry import ALGORITHMS

    return [n for n in ALGORITHMS if has_parts(n) and ALGORITHMS[n].target == "binary"]


class AverageRowsFile(TypedDict):
    """The average rows for the process of a job: `file` has their parts."""

    part: str
    rows: int
    scores: list[float]
    file: str


class AverageRows(NamedTuple):
    """The average negative and the average positive of a part of the data; `rows` is the number of negatives."""

    part: str
    rows: int
    scores: list[float]
    parts: Floats
    """The mean parts of their scores, shape (2, n_features)."""

    def write(self, workdir: Path) -> AverageRowsFile:
        """Write them for `read`."""
        np.save(workdir / _AVERAGE_ROWS_FILE, self.parts)
        return {
            "part": self.part,
            "rows": self.rows,
            "scores": self.scores,
            "file": _AVERAGE_ROWS_FILE,
        }

    @classmethod
    def read(cls, written: AverageRowsFile, workdir: Path) -> AverageRows:
        """Return what `write` has written."""
        parts = np.load(workdir / written["file"], allow_pickle=False)
        return cls(written["part"], written["rows"], written["scores"], parts)


def average_rows_of(row: ModelReference) -> AverageRows:
    """Return what a row of the database stores."""
    parts = [np.frombuffer(each, dtype="<f8") for each in (row.negative_parts, row.positive_parts)]
    scores = [row.negative_score, row.positive_score]
    return AverageRows(row.part, row.negatives, scores, np.stack(parts))


class ReasonSources(NamedTuple):
    """What reasons are told by: the average rows of a model, and a revision of its name's dictionary."""

    average_rows: AverageRows | None
    revision: int | None
    entries: Sequence[ReasonEntry]


def _read_sources(
    session: Session, owner: str, model_id: str
) -> tuple[ReasonSources, DictionaryLayout | None]:
    """Return what the reasons of a model are told by now: the entries, or their layout if it is held."""
    model = repository.find(session, owner, model_id)
    if model is None:
        raise NotFound(f"there is no model {model_id!r}")
    stored = repository.find_reference(session, model.id)
    average_rows = None if stored is None else average_rows_of(stored)
    revision = repository.latest_reason_revision(session, owner, model.name)
    layout = _LAYOUTS.get((model_id, revision))
    codes = None
    if revision is not None and layout is None:
        codes = repository.find_reason_codes(session, owner, model.name)
    if codes is None:
        return ReasonSources(average_rows, revision, []), layout
    return ReasonSources(average_rows, codes.revision, codes.entries), None


def check_options(
    options: ReasonOptions, *, labels: bool, algorithm: str | None, cut: bool, reference: bool
) -> None:
    """Raise Invalid for reasons that a model cannot have, by what is known before it is loaded.

    `algorithm` None: its scores are known to have parts. `cut` says that the model was asked for by an alias that keeps
    a promise, `reference` that its average rows are stored.
    """
    if labels:
        raise _refusal(REASONS, "reasons need a model with one score per row", "not_additive")
    if algorithm is not None and not has_parts(algorithm):
        raise not_additive(f"the scores of {algorithm} are no sums of parts by feature")
    if options.reference == CUT and options.threshold is None and not cut:
        raise _refusal(
            REFERENCE,
            "reference=cut needs a threshold, or an alias that keeps a promise",
            code="no_reference",
        )
    if options.reference != AVERAGE and not reference:
        raise _refusal(
            REFERENCE,
            f"the model has no average negative for reference={options.reference}: its scores are no sums, or it was "
            "trained on pairs, or by a version that stored none. Ask for reference=average, or train it again",
            "no_reference",
        )


def not_additive(why: str) -> Invalid:
    """Return the refusal of a model whose scores are no sums."""
    return _refusal(
        REASONS,
        f"{why}, so reasons would not be exact; models that have them: {', '.join(additive_algorithms())}",
        "not_additive",
    )


def _refusal(parameter: str, detail: str, code: str) -> Invalid:
    return Invalid(detail, code=code, errors=[{"parameter": parameter, "detail": detail}])


class LoadedModel(Protocol):
    """A loaded model, as far as its reasons go."""

    @property
    def model_id(self) -> str:
        """Its id."""

    @property
    def ranker(self) -> Ranker:
        """The fitted ranker."""

    @property
    def features(self) -> FeatureIndex:
        """Its features."""

    @property
    def labels(self) -> list[str] | None:
        """The labels of a model that has several."""

    @property
    def flag_threshold(self) -> float | None:
        """The cut of the alias that it was asked for by, if the alias keeps a promise."""


def prepare(reading: Reading, owner: str, served: LoadedModel, options: ReasonOptions) -> Reasoner:
    """Return what computes the reasons of a request's rows; raises Invalid if the model can have none of this kind."""
    sources, layout = reading(_read_sources, owner, served.model_id)
    if layout is None:
        layout = _lay_out(sources.entries, served.features, served.features.types)
        _LAYOUTS.put((served.model_id, sources.revision), layout)
    return make_reasoner(served, options, sources, MAX_ROWS, layout=layout)


def make_reasoner(
    served: LoadedModel,
    options: ReasonOptions,
    sources: ReasonSources,
    max_rows: int | None,
    types: Sequence[str] | None = None,
    layout: DictionaryLayout | None = None,
) -> Reasoner:
    """Return what computes the reasons of at most so many rows of a model; raises Invalid if it can have none.

    `types` are those of the features, where their index reads all as numbers. `layout` is that of the entries, if it
    is known.
    """
    cut = options.threshold if options.threshold is not None else served.flag_threshold
    if served.labels is None:
        _parts(
            served.ranker, served.features.names, np.full((1, len(served.features.names)), np.nan)
        )
    check_options(
        options,
        labels=served.labels is not None,
        algorithm=None,
        cut=cut is not None,
        reference=sources.average_rows is not None,
    )
    reference, described = _reference(served.ranker, options, sources.average_rows, cut)
    described["direction"] = options.direction
    described["dictionary"] = sources.revision
    types = types or served.features.types
    layout = layout or _lay_out(sources.entries, served.features, types)
    return Reasoner(
        served.ranker, served.features, options, reference, layout, described, max_rows, types
    )


def _reference(
    ranker: Ranker, options: ReasonOptions, rows: AverageRows | None, cut: float | None
) -> tuple[Reference, Json]:
    """Return the reference that was asked for, and what an answer says of it."""
    from core.errors import InvalidParameter
    from core.explain import Reference, average_reference, reference_at

    if options.reference == AVERAGE:
        reference = average_reference(ranker)
        return reference, {"kind": AVERAGE, "score": reference.score, "on": "train", "rows": None}
    assert rows is not None
    negative, positive = map(Reference, rows.scores, rows.parts)
    on = {"on": rows.part, "rows": rows.rows}
    if options.reference == NEGATIVE:
        return negative, {"kind": NEGATIVE, "score": negative.score, **on}
    assert cut is not None
    if not math.isfinite(cut):
        detail = "the cut of the alias flags no score, so that there is no distance to it"
        raise _refusal(REFERENCE, detail, "no_reference")
    try:
        return reference_at(cut, negative, positive), {"kind": CUT, "score": cut, **on}
    except InvalidParameter as error:
        raise _refusal(REFERENCE, str(error), "no_reference") from error


@dataclass(frozen=True)
class Reasons:
    """The reasons of rows; where a row has fewer than were asked for, the last are None and NaN."""

    codes: Words
    """Shape (rows, n); None where the dictionary has no entry."""
    texts: Words
    columns: list[list[list[str]]]
    """The features of each reason, by row."""
    contributions: Floats
    """Shape (rows, n)."""
    rest: Floats
    """What all other parts of a row sum to, shape (rows,)."""
    described: Json
    """What an answer says of the reference."""

    def as_json(self) -> list[list[Json]]:
        """Return the reasons by row."""
        return [
            [
                {"code": code, "text": text, "columns": columns, "contribution": part}
                for code, text, columns, part in zip(
                    self.codes[i],
                    self.texts[i],
                    columns_of_row,
                    self.contributions[i].tolist(),
                    strict=False,
                )
            ]
            for i, columns_of_row in enumerate(self.columns)
        ]

    def as_columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of a table, see `ReasonOptions.names`."""
        found: dict[str, npt.NDArray[Any]] = {}
        for k in range(self.codes.shape[1]):
            found[f"reason_{k + 1}_code"] = self.codes[:, k]
            found[f"reason_{k + 1}_text"] = self.texts[:, k]
            found[f"reason_{k + 1}_contribution"] = self.contributions[:, k]
        score = np.full(len(self.rest), self.described["score"])
        return {**found, REST: self.rest, REFERENCE_SCORE: score}

    @staticmethod
    def join(blocks: Sequence[Reasons]) -> Reasons:
        """Return the reasons of blocks of rows as one."""
        if len(blocks) == 1:
            return blocks[0]
        return Reasons(
            np.concatenate([block.codes for block in blocks]),
            np.concatenate([block.texts for block in blocks]),
            [row for block in blocks for row in block.columns],
            np.concatenate([block.contributions for block in blocks]),
            np.concatenate([block.rest for block in blocks]),
            blocks[0].described,
        )


def as_arrow(column: npt.NDArray[Any]) -> pa.Array:
    """Return a column of an answer as an array of Arrow; one of objects holds texts and None."""
    import pyarrow as pa

    if column.dtype == np.object_:
        return pa.array(column.tolist(), pa.string())
    return pa.array(np.ascontiguousarray(column), from_pandas=True)  # NaN: no reason


def _parts(ranker: Ranker, names: Sequence[str], X: Floats) -> Floats:
    """Return the parts of scores, less the mean training score; raises Invalid if they have none."""
    from core.base.table import CodedTable
    from core.errors import InvalidParameter

    try:
        return ranker.shapley_values(CodedTable(X, tuple(names), ranker.categories_))
    except InvalidParameter as error:
        raise not_additive(str(error)) from error


class _Entry(NamedTuple):
    """An entry of a dictionary for one model."""

    item: int
    columns: npt.NDArray[np.intp]
    direction: str | None
    applies: Callable[[Floats], npt.NDArray[np.bool_]] | None
    """Of the values of its column: to which the entry applies. None: to all."""


class DictionaryLayout(NamedTuple):
    """A dictionary laid out for one model: what may be a reason is numbered."""

    own: npt.NDArray[np.intp]
    feature_of: dict[int, int]
    n_items: int
    told: dict[int, tuple[str, str]]
    entries: list[_Entry]


class _LayoutCache:
    """The layouts that were used last, by the model's id and the revision of the dictionary, which never change."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[tuple[str, int | None], DictionaryLayout] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int | None]) -> DictionaryLayout | None:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: tuple[str, int | None], layout: DictionaryLayout) -> None:
        with self._lock:
            self._held[key] = layout
            self._held.move_to_end(key)
            while len(self._held) > self._size:
                self._held.popitem(last=False)


_LAYOUTS = _LayoutCache(32)


def _lay_out(
    entries: Sequence[ReasonEntry], features: FeatureIndex, types: Sequence[str]
) -> DictionaryLayout:
    """Number what may be a reason: each feature, and each code before the first feature that it tells."""
    position = {name: i for i, name in enumerate(features.names)}
    known = [
        (entry, [position[name] for name in entry["columns"] if name in position])
        for entry in entries
    ]
    known = [(entry, columns) for entry, columns in known if columns]
    first: dict[str, int] = {}
    for entry, columns in known:
        first[entry["code"]] = min(first.get(entry["code"], columns[0]), *columns)
    order = sorted(
        [(i, 1, name) for i, name in enumerate(features.names)]
        + [(i, 0, code) for code, i in first.items()]
    )
    item_of = {(kind, name): item for item, (_, kind, name) in enumerate(order)}
    own = np.array([item_of[1, name] for name in features.names], dtype=np.intp)
    feature_of = {item_of[1, name]: i for name, i in position.items()}
    told_by: dict[int, tuple[str, str]] = {}
    laid_out: list[_Entry] = []
    for entry, columns in known:
        item = item_of[0, entry["code"]]
        applies = None
        if reason_codes.is_conditional(entry):
            applies = _condition(entry, columns[0], features, types)
            if applies is None:  # the column is of another type in this version
                continue
        told_by[item] = entry["code"], entry["text"]
        laid_out.append(_Entry(item, np.array(columns, dtype=np.intp), entry["direction"], applies))
    return DictionaryLayout(own, feature_of, len(order), told_by, laid_out)


def _condition(
    entry: ReasonEntry, i: int, features: FeatureIndex, types: Sequence[str]
) -> Callable[[Floats], npt.NDArray[np.bool_]] | None:
    """Return what tells the values to which an entry applies; None if it does not fit the feature's type."""
    kind, index = types[i], features.categories[i]
    categories, missing = entry["categories"], entry["missing"]
    ends = [entry["min"], entry["max"]]
    low, high = (
        None if end is None else reason_codes.end_of(kind, end) if index is None else None
        for end in ends
    )
    if (categories is not None) != (index is not None) and categories is not None:
        return None
    if any(end is not None for end in ends) and (index is not None or kind == CATEGORICAL):
        return None
    if (low is None) != (ends[0] is None) or (high is None) != (ends[1] is None):
        return None
    codes = None
    if categories is not None and index is not None:
        codes = np.array([index[text] for text in categories])
        codes = codes[~np.isnan(codes)]
    with_known = missing is not True or any(e is not None for e in (*ends, categories))

    def applies(values: Floats) -> npt.NDArray[np.bool_]:
        unknown = np.isnan(values)
        found = ~unknown if with_known else np.zeros(len(values), dtype=np.bool_)
        if low is not None:
            found &= values >= low
        if high is not None:
            found &= values <= high
        if codes is not None:
            found &= np.isin(values, codes)
        return found | unknown if missing else found

    return applies


class Reasoner:
    """Computes reasons of rows: the parts of their scores, less those of a reference, told by a dictionary."""

    def __init__(
        self,
        ranker: Ranker,
        features: FeatureIndex,
        options: ReasonOptions,
        reference: Reference,
        layout: DictionaryLayout,
        described: Json,
        max_rows: int | None,
        types: Sequence[str],
    ) -> None:
        self._ranker = ranker
        self._features = features
        self._types = types
        self.options = options
        self._reference = reference
        self.described = described
        self._left = max_rows
        self._max_rows = max_rows
        self._own, self._feature_of, self._n_items, self._told, self._entries = layout

    def of(self, X: Floats, scores: Floats) -> Reasons:
        """Return the reasons of rows; X and scores are those of `Served.score`. Raises Invalid for too many rows."""
        self._count(len(X))
        size = max(1, _CELLS_AT_ONCE // self._n_items)
        starts = range(0, len(X), size) or (0,)
        return Reasons.join([self._of(X[at : at + size], scores[at : at + size]) for at in starts])

    def _count(self, n_rows: int) -> None:
        """Count rows, and raise Invalid once they are too many."""
        if self._left is None or self._max_rows is None:
            return
        most = self._max_rows
        if steps := self._ranker.count_shapley_steps():
            most = min(most, max(1, MAX_STEPS // steps))
        self._left -= n_rows
        if self._left < self._max_rows - most:
            detail = (
                f"reasons are computed for at most {most} rows of this model at once; send more "
                "to POST /v1/batch-scores"
            )
            raise _refusal(REASONS, detail, "too_many_rows")

    def _of(self, X: Floats, scores: Floats) -> Reasons:
        from core.explain import largest

        names, n = self._features.names, self.options.n
        parts = np.zeros(X.shape)
        if len(X):
            parts = _parts(self._ranker, names, X) - self._reference.parts
        if not np.isfinite(parts).all():
            raise _refusal(REASONS, "a part of a score is too large to be told", "not_additive")
        owner = np.full(X.shape, -1, dtype=np.intp)
        for entry in self._entries:
            free = owner[:, entry.columns] < 0
            if entry.applies is not None:
                free &= entry.applies(X[:, entry.columns[0]])[:, np.newaxis]
            if entry.direction is not None:
                total = np.where(free, parts[:, entry.columns], 0.0).sum(axis=1)
                free &= (total > 0 if entry.direction == RAISES else total < 0)[:, np.newaxis]
            owner[:, entry.columns] = np.where(free, entry.item, owner[:, entry.columns])
        owner = np.where(owner < 0, self._own, owner)
        items = np.zeros((len(X), self._n_items))
        np.add.at(items, (np.arange(len(X))[:, np.newaxis], owner), parts)
        order = largest(items, n, cast(Any, self.options.direction))
        contributions = np.full((len(X), n), np.nan)
        found = order >= 0
        contributions[:, : order.shape[1]][found] = np.take_along_axis(items, order, axis=1)[found]
        rest = scores - self._reference.score - np.nansum(contributions, axis=1)
        codes, texts = np.full((2, len(X), n), None, dtype=object)
        columns: list[list[list[str]]] = []
        for i, row in enumerate(order.tolist()):
            told: list[list[str]] = []
            for k, item in enumerate(row):
                if item < 0:
                    break
                if item in self._told:
                    codes[i, k], texts[i, k] = self._told[item]
                    told.append([names[j] for j in np.flatnonzero(owner[i] == item)])
                else:
                    feature = self._feature_of[item]
                    texts[i, k] = self._plain(feature, X[i, feature])
                    told.append([names[feature]])
            columns.append(told)
        return Reasons(codes, texts, columns, contributions, rest, self.described)

    def _plain(self, i: int, value: float) -> str:
        """Return the phrase for a feature of which the dictionary has no entry."""
        from core.explain.conditions import spell_number

        name, categories = self._features.names[i], self._ranker.categories_[i]
        if math.isnan(value):
            return f"{name} is missing" + " or unknown" * (categories is not None)
        if categories is not None:
            return f"{name} is {categories[int(value)]}"
        kind = self._types[i]
        if kind == BOOLEAN:
            return f"{name} is {'true' if value else 'false'}"
        return f"{name} is {spell_date(value) if kind == DATETIME else spell_number(name, value)}"


def take(query: bytes, features: Collection[str]) -> tuple[bytes, ReasonOptions | None]:
    """Return a query without the parameters of `NAMES`, and what they say; raises Invalid."""
    from app.scoring.probabilities import take_parameters

    left, parameters = take_parameters(query, NAMES, features)
    return left, options_of(parameters)
