"""Reasons for scores: the caller's options, and the columns of a response.

A reason is a contribution to the difference between the row's score and the score of a reference, described by the
reason codes of the model's name. All contributions of a row, including those without a reason, sum to that difference.
If scores are sums over features, the contributions are the `Ranker.shapley_values` of the row minus those of an average
row. Otherwise they are Shapley values relative to a few stored rows of the reference: see `core.explain.sampling`.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from pydantic import Field
from typing_extensions import TypedDict

from app.datasets.protected import is_protected, protected_features_of
from app.ingest.fields import ChoiceField, FlagField, NumberField, QueryFields, WholeField
from app.ingest.values import CATEGORICAL, NUMERIC, spell_as
from app.models import reason_codes, repository
from app.platform.documents import StoredReasonEntry
from app.platform.errors import Invalid, NotFound, refuse_all, shown
from app.platform.sql import Json, Reading, Session
from app.platform.tables import REFERENCE_ROWS, Model, ModelReference
from app.scoring.features import FeatureIndex
from app.training.interpretation import CLASSES, class_part
from core import explain
from core.base.table import CodedTable
from core.errors import InvalidParameter
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    import pyarrow as pa

    from app.scoring.features import LoadedModel
    from core.base.ranker import Floats, Ranker
    from core.explain import Reference

Texts = npt.NDArray[np.object_]

REASONS, REFERENCE = "reasons", "reference"
NEGATIVE, AVERAGE, CUTOFF = "negative", "average", "cutoff"
REFERENCES = (NEGATIVE, AVERAGE, CUTOFF)
RAISES, LOWERS, BOTH = "raises", "lowers", "both"
DIRECTIONS = (RAISES, LOWERS, BOTH)
MAX_REASONS = 20
MAX_ROWS = 1_000
"""Rows of a request whose reasons are computed at once. Jobs have no such limit."""
MAX_STEPS = 5_000_000_000
"""Steps that the Shapley values of a request's rows may take: some seconds."""
MAX_SCORED = 200_000
"""Rows that may be scored for the estimated reasons of a request: some seconds. A job divides any number of rows."""
VISITED_PER_SCORED = 1_000
"""Nodes of ranking trees that count as one scored row, where reasons are exact: so a request may visit 200 million."""
MAX_ESTIMATED_FEATURES = 700
"""Features of a model with estimated reasons: of one row, with `REFERENCE_ROWS`, `MAX_SCORED` rows are not exceeded."""
REST, REFERENCE_SCORE = "reasons_rest", "reference_score"
PARTS, ROWS, CONTRIBUTIONS = "parts", "rows", "contributions"
METHODS = {
    PARTS: (
        "`parts`: the score is a sum over features; exact Shapley values minus those of the average "
        "row."
    ),
    ROWS: (
        "`rows`: Shapley values in which an unknown feature has its value from a row of the "
        "reference. They are exact for ranking trees, and where at most seven features differ from "
        "that row; otherwise they are estimated from permutations, with an `error`."
    ),
}
"""How the contributions of reasons are found."""
EXPLAIN_METHODS = {
    CONTRIBUTIONS: (
        "`contributions`: the score is a sum over features; in trees, the change at each split is "
        "attributed to its feature."
    ),
    ROWS: METHODS[ROWS],
}
"""How those of `…/explain` are."""

_CELLS_AT_ONCE = 1 << 20
_ESTIMATED_AT_ONCE = 16  # rows, which take some seconds
_SOURCES_FILE = "reasons.npz"


@dataclass(frozen=True)
class ReasonOptions:
    """Options for reasons: number, reference, direction, and whether protected columns are left out."""

    n: int
    reference: str = NEGATIVE
    direction: str = RAISES
    threshold: float | None = None
    exclude_protected: bool = False

    def as_json(self) -> Json:
        """Return JSON for a job's row."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, kept: Mapping[str, Any] | None) -> ReasonOptions | None:
        """Inverse of `as_json`; None for None."""
        return None if kept is None else cls(**kept)

    @property
    def names(self) -> tuple[str, ...]:
        numbered = range(1, self.n + 1)
        whats = ("code", "text", "contribution", "error")
        numbered_names = (f"reason_{k}_{what}" for k in numbered for what in whats)
        return (*numbered_names, REST, REFERENCE_SCORE)


class ReasonFields(QueryFields):
    """The query parameters for reasons. A model's feature of the same name takes precedence."""

    reasons: Annotated[int | None, WholeField(least=1, most=MAX_REASONS)] = Field(
        default=None,
        description="Number of reasons, 1 to 20: the largest contributions to the difference between the score "
        "and the reference. For models whose scores are not sums over features they are estimates, "
        "each with its standard error.",
    )
    reference: Annotated[str, ChoiceField(words=dict.fromkeys(REFERENCES))] = Field(
        default=NEGATIVE,
        description="Reference that the score is compared with. `negative`: the average negative row. `average`: "
        "the average training row. `cutoff`: the cutoff of the alias, or `threshold`. Default: "
        "`negative`.",
    )
    direction: Annotated[str, ChoiceField(words=dict.fromkeys(DIRECTIONS))] = Field(
        default=RAISES,
        description="`raises`: reasons why the score is high. `lowers`: reasons why it is low. `both`: both. "
        "Default: `raises`.",
    )
    threshold: Annotated[float | None, NumberField()] = Field(
        default=None, description="Score to compare with, for `reference=cutoff`."
    )
    exclude_protected: Annotated[bool, FlagField()] = Field(
        default=False,
        description="Leave protected columns out of the reasons, for example for the letter about an adverse "
        "decision. Their contributions remain part of the score and are in the rest. Protected are the features that "
        "were declared so in the upload, and those whose names suggest it. Default: false.",
    )

    def options(self) -> ReasonOptions | None:
        """Return None for no reasons. Raises Invalid for contradicting parameters."""
        if self.reasons is None:
            refuse_all(
                [
                    {
                        "parameter": name,
                        "detail": f"{name} applies to reasons: request some, for example reasons=3",
                    }
                    for name in type(self).model_fields
                    if name in self.model_fields_set
                ]
            )
            return None
        if self.threshold is not None and self.reference != CUTOFF:
            detail = f"threshold requires reference=cutoff, got {shown(self.reference)}"
            raise Invalid(detail, errors=[{"parameter": "threshold", "detail": detail}])
        return ReasonOptions(
            self.reasons, self.reference, self.direction, self.threshold, self.exclude_protected
        )


def has_parts(algorithm: str) -> bool:
    """Return False if scores are never sums of contributions of features."""
    from core.base.ranker import Ranker

    known = algorithm in ALGORITHMS
    return not known or ALGORITHMS[algorithm].shapley_values is not Ranker.shapley_values


class AverageRows(NamedTuple):
    """The average negative and the average positive of a part of the data; `rows` is the number of negatives."""

    part: str
    rows: int
    scores: list[float]
    parts: Floats
    """The mean parts of their scores, shape (2, n_features)."""


def average_rows_of(row: ModelReference) -> AverageRows:
    parts = [np.frombuffer(each, dtype="<f8") for each in (row.negative_parts, row.positive_parts)]
    scores = [row.negative_score, row.positive_score]
    return AverageRows(row.part, row.negatives, scores, np.stack(parts))


class ReferenceRows(NamedTuple):
    """A few rows whose mean score is the reference, for scores that are not sums of contributions."""

    part: str
    X: Floats
    weight: Floats


ReferenceSamples = Mapping[str, ReferenceRows]
"""By class, `negative` and `positive`, or `average`."""


def read_references(session: Session, model_id: str) -> ReferenceSamples:
    """Return as many stored reference rows as reasons use."""
    names = {class_part(part, of): (part, of) for part in ("train", "validation") for of in CLASSES}
    names["train"] = "train", AVERAGE
    found = {}
    for name, (part, of) in names.items():
        stored = repository.find_reference_rows(session, model_id, name)
        if stored is not None:
            X = np.frombuffer(stored.values, dtype="<f8").reshape(stored.rows, -1)
            weight = None if stored.weight is None else np.frombuffer(stored.weight, dtype="<f8")
            found[of] = ReferenceRows(part, X, np.ones(len(X)) if weight is None else weight)
    return found


class ReasonSources(NamedTuple):
    """The stored data for a model's reasons: average rows or sampled rows, and a revision of the reason codes."""

    average_rows: AverageRows | None
    samples: ReferenceSamples
    revision: int | None
    entries: Sequence[StoredReasonEntry]
    protected: Collection[str] = ()
    """The features that are protected columns."""


def protected_features(model: Model) -> list[str]:
    """Return features declared as protected in the upload, or protected by their names."""
    declared = protected_features_of(model)
    names = (feature["name"] for feature in model.features)
    return [name for name in names if name in declared or is_protected(name)]


class SourcesFile(TypedDict):
    """The data for reasons in the payload of a job: the arrays are in a file; `average_rows` has no arrays here."""

    average_rows: tuple[str, int, list[float]] | None
    parts: dict[str, str]
    entries: Sequence[StoredReasonEntry]
    protected: list[str]


def write_sources(
    session: Session, model: Model, entries: Sequence[StoredReasonEntry], workdir: Path
) -> SourcesFile:
    """Write the data for `read_sources`."""
    model_id = model.id
    stored = repository.find_reference(session, model_id)
    average_rows = None if stored is None else average_rows_of(stored)
    samples = read_references(session, model_id)
    arrays = {} if average_rows is None else {"average_rows": average_rows.parts}
    for of, rows in samples.items():
        arrays |= {f"{of}_X": rows.X, f"{of}_weight": rows.weight}
    np.savez(workdir / _SOURCES_FILE, **cast(Any, arrays))
    return {
        "average_rows": None if average_rows is None else average_rows[:3],
        "parts": {of: rows.part for of, rows in samples.items()},
        "entries": entries,
        "protected": protected_features(model),
    }


def read_sources(written: SourcesFile, workdir: Path) -> ReasonSources:
    """Inverse of `write_sources`."""
    with np.load(workdir / _SOURCES_FILE, allow_pickle=False) as arrays:
        samples = {
            of: ReferenceRows(part, arrays[f"{of}_X"], arrays[f"{of}_weight"])
            for of, part in written["parts"].items()
        }
        of_average = written["average_rows"]
        average_rows = None
        if of_average is not None:
            average_rows = AverageRows(*of_average, arrays["average_rows"])
    return ReasonSources(average_rows, samples, None, written["entries"], written["protected"])


def _read_sources(
    session: Session, owner: str, model_id: str, *, is_sum: bool
) -> tuple[ReasonSources, DictionaryLayout | None]:
    """Read the data for reasons, with the entries of the reason codes or their cached layout."""
    model = _find(session, owner, model_id)
    stored = repository.find_reference(session, model.id)
    average_rows = None if stored is None else average_rows_of(stored)
    samples = {} if is_sum else read_references(session, model.id)
    protected = protected_features(model)
    revision = repository.latest_reason_revision(session, owner, model.name)
    layout = _LAYOUTS.get((model_id, revision))
    codes = None
    if revision is not None and layout is None:
        codes = repository.find_reason_codes(session, owner, model.name)
    if codes is None:
        return ReasonSources(average_rows, samples, revision, [], protected), layout
    return ReasonSources(average_rows, samples, codes.revision, codes.entries, protected), None


def stored_references(session: Session, model: Model) -> Collection[str]:
    """Return the references that the stored rows support."""
    if repository.find_reference(session, model.id) is not None:
        return REFERENCES
    samples = read_references(session, model.id)
    members = model.parameters.get("members")
    algorithms = [each["algorithm"] for each in members] if members else [model.algorithm]
    # A mean rank of several members is no sum of contributions.
    is_sum = len(algorithms) == 1 and has_parts(algorithms[0])
    return _references_of(samples, is_sum=is_sum)


def _references_of(samples: ReferenceSamples, *, is_sum: bool) -> Collection[str]:
    """Return the references supported without stored average rows."""
    found = [AVERAGE] if is_sum or AVERAGE in samples else []
    return [*found, NEGATIVE, CUTOFF] if all(of in samples for of in CLASSES) else found


def check_options(
    options: ReasonOptions, *, labels: bool, cutoff: bool, references: Collection[str]
) -> None:
    """Raise Invalid for reasons that a model does not support, before it is loaded.

    `cutoff` is True if the request names an alias with a guarantee. `references` are the ones that the model can have.
    """
    if labels:
        raise _refusal(REASONS, "reasons require a model with one score per row", "not_additive")
    if options.reference == CUTOFF and options.threshold is None and not cutoff:
        raise _refusal(
            REFERENCE,
            "reference=cutoff requires threshold, or an alias with a guarantee",
            code="no_reference",
        )
    if options.reference not in references:
        raise _no_reference(options.reference, references)


def _no_reference(wanted: str, references: Collection[str]) -> Invalid:
    if wanted == AVERAGE:
        detail = "rows of the training data, but none are stored with this model"
        ways = "Train it again"
    else:
        detail = (
            "an average negative: a model of pairs has none, and this model has no stored rows of each "
            "class"
        )
        ways = "Use reference=average, or train the model again"
    if AVERAGE not in references:
        ways = "Train it again"
    return _refusal(REFERENCE, f"reference={wanted} requires {detail}. {ways}", "no_reference")


def _refusal(parameter: str, detail: str, code: str) -> Invalid:
    return Invalid(detail, code=code, errors=[{"parameter": parameter, "detail": detail}])


def too_many_rows(most: int) -> Invalid:
    detail = (
        f"reasons are computed for at most {most} rows of this model per request: send more to POST "
        "/v1/batch-scores"
    )
    return _refusal(REASONS, detail, "too_many_rows")


def prepare(
    reading: Reading,
    owner: str,
    served: LoadedModel,
    options: ReasonOptions,
    entries: Sequence[StoredReasonEntry] | None = None,
) -> Reasoner:
    """Return what computes a request's reasons; `entries` replace the stored codes. Raises Invalid if unsupported."""
    is_sum = _is_sum(served)
    sources, layout = reading(_read_sources, owner, served.model_id, is_sum=is_sum)
    if entries is not None:
        sources = sources._replace(revision=None, entries=entries)
        layout = _lay_out(entries, served.features, served.features.types)
    elif layout is None:
        layout = _lay_out(sources.entries, served.features, served.features.types)
        _LAYOUTS.put((served.model_id, sources.revision), layout)
    return make_reasoner(served, options, sources, MAX_ROWS, layout=layout, is_sum=is_sum)


def _is_sum(served: LoadedModel) -> bool:
    """Models with several labels count as sums; they are rejected later."""
    n_features = len(served.features.names)
    unknown = np.full((1, n_features), np.nan)
    return served.labels is not None or (
        _parts(served.ranker, served.features.names, unknown) is not None
    )


def average_estimates(reading: Reading, owner: str, served: LoadedModel) -> Estimates:
    """Estimate contributions relative to the average training row, for scores that are not sums. Raises Invalid."""
    if served.labels is not None:
        raise _refusal(
            "label", "contributions require a model with one score per row", "not_additive"
        )
    samples = reading(_read_samples, owner, served.model_id)
    options = ReasonOptions(1, AVERAGE)
    check_options(
        options, labels=False, cutoff=False, references=_references_of(samples, is_sum=False)
    )
    return _estimates_against(served, options, samples, None)[0]


def _read_samples(session: Session, owner: str, model_id: str) -> ReferenceSamples:
    return read_references(session, _find(session, owner, model_id).id)


def _find(session: Session, owner: str, model_id: str) -> Model:
    model = repository.find(session, owner, model_id)
    if model is None:
        raise NotFound(f"there is no model {model_id!r}")
    return model


def make_reasoner(
    served: LoadedModel,
    options: ReasonOptions,
    sources: ReasonSources,
    max_rows: int | None,
    types: Sequence[str] | None = None,
    layout: DictionaryLayout | None = None,
    is_sum: bool | None = None,
) -> Reasoner:
    """Return what computes reasons for at most `max_rows` rows. Raises Invalid if the model does not support reasons.

    `types` are the types of the features, if their index reads all features as numbers. `layout` is the layout of the
    entries, and `is_sum` says whether scores have parts by feature; None if unknown.
    """
    cutoff = options.threshold if options.threshold is not None else served.flag_threshold
    is_sum = _is_sum(served) if is_sum is None else is_sum
    references: Collection[str] = REFERENCES
    if sources.average_rows is None or not is_sum:
        references = _references_of(sources.samples, is_sum=is_sum)
    check_options(
        options, labels=served.labels is not None, cutoff=cutoff is not None, references=references
    )
    measure: _ExactParts | Estimates
    if is_sum:
        measure, described = _parts_against(served, options, sources.average_rows, cutoff)
    else:
        measure, described = _estimates_against(served, options, sources.samples, cutoff)
    described["direction"] = options.direction
    described["dictionary"] = sources.revision
    protected = [name for name in served.features.names if name in sources.protected]
    described |= {
        "protected_features": protected,
        "protected_excluded": options.exclude_protected,
        "warning": _warn_of(protected, excluded=options.exclude_protected),
    }
    types = types or served.features.types
    layout = layout or _lay_out(sources.entries, served.features, types)
    return Reasoner(
        served.ranker, served.features, options, measure, layout, described, max_rows, types
    )


def _warn_of(protected: Sequence[str], *, excluded: bool) -> str | None:
    """Warn that scores depend on protected columns."""
    if not protected:
        return None
    named = ", ".join(map(shown, protected[:MAX_REASONS]))
    if len(protected) > MAX_REASONS:
        named += ", …"
    words = f"the score depends on protected columns: {named}"
    if excluded:
        return f"{words}. They are left out of the reasons, but not of the score"
    return f"{words}. exclude_protected=true leaves them out of the reasons"


def _parts_against(
    served: LoadedModel, options: ReasonOptions, rows: AverageRows | None, cutoff: float | None
) -> tuple[_ExactParts, Json]:
    """Return exact parts relative to the requested reference, and its description."""

    def relative_to(reference: explain.Reference, on: Json) -> tuple[_ExactParts, Json]:
        described = {"kind": options.reference, "score": reference.score, **on, "method": PARTS}
        return _ExactParts(served.ranker, served.features.names, reference), described

    if options.reference == AVERAGE:
        return relative_to(explain.average_reference(served.ranker), {"on": "train", "rows": None})
    assert rows is not None
    negative, positive = map(explain.Reference, rows.scores, rows.parts)
    on = {"on": rows.part, "rows": rows.rows}
    if options.reference == NEGATIVE:
        return relative_to(negative, on)
    return relative_to(_reference_at(cutoff, negative, positive), on)


def _estimates_against(
    served: LoadedModel, options: ReasonOptions, samples: ReferenceSamples, cutoff: float | None
) -> tuple[Estimates, Json]:
    """Return estimates relative to the requested reference, and its description."""

    n_features = len(served.features.names)
    if n_features > MAX_ESTIMATED_FEATURES:
        detail = (
            f"reasons of a {type(served.ranker).__name__} are estimated, which is possible for at most "
            f"{MAX_ESTIMATED_FEATURES} features; the model has {n_features}"
        )
        raise _refusal(REASONS, detail, "too_many_features")

    def of(name: str) -> Estimates:
        rows, n = samples[name], REFERENCE_ROWS
        return Estimates(served.ranker, served.features.names, rows.X[:n], rows.weight[:n])

    first = of(AVERAGE if options.reference == AVERAGE else CLASSES[0])
    part = samples[AVERAGE if options.reference == AVERAGE else CLASSES[0]].part
    on = {"on": part, "rows": len(first.X), "method": ROWS}
    if options.reference != CUTOFF:
        return first, {"kind": options.reference, "score": first.score, **on}
    last, nothing = of(CLASSES[1]), np.zeros(n_features)
    ends = (explain.Reference(each.score, nothing) for each in (first, last))
    _reference_at(cutoff, *ends)
    assert cutoff is not None
    far = (cutoff - first.score) / (last.score - first.score)
    weight = np.concatenate([(1.0 - far) * first.weight, far * last.weight])
    X = np.concatenate([first.X, last.X])
    estimates = Estimates(served.ranker, served.features.names, X, weight)
    estimates.score = cutoff  # apart from rounding it is the mean
    return estimates, {"kind": CUTOFF, "score": cutoff, **on}


def _reference_at(cutoff: float | None, negative: Reference, positive: Reference) -> Reference:
    """Interpolate the reference with the score of the alias's cutoff. Raises Invalid."""

    assert cutoff is not None
    if not math.isfinite(cutoff):
        detail = "the cutoff of the alias flags no score, so there is no score to compare with"
        raise _refusal(REFERENCE, detail, "no_reference")
    try:
        return explain.reference_at(cutoff, negative, positive)
    except InvalidParameter as error:
        raise _refusal(REFERENCE, str(error), "no_reference") from error


class _ExactParts:
    """Computes exact contributions of features, for scores that are sums."""

    def __init__(self, ranker: Ranker, names: Sequence[str], reference: Reference) -> None:
        self._ranker, self._names, self._reference = ranker, names, reference
        self.score = reference.score

    def most_rows(self, rows: int | None) -> int | None:
        """Return the limit for one request; None for no limit."""
        steps = self._ranker.count_shapley_steps()
        return rows if rows is None or not steps else min(rows, max(1, MAX_STEPS // steps))

    def attribute(self, X: Floats) -> explain.ShapleyEstimate:
        """Return the contributions to scores."""
        parts = _parts(self._ranker, self._names, X)
        assert parts is not None
        return explain.ShapleyEstimate(
            parts - self._reference.parts, np.zeros(X.shape), np.ones(len(X), dtype=np.bool_)
        )


class Estimates:
    """Estimates contributions of features to any scores: see `core.explain.shapley_estimate`."""

    def __init__(self, ranker: Ranker, names: Sequence[str], X: Floats, weight: Floats) -> None:
        self._ranker, self._names, self.X = ranker, tuple(names), np.ascontiguousarray(X)
        self.weight = weight / weight.sum()
        self.score = float(self.weight @ ranker.score_rows(self.X))

    def most_rows(self, rows: int | None) -> int | None:
        """Return the limit for one request; None for no limit."""
        if rows is None:
            return None
        scored = explain.count_scored(len(self._names), len(self.X))
        visited = self._ranker.count_visited(len(self.X))
        return min(rows, max(1, MAX_SCORED // max(1, scored, visited // VISITED_PER_SCORED)))

    def attribute(self, X: Floats) -> explain.ShapleyEstimate:
        """Return the estimated contributions to scores."""

        if not len(X):
            return explain.ShapleyEstimate(X, X, np.ones(0, dtype=np.bool_))
        rows, others = (
            CodedTable(each, self._names, self._ranker.categories_) for each in (X, self.X)
        )
        return explain.shapley_estimate(self._ranker, rows, others, self.weight)


@dataclass(frozen=True)
class Reasons:
    """The reasons of rows; if a row has fewer reasons than requested, the last ones are None and NaN."""

    codes: Texts
    """Shape (rows, n); None where the dictionary has no entry."""
    texts: Texts
    columns: list[list[list[str]]]
    """The features of each reason, by row."""
    contributions: Floats
    """Shape (rows, n)."""
    errors: Floats
    """Their standard errors; 0 where a contribution is exact."""
    exact: npt.NDArray[np.bool_]
    """Whether all parts of a row are exact, shape (rows,)."""
    rest: Floats
    """What all other parts of a row sum to, shape (rows,)."""
    described: Json
    """The description of the reference for a response."""

    def as_json(self) -> list[list[Json]]:
        protected = set(self.described["protected_features"])
        return [
            [
                {
                    "code": code,
                    "text": text,
                    "columns": columns,
                    "contribution": part,
                    "error": error,
                    "protected": not protected.isdisjoint(columns),
                }
                for code, text, columns, part, error in zip(
                    self.codes[i],
                    self.texts[i],
                    columns_of_row,
                    self.contributions[i].tolist(),
                    self.errors[i].tolist(),
                    strict=False,
                )
            ]
            for i, columns_of_row in enumerate(self.columns)
        ]

    def as_columns(self) -> dict[str, npt.NDArray[Any]]:
        """See `ReasonOptions.names`."""
        found: dict[str, npt.NDArray[Any]] = {}
        for k in range(self.codes.shape[1]):
            found[f"reason_{k + 1}_code"] = self.codes[:, k]
            found[f"reason_{k + 1}_text"] = self.texts[:, k]
            found[f"reason_{k + 1}_contribution"] = self.contributions[:, k]
            found[f"reason_{k + 1}_error"] = self.errors[:, k]
        score = np.full(len(self.rest), self.described["score"])
        return {**found, REST: self.rest, REFERENCE_SCORE: score}

    @staticmethod
    def join(blocks: Sequence[Reasons]) -> Reasons:
        """Concatenate blocks of rows."""
        if len(blocks) == 1:
            return blocks[0]
        return Reasons(
            np.concatenate([block.codes for block in blocks]),
            np.concatenate([block.texts for block in blocks]),
            [row for block in blocks for row in block.columns],
            np.concatenate([block.contributions for block in blocks]),
            np.concatenate([block.errors for block in blocks]),
            np.concatenate([block.exact for block in blocks]),
            np.concatenate([block.rest for block in blocks]),
            blocks[0].described,
        )


def as_arrow(column: npt.NDArray[Any] | pa.Array) -> pa.Array:
    """A column of objects contains texts and None."""
    import pyarrow as pa

    if not isinstance(column, np.ndarray):
        return column
    if column.dtype == np.object_:
        return pa.array(column.tolist(), pa.string())
    no_reason = column.dtype.kind == "f" and bool(np.isnan(column).any())
    return pa.array(np.ascontiguousarray(column), from_pandas=no_reason)  # False copies nothing


def _parts(ranker: Ranker, names: Sequence[str], X: Floats) -> Floats | None:
    """Return contributions to scores minus the mean training score; None if scores are not sums."""

    try:
        return ranker.shapley_values(CodedTable(X, tuple(names), ranker.categories_))
    except InvalidParameter:
        return None


class _Entry(NamedTuple):
    """An entry of the reason codes, compiled for one model."""

    item: int
    columns: npt.NDArray[np.intp]
    direction: str | None
    applies: Callable[[Floats], npt.NDArray[np.bool_]] | None
    """Of the values of its column: to which the entry applies. None: to all."""


class DictionaryLayout(NamedTuple):
    """Reason codes compiled for one model: the possible reasons are numbered."""

    own: npt.NDArray[np.intp]
    feature_of: dict[int, int]
    n_items: int
    coded: dict[int, tuple[str, str]]
    """By item: code and text."""
    entries: list[_Entry]


class _LayoutCache:
    """The most recently used layouts, by model id and revision of the reason codes. A layout never changes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[tuple[str, int | None], DictionaryLayout] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int | None]) -> DictionaryLayout | None:
        """Return None if it is not cached."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: tuple[str, int | None], layout: DictionaryLayout) -> None:
        """Drop the least recently used layouts over the limit."""
        with self._lock:
            self._held[key] = layout
            self._held.move_to_end(key)
            while len(self._held) > self._size:
                self._held.popitem(last=False)


_LAYOUTS = _LayoutCache(32)


def _lay_out(
    entries: Sequence[StoredReasonEntry], features: FeatureIndex, types: Sequence[str]
) -> DictionaryLayout:
    """Number the features, and each code before the first feature that it covers."""
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
    coded: dict[int, tuple[str, str]] = {}
    laid_out: list[_Entry] = []
    for entry, columns in known:
        item = item_of[0, entry["code"]]
        applies = None
        if reason_codes.is_conditional(entry):
            applies = _condition(entry, columns[0], features, types)
            if applies is None:  # the column has another type in this version
                continue
        coded[item] = entry["code"], entry["text"]
        laid_out.append(_Entry(item, np.array(columns, dtype=np.intp), entry["direction"], applies))
    return DictionaryLayout(own, feature_of, len(order), coded, laid_out)


def _condition(
    entry: StoredReasonEntry, i: int, features: FeatureIndex, types: Sequence[str]
) -> Callable[[Floats], npt.NDArray[np.bool_]] | None:
    """Return a function that finds the values of an entry; None if it does not fit the feature's type."""
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


def _nothing(n_rows: int) -> None:
    """Do nothing."""


class Reasoner:
    """Computes the reasons of rows: their contributions relative to a reference, described by reason codes."""

    def __init__(
        self,
        ranker: Ranker,
        features: FeatureIndex,
        options: ReasonOptions,
        measure: _ExactParts | Estimates,
        layout: DictionaryLayout,
        described: Json,
        max_rows: int | None,
        types: Sequence[str],
    ) -> None:
        self._ranker = ranker
        self._features = features
        self._types = types
        self.options = options
        self._measure = measure
        self.tick: Callable[[int], object] = _nothing
        """It is called with their number after every few rows whose reasons take long: a job reports its progress
        by it, or ends."""
        self.described = described
        self._left = self._max_rows = measure.most_rows(max_rows)
        self._own, self._feature_of, self._n_items, self._coded, self._entries = layout
        names = described["protected_features"] if options.exclude_protected else ()
        self._excluded = np.array([name in names for name in features.names], dtype=np.bool_)

    def of(self, X: Floats, scores: Floats) -> Reasons:
        """X and scores are as in `Served.score`. Raises Invalid for too many rows."""
        self._count(len(X))
        size = max(1, _CELLS_AT_ONCE // self._n_items)
        if isinstance(self._measure, Estimates):
            size = min(size, _ESTIMATED_AT_ONCE)
        starts = range(0, len(X), size) or (0,)
        found = []
        for at in starts:
            block = X[at : at + size]
            found.append(self._of(block, scores[at : at + size]))
            self.tick(len(block))
        return Reasons.join(found)

    def _count(self, n_rows: int) -> None:
        """Raise Invalid once there are too many rows."""
        if self._left is None:
            return
        self._left -= n_rows
        if self._left < 0:
            raise too_many_rows(self._max_rows or 0)

    def _of(self, X: Floats, scores: Floats) -> Reasons:
        names, n = self._features.names, self.options.n
        attributed = explain.ShapleyEstimate(X, X, np.ones(0, dtype=np.bool_))
        if len(X):
            attributed = self._measure.attribute(X)
        # What is left out of the reasons is part of the rest.
        parts = np.where(self._excluded, 0.0, attributed.values)
        part_errors = np.where(self._excluded, 0.0, attributed.errors)
        if not np.isfinite(parts).all():
            raise _refusal(REASONS, "a contribution is too large to be represented", "not_additive")
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
        items, errors_of_items = np.zeros((2, len(X), self._n_items))
        at = np.arange(len(X))[:, np.newaxis], owner
        np.add.at(items, at, parts)
        # Errors within a row are correlated: the error of a sum is at most the sum of the errors.
        np.add.at(errors_of_items, at, part_errors)
        order = explain.largest(items, n, cast(Any, self.options.direction))
        contributions, errors = np.full((2, len(X), n), np.nan)
        found = order >= 0
        for into, each in ((contributions, items), (errors, errors_of_items)):
            into[:, : order.shape[1]][found] = np.take_along_axis(each, order, axis=1)[found]
        rest = scores - self._measure.score - np.nansum(contributions, axis=1)
        codes, texts = np.full((2, len(X), n), None, dtype=object)
        columns: list[list[list[str]]] = []
        for i, row in enumerate(order.tolist()):
            features: list[list[str]] = []
            for k, item in enumerate(row):
                if item < 0:
                    break
                if item in self._coded:
                    codes[i, k], texts[i, k] = self._coded[item]
                    own = (owner[i] == item) & ~self._excluded
                    features.append([names[j] for j in np.flatnonzero(own)])
                else:
                    feature = self._feature_of[item]
                    texts[i, k] = self._plain(feature, X[i, feature])
                    features.append([names[feature]])
            columns.append(features)
        terms = contributions, errors, attributed.exact, rest
        return Reasons(codes, texts, columns, *terms, self.described)

    def _plain(self, i: int, value: float) -> str:
        """Return the text for a feature without reason code."""
        name, categories = self._features.names[i], self._ranker.categories_[i]
        spelled = spell_value(name, categories, self._types[i], value)
        if spelled is None:
            return f"{name} is missing" + " or unknown" * (categories is not None)
        return f"{name} is {spelled}"


def spell_value(name: str, categories: Sequence[str] | None, kind: str, value: float) -> str | None:
    """Return a value as text; None if it is missing or unknown."""
    from core.explain.conditions import spell_number

    if math.isnan(value):
        return None
    if categories is not None:
        return categories[int(value)]
    return spell_number(name, value) if kind == NUMERIC else spell_as(kind, value)
