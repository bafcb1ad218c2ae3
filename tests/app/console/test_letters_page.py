"""The editor of reason codes and letters: the preview stores nothing, and what is saved is what the API has."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from tests.app.console.plain_browser import PlainBrowser, alert
from tests.app.live_service import Service
from tests.app.scoring.test_scorecard import people
from tests.long_form import long_form
from tests.sentences import Sentences

CODES = "/v1/models/card/reason-codes"
NASTY = "<script>alert('x')</script>"


class World:
    """A service with a scorecard."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.api = service.client(service.key())
        dataset = service.upload(self.api, people(400), label="bad", positive="yes")
        made = service.train(self.api, dataset, algorithm={"name": "scorecard"}, name="card")
        self.model: str = made["output"]["id"]
        self.page = f"/console/models/{self.model}/letters"
        features = self.api.get(f"/v1/models/{self.model}").json()["features"]
        values = {"amount": "17.5", "purpose": "car"}
        self.row = {f"f{i}": values[each["name"]] for i, each in enumerate(features)}


@pytest.fixture(scope="module")
def world(start: Callable[..., Service]) -> World:
    return World(start())


@pytest.fixture(autouse=True)
def no_codes(world: World) -> None:
    """Each test begins with two codes, one of which has conditions."""
    known = world.api.get(CODES)
    headers = {"If-Match": known.headers["ETag"]} if known.is_success else {}
    entries = [
        {"code": "R1", "text": "Amount", "columns": ["amount"], "min": 1.5, "letter": "{value}!"},
        {"code": "R2", "text": "Purpose", "columns": ["purpose"], "direction": "raises"},
    ]
    put = world.api.put(CODES, json={"entries": entries}, headers=headers)
    assert put.is_success, put.text


def fields_of(page: str) -> dict[str, str]:
    """Return the values of the fields that edit codes, without those of the customer."""
    found = dict(re.findall(r'<input type="hidden" name="(revision|draft)" value="([^"]*)"', page))
    found |= dict(re.findall(r'<input id="([a-z]+\.[^"]+)"[^>]*value="([^"]*)"', page))
    areas = re.findall(r'<textarea id="([a-z]+\.[^"]+)"[^>]*>(.*?)</textarea>', page, re.DOTALL)
    return {name: unescape(value) for name, value in (found | dict(areas)).items()}


def test_codes_are_added_and_removed(world: World) -> None:
    browser = PlainBrowser(world.service)
    fields = fields_of(browser.read(world.page)) | world.row
    edited = {"letter.0": f"Your {{feature}} of {{value}}:\n{NASTY}"}
    shown = browser.post(world.page, **fields | edited, action="preview")
    assert shown.status_code == 200
    assert "Your amount of 17.5:" in shown.text
    assert NASTY not in shown.text
    new = {
        "new.code": "R3",
        "new.text": "Other purpose",
        "new.columns": "purpose",
        "new.direction": "lowers",
        "new.letter": "",
    }
    saved = browser.post(world.page, **fields | edited | new, **{"remove.1": "yes"}, action="save")
    assert saved.status_code == 303, saved.text
    entries = world.api.get(CODES).json()["entries"]
    assert [each["code"] for each in entries] == ["R1", "R3"]
    assert (entries[0]["min"], entries[0]["letter"]) == (1.5, edited["letter.0"])
    assert (entries[1]["columns"], entries[1]["direction"]) == (["purpose"], "lowers")


def test_wrong_values_are_shown_beside_their_fields(world: World) -> None:
    browser = PlainBrowser(world.service)
    before = world.api.get(CODES).json()
    fields = fields_of(browser.read(world.page)) | world.row
    new = {"new.code": "R3", "new.text": "Third", "new.columns": "purpose"}
    for name, wrong in (
        ("letter.0", {"letter.0": "{who}"}),
        ("text.0", {"text.0": ""}),
        ("new.code", new | {"new.code": ""}),
        ("new.text", new | {"new.text": ""}),
        ("new.columns", {"new.code": "R3", "new.text": "Third"}),
        ("new.columns", new | {"new.columns": "none"}),
        ("new.text", new | {"new.code": "R1"}),
    ):
        for action in ("preview", "save"):
            answer = browser.post(world.page, **fields | wrong, action=action)
            assert answer.status_code == 422, (name, action)
            assert f'aria-describedby="e-{name}"' in answer.text, (name, action)
            assert alert(answer.text)
    for wrong in ({"new.direction": "up", **new}, {"revision": "x"}, {"revision": "99"}):
        assert browser.post(world.page, **fields | wrong, action="save").status_code == 422
    amount = next(name for name, value in world.row.items() if value == "17.5")
    answer = browser.post(world.page, **fields | {amount: "many"}, action="preview")
    assert answer.status_code == 422
    assert f'aria-describedby="e-{amount}"' in answer.text
    assert world.api.get(CODES).json() == before


def test_the_preview_has_the_cutoff_of_the_alias_and_its_limit_of_reasons(
    world: World, sentences: Sentences
) -> None:
    browser = PlainBrowser(world.service)
    fields = fields_of(browser.read(world.page)) | world.row
    fields |= {"letter.0": "{points} of {cutoff_points}.", "letter.1": "{cutoff_points}."}
    refused = browser.post(world.page, **fields, action="preview")
    assert refused.status_code == 422  # no alias has a cutoff
    sentences(alert(refused.text.partition('id="preview"')[2]))
    alias = "/v1/models/card/aliases/live"
    put = world.api.put(alias, json={"model_id": world.model, "guarantee": {"flagged": 0.2}})
    assert put.is_success, put.text
    threshold = put.json()["cutoff"]["threshold"]
    asked = {"threshold": threshold}
    point = world.api.get(f"/v1/models/{world.model}/scorecard/cutoff", params=asked).json()
    shown = browser.post(world.page, **fields, action="preview")
    assert shown.status_code == 200, shown.text
    assert f" of {round(point['points'])}." in shown.text
    assert "cutoff of card@live" in shown.text
    assert ", at most 4." in shown.text
    world.api.delete(alias)


def test_a_proposal_has_a_code_for_each_feature(world: World) -> None:
    made = world.service.train(
        world.api,
        world.api.get("/v1/datasets").json()["data"][0]["id"],
        algorithm={"name": "scorecard"},
        name="fresh",
    )
    page = f"/console/models/{made['output']['id']}/letters"
    browser = PlainBrowser(world.service)
    assert "letters?draft=yes" in browser.read(page)
    fields = fields_of(browser.read(f"{page}?draft=yes")) | world.row
    shown = browser.post(page, **fields, action="preview")
    assert shown.status_code == 200
    assert world.api.get("/v1/models/fresh/reason-codes").status_code == 404
    assert browser.post(page, **fields_of(shown.text), action="save").status_code == 303
    entries = world.api.get("/v1/models/fresh/reason-codes").json()["entries"]
    assert [each["columns"] for each in entries] == [["amount"], ["purpose"]]
    # Somebody else was first.
    stale = browser.post(page, **fields | {"text.1": "Why"}, action="save")
    assert (stale.status_code, fields_of(stale.text)["text.1"]) == (412, "Why")
    assert alert(stale.text)
    assert world.api.get("/v1/models/fresh/reason-codes").json()["entries"] == entries


@long_form
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1440, False)])
def test_it_is_accessible(world: World, visit: Callable[..., Any], width: int, dark: bool) -> None:
    window = visit(world.service, width=width, dark=dark)
    page = window.sign_in(world.service.key())
    window.open(world.page)
    page.get_by_label("Letter of R1").fill("Because of {value}.")
    page.get_by_role("button", name="Preview the letter").click()
    page.get_by_text("Letter with these codes").wait_for()
    page.evaluate(
        "scrollTo(0, 0)"
    )  # elsewhere the tabs, which stay in view, may lie on part of a field
    window.check()
