"""The file of identity providers, and the keys that encrypt stored secrets."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.platform.encryption import BadKeys, Cipher, Undecryptable, read_keys
from app.platform.issuers import read_issuers
from app.platform.json_files import BadFile
from app.platform.settings import Settings
from tests.sentences import Sentences

ENTRY = {"issuer": "https://idp.example/realm", "audience": "api"}
BACK = "https://rw.example/console/oidc/callback"
PERSONS = ENTRY | {"client_id": "console", "redirect_uri": BACK}


def written(folder: Path, *entries: Any) -> Path:
    file = folder / "oidc.json"
    file.write_text(json.dumps(list(entries)))
    return file


def test_what_an_entry_means(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    file = written(
        tmp_path,
        PERSONS | {"secret_file": str(secret), "groups_claim": "roles"},
        {"issuer": "http://localhost:8080", "audience": "api", "client_id": None},
    )
    persons, services = read_issuers(file)
    assert (persons.client_id, persons.groups_claim, persons.secret()) == (
        "console",
        "roles",
        "s3cret",
    )
    assert (services.client_id, services.groups_claim, services.secret()) == (None, "groups", None)
    assert persons.label == "idp.example/realm"


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [1],
        [{}],
        [ENTRY | {"isuer": "x"}],
        [{"issuer": ENTRY["issuer"]}],
        [ENTRY | {"audience": ""}],
        [ENTRY | {"audience": ["api"]}],
        [ENTRY | {"audience": "x" * 1001}],
        [ENTRY | {"client_id": 5}],
        [PERSONS | {"client_id": "api"}],
        [PERSONS | {"redirect_uri": None}],
        [ENTRY | {"redirect_uri": BACK}],
        [PERSONS | {"redirect_uri": "http://rw.example/console/oidc/callback"}],
        [PERSONS | {"redirect_uri": "https://rw.example"}],
        [ENTRY | {"secret_file": "/nowhere/secret"}],
        [PERSONS | {"secret_file": "/nowhere/secret"}],
        [ENTRY | {"issuer": "http://idp.example"}],
        [ENTRY | {"issuer": "idp.example"}],
        [ENTRY | {"issuer": "https://"}],
        [ENTRY | {"issuer": "https://user:secret@idp.example"}],
        [ENTRY | {"issuer": "https://idp.example?x=1"}],
        [ENTRY | {"issuer": "https://idp.example:99999"}],
        [ENTRY | {"issuer": "https://idp.example/ü"}],
        [ENTRY, ENTRY],
        [ENTRY | {"issuer": f"https://{n}.example"} for n in range(51)],
    ],
    ids=lambda entries: json.dumps(entries)[:60],
)
def test_a_wrong_entry_is_named(tmp_path: Path, entries: list[Any], sentences: Sentences) -> None:
    file = written(tmp_path, *entries)
    with pytest.raises(BadFile) as refused:
        read_issuers(file)
    sentences(str(refused.value).replace(str(tmp_path), ""))
    with pytest.raises(ValidationError) as stopped:
        Settings(state_dir=tmp_path, oidc_file=file)
    assert [each["loc"] for each in stopped.value.errors()] == [("oidc_file",)]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"{}", b"[" * 100_000, b"[" + b" " * 2**20]
)
def test_a_file_that_is_no_list_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "oidc.json"
    file.write_bytes(content)
    with pytest.raises(BadFile):
        read_issuers(file)
    with pytest.raises(BadFile):
        read_issuers(tmp_path / "none")


def test_people_need_a_key_for_their_refresh_tokens(tmp_path: Path) -> None:
    file = written(tmp_path, PERSONS)
    with pytest.raises(ValidationError) as refused:
        Settings(state_dir=tmp_path, oidc_file=file)
    assert [each["loc"] for each in refused.value.errors()] == [("oidc_file",)]
    assert Settings(state_dir=tmp_path, oidc_file=written(tmp_path, ENTRY)).oidc_file is not None
    assert Settings(state_dir=tmp_path, oidc_file="").oidc_file is None  # type: ignore[arg-type]  # compose passes it on


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("oidc_stale_seconds", 59),
        ("oidc_stale_seconds", "x"),
        ("oidc_skew_seconds", -1),
        ("oidc_skew_seconds", 601),
        ("secrets_keys_file", "/nowhere/keys"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(state_dir=tmp_path, **{name: value})
    assert [each["loc"] for each in refused.value.errors()] == [(name,)]


def key(letter: bytes) -> str:
    return base64.b64encode(letter * 32).decode()


def test_keys_are_rotated(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(key(b"a") + "\n")
    old = Cipher(read_keys(file))
    stored = old.encrypt("token")
    assert "token" not in stored
    file.write_text(f"{key(b'b')}\n{key(b'a')}\n")
    both = Cipher(read_keys(file))
    assert both.decrypt(stored) == "token"
    again = both.encrypt("token")
    file.write_text(base64.urlsafe_b64encode(b"b" * 32).decode())
    new = Cipher(read_keys(file))
    assert new.decrypt(again) == "token"
    for bad in (stored, again[:-4], "", "é"):
        with pytest.raises(Undecryptable):
            new.decrypt(bad)


@pytest.mark.parametrize("content", [b"", b"x", b"YQ==", b"\xff", b"-" * 44])
def test_a_file_without_keys_is_refused(
    tmp_path: Path, content: bytes, sentences: Sentences
) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content)
    with pytest.raises(BadKeys) as refused:
        read_keys(file)
    sentences(str(refused.value).replace(str(tmp_path), ""))
