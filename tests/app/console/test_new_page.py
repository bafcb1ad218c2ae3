"""A page that is declared as CONTRIBUTING.md says is found everywhere: in the menu, by Find, and behind its scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from fastapi import APIRouter
from starlette.responses import Response

from app.console import pages, session
from app.console.rendering import environment
from app.console.session import ConsoleRoute, Group, NavLink, PageDep
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service

PATH = "/console/names"
TEMPLATE = """{% extends "base.html" %}
{% block title %}Names{% endblock %}
{% block content %}<h1>Names</h1>
<ul>{% for each in found.data %}<li>{{ each.name }}</li>{% endfor %}</ul>{% endblock %}"""
router = APIRouter(prefix=PATH, include_in_schema=False, route_class=ConsoleRoute)


@router.get("")
async def list_names(page: PageDep) -> Response:
    """Show the names of the owner's datasets."""
    template = environment().from_string(TEMPLATE)
    return page.show(template, found=await page.client.datasets.page())  # type: ignore[arg-type]  # no file


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        link = NavLink(PATH, "Names of tables", "read")
        patch.setattr(session, "NAVIGATION", (*session.NAVIGATION, Group("Names", (link,))))
        patch.setattr(pages, "ROUTERS", (*pages.ROUTERS, router))
        running = start()
        client = running.client(running.key())
        running.upload(client, name="<b>ours</b>")
        yield running


def test_it_is_in_the_menu_and_found(service: Service) -> None:
    browser = PlainBrowser(service)
    link = f'<a href="{PATH}"'
    assert link in browser.read("/console/datasets")
    assert re.search(f'<a href="{PATH}" aria-current="[a-z]+">Names</a>', browser.read(PATH))
    assert "Names of tables" in browser.read("/console/find?q=names+of")
    assert "Names of tables" in browser.read("/console/find?q=names+of&part=hits")
    assert "Names of tables" not in browser.read("/console/find?q=nonsense")
    scorer = PlainBrowser(service, scopes=["score"])
    for page in ("/console", "/console/find?q=names+of"):
        assert PATH not in scorer.read(page), page


def test_it_has_the_head_and_escapes(service: Service) -> None:
    answer = PlainBrowser(service).get(PATH)
    assert "<li>&lt;b&gt;ours&lt;/b&gt;</li>" in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert "<title>Names" in answer.text
