"""Queries and grades over HTTP: what a model of them has, and what it is asked in vain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.app.training.test_lists import Answers
from tests.long_form import rest

BOOST = {"name": "rankboost", "n_rounds": 10}
QUESTIONS = (
    *("", "?include=metrics,roc,operating_points", "/metrics", "/metrics?on=train", "/roc"),
    *("/operating-point?fpr=0.2", "/operating-point?fpr=0.2&confidence=0.9", "/operating-points"),
    *("/metrics?metric=ap", "/gains", "/bounds", "/margins", "/importance", "/structure"),
    *("/partial-dependence?feature=a", "/variable-dependence?feature=a", "/calibration"),
    *("/baselines", "/leaderboard", "/out-of-fold", "/report", "/report?format=markdown"),
    *("/plot", "/plot?kind=gains", "/plot?kind=reliability", "/score?a=1&b=2", "/ping"),
    *("/score?a=1&b=2&probability=true&prevalence=0.1", "/score?a=1&b=2&venn_abers=true"),
)


@pytest.fixture(scope="module")
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


def upload(small: Service, client: httpx.Client, text: str, **fields: str) -> str:
    headers = {"Content-Type": "text/csv"}
    answer = client.post("/v1/datasets", params=fields, content=text, headers=headers)
    assert answer.status_code == 202, answer.text
    small.work()
    return str(answer.json()["id"])


@pytest.fixture(scope="module")
def trained(small: Service, client: httpx.Client) -> Callable[..., dict[str, Any]]:
    """Train on rows of queries once for each kind; returns the job and the dataset."""
    kept: dict[tuple[str, str], dict[str, Any]] = {}

    def learn(kind: str, query: str = "q") -> dict[str, Any]:
        if (kind, query) not in kept:
            answers = Answers(60, 3, top=1 if kind == "bipartite" else 2)
            fields = {"kind": kind, "label": "y", "drop": "w" if query else "w,q"}
            fields |= {"query": query} if query else {}
            dataset_id = upload(small, client, answers.csv(), **fields)
            job = small.train(client, dataset_id, algorithm=BOOST, name=f"{kind}{query}")
            kept[kind, query] = job | {"dataset_id": dataset_id}
        return kept[kind, query]

    return learn


def test_a_dataset_says_its_queries_and_grades(
    client: httpx.Client, trained: Callable[..., dict[str, Any]]
) -> None:
    found = client.get(f"/v1/datasets/{trained('graded')['dataset_id']}").json()
    assert (found["query"], found["kind"], found["positive"]) == ("q", "graded", None)
    assert found["queries"]["queries"] == 60
    assert sum(each["rows"] for each in found["grades"]) == found["rows"]
    profile = client.get(f"/v1/datasets/{found['id']}/profile").json()
    assert (profile["queries"], profile["grades"]) == (found["queries"], found["grades"])
    page = client.get(f"/v1/datasets/{found['id']}/profile?format=markdown")
    assert page.status_code == 200


@pytest.mark.parametrize(
    ("kind", "query"), [("bipartite", "q"), ("graded", "q"), *rest(("graded", ""))]
)
def test_nothing_asked_of_such_a_model_is_an_error_of_the_service(
    client: httpx.Client, trained: Callable[..., dict[str, Any]], kind: str, query: str
) -> None:
    address = f"/v1/models/{trained(kind, query)['output']['id']}"
    for question in QUESTIONS:
        answer = client.get(address + question)
        assert answer.status_code < 500, (question, answer.text)
        if question in ("", "/metrics", "/report", "/score?a=1&b=2", "/importance"):
            assert answer.status_code == 200, (question, answer.text)


def test_what_grades_have_not(client: httpx.Client, trained: Callable[..., dict[str, Any]]) -> None:
    job = trained("graded")
    address = f"/v1/models/{job['output']['id']}"
    for question in ("roc", "operating-point?fpr=0.1", "operating-points", "gains", "plot"):
        refused(client.get(f"{address}/{question}"), 404, "no_curve", "graded")
    refused(client.get(f"{address}/metric-estimates?metric=ap"), 404, "no_curve")
    refused(client.get(f"{address}/calibration"), 404, "no_calibration", "grades")
    score = client.get(f"{address}/score?a=1&b=2").json()
    assert (score["fpr"], score["tpr"], score.get("probability")) == (None, None, None)
    guarantee = {"model_id": job["output"]["id"], "guarantee": {"fpr": 0.1}}
    answer = client.put("/v1/models/gradedq/aliases/champion", json=guarantee)
    assert 400 <= answer.status_code < 500
    body = {"dataset_id": job["dataset_id"]}
    answer = client.put(f"{address}/calibration", json=body)
    assert 400 <= answer.status_code < 500
    for more in ({"at": {"fpr": 0.1}}, {"group_by": "a"}, {"windows": [{"fpr_max": 0.1}]}):
        body = {"model": job["output"]["id"], "dataset_id": job["dataset_id"], **more}
        assert client.post("/v1/evaluations", json=body).status_code == 422
    body = {"models": [job["output"]["id"], job["output"]["id"]], "dataset_id": job["dataset_id"]}
    refused(client.post("/v1/comparisons", json=body), 422, "wrong_kind")


def test_what_queries_have_not(
    client: httpx.Client, trained: Callable[..., dict[str, Any]]
) -> None:
    address = f"/v1/models/{trained('bipartite')['output']['id']}"
    refused(client.get(f"{address}/margins"), 404, "no_margins")
    refused(client.get(f"{address}/bounds"), 404, "no_part")
    asked = f"{address}/operating-point?fpr=0.2&confidence=0.9"
    refused(client.get(asked), 422, "no_guarantee")
    found = client.get(f"{address}/metrics").json()
    assert found["lists"]["metrics"][3]["metric"] == "ndcg@10"
    assert client.get(address).json()["query"] == "q"


def test_rows_to_score_need_no_query(
    client: httpx.Client, trained: Callable[..., dict[str, Any]]
) -> None:
    address = f"/v1/models/{trained('bipartite')['output']['id']}/score"
    headers = {"Content-Type": "text/csv", "Accept": "text/csv"}
    table = "a,b,q\n1,2,x\n2,1,y\n"
    refused(client.post(address, content=table, headers=headers), 422, "unknown_feature", "'q'")
    assert client.post(f"{address}?ignore=q", content=table, headers=headers).status_code == 200
    assert client.post(address, json={"rows": [{"a": 1, "b": 2}]}).status_code == 200
