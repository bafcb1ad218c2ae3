"""The comparison of the groups of protected columns on the validation rows of a training job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.models import calibrations
from app.models.calibrations import CalibrationRecord
from app.models.groups import (
    GROUP_STEPS_FILE,
    RowGroups,
    adjust_together,
    measure_groups,
    pack_steps,
    read_groups,
    steps_of,
)
from app.training.bipartite import LEVEL, HeldOutRows
from app.training.records import ProtectedGroupsRecord, TrainPayload

if TYPE_CHECKING:
    from app.training.bipartite import Ints
    from core.base.ranker import Floats


def compare(
    payload: TrainPayload,
    held_out: HeldOutRows,
    positions: Ints | None,
    scores: Floats,
    calibration: CalibrationRecord | None,
) -> ProtectedGroupsRecord | None:
    """Compare the groups of each protected column on the held-out rows; write which each threshold flags.

    Returns None without protected columns. `positions` are those of the held-out rows in their table; None if they are
    all of its rows. A row that was scored in several repeats counts once: each of its scores has a part of its weight,
    and they are one unit.
    """
    groupings, workdir = payload.get("groupings") or [], Path(payload["workdir"])
    if not groupings:
        return None
    table = payload["validation_table"] or payload["table"]
    rows, first, own = held_out, held_out, np.asarray(scores)
    once: Ints | slice = slice(None)
    repeats = 1 if held_out.folds is None else int(held_out.folds.repeat.max())
    if repeats > 1 and held_out.folds is not None:
        once = np.flatnonzero(held_out.folds.repeat == 1)
        weight = np.ones(len(scores)) if held_out.weight is None else held_out.weight
        unit = held_out.folds.row.astype(np.uint64) if held_out.group is None else held_out.group
        rows = HeldOutRows(held_out.y, weight / repeats, unit)
        first = HeldOutRows(
            held_out.y[once],
            None if held_out.weight is None else held_out.weight[once],
            None if held_out.group is None else held_out.group[once],
        )
    probability = None
    if calibration is not None:
        served = calibrations.read_record(calibration, workdir)
        probability = served.calibration.probability(own[once])
    columns, steps = [], []
    for grouping in groupings:
        groups = read_groups(table["path"], grouping)
        if positions is not None:
            groups = RowGroups(groups.codes[positions], groups.texts)
        of_first = RowGroups(groups.codes[once], groups.texts)
        columns.append(
            measure_groups(first, own[once], of_first, grouping, [], LEVEL, None, probability)
        )
        steps.append(steps_of(rows, own, groups, repeats))
    adjust_together(columns, LEVEL)
    (workdir / GROUP_STEPS_FILE).write_bytes(pack_steps(steps))
    return {"level": LEVEL, "columns": columns}
