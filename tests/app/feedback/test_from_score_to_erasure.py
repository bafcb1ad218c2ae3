"""An entity is scored, its outcome arrives, the cohort table shows it, and it is erased: over HTTP alone."""

from __future__ import annotations

import httpx
import pytest

from tests.app.feedback.recording import ALIAS, UNDER, point, record, segments
from tests.app.feedback.test_api_outcomes import send
from tests.app.feedback.test_upkeep import keeper, settle
from tests.app.live_service import Service
from tests.long_form import long_form

ROW = {"age": 1.0, "income": 2.0, "score 1": 0.5}


@pytest.fixture
def scored(service: Service, client: httpx.Client) -> httpx.Client:
    """A client of an owner with recorded decisions about entities 17, 18 and 19."""
    point(client, service.train(client, service.upload(client))["output"]["id"])
    record(client, outcome={"horizon_days": 30})
    rows = [ROW | {"cid": 17}, ROW | {"cid": " 18 "}, ROW | {"cid": "19"}]
    answer = client.post(f"{UNDER}/score", params={"id": "cid"}, json={"rows": rows})
    assert answer.status_code == 200, answer.text
    segments(service)
    return client


def test_outcomes_find_their_decisions(service: Service, scored: httpx.Client) -> None:
    answer = scored.get(f"{UNDER}/score", params=ROW | {"id": "cid", "cid": "20"})
    decision_id = answer.json()["decision_id"]
    segments(service)
    (moment,) = {scored.get(f"/v1/decisions/{decision_id}").json()["at"]}
    found = send(
        scored,
        {"id": "17", "label": "yes", "event_at": moment},
        {"id": 18, "label": "no", "event_at": moment},
        {"decision_id": decision_id, "label": True},
        {"id": "nobody", "label": True, "event_at": moment},
    )
    assert found.json()["matched"] == 3, found.text
    total = scored.get(f"{ALIAS}/cohorts").json()["total"]
    assert (total["decisions"], total["positives"], total["negatives"]) == (4, 2, 1)
    assert (total["pending"], total["unrecognised"]) == (1, 0)


@long_form
def test_an_erased_entity_is_in_no_answer(service: Service, scored: httpx.Client) -> None:
    answer = scored.get(f"{UNDER}/score", params=ROW | {"id": "cid", "cid": "17"})
    decision_id = answer.json()["decision_id"]
    segments(service)
    assert scored.get(f"/v1/decisions/{decision_id}").status_code == 200
    assert scored.post("/v1/erasures", json={"id": "17"}).status_code == 202
    keeper(service).round()
    assert scored.get(f"/v1/decisions/{decision_id}").status_code == 404
    assert scored.get(f"{ALIAS}/cohorts").json()["total"]["decisions"] == 2
    settle(service)
    (made,) = scored.get("/v1/erasures").json()["data"]
    assert made["erased"] == {"decisions": 2, "outcomes": 0}
    assert made["done_at"] is not None
