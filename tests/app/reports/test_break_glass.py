"""In an emergency, an admin suspends the protection of an alias for some hours; it is loud, and ends."""

from __future__ import annotations

import logging
from functools import partial

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.operations.repository import prune_break_glass
from app.platform.tables import BreakGlass
from tests.app.live_service import STRANGER, Service, table
from tests.app.refusals import refused
from tests.app.reports.alias_request_steps import ALIAS, Team, tag, team


def metric(us: Team) -> float:
    families = text_string_to_metric_families(
        us.service.client(us.service.key()).get("/metrics").text
    )
    return next(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "rankwright_break_glass"
    )


def test_an_admin_changes_a_protected_alias_and_it_is_loud(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    us = team(service)
    later = us.service.upload(us.ann, table(600, seed=4), name="later")
    assert (us.alias()["break_glass_until"], metric(us)) == (None, 0)
    with caplog.at_level(logging.WARNING):
        made = us.break_glass(seconds=7200)
    assert made.status_code == 201, made.text
    found = made.json()
    assert (found["author"], found["reason"]) == ("Eve", "All are rejected")
    assert any(
        each.levelno == logging.WARNING and "BREAK-GLASS" in each.getMessage()
        for each in caplog.records
    )
    assert all(part in us.summary() for part in ("BREAK-GLASS", "churn@live", "2 h"))
    assert us.alias()["break_glass_until"] == found["until"]
    (listed,) = us.ann.get("/v1/models/churn/aliases").json()["data"]
    assert listed["break_glass_until"] == found["until"]
    assert metric(us) == 1

    # Only admins, with a reason; an approver and a trainer still need an approval.
    put = {"model_id": us.second, "memo": {"reason": "Back at once"}}
    refused(us.ann.put(ALIAS, json=put, headers=tag(2)), 409, "approval_required")
    without = us.eve.put(ALIAS, json={"model_id": us.second}, headers=tag(2))
    problem = refused(without, 422, "reason_required")
    assert problem["errors"][0]["pointer"] == "/memo/reason"
    for blank in (None, {}, {"reason": "\u200b\u2060"}):
        answer = us.eve.put(ALIAS, json={"model_id": us.second, "memo": blank}, headers=tag(2))
        refused(answer, 422, "reason_required")
    seen = us.eve.post(f"{ALIAS}/preview", json={"model_id": us.second}).json()
    assert (seen["protected"], seen["approval_required"]) == (True, False)
    seen = us.ann.post(f"{ALIAS}/preview", json={"model_id": us.second}).json()
    assert (seen["protected"], seen["approval_required"]) == (True, True)
    moved = us.eve.put(ALIAS, json=put, headers=tag(2))
    assert moved.status_code == 200, moved.text
    step = moved.json()["history"][0]
    assert (step["break_glass"], step["alias_request_id"], step["approved_by_id"]) == (
        True,
        None,
        None,
    )
    assert (step["author"], step["protected"]) == ("Eve", True)
    assert "BREAK-GLASS" in us.summary()

    # So is a recalibration, and its restoration.
    calibration = f"/v1/models/{us.second}/calibration"
    refused(us.eve.put(calibration, json={"dataset_id": later}), 422, "reason_required")
    job = us.eve.put(calibration, json={"dataset_id": later, "reason": "x"})
    assert job.status_code == 202, job.text
    us.service.work()
    assert us.ann.get(calibration).json()["break_glass"] is True
    undo = us.eve.post(f"{calibration}/restore", json={"version": 1, "reason": "x"}, headers=tag(2))
    assert undo.json()["break_glass"] is True, undo.text

    # A deletion, and its restoration; the protection goes on.
    gone = us.eve.delete(ALIAS, params={"reason": "x"}, headers=tag(3))
    assert gone.status_code == 204, gone.text
    refused(
        us.eve.post(f"{ALIAS}/restore", json={"revision": 3}, headers=tag(4)),
        422,
        "reason_required",
    )
    (deleted,) = us.ann.get("/v1/models/churn/deleted-aliases").json()["data"]
    assert deleted["break_glass_until"] == found["until"]
    back = us.eve.post(f"{ALIAS}/restore", json={"revision": 3, "reason": "x"}, headers=tag(4))
    assert back.json()["history"][0]["break_glass"] is True, back.text

    # The protection itself cannot be lifted: power for some hours must not become power for good.
    lift = {"protected": False, "reason": "x"}
    revision = back.json()["revision"]
    lifted = us.eve.put(f"{ALIAS}/protection", json=lift, headers=tag(revision))
    refused(lifted, 409, "approval_required")

    # Ended early. It stays in the metric for an hour: it may have been shorter than the interval of scrapes.
    assert us.eve.delete(f"{ALIAS}/break-glass").status_code == 204
    assert metric(us) == 1
    refused(us.eve.delete(f"{ALIAS}/break-glass"), 404, "no_break_glass")
    assert "ended" in us.summary()
    assert us.alias()["break_glass_until"] is None
    refused(us.eve.put(ALIAS, json=put, headers=tag(5)), 409, "approval_required")
    again = {"version": 2, "reason": "x"}
    undo = us.eve.post(f"{calibration}/restore", json=again, headers=tag(3))
    refused(undo, 409, "approval_required")


def test_it_expires(service: Service) -> None:
    us = team(service)
    later = us.service.upload(us.ann, table(600, seed=4), name="later")
    assert us.break_glass().status_code == 201
    calibration = f"/v1/models/{us.first}/calibration"
    job = us.eve.put(calibration, json={"dataset_id": later, "reason": "x"})
    assert job.status_code == 202
    us.lapse(BreakGlass)
    assert us.alias()["break_glass_until"] is None
    put = {"model_id": us.second, "memo": {"reason": "x"}}
    refused(us.eve.put(ALIAS, json=put, headers=tag(2)), 409, "approval_required")
    refused(us.eve.delete(f"{ALIAS}/break-glass"), 404, "no_break_glass")
    # What was permitted before is done.
    us.service.work()
    assert us.ann.get(calibration).json()["break_glass"] is True
    assert us.service.context.db.writing(prune_break_glass, 0.0, 10) == 1
    # Another one replaces the first.
    assert us.break_glass(seconds=60).status_code == 201
    until = us.break_glass(seconds=14_400, reason="Longer").json()["until"]
    assert us.alias()["break_glass_until"] == until


def test_wrong_ones_are_refused(service: Service) -> None:
    us = team(service)
    for body in (
        {"reason": ""},
        {"reason": "x" * 2001},
        {"seconds": 59},
        {"seconds": 14_401},
        {"until": 5},
    ):
        refused(us.break_glass(**body), 422, "invalid")
    refused(us.break_glass(by=us.ann), 403, "forbidden", "admin")
    refused(us.break_glass(by=us.bob), 403, "forbidden", "admin")
    refused(us.ann.delete(f"{ALIAS}/break-glass"), 403, "forbidden", "admin")
    stranger = service.client(service.key(STRANGER))
    refused(us.break_glass(by=stranger), 404, "not_found")
    refused(stranger.delete(f"{ALIAS}/break-glass"), 404, "not_found")
    start = partial(us.eve.post, json={"reason": "x"})
    for path in ("/v1/models/churn/aliases/none", "/v1/models/none/aliases/live"):
        refused(start(f"{path}/break-glass"), 404, "not_found")
    assert start("/v1/models/A!/aliases/live/break-glass").status_code == 422
    assert us.ann.put("/v1/models/churn/aliases/free", json={"model_id": us.first}).is_success
    refused(start("/v1/models/churn/aliases/free/break-glass"), 409, "not_protected")
    # It is for one alias only: the model of two is still protected.
    us.eve.put("/v1/models/churn/aliases/free/protection", json={"protected": True}, headers=tag(1))
    assert us.break_glass().status_code == 201
    undo = us.eve.put(
        f"/v1/models/{us.first}/calibration",
        json={
            "dataset_id": service.upload(us.ann, table(600, seed=4), name="later"),
            "reason": "x",
        },
    )
    refused(undo, 409, "approval_required", "churn@free")
    assert us.eve.delete("/v1/models/churn/aliases/free").status_code == 428
