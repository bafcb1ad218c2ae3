"""Tables in and out: files, pandas, polars and pyarrow, rows as objects.

None of these libraries is imported unless the caller's table is of it. A table travels as an Arrow stream where pyarrow
is installed, else as NDJSON; scores come back the same way, as a table of the caller's own kind.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeGuard, Union, cast

from rankwright.errors import ConfigurationError
from rankwright.transport import CHUNK_BYTES

ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".txt": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.file",
    ".feather": "application/vnd.apache.arrow.file",
    ".arrows": ARROW,
    ".ndjson": NDJSON,
    ".jsonl": NDJSON,
    ".json": "application/json",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".zip": "application/zip",
}
"""By the ending of a file's name."""
SCORED_AT_ONCE = [MEDIA_TYPES[ending] for ending in (".csv", ".ndjson", ".arrow", ".arrows")]
"""What a service scores within a request; workers read other formats, too."""
ENCODINGS = {".gz": "gzip", ".zst": "zstd"}

Table = Union[str, "os.PathLike[str]", BinaryIO, bytes, Sequence[Mapping[str, Any]], Any]
"""A path, an open binary file, bytes of CSV, rows as mappings, or a table of pandas, polars or pyarrow."""

SCORED_PART_BYTES = 4 << 20
"""Largest body of a part of the rows to score, unless one row is larger: half of what a service accepts by default."""
_PART_NUMBERS = 4 << 20  # cells of a part: half of what is accepted once they are float64

Progress = Callable[[int, int | None], object]
"""Is called with the bytes sent so far and the bytes in all (None if not known)."""


class Part(NamedTuple):
    """Some neighbouring rows of a table, as a request carries them."""

    first: int
    """Index of its first row in the table."""
    data: bytes


@dataclass
class Body:
    """A table as a request carries it.

    Attributes
    ----------
    chunks : callable
        Returns the bytes anew at each call, unless not `repeatable`.
    kind : str
        The library of the table: "pandas", "polars", "pyarrow", "rows" or "file".
    parts : callable, optional
        Returns the rows in parts of at most `SCORED_PART_BYTES`; None for files, which travel in one.
    """

    media_type: str
    chunks: Callable[[], Iterable[bytes]]
    encoding: str | None = None
    size: int | None = None
    kind: str = "file"
    repeatable: bool = True
    index: Any = None
    parts: Callable[[], Iterable[Part]] | None = None

    def headers(self) -> dict[str, str]:
        """Return Content-Type and Content-Encoding."""
        found = {"Content-Type": self.media_type}
        if self.encoding is not None:
            found["Content-Encoding"] = self.encoding
        return found

    def of_part(self, part: Part) -> Body:
        """Return the body of one of `parts`."""
        return replace(self, chunks=lambda: [part.data], size=len(part.data))

    def whole(self) -> bytes:
        """Return all bytes at once."""
        return b"".join(self.chunks())

    def sha256(self) -> str:
        """Return the SHA-256 of all bytes, as hexadecimal digits."""
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def chunks_with_progress(self, progress: Progress | None) -> Callable[[], Iterable[bytes]]:
        """Return `chunks`, or a function that calls `progress` after each chunk that it yields."""
        if progress is None:
            return self.chunks

        def chunks() -> Iterator[bytes]:
            sent = 0
            for chunk in self.chunks():
                yield chunk
                sent += len(chunk)
                progress(sent, self.size)

        return chunks


def body_of(table: Table, media_type: str | None = None) -> Body:
    """Return a table as a request carries it.

    ConfigurationError: if the table is of no known kind, or a file's name does not tell its format.

    Parameters
    ----------
    table : path, file object, bytes, list of dict, pandas.DataFrame, polars.DataFrame or LazyFrame, pyarrow.Table
    media_type : str, optional
        Of files and bytes whose name does not tell it.
    """
    if isinstance(table, (str, os.PathLike)):
        return _of_path(Path(table), media_type)
    if isinstance(table, (bytes, bytearray, memoryview)):
        data = bytes(table)
        return Body(media_type or "text/csv", lambda: _cut(data), size=len(data))
    if hasattr(table, "read"):
        return _of_file(cast(BinaryIO, table), media_type)
    if isinstance(table, Mapping):
        return _of_rows([table])
    if isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        return _of_rows(cast("Sequence[Mapping[str, Any]]", table))
    return _of_frame(table)


def in_form(fields: Mapping[str, str], file: Body) -> Body:
    """Return a form with these fields and a part `file`."""
    boundary = uuid.uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in fields.items()
    ]
    parts.append(
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="file"\r\n'
        f"Content-Type: {file.media_type}\r\n\r\n"
    )
    head, tail = "".join(parts).encode(), f"\r\n--{boundary}--\r\n".encode()

    def chunks() -> Iterator[bytes]:
        yield head
        yield from file.chunks()
        yield tail

    size = None if file.size is None else len(head) + file.size + len(tail)
    media_type = f"multipart/form-data; boundary={boundary}"
    return Body(media_type, chunks, size=size, repeatable=file.repeatable)


def format_of(name: str) -> tuple[str, str | None]:
    """Return the media type of a file, and its compression or None, by its name. ConfigurationError: if the name does
    not tell its format.
    """
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    encoding = ENCODINGS[suffixes.pop()] if suffixes and suffixes[-1] in ENCODINGS else None
    media_type = MEDIA_TYPES.get(suffixes[-1] if suffixes else "")
    if media_type is None:
        known = ", ".join([*MEDIA_TYPES, ".csv.gz", ".csv.zst"])
        raise ConfigurationError(
            f"a table's name must end in one of {known}, got {Path(name).name!r}"
        )
    return media_type, encoding


def _of_path(path: Path, media_type: str | None) -> Body:
    if media_type is None:
        media_type, encoding = format_of(path.name)
    else:
        encoding = ENCODINGS.get(path.suffix.lower())
    if not path.is_file():
        raise ConfigurationError(f"there is no file {str(path)!r}")

    def chunks() -> Iterator[bytes]:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    return Body(media_type, chunks, encoding, path.stat().st_size)


MAX_PARTS = 1000
"""Most files of a folder that become one dataset."""


_MAGICS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrows",
    b"{": ".ndjson",
    b"[{": ".json",
    b"[\n": ".json",
    b"PK\x03\x04": ".zip",  # or a workbook: the service looks
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
}


def ending_of(head: bytes) -> str:
    """Return the ending for the name of a table that begins with these bytes; what is nothing else is CSV."""
    return next((ending for magic, ending in _MAGICS.items() if head.startswith(magic)), ".csv")


def is_folder(table: Table) -> TypeGuard[str | os.PathLike[str]]:
    """Return True if a table is the path of a folder."""
    return isinstance(table, (str, os.PathLike)) and Path(table).is_dir()


def folder_bodies(folder: str | os.PathLike[str], media_type: str | None = None) -> list[Body]:
    """Return the tables of a folder in the order of their names, as requests carry them.

    Hidden files, and those whose names begin with `_`, are left out. A folder of Hive partitions (`year=2026/…`) of
    Parquet files is read by pyarrow, with the columns of the paths, as one table. ConfigurationError: for anything else
    that is no table, for tables of several formats, for a folder without tables, and for a Delta, Hudi or Iceberg
    table, whose log says which files are rows of it.
    """
    shown = repr(str(folder))
    whole = Path(folder).absolute()
    while "=" in whole.name:  # one partition of a table
        whole = whole.parent
    for name, format_ in _LAKES.items():
        if next(whole.glob(name), None) is not None:
            raise ConfigurationError(
                f"{shown} is a {format_} table, in which not every file is part of the table: read it with a library "
                "of this format and pass the table, or export it to a new folder"
            )
    if any(path.is_dir() and "=" in path.name for path in Path(folder).iterdir()):
        return [_of_partitions(folder)]
    paths = sorted(path for path in Path(folder).iterdir() if path.name[0] not in "._")
    for path in paths:
        if not path.is_file():
            raise ConfigurationError(
                f"a folder of tables must contain only files; {shown} has {path.name!r}"
            )
    if not 1 <= len(paths) <= MAX_PARTS:
        raise ConfigurationError(
            f"a folder must have 1 to {MAX_PARTS} tables to become a dataset; {shown} has {len(paths)}"
        )
    bodies = [_of_path(path, media_type) for path in paths]
    for path, body in zip(paths, bodies, strict=True):
        if body.media_type != bodies[0].media_type:
            raise ConfigurationError(
                f"the tables of a folder must have the same format; {paths[0].name!r} is "
                f"{bodies[0].media_type}, but {path.name!r} is {body.media_type}"
            )
    return bodies


_LAKES = {
    "_delta_log": "Delta",
    ".hoodie": "Hudi",
    "metadata/*.metadata.json": "Iceberg",
    "../metadata/*.metadata.json": "Iceberg",
}
"""What the folder of a table of a lake format has, or that of its data."""


def _of_partitions(folder: str | os.PathLike[str]) -> Body:
    """Return a folder of Hive partitions of Parquet files as one table. ConfigurationError: without pyarrow."""
    try:
        import pyarrow
        import pyarrow.dataset
    except ImportError:
        raise ConfigurationError(
            f"{str(folder)!r} has Hive partitions, whose columns are not in the files: install pyarrow to read them"
        ) from None
    try:
        found = pyarrow.dataset.dataset(str(folder), format="parquet", partitioning="hive")
        return _of_frame(found.to_table())
    except (pyarrow.ArrowException, OSError) as error:
        raise ConfigurationError(
            f"{str(folder)!r} has Hive partitions that cannot be read as Parquet: {error}"
        ) from error


def _of_file(file: BinaryIO, media_type: str | None) -> Body:
    name = getattr(file, "name", None)
    on_disk = media_type is None and isinstance(name, str) and Path(name).is_file()
    named = _of_path(Path(cast(str, name)), None) if on_disk else None
    again = file.seekable()
    start = file.tell() if again else 0

    def chunks() -> Iterator[bytes]:
        if again:
            file.seek(start)
        while chunk := file.read(CHUNK_BYTES):
            if isinstance(chunk, str):
                raise ConfigurationError("a file must be opened in binary mode: open(path, 'rb')")
            yield chunk

    return Body(
        named.media_type if named else media_type or "text/csv",
        chunks,
        named.encoding if named else None,
        named.size if named else None,
        repeatable=again,
    )


def _of_rows(rows: Sequence[Mapping[str, Any]]) -> Body:
    return Body(NDJSON, lambda: _lines(rows), kind="rows", parts=lambda: _row_parts(rows))


def _lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    for i in range(0, len(rows), 1024):
        lines = [_line(row, i + k) for k, row in enumerate(rows[i : i + 1024])]
        yield ("\n".join(lines) + "\n").encode()


def _row_parts(rows: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    # The columns of a table are the names in all its rows, so the first row of each part has them all.
    names = dict.fromkeys(name for row in rows for name in row)
    lines: list[str] = []
    first, size = 0, 0
    for i, row in enumerate(rows):
        line = _line(row if lines else {**dict.fromkeys(names), **row}, i)
        if lines and size + len(line) > SCORED_PART_BYTES:
            yield Part(first, ("\n".join(lines) + "\n").encode())
            first, size = i, 0
            lines, line = [], _line({**dict.fromkeys(names), **row}, i)
        lines.append(line)
        size += len(line) + 1
    yield Part(first, "".join(f"{line}\n" for line in lines).encode())


def _line(row: Mapping[str, Any], number: int) -> str:
    try:
        return json.dumps({name: _value(value) for name, value in row.items()}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"row {number} cannot be sent as JSON: {error}") from error


def _value(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):  # a scalar of numpy
        return _value(value.item())
    return value


def _of_frame(table: Any) -> Body:
    module = type(table).__module__.partition(".")[0]
    if module == "polars" and hasattr(table, "collect"):
        table = table.collect()
    is_frame = module not in ("pandas", "polars") or hasattr(table, "columns")  # a Series has none
    if module == "pandas" and is_frame:
        return _arrow_body(lambda: _pandas_to_arrow(table), "pandas", table, index=table.index)
    if is_frame and (module in ("polars", "pyarrow") or hasattr(table, "__arrow_c_stream__")):
        kind = module if module in ("polars", "pyarrow") else "pyarrow"
        return _arrow_body(lambda: _to_arrow(table), kind, table)
    raise ConfigurationError(
        "a table must be a path, a file, bytes, rows as mappings, or a table of pandas, polars or"
        f" pyarrow, got {type(table).__name__}"
    )


def _arrow_body(make: Callable[[], Any], kind: str, table: Any, index: Any = None) -> Body:
    try:
        import pyarrow as pa
    except ImportError:
        rows = table.to_dict("records") if kind == "pandas" else table.to_dicts()
        found = _of_rows(rows)
        found.kind, found.index = kind, index
        return found
    arrow = make()

    def stream(rows: Any) -> Iterator[bytes]:
        sink = _Pieces()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            for batch in rows.to_batches(max_chunksize=65_536):
                writer.write_batch(batch)
                if sink.size > CHUNK_BYTES:
                    yield sink.take()
        yield sink.take()

    def parts() -> Iterator[Part]:
        plain = _without_large_dictionaries(arrow)
        by_bytes = plain.num_rows * SCORED_PART_BYTES // max(1, plain.nbytes)
        by_numbers = _PART_NUMBERS // max(1, plain.num_columns)
        size = max(1, min(by_bytes, by_numbers))
        first = 0
        while True:
            data = b"".join(stream(plain.slice(first, size)))
            if (
                len(data) > SCORED_PART_BYTES and size > 1
            ):  # a slice of half the rows, for as long as it is too large
                size = max(1, min(size, plain.num_rows - first) // 2)
                continue
            yield Part(first, data)
            first += size
            if first >= plain.num_rows:
                return

    return Body(
        ARROW, lambda: stream(arrow), kind=kind, size=arrow.nbytes, index=index, parts=parts
    )


def _without_large_dictionaries(table: Any) -> Any:
    """Return an Arrow table whose large dictionaries are plain columns: each part would repeat them."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(i)
            largest = max((chunk.dictionary.nbytes for chunk in column.chunks), default=0)
            if largest > SCORED_PART_BYTES // 16:
                column = column.cast(field.type.value_type)
                table = table.set_column(i, field.with_type(column.type), column)
    return table


class _Pieces(io.RawIOBase):
    """Holds what an Arrow writer wrote until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self.size += len(part)
        return len(part)

    def take(self) -> bytes:
        parts, self._parts, self.size = self._parts, [], 0
        return b"".join(parts)


def _pandas_to_arrow(table: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_pandas(table, preserve_index=False)


def _to_arrow(table: Any) -> Any:
    import pyarrow as pa

    if isinstance(table, pa.RecordBatchReader):
        return table.read_all()
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    return table if isinstance(table, pa.Table) else pa.table(table)


def _cut(data: bytes) -> Iterator[bytes]:
    for i in range(0, len(data), CHUNK_BYTES):
        yield data[i : i + CHUNK_BYTES]


# --- scores ---------------------------------------------------------------------------------------


def score_media_type(kind: str) -> str:
    """Return the media type in which to request scores, by the `kind` of the caller's table."""
    return (
        ARROW if kind in ("pandas", "polars", "pyarrow") and _has("pyarrow") else "application/json"
    )


def _has(module: str) -> bool:
    if module in sys.modules:
        return True
    import importlib.util

    return importlib.util.find_spec(module) is not None


def frame_of(answers: Sequence[tuple[bytes, str]], body: Body, n_reasons: int = 0) -> Any:
    """Return scores as one table of the caller's kind: for files and rows a list of dict.

    `answers` has the content and the media type of the answer to each part of the body, in order. `n_reasons` is the
    number of reasons that were asked for.
    """
    if answers[0][1].startswith("application/vnd.apache.arrow"):
        import pyarrow as pa

        arrow = pa.concat_tables([pa.ipc.open_stream(content).read_all() for content, _ in answers])
        if body.kind == "pyarrow":
            return arrow
        if body.kind == "polars":
            import polars as pl

            return pl.from_arrow(arrow)
        frame = arrow.to_pandas()
        if body.index is not None and len(body.index) == len(frame):
            frame.index = body.index
        return frame
    columns: dict[str, list[Any]] = {}
    for content, _ in answers:
        for name, values in _columns_of(json.loads(content), n_reasons).items():
            columns.setdefault(name, []).extend(values)
    if body.kind == "pandas":
        import pandas as pd

        return pd.DataFrame(columns, index=body.index)
    if body.kind == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _columns_of(data: Mapping[str, Any], n_reasons: int) -> dict[str, list[Any]]:
    ids = {"id": data["ids"]} if data.get("ids") is not None else {}
    if "labels" in data:  # a list of scores per row, a score per label
        scores = enumerate(data["labels"])
        return ids | {label: [row[i] for row in data["scores"]] for i, label in scores}
    names = (
        ("score", "scores"),
        ("fpr", "fprs"),
        ("tpr", "tprs"),
        ("probability", "probabilities"),
        ("probability_low", "probabilities_low"),
        ("probability_high", "probabilities_high"),
        ("flag", "flags"),
    )
    found = ids | {name: data[many] for name, many in names if data.get(many) is not None}
    return found | (_reason_columns(data, n_reasons) if data.get("reasons") is not None else {})


def _reason_columns(data: Mapping[str, Any], n_reasons: int) -> dict[str, list[Any]]:
    """Return the columns that a table of scores has; None where a row has fewer reasons."""
    padded = [[*reasons, *[{}] * (n_reasons - len(reasons))] for reasons in data["reasons"]]
    found = {
        f"reason_{k + 1}_{part}": [row[k].get(part) for row in padded]
        for k in range(n_reasons)
        for part in ("code", "text", "contribution", "error")
    }
    reference = data["reference"]["score"]
    return found | {
        "reasons_rest": data["reasons_rest"],
        "reference_score": [reference] * len(padded),
    }
