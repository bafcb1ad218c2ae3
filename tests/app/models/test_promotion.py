"""Changes of an alias with a reason: previewed, kept with their evidence, and undone."""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import partial
from typing import Any

import httpx

from app.access import repository as access_rows
from app.operations.sweeping import sweep
from tests.app.live_service import OWNER, STRANGER, Service, table
from tests.app.queue_steps import at_once
from tests.app.refusals import refused
from tests.long_form import long_form

ADDRESS = "/v1/models/churn/aliases/live"


def tag(revision: int) -> dict[str, str]:
    return {"If-Match": f'"{revision}"'}


def train(service: Service, client: httpx.Client, count: int = 2) -> list[str]:
    """Return the ids of so many versions of `churn`, with different thresholds."""
    dataset_id = service.upload(client, table(600))
    made = (service.train(client, dataset_id, seed=seed) for seed in range(count))
    return [each["output"]["id"] for each in made]


def put(client: httpx.Client, model_id: str, revision: int | None = None, **body: Any) -> Any:
    headers = {} if revision is None else tag(revision)
    return client.put(ADDRESS, json={"model_id": model_id, **body}, headers=headers)


def restore(client: httpx.Client, to: int, revision: int | None, **body: Any) -> Any:
    headers = {} if revision is None else tag(revision)
    return client.post(f"{ADDRESS}/restore", json={"revision": to, **body}, headers=headers)


def revisions(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{ADDRESS}/revisions").json()["data"]
    return found


def summary(client: httpx.Client) -> str | None:
    done = client.get("/v1/audit", params={"outcome": "done"}).json()["data"]
    found: str | None = done[0]["summary"]
    return found


def minus(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")


def test_a_change_is_kept_logged_in_words_and_undone(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    first, second = train(service, client)
    memo = {"reason": "Pilot", "review": 20, "rows": 100}
    made = put(client, first, guarantee={"flagged": 0.2}, memo=memo)
    assert made.status_code == 201, made.text
    one = minus(made.json()["cutoff"]["threshold"])
    assert all(part in summary(client) for part in ("live", "churn v1", one, "Pilot"))
    moved = put(client, second, 1, memo={"reason": "Retrained"})
    two = minus(moved.json()["cutoff"]["threshold"])
    assert one != two
    before, _, after = summary(client).partition(" → ")
    assert all(part in before for part in ("live", "churn v1", one))
    assert all(part in after for part in ("v2", two, "Retrained"))
    undone = restore(client, 1, 2)
    assert (undone.status_code, undone.headers["ETag"]) == (200, '"3"')
    before, _, after = summary(client).partition(" → ")
    assert all(part in before for part in ("live", "churn v2", two))
    assert all(part in after for part in ("v1", one, "revision 1"))
    same = ("model_id", "guarantee", "cutoff")
    assert {n: undone.json()[n] for n in same} == {n: made.json()[n] for n in same}
    assert undone.json()["memo"]["rows"] == 100
    # A second undo of the same state is stale; the newest state can be undone, too.
    assert restore(client, 1, 2).status_code == 412
    again = restore(client, 2, 3, reason="Not that bad")
    assert (again.json()["model_id"], again.json()["memo"]["reason"]) == (second, "Not that bad")
    found = revisions(client)
    assert [(each["revision"], each["change"], each["restores"]) for each in found] == [
        (4, "restored", 2),
        (3, "restored", 1),
        (2, "set", None),
        (1, "set", None),
    ]
    assert [each["model_version"] for each in found] == [2, 1, 2, 1]
    pages = [client.get(f"{ADDRESS}/revisions?limit=3").json()]
    pages.append(client.get(f"{ADDRESS}/revisions?after={pages[0]['next']}").json())
    assert [each for page in pages for each in page["data"]] == found


def test_a_deletion_is_a_revision_and_is_undone(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    first, _ = train(service, client)
    put(client, first, guarantee={"fpr": 0.2})
    was = client.get(ADDRESS).json()
    gone = client.delete(ADDRESS, headers=tag(1), params={"reason": "Unused"})
    assert gone.status_code == 204
    assert (summary(client) or "").endswith("→ deleted. Reason: Unused")
    (deleted,) = client.get("/v1/models/churn/deleted-aliases").json()["data"]
    assert (deleted["alias"], deleted["revision"], deleted["model_id"]) == ("live", 2, first)
    assert deleted["memo"]["reason"] == "Unused"
    assert [each["change"] for each in revisions(client)] == ["deleted", "set"]
    refused(restore(client, 2, 2), 422, "invalid", "deletion")
    assert restore(client, 1, None).status_code == 428
    assert restore(client, 1, 1).status_code == 412
    first_back, second_back = at_once(*(partial(restore, client, 1, 2) for _ in range(2)))
    back = first_back if first_back.status_code == 200 else second_back
    statuses = [first_back.status_code, second_back.status_code]
    assert sorted(statuses) == [200, 412], first_back.text + second_back.text
    assert back.json()["revision"] == 3
    assert back.json()["cutoff"] == was["cutoff"]
    assert client.get("/v1/models/churn/deleted-aliases").json()["data"] == []
    # Its model is deleted: the revision stays, but nothing can be restored.
    client.delete(ADDRESS, headers=tag(3))
    assert client.delete(f"/v1/models/{first}").status_code == 204
    gone = restore(client, 1, 4)
    assert (gone.status_code, gone.json()["code"]) == (409, "model_deleted")
    assert restore(client, 3, 4).json()["code"] == "model_deleted"
    assert client.post(f"/v1/trash/{first}/restore").status_code == 200
    assert restore(client, 1, 4).status_code == 200


def test_a_preview_says_what_changes(service: Service) -> None:
    client = service.client(service.key())
    first, second = train(service, client)
    preview = partial(client.post, f"{ADDRESS}/preview")
    new = preview(json={"model_id": first, "guarantee": {"flagged": 0.2}}).json()
    assert (new["before"], new["revision"]) == (None, None)
    assert client.get(ADDRESS).status_code == 404
    put(client, first, guarantee={"flagged": 0.2})
    seen = preview(json={"model_id": "churn:2"}).json()
    assert seen["revision"] == 1
    point = {
        model_id: client.get(f"/v1/models/{model_id}/operating-point", params={"flagged": 0.2})
        for model_id in (first, second)
    }
    for side, model_id, version in (("before", first, 1), ("after", second, 2)):
        expected = point[model_id].json()
        found = seen[side]
        assert (found["model_id"], found["version"]) == (model_id, version)
        for name in ("threshold", "flagged", "fpr", "tpr", "precision"):
            assert found["point"][name] == expected[name]
        assert found["calibration_version"] == 1
        assert 0.0 < found["probability"] < 1.0
    moved = put(client, second, 1)
    assert moved.json()["cutoff"] == seen["after"]["cutoff"]
    back = preview(json={"revision": 1}).json()
    assert (back["before"], back["after"]) == (seen["after"], seen["before"])
    bare = preview(json={"model_id": first, "guarantee": None}).json()["after"]
    assert (bare["cutoff"], bare["point"]) == (None, None)
    for body, named in (
        ({}, ("model_id", "revision")),
        ({"model_id": first, "revision": 1}, ("model_id", "revision")),
        ({"revision": 1, "guarantee": None}, ("guarantee", "model_id")),
        ({"revision": 0}, ("revision",)),
        ({"revision": "1"}, ("revision",)),
        ({"model_id": first, "guarantee": {"fpr": 2}}, ("fpr",)),
        ({"model_id": first, "memo": {}}, ("memo",)),
    ):
        refused(preview(json=body), 422, "invalid", *named)
    assert preview(json={"revision": 9}).status_code == 404
    assert preview(json={"model_id": "churn:9"}).status_code == 404
    other = service.train(client, service.upload(client), name="other")["output"]["id"]
    assert preview(json={"model_id": other}).status_code == 422
    stranger = service.client(service.key(STRANGER))
    assert stranger.post(f"{ADDRESS}/preview", json={"model_id": first}).status_code == 404
    reader = service.client(service.key(scopes=["read"]))
    assert reader.post(f"{ADDRESS}/preview", json={"model_id": first}).status_code == 200
    scorer = service.client(service.key(scopes=["score"]))
    assert scorer.post(f"{ADDRESS}/preview", json={"model_id": first}).status_code == 403


def test_wrong_restorations_are_refused(service: Service) -> None:
    client = service.client(service.key())
    (first,) = train(service, client, 1)
    put(client, first, memo={"reason": "First"})
    for body in ({}, {"revision": 0}, {"revision": 2**31}, {"revision": True}, {"to": 1}):
        answer = client.post(f"{ADDRESS}/restore", json=body, headers=tag(1))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), body
    for reason in ("", " ", "x" * 2001, "a\0b", 5):
        refused(restore(client, 1, 1, reason=reason), 422, "invalid", "reason")
        if isinstance(reason, str):
            params = {"reason": reason}
            deletion = client.delete(ADDRESS, headers=tag(1), params=params)
            assert deletion.status_code in (400, 422), reason
    assert restore(client, 5, 1).status_code == 404
    assert client.post(f"{ADDRESS}/restore", json={"revision": 1}).status_code == 428
    stranger = service.client(service.key(STRANGER))
    reader = service.client(service.key(scopes=["read"]))
    assert restore(stranger, 1, 1).status_code == 404
    assert restore(reader, 1, 1).status_code == 403
    assert reader.get(f"{ADDRESS}/revisions").status_code == 200
    for path in (f"{ADDRESS}/revisions", f"{ADDRESS}/revisions/1/evidence"):
        assert stranger.get(path).status_code == 404
    assert client.get("/v1/models/churn/aliases/none/revisions").status_code == 404
    assert client.get("/v1/models/A!/deleted-aliases").status_code == 404
    assert stranger.get("/v1/models/churn/deleted-aliases").status_code == 404
    assert client.get(f"{ADDRESS}/revisions?after=x").status_code == 422
    protection = f"{ADDRESS}/protection"
    for protected in (None, 1, "yes"):
        answer = client.put(protection, json={"protected": protected}, headers=tag(1))
        assert answer.status_code == 422
    trainer = service.client(service.key(scopes=["read", "train"]))
    protect = {"protected": True, "reason": "Used for credit decisions"}
    assert trainer.put(protection, json=protect, headers=tag(1)).status_code == 403
    assert client.put(protection, json=protect).status_code == 428
    assert client.put(protection, json=protect, headers=tag(7)).status_code == 412
    # The cutoff keeps its reason; that of the protection is in the history.
    decided = client.get(ADDRESS).json()
    done = client.put(protection, json=protect, headers=tag(1)).json()
    for member in ("memo", "author", "updated_at"):
        assert done[member] == client.get(ADDRESS).json()[member] == decided[member]
    found = revisions(client)
    assert [each["memo"]["reason"] for each in found] == [protect["reason"], "First"]
    assert found[0]["evidence"] == found[1]["evidence"] != []


def test_the_evidence_of_a_revision_never_changes(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    first, second = train(service, client)
    newer = service.upload(client, table(600, seed=5), name="newer")

    def run(path: str, **body: Any) -> str:
        made = client.post(path, json={"dataset_id": newer, **body})
        assert made.is_success, made.text
        service.work()
        id_: str = made.json()["id"]
        return id_

    put(client, first)
    evaluation = run("/v1/evaluations", model=second)
    comparison = run("/v1/comparisons", models=[first, second])
    assert put(client, second, 1).status_code == 200
    (of_second, of_first) = revisions(client)
    assert {each["of"] for each in of_first["evidence"]} == {"decision", "report"}
    assert [(each["of"], each["id"]) for each in of_second["evidence"]] == [
        ("decision", second),
        ("decision", second),
        ("report", second),
        ("report", second),
        ("evaluation", evaluation),
        ("comparison", comparison),
    ]
    address = f"{ADDRESS}/revisions/2/evidence"
    archive = client.get(address)
    assert archive.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(archive.content)) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    for each in of_second["evidence"]:
        assert hashlib.sha256(files[each["name"]]).hexdigest() == each["sha256"]
        one = client.get(address, params={"file": each["name"]})
        assert (one.content, len(one.content)) == (files[each["name"]], each["bytes"])
    kept = client.get(address, params={"file": f"{evaluation}.json"}).json()
    assert kept == client.get(f"/v1/evaluations/{evaluation}").json()
    page = client.get(address, params={"file": "report.html"})
    assert "sandbox" in page.headers["Content-Security-Policy"]
    for name in ("", "../report.html", "none", "x" * 300):
        assert client.get(address, params={"file": name}).status_code in (404, 422)
    for revision in ("0", "3", "x", "99999999999"):
        answer = client.get(f"{ADDRESS}/revisions/{revision}/evidence")
        assert answer.status_code in (404, 422), answer.text

    # It outlives the evaluation, and is that of the restored revision; the sweeper leaves it.
    client.delete(f"/v1/evaluations/{evaluation}")
    client.delete(f"/v1/trash/{evaluation}")
    assert restore(client, 1, 2).status_code == 200
    assert restore(client, 2, 3).status_code == 200
    assert revisions(client)[0]["evidence"] == of_second["evidence"]
    settings = service.settings.model_copy(update={"blob_grace_seconds": 1e-6})
    sweep(service.context.db, service.context.blobs, settings)
    assert client.get(address).content == archive.content
    assert client.get(f"{ADDRESS}/revisions/4/evidence").content == archive.content

    # The quota counts it. It goes with the model; the revision, with the hashes, remains.
    before = service.context.db.reading(access_rows.stored_bytes, OWNER)
    put(client, first, 4)
    client.delete(f"/v1/models/{second}")
    assert client.get(address).status_code == 200
    client.delete(f"/v1/trash/{second}")
    after = service.context.db.reading(access_rows.stored_bytes, OWNER)
    assert before - after >= 2 * len(archive.content) - 200_000
    gone = client.get(address)
    assert (gone.status_code, gone.json()["code"]) == (404, "no_evidence")
    left = next(each for each in revisions(client) if each["revision"] == 2)
    assert (left["evidence"], left["evidence_available"]) == (of_second["evidence"], False)
    assert (left["model_id"], left["model_version"]) == (second, 2)
    assert sweep(service.context.db, service.context.blobs, settings) > 0


@long_form
def test_a_model_is_deleted_while_an_alias_is_pointed_at_it(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    first, second, third = train(service, client, 3)
    put(client, first)
    moved, deleted = at_once(
        partial(put, client, second, 1), partial(client.delete, f"/v1/models/{second}")
    )
    assert (moved.status_code, deleted.status_code) in {(200, 409), (404, 204)}, moved.text
    now = client.get(ADDRESS).json()
    assert now["model_id"] == (second if moved.status_code == 200 else first)
    put(client, third, now["revision"])
    if deleted.status_code != 204:
        assert client.delete(f"/v1/models/{now['model_id']}").status_code == 204
    undone = restore(client, now["revision"], now["revision"] + 1)
    assert (undone.status_code, undone.json().get("code")) in {(409, "model_deleted"), (200, None)}


@long_form
def test_changes_at_once_are_in_order(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    first, second = train(service, client)
    put(client, first)
    put(client, second, 1)
    revision = 2
    for _ in range(3):
        found = at_once(
            partial(put, client, first, revision),
            partial(restore, client, 1, revision),
            partial(client.delete, ADDRESS, headers=tag(revision)),
        )
        # One of them wins; the others have seen what is no longer there.
        statuses = sorted(answer.status_code for answer in found)
        assert statuses[0] in (200, 204), statuses
        assert set(statuses[1:]) <= {404, 412}, statuses
        assert [each["revision"] for each in revisions(client)] == list(range(revision + 1, 0, -1))
        if client.get(ADDRESS).status_code == 404:
            revision += 1
            assert restore(client, 1, revision).status_code == 200
        revision += 1
