"""The job that imports a model: it reads the file, and measures the ranker on a dataset.

No row of the dataset is a training row, so all of them are held out. The model is then like a trained one that was
validated on a dataset: `app.training.tasks` stores it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app.datasets.matrices import Floats, Table
from app.datasets.service import lineage_of, lock_datasets, ready_dataset
from app.datasets.tasks import find_to_read
from app.ingest.fields import join_names
from app.ingest.values import CATEGORICAL, DATETIME, category, read_number
from app.jobs import repository as job_repository
from app.jobs import uploads
from app.jobs.kinds import Claim, JobKind
from app.jobs.parameters import TrainingParameters
from app.jobs.progress import Callback
from app.jobs.service import IMPORT, enqueue
from app.models import repository as model_repository
from app.models.imported import IMPORTED
from app.models.service import VALIDATION
from app.platform.blobs import Blob, BlobKey
from app.platform.callers import check_model
from app.platform.documents import Feature, Imported, Member, UnknownCategories
from app.platform.errors import Invalid, check_name, counted, shown
from app.platform.ids import is_id
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import DatasetKind, Job
from app.training import tasks
from app.training.plan import SERVED, Plan, as_finished
from app.training.progress import MEASURING, Reporter
from app.training.records import FIT, FitPart, TrainPayload, TrainResult, TrainSpec
from app.training.service import check_protected_features, describe_protected

if TYPE_CHECKING:
    from core.base.ranker import Ranker

FILE, EXPECTED = "file", "expected"
"""The parts of the request that the job reads: the model, and the raw scores that it must have."""
IMPOSSIBLE_CATEGORY = "impossible_category"
"""The code of the error for a category that no row of the dataset can have."""
EXPECTED_SCORES = "expected_scores"
"""The code of the error for a model with other scores."""
MAX_ONE_SIDED = 0.75
"""The fraction of a feature's splits that may have all rows on one side without a note."""
MAX_DIFFERENCE = 1e-9
"""Between a score and the expected one, relative to it if it is above 1: a text may round."""


@dataclass(frozen=True)
class ImportRequest:
    """What a caller says of a model file; see `core.import_model`. `missing` is the text of a number, since JSON has no
    NaN. `expected` has a score per line.
    """

    name: str
    dataset_id: str
    missing: str | None = None
    n_trees: int | None = None
    features: Sequence[str] | None = None
    categories: Mapping[str, Sequence[str]] | Sequence[str] | None = None
    protected_features: Sequence[str] = ()
    expected: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    author: str | None = None


class ImportPayload(TrainPayload):
    """The payload in the fit process; `expected` is a file, too."""

    file: str
    expected: str | None
    missing_tokens: Sequence[str] | None


def check(session: Session, owner: str, request: ImportRequest) -> TrainSpec:
    """Return the job's specification. Raises Invalid, NotFound, Conflict or Forbidden."""
    name = request.name
    if is_id(name, "mdl"):
        raise _wrong("name", f"name must not look like an id, got {name!r}")
    try:
        check_name("name", name)
    except Invalid as error:
        raise _wrong("name", error.detail) from error
    check_model(name)
    dataset = ready_dataset(session, owner, request.dataset_id, {"parameter": "dataset_id"})
    if dataset.kind != DatasetKind.BIPARTITE or dataset.query is not None:
        kind = "bipartite with queries" if dataset.query is not None else dataset.kind
        raise _wrong(
            "dataset_id",
            f"a model can be imported with a dataset of kind bipartite without queries; {dataset.id} is of kind {kind}",
            code="wrong_kind",
        )
    also = check_protected_features(request.protected_features, dataset)
    declared = {
        name: getattr(request, name) for name in ("missing", "n_trees", "features", "categories")
    }
    spec: Any = {
        "validation_dataset": lineage_of(dataset),
        "algorithm": {
            "name": IMPORTED,
            "parameters": {name: value for name, value in declared.items() if value is not None},
        },
        "objective": {},  # unknown
        "validation": {"method": "dataset", "dataset_id": dataset.id},
        "search": None,
        "model_name": name,
        "imported": {"model": None, "imported_by": request.author},
        "protected_columns": describe_protected(dataset, also, request.author),
        **TrainingParameters().as_spec(),
    }
    checked: TrainSpec = spec
    return checked


def _wrong(parameter: str, detail: str, code: str | None = None) -> Invalid:
    return Invalid(detail, code=code, errors=[{"parameter": parameter, "detail": detail}])


def submit(
    session: Session,
    settings: Settings,
    owner: str,
    request: ImportRequest,
    file: Blob,
    expected: Blob | None,
) -> Job:
    """Check the request, and create its job in the caller's transaction."""
    lock_datasets(session, owner, request.dataset_id)
    spec = check(session, owner, request)
    if (same := model_repository.find_by_artifact(session, owner, file.sha256)) is not None:
        spec["imported"]["model"] = {"id": same.id, "name": same.name, "version": same.version}
    given = {FILE: file} if expected is None else {FILE: file, EXPECTED: expected}
    job = enqueue(
        session,
        settings,
        owner=owner,
        kind=IMPORT,
        name=request.name,
        spec=spec,
        tags=request.tags,
        dataset_id=request.dataset_id,
        adds_bytes=sum(blob.bytes for blob in given.values()),
    )
    for part, blob in given.items():
        uploads.add(session, job, part, blob, "application/octet-stream")
    return job


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> ImportPayload:
    file = uploads.find(session, claim.owner, claim.job_id, FILE)
    expected = job_repository.find_upload(session, claim.owner, claim.job_id, EXPECTED)
    return {
        **tasks.prepare(session, settings, claim, workdir),
        "validation_table": None,  # the table itself
        "file": BlobKey(file.upload_key),
        "expected": None if expected is None else BlobKey(expected.upload_key),
        "missing_tokens": find_to_read(session, claim.owner, claim.dataset_id).reading["missing"],
    }


def run(payload: ImportPayload, callback: Callback) -> TrainResult:
    """Only computes, on the files that the payload names."""
    from app.training.bipartite import scores_file
    from app.training.fitting import FitContext
    from app.training.result import put_together
    from core import artifact

    data = Path(payload["file"]).read_bytes()
    spec, table = payload["spec"].copy(), payload["table"].copy()
    declared = spec["algorithm"]["parameters"]
    ranker, source = _read(data, declared, table["features"], payload["missing_tokens"])
    table["features"] = _features_of(ranker, table["features"])
    imported: Imported = {
        **spec["imported"],
        "source": source,
        "sha256": hashlib.sha256(data).hexdigest(),
        "dataset_sha256": getattr(ranker, "data_sha256_", None),
        "unknown_categories": None,
    }
    described = ranker.get_parameters()
    if (trained_by := getattr(ranker, "source_", None)) is not None:
        described["source"] = trained_by
    described |= {name: declared[name] for name in ("missing", "n_trees") if name in declared}
    spec["algorithm"] = {"name": IMPORTED, "parameters": described}
    narrowed: ImportPayload = {**payload, "spec": spec, "table": table}
    reporter = Reporter(spec, callback)
    context, folder = FitContext(narrowed, reporter), Path(payload["workdir"]) / "served"
    folder.mkdir()
    split_data = context.split_data(SERVED)
    reporter.enter(MEASURING)
    served = context.serve(ranker, folder)
    if payload["expected"] is not None:
        scores = np.load(folder / scores_file(VALIDATION), mmap_mode="r")
        is_float32 = getattr(ranker, "is_float32_", False)
        _compare(Path(payload["expected"]), scores, is_float32=is_float32)
    rows = split_data.table(VALIDATION)
    assert rows is not None
    imported["unknown_categories"] = unknown = _count_unknown(ranker, rows)
    served["empty_features"] = []  # of the training rows, which are unknown
    served["trial_notes"] = list(split_data.notes)
    if payload["expected"] is None:
        served["trial_notes"] += _note_unknown(unknown, len(rows.y))
        served["trial_notes"] += _note_units(ranker, rows, table["features"])
    evaluated = spec["validation_dataset"]
    if evaluated is not None and imported["dataset_sha256"] == evaluated["sha256"]:
        served["trial_notes"].append(
            "the file states that the model was trained on this dataset, so the metrics are too optimistic"
        )
    member: Member = {"algorithm": IMPORTED, "parameters": described, "weight": 1.0}
    part: FitPart = {"what": FIT, "scope": None, "members": [member]}
    finished = [as_finished(0, 0, part, served)]
    result = put_together(narrowed, Plan(spec, context), context.data, finished)
    algorithm = artifact.algorithm_of(ranker)
    assert algorithm is not None  # or it could not have been saved
    return {**result, "algorithm": algorithm, "imported": imported}


def _read(
    data: bytes,
    declared: Mapping[str, Any],
    features: Sequence[Feature],
    missing_tokens: Sequence[str] | None,
) -> tuple[Ranker, str]:
    """Return the ranker, and what wrote the file."""
    from core.importing.reading import make_ranker, open_model

    if is_artifact(data):
        return _read_artifact(data, declared)
    missing = declared.get("missing")
    model, columns = open_model(
        data,
        columns=[feature["name"] for feature in features],
        features=declared.get("features"),
        categories=declared.get("categories"),
        missing=None if missing is None else float(missing),
        n_trees=declared.get("n_trees"),
    )
    types = {feature["name"]: feature["type"] for feature in features}
    words: list[Sequence[Any] | None] = []
    for name, own, is_set in zip(columns.names, columns.words, model.is_categorical, strict=True):
        if own is None or types[name] == CATEGORICAL:
            words.append(own and read_categories(name, own, missing_tokens))
        else:  # the codes of an ordered category, unless its words are numbers
            are_codes = not is_set and all(read_number(category(word)) is None for word in own)
            words.append(None if are_codes else own)
    return make_ranker(model, columns._replace(words=words)), model.source


def read_categories(
    name: str, words: Sequence[str | float], missing_tokens: Sequence[str] | None
) -> list[str]:
    """Return a model's categories of a feature as they are in the dataset.

    An import reads values only here. Invalid: a dataset cannot have one, or has two of them as one.
    """
    import pyarrow as pa

    from app.ingest.value_columns import MissingTokens

    tokens = MissingTokens(missing_tokens)
    texts = list(map(category, words))
    meant: dict[str, object] = {}
    for word, text, read in zip(
        words, texts, tokens.categories(pa.array(texts, pa.string())).to_pylist(), strict=True
    ):
        remedy = "Write another word in the table, and declare categories with it"
        if read is None:
            if text:
                others = [
                    each for each in tokens.codes.tokens if category(each).lower() != text.lower()
                ]
                remedy = f"Read the dataset again with missing={join_names(others) or ','}"
            raise Invalid(
                f"category {shown(word)} of feature {shown(name)} counts as missing in the dataset. {remedy}",
                code=IMPOSSIBLE_CATEGORY,
            )
        if read in meant:
            raise Invalid(
                f"categories {shown(meant[read])} and {shown(word)} of feature {shown(name)} are both read as "
                f"{shown(read)}. {remedy}",
                code=IMPOSSIBLE_CATEGORY,
            )
        meant[read] = word
    return list(meant)


def is_artifact(data: bytes) -> bool:
    """Whether the bytes begin as safetensors: the length of a JSON header, less than 4 GiB, and the header."""
    return data[4:9] == b"\0\0\0\0{"


def _read_artifact(data: bytes, declared: Mapping[str, Any]) -> tuple[Ranker, str]:
    from core import artifact
    from core.errors import ArtifactError, InvalidParameter

    if declared:
        raise InvalidParameter(f"{', '.join(declared)} must not be declared: an artifact says it")
    ranker, version = artifact.read(data)
    names = getattr(ranker, "feature_names_in_", None)
    if ranker.target != "binary" or not hasattr(ranker, "classes_"):
        raise ArtifactError(
            "a model must be trained on rows with one label of two classes; the artifact's ranker is a "
            f"{type(ranker).__name__} of several labels, of pairs or of grades"
        )
    if names is None or len(set(names)) != len(names):
        raise ArtifactError("the features of an artifact must have distinct names")
    return ranker, getattr(ranker, "source_", f"Rankwright {version}")


def _features_of(ranker: Ranker, columns: Sequence[Feature]) -> list[Feature]:
    """Return the columns of the ranker's features, in its order. Raises Invalid for one that is missing, or of another
    type.
    """
    known = {column["name"]: column for column in columns}
    features = []
    for name, words in zip(ranker.feature_names_in_.tolist(), ranker.categories_, strict=True):
        column = known.get(name)
        if column is None:
            raise Invalid(
                f"feature {shown(name)} of the model must be a feature of the dataset, which has "
                f"{', '.join(map(shown, list(known)[:20]))}",
                code="unknown_column",
            )
        is_categorical = column["type"] == CATEGORICAL
        if is_categorical != (words is not None):
            kind, other = (
                "numeric",
                ", or declare its categories if the model compares the codes of ordered ones",
            )
            if words is not None:
                kind, other = CATEGORICAL, ""
            raise Invalid(
                f"feature {shown(name)} is {kind} in the model, but {column['type']} in the dataset: read the "
                f"dataset again with {kind}={name}{other}",
                code="unknown_column",
            )
        features.append(column)
    return features


def _count_unknown(ranker: Ranker, rows: Table) -> list[UnknownCategories]:
    """Return the features of which rows have a category that the ranker does not know."""
    found: list[UnknownCategories] = []
    for j, (own, known) in enumerate(zip(rows.categories, ranker.categories_, strict=True)):
        unknown = set(own or ()) - set(known or ())
        places = [k for k, word in enumerate(own or ()) if word in unknown]
        if places and (count := int(np.isin(rows.column(j), places).sum())):
            found.append({"feature": rows.names[j], "rows": count})
    return found


def _note_unknown(found: Sequence[UnknownCategories], n_rows: int) -> list[str]:
    if not found:
        return []
    counts = [f"{shown(each['feature'])} in {each['rows']:,}" for each in found]
    return [
        f"the model does not know the category of {_some(counts)} of {n_rows:,} rows, where it counts as missing. "
        "Check the categories and their order"
    ]


def _note_units(ranker: Ranker, rows: Table, columns: Sequence[Feature]) -> list[str]:
    """Return a note of numbers that few splits divide: they may have another unit in the model."""
    from core import ImportedTrees

    if not isinstance(ranker, ImportedTrees):
        return []
    splits = ranker.ensemble_.splits
    splits = splits[(splits["set"] < 0) & splits["speaks_of_missing"]]
    splits = splits[np.argsort(splits["feature"], kind="stable")]
    features, starts = np.unique(splits["feature"], return_index=True)
    found, dates = [], ""
    for j, cuts in zip(features.tolist(), np.split(splits["threshold"], starts[1:]), strict=False):
        values = rows.column(j)
        values = values[~np.isnan(values)]
        low, high = values.min(initial=math.inf), values.max(initial=-math.inf)
        one_sided = np.count_nonzero((cuts < low) | (cuts >= high))
        if low < high and one_sided > MAX_ONE_SIDED * len(cuts):
            of_model = f"{cuts.min():g} to {cuts.max():g}"
            found.append(f"{shown(rows.names[j])} ({low:g} to {high:g}, in the model {of_model})")
            if columns[j]["type"] == DATETIME:
                dates = " The model gets dates as seconds since 1970."
    if not found:
        return []
    return [
        f"most splits of the model have all rows on one side, by {_some(found)}.{dates} If it was trained on "
        "numbers in another unit, such as 12 for 12 %, or days for dates, upload the dataset with these numbers"
    ]


def _some(texts: Sequence[str]) -> str:
    return ", ".join(texts[:5]) + (f" and {len(texts) - 5} others" if len(texts) > 5 else "")


def _compare(expected: Path, scores: Floats, *, is_float32: bool) -> None:
    """Raise Invalid unless the scores are those that the caller expects, row by row."""
    lines = expected.read_bytes().split()
    wanted = np.empty(len(lines))
    for row, text in enumerate(lines):
        try:
            wanted[row] = float(text)
        except ValueError:
            wanted[row] = math.nan
        if not math.isfinite(wanted[row]):
            raise Invalid(
                f"expected must have a finite number on each line, got {shown(text.decode(errors='replace'))} for row "
                f"{row + 1}",
                code=EXPECTED_SCORES,
            )
    if len(wanted) != len(scores):
        raise Invalid(
            f"expected must have a score for each of the {len(scores):,} rows of the dataset, got {len(wanted):,}",
            code=EXPECTED_SCORES,
        )
    if is_float32:
        differs = wanted.astype(np.float32) != scores.astype(np.float32)
    else:
        differs = np.abs(wanted - scores) > MAX_DIFFERENCE * np.maximum(np.abs(wanted), 1.0)
    if differs.any():
        row = int(np.argmax(differs))
        rows = counted(int(differs.sum()), "row", "rows")
        raise Invalid(
            f"the scores must be the expected ones, but row {row + 1} has {scores[row]!s} instead of {wanted[row]!s}: "
            f"{rows} of {len(scores):,} differ. Check the categories and their order, what is missing, and the number "
            "of trees",
            code=EXPECTED_SCORES,
        )


def complete(
    session: Session, claim: Claim, result: TrainResult, published: tasks.Published
) -> None:
    """Write the model under its algorithm, and delete the file."""
    spec = {**claim.spec, "algorithm": {"name": result["algorithm"], "parameters": {}}}
    tasks.complete(session, replace(claim, spec=spec), result, published)
    uploads.delete(session, claim.owner, claim.job_id)


KIND = JobKind(
    name=IMPORT,
    changes_model=True,
    prepare=prepare,
    run=run,
    publish=tasks.publish,
    complete=complete,
    before_retry=uploads.refuse_retry,
    on_end=uploads.delete_at_end,
)
