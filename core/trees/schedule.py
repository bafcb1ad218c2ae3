"""The schedule of tree growth: which leaves are split next, and the phases of parallel tasks that split them.

Best first, several leaves are split speculatively at the same time: those of greatest gain, which the tree will nearly
always get. Their gains decide which of them it gets, and in which order, as if they had been split one by one. This
gives the threads more to share, and they wait for each other less often.

The threads of a fit form a parallel region (`core.coding.threads`). One of them leads it through the phases of a tree.
A phase has many tasks, no two of which write to the same memory. All threads call the tasks by their address,
so `run_worker` is compiled without them. `address` is that of the arrays of the fit (`records`), `scratch_address`
that of the memory of the thread for scans.
"""

import numba
import numpy as np

from core.coding.threads import (
    REGION_TYPE,
    SLEEP_MICROSECONDS,
    SLEEPS,
    SPINS,
    address_of,
    atomic_add,
    atomic_load,
    call_at,
    keep_alive,
    publish,
    sleep,
    take_task,
    wait_for_all,
)
from core.kernels import INNER, kernel

from .coding import LANES
from .histogram import unit_of
from .passes import PASS_ROWS
from .records import (
    ADD,
    ADD_ROOT,
    ADD_SIBLINGS,
    ADVANCE,
    BUILD,
    BUILD_AND_FIND,
    DIVIDE,
    DRAW,
    FIND,
    GATHER,
    GROW,
    LIST,
    LIST_ROWS,
    MARK,
    PARTITION,
    PLANT,
    ROUND,
    ROUTE,
    SPLIT_NODE,
    SUM,
    WORK,
    arrays_at,
)
from .sampling import close_up
from .splitting import BUNDLE, BY_SUBSET, MASS_RTOL, YOUDEN, make_scratch, scratch_at
from .tasks import divide_masses, may_be_split, place_children

# Rows that one task partitions.
PARTITION_ROWS = 1 << 14

# Rows per code that one task adds to a histogram, at least: then clearing the histogram costs little.
MIN_ROWS_PER_CODE = 16

# Tasks into which a phase is divided, about.
TASKS_PER_PHASE = 8


@numba.njit(**INNER)
def _scratch_of(address):  # type: ignore[no-untyped-def]
    """Return a thread's scratch memory, sized for the column group with the most codes."""
    fit = arrays_at(address)
    n_codes = 1
    for g in range(len(fit.codes.groups)):
        n_codes = max(n_codes, fit.codes.groups[g].n_codes)
    return make_scratch(n_codes)


@numba.njit(**INNER)
def _work(region, address, scratch_address):  # type: ignore[no-untyped-def]
    """Run tasks of the phases that another thread leads, until there are none."""
    run_task = arrays_at(address).settings[0].run_task
    idle = 0
    while idle < SPINS + SLEEPS and atomic_load(region.ended) == 0:
        t = take_task(region)
        if t < 0:
            idle += 1
            if idle > SPINS:
                sleep(SLEEP_MICROSECONDS)
            continue
        idle = 0
        if call_at(run_task, address, scratch_address, t):
            atomic_add(region.failed, 1)
        atomic_add(region.done, 1)  # even then: the leader waits for it


@numba.njit(**INNER)
def _do(address, scratch_address, phase, t):  # type: ignore[no-untyped-def]
    """Run task t as the leader; the current phase must be `phase`, or all its tasks must be done."""
    arrays_at(address).progress[0].phase = phase
    if call_at(arrays_at(address).settings[0].run_task, address, scratch_address, t):
        raise MemoryError("a task of a tree failed, most likely because of insufficient memory")


@numba.njit(**INNER)
def _lead(region, address, scratch_address, phase, n_tasks):  # type: ignore[no-untyped-def]
    fit = arrays_at(address)
    fit.progress[0].phase = phase
    publish(region, n_tasks)
    t = take_task(region)
    while t >= 0:
        _do(address, scratch_address, phase, t)
        atomic_add(region.done, 1)
        t = take_task(region)
    wait_for_all(region, n_tasks)


@numba.njit(**INNER)
def _open_gain(address, number):  # type: ignore[no-untyped-def]
    """Return the gain of the best split of a node; -1 if there is none or the node is at the maximum depth."""
    fit = arrays_at(address)
    split = fit.tree.node_splits[number]
    too_deep = fit.tree.nodes[number].depth >= fit.settings[0].max_depth
    return -1.0 if split.lane < 0 or too_deep else split.gain


@numba.njit(**INNER)
def _best_open_leaf(address, unsplit_only):  # type: ignore[no-untyped-def]
    """Return the leaf to split next: of greatest gain, or (level by level) least depth; -1 if none has a gain.

    unsplit_only: consider only nodes that are not split yet and whose children may be split.
    """
    fit = arrays_at(address)
    settings, progress = fit.settings[0], fit.progress[0]
    best, least_gain = -1, 0.0
    for leaf in range(progress.n_leaves):
        gain = fit.tree.open_gains[leaf]
        if gain < 0.0 or (settings.best_first and best >= 0 and gain <= least_gain):
            continue
        node = fit.tree.open_leaves[leaf]
        depth = fit.tree.nodes[node].depth
        if unsplit_only and (fit.tree.nodes[node].is_split or depth + 1 >= settings.max_depth):
            continue
        if settings.best_first or best < 0 or depth < fit.tree.nodes[best].depth:
            best, least_gain = node, gain * (1.0 + 1e-9)
    return best


@numba.njit(**INNER)
def _commit(address, number, scratch_address):  # type: ignore[no-untyped-def]
    """Add the split of a node to the tree: its children become leaves."""
    fit = arrays_at(address)
    progress = fit.progress[0]
    node, split = fit.tree.nodes[number], fit.tree.node_splits[number]
    s, new = progress.n_leaves - 1, progress.n_leaves
    g, lane, cut = split.group, split.lane, split.cut
    group, column = fit.codes.groups[g], fit.codes.columns[g][lane]
    n_known = group.n_codes - group.has_missing
    of_tree, coded = fit.tree.splits[s], fit.tree.coded_splits[s]
    of_tree.leaf, of_tree.feature, of_tree.node = node.leaf, split.feature, number
    of_tree.missing_above = split.missing_above
    of_tree.cut = 0 if column.kind == BUNDLE else cut
    index = 0
    while index < progress.n_columns and fit.tree.split_columns[index] != LANES * g + lane:
        index += 1
    fit.tree.split_columns[index] = LANES * g + lane
    progress.n_columns = max(progress.n_columns, index + 1)
    coded.leaf, coded.column, coded.subset = node.leaf, index, -1
    if cut == BY_SUBSET:
        if not node.is_split:
            _do(address, scratch_address, MARK, -1 - number)
        coded.first = coded.n_more = 0
        coded.subset = number * fit.tree.subsets.shape[1]
    elif column.kind == BUNDLE:
        # the member's code alone, or the interval of all others, round the greatest code
        on_above = fit.codes.members[column.first_member + cut - 1].on_above != 0
        coded.first = cut if on_above else cut + 1
        coded.n_more = 0 if on_above else -2
    else:
        # The missing code, the greatest, ends the interval of those above or follows it.
        coded.first = cut + 1
        coded.n_more = n_known - 2 - cut + (split.missing_above if group.has_missing else 0)
    fit.tree.open_leaves[node.leaf] = node.above if node.is_split else -1
    fit.tree.open_leaves[new] = node.below if node.is_split else -1
    fit.tree.open_gains[node.leaf] = fit.tree.open_gains[new] = -1.0
    if node.is_split:
        fit.tree.nodes[node.above].leaf = node.leaf
        fit.tree.nodes[node.below].leaf = new
        fit.tree.open_gains[node.leaf] = _open_gain(address, node.above)
        fit.tree.open_gains[new] = _open_gain(address, node.below)
    progress.n_leaves += 1


@numba.njit(**INNER)
def _choose(address, scratch_address):  # type: ignore[no-untyped-def]
    """Add precomputed splits to the tree, then choose the next batch of nodes to split; return its size."""
    fit = arrays_at(address)
    settings, progress = fit.settings[0], fit.progress[0]
    if progress.n_leaves == 1:
        fit.tree.open_gains[0] = _open_gain(address, fit.tree.open_leaves[0])
    node = -1
    while progress.n_leaves < settings.max_leaves:
        node = _best_open_leaf(address, False)
        if node < 0:
            return 0
        children_matter = (
            progress.n_leaves + 1 < settings.max_leaves
            and fit.tree.nodes[node].depth + 1 < settings.max_depth
        )
        if children_matter and not fit.tree.nodes[node].is_split:
            break
        _commit(address, node, scratch_address)
    remaining = settings.max_leaves - progress.n_leaves
    if remaining == 0:
        return 0
    most = len(fit.tree.batch)
    if settings.best_first:
        waiting = 0
        for leaf in range(progress.n_leaves):
            number = fit.tree.open_leaves[leaf]
            waiting += 1 if number >= 0 and fit.tree.nodes[number].is_split else 0
        speculative = (
            settings.speculative_splits if progress.n_cells == 0 else 1
        )  # do not partition rows without need
        most = max(min(speculative - waiting, remaining // 2), 1)
    n = 0
    depth = 0
    while n < most:  # the first node is that which the tree waits for
        if n > 0:
            node = _best_open_leaf(address, True)
        if node < 0 or (n > 0 and not settings.best_first and fit.tree.nodes[node].depth > depth):
            break
        depth = fit.tree.nodes[node].depth
        fit.tree.nodes[node].is_split = 1
        fit.tree.batch[n] = node
        n += 1
    return n


@numba.njit(**INNER)
def _free_histogram(address, number):  # type: ignore[no-untyped-def]
    """Release the histogram memory of a node that will not be split."""
    fit = arrays_at(address)
    progress = fit.progress[0]
    fit.tree.free[progress.n_free] = fit.tree.nodes[number].histogram
    progress.n_free += 1


@numba.njit(**INNER)
def _take_histogram(address, number):  # type: ignore[no-untyped-def]
    """Assign an unused histogram memory to a node."""
    fit = arrays_at(address)
    progress = fit.progress[0]
    if progress.n_free > 0:
        progress.n_free -= 1
        fit.tree.nodes[number].histogram = fit.tree.free[progress.n_free]
    else:
        fit.tree.nodes[number].histogram = progress.n_histograms
        progress.n_histograms += 1


@numba.njit(**INNER)
def _add_children(address, b):  # type: ignore[no-untyped-def]
    """Add the children of node b of the batch, whose rows are not known yet: their masses are infinite."""
    fit = arrays_at(address)
    progress, parent = fit.progress[0], fit.tree.nodes[fit.tree.batch[b]]
    parent.above, parent.below = progress.n_nodes, progress.n_nodes + 1
    progress.n_nodes += 2
    for number in (parent.above, parent.below):
        child = fit.tree.nodes[number]
        child.depth, child.is_split = parent.depth + 1, 0
        child.positive = child.negative = np.inf
        child.histogram = parent.histogram
    _take_histogram(address, parent.above)


@numba.njit(**INNER)
def _divide_rows(region, address, scratch_address, n_batch):  # type: ignore[no-untyped-def]
    """Partition the rows of the batch's nodes between their children, and register the children as siblings."""
    fit = arrays_at(address)
    n = 0
    gathers = False
    for b in range(n_batch):
        _add_children(address, b)
        node = fit.tree.nodes[fit.tree.batch[b]]
        size = node.stop - node.start
        parts = max((size + PARTITION_ROWS - 1) // PARTITION_ROWS, 1)
        gathers |= parts > 1
        for r in range(parts):
            run = fit.tree.runs[n + r]
            run.item = b
            run.start = node.start + size * r // parts
            run.stop = node.start + size * (r + 1) // parts
            run.above = 0 if parts > 1 else -1
            run.n_above = 0
        n += parts
    _lead(region, address, scratch_address, PARTITION, n)
    r = 0
    for b in range(n_batch):
        parent = fit.tree.nodes[fit.tree.batch[b]]
        first = r
        middle = parent.start
        while r < n and fit.tree.runs[r].item == b:
            middle += fit.tree.runs[r].n_above
            r += 1
        above, below = parent.start, middle
        for k in range(first, r if r - first > 1 else first):
            run = fit.tree.runs[k]
            run.above, run.below = above, below
            above += run.n_above
            below += run.stop - run.start - run.n_above
        place_children(address, b, middle)
    if gathers:
        _lead(region, address, scratch_address, GATHER, n)


@numba.njit(**INNER)
def _is_small(address, n_batch):  # type: ignore[no-untyped-def]
    """Return True if one task per node of the batch is enough: nodes of few rows, and as many as threads.

    Then the threads wait for each other once, and what a node needs stays in the cache of one core.
    """
    fit = arrays_at(address)
    if fit.progress[0].n_cells > 0 or 2 * n_batch < fit.settings[0].speculative_splits:
        return False
    for b in range(n_batch):
        node = fit.tree.nodes[fit.tree.batch[b]]
        if not 0 < node.stop - node.start <= PARTITION_ROWS:  # 0: they are in other processes
            return False
    return True


@numba.njit(**INNER)
def _split_batch(region, address, scratch_address, n_batch):  # type: ignore[no-untyped-def]
    """Split the batch, register children as siblings, and return the number of pairs; 0 if best splits are chosen
    already.

    Two children are left out if neither may be split. One task per node then chooses the splits of the children, too.
    """
    fit = arrays_at(address)
    if _is_small(address, n_batch):
        for b in range(n_batch):
            _add_children(address, b)
        _lead(region, address, scratch_address, SPLIT_NODE, n_batch)
        _choose_splits(address, n_batch)
        return 0
    for b in range(n_batch):
        _do(address, scratch_address, MARK, b)
    _divide_rows(region, address, scratch_address, n_batch)
    if fit.progress[0].n_cells > 0:
        _lead(region, address, scratch_address, SUM, n_batch)
    else:
        for b in range(n_batch):
            divide_masses(address, b)
    n_siblings = 0
    for b in range(n_batch):
        added, sibling = fit.tree.siblings[b].added, fit.tree.siblings[b].subtracted
        if may_be_split(address, added) or may_be_split(address, sibling):
            fit.tree.siblings[n_siblings].added, fit.tree.siblings[n_siblings].subtracted = (
                added,
                sibling,
            )
            n_siblings += 1
        else:
            for number in (added, sibling):
                fit.tree.node_splits[number].lane = -1
                _free_histogram(address, number)
    return n_siblings


@numba.njit(**INNER)
def _add_runs(region, address, scratch_address, n_siblings):  # type: ignore[no-untyped-def]
    """Divide the rows of siblings' histograms into runs; sum the runs and combine those of the same node."""
    fit = arrays_at(address)
    n_groups = len(fit.codes.groups)
    n = n_spare = 0
    runs_each = (TASKS_PER_PHASE - 1) // (n_siblings * n_groups) + 1
    for p in range(n_siblings):
        siblings = fit.tree.siblings[p]
        node = fit.tree.nodes[siblings.added]
        size = node.stop - node.start
        parts = max(
            min(runs_each, size // (MIN_ROWS_PER_CODE * len(scratch_at(scratch_address).share))), 1
        )
        siblings.first_run, siblings.n_runs = n, parts
        siblings.is_summed = (
            siblings.subtracted < 0 or parts > 1 or may_be_split(address, siblings.added)
        )
        for r in range(parts if parts > 1 else 0):
            run = fit.tree.runs[n]
            run.item = p
            run.start = node.start + size * r // parts
            run.stop = node.start + size * (r + 1) // parts
            run.spare = n_spare if r > 0 else -1
            n_spare += 1 if r > 0 else 0
            n += 1
    if n > 0:
        _lead(region, address, scratch_address, ADD, n * n_groups)


@numba.njit(**INNER)
def _comes_first(split, other, node, objective):  # type: ignore[no-untyped-def]
    """Return True if a node's split beats another: more gain, or nearly equal gain and an earlier feature."""
    tie = 1e-9 * other.gain
    if objective == YOUDEN:
        tie = 10.0 * MASS_RTOL * node.positive * node.negative
    near = abs(split.gain - other.gain) <= tie
    return split.feature < other.feature if near else split.gain > other.gain


@numba.njit(**INNER)
def _choose_splits(address, n_siblings):  # type: ignore[no-untyped-def]
    """Choose the best split of each sibling among the best splits of its column groups."""
    fit = arrays_at(address)
    objective = fit.criterion[0].objective
    for p in range(n_siblings):
        for which in range(2):
            number = fit.tree.siblings[p].added if which == 0 else fit.tree.siblings[p].subtracted
            if number < 0:
                continue
            best, splits = 0, fit.tree.group_splits[2 * p + which]
            for g in range(1, len(splits)):
                if splits[g].lane >= 0 and (
                    splits[best].lane < 0
                    or _comes_first(splits[g], splits[best], fit.tree.nodes[number], objective)
                ):
                    best = g
            fit.tree.node_splits[number] = splits[best]
            if splits[best].lane < 0:
                _free_histogram(address, number)


@numba.njit(**INNER)
def _split_leaves(region, address, scratch_address):  # type: ignore[no-untyped-def]
    """Partition the rows of the last splits of a cell's tree, whose children need no histograms."""
    fit = arrays_at(address)
    progress = fit.progress[0]
    n = 0
    for s in range(progress.n_leaves - 1):
        number = fit.tree.splits[s].node
        if not fit.tree.nodes[number].is_split:
            fit.tree.nodes[number].is_split = 1
            fit.tree.batch[n] = number
            n += 1
        if n == len(fit.tree.batch) or (n > 0 and s == progress.n_leaves - 2):
            _split_batch(region, address, scratch_address, n)
            n = 0
    for s in range(progress.n_leaves - 1):
        node = fit.tree.nodes[fit.tree.splits[s].node]
        fit.tree.nodes[node.above].leaf, fit.tree.nodes[node.below].leaf = node.leaf, s + 1


@numba.njit(**INNER)
def _allow(address, tree):  # type: ignore[no-untyped-def]
    """Write which columns the tree may split on, and at which codes of bundled columns."""
    fit = arrays_at(address)
    features = fit.codes.features[tree]
    for g in range(len(fit.codes.groups)):
        for k in range(LANES):
            column = fit.codes.columns[g][k]
            fit.codes.allowed[g, k] = features[column.feature] or column.kind == BUNDLE
            if column.kind == BUNDLE:
                for member in range(column.n_bins - 1):
                    cell = fit.codes.groups[g].first_cell + LANES * (member + 1) + k
                    fit.codes.cuttable[cell] = features[
                        fit.codes.members[column.first_member + member].feature
                    ]


@numba.njit(**INNER)
def _list_rows(region, address, scratch_address):  # type: ignore[no-untyped-def]
    """List the rows on which the tree is grown as rows of the root, and sum their weights, shard by shard."""
    fit = arrays_at(address)
    settings, progress, passes = fit.settings[0], fit.progress[0], fit.rows.passes
    n_rows = settings.n_rows
    if progress.threshold > 0.0:
        _lead(region, address, scratch_address, DRAW, len(passes))
        n_rows = close_up(fit.rows.listed, passes, fit.rows.n_drawn)
    else:
        _lead(region, address, scratch_address, LIST, len(passes))
    fit.tree.nodes[0].start, fit.tree.nodes[0].stop = 0, n_rows
    by_shard, of_both = fit.sums.by_shard, settings.n_weights == 2
    by_shard[:] = 0.0
    for t in range(len(passes)):
        of_shard, negative = by_shard[passes[t].shard], passes[t].negative
        of_shard[0] += fit.sums.by_pass[t, 0] if of_both or not negative else 0.0
        of_shard[1] += fit.sums.by_pass[t, 1] if of_both or negative else 0.0


@numba.njit(**INNER)
def _choose_units(address):  # type: ignore[no-untyped-def]
    """Choose the units (powers of two) to which the rows' weights are rounded, from the total weights."""
    fit = arrays_at(address)
    sums = fit.sums.by_shard
    width = len(sums)
    while width > 1:
        for k in range(width // 2):
            sums[k, 0] = sums[2 * k, 0] + sums[2 * k + 1, 0]
            sums[k, 1] = sums[2 * k, 1] + sums[2 * k + 1, 1]
        if width % 2 == 1:
            sums[width // 2, 0], sums[width // 2, 1] = sums[width - 1, 0], sums[width - 1, 1]
        width = (width + 1) // 2
    criterion = fit.criterion[0]
    criterion.first_unit, criterion.second_unit = unit_of(sums[0, 0]), unit_of(sums[0, 1])


@numba.njit(**INNER)
def _plant(address, number):  # type: ignore[no-untyped-def]
    fit = arrays_at(address)
    progress, root = fit.progress[0], fit.tree.nodes[number]
    _allow(address, number)
    root.histogram = root.depth = root.leaf = root.is_split = 0
    progress.n_leaves = progress.n_histograms = 1
    progress.n_columns = progress.n_free = 0
    fit.tree.open_leaves[0] = number
    if progress.n_cells > 0:
        criterion = fit.criterion[0]
        criterion.first_unit = unit_of(root.positive)
        criterion.second_unit = unit_of(root.negative)
    else:
        progress.n_nodes = 1
        root.positive = root.negative = np.inf  # unknown
    fit.tree.siblings[0].added, fit.tree.siblings[0].subtracted = number, -1
    progress.n_siblings = progress.n_batch = 1


@numba.njit(**INNER)
def _round_root(region, address, scratch_address):  # type: ignore[no-untyped-def]
    """Round the weights of the rows of the newest root to whole units."""
    root = arrays_at(address).tree.nodes[arrays_at(address).tree.siblings[0].added]
    _lead(
        region,
        address,
        scratch_address,
        ROUND,
        (root.stop - root.start + PASS_ROWS - 1) // PASS_ROWS,
    )


@numba.njit(**INNER)
def _split_next(region, address, scratch_address):  # type: ignore[no-untyped-def]
    progress = arrays_at(address).progress[0]
    _choose_splits(address, progress.n_siblings)
    progress.n_batch = _choose(address, scratch_address)
    progress.n_siblings = 0
    if progress.n_batch > 0:
        progress.n_siblings = _split_batch(region, address, scratch_address, progress.n_batch)


@numba.njit(**INNER)
def _grow_trees(region, address, scratch_address):  # type: ignore[no-untyped-def]
    """Grow a tree and route all rows to its leaves, with sums per leaf; or grow a tree in each cell."""
    fit = arrays_at(address)
    progress, n_groups = fit.progress[0], len(fit.codes.groups)
    if progress.n_cells == 0:
        _list_rows(region, address, scratch_address)
        _choose_units(address)
    else:
        progress.n_nodes = progress.n_cells
    for number in range(max(progress.n_cells, 1)):
        _plant(address, number)
        _round_root(region, address, scratch_address)
        while progress.n_batch > 0:
            if progress.n_siblings > 0:
                _add_runs(region, address, scratch_address, progress.n_siblings)
                _lead(
                    region, address, scratch_address, BUILD_AND_FIND, progress.n_siblings * n_groups
                )
            _split_next(region, address, scratch_address)
        if progress.n_cells > 0:
            _split_leaves(region, address, scratch_address)
    if progress.n_cells == 0 and progress.n_leaves > 1:
        _lead(region, address, scratch_address, ROUTE, len(fit.rows.passes))


@kernel(numba.void(REGION_TYPE, numba.int64, numba.int64))
def run_worker(region, address, part):  # type: ignore[no-untyped-def]
    """Run a thread of a parallel region: as worker (WORK), or as leader of growing a tree (GROW) or of a part of it.

    address: that of a laid out `FitArrays`. A pass is ROUTE, RESCALE or STEP. Where rows and splits are in
    different processes (`core.trees.shards`), the one that finds splits does PLANT (begin a tree) and ADVANCE (find the
    splits of nodes whose histograms are there, and choose which to split); the others do LIST_ROWS, ADD_ROOT (the
    histogram of the root), DIVIDE (the rows of the nodes of the batch) and ADD_SIBLINGS (the histograms of siblings).
    """
    scratch = _scratch_of(address)
    scratch_address = address_of(scratch)
    progress, n_groups = arrays_at(address).progress[0], len(arrays_at(address).codes.groups)
    if part == WORK:
        _work(region, address, scratch_address)
    elif part == GROW:
        _grow_trees(region, address, scratch_address)
    elif part == PLANT:
        _choose_units(address)
        _plant(address, 0)
        arrays_at(address).tree.siblings[0].is_summed = 1
    elif part == ADVANCE:
        _lead(region, address, scratch_address, FIND, progress.n_siblings * n_groups)
        _split_next(region, address, scratch_address)
        for p in range(progress.n_siblings):
            arrays_at(address).tree.siblings[p].is_summed = 1  # by the others
    elif part == LIST_ROWS:
        _list_rows(region, address, scratch_address)
    elif part == ADD_ROOT:
        _plant(address, 0)
        _round_root(region, address, scratch_address)
        _add_runs(region, address, scratch_address, 1)
        _lead(region, address, scratch_address, BUILD, n_groups)
    elif part == DIVIDE:
        _divide_rows(region, address, scratch_address, progress.n_batch)
        progress.n_siblings = progress.n_batch
    elif part == ADD_SIBLINGS:
        _add_runs(region, address, scratch_address, progress.n_siblings)
        _lead(region, address, scratch_address, BUILD, progress.n_siblings * n_groups)
    else:
        _lead(region, address, scratch_address, part, len(arrays_at(address).rows.passes))
    keep_alive(scratch)
