"""Encryption of secrets that the database stores, with keys that it lacks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from app.platform.state_folder import make_secret

FILE = "secrets-keys"
"""Name of the file that `rankwright serve` creates in the state folder."""
KEY_BYTES = 32
MAX_KEYS = 20


class BadKeys(ValueError):
    """The file of keys cannot be used. The message names the file, the line and the rule, but no key."""


class Undecryptable(ValueError):
    """A text that was encrypted with none of the keys."""


def read_keys(file: Path) -> tuple[bytes, ...]:
    """Read one key per line, newest first: 32 bytes as base64. Raises BadKeys."""
    try:
        lines = file.read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadKeys(f"{file} cannot be read: {why}") from None
    if not 1 <= len(lines) <= MAX_KEYS:
        raise BadKeys(
            f"{file} must have 1 to {MAX_KEYS} keys, one in each line, got {len(lines):,}"
        )
    return tuple(_key_of(file, number, line) for number, line in enumerate(lines, 1))


def make_keys(file: Path) -> None:
    """Write a new key that only this user can read, unless the file exists."""
    make_secret(file, base64.b64encode(os.urandom(KEY_BYTES)).decode())


def _key_of(file: Path, number: int, line: str) -> bytes:
    try:
        key = base64.b64decode(line.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKeys(
            f"{file}, line {number}: must be {KEY_BYTES} random bytes as base64: openssl rand -base64 {KEY_BYTES}"
        )
    return key


def key_id(key: bytes) -> str:
    """Return 16 hexadecimal digits of a hash, which reveal nothing about the key."""
    return hashlib.sha256(b"rankwright secrets key\n" + key).hexdigest()[:16]


class Cipher:
    """Encrypts with the newest key, and decrypts with any (Fernet: AES-CBC with HMAC)."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        from cryptography.fernet import Fernet, MultiFernet

        self._fernet = MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])

    def encrypt(self, text: str) -> str:
        """The result has URL-safe characters."""
        return self._fernet.encrypt(text.encode()).decode()

    def decrypt(self, encrypted: str, max_age: int | None = None) -> str:
        """Raises Undecryptable, also for what is older than `max_age` seconds."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(encrypted.encode(), max_age).decode()
        except (InvalidToken, UnicodeError):
            raise Undecryptable("it was encrypted with none of the keys, or too long ago") from None
