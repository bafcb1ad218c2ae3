"""A blob written in pieces: all of them, in order, whenever the system is asked to write them out."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from app.infra.blobs import BlobStore
from app.infra.writeback import Writeback


def test_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writeback, "_PART", 10_000)
    store = BlobStore(tmp_path)
    pieces = [bytes([i % 251]) * (7 * i) for i in range(200)]
    whole = b"".join(pieces)
    with store.writer("uploads") as writer:
        for piece in pieces:
            writer.write(piece)
        assert writer.size == len(whole)
        key, sha256 = writer.commit()
    assert sha256 == hashlib.sha256(whole).hexdigest()
    assert store.path(key).read_bytes() == whole


def test_what_is_not_committed_is_gone(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    with store.writer("uploads") as writer:
        writer.write(b"half")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
