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
    """Return a new secret: `whsec_` and 32 random bytes as base64."""
    return PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def cipher_of(settings: Settings) -> Cipher:
    """Return the cipher of stored secrets. Raises Conflict without keys."""
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
    """Encrypt the secrets that an older key encrypts with the newest one; returns the number of webhooks. So an old key
    can be removed some time after a new one was added. A secret that no key decrypts stays as it is.
    """
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
