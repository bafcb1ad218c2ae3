"""Jobs with monotone constraints: refused with the reason, and proven on the model that they make."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from core.base.monotone import check_monotone
from core.registry import ALGORITHMS
from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.app.training_jobs import HOLDOUT, Enough, noisy, payload, run, table
from tests.app.workbench import Workbench
from tests.long_form import long_form, rest
from tests.sentences import Sentences

CONSTRAINTS = {"a": "decreasing", "b": "increasing"}
ABLE = [name for name, kind in ALGORITHMS.items() if "monotone" in kind().get_params()]


@pytest.mark.parametrize(
    "algorithm",
    [
        {"name": "rankboost", "weak_ranker": "tree", "n_rounds": 10},
        *rest({"name": "logistic"}),
    ],
    ids=lambda algorithm: algorithm["name"],
)
def test_the_proof_is_in_the_model_s_record(
    service: Service, algorithm: dict[str, Any], sentences: Sentences
) -> None:
    client = service.client(service.key())
    dataset = service.upload(client, table(), label="y", positive="1")
    job = service.train(client, dataset, algorithm=algorithm | {"monotone": CONSTRAINTS})
    assert job["state"] == "succeeded", job
    model = client.get(f"/v1/models/{job['output']['id']}").json()
    proof = model["monotone"]
    assert proof["verdict"] == "proven"
    assert proof["columns"] == CONSTRAINTS
    assert proof["compared"] > 0
    sentences(proof["missing"])
    assert proof["violation"] is None
    assert model["algorithm"]["monotone"] == CONSTRAINTS
    report = client.get(f"/v1/models/{job['output']['id']}/report", headers={"Accept": "text/html"})
    assert "a: decreasing; b: increasing" in report.text
    assert "proven" in report.text

    free = service.train(client, dataset, algorithm=algorithm, name="free")
    assert client.get(f"/v1/models/{free['output']['id']}").json()["monotone"] is None


@long_form
def test_auto_keeps_constraints_and_says_what_it_left_out(tmp_path: Any) -> None:
    algorithm = {"name": "auto", "parameters": {"budget_seconds": 600.0, "monotone": CONSTRAINTS}}
    job = payload(tmp_path, noisy(200), algorithm=algorithm, validation=HOLDOUT)
    found = run(job, Enough(15))
    assert found["monotone"]["verdict"] == "proven"
    assert found["monotone"]["columns"] == CONSTRAINTS
    members = found["leaderboard"]["members"]
    assert all(member["parameters"]["monotone"] == CONSTRAINTS for member in members)
    tried = {row["algorithm"] for row in found["leaderboard"]["candidates"]}
    assert tried <= {*ABLE, "rank_average"}
    (note,) = [each for each in found["warnings"] if "monotone" in each]
    left_out = note.partition(": ")[2].split(", ")
    assert "martirank" in left_out
    assert not tried & {*left_out}


def test_a_search_keeps_constraints(bench: Workbench) -> None:
    dataset = bench.ready(table())
    job = bench.work_on(
        dataset,
        name="m",
        algorithm={"name": "logitboost", "min_samples_leaf": 3, "monotone": CONSTRAINTS},
        search={"method": "grid", "space": {"n_rounds": [3, 6]}},
    )
    model = bench.model(job)
    assert model.monotone is not None
    assert model.monotone["verdict"] == "proven"
    assert check_monotone(bench.ranker(model)).as_json() == model.monotone


@pytest.fixture(scope="module")
def words(start: Any) -> tuple[Service, str]:
    """A service with a dataset of numbers and a column of words."""
    running: Service = start()
    lines = ["a,b,grade,y", *(f"{k % 7},{k % 5},{'xyz'[k % 3]},{k % 2}" for k in range(60)), ""]
    return running, running.upload(
        running.client(running.key()), "\n".join(lines), label="y", positive="1"
    )


def test_refusals(words: tuple[Service, str], sentences: Sentences) -> None:
    for algorithm, pointer in (
        ({"name": "rankboost", "monotone": {"income": "decreasing"}}, "/monotone"),
        ({"name": "auto", "monotone": {"income": "decreasing"}}, "/monotone"),
        ({"name": "logistic", "monotone": {"grade": "increasing"}}, "/monotone"),
        ({"name": "logitboost", "monotone": {"a": "down"}}, "/monotone"),
        ({"name": "auto", "monotone": {"a": "down"}}, "/monotone"),
        ({"name": "logitboost", "monotone": ["a"]}, "/monotone"),
        ({"name": "logitboost", "monotone": "a"}, "/monotone"),
        ({"name": "logitboost", "monotone": {"a": 1}}, "/monotone"),
        ({"name": "logitboost", "monotone": {"0": "increasing"}}, "/monotone"),
        ({"name": "auto", "monotone": 3}, "/monotone"),
        ({"name": "martirank", "monotone": {"a": "increasing"}}, "/monotone"),
        ({"name": "aucboost", "weak_ranker": "logistic", "monotone": {"a": "increasing"}}, ""),
    ):
        running, dataset = words
        client = running.client(running.key())
        problem = refused(
            client.post("/v1/jobs", json={"dataset_id": dataset, "algorithm": algorithm}),
            422,
            "invalid_parameter",
        )
        sentences(problem["errors"][0])
        assert problem["errors"][0]["pointer"] == f"/algorithm{pointer}"


def test_constraints_are_not_searched(words: tuple[Service, str]) -> None:
    running, dataset = words
    client: httpx.Client = running.client(running.key())
    search = {"method": "grid", "space": {"monotone": [None, {"a": "increasing"}]}}
    body = {"dataset_id": dataset, "algorithm": {"name": "rankboost"}, "search": search}
    problem = refused(client.post("/v1/jobs", json=body), 422, "invalid_parameter")
    assert problem["errors"][0]["pointer"] == "/search/space/monotone"


def test_the_schema_tells_the_parameter(client: httpx.Client, sentences: Sentences) -> None:
    listed = {each["name"]: each for each in client.get("/v1/algorithms").json()["data"]}
    described = set()
    for name in (*ABLE, "auto"):
        schema = listed[name]["parameters"]["properties"]["monotone"]
        kinds = {kind["type"]: kind for kind in schema["anyOf"]}
        assert kinds["object"]["additionalProperties"]["enum"] == ["increasing", "decreasing"]
        described.add(schema["description"])
    (description,) = described
    sentences(description)
