"""The summaries of audit entries: what changed, from what to what, where the route and the path do not say it."""

from __future__ import annotations

from typing import Any

import httpx

from app.platform.audit import MAX_SUMMARY
from tests.app.live_service import OWNER, Service
from tests.sentences import Sentences


def summary(client: httpx.Client) -> str:
    """The summary of the newest change."""
    found: str = client.get("/v1/audit", params={"outcome": "done"}).json()["data"][0]["summary"]
    return found


def test_changes_are_stated_from_one_value_to_the_other(
    service: Service, client: httpx.Client, sentences: Sentences
) -> None:
    def done(method: str, path: str, **given: Any) -> str:
        answer = client.request(method, path, **given)
        assert answer.is_success, answer.text
        return summary(client)

    key = client.post("/v1/keys", json={"name": "ci", "scopes": ["train", "read"]}).json()
    sentences(summary(client))
    said = done("POST", f"/v1/keys/{key['id']}/rotate", json={"grace_seconds": 60})
    assert key["prefix"] in said
    assert "60 s" in said
    assert "→" in said
    said = done("DELETE", f"/v1/keys/{key['id']}")
    before, _, _ = said.partition(" → ")
    assert "read, train" in before

    limits = f"/v1/quotas/{OWNER}"
    assert "models the setting → 10" in done("PUT", limits, json={"models": 10})
    said = done("PUT", limits, json={"models": 20, "keys": 50})
    assert "models 10 → 20" in said
    assert "keys the setting → 50" in said
    assert "models 20 → the setting" in done("PUT", limits, json={"keys": 50})

    dataset_id = service.upload(client)
    assert all(part in summary(client) for part in ("people", "label left", "positive yes"))
    said = done("POST", f"/v1/datasets/{dataset_id}/read", json={"drop": "age"})
    assert "drop none → age" in said
    service.work()
    model_id = service.train(client, dataset_id)["output"]["id"]
    assert f"churn, dataset {dataset_id}" in summary(client)

    alias = "/v1/models/churn/aliases/live"
    done("PUT", alias, json={"model_id": model_id})
    path = f"{alias}/protection"
    memo = {"protected": True, "reason": "In production"}
    headers = {"If-Match": '"1"'}
    assert "not protected → protected" in done("PUT", path, json=memo, headers=headers)
    done("POST", f"{alias}/break-glass", json={"reason": "An emergency"})

    said = done("PUT", f"{alias}/feedback", json={"days": 100})
    assert "days none → 100" in said
    revision = client.get(f"{alias}/feedback").headers["etag"]
    said = done("PUT", f"{alias}/feedback", json={"days": 200}, headers={"If-Match": revision})
    assert said.endswith("days 100 → 200")
    revision = client.get(f"{alias}/feedback").headers["etag"]
    assert "→" in done("DELETE", f"{alias}/feedback", headers={"If-Match": revision})

    name = client.get(f"/v1/models/{model_id}").json()["features"][0]["name"]
    codes = {"entries": [{"code": "R1", "text": "Too low", "columns": [name]}]}
    said = done("PUT", "/v1/models/churn/reason-codes", json=codes)
    assert "R1 none → " in said
    assert "Too low" in said
    codes["entries"][0]["text"] = "Far too low " * 40
    headers = {"If-Match": '"1"'}
    said = done("PUT", "/v1/models/churn/reason-codes", json=codes, headers=headers)
    assert len(said) <= MAX_SUMMARY

    done("DELETE", alias, params={"reason": "Retired"}, headers={"If-Match": '"2"'})
    assert "churn:1 → trash" in done("DELETE", f"/v1/models/{model_id}")
    said = done("POST", f"/v1/trash/{model_id}/restore")
    sentences(said)
    done("DELETE", f"/v1/models/{model_id}")
    said = done("DELETE", f"/v1/trash/{model_id}")
    sentences(said)
    job = client.post(
        "/v1/jobs", json={"dataset_id": dataset_id, "algorithm": {"name": "rankboost"}}
    )
    assert "queued → cancelled" in done("POST", f"/v1/jobs/{job.json()['id']}/cancel")
    assert "people:1 → trash" in done("DELETE", f"/v1/datasets/{dataset_id}")


def test_a_summary_has_no_secret(service: Service, client: httpx.Client) -> None:
    key = client.post("/v1/keys", json={"name": "ci", "scopes": ["read"]}).json()
    rotated = client.post(f"/v1/keys/{key['id']}/rotate", json={}).json()
    text = client.get("/v1/audit").text
    assert key["secret"] not in text
    assert rotated["secret"] not in text
