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

Case = tuple[dict[str, Any], str, str]


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
    ({"algorithm": "rankboost"}, "/algorithm", 'an object, for example {"name": "rankboost"}'),
    ({"validation": "holdout"}, "/validation", '{"method": "holdout"}'),
    ({"objective": "auc"}, "/objective", '{"metric": "auc"}'),
    ({"search": "grid"}, "/search", '{"method": "grid"}'),
    ({"search": 3}, "/search", "must be an object, got 3"),
    ({"label_noise": 0.5}, "/label_noise", "label_noise must be less than 0.5, got 0.5"),
    ({"seed": -1}, "/seed", "seed must be greater than or equal to 0, got -1"),
    ({"seed": 1.5}, "/seed", "1.5"),
    ({"seed": 2**64}, "/seed", "seed must be less than or equal to"),
    ({"name": "Churn!"}, "/name", "'Churn!'"),
    ({"name": "mdl_" + "0" * 32}, "/name", "not look like an id"),
    ({"timeout_seconds": 0}, "/timeout_seconds", "must be greater than 0, got 0"),
    ({"tags": {"a": 1}}, "/tags/a", "a must be a valid string, got 1"),
    ({"tags": {"a": "\0"}}, "/tags/a", "a"),
    ({"tags": {"a": "\ud800"}}, "/tags/a", "a must be a valid Unicode string"),
    ({"\ud800": 1}, "", "must be a valid Unicode string"),
    ({"surprise": 1}, "/surprise", "surprise is not a known field"),
    ({"dataset_id": 7}, "/dataset_id", "dataset_id must be a valid string, got 7"),
    ({"priority": 1000}, "/priority", "1000"),
    ({"baselines": "some"}, "/baselines", "baselines must be"),
]
OBJECTIVES: list[Case] = [
    (objective("f1"), "/objective", "'f1'"),
    (
        objective("pauc", fpr_min=0.1, fpr_max=0.05),
        "/objective/fpr_max",
        "fpr_max must be greater than fpr_min (0.1), got 0.05",
    ),
    (objective("pauc", fpr_min=0.02, fpr_max=0.02 + 1e-12), "/objective/fpr_max", "fpr_max"),
    (objective("pauc"), "/objective/fpr_max", "fpr_max is required"),
    (objective("pauc", fpr_max=2), "/objective/fpr_max", "less than or equal to 1, got 2"),
    (objective("tpr"), "/objective/fpr", "fpr is required"),
    (objective("tpr", fpr=0), "/objective/fpr", "fpr must be greater than 0, got 0"),
    (objective("tpr", fpr=1.01), "/objective/fpr", "less than or equal to 1, got 1.01"),
    (objective("tpr", fpr=1e-10), "/objective/fpr", "to 1, got 1e-10"),
    (objective("tpr", fpr=0.1, fpr_max=0.2), "/objective/fpr_max", "fpr_max"),
    (objective("average_precision", share=0.1), "/objective/share", "share is not a known field"),
    (objective("precision"), "/objective", "exactly one of count and share, got none"),
    (objective("precision", count=1, share=0.1), "/objective", "count and share, got both"),
    (objective("precision", count=0), "/objective/count", "greater than or equal to 1, got 0"),
    (objective("precision", count=1.5), "/objective/count", "count must be a whole number"),
    (objective("precision", count=10**400), "/objective/count", "count must"),
    (objective("precision", count=2**53), "/objective/count", "the number of validation rows"),
    (objective("precision", share=0), "/objective/share", "or equal to 0.000000001, got 0"),
    (objective("precision", share=1.5), "/objective/share", "less than or equal to 1, got 1.5"),
    (objective("lift"), "/objective/share", "share is required"),
    (objective("lift", share=0.1, count=5), "/objective/count", "count is not a known field"),
    (objective("precision_at_recall"), "/objective/recall", "recall is required"),
    (
        objective("precision_at_recall", recall=0),
        "/objective/recall",
        "or equal to 0.000000001, got 0",
    ),
    (objective("ndcg", count=0), "/objective/count", "greater than or equal to 1, got 0"),
    (
        objective("ndcg", count=5) | validation("none"),
        "/objective/count",
        "objective.count is a number of validation rows, but there are none; omit it",
    ),
    (
        objective("precision", count=5) | validation("none"),
        "/objective/count",
        "there are none; set share",
    ),
]
VALIDATIONS: list[Case] = [
    (folds(folds=1), "/validation/folds", "folds must be greater than or equal to 2, got 1"),
    (folds(folds=21), "/validation/folds", "folds must be less than or equal to 20, got 21"),
    (folds(repeats=0), "/validation/repeats", "repeats must be greater than or equal to 1, got 0"),
    (
        folds(repeats=2, time_column="a"),
        "/validation/repeats",
        "repeats must be 1 with a time_column",
    ),
    (folds(time_column="nowhere"), "/validation/time_column", "has no column 'nowhere'"),
    (folds(time_column="left"), "/validation/time_column", "'left' is the label, of type"),
    (folds(fraction=0.2), "/validation/fraction", "fraction is not a known field"),
    (validation("holdout", time_column=7), "/validation/time_column", "must be a valid string"),
    (validation("holdout", fraction=1.0), "/validation/fraction", "must be less than 1, got 1.0"),
    (validation("dataset"), "/validation/dataset_id", "dataset_id is required"),
    ({"validation": 3}, "/validation", "validation"),
    (validation(3), "/validation", "3"),
    ({"validation": {}}, "/validation", "'method'"),
]
SEARCHES: list[Case] = [
    ({"search": {"method": "grid"}}, "/search/space", "space is required"),
    ({"search": {"method": 3}}, "/search", "3"),
    ({"search": {}}, "/search", "'method'"),
    ({"search": []}, "/search", "search"),
    (grid([]), "/search/space", "space"),
    (grid({"n_rounds": 5}), "/search/space/n_rounds", "list"),
    (grid({"n_rounds": [5, 6]}, fraction=1), "/search/fraction", "must be less than 1, got 1"),
    (grid({"n_rounds": [5]}, folds=1), "/search/folds", "greater than or equal to 2, got 1"),
    (
        grid({"n_rounds": [5]}, n_candidates=3),
        "/search/n_candidates",
        "n_candidates is not a known field",
    ),
    (
        grid({"max_bins": list(range(2, 52)), "max_depth": [3, 4]}, folds=5) | folds(folds=20),
        "/search",
        "a job can have at most 10,000 fits; this one has 10,500",
    ),
    (
        {"search": {"method": "halving", "space": {"subsample": [0.5]}, "n_candidates": 1001}},
        "/search/n_candidates",
        "less than or equal to 1000, got 1001",
    ),
    (
        algorithm("auto") | grid({"n_rounds": [5, 6]}),
        "/search",
        "auto has a built-in search: omit search",
    ),
]
UNKNOWN: list[Case] = [
    (algorithm("boostrank"), "/algorithm/name", "'boostrank'"),
    ({"algorithm": {}}, "/algorithm/name", "must be one of"),
    (algorithm(3), "/algorithm/name", "got 3"),
    (algorithm("x") | grid({"n_rounds": [5, 6]}), "/algorithm/name", "'x'"),
]
METHODS: list[Case] = [
    (validation("luck"), "/validation/method", "holdout, cross_validation, dataset, none, got"),
    (
        {"search": {"method": "luck"}},
        "/search/method",
        "search.method must be one of grid, random, halving, got 'luck'",
    ),
]
PARAMETERS: list[Case] = [
    (algorithm(rounds=3), "/algorithm/rounds", "no parameter 'rounds'"),
    (algorithm(n_rounds=0), "/algorithm/n_rounds", "n_rounds must be at least 1, got 0"),
    (algorithm(n_rounds="many"), "/algorithm/n_rounds", "must be an integer or None, got 'many'"),
    (algorithm(learning_rate={"a": []}), "/algorithm/learning_rate", "must be a finite number"),
    (algorithm(weak_ranker="forest"), "/algorithm/weak_ranker", "'forest'"),
    (algorithm(smoothing=2), "/algorithm", "must be at most 1 unless weak_ranker is 'tree'"),
    (algorithm(**{"\ud800": 1}), "/algorithm/\ud800", "no parameter"),
    (algorithm("treerank", order="validation"), "/algorithm", "unless pruning holds out rows"),
    (
        algorithm("auc_svm", feature_map="fourier", n_components=10**9),
        "/algorithm/n_components",
        "n_components must be at most 4096",
    ),
    (algorithm("logistic", C=10**400), "/algorithm/C", "C must be a finite number"),
    (algorithm(fpr_max=0.1), "/algorithm/fpr_max", "is set by the job's 'objective'"),
    (
        algorithm("komori_eguchi_boost", fpr_min=0.1),
        "/algorithm/fpr_min",
        "is set by the job's 'objective'",
    ),
    (algorithm(random_state=1), "/algorithm/random_state", "is set by the job's 'seed'"),
    (
        algorithm("sampled_martirank", noise_rate=0.1),
        "/algorithm/noise_rate",
        "is set by the job's 'label_noise'",
    ),
    (
        algorithm("auto", budget_seconds=61) | {"timeout_seconds": 60},
        "/algorithm/budget_seconds",
        "must be a number above 0 and at most 60, got 61",
    ),
    (
        algorithm("auto", budget_seconds="15,5"),
        "/algorithm/budget_seconds",
        "got '15,5'. Write 15.5, with a decimal point instead of a comma",
    ),
    (
        algorithm("logistic", C="1.234,5"),
        "/algorithm/C",
        "got '1.234,5'. Write 1234.5, with a decimal point and without thousands separators",
    ),
    (algorithm("auto", **{"n/a": 61}), "/algorithm/n~1a", "auto has no parameter 'n/a'"),
]
SPACES: list[Case] = [
    (grid({}), "/search/space", "space must contain a list"),
    (grid({"x": [1]}), "/search/space/x/0", "has no parameter 'x'"),
    (
        algorithm("logistic") | grid({"n_rounds": [1, 2]}),
        "/search/space/n_rounds/0",
        "has no parameter 'n_rounds'",
    ),
    (
        algorithm("pauc_svm") | grid({"fpr_max": [0.1]}),
        "/search/space/fpr_max",
        "fpr_max is set by the job's 'objective'; omit it from the search",
    ),
    *(
        (grid({"n_rounds": values}), "/search/space/n_rounds", f"1 to 100 values, got {n}")
        for values, n in (([], 0), (list(range(1, 102)), 101))
    ),
    (
        grid({"max_bins": list(range(2, 90)), "max_depth": list(range(1, 51))}),
        "/search",
        "a grid must have at most 1000 combinations, got 4400",
    ),
    (
        grid({"n_rounds": [5, 6, 5]}),
        "/search/space/n_rounds/2",
        "n_rounds must have unique values; 5 occurs twice",
    ),
    (
        algorithm("auc_svm") | grid({"C": [1, 2, 1]}),
        "/search/space/C/2",
        "C must have unique values; 1 occurs twice",
    ),
    *(
        (grid({"n_rounds": [5, wrong]}), "/search/space/n_rounds/1", "n_rounds must be")
        for wrong in NOT_A_NUMBER_OF_ROUNDS
    ),
    *(
        (algorithm("pauc_svm") | grid({"C": [5, wrong]}), "/search/space/C/1", "C must be")
        for wrong in NOT_A_C
    ),
    *(
        (random(wrong), f"/search/space/subsample{pointer}", words)
        for wrong, pointer, words in (
            (0.5, "", "subsample must be a list of values or a range, got 0.5"),
            ({"low": 0.1}, "/high", "high must be a finite number, got None"),
            ({"low": 0.1, "high": 10**400}, "/high", "high must be a finite number"),
            ({"low": 0.5, "high": 0.1}, "", "greater than low (0.5), got 0.1"),
            ({"low": 0.1, "high": 1, "log": 1}, "/log", "log must be true or false, got 1"),
            ({"low": -1, "high": 1}, "/low", "subsample must be"),
            ({"low": 0.1, "high": 1, "step": 2}, "/step", "a range has low, high"),
        )
    ),
    (
        algorithm("pauc_svm", C=1) | grid({"C": [1, 2]}),
        "/algorithm/C",
        "C is set by the search",
    ),
    (
        algorithm(early_stopping_rounds=5) | grid({"n_rounds": [5, 6]}),
        "/search/space/n_rounds",
        "early_stopping_rounds must be None if n_rounds is searched",
    ),
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
    for changes, pointer, words in BY_CODE[code]:
        body = json.dumps(job(dataset_id, **changes))  # escapes the lone surrogate
        problem = refused(client.post(address, content=body, headers=JSON), 422, code, words)
        assert problem["errors"][0]["pointer"] == pointer, changes


def test_every_error_of_a_job_is_listed(client: httpx.Client, dataset_id: str) -> None:
    body = job(dataset_id, **algorithm(n_rounds=0, rounds=1, max_bins=1))
    problem = refused(client.post("/v1/jobs", json=body), 422, "invalid_parameter")
    pointers = [error["pointer"] for error in problem["errors"]]
    assert pointers == ["/algorithm/n_rounds", "/algorithm/rounds", "/algorithm/max_bins"]


def test_a_dataset_that_is_not_there(client: httpx.Client, dataset_id: str) -> None:
    for bad in ("ds_" + "0" * 32, "ds_x", "x" * 255, "model"):
        problem = refused(
            client.post("/v1/jobs", json=job(bad)), 404, "not_found", "there is no dataset"
        )
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
