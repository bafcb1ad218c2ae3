"""The decision curve of an evaluation: its chart and its numbers, in a wide and in a narrow window."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from app.console.rendering import number as spelled
from tests.app.console.test_scoring_pages import AT_RANDOM, customers
from tests.app.live_service import Service


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


def test_the_curve_and_its_numbers(service: Service, visit: Callable[..., Any]) -> None:
    secret = service.key()
    api = service.client(secret)
    old, new = (
        service.upload(api, customers(n, seed), label="left", positive="ja", drop="customer")
        for n, seed in ((600, 0), (400, 1))
    )
    service.train(api, old, validation=AT_RANDOM)
    made = api.post("/v1/evaluations", json={"model": "churn", "dataset_id": new}).json()
    service.work()
    curve = api.get(f"/v1/evaluations/{made['id']}").json()["metrics"]["decision_curve"]
    for width in (1366, 390):
        window = visit(service, width=width)
        window.sign_in(secret)
        page = window.open(f"/console/evaluations/{made['id']}")
        window.settle()
        card = page.locator("#decisions")
        card.locator("summary").first.click()
        acted = [point for point in curve if point["flagged"] > 0.0]
        assert card.locator("svg circle").count() == len(acted)
        card.get_by_text("Net benefit at each threshold").click()
        rows = card.locator("tbody tr")
        assert rows.count() == len(curve) == 59
        at_a_tenth = rows.nth(9).inner_text()
        assert "10 %" in at_a_tenth
        assert f"{spelled(curve[9]['benefit']['value'])}" in at_a_tenth
        window.check("#decisions")
        if folder := os.environ.get("SHOTS"):
            card.get_by_text("Net benefit at each threshold").click()
            card.screenshot(path=f"{folder}/decisions-{width}.png")
