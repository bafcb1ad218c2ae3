"""ZIP archives: those that compress one table, and those that are spreadsheets."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.ingest.errors import BadTable, show

ZIP = "zip"
MAGIC = b"PK\x03\x04"
MAX_DIRECTORY_BYTES = 1 << 18
"""Most bytes of an archive's list of members: each entry of 50 bytes becomes an object of a thousand."""
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError),
    *(NotImplementedError, RuntimeError),
)
"""Exceptions that `zipfile` raises for damaged, encrypted and unknown members."""
TYPES = "[content_types].xml"
"""The part that every document of Office Open XML has."""
_END = struct.Struct("<4s4H2LH")
# Other methods allocate the memory that the file states.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_PIECE = 1 << 20
_OF_SYSTEMS = ("__MACOSX/", ".DS_Store", "Thumbs.db")


@contextmanager
def open_archive(file: Any) -> Iterator[zipfile.ZipFile]:
    """Open an archive in a seekable file. Raises BadTable for a damaged one, or one that lists too many members."""
    try:
        size = file.seek(0, io.SEEK_END)
        tail_bytes = min(size, _END.size + 0xFFFF)
        file.seek(size - tail_bytes)
        tail = file.read(tail_bytes)
        at = tail.rfind(b"PK\x05\x06")
        end = _END.unpack_from(tail, at) if at >= 0 else None
        if end is None:
            raise BadTable("the ZIP archive is damaged: it has no directory")
        if end[5] > MAX_DIRECTORY_BYTES:
            raise BadTable(
                f"the directory of a ZIP archive can have at most {MAX_DIRECTORY_BYTES} bytes, got {end[5]}",
                code="too_large",
            )
        archive = zipfile.ZipFile(file)
    except DAMAGE as error:
        raise _damaged(error) from error
    with archive:
        yield archive


def only_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    files = [
        each
        for each in archive.infolist()
        if not each.is_dir()
        and not each.filename.startswith(_OF_SYSTEMS[0])
        and each.filename.rpartition("/")[2] not in _OF_SYSTEMS[1:]
    ]
    if len(files) != 1:
        raise BadTable(f"a ZIP archive must have exactly one table, got {len(files)} files")
    check_member(files[0])
    return files[0]


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the decompressed bytes in pieces. Raises BadTable."""
    check_member(member)
    try:
        with archive.open(member) as opened:
            while piece := opened.read(_PIECE):
                yield piece
    except DAMAGE as error:
        raise _damaged(error) from error


def check_member(member: zipfile.ZipInfo) -> None:
    """Raise BadTable for a member that is encrypted or compressed in an unusual way."""
    if member.flag_bits & _ENCRYPTED:
        raise BadTable(
            f"{show(member.filename)} in the ZIP archive is encrypted; send it without a password"
        )
    if member.compress_type not in _METHODS:
        raise BadTable(
            f"{show(member.filename)} in the ZIP archive must be stored or deflated, got method {member.compress_type}"
        )


def part_name(name: str) -> str:
    """Return a part's name in lower case (ECMA-376, part 2, 6.2.2.3) with slashes: some writers use backslashes."""
    return name.replace("\\", "/").lstrip("/").casefold()


def is_office(archive: zipfile.ZipFile) -> bool:
    return any(part_name(name) == TYPES for name in archive.NameToInfo)


class Member(io.RawIOBase):
    """The decompressed bytes of an archive's only file, as a stream."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._opened = open_archive(file)
        archive = self._opened.__enter__()
        try:
            self._member = archive.open(only_member(archive))
        except DAMAGE as error:
            raise _damaged(error) from error

    def read(self, size: int = -1, /) -> bytes:
        """Raises BadTable for a damaged archive."""
        try:
            return self._member.read(size)
        except DAMAGE as error:
            raise _damaged(error) from error


def _damaged(error: Exception) -> BadTable:
    return BadTable(f"the ZIP archive is damaged: {error}"[:300])
