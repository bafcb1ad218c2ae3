"""A URL, or its password alone, may stand in a file, where no list of processes or containers shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kombu.utils.url import parse_url
from pydantic import SecretStr, ValidationError
from sqlalchemy.engine import make_url

from app.platform.settings import Settings
from tests.raising import raises
from tests.sentences import Sentences

URL = "postgresql://rankwright:s3cret@db/rankwright"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "url"
    path.write_text(URL + "\n")
    return path


def test_the_file_s_text_is_the_url(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANKWRIGHT_DATABASE_URL", raising=False)
    monkeypatch.setenv("RANKWRIGHT_DATABASE_URL_FILE", str(file))
    settings = Settings()
    assert settings.sqlalchemy_url == URL
    assert "s3cret" not in repr(settings)


def test_so_it_is_with_the_broker_s(file: Path) -> None:
    file.write_text("redis://:pw@b/0")
    assert Settings(broker_url_file=file).celery_broker_url == "redis://:pw@b/0"


@pytest.mark.parametrize(
    "content",
    [
        b"mysql://u:s3cret@host/db",
        b"s3cret",
        b"\xff\xfe",
        b"",
    ],
)
def test_what_is_no_url_is_refused_and_not_shown(
    file: Path, content: bytes, sentences: Sentences
) -> None:
    file.write_bytes(content)
    with pytest.raises(ValidationError) as caught:
        Settings(database_url_file=file)
    assert caught.value.errors()[0]["loc"] == ("database_url",)
    sentences(caught.value.errors()[0]["msg"])
    assert "s3cret" not in caught.value.errors()[0]["msg"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path, sentences: Sentences) -> None:
    missing = tmp_path / "none"
    with pytest.raises(ValidationError) as caught:
        Settings(database_url_file=missing)
    sentences(caught.value.errors()[0]["msg"])


def test_url_and_file_are_not_both_given(file: Path, sentences: Sentences) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"database_url_file": file, "database_url": URL})
    sentences(caught.value.errors()[0]["msg"])


ODD = "p@ss:w/rd %41#?é'\"\\ "
"""Characters that a URL gives a meaning, and a space at its end."""


def test_a_password_of_a_file_may_have_any_character(file: Path) -> None:
    file.write_text(f"{ODD}\n")
    settings = Settings(
        database_url=SecretStr(
            "postgresql+psycopg://rankwright@db:5432/rankwright?sslmode=require"
        ),
        database_password_file=file,
        broker_url=SecretStr("redis://b:6379/0"),
        broker_password_file=file,
    )
    url = make_url(settings.sqlalchemy_url)
    assert (url.username, url.password, url.host, url.port) == ("rankwright", ODD, "db", 5432)
    assert (url.database, url.query) == ("rankwright", {"sslmode": "require"})
    broker = parse_url(settings.celery_broker_url)
    assert (broker["password"], broker["hostname"], broker["port"]) == (ODD, "b", 6379)
    assert "p%40ss" not in repr(settings)


@pytest.mark.parametrize(
    "url",
    [
        None,
        "sqlite:////srv/rankwright.db",
        "postgresql://u:s3cret@db/d",
    ],
)
def test_a_password_needs_a_url_that_it_fits_into(
    file: Path, url: str | None, sentences: Sentences
) -> None:
    file.write_text("s3cret")
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"database_url": url, "database_password_file": file})
    assert caught.value.errors()[0]["loc"] == ("database_url",)
    sentences(caught.value.errors()[0]["msg"])
    assert "s3cret" not in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize("content", [b"", b"\n", b"s3cret\nanother", b"\xff\xfe", None])
def test_a_file_without_one_password_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
    with raises(ValidationError, path) as caught:
        Settings.model_validate({"broker_url": "redis://b/0", "broker_password_file": path})
    assert "s3cret" not in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize("said", ["", "optional", "CERT_NONE", "none&ssl_cert_reqs=required"])
def test_the_check_of_a_broker_s_certificate_is_required_or_none(
    said: str, sentences: Sentences
) -> None:
    url = f"rediss://:s3cret@b/0?ssl_cert_reqs={said}"
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"broker_url": url})
    sentences(caught.value.errors()[0]["msg"])
    assert "s3cret" not in caught.value.errors()[0]["msg"]
