"""After an erasure, the id of the entity is in no row of any table and in no blob."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from app.erasure.mentions import document_names
from app.platform.sql import Base
from app.platform.tables import Idempotency
from tests.app.erasure.test_erasure_of_tables import MARK, as_csv, rows_of
from tests.app.feedback.recording import record as record_decisions
from tests.app.feedback.test_upkeep import keeper, settle
from tests.app.live_service import Service
from tests.app.reports.alias_request_steps import REQUESTS, tag
from tests.app.training.test_api_imports import imported, with_words
from tests.app.training.test_api_imports import rows_of as table_by_town
from tests.app.training.test_weak_segments import table as branches
from tests.long_form import DATABASES


def places_with(service: Service, text: str) -> Iterator[str]:
    """Yield the tables and the blobs that have a text: also inside compressed columns."""
    with service.context.db.read() as session:
        for table in Base.metadata.sorted_tables:
            for row in session.execute(select(table)):
                if text in str(tuple(row)):
                    yield table.name
    for path in Path(service.blobs.root).rglob("*"):
        if path.is_file() and has(path.read_bytes(), text):
            yield path.relative_to(service.blobs.root).as_posix()


def has(content: bytes, text: str) -> bool:
    if text.encode() in content:
        return True
    if content[:4] == b"PAR1":
        return text in str(pq.read_table(io.BytesIO(content)).to_pydict())
    if content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(text.encode() in archive.read(name) for name in archive.namelist())
    if content[:2] == b"\x1f\x8b":
        return text.encode() in zlib.decompress(content, 31)
    return False


def everything(service: Service, client: httpx.Client) -> dict[str, str]:
    """Make one of everything that may have rows of the entity; returns ids."""
    fields = {"label": "left", "positive": "yes", "drop": "customer"}
    dataset = service.upload(client, as_csv(rows_of()), **fields)
    model = service.train(client, dataset)["output"]["id"]
    service.train(client, dataset, validation={"method": "cross_validation", "folds": 2})
    grouped = service.upload(
        client,
        as_csv(rows_of(seed=1)),
        name="grouped",
        label="left",
        positive="yes",
        group="customer",
    )
    asked = {"model": model, "dataset_id": grouped}
    evaluation = client.post("/v1/evaluations", json=asked)
    assert evaluation.status_code == 202, evaluation.text
    scored = client.post(
        "/v1/batch-scores",
        params={"model": model, "keep": "customer"},
        content=as_csv(rows_of(seed=2)).encode(),
        headers={"Content-Type": "text/csv"},
    )
    assert scored.status_code == 202, scored.text
    invalid = service.upload(client, as_csv(rows_of(9)), label="nowhere", name="invalid")
    opened, closed = (
        client.post("/v1/uploads", json={"name": "parts", "label": "left"}).json()["id"]
        for _ in range(2)
    )
    for number, upload in enumerate((opened, closed, closed)):
        part = client.put(
            f"/v1/uploads/{upload}/parts/{max(number, 1)}",
            content=as_csv(rows_of(99)).encode(),
            headers={"Content-Type": "text/csv"},
        )
        assert part.is_success, part.text
    done = client.post(f"/v1/uploads/{closed}/close", json={"parts": 2})
    assert done.status_code == 202, done.text
    client.delete(f"/v1/datasets/{service.upload(client, as_csv(rows_of(seed=3)), **fields)}")
    service.work()
    return {"batch": scored.json()["id"], "invalid": invalid, "opened": opened, "model": model}


@pytest.mark.parametrize("service_on_both", DATABASES, indirect=True)
def test_nothing_has_the_id_any_more(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    made = everything(service, client)
    assert len(set(places_with(service, MARK))) > 5
    asked = client.post("/v1/erasures", json={"id": MARK, "key_columns": ["customer", "cid"]})
    assert asked.status_code == 202, asked.text
    settle(service)
    left = [place for place in places_with(service, MARK) if place.startswith("uploads/")]
    assert len(left) == 1  # what was scored: no row names it any more
    with service.setting(
        blob_grace_seconds=0.0
    ):  # files that no row names any more are kept for a day
        keeper(service).round()
    found = client.get(asked.headers["Location"]).json()
    assert (found["state"], found["problem"]) == ("done", None)
    assert sorted(places_with(service, MARK)) == []
    report = found["report"]
    assert len(report["datasets"]) == 4
    assert report["batch_scores"] == [made["batch"]]
    assert set(report["uploads"]) == {made["invalid"], made["opened"]}
    assert len(report["models"]) == 2
    assert {each["what"] for each in report["remains"]} >= {"backups", "logs"}
    # what is left works
    row = {"x": 1.0, "z": 2.0, "word": "a"}
    assert client.post(f"/v1/models/{made['model']}/score", json={"rows": [row]}).is_success
    (new,) = (each["replaced_by"] for each in report["datasets"] if each["name"] == "grouped")
    assert service.train(client, new, name="again")["state"] == "succeeded"
    assert client.get(f"/v1/datasets/{new}/profile").is_success
    shown = client.get(f"/v1/jobs/{found['job_id']}").json()
    assert (shown["kind"], shown["state"]) == ("erase", "succeeded")


def test_no_copy_of_a_document_is_forgotten(service: Service) -> None:
    """Archives with evidence (of revisions, and of requests that made none), errors of decisions that were refused,
    metrics by group: none has the id afterwards, and what people wrote themselves is listed.
    """
    client = service.client(service.key())
    approver = service.client(service.key(scopes=["read", "approve"]))
    three = [[("a", "b", MARK)[i % 3], *row[1:]] for i, row in enumerate(rows_of(300))]
    fields = {"label": "left", "positive": "yes", "protected": "customer"}
    dataset = service.upload(client, as_csv(three), **fields)
    model = service.train(client, dataset)["output"]["id"]
    asked = {"model": model, "dataset_id": dataset, "group_by": "customer"}
    evaluation = client.post("/v1/evaluations", json=asked)
    assert evaluation.status_code == 202, evaluation.text
    service.work()
    alias = "/v1/models/churn/aliases/live"
    done = client.put(alias, json={"model_id": model})
    assert done.status_code == 201, done.text
    done = client.put(f"{alias}/protection", json={"protected": True}, headers=tag(1))
    assert done.status_code == 200, done.text
    asked = {"kind": "set", "name": "churn", "alias": "live", "model_id": model, "reason": "Fewer"}
    requests = {}
    for state, flagged in ("open", 0.1), ("rejected", 0.2):
        made = client.post(REQUESTS, json=asked | {"guarantee": {"flagged": flagged}})
        assert made.status_code == 201, made.text
        requests[state] = made.json()["id"]
    rejected = f"{REQUESTS}/{requests['rejected']}"
    done = approver.post(f"{rejected}/reject", json={"reason": "Not yet"})
    assert done.status_code == 200, done.text
    record_decisions(client, days=3650)
    comment = client.post(f"/v1/models/{model}/comments", json={"text": f"Ask {MARK} about it"})
    sent = client.post(
        "/v1/decisions",
        params={"model": "churn@live"},
        content=f"id,at,score,x,z,word\n{MARK},{MARK},0.5,1,2,a\n",
        headers={"Content-Type": "text/csv"},
    )
    assert sent.status_code == 202, sent.text
    service.work()
    job = client.get(sent.headers["Location"]).json()
    assert (job["state"], MARK in str(job["error"])) == ("failed", True)
    told = client.get(f"/v1/jobs/{job['id']}/events").json()["data"]
    assert "evidence" in {place.partition("/")[0] for place in places_with(service, MARK)}

    asked_for = client.post("/v1/erasures", json={"id": MARK, "key_columns": ["customer"]})
    assert asked_for.status_code == 202, asked_for.text
    settle(service)
    with service.setting(blob_grace_seconds=0.0):
        keeper(service).round()
    found = client.get(asked_for.headers["Location"]).json()
    assert (found["state"], found["problem"]) == ("done", None)
    assert set(places_with(service, MARK)) == {"model_comments"}
    report = found["report"]
    revisions = {f"churn@live, revision {number}" for number in (1, 2)}
    assert set(report["evidence"]) == revisions | set(requests.values())
    remains = [(each["what"], each["resource"]) for each in report["remains"]]
    assert ("text", f"model_comments {comment.json()['id']}") in remains
    assert ("values_in_models", model) in remains
    for address in f"{alias}/revisions/1", *(f"{REQUESTS}/{each}" for each in requests.values()):
        gone = client.get(f"{address}/evidence")
        assert (gone.status_code, gone.json()["code"]) == (404, "no_evidence")
    assert client.get(alias).json()["history"][0]["evidence"] != []
    assert client.get(f"/v1/jobs/{job['id']}/events").json()["data"] == told[-1:]
    # What is left of the table is still known as rows of the training, and so is a table that begins with it.
    (new,) = (each["replaced_by"] for each in report["datasets"])
    more = client.post(
        f"/v1/datasets/{new}/versions",
        params={"mode": "append"},
        content=as_csv([["c", *row[1:]] for row in rows_of(50, seed=3)]),
        headers={"Content-Type": "text/csv"},
    )
    assert more.status_code == 202, more.text
    service.work()
    for dataset_id in (new, more.json()["id"]):
        asked = {"model": model, "dataset_id": dataset_id}
        address = client.post("/v1/evaluations", json=asked).headers["Location"]
        service.work()
        shown = client.get(address).json()
        assert (shown["status"], shown["seen"], shown["drift"]) == ("ready", "trained", None)
        refused = client.put(f"/v1/models/{model}/calibration", json={"dataset_id": dataset_id})
        assert (refused.status_code, refused.json()["code"]) == (409, "rows_seen")


def test_a_damaged_archive_is_named_and_the_others_are_searched(service: Service) -> None:
    client = service.client(service.key())
    fields = {"label": "left", "positive": "yes", "drop": "customer"}
    dataset = service.upload(client, as_csv(rows_of()), **fields)
    model = service.train(client, dataset)["output"]["id"]
    alias = client.put("/v1/models/churn/aliases/live", json={"model_id": model})
    assert alias.status_code == 201, alias.text
    (archive,) = (path for path in Path(service.blobs.root).glob("evidence/**/*") if path.is_file())
    archive.write_bytes(b"0" * archive.stat().st_size)
    asked = client.post("/v1/erasures", json={"id": MARK, "key_columns": ["customer"]})
    service.work()
    found = client.get(asked.headers["Location"]).json()
    assert (found["state"], found["problem"]) == ("settling", None)
    assert [each["dataset_id"] for each in found["report"]["datasets"]] == [dataset]
    remains = [(each["what"], each["resource"]) for each in found["report"]["remains"]]
    assert ("unreadable_copy", "churn@live, revision 1") in remains


@pytest.mark.parametrize("entity", [MARK, "7"])
def test_a_report_has_no_id_though_names_have_it(service: Service, entity: str) -> None:
    client = service.client(service.key())
    rows = as_csv(rows_of()).replace(MARK, entity)
    fields = {"label": "left", "positive": "yes", "drop": "customer", "name": entity}
    dataset = service.upload(client, rows, **fields)
    model = service.train(client, dataset, name=entity)["output"]["id"]
    alias = client.put(f"/v1/models/{entity}/aliases/live", json={"model_id": model})
    assert alias.status_code == 201, alias.text
    created = [
        client.post(
            f"/v1/models/{model}/comments",
            json={"text": text},
            headers={"Idempotency-Key": key},
        )
        for text, key in ((f"Call {entity}", "one"), ("Call", entity), ("Call", "other"))
    ]
    assert [each.status_code for each in created] == [201] * 3
    asked = client.post("/v1/erasures", json={"id": entity, "key_columns": ["customer"]})
    service.work()
    report = client.get(asked.headers["Location"]).json()["report"]
    assert [each["model_id"] for each in report["models"]] == [model]
    assert report["datasets"][0]["name"] == report["models"][0]["name"] == "[erased]"
    assert not document_names(report, entity)
    assert not any(entity in (each["resource"] or "").split() for each in report["remains"])
    with service.context.db.read() as session:
        left = [row.key.split()[-1] for row in session.scalars(select(Idempotency))]
    assert "other" in left
    assert entity not in left


def test_the_error_of_an_import_loses_its_values(service: Service) -> None:
    client = service.client(service.key())
    model, towns = with_words(f" {MARK}", MARK, "Ulm"), ["Bonn", "Celle", "Ulm"]
    job = imported(service, client, model, table_by_town(towns), {"categorical": "town"})
    assert MARK in job["error"]["detail"]
    assert client.post("/v1/erasures", json={"id": MARK}).status_code == 202
    service.work()
    job = client.get(f"/v1/jobs/{job['id']}").json()
    assert (job["state"], job["error"]["code"]) == ("failed", "erased")


def test_a_category_that_only_the_entity_had_is_in_no_metrics(service: Service) -> None:
    """All rows of the branch N are those of one customer, and the model ranks them at random."""
    client = service.client(service.key())
    header, *rows = branches(weak=True).splitlines()
    owners = (MARK if row.split(",")[1] == "N" else f"c{i}" for i, row in enumerate(rows))
    lines = [f"customer,{header}", *map(",".join, zip(owners, rows, strict=True)), ""]
    dataset = service.upload(
        client, "\n".join(lines), label="y", positive="1", drop="customer,paid"
    )
    trained = {"algorithm": {"name": "logistic"}, "validation": {"method": "holdout"}}
    model = service.train(client, dataset, **trained)["output"]["id"]
    address = f"/v1/models/{model}/metrics"
    before = client.get(address).json()["weak_segments"]
    assert [each["conditions"][0]["value"] for each in before["found"]] == ["N"]
    evaluations = []
    for more in {}, {"group_by": "branch"}:
        asked = {"model": model, "dataset_id": dataset, **more}
        evaluations.append(client.post("/v1/evaluations", json=asked).json()["id"])
    service.work()
    assert all(client.get(f"/v1/evaluations/{each}").is_success for each in evaluations)

    asked_for = client.post("/v1/erasures", json={"id": MARK, "key_columns": ["customer"]})
    settle(service)
    report = client.get(asked_for.headers["Location"]).json()["report"]
    assert set(report["evaluations"]) == set(evaluations)
    assert [client.get(f"/v1/evaluations/{each}").status_code for each in evaluations] == [404] * 2
    assert client.get(address).json()["weak_segments"] == {**before, "found": []}
    (new,) = (each["replaced_by"] for each in report["datasets"])
    profile = client.get(f"/v1/datasets/{new}/profile")
    assert (profile.is_success, '"N"' in profile.text) == (True, False)
    assert ("values_in_models", model) in [
        (each["what"], each["resource"]) for each in report["remains"]
    ]


def test_metrics_of_categories_that_others_have_are_kept(service: Service) -> None:
    client = service.client(service.key())
    content = [row if i != 3 else [MARK, *row[1:]] for i, row in enumerate(rows_of(300))]
    dataset = service.upload(client, as_csv(content), label="left", positive="yes", drop="customer")
    model = service.train(client, dataset)["output"]["id"]
    asked = {"model": model, "dataset_id": dataset, "group_by": "word"}
    evaluation = client.post("/v1/evaluations", json=asked).headers["Location"]
    service.work()
    client.post("/v1/erasures", json={"id": MARK, "key_columns": ["customer"]})
    settle(service)
    found = client.get(evaluation).json()["groups"]
    assert (found["column"], len(found["groups"])) == ("word", 3)
