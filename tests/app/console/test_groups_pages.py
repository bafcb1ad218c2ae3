"""Protected groups at a threshold, on the pages of models and evaluations: with and without scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect
from rankwright.types import EvaluatedGroups, GroupTest

from app.console.evaluation import say_difference
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service
from tests.app.models.test_api_groups import people
from tests.long_form import long_form, rest


@pytest.fixture
def trained(service: Service) -> tuple[str, dict[str, Any], str]:
    """A key, a model of people with a protected column as a feature, and an evaluation."""
    secret = service.key()
    client = service.client(secret)
    dataset = service.upload(client, people(800, 0)[0], protected="sex")
    job = service.train(client, dataset, protected_features=["sex"])
    model = client.get(f"/v1/models/{job['output']['id']}").json()
    newer = service.upload(client, people(300, 1)[0], name="newer", protected="sex")
    asked = {"model": model["id"], "dataset_id": newer, "at": {"threshold": 0.1}}
    evaluation = client.post("/v1/evaluations", json=asked).json()
    service.work()
    return secret, model, evaluation["id"]


@long_form
@pytest.mark.parametrize(("width", "dark"), [(390, True), *rest((1440, False))])
def test_the_table_moves_with_the_slider(
    service: Service,
    trained: tuple[str, dict[str, Any], str],
    visit: Callable[..., Any],
    width: int,
    dark: bool,
) -> None:
    secret, model, evaluation = trained
    window = visit(service, width=width, dark=dark)
    page = window.sign_in(secret)
    window.open(f"/console/models/{model['id']}")
    window.unfold()
    part = page.locator("#groups")
    expect(part.locator("table")).to_have_count(2)
    before = part.locator("table").first.inner_text()
    page.locator("#cutoff").focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    expect(part.locator("table").first).not_to_have_text(before, use_inner_text=True)
    window.settle()
    threshold = page.locator("[data-threshold]").get_attribute("data-threshold")
    assert part.locator("#groups-threshold").input_value() == threshold
    client = service.client(secret)
    found = client.get(f"/v1/models/{model['id']}/groups", params={"threshold": threshold}).json()
    share = found["columns"][0]["groups"][0]["not_flagged"]["value"]
    assert f"{share:.3f}" in part.locator("table").first.inner_text()
    part.locator("#groups-favourable").select_option("flagged")
    part.get_by_role("button", name="Show").click()
    share = found["columns"][0]["groups"][0]["flagged"]["value"]
    expect(part.locator("table").first).to_contain_text(f"{share:.3f}")
    page.evaluate(
        "scrollTo(0, 0)"
    )  # the head of the page stays in view and covers what is below it
    window.check()
    window.check_width()
    window.open(f"/console/evaluations/{evaluation}")
    page.get_by_text("Groups at a threshold").click()
    expect(page.locator("#groups table")).to_have_count(2)
    window.check_width()


def test_the_pages_without_scripts(
    service: Service, trained: tuple[str, dict[str, Any], str]
) -> None:
    secret, model, evaluation = trained
    ours = PlainBrowser(service, secret=secret)
    assert f"/console/models/{model['id']}/groups" in ours.read(f"/console/models/{model['id']}")
    for path in (f"models/{model['id']}", f"evaluations/{evaluation}"):
        client = service.client(secret)
        for side in ("flagged", "not_flagged"):
            asked = {"threshold": "0.25", "favourable": side}
            page = ours.read(f"/console/{path}/groups?threshold=0.25&favourable={side}")
            found = client.get(f"/v1/{path}/groups", params=asked).json()
            for column in found["columns"]:
                for group in column["groups"]:
                    assert f"{group[side]['value']:.3f}" in page
                    assert f"{group['tpr']['value']:.3f}" in page
        page = ours.read(f"/console/{path}/groups?threshold=high")
        assert "e-groups-threshold" in page
        assert "<table" not in page
        ours.read(f"/console/{path}/groups?threshold=none")
    moved = {"model_id": model["id"], "guarantee": {"flagged": 1e-9}}  # flags no row
    assert client.put("/v1/models/churn/aliases/live", json=moved).is_success
    assert client.get("/v1/models/churn@live/groups").json()["threshold"] is None
    ours.read("/console/models/churn@live/groups")
    # Without a significant difference, the page names the metrics that were tested, and no other.
    found = client.get(f"/v1/evaluations/{evaluation}").json()
    page = ours.read(f"/console/evaluations/{evaluation}")
    for of in found["protected"]:
        names = [{"auc": "AUC", "pauc": "partial AUC"}.get(each["of"]) for each in of["tests"]]
        said = page.partition(f"<h3>By {of['column']}</h3>")[2].partition("<details")[0]
        differs = any(each["differs"] for each in of["tests"])
        assert all(name in said for name in names if name) or differs
        assert "significant difference between" not in said


def test_the_details_of_a_check_have_the_width_of_its_words(
    service: Service, trained: tuple[str, dict[str, Any], str], visit: Callable[..., Any]
) -> None:
    secret, model, _ = trained
    window = visit(service, width=1440)
    page = window.sign_in(secret)
    window.open(f"/console/models/{model['id']}")
    details = page.locator(".checks details").first
    details.locator("summary").click()
    assert details.locator("li").first.bounding_box()["width"] > 400


def test_a_difference_names_its_groups_and_its_size() -> None:
    groups = [
        {
            "value": value,
            "auc": {"value": auc},
            "pauc": [],
            "fpr": {"value": fpr},
            "calibration": None,
        }
        for value, auc, fpr in (("north", 0.8, 0.059), ("south", 0.81, 0.01), (None, None, None))
    ]
    test = {"fpr_min": None, "fpr_max": None, "differs": True}
    by = EvaluatedGroups.from_json({"column": "region", "groups": groups})
    said = say_difference(by, GroupTest.from_json({"of": "fpr", **test}))
    assert said == "FPR: 0.059 in north, 0.010 in south"
    # A metric that fewer than two groups have is only named.
    said = say_difference(by, GroupTest.from_json({"of": "calibration", **test}))
    assert "north" not in said
