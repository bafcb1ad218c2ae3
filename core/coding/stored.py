"""Bin codes stored in files, for tables larger than memory.

A column is read whole, its cuts are learnt, and its codes are written; then the next. So the cuts are those of a fit
in memory, bit for bit. Codes are stored in shards of 2^20 rows, in the order of the table: of a shard one column after
the other. A fit lays them out as it reads them, positives first, in files without a name that are mapped to memory
(`mapped`): a shard's positives are one run of rows there, and its negatives another.

The shards of a source with an identity are kept, in a folder that is named by all that they depend on. A fit that finds
the folder checks every byte of it (`_open`), and writes it anew if a shard is missing or was changed. The folder gets
its name when it is complete. Shards of other sources have no names.

Every threshold of a ranker that was fitted on codes is an edge of the bins. So the edge that ends a bin stands in for
all values of the bin: scores of stand-ins (`StoredCodes.stand_ins`) are the scores of the values, bit for bit.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.base.checkpoint import seal, unseal
from core.base.columns import Bools, ColumnTable, compress
from core.base.shards import CodeFile, Piece
from core.errors import ArtifactError, InvalidData, ShardsLost

from .bins import (
    MAX_NARROW_BINS,
    Bins,
    Codes,
    encode,
    encode_categories,
    learn_column,
    missing_code,
    share_out,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SHARD_ROWS = 1 << 20
"""Rows of a shard, whatever the machine: its codes of 30 columns are 30 MB."""

BLOCK_ROWS = 1 << 16
"""Rows whose stand-ins are in memory together: half a megabyte a column."""

BLOCK_BYTES = 1 << 25
"""Bytes of stand-ins that are in memory together: of a wide table these are fewer rows."""

VERSION = 1
"""Of the files; a change of their layout, or of how cuts are learnt, needs another."""

CUTS_FILE = "cuts"
PART = ".part"


@dataclass(frozen=True)
class Shard:
    """A block of consecutive rows of the source table, and the files of their codes.

    codes: tuple of shape (stop - start,), uint8 or uint16; of each column; the greatest value is missing. Mapped to a
        file, read-only.
    """

    start: int
    stop: int
    """The rows of the source."""
    codes: tuple[Codes, ...]
    file: CodeFile


@dataclass(frozen=True, eq=False)
class StoredCodes:
    """The stored codes of all rows of a source table, under bins fitted on some of them."""

    bins: Bins
    shards: list[Shard]
    """In the order of their rows."""
    table: ColumnTable
    """The rows that the cuts were learnt from."""

    def rows_of(self, shard: Shard, mask: Bools | None) -> Integers:
        """Return the shard's row numbers, from 0, selected by a mask of the source's rows; all rows for None."""
        if mask is None:
            return np.arange(shard.stop - shard.start)
        return np.flatnonzero(mask[shard.start : shard.stop])

    def pieces(self, positive: Bools, weight: Floats) -> Iterator[Piece]:
        """Yield the table's rows as blocks of `SHARD_ROWS`, from which the shards of a fit are built."""
        is_equal = bool((weight == weight[0]).all())
        done = 0  # rows of the table in the files so far
        files: list[tuple[CodeFile, Bools]] = []
        number, first = 0, 0
        for shard in self.shards:
            n_file = shard.stop - shard.start
            if self.table.is_taken is None:
                is_taken = np.ones(n_file, dtype=np.bool_)
            else:
                is_taken = self.table.is_taken[shard.start : shard.stop]
            places = done + np.cumsum(is_taken) - 1  # in the table, of the rows that are taken
            done += int(np.count_nonzero(is_taken))
            while True:
                last = min(first + SHARD_ROWS, len(positive))
                own = is_taken & (places >= first) & (places < last)
                if own.any():
                    files.append((shard.file, own))
                if done < last or first == last:
                    break
                of_piece, masks = zip(*files, strict=True)
                own_weight = weight[:1] if is_equal else weight[first:last]
                yield Piece(number, of_piece, masks, positive[first:last], own_weight)
                files, number, first = [], number + 1, last

    def columns_of(self, piece: Piece) -> list[tuple[Codes, ...]]:
        columns = {shard.file.digest: shard.codes for shard in self.shards}
        return [columns[file.digest] for file in piece.files]

    def read(self, digest: bytes) -> bytes:
        """Return the bytes of a shard's file, given its digest; raise ShardsLost if it is truncated."""
        shard = next(shard for shard in self.shards if shard.file.digest == digest)
        n_bytes = sum(codes.nbytes for codes in shard.codes)
        with suppress(OSError):  # without a name it is mapped all the same
            found = Path(shard.file.path or "").stat().st_size
            if (
                shard.file.path is not None and found != n_bytes
            ):  # the map of a cut file ends the process
                raise ShardsLost(
                    f"the shard {shard.file.name} was changed: it must have {n_bytes} bytes, got {found}"
                )
        return b"".join(codes.tobytes() for codes in shard.codes)

    def stand_ins(self, table: ColumnTable) -> StandIns:
        """Return stand-in values for rows of the same source, which score exactly like the rows."""
        if table.source is not self.table.source:
            raise InvalidData("stand-ins are for rows of the source whose codes are stored")
        return StandIns(self, table.is_taken)

    def _blocks(self, mask: Bools | None) -> Iterator[Floats]:
        tables = self.stand_in_tables()
        for shard in self.shards:
            yield from stand_in_blocks(tables, shard.codes, self.rows_of(shard, mask))

    def stand_in_tables(self) -> list[Floats]:
        """Return the stand-in value of each code of each column, that of missing values last; see `StandIns`."""
        return [self._stand_in(j) for j in range(len(self.bins.edges))]

    def _stand_in(self, column: int) -> Floats:
        """Return the stand-in value of each code of one column, that of missing values last."""
        edges, of_category = self.bins.edges[column], self.bins.category_bins[column]
        values = np.full(int(self.bins.n_bins[column]) + 1, np.nan)
        if of_category is None:
            values[: len(edges)] = edges
            values[len(edges)] = np.inf if len(edges) else 0.0
        else:
            known = np.flatnonzero(of_category >= 0)
            values[of_category[known][::-1]] = known[::-1]  # of a bin's categories the first
        return values


def stand_in_blocks(
    tables: Sequence[Floats], codes: Sequence[Codes], rows: npt.NDArray[np.intp]
) -> Iterator[Floats]:
    """Yield blocks of stand-in values for rows of a shard, (n_rows, n_columns) float64, C-contiguous."""
    n_rows = max(min(BLOCK_ROWS, BLOCK_BYTES // (8 * len(tables))), 1)
    for start in range(0, len(rows), n_rows):
        some = rows[start : start + n_rows]
        block = np.empty((len(some), len(tables)))
        for j, own in enumerate(codes):
            block[:, j] = tables[j][np.minimum(own[some], len(tables[j]) - 1)]
        yield block


@dataclass(frozen=True, eq=False)
class StandIns:
    """Rows with each value replaced by its bin's upper edge: rankers on these bins give them the rows' scores."""

    stored: StoredCodes
    is_taken: Bools | None
    """The rows; None: all of the source. Shape (source.n_rows,), or None."""

    def apply(self, function: Callable[[Floats], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        return np.concatenate([function(block) for block in self.stored._blocks(self.is_taken)])

    def all(self) -> Floats:
        return self.apply(lambda block: block)


def store_codes(
    table: ColumnTable,
    weight: Floats,
    max_bins: int,
    n_categories: Integers,
    max_categories: int = 0,
    least_mass: float = 0.0,
) -> StoredCodes:
    """Fit the bins of a table's columns and store the codes of all rows of its source; or find them stored.

    InvalidData: a column holds an infinite value. OSError: the folder has no room.

    weight: (n_rows,); of the rows of the table.
    max_bins, n_categories, max_categories, least_mass: see `learn_bins`.

    Memory: 16 bytes per row of the source, with unequal weights or a categorical column 40. Each column is read once.
    """
    is_weighted = bool((weight != weight[0]).any())
    learning = (max_bins, n_categories.tolist(), max_categories, least_mass, SHARD_ROWS)
    name = _name(table, weight if is_weighted else weight[:1], learning)
    table.folder.mkdir(parents=True, exist_ok=True)
    final = None if name is None else table.folder / f"codes-{name.hex()}"
    if final is not None and name is not None:
        found = _open(table, final, name)
        if found is not None:
            return found
    part, lock = _begin(table.folder)
    try:
        writer = _Writer(part, table.source.n_rows)
        bins = write_codes(table, writer, weight, learning, is_weighted)
        digests = [digest.digest() for digest in writer.digests]
        if final is None or name is None:
            shards = _map(part, writer.n_rows, bins, digests, None)  # the files lose their names
        else:
            (part / CUTS_FILE).write_bytes(seal(name, _arrays_of(bins, writer)))
            # mapped before others see the folder: they may remove what has a name
            shards = _map(part, writer.n_rows, bins, digests, final)
            if _open(table, final, name) is None:  # else another process was faster
                shutil.rmtree(final, ignore_errors=True)
                try:
                    part.rename(final)
                except OSError as error:
                    if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                        raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
        os.close(lock)
    return StoredCodes(bins, shards, table)


def _begin(folder: Path) -> tuple[Path, int]:
    """Return a new folder to write to and its lock; remove unfinished folders of dead processes."""
    import fcntl  # not on every system that fits tables in memory

    for part in folder.glob(f"codes-*{PART}"):
        with suppress(OSError):
            lock = os.open(part, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(part, ignore_errors=True)
            finally:
                os.close(lock)
    while True:
        part = Path(tempfile.mkdtemp(prefix="codes-", suffix=PART, dir=folder))
        try:
            lock = os.open(part, os.O_RDONLY)
        except FileNotFoundError:  # as below
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if part.exists():  # another process may have removed it before it was locked
            return part, lock
        os.close(lock)


def mapped(folder: Path | None, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros, memory-mapped to an unnamed file in `folder`; in memory without one. OSError: there is no room."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if n_bytes == 0 or folder is None:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        # Room is taken now: a full disk is an error here, and would kill the process at a later write to memory.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            file.truncate(n_bytes)
        memory = mmap.mmap(file.fileno(), n_bytes)
    return np.frombuffer(memory, dtype).reshape(shape)


def widened(codes: Codes, missing: int) -> Codes:
    """Return uint8 codes as uint16, with the code of missing values replaced."""
    wide = codes.astype(np.uint16)
    wide[codes == missing_code(codes.dtype)] = missing
    return wide


def _types_of(bins: Bins) -> list[np.dtype[Any]]:
    return [np.dtype(np.uint8 if n <= MAX_NARROW_BINS else np.uint16) for n in bins.n_bins.tolist()]


def _name(table: ColumnTable, weight: Floats, learning: tuple[Any, ...]) -> bytes | None:
    """Return a hash of all that stored codes depend on; None for a source without an identity."""
    if table.source.identity is None:
        return None
    known = [VERSION, len(weight), table.source.n_rows, table.names, table.categories, learning]
    digest = hashlib.sha256(json.dumps(known).encode() + table.source.identity)
    for array in (table.is_taken, weight):
        digest.update(b"" if array is None else np.ascontiguousarray(array).data)
    return digest.digest()


class _Writer:
    """Writes the codes of all shards, column by column. digests: a hash object for each shard."""

    def __init__(self, folder: Path, n_rows: int) -> None:
        self._folder = folder
        self.n_rows = n_rows
        self.digests = [hashlib.sha256() for _ in range(-(-n_rows // SHARD_ROWS))]

    def write(self, column: Callable[[slice], Codes]) -> None:
        def write_shard(s: int) -> None:
            codes = column(slice(s * SHARD_ROWS, min((s + 1) * SHARD_ROWS, self.n_rows)))
            self.digests[s].update(codes.data)
            with _path(self._folder, s).open("ab") as file:
                file.write(codes.data)

        share_out(write_shard, range(len(self.digests)), self.n_rows)


def write_codes(
    table: ColumnTable,
    writer: _Writer,
    weight: Floats,
    learning: tuple[Any, ...],
    is_weighted: bool,
) -> Bins:
    max_bins, n_categories, max_categories, least_mass, _ = learning
    n_rows, n_features = table.source.n_rows, len(table.names)
    edges: list[Floats] = []
    category_bins: list[Integers | None] = []
    has_missing = np.zeros(n_features, dtype=np.bool_)
    values, room = np.empty(n_rows), np.empty(len(table))
    for j in range(n_features):
        table.read(j, values)
        if table.is_taken is None:
            room[:] = values
        else:
            compress(table.is_taken, values, room)
        has_missing[j] = bool(np.isnan(room.max()))
        own, of_category = learn_column(
            room,
            weight,
            max_bins,
            n_categories[j],
            max_categories,
            least_mass,
            is_weighted=is_weighted,
        )
        edges.append(own)
        category_bins.append(of_category)
        known = Bins((own,), has_missing[j : j + 1], (of_category,), np.dtype(np.uint8))
        (dtype,) = _types_of(known)

        def code(
            rows: slice,
            own: Floats = own,
            of_category: Integers | None = of_category,
            dtype: np.dtype[Any] = dtype,
        ) -> Codes:
            some = values[rows]
            codes: Codes = np.empty(len(some), dtype=dtype)
            if of_category is None:
                encode(some, own, missing_code(dtype), codes)
            else:
                encode_categories(some, of_category, missing_code(dtype), codes)
            return codes

        writer.write(code)
    dtype = np.dtype(np.uint8 if max_bins <= MAX_NARROW_BINS else np.uint16)
    return Bins(tuple(edges), has_missing, tuple(category_bins), dtype)


def lay_out_piece(
    piece: Piece, codes: Sequence[tuple[Codes, ...]], dtype: Any, folder: Path
) -> Codes:
    """Return a block's codes, (n_features, n_rows), positives first, memory-mapped. codes: of each file, by column."""
    n_rows, n_features = len(piece.positive), len(codes[0])
    laid_out = mapped(folder, (n_features, n_rows), dtype)
    next_place = [0, int(np.count_nonzero(piece.positive))]
    for own, rows, k in runs_of(piece, codes):
        place = slice(next_place[k], next_place[k] + len(rows))
        for column, wanted in zip(own, laid_out, strict=True):
            run = column[rows]
            wanted[place] = run if run.dtype == dtype else widened(run, missing_code(dtype))
        next_place[k] = place.stop
    return laid_out


def runs_of(
    piece: Piece, codes: Sequence[tuple[Codes, ...]]
) -> Iterator[tuple[tuple[Codes, ...], Integers, int]]:
    """Yield (columns' codes, rows, class) for each file of a block and each class: 0 for positives, 1 for negatives."""
    done = 0
    for own, is_taken in zip(codes, piece.is_taken, strict=True):
        taken = np.flatnonzero(is_taken)
        of_file = piece.positive[done : done + len(taken)]
        done += len(taken)
        yield own, taken[of_file], 0
        yield own, taken[~of_file], 1


def _path(folder: Path, s: int) -> Path:
    return folder / f"{s:06d}.codes"


def _map(
    folder: Path, n_rows: int, bins: Bins, digests: Sequence[bytes], kept: Path | None
) -> list[Shard]:
    """Return the shards with their files memory-mapped; `kept` is the folder's final path, None for unnamed files."""
    types, shards = tuple(dtype.str for dtype in _types_of(bins)), []
    for s, start in enumerate(range(0, n_rows, SHARD_ROWS)):
        stop = min(start + SHARD_ROWS, n_rows)
        with _path(folder, s).open("rb") as opened:
            memory = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        path = None if kept is None else str(_path(kept, s).absolute())
        file = CodeFile(digests[s], path, types, stop - start)
        shards.append(Shard(start, stop, file.columns(memory), file))
    return shards


def _arrays_of(bins: Bins, writer: _Writer) -> dict[str, npt.NDArray[Any]]:
    of_categories = [b for b in bins.category_bins if b is not None]
    return {
        "edges": np.concatenate([np.empty(0), *bins.edges]),
        "n_edges": np.array([len(edges) for edges in bins.edges]),
        "has_missing": bins.has_missing,
        "category_bins": np.concatenate([np.empty(0, dtype=np.int64), *of_categories]),
        "n_categories": np.array([-1 if b is None else len(b) for b in bins.category_bins]),
        "is_wide": np.array(bins.dtype == np.uint16),
        "shards": np.frombuffer(b"".join(d.digest() for d in writer.digests), np.uint8),
    }


def _open(table: ColumnTable, folder: Path, name: bytes) -> StoredCodes | None:
    try:
        arrays = unseal("the cuts", (folder / CUTS_FILE).read_bytes(), name)
        bins = _bins_of(arrays)
        joined, size = arrays["shards"].tobytes(), hashlib.sha256().digest_size
        digests = [joined[start : start + size] for start in range(0, len(joined), size)]
        for s, written in enumerate(digests):
            with _path(folder, s).open("rb") as file:
                if hashlib.file_digest(file, "sha256").digest() != written:
                    return None
        return StoredCodes(bins, _map(folder, table.source.n_rows, bins, digests, folder), table)
    except (OSError, ArtifactError):
        return None


def _bins_of(arrays: dict[str, npt.NDArray[Any]]) -> Bins:
    edges = np.split(arrays["edges"], np.cumsum(arrays["n_edges"])[:-1])
    counts = arrays["n_categories"]
    of_categories = np.split(arrays["category_bins"], np.cumsum(np.maximum(counts, 0))[:-1])
    category_bins = tuple(
        own if n >= 0 else None for own, n in zip(of_categories, counts.tolist(), strict=True)
    )
    dtype = np.dtype(np.uint16 if bool(arrays["is_wide"]) else np.uint8)
    return Bins(tuple(edges), arrays["has_missing"], category_bins, dtype)
