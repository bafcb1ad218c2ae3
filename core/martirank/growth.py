"""Growing a MartiRank program layer by layer, from histograms of its nodes.

A row is in several nodes of a layer, with a probability in each. Its *masses* are those probabilities times its weight.
They lie in blocks of four neighbouring positions, as (n_blocks, n_rows, 4): one addition of four numbers serves four
nodes.

Rows may be in shards (`core.base.shards`): each has the codes and masses of its rows, moves them, and sums them up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
import numpy.typing as npt
from numba.extending import intrinsic

from core.base.ranker import Floats
from core.base.shards import Shards
from core.base.splits import scramble_keys
from core.coding import (
    MISSING,
    N_CODES,
    Bins,
    Codes,
    Criterion,
    InverseESS,
    Split,
    ThreadPool,
    effective_counts,
    find_best_split,
)
from core.coding.best_split import MIN_EDGE, categories_above
from core.coding.bins import code_columns, learn_bins
from core.coding.categories import pack
from core.coding.rows import (
    Division,
    MakeCodedShard,
    divide_rows,
    positives_first,
    take_weights,
)
from core.coding.stored import StoredCodes, mapped
from core.kernels import kernel

from .program import (
    NO_NOISE,
    NODE,
    Integers,
    Mass,
    Noise,
    Program,
    cut_node,
    layer,
    n_nodes,
    uniform_node,
)

POSITIONS = 4  # positions of a block: the doubles of a vector register
ROWS = 1 << 13  # rows of a task: one block of their masses stays in a core's own cache


def n_blocks(n_positions: int) -> int:
    """Return the number of blocks (of four positions each) that hold `n_positions` positions."""
    return -(-n_positions // POSITIONS)


@intrinsic
def add_four(typing_context, sums, to, terms, at):  # type: ignore[no-untyped-def]
    """Add terms[at : at + 4] to sums[to : to + 4] in one vector addition, which the compiler would not make."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        vector = llvmlite.ir.VectorType(llvmlite.ir.DoubleType(), POSITIONS).as_pointer()

        def find(array: int, index: int) -> Any:
            data = context.make_array(signature.args[array])(
                context, builder, arguments[array]
            ).data
            return builder.bitcast(builder.gep(data, [arguments[index]]), vector)

        target = find(0, 1)
        added = builder.fadd(builder.load(target, align=8), builder.load(find(2, 3), align=8))
        builder.store(added, target, align=8)
        return context.get_dummy_value()

    return numba.types.void(sums, numba.types.uint64, terms, numba.types.uint64), generate


@numba.njit(inline="always")
def _add(column, masses, start, stop, histogram):  # type: ignore[no-untyped-def]
    """Add the weights of rows start to stop to histogram[code * 4 + position]."""
    for i in range(start, stop):
        row = np.uint64(i)
        four = np.uint64(POSITIONS)
        add_four(histogram, np.uint64(column[row]) * four, masses, row * four)


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        numba.uint8[:, ::1],
        numba.float64[:, ::1],
        numba.int64,
        numba.float64[:, :, :, ::1],
    )
)
def add_layer(first, step, n_features, codes, masses, n_positives, histograms):  # type: ignore[no-untyped-def]
    """Add class weights by node and code to the histograms of every step-th feature; rows have positives first."""
    n_rows = codes.shape[1]
    for block in range(len(masses)):
        for start in range(0, n_rows, ROWS):
            stop = min(start + ROWS, n_rows)
            middle = min(max(n_positives, start), stop)
            for j in range(first, n_features, step):
                _add(codes[j], masses[block], start, middle, histograms[block, j, 0])
                _add(codes[j], masses[block], middle, stop, histograms[block, j, 1])


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        numba.uint8[:, ::1],
        numba.int64[::1],
        numba.float64[:, ::1],
        numba.float64[:, ::1],
    )
)
def take_step(first, step, n_tasks, codes, features, rises, masses):  # type: ignore[no-untyped-def]
    """Move the row weights of every step-th run of rows to the next layer.

    codes: (n_features, n_rows) uint8; features: (n_nodes,) int64, the feature of each node of the layer; rises:
    (n_nodes, n_codes) float64, the fraction that goes one position up, by code; masses: (n_blocks, 4 * n_rows) float64,
    changed in place: one position more is in use afterwards.
    """
    n_rows = codes.shape[1]
    for task in range(first, n_tasks, step):
        start, stop = task * ROWS, min(task * ROWS + ROWS, n_rows)
        # From the highest position down: what rises joins rows that have been moved already.
        for position in range(len(features) - 1, -1, -1):
            column, rise = codes[features[position]], rises[position]
            here, k = masses[position // POSITIONS], position % POSITIONS
            up, u = masses[(position + 1) // POSITIONS], (position + 1) % POSITIONS
            for i in range(start, stop):
                at = np.uint64(i) * np.uint64(POSITIONS)
                moved = here[at + np.uint64(k)] * rise[np.uint64(column[np.uint64(i)])]
                up[at + np.uint64(u)] += moved
                here[at + np.uint64(k)] -= moved


class CodedRows(NamedTuple):
    """Binned training rows, positives first; counts: the number of rows that each stands for."""

    bins: Bins
    codes: Codes
    """Shape (n_features, n_rows)."""
    weight: Floats
    n_positives: int
    counts: Floats
    folder: Path | None = None
    """For the masses of rows, if the codes are in a file, too."""

    @property
    def mass(self) -> Mass:
        return Mass.of(self.weight, self.n_positives)

    def take(self, rows: Integers, n_positives: int) -> "CodedRows":
        """Return a subset of the rows; `rows` lists the positives first."""
        codes = np.ascontiguousarray(self.codes[:, rows])
        return CodedRows(self.bins, codes, self.weight[rows], n_positives, self.counts[rows])


def code_rows(
    X: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    max_bins: int,
    n_categories: Integers,
) -> CodedRows:
    rows, n_positives = positives_first(positive)
    own = weight[rows]
    bins = learn_bins(X, np.sort(rows), weight, max_bins, n_categories)
    codes = code_columns(X, rows, bins)
    return CodedRows(bins, codes, own / weight.sum(), n_positives, effective_counts(own))


def divide_layers(
    X: Floats | StoredCodes,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    max_bins: int,
    n_categories: Integers,
    n_layers: int,
) -> tuple[Bins, Shards]:
    rows, n_positives = positives_first(positive)
    scale = Division.of(take_weights(weight, rows), n_positives, rows).scale or 1.0
    coding = np.sort(rows), weight, max_bins, n_categories
    bins = X.bins if isinstance(X, StoredCodes) else learn_bins(X, *coding)
    make = MakeLayerShard(bins, n_layers, float(weight.sum()), scale)
    return bins, divide_rows(X, positive, weight, make)


class LayerMove(NamedTuple):
    """How rows move from one layer to the next: its nodes, and the fraction moving up, (n_nodes, n_codes), by code."""

    nodes: npt.NDArray[np.void]
    rises: Floats

    def move(self, codes: Codes, masses: Floats) -> None:
        nodes, rises = self
        for position in np.flatnonzero(nodes["frozen"]):  # rows of a frozen node stay there
            masses[position // POSITIONS, position % POSITIONS :: POSITIONS] = 0.0
        features = np.maximum(nodes["feature"], 0)
        n_tasks = -(-codes.shape[1] // ROWS)
        ThreadPool(codes.shape[1] * len(nodes)).run(
            take_step, n_tasks, codes, features, rises, masses
        )


class LayerSums(NamedTuple):
    """Sums over the rows that were used for a layer: histograms and class weights per node."""

    numbers: Floats
    """All of them, of which the other arrays are views."""
    histograms: Floats
    """Mass of each class per node and code. Shape (n_blocks, n_features, 2, n_codes * 4)."""
    squares: Floats
    """Of the masses of each class in each node, per row; of categories alone. Shape (n_positions, 2)."""
    shown: Floats
    """Mass of each class, also of rows that froze in an earlier layer. Shape (2,)."""

    @classmethod
    def of(cls, n_positions: int, n_features: int, numbers: Floats | None = None) -> "LayerSums":
        """Return the sums of a layer, initially 0, or those encoded in `numbers`."""
        shape = n_blocks(n_positions), n_features, 2, N_CODES * POSITIONS
        bounds = np.cumsum([np.prod(shape), 2 * n_positions])
        given = np.zeros(bounds[-1] + 2) if numbers is None else numbers
        histograms, squares, shown = np.split(given, bounds)
        return cls(given, histograms.reshape(shape), squares.reshape(n_positions, 2), shown)

    def add(self, rows: CodedRows, masses: Floats) -> None:
        """Add rows to the sums; `masses` are their weights at the layer's positions."""
        codes, m = rows.codes, rows.n_positives
        used = masses[: len(self.histograms)]
        pool = ThreadPool(codes.size * len(used))
        pool.run(add_layer, len(codes), codes, used, m, self.histograms)
        if rows.bins.is_categorical.any():
            # The fewer rows, the more the shares of categories are shrunk.
            for position in range(len(self.squares)):
                mass = used[position // POSITIONS, position % POSITIONS :: POSITIONS]
                per_row = mass * mass / rows.counts
                self.squares[position] += per_row[:m].sum(), per_row[m:].sum()
        self.shown[:] += rows.mass


class LayerShard:
    """The binned rows of a shard, with their weights at the positions of the current layer."""

    def __init__(self, rows: CodedRows, n_layers: int) -> None:
        self._rows, self._masses = rows, start_masses(rows.weight, n_layers, rows.folder)

    def add(
        self, step: LayerMove | None, n_positions: int, drawn: tuple[Integers, int] | None
    ) -> Floats:
        """Move the rows by `step`, if not None, to a layer of n_positions; return the shard's `LayerSums` as numbers.

        drawn: the rows that are summed up, positives first, and the number of positives; None: all.
        """
        rows, masses = self._rows, self._masses
        if step is not None:
            step.move(rows.codes, masses)
        if drawn is not None:
            rows = rows.take(*drawn)
            masses = masses.reshape(len(masses), -1, POSITIONS)[:, drawn[0]].reshape(
                len(masses), -1
            )
        sums = LayerSums.of(n_positions, len(rows.codes))
        sums.add(rows, masses)
        return sums.numbers


@dataclass
class MakeLayerShard(MakeCodedShard):
    n_layers: int
    total: float
    """Weight of all rows."""
    scale: float
    """What weights are divided by to be numbers of rows."""

    def shard(
        self, codes: Codes, weight: Floats, n_positives: int, folder: Path | None = None
    ) -> LayerShard:
        own, counts = weight / self.total, weight / self.scale
        return LayerShard(
            CodedRows(self.bins, codes, own, n_positives, counts, folder), self.n_layers
        )


def start_masses(weight: Floats, n_layers: int, folder: Path | None = None) -> Floats:
    """Return initial weights, all at position 0, (n_blocks, 4 * n_rows), memory-mapped in `folder` if given."""
    shape = (n_blocks(n_layers + 1), POSITIONS * len(weight))
    masses: Floats = mapped(folder, shape, np.float64)
    masses[0, ::POSITIONS] = weight
    return masses


Draw = Callable[[int], tuple[Integers, int]]
"""Returns the rows that a layer, counted from 0, is grown on, positives first; and the number of positives."""

Report = Callable[[int, npt.NDArray[np.void]], None]
"""Is called with the number of each layer, from 1, and its nodes."""


def draw_rows(
    keys: npt.NDArray[np.uint64], n_positives: int, subsample: float, seed: int
) -> tuple[Integers, int]:
    """Return a random fraction of each class's rows, positives first, and the number of positives drawn.

    Rows of equal keys are drawn together.
    """
    drawn = scramble_keys(keys, seed)
    rows = []
    for first, of_class in ((0, drawn[:n_positives]), (n_positives, drawn[n_positives:])):
        most = max(np.uint64(subsample * (2.0**64 - 2.0**11)), of_class.min())  # at least one
        rows.append(first + np.flatnonzero(of_class <= most))
    return np.concatenate(rows), len(rows[0])


def grow(
    shards: Shards,
    bins: Bins,
    n_layers: int,
    report: Report,
    noise: Noise = NO_NOISE,
    draw: Draw | None = None,
) -> Program:
    """Grow a program of stumps on `LayerShard`s at the root. draw: rows for each layer, of a single shard."""
    growth = Growth(bins, n_layers, noise)
    for t in range(n_layers):
        step, drawn = growth.step(t - 1) if t > 0 else None, draw(t) if draw else None
        numbers = shards.add_up("add", step, t + 1, drawn)
        growth.sums = LayerSums.of(t + 1, len(bins.n_bins), numbers)
        report(t + 1, growth.close_layer())
    return growth.program()


class Growth:
    """A program under construction, grown one layer at a time from batches of rows.

    A layer takes rows, all at once or in parts, and keeps a histogram per node. When it is closed, its nodes are made
    from the histograms, and the next layer takes rows: the same rows after one more step (`step`), or others, which are
    sent down from the root (`descend`).

    n_layers: T.
    """

    sums: LayerSums
    """Of the open layer."""

    def __init__(self, bins: Bins, n_layers: int, noise: Noise = NO_NOISE) -> None:
        self.nodes = np.zeros(n_nodes(n_layers), dtype=NODE)
        self.n_closed = 0
        self._bins = bins
        self._n_layers = n_layers
        self._noise = noise
        self._rises = np.zeros((n_nodes(n_layers), N_CODES))
        self._words = np.empty(0, dtype=np.uint64)
        self._start_layer()

    def descend(self, codes: Codes, masses: Floats) -> None:
        """Move the row weights from position 0 through all finished layers."""
        for t in range(self.n_closed):
            self.step(t).move(codes, masses)

    def step(self, t: int) -> LayerMove:
        """Return how rows move from layer t, counted from 0, to the next layer."""
        return LayerMove(self.nodes[layer(t)], self._rises[layer(t)])

    def is_satisfied(self, min_mass: float, max_shown: float) -> bool:
        """Return whether the current layer has seen enough rows.

        min_mass: mass of either class, corrected for noise, that each node needs unless it will be frozen.
        max_shown: mass of rows after which the layer has seen enough in any case.
        """
        if self._shown.positive + self._shown.negative >= max_shown:
            return True
        total = self._noise.total(self._shown)
        for position in range(self.n_closed + 1):
            labelled = Mass(*self._histogram(position)[0].sum(axis=1))
            here = labelled.without_noise(self._noise.rate)
            least_share = self._noise.least_share
            frozen = any(h <= least_share * t for h, t in zip(here, total, strict=True))
            if min(here) < min_mass and not (frozen and min(total) > min_mass / least_share):
                return False
        return True

    def close_layer(self) -> npt.NDArray[np.void]:
        """Create the current layer's nodes from their histograms, start the next layer, and return the nodes."""
        t = self.n_closed
        first = n_nodes(t)
        total = self._noise.total(self._shown)
        for position in range(t + 1):
            self.nodes[first + position], self._rises[first + position] = self._grow(
                self._histogram(position), total, self.sums.squares[position]
            )
        self.n_closed += 1
        self._start_layer()
        return self.nodes[layer(t)]

    def program(self) -> Program:
        return Program(self.n_closed, self.nodes[: n_nodes(self.n_closed)], self._words)

    def _start_layer(self) -> None:
        self.sums = LayerSums.of(min(self.n_closed + 1, self._n_layers), len(self._bins.n_bins))

    @property
    def _shown(self) -> Mass:
        return Mass(*self.sums.shown.tolist())

    def _histogram(self, position: int) -> Floats:
        block = self.sums.histograms[position // POSITIONS]
        return np.ascontiguousarray(block[..., position % POSITIONS :: POSITIONS])

    def _grow(
        self, histogram: Floats, total: Mass, squares: Floats
    ) -> tuple[npt.NDArray[np.void], Floats]:
        """Return the best node, and its probability of moving up for each code."""
        labelled = Mass(*histogram[0].sum(axis=1))
        share, end = self._noise.end(labelled, total)
        if end is not None:
            return end, np.full(N_CODES, end["rise_below"])
        bins = self._bins
        split = find_best_split(
            histogram,
            bins.n_bins,
            bins.has_missing,
            Criterion.YOUDEN,
            is_categorical=bins.is_categorical,
            inverse_ess=InverseESS(*(squares / np.square(labelled))),
        )
        if split.feature < 0 or split.gain < MIN_EDGE:
            return uniform_node(0.5, share), np.full(N_CODES, 0.5)
        above = codes_above(split)
        positive, negative = histogram[split.feature]
        threshold, word = self._note_cut(split)
        node = cut_node(
            (split.feature, threshold, split.missing_above, word),
            Mass(positive[above].sum(), negative[above].sum()),
            Mass(positive[~above].sum(), negative[~above].sum()),
            share,
            self._noise.rate,
        )
        return node, np.where(above, node["rise_above"], node["rise_below"])

    def _note_cut(self, split: Split) -> tuple[float, int]:
        """Return the threshold of a split, and the index of its stored category set's first word; -1 without a set."""
        category_mask = categories_above(self._bins, split)
        if category_mask is not None:
            first = len(self._words)
            self._words = np.concatenate([self._words, pack(category_mask)])
            return float(len(category_mask)), first
        return -np.inf if split.cut < 0 else float(self._bins.edges[split.feature][split.cut]), -1


def codes_above(split: Split) -> npt.NDArray[np.bool_]:
    above = np.arange(N_CODES) > split.cut
    if split.bins_above is not None:
        above[:] = False
        above[: len(split.bins_above)] = split.bins_above
    above[MISSING] = split.missing_above
    return above
