"""A blob written in pieces: all of them, in order, whenever the system is asked to write them out."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import stat
import threading
from functools import partial
from pathlib import Path

import pytest

from app.platform import blobs
from app.platform.blobs import FolderStore, Writeback
from tests.raising import raises


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writeback, "PART", 10_000)
    monkeypatch.setattr(blobs, "MAX_CACHED", 300_000)
    monkeypatch.setattr(blobs, "MIN_THREADED_BYTES", 500)
    store = FolderStore(tmp_path)
    pieces = [bytes([i % 251]) * ((7 * i) % 1_000) for i in range(2_000)]
    whole = b"".join(pieces)
    threads = set(threading.enumerate())
    with store.writer("uploads") as writer:
        for piece in pieces:
            writer.write(piece)
        assert writer.size == len(whole)
        blob = writer.commit()
    assert blob[1:] == (hashlib.sha256(whole).hexdigest(), len(whole))
    assert store.fetch(blob).read_bytes() == whole
    assert set(threading.enumerate()) <= threads


def test_bytes_that_are_on_disk_are_not_waited_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A route syncs before its transaction, because SQLite has one writer; what is added later is synced, too."""
    synced: list[int] = []

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            synced.append(status.st_size)

    monkeypatch.setattr(os, "fsync", fsync)
    store = FolderStore(tmp_path)
    with store.writer("uploads") as writer:
        writer.write(b"one")
        writer.sync()
        writer.commit()
        writer.commit()
    assert synced == [3]
    with store.writer("uploads") as writer:
        writer.write(b"one")
        writer.sync()
        writer.write(b"two")
        blob = writer.commit()
    assert synced == [3, 3, 6]
    assert store.fetch(blob).read_bytes() == b"onetwo"
    with store.writer("uploads") as writer:
        writer.commit()
    assert synced == [3, 3, 6, 0]


def test_what_is_not_committed_is_gone(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    with store.writer("uploads") as writer:
        writer.write(b"half")
    assert files_in(tmp_path) == []


def test_a_piece_that_finds_no_room(tmp_path: Path) -> None:
    """It is said where it happens, though the hash is under way, and neither file nor thread stays behind."""
    store = FolderStore(tmp_path)
    threads = set(threading.enumerate())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, limits[1]))
    try:
        with store.writer("uploads") as writer:
            writer.write(bytes(2 << 20))
            with raises(OSError, errno.EFBIG):
                writer.write(bytes(2 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files_in(tmp_path) == []
    assert set(threading.enumerate()) <= threads


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no advice")
def test_what_the_system_keeps_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is named when it is to be written; behind the bytes to be kept all is named again, to be dropped."""
    named: list[tuple[int, int]] = []

    def advise(descriptor: int, start: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        named.append((start, start + length))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    monkeypatch.setattr(Writeback, "PART", 10)
    with (tmp_path / "file").open("wb") as file:
        writeback = Writeback(file.fileno(), most_cached=25)
        for size in (9, 10, 15, 24, 30, 50, 61):
            writeback.grown_to(size)
    assert named == [(0, 10), (10, 24), (24, 50), (25, 61)]


def test_a_folder_on_a_full_disk_is_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)

    def fail(code: int) -> None:
        raise OSError(code, os.strerror(code))

    for code in (errno.ENOSPC, errno.EDQUOT):
        monkeypatch.setattr(store, "staging_dir", partial(fail, code))
        store.check_writable()
    monkeypatch.setattr(store, "staging_dir", partial(fail, errno.EACCES))
    with pytest.raises(PermissionError):
        store.check_writable()
