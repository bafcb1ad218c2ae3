"""The secrets that sign deliveries. They are stored encrypted, with keys that the database does not have."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Sequence
from contextlib import suppress

from app.platform.encryption import BadKeys, Cipher, Undecryptable
from app.platform.errors import Conflict
from app.platform.settings import Settings
from app.platform.sql import Session
from app.webhooks import repository

log = logging.getLogger(__name__)

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """Return `whsec_` and 32 random bytes as base64."""
    return PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def cipher_of(settings: Settings) -> Cipher:
    """Raises Conflict without keys."""
    try:
        keys = settings.read_secrets_keys()
    except BadKeys:  # it was valid at the start of this process; the doctor says more
        log.exception("the file with the keys of stored secrets cannot be used")
        keys = ()
    if not keys:
        raise Conflict(
            "the service has no keys to encrypt the secrets of webhooks with: its operator must set "
            "RANKWRIGHT_SECRETS_KEYS_FILE",
            code="no_secrets_keys",
        )
    return Cipher(keys)


def renew(session: Session, keys: Sequence[bytes]) -> int:
    """Encrypt secrets of older keys with the newest one, so that old keys can be removed. Undecryptable ones stay."""
    newest, every, renewed = Cipher(keys[:1]), Cipher(keys), 0
    for row in repository.lock_all(session):
        before = row.secret, row.previous_secret
        row.secret = _renewed(newest, every, row.secret)
        if row.previous_secret is not None:
            row.previous_secret = _renewed(newest, every, row.previous_secret)
        renewed += before != (row.secret, row.previous_secret)
    session.flush()
    return renewed


def _renewed(newest: Cipher, every: Cipher, encrypted: str) -> str:
    with suppress(Undecryptable):
        newest.decrypt(encrypted)
        return encrypted
    with suppress(Undecryptable):
        return newest.encrypt(every.decrypt(encrypted))
    return encrypted


def signing_secrets(
    cipher: Cipher, secret: str, previous: str | None, *, previous_is_valid: bool
) -> list[str]:
    """Decrypt what signs a delivery now, the newest first. Raises Undecryptable if nothing can be decrypted."""
    found = []
    for encrypted in (secret, previous if previous_is_valid else None):
        if encrypted is not None:
            try:
                found.append(cipher.decrypt(encrypted))
            except Undecryptable:
                if encrypted == secret:
                    raise
    return found
