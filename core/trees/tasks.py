"""The parallel tasks of growing a tree: each reads or writes the rows or histograms of a few nodes."""

import numba
import numpy as np

from core.kernels import INNER, kernel

from .coding import LANES
from .histogram import add_rows
from .partition import find_first, gather_rows, partition_rows
from .passes import draw_run, list_run, rescale_run, round_run, route_run, step_run
from .records import (
    ADD,
    BUILD,
    BUILD_AND_FIND,
    DRAW,
    FIND,
    GATHER,
    MARK,
    PARTITION,
    RESCALE,
    ROUND,
    ROUTE,
    SPLIT_NODE,
    STEP,
    SUM,
    arrays_at,
)
from .splitting import (
    BY_SUBSET,
    GRADIENT,
    MASS_RTOL,
    find_split,
    mark_codes,
    take_criterion,
    unpack_masses,
)

# Rows of a run whose weights are summed up: the sums of runs are added in order.
SUMMED_ROWS = 1 << 15


@numba.njit(**INNER)
def criterion_of(address):  # type: ignore[no-untyped-def]
    criterion = arrays_at(address).criterion[0]
    return take_criterion(criterion, criterion.least_mass)


@numba.njit(**INNER)
def may_be_split(address, number):  # type: ignore[no-untyped-def]
    """Return True if a node has rows of both classes and the minimum weight of two leaves."""
    fit = arrays_at(address)
    p, q = fit.tree.nodes[number].positive, fit.tree.nodes[number].negative
    least = 2.0 * fit.criterion[0].least_mass * (1.0 - MASS_RTOL)
    if fit.criterion[0].objective == GRADIENT:
        return q >= least
    return min(p, q) > 0.0 and p + q >= least


@numba.njit(**INNER)
def _sum_weights(address, start, stop):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of the rows listed[start:stop], accumulated by runs."""
    fit = arrays_at(address)
    if len(fit.rows.sample_weight) == 0:
        return float(stop - start)
    total = 0.0
    for first in range(start, stop, SUMMED_ROWS):
        of_run = 0.0
        for i in range(first, min(first + SUMMED_ROWS, stop)):
            of_run += fit.rows.weights[np.uint64(fit.rows.listed[np.uint64(i)])]
        total += of_run
    return total


@numba.njit(**INNER)
def sum_node(address, number):  # type: ignore[no-untyped-def]
    """Compute the class weights of a node from its listed rows, and store them."""
    fit = arrays_at(address)
    node = fit.tree.nodes[number]
    middle = find_first(fit.rows.listed, node.start, node.stop, fit.settings[0].n_positives)
    node.positive = _sum_weights(address, node.start, middle)
    node.negative = _sum_weights(address, middle, node.stop)


@numba.njit(**INNER)
def _histogram_of(address, number, g):  # type: ignore[no-untyped-def]
    """Return the cells of group g in the histogram of a node."""
    fit = arrays_at(address)
    group = fit.codes.groups[g]
    first = group.first_cell
    return fit.sums.histograms[
        fit.tree.nodes[number].histogram, first : first + LANES * group.n_codes
    ]


@numba.njit(**INNER)
def _sum_rows(address, p, g):  # type: ignore[no-untyped-def]
    """Sum the histogram (column group g) of the smaller of the p-th pair of siblings.

    If this node will not be split, its rows are taken away from the histogram of their parent, which its sibling has.
    """
    fit = arrays_at(address)
    group, siblings = fit.codes.groups[g], fit.tree.siblings[p]
    node = fit.tree.nodes[siblings.added]
    words, rows = fit.codes.words[group.first_word :], fit.rows
    coded = words, group.row_words, rows.listed, rows.units, fit.settings[0].n_weights
    n_positives = fit.settings[0].n_positives
    if not siblings.is_summed:
        histogram = _histogram_of(address, siblings.subtracted, g)
        add_rows(*coded, -1, n_positives, node.start, node.stop, histogram)
        return
    histogram = _histogram_of(address, siblings.added, g)
    if siblings.n_runs == 1:
        add_rows(*coded, 1, n_positives, node.start, node.stop, histogram)
        return
    first = group.first_cell
    for r in range(siblings.first_run, siblings.first_run + siblings.n_runs):
        if fit.tree.runs[r].spare >= 0:
            part = fit.sums.spare[fit.tree.runs[r].spare, first : first + len(histogram)]
            for cell in range(len(histogram)):
                histogram[cell] += part[cell]


@numba.njit(**INNER)
def _subtract(address, p, g):  # type: ignore[no-untyped-def]
    """Compute the histogram (column group g) of the larger sibling of pair p: the parent's minus the smaller one's."""
    siblings = arrays_at(address).tree.siblings[p]
    if (
        siblings.subtracted < 0
        or not siblings.is_summed
        or not may_be_split(address, siblings.subtracted)
    ):
        return
    added, histogram = (
        _histogram_of(address, siblings.added, g),
        _histogram_of(address, siblings.subtracted, g),
    )
    for cell in range(len(histogram)):
        histogram[cell] -= added[cell]


@numba.njit(**INNER)
def _find_splits(address, p, g, scratch_address):  # type: ignore[no-untyped-def]
    """Find the best split on column group g of both siblings of pair p."""
    fit = arrays_at(address)
    group, siblings = fit.codes.groups[g], fit.tree.siblings[p]
    cuttable = fit.codes.cuttable[group.first_cell : group.first_cell + LANES * group.n_codes]
    criterion = criterion_of(address)
    for which in range(2 if siblings.subtracted >= 0 else 1):
        number = siblings.added if which == 0 else siblings.subtracted
        best_split = fit.tree.group_splits[2 * p + which, g]
        if not may_be_split(address, number):
            best_split.lane = -1
            continue
        find_split(
            _histogram_of(address, number, g),
            group,
            fit.codes.columns[g],
            fit.codes.members,
            fit.codes.allowed[g],
            cuttable,
            criterion,
            scratch_address,
            best_split,
        )
        best_split.group = g


@numba.njit(**INNER)
def _partition(address, t):  # type: ignore[no-untyped-def]
    fit = arrays_at(address)
    run = fit.tree.runs[t]
    split = fit.tree.node_splits[fit.tree.batch[run.item]]
    group = fit.codes.groups[split.group]
    words, above = fit.codes.words[group.first_word :], fit.tree.above[run.item]
    is_whole = run.above < 0  # then no other run is in the way of its rows above
    run.n_above = partition_rows(
        words,
        group.row_words,
        split.lane,
        above,
        run.start,
        run.stop,
        fit.rows.listed,
        fit.rows.listed if is_whole else fit.rows.partitioned,
        fit.rows.partitioned,
    )
    if is_whole:
        middle = run.start + run.n_above
        gather_rows(fit.rows.partitioned, middle, middle, run.stop, fit.rows.listed, middle, middle)


@numba.njit(**INNER)
def _mark(address, t, scratch_address):  # type: ignore[no-untyped-def]
    """Write which codes lie above the split of node t of the batch; if t < 0, of node -1 - t, split by a subset."""
    fit = arrays_at(address)
    number = fit.tree.batch[t] if t >= 0 else -1 - t
    above = fit.tree.above[t] if t >= 0 else fit.tree.subsets[number]
    split = fit.tree.node_splits[number]
    g = split.group
    group, histogram = fit.codes.groups[g], _histogram_of(address, number, g)
    criterion = criterion_of(address)
    mark_codes(
        histogram,
        group,
        fit.codes.columns[g],
        fit.codes.members,
        criterion,
        scratch_address,
        split,
        above,
    )
    if t >= 0 and split.cut == BY_SUBSET:
        fit.tree.subsets[number] = above


@numba.njit(**INNER)
def divide_masses(address, b):  # type: ignore[no-untyped-def]
    """Write the class weights of both children of node b of the batch, from its histogram."""
    fit = arrays_at(address)
    parent = fit.tree.nodes[fit.tree.batch[b]]
    split, is_above = fit.tree.node_splits[fit.tree.batch[b]], fit.tree.above[b]
    group = fit.codes.groups[split.group]
    histogram, first = fit.sums.histograms[parent.histogram], group.first_cell + split.lane
    above, below = fit.tree.nodes[parent.above], fit.tree.nodes[parent.below]
    cells_above = cells_below = np.int64(0)
    for code in range(group.n_codes):
        cell = histogram[first + LANES * code]
        cells_above += cell if is_above[code] else 0
        cells_below += 0 if is_above[code] else cell
    criterion = fit.criterion[0]
    above.positive, above.negative = unpack_masses(cells_above, criterion)
    below.positive, below.negative = unpack_masses(cells_below, criterion)


@numba.njit(**INNER)
def place_children(address, b, middle):  # type: ignore[no-untyped-def]
    """Assign the listed rows of node b of the batch to its children: those before `middle` to `above`.

    The children become siblings. The smaller one gets the new histogram, the other one reuses the parent's.
    """
    fit = arrays_at(address)
    parent, siblings = fit.tree.nodes[fit.tree.batch[b]], fit.tree.siblings[b]
    above, below = fit.tree.nodes[parent.above], fit.tree.nodes[parent.below]
    above.start, above.stop = parent.start, middle
    below.start, below.stop = middle, parent.stop
    siblings.added, siblings.subtracted = parent.above, parent.below
    if middle - parent.start >= parent.stop - middle:
        siblings.added, siblings.subtracted = parent.below, parent.above
        above.histogram, below.histogram = below.histogram, above.histogram


@numba.njit(**INNER)
def _split_node(address, b, scratch_address):  # type: ignore[no-untyped-def]
    """Split node b of the batch, and find the best splits of its children by each column group."""
    fit = arrays_at(address)
    node, run, siblings = fit.tree.nodes[fit.tree.batch[b]], fit.tree.runs[b], fit.tree.siblings[b]
    _mark(address, b, scratch_address)
    run.item, run.start, run.stop, run.above = b, node.start, node.stop, -1
    _partition(address, b)
    place_children(address, b, node.start + run.n_above)
    divide_masses(address, b)
    siblings.n_runs, siblings.is_summed = 1, may_be_split(address, siblings.added)
    is_end = not (siblings.is_summed or may_be_split(address, siblings.subtracted))
    for g in range(len(fit.codes.groups)):
        if is_end:
            fit.tree.group_splits[2 * b, g].lane = fit.tree.group_splits[2 * b + 1, g].lane = -1
        else:
            _sum_rows(address, b, g)
            _subtract(address, b, g)
            _find_splits(address, b, g, scratch_address)


@kernel(numba.void(numba.int64, numba.int64, numba.int64), by_address=True)
def run_task(address, scratch_address, t):  # type: ignore[no-untyped-def]
    fit = arrays_at(address)
    phase, n_groups = fit.progress[0].phase, len(fit.codes.groups)
    if phase in (BUILD, FIND, BUILD_AND_FIND):
        p, g = t // n_groups, t % n_groups
        if phase != FIND:
            _sum_rows(address, p, g)
        _subtract(address, p, g)
        if phase != BUILD:
            _find_splits(address, p, g, scratch_address)
    elif phase == SPLIT_NODE:
        _split_node(address, t, scratch_address)
    elif phase == MARK:
        _mark(address, t, scratch_address)
    elif phase == PARTITION:
        _partition(address, t)
    elif phase == GATHER:
        run = fit.tree.runs[t]
        if run.above >= 0:
            middle = run.start + run.n_above
            gather_rows(
                fit.rows.partitioned,
                run.start,
                middle,
                run.stop,
                fit.rows.listed,
                run.above,
                run.below,
            )
    elif phase == ADD:
        run, group = fit.tree.runs[t // n_groups], fit.codes.groups[t % n_groups]
        part = _histogram_of(address, fit.tree.siblings[run.item].added, t % n_groups)
        if run.spare >= 0:
            first = group.first_cell
            part = fit.sums.spare[run.spare, first : first + LANES * group.n_codes]
        add_rows(
            fit.codes.words[group.first_word :],
            group.row_words,
            fit.rows.listed,
            fit.rows.units,
            fit.settings[0].n_weights,
            1,
            fit.settings[0].n_positives,
            run.start,
            run.stop,
            part,
        )
    elif phase == SUM:
        sum_node(address, fit.tree.nodes[fit.tree.batch[t]].above)
        sum_node(address, fit.tree.nodes[fit.tree.batch[t]].below)
    elif phase == ROUTE:
        route_run(address, t)
    elif phase == RESCALE:
        rescale_run(address, t)
    elif phase == STEP:
        step_run(address, t)
    elif phase == DRAW:
        draw_run(address, t)
    elif phase == ROUND:
        round_run(address, t)
    else:
        list_run(address, t)
