"""Credentials of a bucket, in the format that each provider's own tools use."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_S3 = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
}
_AZURE = {
    "accountname": "account_name",
    "accountkey": "account_key",
    "sharedaccesssignature": "sas_key",
    "blobendpoint": "endpoint",
}


class BadCredentials(Exception):
    """Credentials, certificates or URL of a bucket cannot be used. The message has nothing of a file's content."""


def options_of(scheme: str, file: Path | None) -> dict[str, Any]:
    """Return obstore's options for a file of credentials; none without a file. Raises BadCredentials.

    `s3`: an AWS credentials file with the section `[default]`. `gs`: the JSON key of a service account. `az`: a
    connection string.
    """
    if file is None:
        return {}
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadCredentials(f"the credentials file {file} cannot be read: {why}") from None
    try:
        return dict(_READERS[scheme](text))
    except (ValueError, KeyError, configparser.Error):
        raise BadCredentials(f"the credentials file {file} is not {_FORMATS[scheme]}") from None


def _read_s3(text: str) -> Mapping[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    section = parser["default"]
    section["aws_access_key_id"], section["aws_secret_access_key"]
    return {option: section[name] for name, option in _S3.items() if name in section}


def _read_gs(text: str) -> Mapping[str, str]:
    if json.loads(text)["type"] != "service_account":
        raise ValueError
    return {"service_account_key": text}


def _read_az(text: str) -> Mapping[str, str]:
    if not re.fullmatch(r"[\x20-\x7e]+", text := text.strip()):
        raise ValueError
    parts = (each.partition("=") for each in text.split(";") if each)
    found = {name.strip().lower(): value for name, _, value in parts}
    if not found.keys() & {"accountkey", "sharedaccesssignature"} or "accountname" not in found:
        raise ValueError
    return {option: found[name] for name, option in _AZURE.items() if name in found}


_READERS: Mapping[str, Callable[[str], Mapping[str, str]]] = {
    "s3": _read_s3,
    "gs": _read_gs,
    "az": _read_az,
}
_FORMATS = {
    "s3": "an AWS credentials file: a section [default] with aws_access_key_id and aws_secret_access_key",
    "gs": "the JSON key of a service account",
    "az": "a connection string with AccountName and AccountKey or SharedAccessSignature",
}
