"""Where a bucket of an object store is, and the rules of its URLs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Bucket:
    """Where a bucket is, and how to get in."""

    url: str
    """s3://bucket/prefix, gs://bucket/prefix, or az://container/prefix."""
    endpoint: str | None = None
    """URL of a server other than the provider's own."""
    credentials_file: Path | None = None
    """See `bucket_credentials.options_of`. Without it, the environment's identity is used (instance profile, workload
    identity, AWS_* variables)."""
    ca_file: Path | None = None
    """PEM file with certificates of private authorities."""


def check_bucket_url(given: str) -> None:
    """Raise ValueError for a bucket and prefix that cannot be used."""
    parts = urlsplit(given)
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}", parts.netloc):
        raise ValueError(
            f"must name a bucket, as in {parts.scheme}://bucket/prefix: lowercase letters, digits and ._-, without "
            "user or port"
        )
    if parts.query or parts.fragment or not re.fullmatch(r"(/[A-Za-z0-9._-]+)*/?", parts.path):
        raise ValueError(
            "must have a prefix of letters, digits and ._- between single slashes, and no query or fragment"
        )
    if {".", ".."} & set(parts.path.split("/")):
        raise ValueError("must have a prefix without the steps . and ..")


def check_endpoint(given: str, scheme: str) -> None:
    """Raise ValueError for a bucket's server that cannot be used."""
    if scheme == "gs":
        raise ValueError("must not be set for gs://, whose server is always Google's")
    try:
        parts = urlsplit(given)
        is_whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_whole = False
    if not is_whole or parts.scheme not in ("http", "https"):
        raise ValueError("must be an http:// or https:// URL of a server")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must be a URL without user, password, query or fragment")
