"""Files under names in a folder or a tar file: written whole or not at all, and read back by name."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

CHUNK = 1 << 20
_PARTIAL = ".partial"


class Writer(Protocol):
    """Takes files, each under a name of its own."""

    def add(self, name: str, file: IO[bytes], size: int) -> None:
        """Take so many bytes."""


class Reader(Protocol):
    """Gives files by name."""

    def open(self, name: str) -> IO[bytes]:
        """Open a file; raises FileNotFoundError."""


@contextmanager
def write(path: Path) -> Iterator[Writer]:
    """Write an archive: a tar file where the name ends in .tar, else a folder. It appears when the block ends well."""
    if path.exists():
        raise FileExistsError(f"{path} is there already")
    partial = path.with_name(path.name + _PARTIAL)
    remove(partial)  # of one that was cut off
    try:
        if path.suffix == ".tar":
            with _private(partial) as file, tarfile.open(fileobj=file, mode="w") as tar:
                yield _TarWriter(tar)
            with partial.open("rb") as done:
                os.fsync(done.fileno())
        else:
            partial.mkdir(mode=0o700)
            yield _FolderWriter(partial)
        partial.rename(path)
    except BaseException:
        remove(partial)
        raise


@contextmanager
def read(path: Path) -> Iterator[Reader]:
    """Read an archive that `write` has made. Raises OSError or tarfile.TarError for what is none."""
    if path.is_dir():
        yield _FolderReader(path)
        return
    with tarfile.open(path, "r:") as tar:
        yield _TarReader(tar)


def copy(source: IO[bytes], target: IO[bytes]) -> tuple[str, int]:
    """Copy what is left of a file; returns its SHA-256 in hexadecimal, and how many bytes."""
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        size += len(chunk)
        target.write(chunk)
    return digest.hexdigest(), size


def _private(path: Path) -> IO[bytes]:
    """A new file that no other user may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


class _FolderWriter:
    def __init__(self, root: Path) -> None:
        self._root = root

    def add(self, name: str, file: IO[bytes], size: int) -> None:
        path = self._root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _private(path) as out:
            shutil.copyfileobj(file, out, CHUNK)
            out.flush()
            os.fsync(out.fileno())


class _TarWriter:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def add(self, name: str, file: IO[bytes], size: int) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = size, 0o600
        self._tar.addfile(entry, file)


class _FolderReader:
    def __init__(self, root: Path) -> None:
        self._root = root

    def open(self, name: str) -> IO[bytes]:
        return (self._root / name).open("rb")


class _TarReader:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def open(self, name: str) -> IO[bytes]:
        try:
            found = self._tar.extractfile(name)
        except KeyError:
            found = None
        if found is None:
            raise FileNotFoundError(f"{name} is not in the archive")
        return found


def remove(path: Path) -> None:
    """Remove an archive; one that is not there is no error."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
