"""May a model be used? The checks of what is stored about it, over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import numpy as np

from tests.app.live_service import NAMES, Service, table
from tests.app.refusals import refused

CHECKS = ("ranks", "beats_controls", "probabilities", "stable", "groups")


def checks(client: httpx.Client, model: str) -> dict[str, dict[str, Any]]:
    answer = client.get(f"/v1/models/{model}/checks")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    passed = [each["passed"] for each in found["checks"]]
    assert found["passed"] == (False if False in passed else None if None in passed else True)
    assert all(each["words"] for each in found["checks"])
    told = {each["name"]: each for each in found["checks"]}
    assert tuple(told) == CHECKS
    return told


def results(client: httpx.Client, model: str) -> list[bool | None]:
    return [each["passed"] for each in checks(client, model).values()]


def evaluated(service: Service, client: httpx.Client, model: str, rows: str, **body: str) -> str:
    dataset_id = service.upload(client, rows, name="newer")
    answer = client.post("/v1/evaluations", json={"model": model, "dataset_id": dataset_id} | body)
    assert answer.status_code == 202, answer.text
    service.work()
    found = client.get(answer.headers["Location"]).json()
    assert found["status"] == "ready", found
    evaluation_id: str = found["id"]
    return evaluation_id


def of_regions(rows: int, seed: int, *, differ: bool) -> str:
    """A table with regions; if they differ, the labels of one of them are drawn at random."""
    rng = np.random.default_rng(seed)
    head, *lines = table(rows, seed).splitlines()
    told = [f"{head},region"]
    for at, line in enumerate(lines):
        values, label = line.rsplit(",", 1)
        if differ and at % 2:
            label = "yes" if rng.random() < 0.5 else "no"
        told.append(f"{values},{label},{'south' if at % 2 else 'north'}")
    return "\n".join(told) + "\n"


def test_what_each_check_tells(start: Callable[..., Service]) -> None:
    service = start()
    client = service.client(service.key())
    old = service.upload(client, table(600))
    job = service.train(client, old, algorithm={"name": "logistic"}, controls=True)
    model = job["output"]["id"]
    told = checks(client, model)
    # Logistic regression is not better than itself; nothing newer is known.
    assert [each["passed"] for each in told.values()] == [True, False, True, None, None]
    assert {each["evaluation_id"] for each in told.values()} == {None}
    auc = client.get(f"/v1/models/{model}/metrics").json()["auc"]
    assert all(f"{auc[end]:.3f}" in told["ranks"]["words"] for end in ("value", "low", "high"))

    same = evaluated(service, client, model, of_regions(600, 1, differ=False), group_by="region")
    told = checks(client, model)
    assert [each["passed"] for each in told.values()] == [True, False, True, True, True]
    for name in ("probabilities", "stable", "groups"):
        assert told[name]["evaluation_id"] == same

    # Half of the rows have labels that the features do not tell.
    other = evaluated(service, client, model, of_regions(600, 2, differ=True), group_by="region")
    told = checks(client, model)
    assert [each["passed"] for each in told.values()] == [True, False, False, False, False]
    for name in ("probabilities", "stable", "groups"):
        assert told[name]["evaluation_id"] == other
    assert "north" not in told["stable"]["words"]
    assert "region" in told["groups"]["words"]

    # What is in the trash tells nothing.
    assert client.delete(f"/v1/evaluations/{other}").status_code == 204
    assert results(client, model) == [True, False, True, True, True]


def test_a_recalibration_makes_earlier_evaluations_tell_nothing_of_probabilities(
    start: Callable[..., Service],
) -> None:
    service = start()
    client = service.client(service.key())
    model = service.train(client, service.upload(client, table(400)))["output"]["id"]
    first = evaluated(service, client, model, of_regions(600, 2, differ=True))
    told = checks(client, model)["probabilities"]
    assert (told["passed"], told["evaluation_id"]) == (False, first)
    newer = service.upload(client, of_regions(900, 3, differ=True), name="for the calibration")
    answer = client.put(f"/v1/models/{model}/calibration", json={"dataset_id": newer})
    assert answer.status_code == 202, answer.text
    service.work()
    told = checks(client, model)["probabilities"]
    assert (told["passed"], told["evaluation_id"]) == (True, None)
    again = evaluated(service, client, model, of_regions(600, 4, differ=True))
    told = checks(client, model)["probabilities"]
    assert (told["passed"], told["evaluation_id"]) == (True, again)


def test_chance_is_not_ranking(start: Callable[..., Service]) -> None:
    """Labels that no feature tells, and a model without validation."""
    service = start()
    client = service.client(service.key())
    rng = np.random.default_rng(5)
    lines = [",".join([*NAMES, "left"])]
    for row in rng.normal(size=(300, len(NAMES))).tolist():
        lines.append(",".join(f"{each:.4f}" for each in row) + f",{rng.choice(['yes', 'no'])}")
    noise = service.upload(client, "\n".join([*lines, ""]))
    model = service.train(client, noise)["output"]["id"]
    assert results(client, model)[:2] == [False, None]
    blind = service.train(client, noise, name="blind", validation={"method": "none"})
    told = checks(client, blind["output"]["id"])
    assert [each["passed"] for each in told.values()] == [None] * len(CHECKS)
    assert "without validation" in told["probabilities"]["words"]


def test_rows_of_the_training_tell_nothing(start: Callable[..., Service]) -> None:
    service = start()
    client = service.client(service.key())
    dataset_id = service.upload(client, of_regions(300, 6, differ=False))
    model = service.train(client, dataset_id)["output"]["id"]
    body = {"model": model, "dataset_id": dataset_id, "group_by": "region"}
    assert client.post("/v1/evaluations", json=body).status_code == 202
    service.work()
    assert results(client, model)[3:] == [None, None]


def test_who_may_ask(start: Callable[..., Service]) -> None:
    service = start()
    client = service.client(service.key())
    model = service.train(client, service.upload(client))["output"]["id"]
    address = f"/v1/models/{model}/checks"
    refused(client.get("/v1/models/none/checks"), 404, "not_found", "none")
    refused(service.client(service.key("other")).get(address), 404, "not_found", model)
    refused(service.client(service.key(scopes=["score"])).get(address), 403, "forbidden")
