"""Passes over all rows of a fit, divided into tasks: each task reads or writes one run of rows.

A tree begins with the list of its rows (`list_run`, or `draw_run`), whose weights are rounded (`round_run`). It ends
with the leaf of each row (`route_run`). Then the loss changes the weights (`rescale_run`, `step_run`). Sums of weights
are kept for each run and added in order, so that they do not depend on the threads.
"""

import numba
import numpy as np

from core.kernels import INNER

from .coding import LANES
from .derivatives import ROWS_AT_ONCE, call_derivatives
from .histogram import round_all_weights, round_weights
from .partition import find_first
from .predictor import find_leaves
from .records import arrays_at
from .sampling import uniform

# Rows of one run in a pass over all rows.
PASS_ROWS = 1 << 13

# Rows that are sent to their leaves together: their codes stay in the first-level cache.
ROUTED_ROWS = 1024


@numba.njit(inline="always")
def _sum_sizes(numbers, start, stop, stride):  # type: ignore[no-untyped-def]
    """Return the sum of the absolute values of every stride-th number, accumulated in four parts for speed."""
    sums = 0.0, 0.0, 0.0, 0.0
    middle = stop - (stop - start) % (4 * stride)
    for i in range(start, middle, 4 * stride):
        sums = (
            sums[0] + abs(numbers[i]),
            sums[1] + abs(numbers[i + stride]),
            sums[2] + abs(numbers[i + 2 * stride]),
            sums[3] + abs(numbers[i + 3 * stride]),
        )
    total = sums[0] + sums[1] + sums[2] + sums[3]
    for i in range(middle, stop, stride):
        total += abs(numbers[i])
    return total


@numba.njit(inline="always")
def _least_hessian(weights, start, stop):  # type: ignore[no-untyped-def]
    """Return the minimum Hessian of rows start to stop, at most 0; NaN is detected through their sum instead."""
    least = 0.0
    for i in range(start, stop):
        hessian = weights[2 * i + 1]
        least = hessian if hessian < least else least
    return least


@numba.njit(**INNER)
def list_run(address, t):  # type: ignore[no-untyped-def]
    """Write the row numbers of run t to `listed`, sum their weights, and find the minimum Hessian."""
    fit = arrays_at(address)
    n_weights, weights = fit.settings[0].n_weights, fit.rows.weights
    start, stop = fit.rows.passes[t].start, fit.rows.passes[t].stop
    for i in range(start, stop):
        fit.rows.listed[i] = i
    first, last = n_weights * start, n_weights * stop
    fit.sums.by_pass[t, 0] = _sum_sizes(weights, first, last, n_weights)
    fit.sums.by_pass[t, 1] = fit.sums.by_pass[t, 0]
    if n_weights == 2:
        fit.sums.by_pass[t, 1] = _sum_sizes(weights[1:], first, last - 1, 2)
        fit.sums.by_pass[t, 2] = _least_hessian(weights, start, stop)


@numba.njit(error_model="numpy", **INNER)
def draw_run(address, t):  # type: ignore[no-untyped-def]
    """Write the rows sampled from run t to `listed`, from the start of the run on; otherwise like `list_run`."""
    fit = arrays_at(address)
    settings, progress = fit.settings[0], fit.progress[0]
    start, stop = fit.rows.passes[t].start, fit.rows.passes[t].stop
    offset = settings.negatives_offset if fit.rows.passes[t].negative else settings.positives_offset
    end = np.uint64(start)
    first_sum = second_sum = least = 0.0
    for i in range(start, stop):
        size = abs(fit.rows.weights[i * settings.n_weights])
        kept = uniform(progress.key, np.uint64(i + offset)) * progress.threshold < size
        fit.rows.listed[end] = i
        end += np.uint64(1) if kept else np.uint64(0)
        raised = max(size, progress.threshold)
        first_sum += raised if kept else 0.0
        if settings.n_weights == 2:
            hessian = fit.rows.weights[2 * i + 1]
            second_sum += hessian * (raised / size) if kept else 0.0
            least = hessian if hessian < least else least
    fit.rows.n_drawn[t] = np.int64(end) - start
    fit.sums.by_pass[t, 0] = first_sum
    fit.sums.by_pass[t, 1] = second_sum if settings.n_weights == 2 else first_sum
    if settings.n_weights == 2:
        fit.sums.by_pass[t, 2] = least


@numba.njit(**INNER)
def round_run(address, t):  # type: ignore[no-untyped-def]
    """Write the rounded weights, in units, of a run of the root's rows."""
    fit = arrays_at(address)
    settings, progress, criterion = fit.settings[0], fit.progress[0], fit.criterion[0]
    root = fit.tree.nodes[fit.tree.siblings[0].added]
    start = root.start + PASS_ROWS * t
    stop = min(start + PASS_ROWS, root.stop)
    scales = 1.0 / criterion.first_unit, 1.0 / criterion.second_unit
    rows, weights, units = fit.rows.listed, fit.rows.weights, fit.rows.units
    nearest, key = settings.rounds_to_nearest != 0, ~progress.key  # not that of the draw
    middle = find_first(rows, start, stop, settings.n_positives)
    if nearest and progress.threshold == 0.0 and progress.n_cells == 0:  # all rows, in order
        round_all_weights(weights, settings.n_weights, start, middle, stop, scales, units)
        return
    after, after_negatives = settings.positives_offset, settings.negatives_offset
    given = progress.threshold, scales, nearest, key, after, units
    if settings.n_weights == 2:
        round_weights(weights, 2, rows, start, middle, *given)
        given = progress.threshold, scales, nearest, key, after_negatives, units
        round_weights(weights, 2, rows, middle, stop, *given)
        return
    round_weights(weights, 1, rows, start, middle, *given)
    given = progress.threshold, (scales[1], scales[1]), nearest, key, after_negatives, units
    round_weights(weights, 1, rows, middle, stop, *given)


@numba.njit(**INNER)
def _write_leaves(address, first, last, listed_from, listed_to, s, leaf):  # type: ignore[no-untyped-def]
    """Write the leaf of each row in listed[listed_from:listed_to] that lies between `first` and `last`."""
    fit = arrays_at(address)
    rows, leaves = fit.rows.listed, fit.rows.leaves
    at = np.uint64(find_first(rows, listed_from, listed_to, first))
    end = np.uint64(find_first(rows, listed_from, listed_to, last))
    if s < 0:
        while at < end:
            leaves[np.uint64(rows[at])] = leaf
            at += np.uint64(1)
        return
    split = fit.tree.coded_splits[s]
    column = fit.tree.split_columns[split.column]
    group, lane = fit.codes.groups[column // LANES], column % LANES
    per_word = LANES // group.row_words
    words, n_words = (
        fit.codes.words[group.first_word + lane // per_word :],
        np.uint64(group.row_words),
    )
    bits = np.uint64(8 * group.row_words)
    shift, one_code = bits * np.uint64(lane % per_word), (np.uint64(1) << bits) - np.uint64(1)
    first_above, n_more, subset = np.uint64(split.first), np.uint64(split.n_more), split.subset
    subsets = fit.tree.subsets.reshape(-1)
    while at < end:
        row = np.uint64(rows[at])
        code = (words[row * n_words] >> shift) & one_code
        if subset >= 0:
            is_above = subsets[np.uint64(subset) + code] != 0
        else:
            is_above = ((code - first_above) & one_code) <= (n_more & one_code)
        leaves[row] = leaf if is_above else s + 1
        at += np.uint64(1)


@numba.njit(**INNER)
def _read_leaves(address, start, stop):  # type: ignore[no-untyped-def]
    """Write the leaf of rows start to stop, using the row lists of the nodes; all rows must be listed."""
    fit = arrays_at(address)
    n_splits = fit.progress[0].n_leaves - 1
    for s in range(n_splits):
        split = fit.tree.splits[s]
        node = fit.tree.nodes[split.node]
        if not node.is_split:
            _write_leaves(address, start, stop, node.start, node.stop, s, split.leaf)
    for leaf in range(n_splits + 1):
        if fit.tree.open_leaves[leaf] < 0:
            continue
        node = fit.tree.nodes[fit.tree.open_leaves[leaf]]
        middle = fit.tree.nodes[node.above].stop if node.is_split else node.stop
        _write_leaves(address, start, stop, node.start, middle, -1, leaf)
        _write_leaves(address, start, stop, middle, node.stop, -1, leaf)


@numba.njit(**INNER)
def _find_leaves(address, start, stop):  # type: ignore[no-untyped-def]
    """Write the leaf of rows start to stop, by comparing their codes."""
    fit = arrays_at(address)
    progress = fit.progress[0]
    n_columns, n_leaves = progress.n_columns, progress.n_leaves
    wide = False
    for u in range(n_columns):
        wide |= fit.codes.groups[fit.tree.split_columns[u] // LANES].row_words == 2
    narrow_codes = np.empty((0 if wide else n_columns, ROUTED_ROWS), dtype=np.uint8)
    wide_codes = np.empty((n_columns if wide else 0, ROUTED_ROWS), dtype=np.uint16)
    spare = np.empty(ROUTED_ROWS, dtype=np.uint8)
    splits = fit.tree.coded_splits[: n_leaves - 1]
    subsets = fit.tree.subsets.reshape(-1)
    for low in range(start, stop, ROUTED_ROWS):
        n = min(ROUTED_ROWS, stop - low)
        for u in range(n_columns):
            g, lane = fit.tree.split_columns[u] // LANES, fit.tree.split_columns[u] % LANES
            group = fit.codes.groups[g]
            per_word = LANES // group.row_words
            first = group.first_word + low * group.row_words + lane // per_word
            words = fit.codes.words[first:]
            shift = np.uint64(lane % per_word * 8 * group.row_words)
            if wide and group.row_words == 2:
                for i in range(n):
                    wide_codes[u, i] = np.uint16((words[2 * i] >> shift) & np.uint64(0xFFFF))
            elif wide:
                for i in range(n):
                    wide_codes[u, i] = np.uint16((words[i] >> shift) & np.uint64(0xFF))
            else:
                for i in range(n):
                    narrow_codes[u, i] = np.uint8((words[i] >> shift) & np.uint64(0xFF))
        at = fit.rows.leaves[low : low + n]
        if wide:
            find_leaves(wide_codes, splits, subsets, spare, at)
        else:
            find_leaves(narrow_codes, splits, subsets, spare, at)


@numba.njit(**INNER)
def route_run(address, t):  # type: ignore[no-untyped-def]
    """Write the leaf of each row of run t, and the sums of weights per leaf to by_leaf[t, :, leaf]; see `Splits.sums`.

    Sample weights are all 1 if there are none.
    """
    fit = arrays_at(address)
    settings, progress = fit.settings[0], fit.progress[0]
    start, stop = fit.rows.passes[t].start, fit.rows.passes[t].stop
    n_leaves = progress.n_leaves
    if progress.threshold > 0.0:
        _find_leaves(address, start, stop)
    else:
        _read_leaves(address, start, stop)
    two_weights, weighted = settings.n_weights == 2, len(fit.rows.sample_weight) > 0
    sums = fit.sums.by_leaf[t]
    for j in range(len(sums)):
        for k in range(n_leaves):
            sums[j, k] = 0.0
    first_sums, second_sums = sums[fit.rows.passes[t].negative], sums[2]
    counts = sums[len(sums) - 1]
    for i in range(start, stop):
        leaf = np.uint64(fit.rows.leaves[i])
        if two_weights:
            first_sums[leaf] += fit.rows.weights[2 * i]
            second_sums[leaf] += fit.rows.weights[2 * i + 1]
        else:
            first_sums[leaf] += fit.rows.weights[i]
        counts[leaf] += fit.rows.sample_weight[i] if weighted else 1.0


@numba.njit(error_model="numpy", **INNER)
def rescale_run(address, t):  # type: ignore[no-untyped-def]
    """Multiply the weights of run t by factors[class, leaf]; write Σ weight² / sample weight to by_pass[t, 0]."""
    fit = arrays_at(address)
    weighted = len(fit.rows.sample_weight) > 0
    factor = fit.sums.factors[fit.rows.passes[t].negative]
    total = 0.0
    for i in range(fit.rows.passes[t].start, fit.rows.passes[t].stop):
        weight = fit.rows.weights[i] * factor[fit.rows.leaves[i]]
        fit.rows.weights[i] = weight
        total += weight * weight / fit.rows.sample_weight[i] if weighted else weight * weight
    fit.sums.by_pass[t, 0] = total


@numba.njit(error_model="numpy", **INNER)
def step_run(address, t):  # type: ignore[no-untyped-def]
    """Add factors[0, leaf] to each score of run t, and write gradient and Hessian of the loss.

    Writes Σ loss, Σ Hessian and Σ Hessian² / sample weight to by_pass[t].
    """
    fit = arrays_at(address)
    weighted = len(fit.rows.sample_weight) > 0
    values, derivatives = fit.sums.factors[0], fit.settings[0].derivatives
    sign = -1.0 if fit.rows.passes[t].negative else 1.0
    margins, losses = np.empty(ROWS_AT_ONCE), np.empty(ROWS_AT_ONCE)
    sum_loss = sum_hessian = sum_squares = 0.0
    stop = fit.rows.passes[t].stop
    for low in range(fit.rows.passes[t].start, stop, ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, stop - low)
        for i in range(n):
            score = fit.rows.scores[low + i] + values[fit.rows.leaves[low + i]]
            fit.rows.scores[low + i] = score
            margins[i] = sign * score
        counts = fit.rows.sample_weight[low : low + n]
        weights = fit.rows.weights[2 * low : 2 * (low + n)]
        if call_derivatives(derivatives, margins[:n], sign, counts, weights, losses):
            raise ValueError("the derivatives of the loss failed")
        for i in range(n):
            hessian = weights[2 * i + 1]
            sum_loss += losses[i]
            sum_hessian += hessian
            sum_squares += hessian * hessian / counts[i] if weighted else hessian * hessian
    fit.sums.by_pass[t, 0] = sum_loss
    fit.sums.by_pass[t, 1] = sum_hessian
    fit.sums.by_pass[t, 2] = sum_squares
