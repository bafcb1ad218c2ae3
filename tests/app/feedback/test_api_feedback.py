"""The feedback settings of an alias, reading a decision, and the files of decisions."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest
import rankwright
from sqlalchemy import select, update

from app.feedback import repository
from app.platform.tables import AuditEntry, DecisionSegment, Model
from tests.app.feedback.recording import ALIAS, FEEDBACK, UNDER, point, record, segments
from tests.app.live_service import NAMES, OWNER, STRANGER, Service, table
from tests.app.refusals import refused
from tests.app.scoring.test_scorecard import people
from tests.sentences import Sentences

ROW = dict(zip(NAMES, (0.5, 0.25, 0.125), strict=True))
DEFAULTS: dict[str, Any] = {
    "keep": 1.0,
    "features": None,
    "days": 400,
    "explore": None,
    "outcome": {"horizon_days": 90.0, "silence": None, "attribute": "last_before_event"},
    "shadow": None,
    "protected": None,
    "monitor": None,
}


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(scope="module")
def versions(shared: Service, client: httpx.Client) -> list[str]:
    """Two versions of `churn`; the second does not use the income."""
    full = shared.upload(client, table(400))
    fields = [line.split(",") for line in table(400).splitlines()]
    lean = shared.upload(client, "\n".join(f"{a},{s},{y}" for a, _, s, y in fields) + "\n")
    return [shared.train(client, each)["output"]["id"] for each in (full, lean)]


@pytest.fixture(autouse=True)
def _alias(shared: Service, client: httpx.Client, versions: list[str]) -> None:
    """The alias points at the first version, has no guarantee, and nothing is recorded."""
    point(client, versions[0], guarantee=None)
    now = client.get(FEEDBACK)
    if now.is_success:
        client.delete(FEEDBACK, headers={"If-Match": now.headers["ETag"]})


def test_an_empty_body_is_enough(shared: Service, client: httpx.Client) -> None:
    refused(client.get(FEEDBACK), 404, "no_feedback")
    made = client.put(FEEDBACK, json={})
    assert made.status_code == 201
    body = made.json()
    assert made.headers["ETag"] == f'"{body["revision"]}"'
    assert {name: body[name] for name in DEFAULTS} == DEFAULTS
    assert (body["name"], body["alias"], body["author"]) == ("churn", "live", "test")
    assert client.get(FEEDBACK).json() == body
    with shared.context.db.read() as session:
        action = select(AuditEntry).order_by(AuditEntry.created_at.desc()).limit(1)
        assert "days none → 400" in (session.scalars(action).one().summary or "")


def test_a_change_names_the_revision_that_it_saw(client: httpx.Client) -> None:
    tag = client.put(FEEDBACK, json={}).headers["ETag"]
    refused(client.put(FEEDBACK, json={}), 428, "precondition_required")
    refused(client.put(FEEDBACK, json={}, headers={"If-Match": '"99"'}), 412, "precondition_failed")
    refused(
        client.put(FEEDBACK, json={}, headers={"If-None-Match": "*"}), 412, "precondition_failed"
    )
    refused(client.put(FEEDBACK, json={}, headers={"If-Match": "x"}), 422, "invalid")
    changed = client.put(FEEDBACK, json={"days": 100}, headers={"If-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["days"] == 100
    assert changed.json()["revision"] == int(tag.strip('"')) + 1
    refused(client.delete(FEEDBACK), 428, "precondition_required")
    refused(client.delete(FEEDBACK, headers={"If-Match": tag}), 412, "precondition_failed")
    assert client.delete(FEEDBACK, headers={"If-Match": changed.headers["ETag"]}).is_success
    refused(client.get(FEEDBACK), 404, "no_feedback")
    refused(client.delete(FEEDBACK, headers={"If-Match": tag}), 404, "no_feedback")
    refused(client.put(FEEDBACK, json={}, headers={"If-Match": tag}), 412, "precondition_failed")
    again = client.put(FEEDBACK, json={}, headers={"If-None-Match": "*"})
    assert again.status_code == 201
    assert again.json()["revision"] == changed.json()["revision"] + 2


def test_bad_settings_are_named(client: httpx.Client, sentences: Sentences) -> None:
    for body, pointer in (
        ({"keep": 0}, "/keep"),
        ({"keep": 1.5}, "/keep"),
        ({"keep": "1"}, "/keep"),
        ({"features": ["age", "what"]}, "/features/1"),
        ({"features": ["age", "age"]}, "/features/1"),
        ({"features": "age"}, "/features"),
        ({"days": 0}, "/days"),
        ({"days": 10}, "/days"),
        ({"days": 30, "outcome": {"horizon_days": 30.5}}, "/days"),
        ({"days": 1.5}, "/days"),
        ({"explore": {"of": "unflagged", "rate": 0}}, "/explore/rate"),
        ({"explore": {"of": "unflagged"}}, "/explore/rate"),
        ({"explore": {"of": "all", "rate": 0.1}}, "/explore/of"),
        ({"explore": {"of": "unflagged", "rate": 0.1}}, "/explore"),
        ({"outcome": {"horizon_days": 0}}, "/outcome/horizon_days"),
        ({"outcome": {"silence": "positive"}}, "/outcome/silence"),
        ({"outcome": {"attribute": "first"}}, "/outcome/attribute"),
        ({"shadow": "other:7"}, "/shadow"),
        ({"shadow": "churn:1"}, "/shadow"),
        ({"shadow": "churn:2", "features": ["age"]}, "/shadow"),
        ({"monitor": {"alpha": 0}}, "/monitor/alpha"),
        ({"monitor": {"period": "hour"}}, "/monitor/period"),
        ({"monitor": {"tolerance": {"auc": -1}}}, "/monitor/tolerance/auc"),
        ({"what": 1}, "/what"),
    ):
        answer = client.put(FEEDBACK, json=body)
        assert answer.status_code in (404, 422), answer.text
        (error,) = answer.json()["errors"]
        assert error["pointer"] == pointer
        sentences(error)
        refused(client.get(FEEDBACK), 404, "no_feedback")


def test_a_horizon_may_be_less_than_a_day(client: httpx.Client) -> None:
    body = record(client, outcome={"horizon_days": 0.5}).json()
    assert body["outcome"]["horizon_days"] == 0.5


def test_a_shadow_reads_only_what_is_recorded(client: httpx.Client) -> None:
    body = record(client, shadow="churn:2", features=["age", "score 1"]).json()
    assert body["shadow"] == "churn:2"


def test_models_without_two_classes_are_refused(
    shared: Service, client: httpx.Client, versions: list[str], sentences: Sentences
) -> None:
    for values in ({"kind": "multilabel"}, {"kind": "graded"}, {"query": "shop"}):
        with shared.context.db.write() as session:
            session.execute(update(Model).where(Model.id == versions[0]).values(**values))
        try:
            sentences(
                refused(client.put(FEEDBACK, json={}), 422, "feedback_not_available")["detail"]
            )
        finally:
            with shared.context.db.write() as session:
                before = {"kind": "bipartite", "query": None}
                session.execute(update(Model).where(Model.id == versions[0]).values(**before))


def test_there_must_be_an_alias(client: httpx.Client) -> None:
    for path in (
        "/v1/models/churn/aliases/none/feedback",
        "/v1/models/x/aliases/live/feedback",
        "/v1/models/a b/aliases/ü/feedback",
    ):
        refused(client.get(path), 404, "not_found")
        refused(client.put(path, json={}), 404, "not_found")
        refused(client.delete(path, headers={"If-Match": '"1"'}), 404, "not_found")


def test_others_see_nothing(shared: Service, client: httpx.Client) -> None:
    tag = record(client).headers["ETag"]
    decision = client.get(f"{UNDER}/score", params=ROW).json()["decision_id"]
    file_id = segments(shared)[-1].id
    stranger = shared.client(shared.key(STRANGER))
    refused(stranger.get(FEEDBACK), 404, "not_found")
    refused(stranger.put(FEEDBACK, json={}, headers={"If-Match": tag}), 404, "not_found")
    refused(stranger.get(f"/v1/decisions/{decision}"), 404, "not_found")
    refused(stranger.get(f"/v1/decision-files/{file_id}/content"), 404, "not_found")
    assert stranger.get("/v1/decision-files").json()["data"] == []
    reader = shared.client(shared.key(scopes=["read"]))
    assert reader.get(FEEDBACK).status_code == 200
    assert reader.get(f"/v1/decisions/{decision}").status_code == 200
    refused(reader.put(FEEDBACK, json={}, headers={"If-Match": tag}), 403, "forbidden")
    refused(reader.delete(FEEDBACK, headers={"If-Match": tag}), 403, "forbidden")
    scorer = shared.client(shared.key(scopes=["score"]))
    refused(scorer.get(f"/v1/decisions/{decision}"), 403, "forbidden")
    refused(scorer.get("/v1/decision-files"), 403, "forbidden")


def test_a_decision_is_read(shared: Service, client: httpx.Client, versions: list[str]) -> None:
    record(client, features=["age", "score 1"])
    rows = {"rows": [ROW | {"cid": "c1"}, ROW | {"cid": "c2", "score 1": None}]}
    headers = {"Idempotency-Key": "once"}
    scored = client.post(f"{UNDER}/score", params={"id": "cid"}, json=rows, headers=headers).json()
    assert ("flags" in scored, scored["reviews"]) == (False, [False] * 2)  # without a guarantee
    segments(shared)
    for k in range(2):
        body = client.get(f"/v1/decisions/{scored['decision_ids'][k]}").json()
        assert body["decision_id"] == scored["decision_ids"][k]
        assert body["id"] == f"c{k + 1}"
        assert body["model_id"] == versions[0]
        assert body["score"] == scored["scores"][k]
        assert body["features"] == {"age": 0.5, "score 1": None if k else ROW["score 1"]}
        assert body["flag"] is body["threshold"] is body["propensity"] is None
        assert body["origin"] == "score"
    other = scored["decision_ids"][0][:-1] + ("0" if scored["decision_ids"][0][-1] != "0" else "1")
    for missing in (other, "dec_1", "what", "ü"):
        refused(client.get(f"/v1/decisions/{missing}"), 404, "not_found")


def test_a_decision_of_a_scorecard_has_points(shared: Service, client: httpx.Client) -> None:
    dataset = shared.upload(client, people(300), label="bad", positive="yes")
    card = {"name": "scorecard", "pdo": 40, "base_score": 500}
    model = shared.train(client, dataset, name="decided", baselines=None, algorithm=card)
    client.put("/v1/models/decided/aliases/live", json={"model_id": model["output"]["id"]})
    client.put("/v1/models/decided/aliases/live/feedback", json={})
    scored = client.post(
        "/v1/models/decided@live/score", json={"rows": [{"amount": 12.5, "purpose": "car"}]}
    ).json()
    segments(shared)
    path = f"/v1/decisions/{scored['decision_ids'][0]}"
    assert client.get(path).json()["points"] == scored["points"][0]
    for gone in ("/v1/models/decided/aliases/live/feedback", "/v1/models/decided/aliases/live"):
        seen = {"If-Match": client.get(gone).headers["ETag"]}
        assert client.delete(gone, headers=seen).is_success
    assert client.delete(f"/v1/models/{model['output']['id']}").is_success
    assert client.get(path).json()["points"] is None


def test_files_are_listed_by_alias(shared: Service, client: httpx.Client) -> None:
    record(client)
    client.get(f"{UNDER}/score", params=ROW)
    files = {each.id for each in segments(shared)}
    with shared.context.db.write() as session:  # as after the end of their day
        session.execute(update(DecisionSegment).values(final_at=1.0))

    def listed(**asked: str) -> set[str]:
        found = client.get("/v1/decision-files", params=asked)
        return {each["id"] for each in found.json()["data"]}

    live = listed(name="churn", alias="live")
    assert live
    assert live <= listed(name="churn") <= listed()
    assert files <= listed()
    assert listed(name="churn", alias="other") == listed(name="other", alias="live") == set()


def test_bad_questions_about_files(client: httpx.Client) -> None:
    for query in ("limit=0", "limit=x", "after=what", "name=ü", "alias=a b"):
        assert client.get(f"/v1/decision-files?{query}").status_code == 422
    named = client.get("/v1/decision-files", params={"name": "churn", "alias": "none"}).json()
    assert named["data"] == []
    for file_id in ("seg_1", "what", "ü", "seg_" + "0" * 32):
        refused(client.get(f"/v1/decision-files/{file_id}/content"), 404, "not_found")


def test_decisions_outlive_the_alias_until_their_days_are_over(
    shared: Service, client: httpx.Client
) -> None:
    record(client, days=90)
    client.get(f"{UNDER}/score", params=ROW)
    count = len(segments(shared))
    client.delete(ALIAS, headers={"If-Match": client.get(ALIAS).headers["ETag"]})
    of = (OWNER, "churn", "live")
    assert shared.context.db.writing(repository.prune_segments, *of, 10) == 0
    with shared.context.db.write() as session:
        newest = segments(shared)[-1]
        old = {"last_at": newest.last_at - 91 * 86_400}
        session.execute(
            update(DecisionSegment).where(DecisionSegment.id == newest.id).values(**old)
        )
    assert shared.context.db.writing(repository.prune_segments, *of, 10) == 1
    assert len(segments(shared)) == count - 1


def test_the_client_switches_recording_on(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "SETTLED_SECONDS", -1.0)
    client = rankwright.Client(shared.url, shared.key())
    settings = client.models.set_feedback("churn", "live", features=["age"])
    assert settings.features == ["age"]
    assert client.models.set_feedback("churn", "live", days=100).revision == settings.revision + 1
    answer = client.models["churn@live"].score([ROW])
    assert answer is not None
    newest = segments(shared)[-1]
    assert newest.id not in [each.id for each in client.decision_files()]
    assert shared.context.db.writing(repository.finish_segment, OWNER, newest.id)
    client.models.delete_feedback("churn", "live")
    files = list(client.decision_files())
    assert newest.id in [each.id for each in files]
    for each in files:
        content = client.download_decision_file(each.id)
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (each.sha256, each.bytes)
