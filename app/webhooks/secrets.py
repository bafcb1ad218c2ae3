"""The secrets that sign deliveries. They are stored encrypted, with keys that the database does not have."""

from __future__ import annotations

import base64
import os

from app.platform.encryption import Cipher, Undecryptable
from app.platform.errors import Conflict
from app.platform.settings import Settings

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """Return a new secret: `whsec_` and 32 random bytes as base64."""
    return PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def cipher_of(settings: Settings) -> Cipher:
    """Return the cipher of stored secrets. Raises Conflict without keys."""
    keys = settings.read_secrets_keys()
    if not keys:
        raise Conflict(
            "webhooks require RANKWRIGHT_SECRETS_KEYS_FILE: their secrets are stored encrypted",
            code="no_secrets_keys",
        )
    return Cipher(keys)


def signing_secrets(
    cipher: Cipher, secret: str, previous: str | None, *, previous_is_valid: bool
) -> list[str]:
    """Return the secrets that sign a delivery now, the newest first, from the encrypted ones. Raises Undecryptable if
    none can be decrypted.
    """
    found = []
    for encrypted in (secret, previous if previous_is_valid else None):
        if encrypted is not None:
            try:
                found.append(cipher.decrypt(encrypted))
            except Undecryptable:
                if encrypted == secret:
                    raise
    return found
