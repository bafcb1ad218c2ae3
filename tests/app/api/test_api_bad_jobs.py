"""Bad jobs: each a problem with code, rule and value, and nothing half-made is left."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from live_service import Service
from refusals import job, refused

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def grid(space: Any) -> dict[str, Any]:
    return {"method": "grid", "space": space}


@pytest.fixture
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


@pytest.mark.parametrize(
    ("changes", "code", "pointer", "words"),
    [
        (
            {"algorithm": {"name": "boostrank"}},
            "unknown_algorithm",
            "/algorithm/name",
            ["rankboost", "'boostrank'"],
        ),
        ({"algorithm": {}}, "unknown_algorithm", "/algorithm/name", ["must be one of"]),
        ({"algorithm": {"name": 3}}, "unknown_algorithm", "/algorithm/name", ["got 3"]),
        ({"algorithm": "rankboost"}, "invalid", "/algorithm", ["'rankboost'"]),
        (
            {"algorithm": {"name": "rankboost", "rounds": 3}},
            "invalid_parameter",
            "/algorithm/rounds",
            ["no parameter 'rounds'", "n_rounds", "max_bins"],
        ),
        (
            {"algorithm": {"name": "rankboost", "n_rounds": 0}},
            "invalid_parameter",
            "/algorithm/n_rounds",
            ["n_rounds must be at least 1, got 0"],
        ),
        (
            {"algorithm": {"name": "rankboost", "n_rounds": "many"}},
            "invalid_parameter",
            "/algorithm/n_rounds",
            ["n_rounds must be an integer, got 'many'"],
        ),
        (
            {"algorithm": {"name": "rankboost", "learning_rate": {"a": []}}},
            "invalid_parameter",
            "/algorithm/learning_rate",
            ["must be a finite number"],
        ),
        (
            {"algorithm": {"name": "rankboost", "fpr_max": 0.1}},
            "invalid_parameter",
            "/algorithm/fpr_max",
            ["comes from the job's 'objective'"],
        ),
        (
            {"algorithm": {"name": "rankboost", "random_state": 1}},
            "invalid_parameter",
            "/algorithm/random_state",
            ["comes from the job's 'seed'"],
        ),
        (
            {"algorithm": {"name": "sampled_martirank", "noise_rate": 0.1}},
            "invalid_parameter",
            "/algorithm/noise_rate",
            ["comes from the job's 'label_noise'"],
        ),
        (
            {"label_noise": 0.5},
            "invalid",
            "/label_noise",
            ["label_noise must be less than 0.5, got 0.5"],
        ),
        (
            {"objective": {"metric": "pauc", "fpr_min": 0.1, "fpr_max": 0.05}},
            "invalid",
            "/objective/fpr_max",
            ["fpr_max must be greater than fpr_min (0.1), got 0.05"],
        ),
        (
            {"objective": {"metric": "pauc"}},
            "invalid",
            "/objective/fpr_max",
            ["fpr_max is required"],
        ),
        ({"objective": {"metric": "tpr"}}, "invalid", "/objective/fpr", ["fpr is required"]),
        (
            {"objective": {"metric": "tpr", "fpr": 0}},
            "invalid",
            "/objective/fpr",
            ["fpr must be greater than 0, got 0"],
        ),
        (
            {"objective": {"metric": "tpr", "fpr": 1.01}},
            "invalid",
            "/objective/fpr",
            ["fpr must be less than or equal to 1, got 1.01"],
        ),
        (
            {"objective": {"metric": "tpr", "fpr": 1e-10}},
            "invalid",
            "/objective/fpr",
            ["fpr must be from", "to 1, got 1e-10"],
        ),
        (
            {"objective": {"metric": "tpr", "fpr": 0.1, "fpr_max": 0.2}},
            "invalid",
            "/objective/fpr_max",
            ["fpr_max"],
        ),
        ({"objective": {"metric": "f1"}}, "invalid", "/objective", ["'f1'", "'auc'"]),
        (
            {"objective": {"metric": "pauc", "fpr_max": 2}},
            "invalid",
            "/objective/fpr_max",
            ["fpr_max must be less than or equal to 1, got 2"],
        ),
        (
            {"validation": {"method": "luck"}},
            "unsupported",
            "/validation/method",
            ["holdout, cross_validation, dataset, none", "'luck'"],
        ),
        *[
            (
                {"validation": {"method": "cross_validation"} | wrong},
                "invalid",
                f"/validation/{next(iter(wrong))}",
                words,
            )
            for wrong, words in (
                ({"folds": 1}, ["folds must be greater than or equal to 2, got 1"]),
                ({"folds": 21}, ["folds must be less than or equal to 20, got 21"]),
                ({"repeats": 0}, ["repeats must be greater than or equal to 1, got 0"]),
                ({"repeats": 2, "time_column": "a"}, ["repeats must be 1 with a time_column"]),
                ({"time_column": "nowhere"}, ["has no column 'nowhere'"]),
                ({"time_column": "left"}, ["'left' is the label, of type"]),
                ({"fraction": 0.2}, ["fraction is not known here"]),
            )
        ],
        (
            {"validation": {"method": "holdout", "time_column": 7}},
            "invalid",
            "/validation/time_column",
            ["must be a valid string"],
        ),
        ({"controls": "some"}, "invalid", "/controls", ["controls must be"]),
        (
            {"validation": {"method": "holdout", "fraction": 1.0}},
            "invalid",
            "/validation/fraction",
            ["fraction must be less than 1, got 1.0"],
        ),
        (
            {"validation": {"method": "dataset"}},
            "invalid",
            "/validation/dataset_id",
            ["dataset_id is required"],
        ),
        (
            {"search": {"method": "luck"}},
            "unsupported",
            "/search/method",
            ["search.method must be one of grid, random, halving, got 'luck'"],
        ),
        ({"search": {"method": "grid"}}, "invalid", "/search/space", ["space is required"]),
        ({"search": {}}, "invalid", "/search", ["'method'"]),
        ({"search": []}, "invalid", "/search", ["search"]),
        (
            {"search": grid({"n_rounds": [5, 6]}) | {"fraction": 1}},
            "invalid",
            "/search/fraction",
            ["fraction must be less than 1, got 1"],
        ),
        ({"search": grid({"n_rounds": 5})}, "invalid", "/search/space/n_rounds", ["list"]),
        ({"search": grid([])}, "invalid", "/search/space", ["space"]),
        ({"search": grid({})}, "invalid_parameter", "/search/space", ["space must hold a list"]),
        (
            {"search": grid({"x": [1]})},
            "invalid_parameter",
            "/search/space/x/0",
            ["has no parameter 'x'"],
        ),
        (
            {"search": grid({"fpr_max": [0.1]}), "algorithm": {"name": "pauc_svm"}},
            "invalid_parameter",
            "/search/space/fpr_max",
            ["fpr_max comes from the job's 'objective'; leave it out of the search"],
        ),
        (
            {"search": grid({"n_rounds": []})},
            "invalid_parameter",
            "/search/space/n_rounds",
            ["must hold 1 to 100 values, got 0"],
        ),
        (
            {"search": grid({"n_rounds": list(range(1, 102))})},
            "invalid_parameter",
            "/search/space/n_rounds",
            ["must hold 1 to 100 values, got 101"],
        ),
        (
            {"search": grid({"max_bins": list(range(2, 90)), "max_depth": list(range(1, 51))})},
            "invalid_parameter",
            "/search",
            ["a grid must have at most 1000 combinations, got 4400"],
        ),
        (
            {"search": grid({"n_rounds": [5]}) | {"folds": 1}},
            "invalid",
            "/search/folds",
            ["folds must be greater than or equal to 2, got 1"],
        ),
        (
            {"search": grid({"n_rounds": [5]}) | {"n_candidates": 3}},
            "invalid",
            "/search/n_candidates",
            ["n_candidates is not known here"],
        ),
        *[
            (
                {"search": {"method": "random", "space": {"subsample": wrong}}},
                "invalid_parameter",
                f"/search/space/subsample{pointer}",
                words,
            )
            for wrong, pointer, words in (
                (0.5, "", ["subsample must be a list of values or a range, got 0.5"]),
                ({"low": 0.1}, "/high", ["high must be a finite number, got None"]),
                ({"low": 0.1, "high": 10**400}, "/high", ["high must be a finite number"]),
                ({"low": 0.5, "high": 0.1}, "", ["greater than low (0.5), got 0.1"]),
                ({"low": 0.1, "high": 1, "log": 1}, "/log", ["log must be true or false, got 1"]),
                ({"low": -1, "high": 1}, "/low", ["subsample must be"]),
                ({"low": 0.1, "high": 1, "step": 2}, "/step", ["a range has low, high"]),
            )
        ],
        (
            {"search": {"method": "halving", "space": {"subsample": [0.5]}, "n_candidates": 1001}},
            "invalid",
            "/search/n_candidates",
            ["less than or equal to 1000, got 1001"],
        ),
        (
            {"search": grid({"n_rounds": [5, 6, 5]})},
            "invalid_parameter",
            "/search/space/n_rounds/2",
            ["must hold each value once, 5 comes again"],
        ),
        *[
            (
                {"search": grid({"n_rounds": [5, wrong]})},
                "invalid_parameter",
                "/search/space/n_rounds/1",
                ["n_rounds must be"],
            )
            for wrong in (0, -1, 100_001, 10**400, 1.5, True, None, "6", [6], {"a": 6}, {})
        ],
        (
            {"algorithm": {"name": "logistic", "C": 10**400}},
            "invalid_parameter",
            "/algorithm/C",
            ["C must be a finite number"],
        ),
        *[
            (
                {"algorithm": {"name": "pauc_svm"}, "search": grid({"C": [5, wrong]})},
                "invalid_parameter",
                "/search/space/C/1",
                ["C must be"],
            )
            for wrong in (0, -1, 1e7, 10**400, True, None, "auto", "6", [6], {})
        ],
        (
            {"algorithm": {"name": "auc_svm"}, "search": grid({"C": [1, 2, 1]})},
            "invalid_parameter",
            "/search/space/C/2",
            ["must hold each value once, 1 comes again"],
        ),
        (
            {"algorithm": {"name": "logistic"}, "search": grid({"n_rounds": [1, 2]})},
            "invalid_parameter",
            "/search/space/n_rounds/0",
            ["has no parameter 'n_rounds'"],
        ),
        (
            {"algorithm": {"name": "pauc_svm", "C": 1}, "search": grid({"C": [1, 2]})},
            "invalid_parameter",
            "/algorithm/C",
            ["C comes from the search"],
        ),
        (
            {
                "algorithm": {"name": "rankboost", "n_rounds": 5},
                "search": grid({"n_rounds": [5, 6]}),
            },
            "invalid_parameter",
            "/algorithm/n_rounds",
            ["n_rounds comes from the search"],
        ),
        (
            {
                "algorithm": {"name": "rankboost", "early_stopping_rounds": 5},
                "search": grid({"n_rounds": [5, 6]}),
            },
            "invalid_parameter",
            "/search/space/n_rounds",
            ["early_stopping_rounds must be None where n_rounds is searched"],
        ),
        (
            {"algorithm": {"name": "x"}, "search": grid({"n_rounds": [5, 6]})},
            "unknown_algorithm",
            "/algorithm/name",
            ["'x'"],
        ),
        ({"seed": -1}, "invalid", "/seed", ["seed must be greater than or equal to 0, got -1"]),
        ({"seed": 1.5}, "invalid", "/seed", ["seed", "1.5"]),
        ({"seed": 2**64}, "invalid", "/seed", ["seed must be less than or equal to"]),
        ({"name": "Churn!"}, "invalid", "/name", ["name", "'Churn!'"]),
        ({"name": "mdl_" + "0" * 32}, "invalid", "/name", ["not look like an id"]),
        ({"timeout_seconds": 0}, "invalid", "/timeout_seconds", ["must be greater than 0, got 0"]),
        ({"tags": {"a": 1}}, "invalid", "/tags/a", ["a must be a valid string, got 1"]),
        ({"tags": {"a": "\0"}}, "invalid", "/tags/a", ["a"]),
        ({"tags": {"a": "\ud800"}}, "invalid", "/tags/a", ["a must be valid Unicode text"]),
        ({"\ud800": 1}, "invalid", "", ["must be valid Unicode text"]),
        (
            {"algorithm": {"name": "rankboost", "\ud800": 1}},
            "invalid_parameter",
            "/algorithm/\ud800",
            ["no parameter"],
        ),
        ({"surprise": 1}, "invalid", "/surprise", ["surprise is not known here"]),
        ({"dataset_id": 7}, "invalid", "/dataset_id", ["dataset_id must be a valid string, got 7"]),
        ({"priority": 1000}, "invalid", "/priority", ["priority", "1000"]),
    ],
)
def test_jobs(
    client: httpx.Client,
    dataset_id: str,
    changes: dict[str, Any],
    code: str,
    pointer: str,
    words: list[str],
) -> None:
    for address in ("/v1/jobs", "/v1/jobs?validate=true"):
        body = json.dumps(job(dataset_id, **changes))  # escapes the lone surrogate
        answer = client.post(address, content=body, headers={"Content-Type": "application/json"})
        problem = refused(answer, 422, code, *words)
        assert problem["errors"][0]["pointer"] == pointer


def test_every_fault_of_a_job_is_listed(client: httpx.Client, dataset_id: str) -> None:
    body = job(
        dataset_id, algorithm={"name": "rankboost", "n_rounds": 0, "rounds": 1, "max_bins": 1}
    )
    problem = refused(client.post("/v1/jobs", json=body), 422, "invalid_parameter")
    pointers = [error["pointer"] for error in problem["errors"]]
    assert pointers == ["/algorithm/n_rounds", "/algorithm/rounds", "/algorithm/max_bins"]


@pytest.mark.parametrize("bad", ["ds_" + "0" * 32, "ds_x", "x" * 255, "model"])
def test_a_dataset_that_is_not_there(client: httpx.Client, dataset_id: str, bad: str) -> None:
    problem = refused(
        client.post("/v1/jobs", json=job(bad)), 404, "not_found", "there is no dataset"
    )
    assert problem["errors"][0]["pointer"] == "/dataset_id"
    body = job(dataset_id, validation={"method": "dataset", "dataset_id": bad})
    problem = refused(client.post("/v1/jobs", json=body), 404, "not_found")
    assert problem["errors"][0]["pointer"] == "/validation/dataset_id"


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b'{"a": nope}',
        b"\xff\xfe",
        b'{"a": 1} x',
        b"[" * 100_000,
        b'{"dataset_id": "\xff"}',
    ],
)
def test_malformed_json(client: httpx.Client, body: bytes) -> None:
    answer = client.post(
        "/v1/jobs", content=body[:9000], headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in {400, 422}
    refused(answer, answer.status_code, answer.json()["code"])
    assert answer.status_code == 422 or answer.json()["code"] in {"malformed_json", "malformed"}


@pytest.mark.parametrize("body", ["[]", "3", "null", '"job"'])
def test_json_of_another_shape(client: httpx.Client, body: str) -> None:
    answer = client.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    refused(answer, 422, "invalid")


def test_long_and_odd_idempotency_keys(client: httpx.Client, dataset_id: str) -> None:
    for key in ("", "x" * 256, "tab\there"):
        answer = client.post("/v1/jobs", json=job(dataset_id), headers={"Idempotency-Key": key})
        assert answer.status_code == 422
