"""The decision curve of an evaluation: its chart and its numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from app.console.rendering import number as spelled
from tests.app.console.plain_browser import PlainBrowser
from tests.app.console.test_scoring_pages import AT_RANDOM, customers
from tests.app.live_service import Service


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


def test_the_curve_and_its_numbers(service: Service) -> None:
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
    page = PlainBrowser(service, secret=secret).read(f"/console/evaluations/{made['id']}")
    card = page.partition('id="decisions"')[2].partition('id="top"')[0]
    acted = [point for point in curve if point["flagged"] > 0.0]
    assert card.count("<circle") == len(acted)
    rows = re.findall("(?s)<tr>.*?</tr>", card.partition("<tbody>")[2])
    assert len(rows) == len(curve) == 59
    assert "10 %" in rows[9]
    assert spelled(curve[9]["benefit"]["value"]) in rows[9]
