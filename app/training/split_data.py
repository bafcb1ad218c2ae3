"""Split data of each kind of dataset: what a ranker learns from, what it is judged by, and in what figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from app.datasets.matrices import Table
from app.platform.sql import Base
from app.platform.tables import DatasetKind
from app.training import bipartite, multilabel, preferences
from app.training.splits import InnerSplits

if TYPE_CHECKING:
    from core.ranker import Callback, Floats, Ranker


class SplitData(Protocol):
    """A table in memory, divided into a training part and, unless there is none, a validation part."""

    def fit(self, ranker: Ranker, callback: Callback) -> None:
        """Learn from the training part."""

    def thinned(self, share: float, seed: int) -> SplitData:
        """The same, learning from a share of the training part; a greater share holds a lesser one."""

    def inner(self, inner: InnerSplits, split: int, seed: int) -> SplitData:
        """The training part alone, split once more: for choosing among rankers."""

    @property
    def n_learnt(self) -> int:
        """The rows, or pairs, to learn from."""

    @property
    def held_out(self) -> Any:
        """What a ranker scores of the validation part."""

    def value(self, scores: Floats, objective: Mapping[str, Any]) -> float:
        """What scores of the validation part are worth by the objective; higher is better."""

    def judge(
        self, ranker: Ranker, objective: Mapping[str, Any], workdir: Path
    ) -> dict[str, dict[str, Any]]:
        """Measure the ranker: part -> metrics, small enough for JSON. What is larger goes into the folder."""

    def sample(self, part: str, seed: int) -> Table | None:
        """A few rows of the part `train` or `validation`, drawn by `samples.draw`; None where there is none."""

    def judges(self, seed: int) -> tuple[str, Table] | None:
        """Rows of both classes to judge by, drawn by `samples.draw_classes`, and the part they are of: `validation`
        where there is one. None where rows have no one label."""

    def training_values(self, feature: int) -> Floats:
        """The values of a feature in the training part."""

    @property
    def notes(self) -> Sequence[str]:
        """What the model's owner should know about the parts."""


class Data(Protocol):
    """The tables of a job in memory."""

    def split_data(self, scope: tuple[int, int] | None) -> SplitData:
        """The data of a repeat's fold, or without one those whose ranker is served."""


class OneSplitData:
    """Tables that are split once."""

    def __init__(self, split_data: SplitData) -> None:
        self._split_data = split_data

    def split_data(self, scope: tuple[int, int] | None) -> SplitData:
        """The one split there is."""
        assert scope is None
        return self._split_data


class Kind(NamedTuple):
    """What training does for a kind of dataset.

    `read` reads the tables that the payload names. `rows_of` turns a part's metrics into rows of SQL.
    """

    read: Callable[[Mapping[str, Any], list[str]], Data]
    rows_of: Callable[[str, str, Mapping[str, Any], Path], list[Base]]


KINDS: Mapping[str, Kind] = {
    DatasetKind.BIPARTITE: Kind(bipartite.BipartiteTable, bipartite.rows_of),
    DatasetKind.PREFERENCES: Kind(
        lambda payload, names: OneSplitData(preferences.PreferenceSplitData(payload, names)),
        preferences.rows_of,
    ),
    DatasetKind.MULTILABEL: Kind(
        lambda payload, names: OneSplitData(multilabel.MultilabelSplitData(payload, names)),
        multilabel.rows_of,
    ),
}
