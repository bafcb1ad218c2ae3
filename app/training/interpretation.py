"""Samples and importances: the data that are stored with a model for its interpretation.

Sampled rows are personal data: they are deleted with the dataset from which they were drawn. The definition of
importance depends on the kind of ranker, and responses include it, because values of two methods cannot be compared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from app.datasets.matrices import Floats, Rows, StoredTable, Table, blocks_of
from app.jobs import repository as job_repository
from app.jobs.kinds import shown_state
from app.models import repository
from app.models.service import find, find_label
from app.platform.documents import FeatureImportance, HeldOutBins, HeldOutFeature
from app.platform.errors import NotFound
from app.platform.sql import Session
from app.platform.tables import REFERENCE_ROWS, Model, ModelImportance
from app.training.records import ImportanceRecord, ReferenceRecord, SampleFile
from core import explain
from core import metrics as core_metrics
from core.base.table import to_matrix
from core.errors import InvalidParameter

if TYPE_CHECKING:
    from core.base.ranker import Ranker

MAX_ROWS = 1_000
MIN_ROWS = 100
MAX_VALUES = 500_000
"""A sample has at most `MAX_ROWS` rows, and at most `MAX_VALUES` numbers (4 MB); of a wide table `MIN_ROWS` rows."""

_ROWS_AT_ONCE = 1 << 16


def draw(table: Table, seed: int, rows: Rows | None = None) -> Table:
    """Draw rows of weight above 0 (among `rows`), in random order, so that the first rows are a sample, too."""
    return table.take(_drawn(table, seed, rows))


def _drawn(table: Table, seed: int, rows: Rows | None = None) -> Rows:
    among = np.arange(len(table.X)) if rows is None else rows
    return _draw(table, seed, among, _max_rows(table))


def draw_classes(table: Table, seed: int) -> Table:
    """Draw equally many rows of each class, if there are enough: they estimate the AUC best."""
    half = _max_rows(table) // 2
    drawn = [_draw(table, seed, np.flatnonzero(table.y == y), half) for y in (0, 1)]
    return table.take(np.concatenate(drawn))


def _max_rows(table: Table) -> int:
    n_features: int = table.X.shape[1]
    return min(MAX_ROWS, max(MIN_ROWS, MAX_VALUES // n_features))


def _draw(table: Table, seed: int, among: Rows, n_rows: int) -> Rows:
    if table.weight is not None:
        among = among[table.weight[among] > 0]
    generator = np.random.Generator(np.random.Philox(key=seed % 2**64))
    return generator.permutation(among)[:n_rows]


CLASSES = ("negative", "positive")
MAX_REFERENCE_ROWS = 10_000
"""Rows of a class that an average row is the mean of."""
MIN_REFERENCE_ROWS = 10
MAX_REFERENCE_CELLS = 4_000_000
MAX_REFERENCE_STEPS = 500_000_000
"""Steps that the parts of these rows may take, about half a second; fewer rows are drawn if they would take more."""
REFERENCE_FILE = "reference.npy"
MAX_BINNED_ROWS = 100_000
"""Held-out rows that are counted in the bins of a scorecard."""
ROUNDED_PDO = (5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 75.0, 100.0)
"""Points to double the odds for which the AUC of whole points is measured."""


@contextmanager
def read_together(tables: Sequence[Table], seed: int) -> Iterator[None]:
    """Read the rows for `draw` and `measure_reference` together, for tables in one file (of several: the last)."""
    *_, evaluated = tables
    if not isinstance(evaluated, StoredTable):
        yield
        return
    source, wanted = evaluated.source, []
    for table in tables:
        if isinstance(table, StoredTable) and table.source is source:
            rows = [_drawn(table, seed)]
            if table is evaluated:
                rows += _draw_reference(table, seed, _max_reference_rows(table))
            wanted.append(table.source_rows(np.unique(np.concatenate(rows))))
    source.keep(np.unique(np.concatenate(wanted)))
    try:
        yield
    finally:
        source.keep(np.empty(0, dtype=np.intp))


def _max_reference_rows(table: Table) -> int:
    n_features: int = table.X.shape[1]
    return min(MAX_REFERENCE_ROWS, max(MIN_ROWS, MAX_REFERENCE_CELLS // n_features))


def _draw_reference(table: Table, seed: int, n_rows: int) -> list[Rows]:
    """Return the positions of up to `n_rows` negatives and as many positives; fewer are a prefix of these."""
    return [_draw(table, seed, np.flatnonzero(table.y == y), n_rows) for y in (0, 1)]


def measure_reference(
    ranker: Ranker, part: str, table: Table, seed: int, workdir: Path
) -> ReferenceRecord | None:
    """Write the mean contributions of features to the scores of each class.

    None if the ranker has no exact contributions, or a class has no rows.
    """
    n_rows = _max_reference_rows(table)
    if steps := ranker.count_shapley_steps():
        n_rows = min(n_rows, max(MIN_REFERENCE_ROWS, MAX_REFERENCE_STEPS // steps))
    drawn = _draw_reference(table, seed, n_rows)
    if not all(len(rows) for rows in drawn):  # a class has no weight here
        return None
    both = table.take(np.concatenate(drawn))  # of a stored table one reading
    ends = np.array([0, len(drawn[0]), len(both.X)])
    try:
        negative, positive = (
            explain.mean_reference(ranker, as_scored(rows, ranker).coded, rows.weight)
            for rows in (both.take(np.arange(*ends[k : k + 2])) for k in range(2))
        )
    except InvalidParameter:  # no exact parts
        return None
    if not np.isfinite([*negative.parts, *positive.parts]).all():
        return None
    np.save(workdir / REFERENCE_FILE, np.stack((negative.parts, positive.parts)))
    return {
        "file": REFERENCE_FILE,
        "part": part,
        "rows": [len(rows) for rows in drawn],
        "scores": [negative.score, positive.score],
    }


def measure_bins(ranker: Ranker, table: Table, seed: int) -> HeldOutBins | None:
    """Return the rows in a scorecard's bins, and the AUC of whole points; None: another ranker, or no such class."""
    from core.linear.scorecard import Scorecard

    if not isinstance(ranker, Scorecard):
        return None
    drawn = _draw(table, seed, np.arange(len(table.y)), MAX_BINNED_ROWS)
    sample = as_scored(table.take(np.sort(drawn)), ranker)
    positive = sample.y == 1
    if not positive.any() or positive.all():
        return None
    weight = np.ones(len(positive)) if sample.weight is None else sample.weight
    bins = ranker.bins_of(sample.coded)
    described = ranker.structure()["features"]
    features: list[HeldOutFeature] = []
    values = np.zeros(bins.shape)
    for j, each in enumerate(described):
        n_bins = len(each["bins"])
        sums = [
            [
                np.bincount(bins[of, j], weight[of] ** power, minlength=n_bins)
                for of in (positive, ~positive)
            ]
            for power in (0, 1, 2)
        ]
        features.append(
            {
                "rows": [counts.astype(int).tolist() for counts in sums[0]],
                "mass": [mass.tolist() for mass in sums[1]],
                "squares": [squares.tolist() for squares in sums[2]],
            }
        )
        values[:, j] = np.array([one["value"] for one in each["bins"]])[bins[:, j]]

    def auc_of(scores: Floats) -> float:
        return float(core_metrics.auc(positive, scores, sample_weight=sample.weight))

    return {
        "rows": len(positive),
        "features": features,
        "auc": auc_of(ranker.decision_function(sample.coded)),
        "rounded": [
            {"pdo": pdo, "auc": auc_of(np.round(pdo / math.log(2.0) * values).sum(axis=1))}
            for pdo in ROUNDED_PDO
        ],
    }


def draw_references(part: str, table: Table, seed: int) -> dict[str, Table]:
    """Draw a few negatives and positives, by `class_part`, for the reasons of scores that are not sums."""
    drawn = zip(CLASSES, _draw_reference(table, seed, REFERENCE_ROWS), strict=True)
    return {class_part(part, of): table.take(rows) for of, rows in drawn if len(rows)}


def class_part(part: str, of: str) -> str:
    """Return the name under which the sampled rows of one class are stored."""
    return f"{part}_{of}"


def as_scored(sample: Table, ranker: Ranker) -> Table:
    """Return the sample coded with the ranker's own categories, which may be fewer than the table's."""
    X, categories = to_matrix(sample.coded, ranker.categories_)
    return replace(sample, X=X, categories=categories)


def write_sample(workdir: Path, part: str, sample: Table) -> SampleFile:
    """Write the rows in the form of `ModelSample`."""
    name = f"{part}.sample"
    weight = b"" if sample.weight is None else sample.weight.astype("<f8").tobytes()
    (workdir / name).write_bytes(sample.X.astype("<f8").tobytes("C") + weight)
    return {"file": name, "rows": len(sample.X), "features": sample.X.shape[1]}


def read_sample(data: bytes, rows: int, n_features: int) -> tuple[Floats, Floats]:
    """Return rows, shape (rows, features), and weights."""
    numbers = np.frombuffer(data, dtype="<f8")
    values, weight = np.split(numbers, [rows * n_features])
    return values.reshape(rows, n_features), weight if len(weight) else np.ones(rows)


def score(ranker: Ranker, table: Table, n_labels: int | None = None) -> Floats:
    """Return scores, float64 of shape (rows,), or (rows, labels) for a ranker of several labels.

    They are computed in blocks: the ranker reads rows, the table is stored by columns, and a whole copy would double
    its memory.
    """
    scores = np.empty(len(table.X) if n_labels is None else (len(table.X), n_labels))
    start = 0
    for block in table.blocks(_ROWS_AT_ONCE):
        scores[start : start + len(block.X)] = _score_block(ranker, block)
        start += len(block.X)
    return scores


def _score_block(ranker: Ranker, block: Table) -> Floats:
    return ranker.score_rows(np.ascontiguousarray(as_scored(block, ranker).X))


def write_scores(
    ranker: Ranker,
    tables: Mapping[Path, StoredTable],
    look: Callable[[Path, Table], None] = lambda path, block: None,
) -> dict[Path, Floats]:
    """Score several tables in one file, which is read once, into a .npy file each, which are returned as memory maps.

    `look` sees each block of rows.
    """
    with ExitStack() as opened:
        files = {path: opened.enter_context(path.open("wb")) for path in tables}
        for path, file in files.items():
            header = {"descr": "<f8", "fortran_order": False, "shape": (len(tables[path].X),)}
            np.lib.format.write_array_header_1_0(file, header)
        for blocks in blocks_of(list(tables.values())):
            for (path, file), block in zip(files.items(), blocks, strict=True):
                look(path, block)
                _score_block(ranker, block).astype("<f8", copy=False).tofile(file)
    return {path: np.load(path, mmap_mode="r") for path in tables}


SQUARED_GAIN = "squared_auc_gain"
CONTRIBUTION = "mean_absolute_contribution"
PERMUTATION = "permutation_auc"
METHODS: Mapping[str, str] = {
    SQUARED_GAIN: (
        "Sum of the squared gains in AUC on the training rows, Σ (ΔAUC)², over the splits on the "
        "feature (Clémençon, Depecker & Vayatis 2011, §5.1). root is its square root; auc_gain is Σ "
        "ΔAUC."
    ),
    CONTRIBUTION: (
        "Mean absolute contribution of the feature to the score, over a sample of the rows that `on` "
        "names, in units of the score."
    ),
    PERMUTATION: (
        "Decrease of the AUC on a sample of held-out rows when the values of the feature are "
        "permuted, averaged over 5 permutations. 0: the ranker does not need the feature. Negative "
        "values are noise."
    ),
}
N_PERMUTATIONS = 5
"""Permutations of each feature."""

MAX_SCORED = 500_000
"""Rows that are scored for permutation importance, over all features and permutations."""

MIN_ROWS_PER_CLASS = 25
"""Rows of each class that are scored per permutation, however many features there are."""


TIMED_ROWS = 100
"""Rows by which the time of many is predicted."""


def seconds_a_row(work: Callable[[Table], object], table: Table) -> float:
    """Return the seconds per additional row."""
    one = table.take(np.arange(1))
    few = table.take(np.arange(min(TIMED_ROWS, len(table.X))))
    work(few)  # loads what it needs
    times = [time.perf_counter()]
    for rows in (one, few):
        work(rows)
        times.append(time.perf_counter())
    return max(times[2] - 2 * times[1] + times[0], 0.0) / len(few.X)


def predict_seconds(
    ranker: Ranker, train: Table, draw_both_classes: Callable[[int], tuple[str, Table] | None]
) -> float:
    """Predict the duration of `measure` from a few rows."""
    if hasattr(ranker, "feature_importances_"):
        return 0.0
    if _parts(ranker, train.take(np.arange(1))) is not None:
        return len(train.X) * seconds_a_row(lambda rows: _parts(ranker, rows), train)
    drawn = draw_both_classes(0)
    if drawn is None:
        return 0.0
    n_features: int = train.X.shape[1]
    n_scored = len(_few(drawn[1]).X) * N_PERMUTATIONS * n_features
    return n_scored * seconds_a_row(lambda rows: score(ranker, rows), train)


def measure(
    ranker: Ranker,
    part: str,
    sample: Table,
    draw_both_classes: Callable[[int], tuple[str, Table] | None],
    seed: int,
) -> ImportanceRecord | None:
    """Measure importances by the first method that the ranker supports; None if it supports none.

    Runs in the fit process. `sample` has a few rows of a part as the ranker scores them; `draw_both_classes` is
    `SplitData.evaluation_rows`.
    """
    squared = getattr(ranker, "feature_importances_", None)
    if squared is not None:
        gains = getattr(ranker, "auc_gains_")  # noqa: B009 - comes with the other, in no common base
        return {**_record(SQUARED_GAIN, "train", squared), "gains": gains.tolist()}
    parts = _parts(ranker, sample)
    if parts is not None:
        weight = np.ones(len(parts)) if sample.weight is None else sample.weight
        return _record(CONTRIBUTION, part, explain.mean_absolute(parts, weight))
    drawn = draw_both_classes(seed)
    if drawn is None:
        return None
    evaluated, table = drawn
    few = _few(as_scored(table, ranker))
    losses = explain.permutation_importance(
        ranker.score_rows, few.X, few.y, few.weight, n_repeats=N_PERMUTATIONS, random_state=seed
    )
    return _record(PERMUTATION, evaluated, losses)


def _few(table: Table) -> Table:
    n_rows = max(MIN_ROWS_PER_CLASS, MAX_SCORED // (2 * N_PERMUTATIONS * table.X.shape[1]))
    rows = [np.flatnonzero(table.y == y)[:n_rows] for y in (0, 1)]
    few = table.take(np.concatenate(rows))
    return replace(few, X=np.ascontiguousarray(few.X))


def _parts(ranker: Ranker, train: Table) -> Floats | None:
    if not hasattr(ranker, "contributions"):
        return None
    try:
        parts: Floats = ranker.contributions(train.coded)
    except InvalidParameter:  # not with these parameters
        return None
    return parts


def _record(method: str, part: str, values: ArrayLike) -> ImportanceRecord:
    return {"method": method, "part": part, "values": np.asarray(values).tolist()}


@dataclass(frozen=True)
class Importances:
    model: Model
    row: ModelImportance
    label: str | None
    features: list[FeatureImportance]


def read_importance(session: Session, owner: str, ref: str, label: str | None) -> Importances:
    """Sort the features by importance, the largest first; with several labels, for the scores of one of them."""
    model = find(session, owner, ref)
    row = repository.find_importance(session, model.id)
    labels = None if model.labels is None else [known["name"] for known in model.labels]
    position = find_label(labels, label)
    if row is None and model.importance_job_id is not None:
        job = job_repository.find(session, owner, model.importance_job_id)
        state = "deleted" if job is None else shown_state(job)
        raise NotFound(
            f"the importance of model {model.id} is not available yet: it is measured by "
            f"{model.importance_job_id}, which is {state}",
            code="no_importance",
        )
    if row is None:
        raise NotFound(
            f"model {model.id} ({model.algorithm}) has no feature importances: the training did not "
            "measure them",
            code="no_importance",
        )
    features = [feature.copy() for feature in row.features]
    if labels is not None:
        for feature in features:
            feature["importance"] = feature["importance"][position]
    features.sort(key=lambda feature: -feature["importance"])
    return Importances(model, row, label, features)
