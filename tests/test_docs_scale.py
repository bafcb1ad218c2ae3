"""The table of docs/scale.md says what is fitted column by column and on a cluster: each line of it is tried.

Run this file to print the table anew.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest

from core.base.columns import ColumnTable
from core.base.parameters import list_parameters
from core.base.ranker import Ranker
from core.errors import InvalidData
from core.registry import ALGORITHMS
from tests.core.column_sources import ArrayColumns, LocalHosts

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
HEAD = "| algorithm | value | column by column | on a cluster |"
# Parameters whose value says what a fit reads.
CHOICES = ("weak_ranker", "splitter")


def choices_of(annotation: Any) -> Iterator[str]:
    """The strings that a parameter may be."""
    if get_origin(annotation) is Literal:
        yield from (choice for choice in get_args(annotation) if isinstance(choice, str))
        return
    for part in get_args(annotation):
        yield from choices_of(part)


def forms() -> Iterator[tuple[str, str, Ranker]]:
    """Each algorithm with the values of the one parameter that says what it reads."""
    for name, algorithm in ALGORITHMS.items():
        parameters = {one.name: one for one in list_parameters(algorithm)}
        chosen = next((one for one in CHOICES if one in parameters), None)
        short = {k: v for k, v in {"n_rounds": 3, "n_trees": 2}.items() if k in parameters}
        if chosen is None:
            yield f"`{name}`", "", algorithm(**short)
            continue
        for choice in choices_of(parameters[chosen].annotation):
            yield f"`{name}`, `{chosen}`", f"`{choice}`", algorithm(**{chosen: choice}, **short)


def is_fitted(ranker: Ranker, folder: Path, n_hosts: int) -> bool:
    """Try it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + rng.normal(size=120) > 0.3
    hosts = LocalHosts(n_hosts, folder) if n_hosts else None
    source = ArrayColumns(X, ("a", "b", "c"), (None, None, None), b"rows")
    try:
        ranker.fit(ColumnTable(source, folder, placement=hosts), y)
    except InvalidData:
        return False
    return True


def table(folder: Path) -> str:
    """The table of what reads columns: choices of an algorithm with the same answers are one line."""
    lines: dict[tuple[str, bool, bool], list[str]] = {}
    for name, choice, ranker in forms():
        answers = is_fitted(ranker, folder, 0), is_fitted(ranker, folder, 2)
        assert answers[0] == (ranker.reads_columns() is None)
        assert answers[1] == (ranker.reads_shards() is None)
        assert answers[0] or not answers[1]
        if answers[0]:
            lines.setdefault((name, *answers), []).append(choice)
    word = {True: "yes", False: "no"}
    rows = [
        f"| {name} | {', '.join(choices)} | {word[columns]} | {word[cluster]} |"
        for (name, columns, cluster), choices in lines.items()
    ]
    return "\n".join([HEAD, "|---|---|---|---|", *rows])


@pytest.mark.filterwarnings("ignore")
def test_the_table_says_what_is_fitted_by_columns_and_on_a_cluster(tmp_path: Path) -> None:
    written = PAGE.read_text().splitlines()
    start = written.index(HEAD)
    assert written[start : written.index("", start)] == table(tmp_path).splitlines()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        sys.stdout.write(table(Path(own)) + "\n")
