"""CSV by Arrow's reader, in blocks of whole lines that are parsed side by side: fast, and without line numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numba
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from app.services.ingest.delimited import BOM, Layout, Upload
from app.services.ingest.dialect import with_point
from app.services.ingest.faults import Faults
from app.services.ingest.missing import MissingTokens
from app.services.ingest.rows import Doubt, Rows
from app.services.ingest.stream import Stream

_BLOCK_BYTES = 1 << 21
_COLUMN_BYTES = 1 << 15  # of a block, so that the batches of a wide table are not a handful of rows
_MAX_BLOCK_BYTES = 1 << 23


class FastCsv:
    """The columns named `numeric` as float64, all others as text. Any irregularity is a `Doubt`."""

    schema = None
    exact = False

    def __init__(
        self,
        upload: Upload,
        layout: Layout,
        missing: MissingTokens,
        numeric: Collection[str] = (),
        *,
        hasty: bool = False,
    ) -> None:
        self.names = layout.names
        self.numeric = frozenset(numeric)
        self.hasty = hasty
        self._missing = missing.spellings()
        self.decimal = layout.decimal
        self._upload = upload
        self._layout = layout
        self._stream: Stream | None = None

    def progress(self) -> tuple[int, int]:
        """Return the bytes of the upload read so far, and all of them."""
        return (self._stream.position if self._stream else 0), self._upload.size

    def batches(self, faults: Faults, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """Yield the rows; raises Doubt where a row, a quote or an encoding is not plain."""
        with self._upload.open() as stream:
            self._stream = stream
            stream.skip(self._layout.header_bytes)
            above = stream.quotes
            first = 0
            for batch in self._parsed(stream, columns):
                yield Rows(batch, first)
                first += batch.num_rows
            # An unclosed quote swallows the rest of the file without an error. Where no value holds a quote, all
            # quotes stand in pairs around values, so an odd one is open.
            if (stream.quotes - above) % 2:
                raise Doubt

    def _parsed(self, stream: Stream, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Parse block after block, the first in this thread: who wants no more of them waits for no more."""
        size = max(_BLOCK_BYTES, min(_MAX_BLOCK_BYTES, len(self.names) * _COLUMN_BYTES))
        parse = partial(self._parse, self._convert_options(columns))
        blocks = _blocks(stream, size)
        if (block := next(blocks, None)) is not None:
            yield parse(*block)
        threads = numba.get_num_threads()
        waiting: deque[Future[pa.RecordBatch]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for block in blocks:
                waiting.append(pool.submit(parse, *block))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _convert_options(self, columns: Sequence[str] | None) -> pyarrow.csv.ConvertOptions:
        return pyarrow.csv.ConvertOptions(
            column_types={
                name: pa.float64() if name in self.numeric else pa.string() for name in self.names
            },
            include_columns=columns,
            null_values=self._missing,
            strings_can_be_null=True,
            decimal_point=self._layout.decimal,
        )

    def _parse(
        self, converting: pyarrow.csv.ConvertOptions, block: bytes, quoted: bool
    ) -> pa.RecordBatch:
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(block),
                read_options=pyarrow.csv.ReadOptions(
                    column_names=self.names, block_size=len(block) + 1, use_threads=False
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self._layout.delimiter, newlines_in_values=quoted
                ),
                convert_options=converting,
            )
        except pa.ArrowInvalid as error:
            raise Doubt from error
        columns = [column.combine_chunks() for column in table.columns]  # none of blank lines alone
        batch = pa.RecordBatch.from_arrays(columns, schema=table.schema)
        # A NaN is spelled as no missing value is, and Arrow's reader takes the mark of the byte order away.
        if (quoted and _holds_quote(batch)) or _holds_nan(batch) or block.startswith(BOM):
            raise Doubt
        return batch


def _blocks(stream: Stream, size: int) -> Iterator[tuple[bytes, bool]]:
    """Cut the text after line ends outside quotes, and tell of each block whether it has any.

    Raises Doubt for a record that is longer than a block.
    """
    rest, before = b"", stream.quotes  # what is to be handed out, and the quotes before it
    while piece := stream.read(size):
        quotes = stream.quotes - before
        end = _end_of_lines(piece, closed=quotes % 2 == 0)
        if end:
            yield b"".join((rest, memoryview(piece)[:end])), quotes > 0
            rest = piece[end:]
            before = stream.quotes - rest.count(b'"')
        else:
            rest += piece
            if len(rest) > size:
                raise Doubt
    if rest:
        yield rest, stream.quotes > before


def _end_of_lines(piece: bytes, *, closed: bool) -> int:
    """Where the last line ends that does so outside quotes, or 0; `closed` tells whether the piece ends there."""
    stop = len(piece)
    while True:
        start = piece.rfind(b'"', 0, stop) + 1
        if closed:
            end = max(piece.rfind(mark, start, stop) for mark in (b"\n", b"\r")) + 1
            if end:
                return end
        if not start:
            return 0
        stop, closed = start - 1, not closed


def plain_numbers(source: FastCsv, columns: Collection[str]) -> set[str]:
    """Return which of the columns begin with rows of nothing but plain numbers."""
    try:
        rows = next(source.batches(Faults(), sorted(columns)), None) if columns else None
    except Doubt:
        return set()
    if rows is None:
        return set()
    return {name for name in columns if _is_plain(rows.batch.column(name), source.decimal)}


def _is_plain(text: pa.Array, decimal: str) -> bool:
    try:
        values = pc.cast(with_point(text, decimal), pa.float64())
    except pa.ArrowInvalid:
        return False
    return bool(pc.all(pc.is_finite(values)).as_py() is not False)


def _holds_quote(batch: pa.RecordBatch) -> bool:
    texts = (column for column in batch.columns if column.type == pa.string())
    return any(pc.any(pc.match_substring(text, '"')).as_py() for text in texts)


def _holds_nan(batch: pa.RecordBatch) -> bool:
    numbers = (column for column in batch.columns if column.type == pa.float64())
    return any(pc.any(pc.is_nan(values)).as_py() for values in numbers)
