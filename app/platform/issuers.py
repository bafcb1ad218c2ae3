"""The identity providers of the service, as a JSON file lists them: who vouches for people and service accounts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.platform.errors import shown
from app.platform.json_files import BadFile, read_json

MAX_ISSUERS = 50
MAX_FILE_BYTES = 1 << 20
MAX_TEXT = 1000
DEFAULT_GROUPS_CLAIM = "groups"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Hosts at which a provider need not use TLS."""
_REQUIRED = ("issuer", "audience")
_OPTIONAL = ("client_id", "redirect_uri", "secret_file", "groups_claim")
CALLBACK = "/console/oidc/callback"
"""The path of the service to which a provider leads browsers back, after its path prefix."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """An identity provider that the service trusts."""

    issuer: str
    """Its URL, exactly as in the claim `iss` of its tokens."""
    audience: str
    """What the claim `aud` of a bearer token must contain."""
    client_id: str | None = None
    """The client with which people sign in to the console. None: it issues only bearer tokens of services."""
    redirect_uri: str | None = None
    """The public URL of the page to which the provider leads back, as it is registered there; None without `client_id`.
    """
    secret_file: Path | None = None
    """File with the client's secret; None for a public client."""
    groups_claim: str = DEFAULT_GROUPS_CLAIM
    """The claim with the groups: a list of texts, or one text."""

    @property
    def label(self) -> str:
        """The issuer without its scheme, for people."""
        return self.issuer.partition("://")[2].rstrip("/")

    def secret(self) -> str | None:
        """Read the client's secret; None for a public client. Raises OSError."""
        return None if self.secret_file is None else self.secret_file.read_text().strip()


def is_provider_url(url: str) -> bool:
    """Require https, a host, and no user, query and fragment. On this machine, http is allowed."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    if not is_whole or "@" in parts.netloc or parts.query or parts.fragment:
        return False
    if not re.fullmatch(r"[!-~]+", url) or url.endswith(("?", "#")):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def read_issuers(file: Path) -> tuple[Issuer, ...]:
    """Raises BadFile."""
    given = read_json(file, MAX_FILE_BYTES)
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_ISSUERS:
        got = f"{len(given):,} entries" if isinstance(given, list) else type(given).__name__
        raise BadFile(f"{file} must be a list of 1 to {MAX_ISSUERS} entries, got {got}")
    found: list[Issuer] = []
    for number, entry in enumerate(given, 1):
        try:
            found.append(_issuer_of(entry, found))
        except ValueError as error:
            raise BadFile(f"{file}, entry {number}: {error}") from None
    return tuple(found)


def _issuer_of(entry: Any, earlier: Sequence[Issuer]) -> Issuer:
    """Raises ValueError."""
    if not isinstance(entry, dict):
        raise ValueError(f"must be an object, got {shown(entry)}")
    known = (*_REQUIRED, *_OPTIONAL)
    if unknown := [name for name in entry if name not in known]:
        raise ValueError(
            f"has the unknown field {shown(unknown[0])}; the fields are {', '.join(known)}"
        )
    for name in known:
        value = entry.get(name)
        if value is None and name in _OPTIONAL:
            continue
        if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT:
            got = shown(value) if name in entry else "nothing"
            raise ValueError(f"{name} must be a text of 1 to {MAX_TEXT} characters, got {got}")
    issuer, client_id = entry["issuer"], entry.get("client_id")
    if not is_provider_url(issuer):
        raise ValueError(
            f"issuer must be an https:// URL without user, query and fragment, got {shown(issuer)}"
        )
    if any(each.issuer == issuer for each in earlier):
        raise ValueError(f"issuer must be in one entry only, got {shown(issuer)} again")
    if entry["audience"] == client_id:
        raise ValueError(
            "audience must differ from client_id, which is the audience of ID tokens: these are not accepted as "
            f"bearer tokens, got {shown(client_id)} for both"
        )
    redirect_uri = entry.get("redirect_uri")
    if (client_id is None) != (redirect_uri is None):
        raise ValueError("client_id and redirect_uri must be set together, got only one of them")
    if redirect_uri is not None and not (
        is_provider_url(redirect_uri) and redirect_uri.endswith(CALLBACK)
    ):
        raise ValueError(
            f"redirect_uri must be the https:// URL of this service that ends with {CALLBACK}, as it is registered at "
            f"the provider, got {shown(redirect_uri)}"
        )
    secret_file = entry.get("secret_file")
    if secret_file is not None:
        if client_id is None:
            raise ValueError("secret_file must not be set without client_id")
        _check_secret(Path(secret_file))
    return Issuer(
        issuer,
        entry["audience"],
        client_id,
        redirect_uri,
        None if secret_file is None else Path(secret_file),
        entry.get("groups_claim") or DEFAULT_GROUPS_CLAIM,
    )


def _check_secret(file: Path) -> None:
    """Raises ValueError, without the file's content."""
    try:
        secret = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ValueError(f"secret_file {file} cannot be read: {why}") from None
    if not secret or not secret.isprintable():
        raise ValueError(f"secret_file {file} must contain one line of text")
