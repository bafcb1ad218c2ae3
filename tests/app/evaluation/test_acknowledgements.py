"""Acknowledged alarms stay acknowledged, and are shown, until a new evaluation raises the alarm again."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx

from tests.app.live_service import NAMES, Service, table
from tests.app.queue_steps import at_once
from tests.app.refusals import refused
from tests.long_form import long_form
from tests.sentences import Sentences

REASON = {"reason": " Known: <b>new</b> tariff. "}


def evaluate(service: Service, client: httpx.Client, model_id: str, dataset_id: str) -> str:
    made = client.post("/v1/evaluations", json={"model": model_id, "dataset_id": dataset_id})
    service.work()
    id_: str = made.json()["id"]
    return id_


def drifted_table(size: int = 600) -> str:
    """Return rows whose features have moved far from those of `table`."""
    head, *rows = table(size, seed=3).splitlines()
    names = head.split(",")
    moved = []
    for row in rows:
        values = row.split(",")
        for name in NAMES:
            values[names.index(name)] = str(float(values[names.index(name)] or 0.0) + 5.0)
        moved.append(",".join(values))
    return "\n".join([head, *moved])


def test_an_evaluation_of_an_alias_says_nothing_about_other_aliases(
    service_on_both: Service,
) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = service.upload(client, table(3000))
    job = service.train(client, dataset_id, algorithm={"name": "logistic"})
    model_id = job["output"]["id"]
    for alias in ("north", "south"):
        client.put(f"/v1/models/churn/aliases/{alias}", json={"model_id": model_id})
    later = service.upload(client, drifted_table(300), name="later")
    alike = service.upload(client, table(12_000, seed=9), name="alike")  # enough to answer
    few = service.upload(client, table(100, seed=10), name="few")

    def found() -> tuple[dict[str, Any], list[Any]]:
        overview = client.get("/v1/overview").json()
        marked = {each["alias"]: each["changed"] for each in overview["live"]}
        return marked, [each["alias"] for each in overview["drifted"]]

    first = evaluate(service, client, "churn@north", later)
    assert client.get(f"/v1/evaluations/{first}").json()["alias"] == "north"
    assert found() == ({"north": True, "south": None}, ["north"])
    evaluate(service, client, "churn@south", alike)
    assert found() == ({"north": True, "south": False}, ["north"])
    # An evaluation of the version is about all its aliases, until one is evaluated again.
    evaluate(service, client, model_id, later)
    assert found() == ({"north": True, "south": True}, [None])
    evaluate(service, client, "churn@south", alike)
    assert found() == ({"north": True, "south": False}, [None])
    evaluate(service, client, "churn:1", alike)
    assert found() == ({"north": False, "south": False}, [])
    # Rows that do not decide clear nothing, nor do they raise anything.
    evaluate(service, client, "churn:1", later)
    assert found() == ({"north": True, "south": True}, [None])
    evaluate(service, client, "churn:1", few)
    assert found() == ({"north": True, "south": True}, [None])


def test_an_alarm_is_acknowledged_until_the_next_evaluation(
    service_on_both: Service, sentences: Sentences
) -> None:
    service = service_on_both
    client = service.client(service.key(name="Ann"))
    model_id = service.train(client, service.upload(client, table(600)))["output"]["id"]
    client.put("/v1/models/churn/aliases/live", json={"model_id": model_id})
    later = service.upload(client, drifted_table(), name="later")
    first = evaluate(service, client, model_id, later)
    address = f"/v1/evaluations/{first}/acknowledgement"

    def seen() -> list[Any]:
        overview = client.get("/v1/overview").json()
        (drifted,), (live,) = overview["drifted"], overview["live"]
        checks = client.get(f"/v1/models/{model_id}/checks").json()["findings"]
        (stable,) = [each for each in checks if each["question"] == "stable"]
        evaluation = client.get(f"/v1/evaluations/{drifted['evaluation_id']}").json()
        shown = (drifted, live, stable, evaluation)
        assert (live["changed"], stable["answer"]) == (True, "no")
        return [each["acknowledgement"] for each in shown]

    assert seen() == [None] * 4
    assert client.delete(address).status_code == 404
    done = client.put(address, json=REASON)
    assert done.status_code == 200, done.text
    assert (done.json()["reason"], done.json()["author"]) == ("Known: <b>new</b> tariff.", "Ann")
    assert seen() == [done.json()] * 4
    assert client.get("/v1/overview").json()["live"][0]["next_step"] is None
    entry = client.get("/v1/audit").json()["data"][0]
    sentences(entry["summary"])
    other = service.client(service.key(name="Bob"))
    again = other.put(address, json={"reason": "Mine"}).json()
    assert (again["reason"], again["author"]) == ("Mine", "Bob")
    assert seen() == [again] * 4

    second = evaluate(service, client, model_id, later)
    assert seen() == [None] * 4
    answers = at_once(
        *(
            partial(client.put, f"/v1/evaluations/{second}/acknowledgement", json={"reason": why})
            for why in ("one", "two")
        )
    )
    assert {answer.status_code for answer in answers} == {200}
    assert client.delete(f"/v1/evaluations/{second}/acknowledgement").status_code == 204
    assert seen() == [None] * 4
    assert client.get(f"/v1/evaluations/{first}").json()["acknowledgement"] == again


@long_form
def test_those_that_nobody_has_seen_come_first(service: Service) -> None:
    client = service.client(service.key())
    dataset_id = service.upload(client, table(600))
    later = service.upload(client, drifted_table(), name="later")
    found = []
    for name in ("a", "b", "c"):
        model_id = service.train(client, dataset_id, name=name)["output"]["id"]
        found.append(evaluate(service, client, model_id, later))
    client.put(f"/v1/evaluations/{found[2]}/acknowledgement", json=REASON)
    drifted = client.get("/v1/overview").json()["drifted"]
    assert [each["evaluation_id"] for each in drifted] == [found[1], found[0], found[2]]


def test_wrong_acknowledgements_are_refused(service: Service) -> None:
    client = service.client(service.key())
    dataset_id = service.upload(client, table(600))
    model_id = service.train(client, dataset_id)["output"]["id"]
    asked = {"model": model_id, "dataset_id": dataset_id}
    waiting = client.post("/v1/evaluations", json=asked).json()["id"]
    address = f"/v1/evaluations/{waiting}/acknowledgement"
    refused(client.put(address, json=REASON), 409, "not_ready")
    service.work()
    for reason in (None, "", "  ", "x" * 2001, "a\0b", 5, ["a"]):
        refused(client.put(address, json={"reason": reason}), 422, "invalid", "reason")
    assert client.put(address, json={}).status_code == 422
    assert client.put(address, json=REASON | {"author": "me"}).status_code == 422
    for id_ in ("evl_" + "0" * 32, "x"):
        assert client.put(f"/v1/evaluations/{id_}/acknowledgement", json=REASON).status_code == 404
