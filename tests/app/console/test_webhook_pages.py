"""The pages of webhooks: created with a secret shown once, changed, tested, replayed, disabled, deleted."""

from __future__ import annotations

from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service

LIST = "/console/webhooks"
URL = "https://example.com/hooks"


def test_a_webhook_is_created_and_its_secret_is_shown_once(service: Service) -> None:
    ours = PlainBrowser(service)
    made = ours.post(LIST, url=URL, events="job.failed", description="<b>pager</b>")
    assert (made.status_code, made.headers["Location"]) == (303, f"{LIST}/made")
    assert "whsec_" in ours.read(f"{LIST}/made")
    assert "whsec_" not in ours.read(f"{LIST}/made")
    text = ours.read(LIST)
    assert URL in text
    assert "<b>pager" not in text
    (found,) = service.client(service.key()).get("/v1/webhooks").json()["data"]
    assert found["events"] == ["job.failed"]


def test_a_wrong_form_is_shown_again(service: Service) -> None:
    ours = PlainBrowser(service)
    refused = ours.post(LIST, url="http://example.com/?a=<i>", description="kept")
    assert refused.status_code == 422
    assert "kept" in refused.text
    assert "<i>" not in refused.text
    client = service.client(service.key())
    assert client.get("/v1/webhooks").json()["data"] == []
    hook = client.post("/v1/webhooks", json={"url": URL}).json()["id"]
    assert ours.post(f"{LIST}/{hook}", url="", description="kept").status_code == 422
    assert ours.post(f"{LIST}/{hook}", url=URL, events="job.started").status_code == 422
    assert ours.post(f"{LIST}/wh_1/ping").status_code == 404
    assert client.get(f"/v1/webhooks/{hook}").json()["description"] == ""


def test_a_webhook_is_changed_tested_replayed_and_deleted(service: Service) -> None:
    ours, client = PlainBrowser(service), service.client(service.key())
    hook = client.post("/v1/webhooks", json={"url": URL, "events": ["job.failed"]}).json()["id"]
    page = f"{LIST}/{hook}"
    assert ours.post(page, url=URL + "/new", description="x").status_code == 303
    changed = client.get(f"/v1/webhooks/{hook}").json()
    assert (changed["url"], changed["events"]) == (URL + "/new", None)
    assert ours.post(f"{page}/ping").status_code == 303
    (sent,) = client.get(f"/v1/webhooks/{hook}/deliveries").json()["data"]
    assert sent["event_id"] in ours.read(f"{page}?state=queued")
    assert sent["event_id"] not in ours.read(f"{page}?state=delivered")
    assert ours.post(f"{page}/deliveries/{sent['event_id']}/replay").status_code == 303
    rotated = ours.post(f"{page}/rotate")
    assert rotated.headers["Location"] == f"{LIST}/made"
    assert "whsec_" in ours.read(f"{LIST}/made")
    assert ours.post(page, enabled="no").status_code == 303
    assert client.get(f"/v1/webhooks/{hook}").json()["enabled"] is False
    assert ours.post(f"{page}/ping").status_code == 409
    ours.read(page)
    assert ours.post(page, enabled="yes").status_code == 303
    assert ours.post(f"{page}/delete").status_code == 303
    assert ours.get(page).status_code == 404
