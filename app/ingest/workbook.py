"""Spreadsheets of Office Open XML (.xlsx): the first visible sheet becomes CSV, by python-calamine.

Calamine loads a sheet as one rectangle, with a copy of each shared text for each of its cells. A file of a few
kilobytes can refer to a cell a billion cells away, or to one long text a million times. So every part that calamine may
read is first read here by expat and measured; only these parts are passed on, unchanged.
"""

from __future__ import annotations

import csv
import re
import tempfile
import zipfile
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from xml.parsers import expat

import python_calamine as calamine

from app.ingest.archives import is_workbook, open_archive, read_member
from app.ingest.errors import MAX_ROWS, BadTable, show, too_many_columns, too_many_rows
from app.ingest.stream import too_long
from app.ingest.values import spell

MAX_BYTES = 1 << 30
"""Most bytes of a workbook's parts once decompressed, of its texts in all cells, and of its first sheet as CSV."""
MAX_CELLS = 10_000_000
"""Most cells of a sheet, empty ones between others included: each takes some 70 bytes of memory."""
_MAX_LIST_BYTES = 1 << 25
"""Most bytes of a part that lists sheets, or styles: an entry takes several times its text in memory."""
_SHEETS = re.compile(r"xl/worksheets/[^/]+\.xml")
_TEXTS = "xl/sharedStrings.xml"
_PARTS = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|xl/workbook\.xml|xl/_rels/workbook\.xml\.rels|xl/styles\.xml"
)
_CELL = re.compile(r"([A-Z]{1,7})([0-9]{1,9})")
_DAY = timedelta(days=1)


@contextmanager
def sheet_as_csv(
    path: Path, limits: Mapping[str, int], workdir: Path, decimal: str
) -> Iterator[Path]:
    """Yield a file with the first visible sheet of a workbook, one line for each of its rows.

    Cells that are numbers are written with the `decimal` mark of the texts beside them.

    Raises
    ------
    BadTable
        The workbook is damaged, encrypted, without a sheet of cells, or larger than the limits allow.
    """
    with tempfile.TemporaryDirectory(dir=workdir) as name:
        checked, written = Path(name, "workbook.xlsx"), Path(name, "sheet.csv")
        _copy_checked(path, checked, limits)
        _write_csv(rows_of(checked), written, min(limits["bytes"], MAX_BYTES), decimal)
        checked.unlink()
        yield written


def _write_csv(rows: Iterator[list[Any]], path: Path, max_bytes: int, decimal: str) -> None:
    """Write the rows as CSV, blank ones included so that line numbers stay valid. Raises BadTable above `max_bytes`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in rows:
            texts = [_text(value, decimal) for value in row]
            if any(texts):
                writer.writerow(texts)
            else:
                file.write("\n")  # keeps the numbers of lines; blank ones do not count
            if file.tell() > max_bytes:
                raise too_long(max_bytes)


def rows_of(path: Path) -> Iterator[list[Any]]:
    """Yield the rows of the first visible sheet, blank ones above its header included, from its first used
    column on.
    """
    try:
        with calamine.CalamineWorkbook.from_path(path) as book:
            names = [
                sheet.name
                for sheet in book.sheets_metadata
                if sheet.typ == calamine.SheetTypeEnum.WorkSheet
                and sheet.visible == calamine.SheetVisibleEnum.Visible
            ]
            if not names:
                raise BadTable("the workbook has no visible sheet of cells")
            sheet = book.get_sheet_by_name(names[0])
            if sheet.start is None:
                raise BadTable(
                    f"the sheet {show(names[0])} is empty: it must have a header and rows"
                )
            yield from sheet.iter_rows()
    except (calamine.CalamineError, ValueError) as error:
        raise BadTable(f"the workbook is damaged: {error}"[:300]) from error


def _text(value: Any, decimal: str) -> str:
    """Return a cell as text for CSV: dates in ISO 8601, durations in days, as the spreadsheet counts them."""
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("T00:00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        value = value / _DAY
    text = spell(value)
    return text.replace(".", decimal) if isinstance(value, float) else text


def _copy_checked(source: Path, target: Path, limits: Mapping[str, int]) -> None:
    """Copy the parts of a workbook that calamine reads, after reading each completely within the limits."""
    left = most = min(limits["bytes"], MAX_BYTES)
    with source.open("rb") as file, open_archive(file) as archive:
        members = {member.filename: member for member in archive.infolist()}
        if len(members) != len(archive.infolist()):
            raise BadTable("the workbook is damaged: a part of it is there twice")
        if not is_workbook(archive):
            raise BadTable("a ZIP archive of a table must not be compressed again")
        sheets = [name for name in members if _SHEETS.fullmatch(name)]
        texts = [_TEXTS] if _TEXTS in members else []
        others = [name for name in members if _PARTS.fullmatch(name)]
        lengths = array("Q")
        with zipfile.ZipFile(target, "w") as copy:
            for name in (*others, *texts, *sheets):
                reader = (
                    _Texts(lengths)
                    if name == _TEXTS
                    else _Sheet(limits, lengths)
                    if name in sheets
                    else _Part()
                )
                with copy.open(name, "w") as written:
                    for piece in read_member(archive, members[name]):
                        left -= len(piece)
                        if left < 0:
                            raise too_long(most)
                        reader.feed(piece)
                        written.write(piece)
                reader.feed(b"", last=True)


class _Part:
    """Checks a part of a workbook: it must be XML without a DTD, which could define entities."""

    most = _MAX_LIST_BYTES

    def __init__(self) -> None:
        self._size = 0
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.buffer_text = True

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        """Read the next bytes. Raises BadTable."""
        self._size += len(piece)
        if self._size > self.most:
            raise too_long(self.most)
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            raise BadTable(f"the workbook is damaged: a part of it is not XML: {error}") from error

    def _refuse(self, *_: object) -> None:
        raise BadTable("the workbook is damaged: its parts must have no DTD")


class _Texts(_Part):
    """Records the length of each shared text."""

    most = MAX_BYTES

    def __init__(self, lengths: array[int]) -> None:
        super().__init__()
        self._lengths = lengths
        self._parser.StartElementHandler = self._start
        self._parser.CharacterDataHandler = self._add

    def _start(self, name: str, _: object) -> None:
        if _local(name) == "si":
            if len(self._lengths) == MAX_CELLS:
                raise _too_many(MAX_CELLS, "more texts")
            self._lengths.append(0)

    def _add(self, text: str) -> None:
        if self._lengths:
            self._lengths[-1] += len(text.encode())


class _Sheet(_Part):
    """Counts the cells of a sheet, up to its last row and column, and the total length of their shared texts."""

    most = MAX_BYTES

    def __init__(self, limits: Mapping[str, int], lengths: array[int]) -> None:
        super().__init__()
        self._limits = limits
        self._lengths = lengths
        self._row = self._column = 0
        self._rows = self._columns = self._cells = 0
        self._texts = 0
        self._index = ""
        self._parser.StartElementHandler = self._start

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        """Read the next bytes; raises BadTable once the sheet is beyond a limit."""
        super().feed(piece, last=last)
        if last:
            self._end_text()
        if self._rows > (most := self._limits["rows"] + 1):  # with its header
            raise too_many_rows(most - 1, setting=MAX_ROWS)
        if self._columns > (most := self._limits["columns"]):
            raise too_many_columns(most, self._columns)
        if (cells := max(self._cells, self._rows * self._columns)) > MAX_CELLS:
            raise _too_many(MAX_CELLS, f"{cells}, {self._rows} rows of {self._columns}")
        if self._texts > (most := min(self._limits["bytes"], MAX_BYTES)):
            raise too_long(most)

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Count a cell and note its position."""
        local = _local(name)
        if local == "c":
            self._end_text()
            self._column += 1
            self._cells += 1
            found = _CELL.fullmatch(attributes.get("r", ""))
            if found:
                self._column = 0
                for letter in found[1]:
                    self._column = self._column * 26 + ord(letter) - 64
                self._rows = max(self._rows, int(found[2]))
            self._columns = max(self._columns, self._column)
            if attributes.get("t") == "s":
                self._parser.CharacterDataHandler = self._add
        elif local == "row":
            said = attributes.get("r", "")
            self._row = int(said) if said.isdecimal() and len(said) < 10 else self._row + 1
            self._rows = max(self._rows, self._row)
            self._column = 0

    def _add(self, text: str) -> None:
        self._index += text[:20]

    def _end_text(self) -> None:
        """Count the shared text of the last cell."""
        if self._index:
            said = self._index.strip()
            if said.isdecimal() and len(said) < 10 and int(said) < len(self._lengths):
                self._texts += self._lengths[int(said)]
            self._index = ""
        self._parser.CharacterDataHandler = None


def _too_many(most: int, got: str) -> BadTable:
    rule = f"a sheet can have at most {most} cells, got {got}"
    return BadTable(f"{rule}; send a larger table as CSV or Parquet", code="too_large")


def _local(name: str) -> str:
    return name.rpartition(":")[2]
