"""The keys that seal the audit log. They are in a file, never in the database."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from pathlib import Path

from app.platform.state_folder import make_secret

FILE = "audit-key"
"""Name of the file that `rankwright serve` creates in the state folder."""
MIN_KEY_CHARACTERS = 32
MAX_FILE_BYTES = 1 << 16


class BadAuditKeys(ValueError):
    """The file of keys cannot be used. The message names the file and the rule, and has nothing of the content."""


@dataclass(frozen=True, slots=True)
class AuditKey:
    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """16 hexadecimal digits of a hash, which reveal nothing about the key."""
        return hashlib.sha256(b"rankwright audit key\n" + self.secret).hexdigest()[:16]

    def mac(self, *parts: bytes) -> str:
        """Return HMAC-SHA256 in hexadecimal. A part must not contain a line feed."""
        return hmac.new(self.secret, b"\n".join(parts), hashlib.sha256).hexdigest()


class AuditKeys:
    """The keys of the audit log: the first seals, all verify. Empty if the log is not sealed."""

    def __init__(self, keys: Iterable[AuditKey] = ()) -> None:
        self._by_id = {key.id: key for key in keys}

    @property
    def newest(self) -> AuditKey | None:
        """The key that seals."""
        return next(iter(self._by_id.values()), None)

    @property
    def ids(self) -> Set[str]:
        return self._by_id.keys()

    def get(self, key_id: str | None) -> AuditKey | None:
        return self._by_id.get(key_id or "")


def read_keys(file: Path) -> AuditKeys:
    """Read one key per line, the newest first. Empty lines are ignored. Raises BadAuditKeys."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise BadAuditKeys(f"the file {file} must have at most {MAX_FILE_BYTES:,} bytes")
        lines = [line.strip() for line in file.read_bytes().splitlines()]
    except OSError as error:
        raise BadAuditKeys(f"the file {file} cannot be read: {error.strerror}") from None
    keys = [AuditKey(line) for line in lines if line]
    if not keys:
        raise BadAuditKeys(f"the file {file} must have a key on its first line")
    for number, key in enumerate(keys, 1):
        if len(key.secret) < MIN_KEY_CHARACTERS:
            raise BadAuditKeys(
                f"the file {file}, key {number}, must have at least {MIN_KEY_CHARACTERS} characters, got "
                f"{len(key.secret)}: `openssl rand -hex 32` makes one"
            )
    return AuditKeys(keys)


def make_key(file: Path) -> None:
    """Write a file that only this user can read, unless it exists."""
    make_secret(file, os.urandom(32).hex())
