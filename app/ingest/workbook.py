"""Spreadsheets of Office Open XML (.xlsx): one visible sheet becomes CSV, by python-calamine.

Calamine loads a sheet as one rectangle, with a copy of each shared text for each of its cells. A file of a few
kilobytes can refer to a cell a billion cells away, or to one long text a million times. So every part that calamine may
read is first read here by expat and measured. Calamine is given a workbook of one sheet, with the measured parts.
"""

from __future__ import annotations

import csv
import itertools
import posixpath
import re
import tempfile
import zipfile
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat

import numpy as np
import python_calamine as calamine

from app.ingest.archives import is_office, open_archive, part_name, read_member
from app.ingest.csv import CsvTable, read_layout
from app.ingest.errors import (
    MAX_ROWS,
    BadTable,
    Errors,
    RowError,
    show,
    too_many_columns,
    too_many_rows,
)
from app.ingest.formats import Dialect
from app.ingest.rows import ErrorCells, Numbers, Rows
from app.ingest.stream import PLAIN, TableBytes, too_long
from app.ingest.value_columns import MissingTokens
from app.ingest.values import spell
from app.platform.errors import Invalid

MAX_BYTES = 1 << 30
"""Most bytes of a workbook's parts once decompressed, of its texts in all cells, and of its sheet as CSV."""
MAX_CELLS = 10_000_000
"""Most cells of a sheet, empty ones between others included: each takes some 70 bytes of memory."""
MAX_LISTED = 50
"""Most sheets that an error lists."""
HEADER_ROWS = 10
"""Rows below the first one with values that show how wide the table is."""
_MAX_LIST_BYTES = 1 << 25
"""Most bytes of a part that lists sheets, or styles: an entry takes several times its text in memory."""
_ROOT = "_rels/.rels"
_BOOK_LINK, _TEXTS_LINK, _STYLES_LINK = "officeDocument", "sharedStrings", "styles"
"""Kinds of links by which parts are found: their names are the writer's choice."""
_WORKSHEET = "worksheet"
_KINDS = {"chartsheet": "a chart", "dialogsheet": "a dialog", "xlMacrosheet": "a macro"}
_CELL = re.compile(r"([A-Z]{1,7})([0-9]{1,9})")
_DAY = timedelta(days=1)
_MAX_ERRORS = 20
"""Most kinds of errors in cells; a spreadsheet has about ten."""
_MAX_SHEETS = 10_000
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_ONLY = "sheet"
"""The name of the sheet in the workbook that calamine reads."""
_ONLY_PART = "xl/worksheets/sheet1.xml"
_WORKBOOK, _TEXTS, _STYLES = "xl/workbook.xml", "xl/sharedStrings.xml", "xl/styles.xml"
_LINKS = "xl/_rels/workbook.xml.rels"
"""Names of the parts in the workbook that calamine reads."""
_FRAME = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    _LINKS: f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}
_BOOK = (
    f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><workbookPr date1904="%d"/><sheets>'
    f'<sheet name="{_ONLY}" sheetId="1" r:id="r1"/></sheets></workbook>'
)
_WRITTEN = Dialect(encoding="utf-8", delimiter="comma")
"""How a sheet is written out."""


@dataclass(frozen=True)
class Sheet:
    """A sheet: its name, the part with its cells, its kind, and whether it is hidden."""

    name: str
    part: str
    kind: str
    hidden: bool

    @property
    def is_readable(self) -> bool:
        """True for a visible sheet of cells."""
        return self.kind == _WORKSHEET and not self.hidden


@dataclass(frozen=True)
class _Choice:
    """The sheet that is read, and the names of all sheets that can be read."""

    sheet: Sheet
    readable: list[str]


class SheetTable(CsvTable):
    """A sheet as CSV. Lines are the sheet's rows."""

    first_column = 0
    """Number of columns left of the table."""
    extra: Sequence[tuple[int, int]] = ()
    """For each row with line breaks in its cells: its last line in the CSV, and the number of line breaks so far."""

    unsaved: Mapping[str, tuple[int, int]] = {}
    """The columns with formulas without a stored result: their number, and the row of the first one."""

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        """Lines are the sheet's row numbers. A formula without a stored result is an error."""
        for name, (cells_of, line) in self.unsaved.items():
            if columns is None or name in columns:
                cells = "a cell has" if cells_of == 1 else f"{cells_of} cells have"
                remedy = "open the workbook in a spreadsheet program and save it"
                detail = f"{cells} a formula without a stored result: {remedy}"
                errors.add_many(name, cells_of, [RowError(detail, line, name)])
        for rows in super().batches(errors, columns, numeric):
            count = rows.count_lines
            if self.extra and count is not None:
                yield replace(rows, count_lines=partial(self._count_rows, count))
            else:
                yield rows

    def _count_rows(self, count_lines: Any) -> Numbers:
        return self.rows_of_lines(count_lines())

    def rows_of_lines(self, lines: Numbers) -> Numbers:
        ends, breaks = np.array([(0, 0), *self.extra]).T
        at = np.searchsorted(ends, lines, side="left") - 1
        return np.asarray(lines - breaks[at], dtype=np.int64)

    def cell(self, column: str, line: int) -> str | None:
        """Return an address such as C3; None for an unknown column."""
        if column not in self.names:
            return None
        number, letters = self.first_column + self.names.index(column) + 1, ""
        while number:
            number, digit = divmod(number - 1, 26)
            letters = chr(65 + digit) + letters
        return f"{letters}{line}"


@contextmanager
def open_sheet(
    path: Path,
    limits: Mapping[str, int],
    workdir: Path,
    dialect: Dialect,
    missing: MissingTokens,
    preferred: str | None = None,
) -> Iterator[SheetTable]:
    """Yield the sheet `dialect.sheet` as a table; by default the `preferred` one if it exists, else the first visible
    one.

    Cells that are numbers are written with the decimal mark of the texts beside them. Errors that are raised while the
    table is open get the sheet, and the cell. Raises BadTable for a workbook that is damaged, encrypted, without such a
    sheet, or too large.
    """
    choice: _Choice | None = None
    table: SheetTable | None = None
    with tempfile.TemporaryDirectory(dir=workdir) as name:
        checked, written = Path(name, "workbook.xlsx"), Path(name, "sheet.csv")
        try:
            with path.open("rb") as file, open_archive(file) as archive:
                reader = _Checker(archive, limits)
                choice = _choose(reader.list_sheets(), dialect.sheet, preferred)
                reader.copy(choice.sheet, checked)
            most = min(limits["bytes"], MAX_BYTES)
            opened = _OpenSheet(checked, choice)
            assert reader.cells is not None
            rows = _with_errors(opened, reader.cells.errors)
            extra = _write_csv(rows, written, most, dialect.notation.decimal)
            checked.unlink()
            upload = TableBytes(written, PLAIN, most)
            layout = read_layout(upload, _WRITTEN, limits["columns"])
            table = SheetTable(upload, layout, missing, dialect.notation)
            table.sheet, table.sheets = choice.sheet.name, choice.readable
            table.first_column, table.extra = opened.first_column, extra
            table.error_cells = _error_cells(reader.cells.errors, table, layout.header_lines)
            table.unsaved = {
                layout.names[at]: found
                for column, found in reader.cells.unsaved.items()
                if 0 <= (at := column - 1 - opened.first_column) < len(layout.names)
            }
            yield table
        except Invalid as error:
            if choice is not None:
                _place(error, choice, table)
            raise


def _place(error: Invalid, choice: _Choice, table: SheetTable | None) -> None:
    """Add the sheet to an error, the cells to its single errors, and the sheets that could be read instead."""
    if not error.errors:
        return
    first, detail = error.errors[0], error.detail
    for each in error.errors:
        each["sheet"] = choice.sheet.name
        line, column = each.get("line"), each.get("column")
        if table is not None and line is not None and column is not None:
            each["cell"] = table.cell(column, line)
    if (line := first.get("line")) is not None:
        where = f"cell {cell}" if (cell := first.get("cell")) else f"row {line}"
        known = f"line {line}"
        rest = detail.removeprefix(known) if detail.startswith(known) else f": {detail}"
        error.detail = f"sheet {show(choice.sheet.name)}, {where}{rest}"
    else:
        error.detail = f"sheet {show(choice.sheet.name)}: {detail}"
    error.args = (error.detail,)
    _offer(first, choice.readable)


def _offer(error: dict[str, Any], readable: Sequence[str]) -> None:
    """Add the readable sheets to an error, if there is a choice."""
    if len(readable) > 1:
        error["sheets"] = list(readable[:MAX_LISTED])


def _choose(found: Sequence[Sheet], wanted: str | None, preferred: str | None) -> _Choice:
    readable = [each.name for each in found if each.is_readable]
    name = wanted
    if name is None and preferred is not None and len(readable) > 1:
        name = preferred
    sheet = _find(found, name) if name is not None else None
    if sheet is not None and sheet.is_readable:
        return _Choice(sheet, readable)
    if not readable:
        hidden = [each.name for each in found if each.kind == _WORKSHEET]
        more = f"; {_listed(hidden)} {'is' if len(hidden) == 1 else 'are'} hidden" if hidden else ""
        raise BadTable(f"the workbook has no visible sheet of cells{more}")
    if name is None:
        return _Choice(next(each for each in found if each.is_readable), readable)
    if sheet is None and wanted is None:
        detail = (
            f"the training table is sheet {show(name)}, which this workbook does not have: set sheet to one of "
            f"{_listed(readable)}"
        )
    elif sheet is None:
        detail = f"there is no sheet {show(name)}; the workbook has {_listed(readable)}"
    elif sheet.kind == _WORKSHEET:
        detail = (
            f"sheet {show(name)} is hidden, and only visible sheets are read; unhide it in the workbook, or choose "
            f"{_listed(readable, 'or')}"
        )
    else:
        what = _KINDS.get(sheet.kind, "no sheet of cells")
        detail = f"sheet {show(name)} is {what}, and only sheets of cells are read; choose {_listed(readable, 'or')}"
    refusal = BadTable(detail)
    refusal.errors[0]["parameter"] = "sheet"
    if len(readable) == 1:
        refusal.suggest("", {"sheet": readable[0]})
    _offer(refusal.errors[0], readable)
    raise refusal


def _find(found: Sequence[Sheet], name: str) -> Sheet | None:
    """The case of letters does not matter, as in a spreadsheet."""
    exact = next((each for each in found if each.name == name), None)
    return exact or next((each for each in found if each.name.casefold() == name.casefold()), None)


def _listed(names: Sequence[str], word: str = "") -> str:
    shown = [show(name) for name in names[:MAX_LISTED]]
    if len(names) > MAX_LISTED:
        return ", ".join(shown) + f" and {len(names) - MAX_LISTED} more"
    if word and len(shown) > 1:
        return f"{', '.join(shown[:-1])} {word} {shown[-1]}"
    return ", ".join(shown)


def _with_errors(sheet: _OpenSheet, errors: Mapping[str, array[int]]) -> Iterator[list[Any]]:
    """Yield the rows with errors in cells as texts; calamine reads them as empty."""
    if not errors:
        yield from sheet.rows()
        return
    places = np.concatenate([np.array(cells).reshape(-1, 2) for cells in errors.values()])
    texts = np.repeat(list(errors), [len(cells) // 2 for cells in errors.values()])
    order = np.argsort(places[:, 0], kind="stable")
    places, texts = places[order], texts[order]
    at = 0
    for number, row in enumerate(sheet.rows(), start=1):
        while at < len(places) and places[at, 0] <= number:
            column = int(places[at, 1]) - 1 - sheet.first_column
            if places[at, 0] == number and 0 <= column < len(row):
                row[column] = str(texts[at])
            at += 1
        yield row


def _error_cells(
    errors: Mapping[str, array[int]], table: SheetTable, header_lines: int
) -> dict[str, ErrorCells]:
    """Return the columns with errors below the header."""
    found: dict[str, ErrorCells] = {}
    (header,) = table.rows_of_lines(np.array([header_lines]))
    for error, cells in errors.items():
        rows, columns = np.array(cells, np.int64).reshape(-1, 2).T
        rows, columns = rows[rows > header], columns[rows > header] - 1 - table.first_column
        for at, first, count in zip(*np.unique(columns, True, return_counts=True), strict=True):
            if 0 <= at < len(table.names):
                name, line = table.names[at], int(rows[first])
                before = found.get(name, ErrorCells(0, line, []))
                line = min(line, before.line)
                found[name] = ErrorCells(before.cells + int(count), line, [*before.errors, error])
    return found


def _write_csv(
    rows: Iterator[list[Any]], path: Path, max_bytes: int, decimal: str
) -> list[tuple[int, int]]:
    """Write the rows, also blank ones, so that line numbers stay valid. Returns `SheetTable.extra`. Raises BadTable
    above `max_bytes`.
    """
    extra: list[tuple[int, int]] = []
    breaks = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, row in enumerate(rows, start=1):
            texts = [_text(value, decimal) for value in row]
            if any(texts):
                writer.writerow(texts)
                if more := sum(_count_breaks(text) for text in texts):
                    breaks += more
                    extra.append((number + breaks, breaks))
            else:
                file.write("\n")  # keeps the numbers of lines; blank ones do not count
            if file.tell() > max_bytes:
                raise too_long(max_bytes)
    return extra


def _count_breaks(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


class _OpenSheet:
    """The rows of the chosen sheet of a checked workbook."""

    def __init__(self, path: Path, choice: _Choice) -> None:
        self._path = path
        self._choice = choice
        self.first_column = 0

    def rows(self) -> Iterator[list[Any]]:
        """Yield the rows, blank ones above the header included, from the first used column on. Raises BadTable."""
        rows = rows_of(self._path)
        start = next(rows, None)
        if start is None:
            raise self._empty()
        self.first_column = start[0]
        yield from _check_header(rows)

    def _empty(self) -> BadTable:
        name = self._choice.sheet.name
        others = [each for each in self._choice.readable if each != name]
        more = f"; the workbook also has {_listed(others)}" if others else ""
        refusal = BadTable(f"no cell has a value: a table must have a header and rows{more}")
        if len(others) == 1:
            refusal.suggest("", {"sheet": others[0]})
        return refusal


def rows_of(path: Path) -> Iterator[list[Any]]:
    """Yield the first used column's number in its own list, then the copied sheet's rows; nothing if it is empty."""
    try:
        with calamine.CalamineWorkbook.from_path(path) as book:
            sheet = book.get_sheet_by_name(_ONLY)
            if sheet.start is None:
                return
            yield [sheet.start[1]]
            yield from sheet.iter_rows()
    except (calamine.CalamineError, ValueError) as error:
        raise BadTable(f"the workbook is damaged: {error}"[:300]) from error


def _check_header(rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """Raise BadTable if the first row with values has names for fewer than half of the columns: it is a title."""
    read: list[list[Any]] = []
    counts: list[tuple[int, int]] = []  # row, number of its values
    for number, row in enumerate(rows, start=1):
        read.append(row)
        if count := sum(_has_value(value) for value in row):
            counts.append((number, count))
        if len(counts) > HEADER_ROWS:
            break
    if counts:
        (first, count), widest = counts[0], max(count for _, count in counts)
        if 2 * count < widest or count == 1 < widest:
            value = next(value for value in read[first - 1] if _has_value(value))
            likely = next(number for number, count in counts[1:] if 2 * count >= widest > 1 < count)
            named = f"only {count} value{'' if count == 1 else 's'} ({show(str(value))}{', …' if count > 1 else ''})"
            raise BadTable(
                f"the first row with values must be the header, but it has {named} for {widest} columns: delete the "
                f"rows above the header, which seems to be row {likely}",
                line=first,
            )
    return itertools.chain(read, rows)


def _has_value(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _text(value: Any, decimal: str) -> str:
    """Write dates in ISO 8601, durations in days, as the spreadsheet counts them."""
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("T00:00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        value = value / _DAY
    text = spell(value)
    return text.replace(".", decimal) if isinstance(value, float) else text


class _Checker:
    """Reads the parts of a workbook within the limits, each completely, and copies those that calamine needs."""

    def __init__(self, archive: zipfile.ZipFile, limits: Mapping[str, int]) -> None:
        self._archive = archive
        self._limits = limits
        self._from_1904 = False
        self._left = self._most = min(limits["bytes"], MAX_BYTES)
        self._members = {part_name(member.filename): member for member in archive.infolist()}
        if len(self._members) != len(archive.infolist()):
            raise BadTable("the workbook is damaged: a part of it is there twice")
        if not is_office(archive):
            raise BadTable("a ZIP archive of a table must not be compressed again")
        self._texts = self._styles = ""
        self.cells: _Cells | None = None

    def list_sheets(self) -> list[Sheet]:
        """Return the sheets in the order of the workbook."""
        listing, root, links = _SheetList(), _Links("/"), _Links("/")
        if _ROOT in self._members:
            self._read(_ROOT, root)
        book = root.part(_BOOK_LINK) or _WORKBOOK
        if book not in self._members:
            raise BadTable(f"the workbook is damaged: it has no part {show(book)}")
        if not book.endswith(".xml"):
            raise BadTable(
                f"only workbooks of XML (.xlsx) are read, and this one has {show(book)}: save it as .xlsx"
            )
        self._read(book, listing)
        self._from_1904 = listing.from_1904
        folder, _, name = book.rpartition("/")
        links = _Links(f"/{folder}")
        if (of_book := f"{folder}/_rels/{name}.rels".lstrip("/")) in self._members:
            self._read(of_book, links)
        self._texts = links.part(_TEXTS_LINK) or _TEXTS.casefold()
        self._styles = links.part(_STYLES_LINK) or _STYLES
        for kind, part in ((_TEXTS_LINK, self._texts), (_STYLES_LINK, self._styles)):
            if links.part(kind) and part not in self._members:
                raise BadTable(f"the workbook is damaged: it has no part {show(part)}")
        return [
            Sheet(name, *links.found.get(link, ("", "")), hidden)
            for name, link, hidden in listing.found
        ]

    def copy(self, sheet: Sheet, target: Path) -> None:
        if sheet.part not in self._members:
            raise BadTable("the workbook is damaged: the sheet has no part")
        lengths = array("Q")
        with zipfile.ZipFile(target, "w") as copy:
            for name, text in {**_FRAME, _WORKBOOK: _BOOK % self._from_1904}.items():
                copy.writestr(name, text)
            self.cells = _Cells(self._limits, lengths)
            readers: tuple[tuple[str, str, _Part], ...] = (
                (self._styles, _STYLES, _Part()),
                (self._texts, _TEXTS, _Texts(lengths)),
                (sheet.part, _ONLY_PART, self.cells),
            )
            for name, copied, reader in readers:
                if name in self._members:
                    with copy.open(copied, "w") as written:
                        self._read(name, reader, written)

    def _read(self, name: str, reader: _Part, written: Any = None) -> None:
        for piece in read_member(self._archive, self._members[name]):
            self._left -= len(piece)
            if self._left < 0:
                raise too_long(self._most)
            reader.feed(piece)
            if written is not None:
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
        self._size += len(piece)
        if self._size > self.most:
            raise too_long(self.most)
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            raise BadTable(f"the workbook is damaged: a part of it is not XML: {error}") from error

    def _refuse(self, *_: object) -> None:
        raise BadTable("the workbook is damaged: its parts must have no DTD")


class _SheetList(_Part):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, bool]] = []
        self.from_1904 = False
        self._parser.StartElementHandler = self._start

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if _local(name) == "sheet":
            link = next((attributes[key] for key in attributes if key.endswith(":id")), "")
            is_hidden = attributes.get("state", "visible") != "visible"
            self.found.append((attributes.get("name", ""), link, is_hidden))
            if len(self.found) > _MAX_SHEETS:
                raise BadTable(
                    f"a workbook can have at most {_MAX_SHEETS} sheets", code="too_large"
                )
        elif _local(name) == "workbookPr":
            self.from_1904 = attributes.get("date1904") in ("1", "true")


class _Links(_Part):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self.found: dict[str, tuple[str, str]] = {}
        self._folder = folder
        self._parser.StartElementHandler = self._start

    def part(self, kind: str) -> str:
        """Return the first part of a kind; empty if there is none."""
        return next((part for part, of in self.found.values() if of == kind), "")

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if _local(name) == "Relationship":
            target = unquote(attributes.get("Target", "")).replace("\\", "/")
            part = part_name(posixpath.normpath(posixpath.join(self._folder, target)))
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.found[attributes.get("Id", "")] = (part, kind)
            if len(self.found) > 2 * _MAX_SHEETS:
                raise BadTable("the workbook is damaged: it has too many links")


class _Texts(_Part):
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


class _Cells(_Part):
    """Counts a sheet's cells, up to its last row and column, and the length of their shared texts.

    Also records what calamine reads as empty: errors such as #DIV/0!, and formulas without a stored result.
    """

    most = MAX_BYTES

    def __init__(self, limits: Mapping[str, int], lengths: array[int]) -> None:
        super().__init__()
        self._limits = limits
        self._max_cells = min(MAX_CELLS, limits.get("cells") or MAX_CELLS)
        self._lengths = lengths
        self._row = self._column = 0
        self._rows = self._columns = self._cells = 0
        self._texts = 0
        self._content = ""
        self._kind = ""
        self._has_formula = False
        self.errors: dict[str, array[int]] = {}
        """For each error, row and column of its cells in turn, from 1."""
        self.unsaved: dict[int, tuple[int, int]] = {}
        """For each column with formulas without a result, from 1: their number, and the row of the first one."""
        self._parser.StartElementHandler = self._start

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        """Raises BadTable once the sheet is beyond a limit."""
        super().feed(piece, last=last)
        if last:
            self._end_cell()
        if self._rows > (most := self._limits["rows"] + 1):  # with its header
            raise too_many_rows(most - 1, setting=MAX_ROWS)
        if self._columns > (most := self._limits["columns"]):
            raise too_many_columns(most, self._columns)
        if (cells := max(self._cells, self._rows * self._columns)) > self._max_cells:
            raise _too_many(self._max_cells, f"{cells}, {self._rows} rows of {self._columns}")
        if self._texts > (most := min(self._limits["bytes"], MAX_BYTES)):
            raise too_long(most)

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Count a cell and note its position."""
        local = _local(name)
        if local == "c":
            self._end_cell()
            self._column += 1
            self._cells += 1
            found = _CELL.fullmatch(attributes.get("r", ""))
            if found:
                self._column = 0
                for letter in found[1]:
                    self._column = self._column * 26 + ord(letter) - 64
                self._row = int(found[2])
                self._rows = max(self._rows, self._row)
            self._columns = max(self._columns, self._column)
            self._kind = attributes.get("t", "n")
        elif local == "f":
            self._has_formula = True
        elif local == "v":
            if self._has_formula or self._kind in ("s", "e"):
                self._parser.CharacterDataHandler = self._add
        elif local == "row":
            self._end_cell()
            said = attributes.get("r", "")
            self._row = int(said) if said.isdecimal() and len(said) < 10 else self._row + 1
            self._rows = max(self._rows, self._row)
            self._column = 0

    def _add(self, text: str) -> None:
        self._content += text[:20]

    def _end_cell(self) -> None:
        """Count the shared text of the last cell, and note an error or a formula without a result."""
        content = self._content.strip()
        if self._kind == "s":
            if content.isdecimal() and len(content) < 10 and int(content) < len(self._lengths):
                self._texts += self._lengths[int(content)]
        elif self._kind == "e":
            if content and (content in self.errors or len(self.errors) < _MAX_ERRORS):
                self.errors.setdefault(content, array("L")).extend((self._row, self._column))
        elif self._has_formula and self._kind != "str" and not content:  # a text may be empty
            count, first = self.unsaved.get(self._column, (0, self._row))
            self.unsaved[self._column] = (count + 1, first)
        self._content, self._kind, self._has_formula = "", "", False
        self._parser.CharacterDataHandler = None


def _too_many(most: int, got: str) -> BadTable:
    rule = f"a sheet can have at most {most} cells, got {got}"
    return BadTable(f"{rule}; send a larger table as CSV or Parquet", code="too_large")


def _local(name: str) -> str:
    return name.rpartition(":")[2]
