"""Saved views of a list: its filters, order and columns under a name, without a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.app.live_service import Service


def test_a_view_is_saved_opened_and_deleted(service: Service, visit: Callable[..., Any]) -> None:
    client = service.client(service.key())
    service.train(client, service.upload(client), name="churn")
    window = visit(service, script=False)
    window.sign_in(service.key())
    page = window.open("/console/models?search=chu&sort=-auc&columns=auc&columns=tags")
    page.get_by_text("Saved views").click()
    page.get_by_label("Save this view as").fill("Churn: best first")
    page.get_by_role("button", name="Save view").click()
    (view,) = client.get("/v1/views").json()["data"]
    assert view["query"] == "search=chu&sort=-auc&columns=auc&columns=tags"
    page = window.open("/console/models")
    assert page.get_by_role("columnheader", name="Trained").count() == 1
    page.get_by_text("Saved views").click()
    page.get_by_role("link", name="Churn: best first").click()
    assert page.url.endswith(view["query"])
    assert page.get_by_role("columnheader", name="Trained").count() == 0
    assert page.get_by_label("Search by name").input_value() == "chu"
    page.get_by_text("Saved views").click()
    page.get_by_role("button", name="Delete the view").click()
    assert client.get("/v1/views").json()["data"] == []
