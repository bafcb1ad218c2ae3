"""Bad jobs, validations, searches and budgets: each gets a problem with code, rule and value, and leaves nothing."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.app.live_service import Service
from tests.app.refusals import JSON, job, refused
from tests.long_form import rest

pytestmark = pytest.mark.usefixtures("nothing_is_left")

Case = tuple[dict[str, Any], str]


@pytest.fixture
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


def algorithm(name: Any = "rankboost", **parameters: Any) -> dict[str, Any]:
    return {"algorithm": {"name": name} | parameters}


def objective(metric: str, **window: float) -> dict[str, Any]:
    return {"objective": {"metric": metric} | window}


def validation(method: Any, **given: Any) -> dict[str, Any]:
    return {"validation": {"method": method} | given}


def folds(**given: Any) -> dict[str, Any]:
    return validation("cross_validation", **given)


def grid(space: Any, **given: Any) -> dict[str, Any]:
    return {"search": {"method": "grid", "space": space} | given}


def random(subsample: Any) -> dict[str, Any]:
    return {"search": {"method": "random", "space": {"subsample": subsample}}}


NOT_A_C: list[Any] = [0, -1, 1e7, 10**400, True, None, "auto", "6", [6], {}]
NOT_A_NUMBER_OF_ROUNDS: list[Any] = [
    0,
    -1,
    100_001,
    10**400,
    1.5,
    True,
    None,
    "6",
    [6],
    {"a": 6},
    {},
]

FORM: list[Case] = [
    ({"algorithm": "rankboost"}, "/algorithm"),
    ({"validation": "holdout"}, "/validation"),
    ({"objective": "auc"}, "/objective"),
    ({"search": "grid"}, "/search"),
    ({"search": 3}, "/search"),
    ({"label_noise": 0.5}, "/label_noise"),
    ({"seed": -1}, "/seed"),
    ({"seed": 1.5}, "/seed"),
    ({"seed": 2**64}, "/seed"),
    ({"name": "Churn!"}, "/name"),
    ({"name": "mdl_" + "0" * 32}, "/name"),
    ({"timeout_seconds": 0}, "/timeout_seconds"),
    ({"tags": {"a": 1}}, "/tags/a"),
    ({"tags": {"a": "\0"}}, "/tags/a"),
    ({"tags": {"a": "\ud800"}}, "/tags/a"),
    ({"\ud800": 1}, ""),
    ({"surprise": 1}, "/surprise"),
    ({"dataset_id": 7}, "/dataset_id"),
    ({"priority": 1000}, "/priority"),
    ({"baselines": "some"}, "/baselines"),
]
OBJECTIVES: list[Case] = [
    (objective("f1"), "/objective"),
    (objective("pauc", fpr_min=0.1, fpr_max=0.05), "/objective/fpr_max"),
    (objective("pauc", fpr_min=0.02, fpr_max=0.02 + 1e-12), "/objective/fpr_max"),
    (objective("pauc"), "/objective/fpr_max"),
    (objective("pauc", fpr_max=2), "/objective/fpr_max"),
    (objective("tpr"), "/objective/fpr"),
    (objective("tpr", fpr=0), "/objective/fpr"),
    (objective("tpr", fpr=1.01), "/objective/fpr"),
    (objective("tpr", fpr=1e-10), "/objective/fpr"),
    (objective("tpr", fpr=0.1, fpr_max=0.2), "/objective/fpr_max"),
    (objective("average_precision", share=0.1), "/objective/share"),
    (objective("precision"), "/objective"),
    (objective("precision", count=1, share=0.1), "/objective"),
    (objective("precision", count=0), "/objective/count"),
    (objective("precision", count=1.5), "/objective/count"),
    (objective("precision", count=10**400), "/objective/count"),
    (objective("precision", count=2**53), "/objective/count"),
    (objective("precision", share=0), "/objective/share"),
    (objective("precision", share=1.5), "/objective/share"),
    (objective("lift"), "/objective/share"),
    (objective("lift", share=0.1, count=5), "/objective/count"),
    (objective("precision_at_recall"), "/objective/recall"),
    (objective("precision_at_recall", recall=0), "/objective/recall"),
    (objective("ndcg", count=0), "/objective/count"),
    (objective("ndcg", count=5) | validation("none"), "/objective/count"),
    (objective("precision", count=5) | validation("none"), "/objective/count"),
]
VALIDATIONS: list[Case] = [
    (folds(folds=1), "/validation/folds"),
    (folds(folds=21), "/validation/folds"),
    (folds(repeats=0), "/validation/repeats"),
    (folds(repeats=2, time_column="a"), "/validation/repeats"),
    (folds(time_column="nowhere"), "/validation/time_column"),
    (folds(time_column="left"), "/validation/time_column"),
    (folds(fraction=0.2), "/validation/fraction"),
    (validation("holdout", time_column=7), "/validation/time_column"),
    (validation("holdout", fraction=1.0), "/validation/fraction"),
    (validation("dataset"), "/validation/dataset_id"),
    ({"validation": 3}, "/validation"),
    (validation(3), "/validation"),
    ({"validation": {}}, "/validation"),
]
SEARCHES: list[Case] = [
    ({"search": {"method": "grid"}}, "/search/space"),
    ({"search": {"method": 3}}, "/search"),
    ({"search": {}}, "/search"),
    ({"search": []}, "/search"),
    (grid([]), "/search/space"),
    (grid({"n_rounds": 5}), "/search/space/n_rounds"),
    (grid({"n_rounds": [5, 6]}, fraction=1), "/search/fraction"),
    (grid({"n_rounds": [5]}, folds=1), "/search/folds"),
    (grid({"n_rounds": [5]}, n_candidates=3), "/search/n_candidates"),
    (
        grid({"max_bins": list(range(2, 52)), "max_depth": [3, 4]}, folds=5) | folds(folds=20),
        "/search",
    ),
    (
        {"search": {"method": "halving", "space": {"subsample": [0.5]}, "n_candidates": 1001}},
        "/search/n_candidates",
    ),
    (algorithm("auto") | grid({"n_rounds": [5, 6]}), "/search"),
]
UNKNOWN: list[Case] = [
    (algorithm("boostrank"), "/algorithm/name"),
    ({"algorithm": {}}, "/algorithm/name"),
    (algorithm(3), "/algorithm/name"),
    (algorithm("x") | grid({"n_rounds": [5, 6]}), "/algorithm/name"),
]
METHODS: list[Case] = [
    (validation("luck"), "/validation/method"),
    ({"search": {"method": "luck"}}, "/search/method"),
]
PARAMETERS: list[Case] = [
    (algorithm(rounds=3), "/algorithm/rounds"),
    (algorithm(n_rounds=0), "/algorithm/n_rounds"),
    (algorithm(n_rounds="many"), "/algorithm/n_rounds"),
    (algorithm(learning_rate={"a": []}), "/algorithm/learning_rate"),
    (algorithm(weak_ranker="forest"), "/algorithm/weak_ranker"),
    (algorithm(smoothing=2), "/algorithm"),
    (algorithm(**{"\ud800": 1}), "/algorithm/\ud800"),
    (algorithm("treerank", order="validation"), "/algorithm"),
    (algorithm("auc_svm", feature_map="fourier", n_components=10**9), "/algorithm/n_components"),
    (algorithm("logistic", C=10**400), "/algorithm/C"),
    (algorithm(fpr_max=0.1), "/algorithm/fpr_max"),
    (algorithm("komori_eguchi_boost", fpr_min=0.1), "/algorithm/fpr_min"),
    (algorithm(random_state=1), "/algorithm/random_state"),
    (algorithm("sampled_martirank", noise_rate=0.1), "/algorithm/noise_rate"),
    (algorithm("auto", budget_seconds=61) | {"timeout_seconds": 60}, "/algorithm/budget_seconds"),
    (algorithm("auto", budget_seconds="15,5"), "/algorithm/budget_seconds"),
    (algorithm("logistic", C="1.234,5"), "/algorithm/C"),
    (algorithm("auto", **{"n/a": 61}), "/algorithm/n~1a"),
]
SPACES: list[Case] = [
    (grid({}), "/search/space"),
    (grid({"x": [1]}), "/search/space/x/0"),
    (algorithm("logistic") | grid({"n_rounds": [1, 2]}), "/search/space/n_rounds/0"),
    (algorithm("pauc_svm") | grid({"fpr_max": [0.1]}), "/search/space/fpr_max"),
    *(
        (grid({"n_rounds": values}), "/search/space/n_rounds")
        for values in ([], list(range(1, 102)))
    ),
    (grid({"max_bins": list(range(2, 90)), "max_depth": list(range(1, 51))}), "/search"),
    (grid({"n_rounds": [5, 6, 5]}), "/search/space/n_rounds/2"),
    (algorithm("auc_svm") | grid({"C": [1, 2, 1]}), "/search/space/C/2"),
    *(
        (grid({"n_rounds": [5, wrong]}), "/search/space/n_rounds/1")
        for wrong in NOT_A_NUMBER_OF_ROUNDS
    ),
    *((algorithm("pauc_svm") | grid({"C": [5, wrong]}), "/search/space/C/1") for wrong in NOT_A_C),
    *(
        (random(wrong), f"/search/space/subsample{pointer}")
        for wrong, pointer in (
            (0.5, ""),
            ({"low": 0.1}, "/high"),
            ({"low": 0.1, "high": 10**400}, "/high"),
            ({"low": 0.5, "high": 0.1}, ""),
            ({"low": 0.1, "high": 1, "log": 1}, "/log"),
            ({"low": -1, "high": 1}, "/low"),
            ({"low": 0.1, "high": 1, "step": 2}, "/step"),
        )
    ),
    (algorithm("pauc_svm", C=1) | grid({"C": [1, 2]}), "/algorithm/C"),
    (algorithm(early_stopping_rounds=5) | grid({"n_rounds": [5, 6]}), "/search/space/n_rounds"),
]
BY_CODE = {
    "invalid": FORM + OBJECTIVES + VALIDATIONS + SEARCHES,
    "unknown_algorithm": UNKNOWN,
    "unsupported": METHODS,
    "invalid_parameter": PARAMETERS + SPACES,
}


@pytest.mark.parametrize(
    ("code", "address"),
    [
        *((code, "/v1/jobs") for code in BY_CODE),
        ("unsupported", "/v1/jobs/validate"),
        *rest(*((code, "/v1/jobs/validate") for code in BY_CODE if code != "unsupported")),
    ],
)
def test_jobs(client: httpx.Client, dataset_id: str, code: str, address: str) -> None:
    for changes, pointer in BY_CODE[code]:
        body = json.dumps(job(dataset_id, **changes))  # escapes the lone surrogate
        problem = refused(client.post(address, content=body, headers=JSON), 422, code)
        assert problem["errors"][0]["pointer"] == pointer, changes


def test_every_error_of_a_job_is_listed(client: httpx.Client, dataset_id: str) -> None:
    body = job(dataset_id, **algorithm(n_rounds=0, rounds=1, max_bins=1))
    problem = refused(client.post("/v1/jobs", json=body), 422, "invalid_parameter")
    pointers = [error["pointer"] for error in problem["errors"]]
    assert pointers == ["/algorithm/n_rounds", "/algorithm/rounds", "/algorithm/max_bins"]


def test_a_dataset_that_is_not_there(client: httpx.Client, dataset_id: str) -> None:
    for bad in ("ds_" + "0" * 32, "ds_x", "x" * 255, "model"):
        problem = refused(client.post("/v1/jobs", json=job(bad)), 404, "not_found")
        assert problem["errors"][0]["pointer"] == "/dataset_id"
        body = job(dataset_id, **validation("dataset", dataset_id=bad))
        problem = refused(client.post("/v1/jobs", json=body), 404, "not_found")
        assert problem["errors"][0]["pointer"] == "/validation/dataset_id"


def test_a_body_that_is_no_job(client: httpx.Client) -> None:
    """Bad specifications of jobs. tests/app/http/test_api_hostile.py sends other bad bodies to every route."""
    for body in (b"{", b'{"a": nope}', b'{"a": 1} x'):
        refused(client.post("/v1/jobs", content=body, headers=JSON), 400, "malformed_json")
    for body in (b"[]", b"3", b'"job"'):
        refused(client.post("/v1/jobs", content=body, headers=JSON), 422, "invalid")


def test_long_and_odd_idempotency_keys(client: httpx.Client, dataset_id: str) -> None:
    for key in ("", "x" * 256, "tab\there"):
        answer = client.post("/v1/jobs", json=job(dataset_id), headers={"Idempotency-Key": key})
        assert answer.status_code == 422
