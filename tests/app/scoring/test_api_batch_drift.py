"""The drift of a batch over HTTP: verdict, columns that explain it, and who may read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.live_service import STRANGER, Service
from tests.app.refusals import refused
from tests.long_form import long_form

PATH = "/v1/batch-scores"
CSV = {"Content-Type": "text/csv"}
START = np.datetime64("2026-01-01")
HEAD = "income,children,region"


def rows(n: int, seed: int, shift: float = 0.0, far: str = "far", label: bool = False) -> str:
    """Return a CSV of loans. `shift` moves the income, and `far` names a rare region."""
    rng = np.random.default_rng(seed)
    income, children = rng.normal(shift, 1.0, n).round(4), rng.poisson(1.0, n)
    region = rng.choice(["north", "south", far], n, p=[0.5, 0.4, 0.1])
    yes = rng.random(n) < 1.0 / (1.0 + np.exp(1.0 - 2.0 * (income - shift) - (region == "north")))
    lines = [HEAD + (",left" if label else "")]
    for k in range(n):
        number = "" if k % 20 == 3 else str(children[k])
        line = f"{income[k]},{number},{region[k]}"
        lines.append(line + (f",{'yes' if yes[k] else 'no'}" if label else ""))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


@pytest.fixture(scope="module")
def owner(service: Service) -> httpx.Client:
    return service.client(service.key())


@pytest.fixture(scope="module")
def model(service: Service, owner: httpx.Client) -> str:
    dataset_id = service.upload(owner, rows(4000, 1, label=True), categorical="region")
    objective = {"metric": "tpr", "fpr": 0.1}
    validation = {"method": "holdout", "fraction": 0.3}
    job = service.train(owner, dataset_id, objective=objective, validation=validation)
    found: str = job["output"]["id"]
    return found


def compared(service: Service, client: httpx.Client, text: str, **params: Any) -> dict[str, Any]:
    """Score a table, and return its drift."""
    answer = client.post(PATH, params=params, content=text.encode(), headers=CSV)
    assert answer.status_code == 202, answer.text
    id_ = answer.json()["id"]
    refused(client.get(f"{PATH}/{id_}/drift"), 409, "batch_score_not_ready")
    service.work()
    batch = client.get(f"{PATH}/{id_}").json()
    assert batch["status"] == "ready", batch["error"]
    found: dict[str, Any] = client.get(f"{PATH}/{id_}/drift").json()
    assert batch["stable"] == found["finding"]["answer"]
    return found


def test_rows_as_at_validation_are_stable(
    service: Service, owner: httpx.Client, model: str
) -> None:
    found = compared(service, owner, rows(2000, 2), model=model)
    assert found["finding"]["answer"] == "yes"
    assert found["rows"] == found["sampled_rows"] == 2000
    assert found["scores"]["psi"]["value"] < 0.1
    assert not found["scores"]["changed"]
    assert {each["name"] for each in found["features"]} == {"income", "children", "region"}
    assert not any(each["changed"] for each in found["features"])
    children = next(each for each in found["features"] if each["name"] == "children")
    assert children["missing"] == {"before": 0.05, "after": 0.05}
    flagged = found["flagged"]
    assert flagged["before"]["low"] <= flagged["after"]["value"] <= flagged["before"]["high"]
    assert sum(each["before"] for each in found["scores"]["bins"]) == pytest.approx(1.0)
    assert sum(each["after"] for each in found["scores"]["bins"]) == pytest.approx(1.0)


def test_shifted_rows_name_the_column(service: Service, owner: httpx.Client, model: str) -> None:
    found = compared(service, owner, rows(1000, 3, shift=1.5, far="abroad"), model=model)
    assert found["finding"]["answer"] == "no"
    assert found["scores"]["changed"]
    assert found["flagged"]["change"]["low"] > 0.0
    first, *others = found["features"]
    assert (first["name"], first["changed"]) == ("income", True)
    assert first["out_of_range"] > 0.0
    assert first["new_categories"] is None
    region = next(each for each in others if each["name"] == "region")
    assert region["new_categories"] == pytest.approx(0.1, abs=0.03)
    assert region["out_of_range"] is None


def test_the_rows_of_a_dataset_have_the_drift_of_the_same_file(
    service: Service, owner: httpx.Client, model: str
) -> None:
    text = rows(500, 4, far="abroad", label=True)
    dataset_id = service.upload(owner, text, name="later", categorical="region")
    answer = owner.post(PATH, json={"model": model, "dataset_id": dataset_id})
    service.work()
    of_dataset = owner.get(f"{PATH}/{answer.json()['id']}/drift").json()
    of_file = compared(service, owner, rows(500, 4, far="abroad"), model=model)
    different = {"batch_score_id", "finding"}
    assert {k: v for k, v in of_dataset.items() if k not in different} == {
        k: v for k, v in of_file.items() if k not in different
    }


@pytest.mark.parametrize(
    ("timed", "shift", "answer"),
    [
        (False, 0.0, "yes"),
        (False, 1.0, "no"),
        (True, 0.0, "yes"),
        (True, 1.0, "no"),
    ],
)
def test_an_evaluation_and_a_batch_of_the_same_rows_have_one_verdict(
    service: Service, owner: httpx.Client, timed: bool, shift: float, answer: str
) -> None:
    """Also with days, and in a table that is sorted by region within each of them."""

    def table(n: int, seed: int, shift: float, first: int) -> str:
        head, *lines = rows(n, seed, shift, label=True).splitlines()
        if not timed:
            return "\n".join([head, *lines, ""])
        size = len(lines) // 20
        days = [lines[k : k + size] for k in range(0, len(lines), size)]
        dated = [
            f"{START + np.timedelta64(first + day, 'D')},{line}"
            for day, own in enumerate(days)
            for line in sorted(own, key=lambda line: line.split(",")[2])
        ]
        return "\n".join([f"day,{head}", *dated, ""])

    name = f"{'timed' if timed else 'untimed'}-{answer}"
    columns = {"categorical": "region"}
    old = service.upload(owner, table(4000, 1, 0.0, 0), name=f"{name}-old", **columns)
    trained = service.train(owner, old, name=name, baselines=False)["output"]["id"]
    new = table(2000, 2, shift, 200)
    later = service.upload(owner, new, name=f"{name}-new", **columns)
    asked = owner.post("/v1/evaluations", json={"model": trained, "dataset_id": later})
    assert asked.status_code == 202, asked.text
    batch = compared(service, owner, new, model=trained, ignore="left")
    evaluated = owner.get(f"/v1/evaluations/{asked.json()['id']}").json()
    evaluation = evaluated["drift"]
    (stable,) = [each for each in evaluated["findings"] if each["question"] == "stable"]
    assert stable["answer"] == batch["finding"]["answer"] == answer
    (of_all,) = [each for each in evaluation["scores"] if each["of"] == "all"]
    of_columns = [{each["name"]: each for each in of["features"]} for of in (evaluation, batch)]
    assert of_columns[0] == of_columns[1]
    for member in ("psi", "p_value", "adjusted_p_value", "changed", "reason", "distance"):
        assert of_all[member] == pytest.approx(batch["scores"][member]), member
    (check,) = [
        each
        for each in owner.get(f"/v1/models/{trained}/checks").json()["findings"]
        if each["question"] == "stable"
    ]
    assert check == stable
    for member in ("words", "size", "margin", "reason", "used", "missing"):
        assert check[member] == batch["finding"][member], member


def test_absent_columns_are_missing(service: Service, owner: httpx.Client, model: str) -> None:
    text = "\n".join(line.rpartition(",")[0] for line in rows(300, 5).splitlines())
    sent = CSV | {"Prefer": "handling=lenient"}
    answer = owner.post(PATH, params={"model": model}, content=text.encode(), headers=sent)
    service.work()
    found = owner.get(f"{PATH}/{answer.json()['id']}/drift").json()
    region = next(each for each in found["features"] if each["name"] == "region")
    assert region["missing"] == {"before": 0.0, "after": 1.0}
    assert region["changed"]


@long_form
def test_cross_validated_scores_are_not_tested(service: Service, owner: httpx.Client) -> None:
    dataset_id = service.upload(
        owner, rows(600, 6, label=True), name="folded", categorical="region"
    )
    folds = {"method": "cross_validation", "folds": 3}
    job = service.train(owner, dataset_id, name="folded", validation=folds)
    found = compared(service, owner, rows(600, 7), model=job["output"]["id"])
    assert found["finding"]["answer"] == "yes"
    assert found["scores"]["psi"] is None
    assert found["scores"]["reason"] is not None
    assert found["scores"]["bins"]


def test_a_model_without_validation_compares_columns(service: Service, owner: httpx.Client) -> None:
    dataset_id = service.upload(owner, rows(600, 8, label=True), name="all", categorical="region")
    job = service.train(owner, dataset_id, name="unvalidated", validation={"method": "none"})
    found = compared(service, owner, rows(600, 9, shift=2.0), model=job["output"]["id"])
    assert found["finding"]["answer"] == "no"
    assert found["scores"] is None
    assert found["no_scores"] is not None
    assert found["flagged"] is None


def test_who_may_read_a_drift(service: Service, owner: httpx.Client, model: str) -> None:
    id_ = compared(service, owner, rows(30, 12), model=model)["batch_score_id"]
    address = f"{PATH}/{id_}/drift"
    scorer = service.client(service.key(scopes=["score"]))
    refused(scorer.get(address), 403, "forbidden", "'read'")
    assert scorer.get(f"{PATH}/{id_}").json()["stable"] == "unknown"
    assert service.client(service.key(scopes=["read"])).get(address).status_code == 200
    stranger = service.client(service.key(STRANGER))
    refused(stranger.get(address), 404, "not_found")
    refused(owner.get(f"{PATH}/bat_none/drift"), 404, "not_found")
