"""The guide of a release is served at /guide, and nothing beside its folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from app.http import guide
from tests.app.live_service import Service


@pytest.fixture(scope="module")
def guide_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed") / "guide"
    (folder / "tutorials").mkdir(parents=True)
    (folder / "index.html").write_text("the start")
    (folder / "tutorials" / "index.html").write_text("a tutorial")
    (folder / "search.json").write_text("{}")
    (folder.parent / "secret.txt").write_text("not for anybody")
    return folder


@pytest.fixture(scope="module")
def guided(start: Callable[..., Service], guide_folder: Path) -> Service:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guide, "FOLDER", guide_folder)
        return start()


@pytest.fixture
def client(guided: Service) -> httpx.Client:
    found = guided.client()  # without a key
    found.follow_redirects = True
    return found


def test_its_pages_are_read_without_a_key(client: httpx.Client) -> None:
    assert client.get("/guide").text == "the start"
    page = client.get("/guide/tutorials/")
    assert page.text == "a tutorial"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert client.get("/guide/tutorials").text == "a tutorial"
    assert client.get("/guide/search.json").headers["content-type"] == "application/json"
    kept = client.get("/guide/", headers={"If-None-Match": page.headers["etag"]})
    assert kept.status_code == 200
    again = client.get("/guide/", headers={"If-None-Match": kept.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("nothing", 404),
        ("..%2fsecret.txt", 404),
        ("%2e%2e/secret.txt", 404),
        ("tutorials/%2e%2e/%2e%2e/secret.txt", 404),
        ("%5c..%5csecret.txt", 404),
        ("/etc/passwd", 404),
        ("%00", 400),
        ("a" * 5_000, 404),
        ("a/" * 2_000, 404),
    ],
)
def test_other_addresses_are_refused(client: httpx.Client, path: str, status: int) -> None:
    answer = client.get(f"/guide/{path}")
    assert answer.status_code == status
    assert "not for anybody" not in answer.text
    assert client.post(f"/guide/{path}").status_code >= 400


def test_a_folder_s_page_is_named_by_its_path_alone(guided: Service) -> None:
    client = guided.client()
    assert client.get("/guide").headers["location"] == "/guide/"
    answer = client.get("/guide/tutorials", headers={"Host": "elsewhere.example"})
    assert answer.headers["location"] == "/guide/tutorials/"


def test_behind_a_prefix_it_leads_to_itself(
    start: Callable[..., Service], guide_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guide, "FOLDER", guide_folder)
    client = start(root_path="/ranking").client()
    for begin in ("", "/ranking"):  # a proxy may remove the prefix, or keep it
        for path, to in (
            ("/guide", "/ranking/guide/"),
            ("/guide/tutorials", "/ranking/guide/tutorials/"),
        ):
            assert client.get(begin + path).headers["location"] == to
        assert client.get(f"{begin}/guide/tutorials/").text == "a tutorial"


def test_an_installation_without_a_guide_has_no_such_page(
    start: Callable[..., Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guide, "FOLDER", tmp_path / "none")
    assert start().client().get("/guide/").status_code == 404
