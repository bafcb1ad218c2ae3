"""Governed changes in the console, without a script: previewed, with a reason, and undone; comments and alarms."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.app.console.plain_browser import PlainBrowser
from tests.app.evaluation.test_acknowledgements import drifted_table
from tests.app.live_service import Service, table

ADDRESS = "/v1/models/churn/aliases/live"
NASTY = '<script>alert("x")</script>'


class World:
    """Two versions of a model, an alias, and an evaluation that found a change."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.api = service.client(service.key())
        dataset_id = service.upload(self.api, table(600))
        made = (service.train(self.api, dataset_id, seed=seed) for seed in (0, 1))
        self.first, self.second = (each["output"]["id"] for each in made)
        self.later = service.upload(self.api, drifted_table(), name="later")
        asked = {"model": self.first, "dataset_id": self.later}
        self.evaluation = self.api.post("/v1/evaluations", json=asked).json()["id"]
        service.work()
        guarantee = {"guarantee": {"flagged": 0.2}}
        self.api.put(ADDRESS, json={"model_id": self.first, **guarantee})

    def protect(self, address: str) -> None:
        answer = self.api.put(
            f"{address}/protection", json={"protected": True}, headers={"If-Match": '"1"'}
        )
        assert answer.is_success, answer.text

    def alias(self) -> dict[str, Any]:
        found: dict[str, Any] = self.api.get(ADDRESS).json()
        return found


@pytest.fixture(scope="module")
def world(start: Callable[..., Service]) -> World:
    return World(start())


@pytest.fixture(scope="module")
def ours(world: World) -> PlainBrowser:
    return PlainBrowser(world.service)


def fields_of(answer: httpx.Response, action: str) -> dict[str, str]:
    """Return the hidden fields of the form that is sent to an address ending with `action`."""
    form = re.search(rf'<form[^>]*action="[^"]*{action}"[^>]*>.*?</form>', answer.text, re.DOTALL)
    assert form is not None, action
    hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form[0])
    return {name: html.unescape(value) for name, value in hidden if name != "csrf"}


def test_an_alias_is_moved_with_a_reason_and_undone(world: World, ours: PlainBrowser) -> None:
    page = f"/console/models/{world.second}"
    change = ours.get(f"{page}/aliases/live/change")
    preview = world.api.post(f"{ADDRESS}/preview", json={"model_id": world.second}).json()
    for side in ("before", "after"):
        assert f"{preview[side]['cutoff']['threshold']:.6g}" in change.text
    sent = fields_of(change, "/aliases")
    moved = ours.post(f"{page}/aliases", **sent, reason=NASTY)
    assert moved.status_code == 303, moved.text
    now = world.alias()
    assert (now["model_id"], now["memo"]["reason"]) == (world.second, NASTY)
    shown = ours.get(f"{page}/aliases")
    assert NASTY not in shown.text
    assert html.escape("alert(") in shown.text
    evidence = f"{page}/aliases/live/evidence/{now['revision']}"
    assert f'{evidence}?file=report.html"' in shown.text
    assert ours.get(evidence).headers["content-type"] == "application/zip"
    report = ours.get(f"{evidence}?file=report.html")
    assert "sandbox" in report.headers["content-security-policy"]
    audit = ours.get("/console/audit").text
    assert "live: churn v1 (threshold" in audit
    undo = fields_of(shown, "/aliases/live/restore")
    assert ours.post(f"{page}/aliases/live/restore", **undo).status_code == 303
    assert world.alias()["model_id"] == world.first
    assert ours.post(f"{page}/aliases/live/restore", **undo).status_code == 412


def request_of(answer: httpx.Response) -> str:
    """Return the address of the page of the request that was just made."""
    assert answer.status_code == 303, answer.text
    found: str = answer.headers["location"]
    assert found.startswith("/console/alias-requests/arq_")
    return found


def test_a_change_of_a_protected_alias_is_requested_and_approved(
    world: World, ours: PlainBrowser
) -> None:
    page = f"/console/models/{world.second}"
    protect = fields_of(ours.get(f"{page}/aliases"), "/aliases/live/protection")
    assert ours.post(f"{page}/aliases/live/protection", **protect).status_code == 303
    assert world.alias()["protected"] is True
    trainer = PlainBrowser(world.service, scopes=["read", "train"])
    approver = PlainBrowser(world.service, scopes=["read", "approve"])
    reader = PlainBrowser(world.service, scopes=["read"])
    change = trainer.get(f"{page}/aliases/live/change")
    assert "Once the change is approved, everyone" in change.text
    assert "You can undo it." not in change.text
    sent = fields_of(change, "/aliases")
    refused = trainer.post(f"{page}/aliases", **sent, reason=" ")
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert fields_of(refused, "/aliases") == sent
    asked = request_of(trainer.post(f"{page}/aliases", **sent, reason=NASTY))
    assert world.alias()["model_id"] == world.first

    # The approver sees what is known of the requested version beside the present one.
    seen = approver.get(asked).text
    for model in (world.first, world.second):
        assert re.search(rf'<h2>Checks of <a href="/console/models/{model}">', seen)

    # The page shows what would change to all, and to each only what they may do.
    forms = {
        browser: set(re.findall(rf'action="{asked}/(\w+)"', browser.get(asked).text))
        for browser in (trainer, approver, reader, ours)
    }
    assert forms[trainer] == {"withdraw"}
    assert forms[approver] == {"approve", "reject"}
    assert forms[reader] == set()
    assert forms[ours] == {"approve", "reject", "withdraw"}
    shown = approver.get(asked)
    assert NASTY not in shown.text
    preview = world.api.post(f"{ADDRESS}/preview", json={"model_id": world.second}).json()
    for side in ("before", "after"):
        assert f"{preview[side]['cutoff']['threshold']:.6g}" in shown.text
    assert f"{asked}/download/evidence?file=report.html" in shown.text
    evidence = approver.get(f"{asked}/download/evidence")
    assert evidence.headers["content-type"] == "application/zip"
    assert approver.post(f"{asked}/reject", reason=" ").status_code == 422
    done = approver.post(f"{asked}/approve")
    assert (done.status_code, done.headers["location"]) == (303, asked)
    assert world.alias()["model_id"] == world.second
    history = trainer.get(f"{page}/aliases").text
    assert asked in history
    assert "Approved by" in history
    again = approver.post(f"{asked}/approve")
    assert again.status_code == 409
    assert 'role="alert"' in again.text
    assert asked in approver.get("/console/alias-requests?state=all").text
    # Its restoration, its deletion and the lifting of its protection are requested, too.
    older = fields_of(trainer.get(f"{page}/aliases/live/change?to=1"), "/aliases/live/restore")
    direct = {name: value for name, value in older.items() if name != "request"}
    refused = trainer.post(f"{page}/aliases/live/restore", **direct)
    assert refused.status_code == 409
    assert fields_of(refused, "/aliases/live/restore") == older
    asked = request_of(trainer.post(f"{page}/aliases/live/restore", **older, reason="Worse"))
    assert trainer.post(f"{asked}/withdraw").status_code == 303
    assert "withdrawn" in trainer.get(asked).text
    lift = fields_of(trainer.get(f"{page}/aliases"), "/aliases/live/protection")
    assert trainer.post(f"{page}/aliases/live/protection", **lift).status_code == 422
    asked = request_of(trainer.post(f"{page}/aliases/live/protection", **lift, reason="Over"))
    assert approver.post(f"{asked}/approve").status_code == 303
    assert world.alias()["protected"] is False
    back = fields_of(ours.get(f"/console/models/{world.first}/aliases/live/change"), "/aliases")
    assert ours.post(f"/console/models/{world.first}/aliases", **back).status_code == 303


def test_a_recalibration_of_a_protected_alias_is_requested(
    world: World, ours: PlainBrowser
) -> None:
    page = f"/console/models/{world.first}"
    approver = PlainBrowser(world.service, scopes=["read", "approve"])
    address = "/v1/models/churn/aliases/priced"
    assert world.api.put(address, json={"model_id": world.first}).status_code == 201
    world.protect(address)
    before = world.api.get(f"/v1/models/{world.first}/calibration").json()["version"]
    confirm = ours.post(f"{page}/calibration", dataset_id=world.later)
    assert confirm.status_code == 200, confirm.text
    sent = fields_of(confirm, "/calibration")
    assert sent["request"] == "priced"
    assert ours.post(f"{page}/calibration", **sent, reason=" ").status_code == 422
    asked = request_of(ours.post(f"{page}/calibration", **sent, reason="New tariff"))
    assert approver.post(f"{asked}/approve").status_code == 303
    world.service.work()
    found = world.api.get(f"/v1/models/{world.first}/calibration").json()
    assert (found["version"], found["reason"]) == (before + 1, "New tariff")
    assert (found["alias_request_id"], found["break_glass"]) == (asked.rpartition("/")[2], False)
    assert found["approved_by"] is not None
    undo = fields_of(ours.get(f"{page}/calibration"), "/calibration/restore")
    confirm = ours.post(f"{page}/calibration/restore", **undo)
    assert confirm.status_code == 409
    sent = fields_of(confirm, "/calibration/restore")
    asked = request_of(ours.post(f"{page}/calibration/restore", **sent, reason="Worse"))
    assert approver.post(f"{asked}/approve").status_code == 303
    assert world.api.get(f"/v1/models/{world.first}/calibration").json()["restores"] == before
    lift = {"kind": "unprotect", "name": "churn", "alias": "priced", "reason": "x"}
    made = world.api.post("/v1/alias-requests", json=lift).json()["id"]
    assert approver.post(f"/console/alias-requests/{made}/approve").status_code == 303
    assert world.api.delete(address, headers={"If-Match": '"3"'}).status_code == 204


def test_break_glass_is_on_every_page(world: World, ours: PlainBrowser) -> None:
    page = f"/console/models/{world.second}"
    address = "/v1/models/churn/aliases/glass"
    assert world.api.put(address, json={"model_id": world.second}).status_code == 201
    world.protect(address)
    trainer = PlainBrowser(world.service, scopes=["read", "train"])
    start = f"{page}/aliases/glass/break-glass"
    assert start in ours.get(f"{page}/aliases").text
    assert start not in trainer.get(f"{page}/aliases").text
    assert trainer.post(start, reason="x", hours="1").status_code == 403
    for wrong in ({"reason": " "}, {"hours": "5"}, {"hours": "x"}):
        answer = ours.post(start, **({"reason": "x", "hours": "1"} | wrong))
        assert answer.status_code == 422, wrong
    assert ours.post(start, reason=f"Emergency {NASTY}", hours="4").status_code == 303
    shown_on = ("/console", page, f"{page}/history", "/console/monitoring/churn/glass")
    for where in shown_on:
        shown = trainer.get(where).text
        assert "Break-glass" in shown, where
        assert NASTY not in shown
    # An admin changes it directly, with a reason.
    change = fields_of(ours.get(f"{page}/aliases/glass/remove"), "/remove")
    assert "request" not in change
    assert ours.post(f"{page}/aliases/glass/remove", **change).status_code == 422
    assert ours.post(start, end="yes").status_code == 303
    for where in shown_on:
        assert "Break-glass" not in trainer.get(where).text, where
    assert ours.post(start, end="yes").status_code == 404


def test_a_recalibration_is_confirmed_and_undone(world: World, ours: PlainBrowser) -> None:
    page = f"/console/models/{world.first}"
    before = world.api.get(f"/v1/models/{world.first}/calibration").json()["version"]
    assert world.alias()["protected"] is False
    asked = ours.post(f"{page}/calibration", dataset_id=world.later)
    assert asked.status_code == 200, asked.text
    assert "churn@live" in asked.text
    sent = fields_of(asked, "/calibration")
    job = ours.post(f"{page}/calibration", **sent, reason="New tariff")
    assert job.headers["location"].startswith("/console/jobs/")
    world.service.work()
    shown = ours.get(f"{page}/calibration")
    assert "New tariff" in shown.text
    undo = fields_of(shown, "/calibration/restore")
    assert ours.post(f"{page}/calibration/restore", **undo).status_code == 303
    found = world.api.get(f"/v1/models/{world.first}/calibration").json()
    assert (found["version"], found["restores"]) == (before + 2, before)
    assert ours.post(f"{page}/calibration/restore", **undo).status_code == 412


def test_comments_are_added_and_deleted(world: World, ours: PlainBrowser) -> None:
    page = f"/console/models/{world.first}"
    assert ours.post(f"{page}/comments", text=f"{NASTY}\r\nagain").status_code == 303
    shown = ours.get(f"{page}/comments")
    assert NASTY not in shown.text
    assert "again" in shown.text
    assert ours.post(f"{page}/comments", text=" ").status_code == 422
    long = ours.post(f"{page}/comments", text="x" * 2001)
    assert long.status_code == 422
    assert "x" * 2001 in long.text
    (found,) = world.api.get(f"/v1/models/{world.first}/comments").json()["data"]
    assert found["text"] == f"{NASTY}\nagain"
    reader = PlainBrowser(world.service, scopes=["read"])
    seen = reader.get(f"{page}/comments").text
    assert "again" in seen
    assert "<form" not in seen.partition("<h2>Comments")[2].partition("</section>")[0]
    assert reader.post(f"{page}/comments", text="a").status_code == 403
    other = PlainBrowser(world.service)
    assert other.post(f"{page}/comments/{found['id']}/delete").status_code == 403
    assert ours.post(f"{page}/comments/{found['id']}/delete").status_code == 303


def test_an_alarm_is_acknowledged_and_shown(world: World, ours: PlainBrowser) -> None:
    page = f"/console/evaluations/{world.evaluation}"
    assert f"{page}#acknowledge" in ours.get("/console").text
    assert ours.post(f"{page}/acknowledgement", reason=f"Known {NASTY}").status_code == 303
    for where in ("/console", page, f"/console/models/{world.first}"):
        shown = ours.get(where).text
        assert "Acknowledged by" in shown, where
        assert NASTY not in shown
    assert ours.post(f"{page}/acknowledgement", reason=" ").status_code == 422
    reader = PlainBrowser(world.service, scopes=["read"])
    assert "/acknowledgement" not in reader.get(page).text
    assert reader.post(f"{page}/acknowledgement", reason="a").status_code == 403
    assert ours.post(f"{page}/acknowledgement/withdraw").status_code == 303
    assert f"{page}#acknowledge" in ours.get("/console").text


def test_saving_a_cutoff_shows_what_changes_first(world: World, ours: PlainBrowser) -> None:
    page = f"/console/models/{world.first}"
    address = "/v1/models/churn/aliases/guarded"
    body = {"model_id": world.first, "guarantee": {"flagged": 0.2}}
    assert world.api.put(address, json=body).status_code == 201
    world.protect(address)
    before = world.api.get(address).json()
    entered = {"alias": "guarded", "threshold": "0.25", "keep": "threshold"}
    shown = ours.post(f"{page}?review=10&rows=100", **entered)
    assert shown.status_code == 200
    preview = world.api.post(
        f"{address}/preview", json={"model_id": world.first, "guarantee": {"threshold": 0.25}}
    ).json()
    for side in ("before", "after"):
        assert f"{100 * preview[side]['point']['flagged']['value']:.1f} %" in shown.text
        assert f"{preview[side]['cutoff']['threshold']:.6g}" in shown.text
    assert "10 of 100 rows" in shown.text
    assert world.api.get(address).json() == before
    sent = fields_of(shown, "review=10&amp;rows=100")
    refused = ours.post(f"{page}?review=10&rows=100", **sent, reason=" ")
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert world.api.get(address).json() == before
    approver = PlainBrowser(world.service, scopes=["read", "approve"])
    asked = request_of(ours.post(f"{page}?review=10&rows=100", **sent, reason=NASTY))
    assert world.api.get(address).json() == before
    assert approver.post(f"{asked}/approve").status_code == 303
    now = world.api.get(address).json()
    assert (now["revision"], now["cutoff"]["threshold"]) == (3, 0.25)
    assert now["memo"]["reason"] == NASTY
    assert now["memo"]["review"] == 10
    # Without protection it is saved at once, and undone.
    body = {"model_id": world.first, "guarantee": {"flagged": 0.2}}
    assert world.api.put("/v1/models/churn/aliases/plain", json=body).status_code == 201
    plain = ours.post(f"{page}?review=10&rows=100", **entered | {"alias": "plain"})
    sent = fields_of(plain, "review=10&amp;rows=100")
    saved = ours.post(f"{page}?review=10&rows=100", **sent, reason="Early")
    assert saved.status_code == 303
    again = ours.post(f"{page}?review=10&rows=100", **sent, reason="Late")
    assert again.status_code == 412
    assert "Late" in again.text
    panel = ours.get(saved.headers["location"])
    undo = fields_of(panel, "/aliases/plain/restore")
    assert ours.post(f"{page}/aliases/plain/restore", **undo).status_code == 303
    found = world.api.get("/v1/models/churn/aliases/plain").json()
    assert found["guarantee"]["flagged"] == 0.2


def test_a_wrong_cutoff_is_not_previewed(world: World, ours: PlainBrowser) -> None:
    page = f"/console/models/{world.first}"
    entered = {"alias": "next", "threshold": "0.25", "keep": "threshold"}
    for query, other in (
        ("", {"threshold": ""}),
        ("", {"threshold": "x"}),
        ("", {"threshold": "nan"}),
        ("", {"alias": ""}),
        ("", {"alias": "A!"}),
        ("", {"threshold": "-1e9", "keep": "flagged"}),
        ("?review=10", {}),
        ("?review=x&rows=10", {}),
        ("?cost_false_positive=1", {}),
        ("?cost_false_positive=x&cost_false_negative=1", {}),
        ("?cost_false_positive=1&cost_false_negative=1&prevalence=2", {}),
    ):
        for confirmed in ({}, {"confirmed": "yes"}):
            answer = ours.post(f"{page}{query}", **entered | other, **confirmed)
            assert answer.status_code == 422, (query, other)
            assert 'role="alert"' in answer.text
    assert world.api.get("/v1/models/churn/aliases/next").status_code == 404
    reader = PlainBrowser(world.service, scopes=["read"])
    assert reader.post(page, **entered, confirmed="yes").status_code == 403
    assert PlainBrowser(world.service, owner="stranger").post(page, **entered).status_code == 404
