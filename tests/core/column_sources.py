"""Columns and hosts in this process: what stored tables and clusters of workers are in production."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.base.columns import ColumnSource
from core.base.ranker import Floats
from core.base.shards import Placement, ShardHost
from core.base.table import Categories


class ArrayColumns(ColumnSource):
    """The columns of an array, which may be mapped to a file.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns), float64
        Fortran order is read fastest.
    names : tuple of str, optional
        None: x0, x1, ...
    categories : tuple, one entry per column, optional
        None: all columns are numeric.
    identity : bytes, optional
        See `ColumnSource`; whoever gives it vouches for it.
    """

    def __init__(
        self,
        matrix: Floats,
        names: tuple[str, ...] | None = None,
        categories: Categories | None = None,
        identity: bytes | None = None,
    ) -> None:
        self._matrix = matrix
        self.n_rows, n_columns = matrix.shape
        self.names = names or tuple(f"x{j}" for j in range(n_columns))
        self.categories = categories or (None,) * n_columns
        self.identity = identity

    def read(self, column: int, values: Floats) -> None:
        """Copy a column of the array; see `ColumnSource.read`."""
        values[:] = self._matrix[:, column]


class LocalHosts(Placement):
    """Hosts in this process.

    Parameters
    ----------
    n_hosts : int
    folder : pathlib.Path
    """

    def __init__(self, n_hosts: int, folder: Path) -> None:
        self._hosts = [ShardHost(os.fspath(folder)) for _ in range(n_hosts)]

    @property
    def n_hosts(self) -> int:
        """The number of hosts."""
        return len(self._hosts)

    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of each host; see `Placement.call`."""
        return [
            getattr(host, method)(*own) if own else None
            for host, own in zip(self._hosts, arguments, strict=True)
        ]
