"""Changes of protected aliases are requested by one person and approved by another."""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select, update

from app.operations.repository import prune_alias_requests
from app.platform.callers import Actor, acting_as
from app.platform.errors import Forbidden
from app.platform.ids import new_id
from app.platform.roles import Identity, Rule, caller_of
from app.platform.tables import AliasRequest, AliasRequestKind, Model
from app.reports import alias_requests
from app.reports.alias_requests import Proposal
from tests.app.live_service import OWNER, STRANGER, Service, table
from tests.app.models.test_api_groups import people
from tests.app.queue_steps import at_once
from tests.app.refusals import refused
from tests.app.reports.alias_request_steps import ALIAS, REQUESTS, tag, team
from tests.long_form import LONG_FORM, long_form, rest


def test_an_approved_change_is_made_with_both_names(service: Service) -> None:
    us = team(service, guarantee={"flagged": 0.2})
    made = us.ask(memo={"review": 20, "rows": 100}, guarantee={"flagged": 0.1})
    assert made.status_code == 201, made.text
    asked = made.json()
    assert (asked["state"], asked["kind"], asked["alias_revision"]) == ("open", "set", 2)
    assert (asked["model_id"], asked["model_version"], asked["calibration"]) == (us.second, 2, 1)
    assert (
        asked["artifact_sha256"]
        == us.ann.get(f"/v1/models/{us.second}").json()["artifact"]["sha256"]
    )
    assert (asked["author"], asked["decided_by"], asked["guarantee"]["flagged"]) == (
        "Ann",
        None,
        0.1,
    )
    assert asked["before"].startswith("churn v1 (threshold")
    assert asked["after"].startswith("churn v2 (threshold")
    assert us.alias()["model_id"] == us.first
    summary = us.summary()
    assert "Requested by Ann" in summary
    assert asked["id"] in summary

    done = us.decide(asked["id"])
    assert done.status_code == 200, done.text
    found = done.json()
    assert (found["state"], found["decided_by"], found["applied_revision"]) == (
        "approved",
        "Bob",
        3,
    )
    now = us.alias()
    assert (now["model_id"], now["revision"], now["protected"]) == (us.second, 3, True)
    assert now["guarantee"]["flagged"] == 0.1
    memo = now["memo"]
    assert (memo["reason"], memo["approved_by"], memo["rows"]) == ("Better", "Bob", 100)
    step = now["history"][0]
    assert (step["author"], step["alias_request_id"], step["break_glass"]) == (
        "Ann",
        asked["id"],
        False,
    )
    assert step["principal_id"] == found["principal_id"] != step["approved_by_id"]
    assert step["approved_by_id"] == found["decided_by_id"]
    assert found["decision_reason"] == "Looks right"
    # The approval is added to the decision; the files that were approved are the same.
    assert step["evidence"] == found["evidence"]
    requested, approved = (
        {each["name"]: each["sha256"] for each in of["evidence"]} for of in (asked, found)
    )
    changed = {name for name, digest in approved.items() if digest != requested[name]}
    assert changed == {"decision.html", "decision.json"}
    assert requested.keys() == approved.keys() > changed
    summary = us.summary()
    assert all(part in summary for part in ("Better", "Ann", "Bob", "Looks right"))
    report = us.ann.get(f"/v1/models/{us.second}/report", headers={"Accept": "text/html"})
    assert "Ann" in report.text
    assert "Approved by Bob" in report.text

    address = f"{REQUESTS}/{asked['id']}/evidence"
    with zipfile.ZipFile(io.BytesIO(us.bob.get(address).content)) as packed:
        for each in found["evidence"]:
            assert hashlib.sha256(packed.read(each["name"])).hexdigest() == each["sha256"]
    page = us.bob.get(address, params={"file": "report.html"})
    assert "sandbox" in page.headers["Content-Security-Policy"]
    assert us.bob.get(address, params={"file": "../x"}).status_code == 404
    assert us.bob.get(f"{ALIAS}/revisions/3/evidence").content == us.bob.get(address).content


def test_the_evidence_is_of_the_cutoff_that_was_approved(service: Service) -> None:
    ann, bob, eve = (
        service.client(service.key(scopes=scopes, name=name))
        for name, scopes in (
            ("Ann", ["read", "train"]),
            ("Bob", ["read", "approve"]),
            ("Eve", ["read", "train", "admin"]),
        )
    )
    dataset = service.upload(ann, people(800, 0)[0], protected="sex")
    job = service.train(ann, dataset, protected_features=["sex"])
    model = ann.get(f"/v1/models/{job['output']['id']}").json()
    name, model_id = model["name"], model["id"]
    alias = f"/v1/models/{name}/aliases/live"

    def evidence(address: str, file: str) -> Any:
        return ann.get(f"{address}/evidence", params={"file": file})

    put = {"model_id": model_id, "guarantee": {"flagged": 0.5}}
    assert ann.put(alias, json=put).status_code == 201
    # The evidence of a direct change is of the cutoff that it sets.
    first = evidence(f"{alias}/revisions/1", "report.json").json()
    cutoff = ann.get(alias).json()["cutoff"]
    assert first["decisions"][0]["cutoff"] == cutoff
    assert "No cutoff has been saved" not in evidence(f"{alias}/revisions/1", "report.html").text
    eve.put(f"{alias}/protection", json={"protected": True}, headers=tag(1))
    body = {"kind": "set", "name": name, "alias": "live", "reason": "Fewer", "model_id": model_id}
    asked = ann.post(REQUESTS, json=body | {"guarantee": {"flagged": 0.05}}).json()
    found = evidence(f"{REQUESTS}/{asked['id']}", "decision.json").json()
    assert (found["reason"], found["requested_by"], found["approval"]) == ("Fewer", "Ann", None)
    bob.post(f"{REQUESTS}/{asked['id']}/approve", json={"reason": "Checked the groups"})
    served = ann.get(alias).json()["cutoff"]
    assert served["threshold"] > cutoff["threshold"]

    address = f"{alias}/revisions/3"
    decision = evidence(address, "decision.json").json()
    assert decision["approval"]["approved_by"] == "Bob"
    assert decision["approval"]["reason"] == "Checked the groups"
    assert decision["approval"]["alias_request_id"] == asked["id"]
    for side, threshold in (("before", cutoff["threshold"]), ("after", served["threshold"])):
        now = ann.get(f"/v1/models/{model_id}/groups", params={"threshold": threshold}).json()
        assert decision[side]["serves"]["cutoff"]["threshold"] == threshold
        assert decision[side]["groups"]["columns"] == now["columns"]
    page = evidence(address, "decision.html").text
    for words in ("Ann", "Bob", "Fewer", "Checked the groups"):
        assert words in page
    # The rates of two versions are from their own validation rows, and the page says so.
    assert "may be different rows" not in page
    newer = service.train(ann, dataset, name=name)["output"]["id"]
    for each, headers in ((model_id, {}), (newer, tag(1))):
        put = {"model_id": each, "guarantee": {"flagged": 0.5}}
        answer = ann.put(f"/v1/models/{name}/aliases/other", json=put, headers=headers)
        assert answer.is_success, answer.text
    moved = evidence(f"/v1/models/{name}/aliases/other/revisions/2", "decision.html").text
    assert "may be different rows" in moved
    # Its report has the check at this cutoff, as the model has it now.
    report = evidence(address, "report.json").json()
    assert report["decisions"][0]["cutoff"] == served
    checks = ann.get(f"/v1/models/{model_id}/checks").json()["findings"]
    assert report["findings"] == checks


def test_no_direct_change_of_a_protected_alias(service: Service) -> None:
    us = team(service)
    later = us.service.upload(us.ann, table(600, seed=4), name="later")
    why = {"reason": "x"}
    calibration = f"/v1/models/{us.first}/calibration"
    changes: list[partial[Any]] = [
        partial(us.eve.put, ALIAS, json={"model_id": us.second, "memo": why}, headers=tag(2)),
        partial(us.eve.post, f"{ALIAS}/restore", json={"revision": 1, **why}, headers=tag(2)),
        partial(us.eve.delete, ALIAS, params=why, headers=tag(2)),
        partial(
            us.eve.put, f"{ALIAS}/protection", json={"protected": False, **why}, headers=tag(2)
        ),
        partial(us.eve.put, calibration, json={"dataset_id": later, **why}),
        partial(us.eve.post, f"{calibration}/validate", json={"dataset_id": later, **why}),
    ]
    for change in changes:
        problem = refused(change(), 409, "approval_required", "churn@live", "/v1/alias-requests")
        assert problem["errors"][0]["alias"] == "churn@live"
    assert us.alias()["revision"] == 2
    assert us.ann.get(calibration).json()["version"] == 1
    seen = partial(us.ann.post, f"{ALIAS}/preview")
    assert seen(json={"model_id": us.second}).json()["approval_required"] is True
    assert seen(json={"revision": 1}).json()["approval_required"] is True
    # It stays protected when it is deleted, created and restored.
    assert us.decide(us.asked("delete")).json()["applied_revision"] == 3
    assert us.alias()["status"] == 404
    put = us.eve.put(ALIAS, json={"model_id": us.second, "memo": why})
    refused(put, 409, "approval_required")
    for revision in (1, 2):
        undo = us.eve.post(f"{ALIAS}/restore", json={"revision": revision}, headers=tag(3))
        refused(undo, 409, "approval_required")
    refused(us.ask("delete"), 404, "not_found")
    assert us.decide(us.asked("restore", revision=1)).status_code == 200
    now = us.alias()
    assert (now["revision"], now["protected"], now["model_id"]) == (4, True, us.first)
    assert now["memo"]["approved_by"] == "Bob"
    # Deleted, and created again by a request.
    us.decide(us.asked("delete"))
    assert us.decide(us.asked()).json()["applied_revision"] == 6
    assert us.alias()["protected"] is True
    # Its protection is lifted.
    lifted = us.decide(us.asked("unprotect", reason="Retired"))
    assert lifted.json()["state"] == "approved", lifted.text
    assert us.alias()["protected"] is False
    assert us.alias()["history"][0]["memo"]["approved_by"] == "Bob"
    refused(us.ask(), 409, "not_protected", "churn@live")
    assert us.ann.put(ALIAS, json={"model_id": us.first}, headers=tag(7)).status_code == 200


def test_a_recalibration_applies_only_while_it_is_bound(service: Service) -> None:
    us = team(service)
    later = service.upload(us.ann, table(600, seed=4), name="later")
    done = us.decide(us.asked("recalibrate", dataset_id=later)).json()
    # The alias moves while the job waits.
    assert us.decide(us.asked()).status_code == 200
    assert us.decide(us.asked("restore", revision=1)).status_code == 200
    service.work()
    job = us.ann.get(f"/v1/jobs/{done['job_id']}").json()
    assert (job["state"], job["error"]["code"]) == ("failed", "approval_required")
    assert us.ann.get(f"/v1/models/{us.first}/calibration").json()["version"] == 1
    # To retry it does not help.
    refused(us.ann.post(f"/v1/jobs/{done['job_id']}/retry"), 409, "approval_required")
    # A direct one of a model that no protected alias serves; meanwhile one does.
    direct = us.ann.put(f"/v1/models/{us.second}/calibration", json={"dataset_id": later})
    assert direct.status_code == 202
    assert us.decide(us.asked()).status_code == 200
    service.work()
    job = us.ann.get(f"/v1/jobs/{direct.json()['id']}").json()
    assert (job["state"], job["error"]["code"]) == ("failed", "approval_required")
    assert us.ann.get(f"/v1/models/{us.second}/calibration").json()["version"] == 1


def test_nobody_approves_what_they_requested(service: Service) -> None:
    us = team(service)
    asked = us.asked(by=us.eve)
    refused(us.decide(asked, by=us.eve), 403, "self_approval", "Eve")
    # Another key that she created is still Eve, and so is one that this key created, or its successor.
    body = {"name": "Bob", "scopes": ["read", "train", "approve", "admin"]}
    for holder, rule in ((None, "holder_id"), ("prn_unknown", "prn_unknown"), ("", "holder_id")):
        refused(us.eve.post("/v1/keys", json={**body, "holder_id": holder}), 422, "invalid", rule)
    body["holder_id"] = us.eve.get("/v1/me").json()["principal_id"]
    made = us.eve.post("/v1/keys", json=body)
    assert made.status_code == 201, made.text
    second = us.service.client(made.json()["secret"])
    refused(us.decide(asked, by=second), 403, "self_approval")
    third = us.service.client(second.post("/v1/keys", json=body).json()["secret"])
    refused(us.decide(asked, by=third), 403, "self_approval")
    rotated = us.eve.post(f"/v1/keys/{made.json()['id']}/rotate", json={})
    assert rotated.is_success, rotated.text
    fourth = us.service.client(rotated.json()["secret"])
    refused(us.decide(asked, by=fourth), 403, "self_approval")
    # What such a key requested is not for Eve to approve either.
    refused(us.decide(us.asked(by=third), by=us.eve), 403, "self_approval")
    # A key that another person created for Eve is Eve, too.
    admin = service.client(service.key(scopes=["admin"], name="Dan"))
    fifth = us.service.client(admin.post("/v1/keys", json=body).json()["secret"])
    refused(us.decide(asked, by=fifth), 403, "self_approval")
    refused(us.decide(us.asked(by=fifth), by=us.eve), 403, "self_approval")
    assert us.read(asked)["state"] == "open"
    # Who may not approve at all.
    refused(us.decide(asked, by=us.ann), 403, "forbidden", "approve")
    refused(us.decide(asked, "reject", by=us.ann), 403, "forbidden", "approve")
    refused(us.ask(by=us.bob), 403, "forbidden", "train")
    assert us.decide(asked).status_code == 200


def test_a_request_is_rejected_or_withdrawn_once(service: Service) -> None:
    us = team(service)
    rejected, withdrawn, approved = us.asked(), us.asked(), us.asked()
    done = us.decide(rejected, "reject").json()
    assert (done["state"], done["decided_by"], done["decision_reason"]) == (
        "rejected",
        "Bob",
        "Not yet",
    )
    other = us.service.client(us.service.key(scopes=["read", "train"], name="Dan"))
    refused(us.decide(withdrawn, "withdraw", by=other), 403, "not_requester", "Ann")
    refused(us.decide(withdrawn, "withdraw"), 403, "forbidden", "train")
    assert us.decide(withdrawn, "withdraw", by=us.ann).json()["state"] == "withdrawn"
    assert us.decide(approved).json()["state"] == "approved"
    for request_id, state in (
        (rejected, "rejected"),
        (withdrawn, "withdrawn"),
        (approved, "approved"),
    ):
        for how, by in (("approve", us.bob), ("reject", us.bob), ("withdraw", us.ann)):
            refused(us.decide(request_id, how, by=by), 409, "alias_request_closed", state)
        # A repeated Idempotency-Key changes nothing: a request is decided once.
        address = f"{REQUESTS}/{request_id}/approve"
        again = us.bob.post(address, json={}, headers={"Idempotency-Key": "k"})
        refused(again, 409, "alias_request_closed")
    assert us.alias()["revision"] == 3
    # An admin withdraws what others requested.
    assert us.decide(us.asked(model_id=us.first), "withdraw", by=us.eve).status_code == 200
    found = {
        state: [each["id"] for each in us.bob.get(REQUESTS, params={"state": state}).json()["data"]]
        for state in ("open", "approved", "rejected", "withdrawn", "expired", "void")
    }
    assert (found["approved"], found["rejected"]) == ([approved], [rejected])
    assert found["withdrawn"][1:] == [withdrawn]
    assert found["open"] == found["expired"] == found["void"] == []


def test_a_change_voids_open_requests(service: Service) -> None:
    us = team(service)
    later = us.service.upload(us.ann, table(600, seed=4), name="later")
    first, other = us.asked(), us.asked("delete")
    assert us.decide(first).status_code == 200
    found = us.read(other)
    assert (found["state"], found["decided_by"]) == ("void", None)
    assert "revision 3" in found["decision_reason"]
    refused(us.decide(other), 409, "alias_request_void", "revision 3")
    refused(us.decide(other, "withdraw", by=us.ann), 409, "alias_request_void")
    # Of a model that no alias serves, the calibration can be changed directly: this voids, too.
    back = us.asked(model_id=us.first)
    direct = us.ann.put(f"/v1/models/{us.first}/calibration", json={"dataset_id": later})
    assert direct.status_code == 202, direct.text
    us.service.work()
    assert us.read(back)["state"] == "void"
    refused(us.decide(back), 409, "alias_request_void", "calibration")
    # Its model is deleted.
    back = us.asked(model_id=us.first)
    assert us.ann.delete(f"/v1/models/{us.first}").status_code == 204
    assert us.read(back)["state"] == "void"
    refused(us.decide(back), 409, "alias_request_void", "deleted")
    refused(us.ask(model_id=us.first), 404, "not_found")
    assert us.bob.get(f"{REQUESTS}/{back}/evidence").status_code == 200
    assert us.ann.delete(f"/v1/trash/{us.first}").status_code == 204
    refused(us.bob.get(f"{REQUESTS}/{back}/evidence"), 404, "no_evidence")
    assert us.read(back)["evidence_available"] is False


def test_an_approval_is_for_one_artifact(service: Service) -> None:
    us = team(service)
    db = us.service.context.db
    # The file differs.
    asked = us.asked()
    with db.read() as session:
        key = session.scalars(select(Model.artifact_key).where(Model.id == us.second)).one()
    path = us.service.blobs.path(key)
    content = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused(us.decide(asked), 503, "blob_damaged")
    path.write_bytes(content)
    assert us.read(asked)["state"] == "open"
    # The row differs: its hash, its calibration.
    for column in ({"artifact_sha256": "0" * 64}, {"calibration_version": None}):
        with db.write() as session:
            before = session.execute(
                select(Model.artifact_sha256, Model.calibration_version).where(
                    Model.id == us.second
                )
            ).one()
            session.execute(update(Model).where(Model.id == us.second).values(**column))
        refused(us.decide(asked), 409, "alias_request_void")
        assert us.read(asked)["state"] == "void"
        with db.write() as session:
            session.execute(update(Model).where(Model.id == us.second).values(**before._asdict()))
        refused(us.decide(asked), 409, "alias_request_void")
        asked = us.asked()
    assert us.alias()["revision"] == 2
    assert us.decide(asked).status_code == 200


def test_a_request_expires(service_on_both: Service) -> None:
    us = team(service_on_both)
    asked = us.asked()
    us.lapse(AliasRequest)
    assert us.read(asked)["state"] == "expired"
    for how, by in (("approve", us.bob), ("reject", us.bob), ("withdraw", us.ann)):
        refused(us.decide(asked, how, by=by), 409, "alias_request_expired")
    listed = us.ann.get(REQUESTS, params={"state": "expired"}).json()["data"]
    assert [each["id"] for each in listed] == [asked]
    assert us.ann.get(REQUESTS, params={"state": "open"}).json()["data"] == []
    assert us.decide(us.asked()).status_code == 200
    assert us.read(asked)["state"] == "expired"


@pytest.mark.parametrize("rival", ["approve", "delete", *rest("withdraw", "reject")])
def test_one_of_two_wins(service_on_both: Service, rival: str) -> None:
    us = team(service_on_both)
    dan = us.service.client(us.service.key(scopes=["read", "approve"], name="Dan"))
    for _ in range(3 if LONG_FORM else 1):
        revision = us.alias()["revision"]
        target = us.second if us.alias()["model_id"] == us.first else us.first
        asked = us.asked(model_id=target)
        other = asked
        by = {"approve": dan, "withdraw": us.ann, "reject": dan, "delete": dan}[rival]
        how = rival
        if rival == "delete":  # another request for the same revision
            other, how = us.asked("delete"), "approve"
        ours, theirs = at_once(partial(us.decide, asked), partial(us.decide, other, how, by=by))
        assert sorted([ours.status_code, theirs.status_code]) == [200, 409], ours.text + theirs.text
        found = us.read(asked)
        won = ours.status_code == 200 or rival == "approve"
        assert (found["state"] == "approved") is won
        history = us.ann.get(f"{ALIAS}/revisions").json()["data"]
        if rival == "delete":
            assert history[0]["revision"] == revision + 1
            if not won:
                us.decide(us.asked("restore", revision=revision))
        else:
            assert us.alias()["revision"] == revision + won
            assert us.alias()["model_id"] == (
                target if won else us.alias()["history"][0]["model_id"]
            )


@long_form
def test_an_approval_and_the_deletion_of_the_model_at_once(service_on_both: Service) -> None:
    us = team(service_on_both)
    asked = us.asked()
    approved, deleted = at_once(
        partial(us.decide, asked), partial(us.ann.delete, f"/v1/models/{us.second}")
    )
    assert (approved.status_code, deleted.status_code) in {(200, 409), (409, 204)}, approved.text
    assert us.read(asked)["state"] == ("approved" if approved.status_code == 200 else "void")


def test_open_requests_are_bounded(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    us = team(service)
    monkeypatch.setattr("app.reports.alias_requests.MAX_OPEN_OF_ALIAS", 3)
    first, *_ = (us.asked() for _ in range(3))
    problem = us.ask()
    refused(problem, 409, "too_many_alias_requests", "3")
    us.decide(first, "withdraw", by=us.ann)
    at_the_same_time = at_once(*(us.ask for _ in range(3)))
    assert sorted(each.status_code for each in at_the_same_time) == [201, 409, 409]
    monkeypatch.setattr("app.reports.alias_requests.MAX_OPEN_OF_ALIAS", 10)
    monkeypatch.setattr("app.reports.alias_requests.MAX_OPEN", 3)
    refused(us.ask(), 409, "too_many_alias_requests", "3")
    us.lapse(AliasRequest)
    assert us.ask().status_code == 201
    # Those that came to nothing are kept up to a number.
    monkeypatch.setattr("app.reports.alias_requests.MAX_CLOSED", 2)
    assert us.ask().status_code == 201
    states = [each["state"] for each in us.ann.get(REQUESTS).json()["data"]]
    assert states == ["open", "open", "expired", "expired"]


def test_wrong_requests_are_refused(service: Service) -> None:
    us = team(service)
    good = {"kind": "set", "name": "churn", "alias": "live", "reason": "x", "model_id": us.second}
    pages = us.ann.get(REQUESTS).json()["data"]
    for wrong in (
        {"kind": "move"},
        {"name": "A!"},
        {"alias": "x" * 64},
        {"reason": " "},
        {"reason": "x" * 2001},
        {"model_id": None},
        {"revision": 1},
        {"dataset_id": "ds_1"},
        {"guarantee": {"fpr": 2}},
        {"guarantee": {"fpr": 0.1, "tpr": 0.1}},
        {"guarantee": {"fpr": 1e-9, "confidence": 0.999999}},
        {"memo": {"approved_by": "Ann"}},
        {"approved_by": "Ann"},
        {"kind": "delete"},
        {"kind": "restore", "model_id": None},
        {"kind": "restore", "model_id": None, "revision": 0},
        {"kind": "recalibrate", "model_id": None},
        {"kind": "restore_calibration", "model_id": None},
    ):
        answer = us.ann.post(REQUESTS, json=good | wrong)
        assert answer.status_code == 422, (wrong, answer.text)
    bare = {"kind": "restore", "name": "churn", "alias": "live", "reason": "x"}
    for absent in (
        good | {"name": "none"},
        good | {"alias": "none"},
        good | {"model_id": "churn:9"},
        bare | {"revision": 9},
        bare | {"kind": "recalibrate", "dataset_id": "none"},
    ):
        refused(us.ann.post(REQUESTS, json=absent), 404, "not_found")
    other = service.train(us.ann, service.upload(us.ann), name="other")["output"]["id"]
    refused(us.ann.post(REQUESTS, json=good | {"model_id": other}), 422, "invalid", "other")
    seen = us.ann.get("/v1/datasets").json()["data"][-1]["id"]
    recalibration = bare | {"kind": "recalibrate", "dataset_id": seen}
    refused(us.ann.post(REQUESTS, json=recalibration), 409, "rows_seen")
    never = bare | {"kind": "restore_calibration", "calibration_version": 9}
    refused(us.ann.post(REQUESTS, json=never), 404, "no_calibration")
    assert us.ann.get(REQUESTS).json()["data"] == pages
    for params in (
        {"state": "x"},
        {"name": "A!"},
        {"alias": ""},
        {"after": "x"},
        {"limit": 0},
        {"x": 1},
    ):
        assert us.ann.get(REQUESTS, params=params).status_code in (400, 422), params
    send = partial(us.ann.post, REQUESTS, headers={"Idempotency-Key": "one"})
    first, again = send(json=good), send(json=good)
    assert (first.status_code, again.json()) == (201, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    refused(send(json=good | {"reason": "y"}), 422, "idempotency_key_reused")
    asked = first.json()["id"]
    for body in ({}, {"reason": ""}, {"reason": "x" * 2001}, {"reason": "x", "by": "y"}):
        answer = us.bob.post(f"{REQUESTS}/{asked}/reject", json=body)
        refused(answer, 422, "invalid")
    missing = us.bob.get(f"{REQUESTS}/arq_{'0' * 32}")
    assert missing.status_code == 404
    stranger = service.client(service.key(STRANGER))
    for method, path, body in (
        ("GET", f"{REQUESTS}/{asked}", None),
        ("GET", f"{REQUESTS}/{asked}/evidence", None),
        ("POST", f"{REQUESTS}/{asked}/approve", {}),
        ("POST", f"{REQUESTS}/{asked}/reject", {"reason": "x"}),
        ("POST", f"{REQUESTS}/{asked}/withdraw", None),
        ("POST", REQUESTS, good),
    ):
        assert stranger.request(method, path, json=body).status_code == 404, path
    assert stranger.get(REQUESTS).json()["data"] == []
    assert us.read(asked)["state"] == "open"


def test_model_names_restrict_requests_and_approvals(service: Service) -> None:
    us = team(service)
    asked = us.asked()
    db, settings = service.context.db, service.settings
    rules = [
        Rule("https://idp.example", "risk", OWNER, role, models=("fraud-*",))
        for role in ("trainer", "approver")
    ]
    member = Identity("https://idp.example", "u1", "person", "Pia", frozenset({"risk"}), None)
    pia = caller_of(member, "prn_pia", rules)
    proposal = Proposal(AliasRequestKind.DELETE, "churn", "live", "x")
    approve = partial(db.writing, alias_requests.approve, settings, pia, asked, None, None)
    for scope, change in (
        ("approve", approve),
        ("approve", lambda: db.writing(alias_requests.reject, pia, asked, "x")),
        ("train", lambda: db.writing(alias_requests.withdraw, pia, asked)),
        ("train", lambda: db.reading(alias_requests.bind, OWNER, proposal, "Pia")),
    ):
        actor = Actor(
            OWNER, "prn_pia", None, "POST", partial(new_id, "aud"), scope=scope, caller=pia
        )
        with acting_as(actor), pytest.raises(Forbidden) as error:
            change()
        assert error.value.code == "model_not_allowed"
    assert us.read(asked)["state"] == "open"


def test_old_requests_are_removed_but_those_of_the_history(service_on_both: Service) -> None:
    us = team(service_on_both)
    db = us.service.context.db
    one, rejected, two = us.asked(), us.asked(), us.asked(model_id=us.first)
    us.decide(rejected, "reject")
    us.lapse(AliasRequest)
    fresh = us.asked()
    assert us.decide(fresh).status_code == 200
    assert us.read(one)["state"] == us.read(two)["state"] == "expired"
    assert db.writing(prune_alias_requests, 60.0, 10) == 0
    assert db.writing(prune_alias_requests, -1.0, 10) == 3
    assert [each["id"] for each in us.ann.get(REQUESTS).json()["data"]] == [fresh]
    # That of the history goes with the alias.
    assert us.decide(us.asked("delete")).status_code == 200
    assert db.writing(prune_alias_requests, -1.0, 10) == 2
