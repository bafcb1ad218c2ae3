"""The scores of a table: read block by block, scored block by block, and put together in row order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from app.datasets.service import Format
from app.ingest.rows import Source
from app.scoring.options import Terms
from app.scoring.service import Served
from app.scoring.table_rows import Bounds, Floats, RowReader, read_body


class Scores(NamedTuple):
    """Of rows: scores of shape (rows,) or (rows, labels), and places on the validation curve if there is one."""

    scores: Floats
    fprs: Floats | None
    tprs: Floats | None


def score_matrix(served: Served, X: Floats) -> Scores:
    """The scores of rows that are numbers already."""
    return Scores(*served.score(X))


def score_body(served: Served, body: bytes, table: Format, terms: Terms, bounds: Bounds) -> Scores:
    """The scores of a table that lies in memory. Raises Invalid and BadTable with every fault of it."""
    reader, source = read_body(body, table, served.features, terms, served.spelling, bounds)
    blocks = list(_score_blocks(served, reader, source))
    if len(blocks) == 1:
        return blocks[0]
    if not blocks:
        return score_matrix(served, np.empty((0, len(served.features.names))))
    scores, fprs, tprs = zip(*blocks, strict=True)
    return Scores(np.concatenate(scores), _join(fprs), _join(tprs))


def _score_blocks(served: Served, reader: RowReader, source: Source) -> Iterator[Scores]:
    for batch in reader.batches(source):
        for X in batch.blocks(len(served.features.names)):
            yield score_matrix(served, X)


def _join(blocks: tuple[Floats | None, ...]) -> Floats | None:
    """One column of the blocks; either all have it, or none."""
    known = [block for block in blocks if block is not None]
    return np.concatenate(known) if known else None
