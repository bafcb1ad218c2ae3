"""Trees on rows in several processes: a leader grows the tree, and followers hold shards of the rows.

The leader (`ShardedGrower`) has the columns without any codes, the histograms of the nodes and the tree. The shards of
a host are one follower (`TreeShards`): codes, weights, and lists of the rows of each node, under the same numbers of
nodes. The leader asks: sum up the histogram of the root; divide these nodes, and sum up the histograms of these
children; send the rows to the leaves of this tree; change the weights. Both run the same kernels (`schedule`).

Histograms are whole numbers, exact in whatever order they are added: each host sends one sum. A follower sums up the
child that has fewer rows here, and subtracts. Sums of the weights as they are go along the fixed tree of
`core.base.shards`. So a tree is that of the same rows in one process, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.base.shards import Piece, Shards
from core.coding.bins import Codes
from core.coding.rows import Division

from .coding import Integers, Layout
from .derivatives import HasDerivatives
from .grower import (
    CodedSplits,
    TreeGrower,
    TreeStep,
)
from .records import ADD_ROOT, ADD_SIBLINGS, ADVANCE, DIVIDE, LIST_ROWS, PLANT, ROUTE

# Leaves that are split at the same time, best first: each question to the shards takes milliseconds.
SPECULATIVE_SPLITS = 8

Histograms = npt.NDArray[np.int64]


class NodeSplits(NamedTuple):
    """A batch of nodes to split, and the children whose histograms the leader needs."""

    nodes: Integers
    group: Integers
    lane: Integers
    """Each node, and the column that it is split by. Shape (n_nodes,)."""
    above: npt.NDArray[np.uint8]
    """1 for the codes above. Shape (n_nodes, n_codes)."""
    wanted: Integers
    """The children below of some of these nodes, in the same order. Shape (n_wanted,)."""


Lists = tuple[Integers, Integers, Integers]
"""Leaf and node of each split of a tree, and the node of each leaf (`TreeArrays.open_leaves`)."""


class TreeShards(TreeGrower):
    """The row shards of one host, which follow a `ShardedGrower`; for the parameters see `TreeGrower`.

    What is summed up of weights is returned for each shard; histograms are of all together.
    """

    def begin(self, score: float) -> list[None]:
        """Set the score of all rows."""
        self.start_scores(score)
        return [None] * self.division.n_shards

    def list_rows(self, threshold: float, key: int) -> list[Floats]:
        """Sample the rows of a tree; return the sums of their weights per shard, see `SumArrays.by_shard`."""
        progress = self.arrays.progress[0]
        progress["threshold"], progress["key"] = threshold, key
        self._lead(LIST_ROWS)
        self.check_derivatives()
        return list(self.arrays.sums.by_shard.copy())

    def add_root(self, threshold: float, key: int, units: tuple[float, float]) -> Histograms:
        """Return the histogram of the rows listed last, (n_cells,), with weights rounded to these units."""
        progress, criterion = self.arrays.progress[0], self.arrays.criterion[0]
        progress["threshold"], progress["key"] = threshold, key
        criterion["first_unit"], criterion["second_unit"] = units
        self._lead(ADD_ROOT)
        histogram: Histograms = self.arrays.sums.histograms[0].copy()
        return histogram

    def divide(self, given: NodeSplits) -> Histograms:
        """Partition the rows of nodes; return the histograms of the children asked for, (n_wanted, n_cells)."""
        tree, progress, n = self.arrays.tree, self.arrays.progress[0], len(given.nodes)
        tree.batch[:n] = given.nodes
        tree.nodes["is_split"][given.nodes] = 1
        tree.node_splits["group"][given.nodes] = given.group
        tree.node_splits["lane"][given.nodes] = given.lane
        tree.above[:n, : given.above.shape[1]] = given.above
        progress["n_batch"] = n
        self._lead(DIVIDE)
        is_wanted = np.isin(tree.nodes["below"][given.nodes], given.wanted)
        progress["n_siblings"] = n_siblings = np.count_nonzero(is_wanted)
        tree.siblings[:n_siblings] = tree.siblings[:n][is_wanted]
        if n_siblings:
            self._lead(ADD_SIBLINGS)
        numbers = tree.nodes["histogram"][given.wanted]
        histograms: Histograms = self.arrays.sums.histograms[numbers]
        return histograms

    def send(self, splits: CodedSplits, lists: Lists | None) -> list[Floats]:
        """Assign all rows to the leaves of a tree; return the sums of each leaf per shard, see `Splits.sums`.

        lists: of the tree that was grown last, whose nodes list all rows; None: rows are found by their codes.
        """
        tree, n_leaves = self.arrays.tree, len(splits.splits) + 1
        self.set_splits(splits)
        self.arrays.progress[0]["threshold"] = 1.0 if lists is None else 0.0
        if lists is not None:
            leaf, node, tree.open_leaves[:n_leaves] = lists
            tree.splits["leaf"][: len(leaf)], tree.splits["node"][: len(node)] = leaf, node
        self._lead(ROUTE)
        return self.leaf_sums(n_leaves)

    def change(self, phase: int, factors: Floats, lists: bool) -> list[Floats]:
        """Change the weights; return per shard the six sums of `pass_sums`, and with `lists` those of `list_rows`."""
        sums = [own.ravel() for own in self.pass_sums(phase, factors)]
        if not lists:
            return sums
        listed = self.list_rows(0.0, 0)
        return [np.append(*both) for both in zip(sums, listed, strict=True)]

    def repeat(self, steps: Sequence[TreeStep]) -> list[None]:
        self.take_again(steps)
        return [None] * self.division.n_shards


@dataclass(frozen=True)
class MakeTreeShards:
    """Factory that builds the `TreeShards` of a host; see `core.base.shards.MakeJointShard`."""

    layout: Layout
    division: Division
    """Of the whole table."""
    n_weights: int
    max_depth: int
    max_leaves: int | None
    loss: type[HasDerivatives]
    """See `TreeGrower`."""

    def __call__(
        self, pieces: Sequence[Piece], codes: Sequence[Sequence[tuple[Codes, ...]]], folder: Path
    ) -> TreeShards:
        division = self.division.part(pieces[0].number, pieces[-1].number + 1)
        table = self.layout.make_table(division.n_own, division.n_own_positives, folder)
        table.fill(pieces, codes)
        shape = self.n_weights, self.max_depth, self.max_leaves
        weight = _weights_of(pieces, division.n_own)
        shards = TreeShards(table, weight, *shape, division=division, folder=folder, loss=self.loss)
        if self.n_weights == 1:
            shards.start_weights(weight)
        return shards


def _weights_of(pieces: Sequence[Piece], n_rows: int) -> Floats:
    """Return the sample weights of blocks of rows, positives first; a broadcast view if all are equal."""
    if all(len(piece.weight) == 1 for piece in pieces):
        first = pieces[0].weight[0]
        if all(piece.weight[0] == first for piece in pieces):
            return np.broadcast_to(first, n_rows)
    weights = [np.broadcast_to(piece.weight, len(piece.positive)) for piece in pieces]
    positive = [own[piece.positive] for own, piece in zip(weights, pieces, strict=True)]
    negative = [own[~piece.positive] for own, piece in zip(weights, pieces, strict=True)]
    return np.concatenate([*positive, *negative])


class ShardedGrower(TreeGrower):
    """Grows trees on rows held by shards in other processes; same results as `TreeGrower`.

    shards: what it has made, wherever they are.
    """

    def __init__(self, make: MakeTreeShards, shards: Shards) -> None:
        super().__init__(
            make.layout.make_table(0, 0),
            np.empty(0),
            make.n_weights,
            make.max_depth,
            make.max_leaves,
            division=make.division,
        )
        speculative = min(SPECULATIVE_SPLITS, len(self.arrays.tree.batch))
        self.arrays.settings["speculative_splits"] = speculative
        self._shards = shards
        self._listed: Floats | None = None  # sums of all rows' weights, once they are known
        self._draws = False

    def start_weights(self, weight: Floats) -> None:
        """Do nothing: the weights of shards start as the sample weights."""

    def start_scores(self, score: float) -> None:
        self._shards.ask("begin", score)

    def take_again(self, steps: Sequence[TreeStep]) -> None:
        self._shards.ask("repeat", steps)
        self._listed = None

    def _grow(self) -> None:
        """Grow a tree: the leader chooses splits from histograms that the shards sum up."""
        fit, progress = self.arrays, self.arrays.progress[0]
        threshold, key = float(progress["threshold"]), int(progress["key"])
        self._draws = threshold > 0.0
        if self._draws or self._listed is None:
            fit.sums.by_shard[0] = self._shards.add_up("list_rows", threshold, key)
        else:
            fit.sums.by_shard[0] = self._listed
        self._lead(PLANT)
        units = tuple(float(fit.criterion[0][name]) for name in ("first_unit", "second_unit"))
        fit.sums.histograms[0] = self._shards.total("add_root", threshold, key, units)
        self._lead(ADVANCE)
        while progress["n_batch"] > 0:
            given = self._describe_batch()
            numbers = fit.tree.nodes["histogram"][given.wanted]
            fit.sums.histograms[numbers] = self._shards.total("divide", given)
            self._lead(ADVANCE)

    def _describe_batch(self) -> NodeSplits:
        tree, progress = self.arrays.tree, self.arrays.progress[0]
        n, n_siblings = int(progress["n_batch"]), int(progress["n_siblings"])
        nodes = tree.batch[:n].copy()
        group, lane = (tree.node_splits[name][nodes] for name in ("group", "lane"))
        n_codes = int(self.table.groups["n_codes"][group].max())
        wanted = tree.siblings["added"][:n_siblings].copy()
        return NodeSplits(nodes, group, lane, tree.above[:n, :n_codes].copy(), wanted)

    def _sample_weights(self, key: int) -> Floats:
        return np.concatenate(self._shards.ask("sample_weights", key))

    def _sum_leaves(self, n_leaves: int) -> Floats:
        tree, lists = self.arrays.tree, None
        if not self._draws:
            splits = tree.splits[: n_leaves - 1]
            lists = splits["leaf"].copy(), splits["node"].copy(), tree.open_leaves[:n_leaves].copy()
        return self._shards.add_up("send", self.coded_splits(), lists)

    def _pass_over(self, phase: int, factors: Floats) -> Floats:
        lists = not self._draws
        sums = self._shards.add_up("change", phase, factors, lists)
        self._listed = sums[6:] if lists else None
        return sums[:6].reshape(3, 2)
