"""Bad jobs: each a problem with code, rule and value, and nothing half-made is left."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from live_service import Service
from refusals import job, refused

pytestmark = pytest.mark.usefixtures("nothing_is_left")


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
            ["n_rounds must be an integer or None, got 'many'"],
        ),
        (
            {"algorithm": {"name": "rankboost", "learning_rate": {"a": []}}},
            "invalid_parameter",
            "/algorithm/learning_rate",
            ["must be a finite number"],
        ),
        (
            {"algorithm": {"name": "rankboost", "weak_ranker": "forest"}},
            "invalid_parameter",
            "/algorithm/weak_ranker",
            ["'stump'", "'forest'"],
        ),
        (
            {"algorithm": {"name": "rankboost", "push": 2}},
            "invalid_parameter",
            "/algorithm",
            ["push must be 1 unless weak_ranker is 'tree'"],
        ),
        (
            {"algorithm": {"name": "treerank", "order": "validation"}},
            "invalid_parameter",
            "/algorithm",
            ["unless pruning holds rows out"],
        ),
        (
            {"algorithm": {"name": "auc_svm", "feature_map": "fourier", "n_components": 10**9}},
            "invalid_parameter",
            "/algorithm/n_components",
            ["n_components must be at most 4096"],
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
            {
                "algorithm": {"name": "x"},
                "search": {"method": "grid", "space": {"n_rounds": [5, 6]}},
            },
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
