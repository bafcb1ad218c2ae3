"""Rows with a label of two values: their splits, and their metrics by the ROC curve and its areas."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import (
    Columns,
    StoredTable,
    Table,
    check_classes,
    read_table,
    store_table,
)
from app.models import margins
from app.models.curves import FIRST_CURVE_POINTS, MAX_CURVE_POINTS, write_curve
from app.models.imported import IMPORTED
from app.models.objectives import own_window, value_of
from app.platform.documents import (
    Feature,
    MarginsRecord,
    Objective,
    PartialAuc,
    RocMetrics,
    TableFile,
    Validation,
    interval_of,
)
from app.platform.errors import Invalid
from app.training import lists, search
from app.training.interpretation import draw_classes, score, write_scores
from app.training.records import ClusterRecord, TrainPayload
from app.training.splits import (
    BYTES_PER_CELL,
    BYTES_PER_CELL_OF_FOLDS,
    BYTES_PER_ROW,
    BYTES_PER_VALIDATION_CELL,
    CROSS_VALIDATION,
    HOLDOUT,
    InnerSplits,
    RowSplit,
    SplitData,
    are_alike,
    divide,
    hash_rows,
    note_kinds,
    split_rows,
)
from app.training.time_effect import TimedRows
from core import metrics, selection
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.base.checkpoint import SharedRanker
    from core.base.columns import ColumnSource, ColumnTable
    from core.base.ranker import Callback, Floats, Ranker
    from core.metrics import Summary
    from core.metrics.runs import StoredGroups

CODES_FOLDER = "codes"
"""Of the work folder, with the files of codes."""

LEVEL = 0.95
"""Confidence level of intervals and tests."""

Ints = npt.NDArray[np.int64]
Missing = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
"""Of each feature: whether any value of the training rows is missing, and whether all are."""

DEFAULT_WINDOW = (0.0, 0.05)
"""Window of false positive rates whose partial AUC every model reports."""


@dataclass(frozen=True)
class Folds:
    """The number (from 0), repeat and fold (from 1) of each out-of-fold row."""

    row: Ints
    repeat: Ints
    fold: Ints


@dataclass(frozen=True)
class HeldOutRows:
    """The held-out rows: label, weight, group and query of each; under cross-validation each row once per repeat."""

    y: npt.NDArray[np.int8]
    weight: Floats | None
    group: npt.NDArray[np.uint64] | None
    folds: Folds | None = None
    query: npt.NDArray[np.uint64] | None = None


class BipartiteTable:
    """The rows of a job, and the parts into which its validation splits them."""

    def __init__(
        self, payload: TrainPayload, names: list[str], on_read: Callable[[str], None] | None = None
    ) -> None:
        """`on_read` is called while columns are read: see `ParquetColumns`."""
        spec = payload["spec"]
        validation = spec["validation"]
        columns = _columns(payload["table"], names, validation.get("time_column"))
        table, notes = _read(payload, columns, on_read)
        check_classes(table.y, "the table")
        self._features = payload["table"]["features"]
        self._cluster = payload.get("cluster")
        self._folds: list[RowSplit] = []
        self.timed: TimedRows | None = None
        self._n_folds: int = validation.get("folds", 1)
        self._divided: dict[tuple[int, int] | None, dict[InnerSplits, list[RowSplit]]] = {}
        self._latest: tuple[tuple[int, int], BipartiteSplitData] | None = None
        self.validation_rows: Ints | None = None
        """The numbers of the validation rows in their dataset, in order; None under cross-validation."""
        match validation["method"]:
            case "none":
                self.served = self._split_data(table, None)
            case "holdout":
                (row_split,) = split_rows(table, validation, spec["seed"])
                self.timed = TimedRows.draw(table, row_split, spec["seed"])
                self.validation_rows = np.asarray(row_split.test)
                self.served = self._split_data(*divide(table, *row_split))
            case "dataset" if payload["validation_table"] is None:
                # Of an imported model: no row is a training row.
                self.validation_rows = np.arange(len(table.y))
                self.served = self._split_data(table, table)
            case "dataset":
                other = payload["validation_table"]
                assert other is not None
                path, own = Path(other["path"]), _columns(other, names, None)
                evaluated = (
                    _store(payload, path, own, on_read)
                    if isinstance(table, StoredTable)
                    else read_table(path, own)
                )
                check_classes(evaluated.y, "the validation dataset")
                self.validation_rows = np.arange(len(evaluated.y))
                self.served = self._split_data(table, evaluated.coded_as(table))
            case "cross_validation":
                self._folds = split_rows(table, validation, spec["seed"])
                self.timed = TimedRows.draw(table, self._folds[-1], spec["seed"])
                self.served = self._split_data(table, None)
            case method:
                raise Invalid(
                    "validation.method must be holdout, cross_validation, dataset or none, "
                    f"got {method!r}",
                    code="unsupported",
                )
        self.served.has_curve = validation["method"] != "none"
        by_content = table.group is None and validation["method"] != "dataset"
        has_training_rows = self.served.train is not self.served.validation
        self._may_repeat = not by_content and table.time is None and has_training_rows
        is_drawn = validation["method"] in (HOLDOUT, CROSS_VALIDATION) and table.time is None
        if is_drawn and (note := note_kinds(table)):
            notes.append(note)
        self.served.notes = notes

    def split_data(self, scope: tuple[int, int] | None) -> BipartiteSplitData:
        if scope is None:
            return self.served
        if self._latest is None or self._latest[0] != scope:
            self._latest = None  # free its memory before the next one's is allocated
            whole = self.served.train
            self._latest = (scope, self._split_data(*divide(whole, *self.row_split(scope)), scope))
        return self._latest[1]

    def row_split(self, scope: tuple[int, int]) -> RowSplit:
        """Return the positions of the training and the validation rows of a fold."""
        repeat, fold = scope
        return self._folds[repeat * self._n_folds + fold]

    def divided(self, table: Table, row_split: RowSplit) -> BipartiteSplitData:
        """Return a table of these features, divided into a training and a validation part."""
        return BipartiteSplitData(*divide(table, *row_split), self._features, {})

    def held_out_rows(self, folds: Sequence[tuple[int, int]]) -> HeldOutRows:
        """Return the held-out rows, fold by fold; without folds, the validation rows."""
        if not folds:
            held_out = self.served.held_out_rows()
            return HeldOutRows(held_out.y, held_out.weight, held_out.group)
        rows = [self.row_split(fold).test for fold in folds]
        sizes = [len(each) for each in rows]
        row, table = np.concatenate(rows), self.served.train
        return HeldOutRows(
            table.y[row],
            None if table.weight is None else table.weight[row],
            None if table.group is None else table.group[row],
            Folds(
                row,
                np.repeat([repeat + 1 for repeat, _ in folds], sizes),
                np.repeat([fold + 1 for _, fold in folds], sizes),
            ),
            None if table.query is None else table.query[row],
        )

    def count_repeated(self) -> tuple[int, int]:
        """Return the number of held-out rows that equal a training row in every feature, and of all held-out rows.

        Rows without groups are split by content, so that none is repeated. With a split by time, repeated rows are not
        a leak and count 0. In a table of few distinct rows, equal rows are expected, and a note mentions them.
        """
        validation = self.served.validation
        n_held_out = sum(len(part.test) for part in self._folds)
        if validation is not None:
            n_held_out = len(validation.X)
        if not n_held_out or not self._may_repeat:
            return 0, n_held_out
        trained = hash_rows(self.served.train)
        if validation is not None:
            pairs = [(hash_rows(validation), trained)]
        else:
            pairs = [(trained[part.test], trained[part.train]) for part in self._folds]
        return sum(int(np.isin(*pair).sum()) for pair in pairs), n_held_out

    def _split_data(
        self, train: Table, validation: Table | None, scope: tuple[int, int] | None = None
    ) -> BipartiteSplitData:
        divided = self._divided.setdefault(scope, {})
        return BipartiteSplitData(train, validation, self._features, divided, self._cluster)


class BipartiteSplitData(SplitData):
    """Training and validation rows; `divided` caches the inner splits of the training rows."""

    def __init__(
        self,
        train: Table,
        validation: Table | None,
        features: Sequence[Feature],
        divided: dict[InnerSplits, list[RowSplit]],
        cluster: ClusterRecord | None = None,
    ) -> None:
        self.train, self.validation = train, validation
        self._cluster = cluster
        self.has_curve = validation is not None
        self._features = features
        self._divided = divided
        self._missing: Missing | None = None
        lists.check_queries(train, "the training part", 1)
        if validation is not None:
            lists.check_queries(validation, "the validation part", lists.MIN_QUERIES)

    def fit(self, ranker: Ranker, callback: Callback) -> None:
        train = self.train
        if isinstance(train, StoredTable) and self._cluster is not None:
            self._fit_stored(ranker, train.coded, self._cluster, callback)
            return
        if train.query is None:
            ranker.fit(train.coded, train.y, train.weight, groups=train.group, callback=callback)
        else:
            ranker.fit(train.coded, train.y, train.weight, query=train.query, callback=callback)

    def _fit_stored(
        self, ranker: Ranker, coded: ColumnTable, cluster: ClusterRecord, callback: Callback
    ) -> None:
        """Fit on a table that is read column by column, its shards on a cluster if the algorithm allows it."""
        from app.training.cluster import DaskHosts

        y, weight, group = self.train.y, self.train.weight, self.train.group
        reason = ranker.reads_shards()
        if cluster.get("is_lost"):
            reason = "the previous attempt lost the cluster, and this is the last attempt"
        if reason is not None:
            message = f"the Dask cluster was not used for {type(ranker).__name__}: {reason}"
            warnings.warn(message, UserWarning, stacklevel=2)
            ranker.fit(coded, y, weight, groups=group, callback=callback)
            return
        with DaskHosts(cluster["address"], Path(cluster["secret"]), cluster["seconds"]) as hosts:
            for note in hosts.notes:
                warnings.warn(note, UserWarning, stacklevel=2)
            table = replace(coded, placement=hosts)
            ranker.fit(table, y, weight, groups=group, callback=callback)

    def fit_share(self, ranker: SharedRanker, first: int, last: int, callback: Callback) -> bytes:
        train = self.train
        return ranker.fit_share(
            train.coded, train.y, train.weight, first=first, last=last, callback=callback
        )

    def join_shares(self, ranker: SharedRanker, shares: Sequence[bytes]) -> None:
        """The ranker then equals the result of `fit`."""
        ranker.join_shares(shares, self.train.coded, self.train.y, self.train.weight)

    def thinned(self, fraction: float, seed: int) -> BipartiteSplitData:
        thin, query = copy(self), self.train.query
        thin._missing = None
        if query is not None:
            rows = lists.draw_queries(query, fraction, seed)
        else:
            rows = selection.draw_rows(self.train.y, fraction, seed)
        thin.train = self.train.part(rows).known_to()
        return thin

    def inner(self, inner: InnerSplits, split: int, seed: int) -> BipartiteSplitData:
        parts = divide(self.train, *self._split(inner, seed)[split])
        return BipartiteSplitData(*parts, self._features, {})

    def auc(self, ranker: Ranker) -> metrics.Interval:
        """Return the AUC of the validation rows, with its interval."""
        rows = self._table_of("validation")
        from core.metrics.groups import check_rows
        from core.metrics.intervals import interval_of_rows
        from core.metrics.window import WHOLE

        scores = {"scores": score(ranker, rows)}
        checked = check_rows(rows.y, scores, rows.weight, rows.group)
        return interval_of_rows(checked, WHOLE, LEVEL)

    def can_split(self, inner: InnerSplits, seed: int) -> bool:
        try:
            self._split(inner, seed)
        except Invalid:
            return False
        return not are_alike(self.train)

    def _split(self, inner: InnerSplits, seed: int) -> list[RowSplit]:
        """Return the inner splits of the training rows, cached."""
        if inner not in self._divided:
            validation: Validation = {"method": CROSS_VALIDATION, "folds": inner.n_splits}
            if inner.n_splits == 1:
                validation = {"method": HOLDOUT, "fraction": inner.fraction}
            self._divided[inner] = split_rows(self.train, validation, seed)
        return self._divided[inner]

    def table(self, part: str) -> Table | None:
        return self.train if part == "train" else self.validation

    def held_out_rows(self) -> selection.HeldOut:
        rows = self._table_of("validation")
        return selection.HeldOut(rows.y, rows.weight, rows.group)

    def value(self, scores: Floats, objective: Objective) -> float:
        rows = self._table_of("validation")
        if rows.query is not None:
            return lists.value_of(rows.y, scores, rows.query, rows.weight, objective, graded=False)
        return value_of(rows.y, scores, rows.weight, objective)

    def evaluate(
        self, ranker: Ranker, objective: Objective, workdir: Path
    ) -> dict[str, RocMetrics]:
        parts: dict[str, RocMetrics] = {}
        for part, scores in self._score_parts(ranker, workdir).items():
            table = self._table_of(part)
            summary = _summarise(table, scores, windows_of(objective))
            measured = None
            # Pairs of rows of different queries were not trained on.
            if part == "train" and table.query is None:
                measured = margins.measure(ranker, self._features, table, summary.groups, workdir)
            curve = None
            if self.has_curve:
                curve = f"{part}.curve"
                write_curve(workdir / curve, summary.curve)
            parts[part] = metrics_of(summary, curve, measured)
            of_lists = lists.measure(
                table.y, scores, table.query, table.weight, graded=False, objective=objective
            )
            if of_lists is not None:
                parts[part]["lists"] = of_lists
        return parts

    def _score_parts(self, ranker: Ranker, workdir: Path) -> dict[str, Floats]:
        """Write the scores of each part to files; parts in one table file are read together."""
        tables = {} if self.train is self.validation else {"train": self.train}
        if self.validation is not None:
            tables["validation"] = self.validation
        by_source: dict[ColumnSource, dict[Path, StoredTable]] = {}
        scores: dict[Path, Floats] = {}
        for part, table in tables.items():
            path = workdir / scores_file(part)
            if isinstance(table, StoredTable):
                by_source.setdefault(table.source, {})[path] = table
            else:
                scores[path] = score(ranker, table)
                np.save(path, scores[path])

        def look(path: Path, block: Table) -> None:
            if path == workdir / scores_file("train"):
                self._missing = _add_missing(self._missing, block)

        self._missing = None
        for stored in by_source.values():
            scores |= write_scores(ranker, stored, look)
        return {part: scores[workdir / scores_file(part)] for part in tables}

    def missing(self) -> list[tuple[bool, bool]]:
        if self._missing is None:  # the scores of all rows show it at once
            return super().missing()
        any_missing, all_missing = self._missing
        return list(zip(any_missing.tolist(), all_missing.tolist(), strict=True))

    def scores_of(self, ranker: Ranker, part: str) -> Floats:
        return score(ranker, self._table_of(part))

    def write_scores(self, ranker: Ranker, part: str, path: Path) -> None:
        table = self._table_of(part)
        if isinstance(table, StoredTable):
            write_scores(ranker, {path: table})
        else:
            np.save(path, score(ranker, table))

    def evaluation_rows(self, seed: int) -> tuple[str, Table]:
        """Return a part and its rows, equally many of each class."""
        if self.validation is None:
            return "train", draw_classes(self.train, seed)
        return "validation", draw_classes(self.validation, seed)


def _add_missing(known: Missing | None, block: Table) -> Missing:
    missing = np.isnan(block.X)
    own: Missing = (np.asarray(missing.any(axis=0)), np.asarray(missing.all(axis=0)))
    return own if known is None else (known[0] | own[0], known[1] & own[1])


def in_files(table: Table | None) -> StoredTable | None:
    """Return the table if its metrics are computed in files. Rows of groups are not: they are needed all at once."""
    return table if isinstance(table, StoredTable) and table.group is None else None


def groups_of(table: StoredTable, scores: Floats) -> StoredGroups:
    from core.metrics.runs import ScoreRuns

    folder = table.coded.folder
    folder.mkdir(parents=True, exist_ok=True)
    runs = ScoreRuns(folder)
    runs.add(table.y, scores, table.weight)
    return runs.merge()


def _summarise(table: Table, scores: Floats, windows: Sequence[tuple[float, float]]) -> Summary:
    """Return the metrics of all rows of a part, with the curve as it is stored."""
    from core.metrics.intervals import summarise_groups

    if (stored := in_files(table)) is None:
        return metrics.summarise(table.y, scores, table.weight, windows, group=table.group)
    return summarise_groups(
        groups_of(stored, scores),
        windows,
        max_points=MAX_CURVE_POINTS,
        n_first=FIRST_CURVE_POINTS,
    )


def scores_file(part: str) -> str:
    return f"{part}.scores.npy"


def _read(
    payload: TrainPayload, columns: Columns, on_read: Callable[[str], None] | None
) -> tuple[Table, list[str]]:
    """Return the table and notes for its owner. Features stay in the file if they would not fit in memory.

    The model is the same; see `core.coding.stored`. Algorithms that need the rows read them into memory in any case.
    """
    import pyarrow.parquet as pq

    spec, path = payload["spec"], Path(payload["table"]["path"])
    limit, per_cell = payload.get("memory_bytes"), BYTES_PER_CELL
    if spec["validation"]["method"] == CROSS_VALIDATION:
        per_cell += BYTES_PER_CELL_OF_FOLDS
    n_features = len(columns.features)
    needed = pq.read_metadata(path).num_rows * (n_features * per_cell + BYTES_PER_ROW)
    if (other := payload.get("validation_table")) is not None:
        needed += pq.read_metadata(other["path"]).num_rows * n_features * BYTES_PER_VALIDATION_CELL
    if limit is None or needed <= limit:
        return read_table(path, columns), []
    bytes_told = f"in memory it would take about {needed:,} bytes, but the job's limit is {limit:,}"
    if columns.query is not None:
        reason: str | None = "it has queries"
    elif search.searches(spec):
        reason = "a search reads the rows"
    else:
        algorithm, ranker, reason = spec["algorithm"], None, None
        if algorithm["name"] != IMPORTED:  # an imported ranker scores rows block by block
            ranker = ALGORITHMS[algorithm["name"]](**algorithm["parameters"])
            reason = ranker.reads_columns()
        if reason is None:
            table = _store(payload, path, columns, on_read)
            if ranker is not None:
                ranker.categories_ = table.categories
                reason = ranker.reads_columns()
        if reason is None:
            return table, [f"the table was read column by column: {bytes_told}"]
    note = f"the table was read into memory, because {reason}: {bytes_told}"
    if on_read is not None:
        on_read(note)  # the job may end for its memory
    return read_table(path, columns), [note]


def _codes_folder(payload: TrainPayload) -> Path:
    return Path(payload.get("codes_folder") or Path(payload["workdir"]) / CODES_FOLDER)


def _store(
    payload: TrainPayload, path: Path, columns: Columns, on_read: Callable[[str], None] | None
) -> Table:
    limit = payload.get("memory_bytes")
    assert limit is not None  # or the table would be in memory
    return store_table(path, columns, _codes_folder(payload), limit, on_read)


def _columns(table: TableFile, names: list[str], time: str | None) -> Columns:
    return Columns(names, table["label"], table["weight"], table["group"], time, table.get("query"))


def windows_of(objective: Objective) -> list[tuple[float, float]]:
    """Return the reported windows of false positive rates: the default one, and the objective's."""
    windows = [DEFAULT_WINDOW]
    if (own := own_window(objective)) is not None and own not in windows:
        windows.append(own)
    return windows


def metrics_of(summary: Summary, curve: str | None, measured: MarginsRecord | None) -> RocMetrics:
    return {
        "auc": interval_of(summary.auc),
        "level": summary.level,
        "positives": summary.positives,
        "negatives": summary.negatives,
        "positive_weight": summary.totals.positive,
        "negative_weight": summary.totals.negative,
        "positive_effective": summary.totals.positive_effective,
        "negative_effective": summary.totals.negative_effective,
        "ties": summary.ties,
        "pauc": partial_aucs_of(summary),
        "curve": curve,
        "margins": measured,
    }


def partial_aucs_of(summary: Summary) -> list[PartialAuc]:
    return [
        {"fpr_min": area.fpr_min, "fpr_max": area.fpr_max, **interval_of(area.interval)}
        for area in summary.partial_aucs
    ]
