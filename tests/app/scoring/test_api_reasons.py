"""Reasons beside scores: exact against a stated reference, told by the dictionary of the model's name."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from sqlalchemy import delete, select
from sqlalchemy.orm import make_transient

from app.models import repository
from app.platform.errors import Invalid
from app.platform.tables import Model, ModelReference, ModelReferenceRows, ReasonCodes
from app.scoring.features import FeatureIndex
from app.scoring.reasons import (
    ReasonOptions,
    ReasonSources,
    ReferenceRows,
    make_reasoner,
    stored_references,
)
from app.scoring.service import Served
from app.scoring.tasks import ScoringProgress
from core import Logistic, RankAverage, RankBoost, TreeRankForest
from core.base.ranker import Ranker, StopFit
from core.base.table import CodedTable
from core.explain import count_scored
from tests.app.live_service import Service
from tests.app.refusals import refused as refused_with
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences

CSV, NDJSON = "text/csv", "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
NAMES = ["age", "income", "debt", "job"]
ADDRESS = "/v1/models/credit/reason-codes"
PATH = "/v1/models/credit/score"
JOBS = ["clerk", "miner", "nurse"]

Put = Callable[..., httpx.Response]


def people(rows: int = 300) -> str:
    """Return a table whose labels depend on all its features; some ages are missing."""
    rng = np.random.default_rng(1)
    lines = [",".join([*NAMES, "left"])]
    for _ in range(rows):
        age, income, debt = (round(v, 3) for v in rng.normal(size=3).tolist())
        job = JOBS[rng.integers(3)]
        late = age - income + debt * income + (job == "miner") + 0.5 * rng.normal() > 0
        shown = "" if rng.random() < 0.1 else age
        lines.append(f"{shown},{income},{debt},{job},{'yes' if late else 'no'}")
    return "\n".join(lines) + "\n"


ROWS: list[dict[str, Any]] = [
    {"age": 0.7, "income": -1.2, "debt": 0.4, "job": "miner"},
    {"age": None, "income": 0.1, "debt": -0.4, "job": "nurse"},
    {"age": -1.5, "income": 1.4, "debt": 0.0, "job": None},
]
IN_CSV = ",".join(NAMES) + "\n"
IN_CSV += "".join(",".join("" if v is None else f"{v}" for v in r.values()) + "\n" for r in ROWS)
LARGE = {"columns": NAMES, "data": [list(ROWS[0].values())] * 1001}


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(scope="module", autouse=True)
def models(shared: Service, client: httpx.Client) -> dict[str, str]:
    """The ids of models of several algorithms, by name."""
    dataset_id = shared.upload(client, people())
    jobs: dict[str, dict[str, Any]] = {
        "credit": {"algorithm": {"name": "rankboost", "n_rounds": 20}},
        "trees": {"algorithm": {"name": "rankboost", "weak_ranker": "tree", "n_rounds": 5}},
        "linear": {
            "algorithm": {"name": "logistic"},
            "validation": {"method": "cross_validation", "folds": 2},
        },
        "tree": {"algorithm": {"name": "martirank"}},
    }
    found = {}
    for name, job in jobs.items():
        done = shared.train(client, dataset_id, name=name, **job)
        assert done["output"]["id"], done
        found[name] = done["output"]["id"]
    return found


@pytest.fixture
def put(client: httpx.Client) -> Iterator[Put]:
    """What replaces the dictionary. The test finds it empty, and leaves it so to those that have no use for one."""

    def put(*entries: dict[str, Any]) -> httpx.Response:
        now = client.get(ADDRESS)
        headers = {"If-Match": now.headers["ETag"]} if now.is_success else {}
        return client.put(ADDRESS, json={"entries": entries}, headers=headers)

    yield put
    put()


def entry(code: str, *columns: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"code": code, "text": text or f"Because of {code}", "columns": columns, **more}


def refused(answer: httpx.Response, status: int, *values: object) -> dict[str, Any]:
    """Check a problem, whatever its code."""
    return refused_with(answer, status, answer.json()["code"], *values)


def ask(client: httpx.Client, path: str = PATH, rows: Any = None, **query: Any) -> dict[str, Any]:
    answer = client.post(path, params=query, json={"rows": ROWS if rows is None else rows})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_all_parts_sum_to_the_difference(client: httpx.Client) -> None:
    for reference in ("negative", "average", "cutoff"):
        for name in ("credit", "trees", "linear", "tree"):
            threshold = {"threshold": "0.3"} if reference == "cutoff" else {}
            path = f"/v1/models/{name}/score"
            query = {"reasons": "20", "reference": reference, "direction": "both", **threshold}
            answer = ask(client, path, **query)
            assert answer["scores"] == ask(client, path)["scores"]
            told = answer["reference"]
            assert told["kind"] == reference
            assert told["on"] == (
                "train" if name == "linear" or reference == "average" else "validation"
            )
            if reference == "cutoff":
                assert told["score"] == 0.3
            for score, reasons, rest in zip(
                answer["scores"], answer["reasons"], answer["reasons_rest"], strict=True
            ):
                parts = [reason["contribution"] for reason in reasons]
                assert sum(parts) + rest == pytest.approx(score - told["score"], abs=1e-12)
                assert abs(rest) < 1e-9  # every feature is told
                assert parts == sorted(parts, key=abs, reverse=True)


def test_the_average_negative_is_that_of_the_rows(client: httpx.Client) -> None:
    """Its score is the mean score of the negatives of the validation rows, which the curve knows."""
    reference = ask(client, reasons=1)["reference"]
    metrics = client.get("/v1/models/credit/metrics").json()
    assert reference["rows"] == metrics["negatives"]
    curve = client.get("/v1/models/credit/roc", params={"max_points": 100_000}).json()["points"]
    steps = [(b["threshold"], b["fpr"] - a["fpr"]) for a, b in itertools.pairwise(curve)]
    mean = sum(threshold * share for threshold, share in steps if share)
    assert reference["score"] == pytest.approx(mean, abs=1e-9)


def test_one_direction(client: httpx.Client) -> None:
    both = ask(client, reasons=20, direction="both")["reasons"]
    for direction, sign in (("raises", 1), ("lowers", -1)):
        found = ask(client, reasons=2, direction=direction)
        for reasons, every in zip(found["reasons"], both, strict=True):
            assert reasons == [r for r in every if sign * r["contribution"] > 0][:2]
    assert ask(client, reasons=2) == ask(client, reasons=2, direction="raises")


def test_plain_phrases(client: httpx.Client, put: Put, sentences: Sentences) -> None:
    put()
    found = ask(client, reasons=20, direction="both")["reasons"]
    texts = [{reason["columns"][0]: reason["text"] for reason in reasons} for reasons in found]
    assert texts[0]["income"] == "income is -1.2"
    assert texts[0]["job"] == "job is miner"
    assert texts[1]["age"] == "age is missing"
    sentences(texts[2]["job"])
    assert {reason["code"] for reasons in found for reason in reasons} == {None}


def test_a_dictionary(client: httpx.Client, put: Put) -> None:
    plain = ask(client, reasons=20, direction="both")["reasons"]
    parts = [{reason["columns"][0]: reason["contribution"] for reason in row} for row in plain]
    answer = put(
        entry("A0", "age", missing=True),
        entry("A1", "age", min=0.5, direction="raises"),
        entry("J1", "job", categories=["miner", "no such job"]),
        entry("M", "income", "debt", text="Money"),
    )
    assert answer.status_code in (200, 201), answer.text
    revision = answer.json()["revision"]
    found = ask(client, reasons=20, direction="both")
    assert found["reference"]["dictionary"] == revision
    codes = [{reason["code"]: reason for reason in row} for row in found["reasons"]]
    for i in range(3):
        money = codes[i]["M"]
        assert (money["text"], money["columns"]) == ("Money", ["income", "debt"])
        both = parts[i].get("income", 0.0) + parts[i].get("debt", 0.0)
        assert money["contribution"] == pytest.approx(both, abs=1e-12)
    assert ["J1" in each for each in codes] == [True, False, False]
    assert ("A1" in codes[0]) == (parts[0].get("age", 0) > 0)
    assert ["A0" in each for each in codes] == [False, True, False]
    assert codes[2][None]["columns"] in (["age"], ["job"])
    assert put().json()["revision"] == revision + 1
    assert ask(client, reasons=1)["reference"]["dictionary"] == revision + 1


def test_one_row_by_get(client: httpx.Client, models: dict[str, str], put: Put) -> None:
    put(entry("M", "income", "debt"))
    path = f"/v1/models/{models['credit']}/score"
    values = {**ROWS[0], "reasons": 2, "direction": "both"}
    answer = client.get(path, params=values)
    assert answer.status_code == 200, answer.text
    one, many = answer.json(), ask(client, path, reasons=2, direction="both")
    assert one["score"] == many["scores"][0]
    assert one["reasons"] == many["reasons"][0]
    assert one["reasons_rest"] == many["reasons_rest"][0]
    assert one["reference"] == many["reference"]
    tag = answer.headers["ETag"]
    assert client.get(path, params=values, headers={"If-None-Match": tag}).status_code == 304
    put(entry("N", "income", "debt"))
    answer = client.get(path, params=values, headers={"If-None-Match": tag})
    assert "N" in [reason["code"] for reason in answer.json()["reasons"]]
    plain = client.get(path, params=ROWS[0])
    assert "reasons" not in plain.json()
    assert plain.headers["ETag"] != tag


def test_tables(client: httpx.Client, put: Put) -> None:
    for body in ("json", "csv"):
        for accept in (CSV, NDJSON, ARROW):
            put(entry("M", "income", "debt", text='Money, "much" of it'))
            said = ask(client, reasons=2)
            given: dict[str, Any] = {"json": {"rows": ROWS}}
            headers = {"Accept": accept}
            if body == "csv":
                given, headers = {"content": IN_CSV}, headers | {"Content-Type": CSV}
            answer = client.post(PATH, params={"reasons": 2}, headers=headers, **given)
            assert answer.status_code == 200, answer.text
            if accept == CSV:
                table = pa_csv.read_csv(
                    io.BytesIO(answer.content),
                    convert_options=pa_csv.ConvertOptions(strings_can_be_null=True),
                )
            elif accept == NDJSON:
                table = pa.Table.from_pylist(
                    [json.loads(line) for line in answer.text.splitlines()]
                )
            else:
                table = pa.ipc.open_stream(answer.content).read_all()
            check_table(table, said)


def check_table(table: pa.Table, said: dict[str, Any]) -> None:
    """Check that a table says the same as an answer in JSON with two reasons."""
    for row, score, reasons, rest in zip(
        table.to_pylist(), said["scores"], said["reasons"], said["reasons_rest"], strict=True
    ):
        assert row["score"] == score
        assert row["reasons_rest"] == pytest.approx(rest, abs=1e-15)
        assert row["reference_score"] == said["reference"]["score"]
        for k in range(2):
            reason = reasons[k] if k < len(reasons) else {}
            for what in ("code", "text", "contribution", "error"):
                value = row[f"reason_{k + 1}_{what}"]
                assert value == reason.get(what)


def batch(service: Service, client: httpx.Client, **given: Any) -> tuple[dict[str, Any], pa.Table]:
    answer = client.post("/v1/batch-scores", **given)
    assert answer.status_code == 202, answer.text
    service.work()
    shown = client.get(answer.headers["Location"]).json()
    result = client.get(f"/v1/batch-scores/{answer.json()['id']}/result")
    assert result.status_code == 200, result.text
    return shown, pq.read_table(io.BytesIO(result.content))


def test_a_batch(shared: Service, client: httpx.Client, put: Put) -> None:
    revision = put(entry("M", "income", "debt")).json()["revision"]
    said = ask(client, reasons=2, reference="cutoff", threshold=0.25)
    query = {"model": "credit", "reasons": 2, "reference": "cutoff", "threshold": 0.25}
    csv: dict[str, Any] = {"params": query, "content": IN_CSV, "headers": {"Content-Type": CSV}}
    answer = client.post("/v1/batch-scores", **csv)
    assert answer.status_code == 202, answer.text
    put()  # what was asked for is told as it was then
    shared.work()
    shown = client.get(f"/v1/batch-scores/{answer.json()['id']}").json()
    assert shown["reasons"] == {
        "n": 2,
        "reference": "cutoff",
        "direction": "raises",
        "threshold": 0.25,
        "exclude_protected": False,
        "dictionary": revision,
    }
    result = client.get(f"/v1/batch-scores/{shown['id']}/result")
    check_table(pq.read_table(io.BytesIO(result.content)), said)


def test_a_batch_of_a_dataset(shared: Service, client: httpx.Client, put: Put) -> None:
    """The best rows alone have the reasons that they have in the whole table."""
    put(entry("A0", "age", missing=True))
    dataset_id = shared.upload(client, people(50))
    asked = {"model": "trees", "dataset_id": dataset_id, "reasons": 2, "direction": "lowers"}
    _, table = batch(shared, client, json=asked | {"keep": ["job"]})
    assert table.num_rows == 50
    assert set(table["reason_1_code"].to_pylist()) == {None}  # the dictionary is of another name
    texts = table["reason_1_text"].to_pylist()
    assert any(text and text.startswith(("income is", "debt is")) for text in texts)
    assert max(table["reason_1_contribution"].drop_null().to_pylist()) < 0
    _, best = batch(shared, client, json=asked | {"keep": ["job"], "top": 9})
    first = np.argsort(-table["score"].to_numpy(), kind="stable")[:9]
    assert best.to_pylist() == table.take(pa.array(first)).to_pylist()


def test_the_cut_of_an_alias(client: httpx.Client, models: dict[str, str]) -> None:
    body = {"model_id": models["credit"], "guarantee": {"fpr": 0.1}}
    put = client.put("/v1/models/credit/aliases/live", json=body)
    assert put.status_code == 201, put.text
    cutoff = put.json()["cutoff"]["threshold"]
    under = "/v1/models/credit@live/score"
    answer = ask(client, under, reasons=20, reference="cutoff", direction="both")
    assert answer["reference"]["score"] == cutoff
    for score, reasons in zip(answer["scores"], answer["reasons"], strict=True):
        assert sum(r["contribution"] for r in reasons) == pytest.approx(score - cutoff, abs=1e-9)
    assert answer["flags"] == [score >= cutoff for score in answer["scores"]]
    other = ask(client, under, reasons=1, reference="cutoff", threshold=0)
    assert other["reference"]["score"] == 0


def test_bad_options(client: httpx.Client) -> None:
    for query, *named in (
        ({"reasons": "0"}, "reasons", 20),
        ({"reasons": "21"}, "reasons", 20),
        ({"reasons": "1_0"}, "reasons", 20),
        ({"reasons": "²"}, "reasons", 20),
        ({"reasons": "9" * 5000}, "reasons", 20),
        ({"reasons": "1", "reference": "row"}, "reference", "average"),
        ({"reasons": "1", "direction": "up"}, "direction", "raises"),
        ({"reasons": "1", "reference": "cutoff"}, "reference=cutoff", "threshold"),
        ({"reasons": "1", "threshold": "1"}, "threshold", "reference=cutoff"),
        ({"reasons": "1", "reference": "cutoff", "threshold": "nan"}, "threshold", "'nan'"),
        ({"reasons": "1", "reference": "cutoff", "threshold": "1e999"}, "threshold", "'1e999'"),
        ({"direction": "both"}, "direction", "reasons"),
    ):
        refused(client.post(PATH, params=query, json={"rows": ROWS}), 422, *named)
        refused(client.get(PATH, params={**ROWS[0], **query}), 422, *named)
        csv: dict[str, Any] = {"content": IN_CSV, "headers": {"Content-Type": CSV}}
        refused(
            client.post("/v1/batch-scores", params={"model": "credit", **query}, **csv), 422, *named
        )


def test_scores_that_are_no_sums_have_estimates(shared: Service, client: httpx.Client) -> None:
    """Of four features all sets are scored: contributions are exact, by the score of the rows that are mixed."""
    path = "/v1/models/tree/score"
    found = ask(client, path, reasons=20, direction="both")
    assert found["reference"]["method"] == "rows"
    assert 0 < found["reference"]["rows"] <= ask(client, reasons=1)["reference"]["rows"]
    assert found["exact"] == [True] * 3
    assert {reason["error"] for row in found["reasons"] for reason in row} == {0.0}
    one = client.get(path, params={**ROWS[0], "reasons": 20, "direction": "both"}).json()
    assert (one["reasons"], one["exact"]) == (found["reasons"][0], True)
    explained = client.post("/v1/models/tree/explain", json={"rows": ROWS}).json()
    average = ask(client, path, reasons=20, direction="both", reference="average")
    for row, reasons, score in zip(
        explained["explanations"], average["reasons"], average["scores"], strict=True
    ):
        parts = {reason["columns"][0]: reason["contribution"] for reason in reasons}
        assert (row["exact"], row["method"], row["errors"]) == (True, "rows", None)
        assert {name: part for name, part in row["contributions"].items() if part} == parts
        assert row["offset"] == average["reference"]["score"]
        assert row["offset"] + sum(parts.values()) == pytest.approx(score, abs=1e-12)
    inputs = [tensor(column, [value]) for column, value in ROWS[0].items()]
    body = {"inputs": inputs, "outputs": [{"name": "reasons"}]}
    (output,) = client.post("/oip/v2/models/tree/infer", json=body).json()["outputs"]
    assert json.loads(output["data"][0]).items() <= explained["explanations"][0].items()
    asked: dict[str, Any] = {"params": {"model": "tree", "reasons": 20, "direction": "both"}}
    _, table = batch(shared, client, content=IN_CSV, headers={"Content-Type": CSV}, **asked)
    told = [[reason["contribution"] for reason in row] for row in found["reasons"]]
    columns = [table[f"reason_{k}_contribution"].to_pylist() for k in range(1, 5)]
    rows = zip(*columns, strict=True)
    assert [[each for each in row if each is not None] for row in rows] == told


def tensor(column: str, data: list[Any]) -> dict[str, Any]:
    datatype = "BYTES" if column == "job" else "FP64"
    return {"name": column, "datatype": datatype, "shape": [len(data)], "data": data}


def test_no_row_has_no_reasons(client: httpx.Client) -> None:
    for name in ("credit", "tree"):
        explained = client.post(f"/v1/models/{name}/explain", json={"rows": []})
        assert (explained.status_code, explained.json()["explanations"]) == (200, [])
        forms: list[dict[str, Any]] = [{"rows": []}, {"columns": [*ROWS[0]], "data": []}]
        for form in forms:
            answer = client.post(f"/v1/models/{name}/score", params={"reasons": 2}, json=form)
            assert (answer.status_code, answer.json()["reasons"]) == (200, [])
        asked = {
            "inputs": [tensor(column, []) for column in ROWS[0]],
            "outputs": [{"name": "reasons"}],
        }
        inferred = client.post(f"/oip/v2/models/{name}/infer", json=asked)
        assert inferred.status_code == 200, inferred.text
        assert inferred.json()["outputs"][0]["data"] == []


def test_bad_dictionaries(client: httpx.Client, put: Put, sentences: Sentences) -> None:
    many = [f"c{k}" for k in range(1000)]
    for entries in (
        [entry("A", "agee")],
        [entry("A", "age", "age")],
        [entry("A")],
        [entry("", "age")],
        [entry("A", "age", "income", min=1)],
        [entry("A", "job", min=1)],
        [entry("A", "age", categories=["x"])],
        [entry("A", "age", min="2020-01-01")],
        [entry("A", "age", min=2, max=1)],
        [entry("A", "age", direction="both")],
        [entry("A", "age", weight=1)],
        [{"code": "A", "columns": ["age"]}],
        [entry("A", "age"), entry("A", "debt", text="Other")],
        [entry("A", "age")] * 1001,
        [entry("A", "job", categories=many)] * 21,
    ):
        sentences(refused(put(*entries), 422)["errors"][0])
    refused(client.put("/v1/models/none/reason-codes", json={"entries": []}), 404, "'none'")
    refused(client.get("/v1/models/No%20name/reason-codes"), 404)
    reader = client.put(ADDRESS, content=b'{"entries": [{"min": 1e999}]}')
    assert reader.status_code in (400, 415, 422)


def loaded(n_features: int, seed: int = 0) -> tuple[Served, dict[str, ReferenceRows]]:
    """Return a mean of ranks, as `auto` trains it, with rows of its references."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, n_features))
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=400) > 0
    members: list[Ranker] = [Logistic(), RankBoost(weak_ranker="tree", n_rounds=10)]
    names = tuple(f"x{j}" for j in range(n_features))
    ranker = RankAverage(members=members).fit(CodedTable(X, names, (None,) * n_features), y)
    features: Any = [{"name": name, "type": "numeric", "missing": False} for name in names]
    samples = {"average": X, "negative": X[~y], "positive": X[y]}
    rows = {of: ReferenceRows("train", of_it, np.ones(len(of_it))) for of, of_it in samples.items()}
    return Served("m", ranker, FeatureIndex(features, ranker.categories_), None, ""), rows


def test_estimates_have_their_errors() -> None:
    """Codes over several features have at most the sum of their errors; parts sum to the score all the same."""
    served, samples = loaded(12)
    X = samples["average"].X[:2]
    scores = served.ranker.score_rows(X)
    money: Any = {"code": "M", "text": "Money", "columns": ["x0", "x1"], "direction": None}
    money |= dict.fromkeys(("min", "max", "categories", "missing"))
    for reference in ("average", "cutoff"):
        options = ReasonOptions(20, reference, "both", 0.1 if reference == "cutoff" else None)
        found = []
        for entries in ([], [money]):
            sources = ReasonSources(None, samples, None, entries)
            reasons = make_reasoner(served, options, sources, 10).of(X, scores)
            assert not reasons.exact.any()
            total = np.nansum(reasons.contributions, axis=1) + reasons.rest
            np.testing.assert_allclose(total + reasons.described["score"], scores, atol=1e-12)
            np.testing.assert_allclose(reasons.rest, 0.0, atol=1e-9)
            found.append(reasons.as_json())
        for row, with_code in zip(*found, strict=True):
            parts = {each["columns"][0]: each for each in row}
            (told,) = (each for each in with_code if each["code"])
            errors = [parts[name]["error"] for name in told["columns"]]
            assert told["error"] == pytest.approx(sum(errors), abs=1e-15)
            assert min(errors) > 0


def test_a_job_goes_on_or_ends_between_a_few_rows_that_take_long() -> None:
    served, samples = loaded(9)
    X = samples["average"].X[:40]
    sources = ReasonSources(None, samples, None, [])
    reasoner = make_reasoner(served, ReasonOptions(2), sources, None)
    ticks: list[int] = []
    reasoner.tick = ticks.append
    whole = reasoner.of(X, served.ranker.score_rows(X))
    assert (len(ticks), sum(ticks)) == (3, 40)
    # A table that is read at once is done only as its rows have reasons; beside `top` these are the second half.
    reported: list[tuple[Any, ...]] = []
    read: Any = SimpleNamespace(progress=lambda: (100, 100))
    progress = ScoringProgress(lambda *told: reported.append(told), read, reasons_last=False)
    progress.begin(40)
    progress.tick(16)
    progress.tick(24)
    progress.end()
    assert reported == [(40, 100, {"rows": 16}), *[(100, 100, {"rows": 40})] * 2]
    progress = ScoringProgress(lambda *told: reported.append(told), read, reasons_last=True)
    progress.begin(40)
    progress.end()
    progress.begin(10, last=True)
    progress.tick(5)
    ends = [(100, 200, {"rows": 40}), (150, 200, {"rows": 40, "rows with reasons": 5})]
    assert reported[3:] == ends
    alone = make_reasoner(served, ReasonOptions(2), sources, 10).of(X[39:], whole.rest[39:])
    assert alone.contributions.tobytes() == whole.contributions[39:].tobytes()

    def end(n_rows: int) -> None:
        raise StopFit

    reasoner.tick = end
    with pytest.raises(StopFit):
        reasoner.of(X, served.ranker.score_rows(X))


def test_estimates_are_bounded(sentences: Sentences) -> None:
    served, samples = loaded(30)
    sources = ReasonSources(None, samples, None, [])
    X = np.zeros((25, 30))
    with sentences.raises(Invalid) as error:
        make_reasoner(served, ReasonOptions(1), sources, 1000).of(X, np.zeros(25))
    assert error.value.code == "too_many_rows"
    served, samples = loaded(701)
    with raises(Invalid, 700, 701) as error:
        make_reasoner(served, ReasonOptions(1), ReasonSources(None, samples, None, []), 1000)
    assert error.value.code == "too_many_features"


@long_form
def test_what_the_trees_of_a_forest_take_is_bounded() -> None:
    """Nodes that are visited for exact reasons count, a thousand as one row that is scored."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20))
    y = X[:, 0] * X[:, 1] + rng.normal(size=600) > 0
    names = tuple(f"x{j}" for j in range(20))
    forest = TreeRankForest(n_trees=100).fit(CodedTable(X, names, (None,) * 20), y)
    features: Any = [{"name": name, "type": "numeric", "missing": False} for name in names]
    served = Served("m", forest, FeatureIndex(features, forest.categories_), None, "")
    rows = ReferenceRows("train", X[:64], np.ones(64))
    sources = ReasonSources(None, {"average": rows}, None, [])
    visited = forest.count_visited(64)
    assert count_scored(20, 64) * 1000 < visited <= 20_000_000
    options = ReasonOptions(1, "average")
    most = 200_000_000 // visited
    reasoner = make_reasoner(served, options, sources, 1000)
    with raises(Invalid, most):
        reasoner.of(np.zeros((most + 1, 20)), np.zeros(most + 1))


def test_what_no_model_can_have(client: httpx.Client) -> None:
    far: dict[str, Any] = {"reasons": 1, "reference": "cutoff", "threshold": "1e300"}
    answer = client.post(PATH, params=far, json={"rows": ROWS})
    assert refused(answer, 422, 20)["code"] == "no_reference"
    asked: dict[str, Any] = {"model": "credit", "reasons": 2, "keep": "reason_2_text"}
    lines = IN_CSV.splitlines()
    csv = "\n".join([f"{lines[0]},reason_2_text", *(f"{line},x" for line in lines[1:])])
    answer = client.post(
        "/v1/batch-scores", params=asked, content=csv, headers={"Content-Type": CSV}
    )
    refused(answer, 422, "keep", "'reason_2_text'")


def test_a_model_of_an_earlier_version(
    shared: Service, client: httpx.Client, models: dict[str, str]
) -> None:
    """It has no average rows: it says so, and has the average training row."""
    with shared.context.db.write() as session:
        row = session.get(ModelReference, models["trees"])
        session.delete(row)
    path = "/v1/models/trees/score"
    references: list[dict[str, Any]] = [{}, {"reference": "cutoff", "threshold": 0}]
    try:
        for reference in references:
            query: dict[str, Any] = {"reasons": 1, **reference}
            answer = client.post(path, params=query, json={"rows": ROWS})
            assert refused(answer, 422, "reference=average")["code"] == "no_reference"
            batch_of: dict[str, Any] = {
                "params": {"model": "trees", **query},
                "headers": {"Content-Type": CSV},
            }
            refused(
                client.post("/v1/batch-scores", content=IN_CSV, **batch_of),
                422,
                "reference=average",
            )
        assert ask(client, path, reasons=1, reference="average")["reasons"]
    finally:  # other tests need it
        make_transient(row)
        with shared.context.db.write() as session:
            session.add(row)


def test_the_rows_of_references_stay_with_their_model(
    shared: Service, client: httpx.Client
) -> None:
    dataset_id = shared.upload(client, people())
    done = shared.train(client, dataset_id, name="gone", algorithm={"name": "martirank"})
    path = f"/v1/models/{done['output']['id']}/score"
    assert ask(client, path, reasons=1)["reasons"]
    with shared.context.db.write() as session:  # as of a version that stored rows of no class
        for part in ("validation_negative", "validation_positive"):
            session.delete(repository.find_reference_rows(session, done["output"]["id"], part))
    csv: dict[str, Any] = {"content": IN_CSV, "headers": {"Content-Type": CSV}}
    asked: dict[str, Any] = {"model": done["output"]["id"], "reasons": 1}
    for answer in (
        client.post(path, params={"reasons": 1}, json={"rows": ROWS}),
        client.post("/v1/batch-scores", params=asked, **csv),
    ):
        assert refused(answer, 422, "reference=average")["code"] == "no_reference"
    assert ask(client, path, reasons=1, reference="average")["reasons"]
    before = ask(client, path, reasons=1, reference="average")
    for address in (f"/v1/datasets/{dataset_id}", f"/v1/trash/{dataset_id}"):
        assert client.delete(address).status_code == 204
        assert ask(client, path, reasons=1, reference="average") == before
    answer = client.post(f"/v1/models/{done['output']['id']}/explain", json={"rows": ROWS})
    assert answer.status_code == 200
    with shared.context.db.write() as session:  # as of a model that stored none
        of_model = ModelReferenceRows.model_id == done["output"]["id"]
        session.execute(delete(ModelReferenceRows).where(of_model))
    average: dict[str, Any] = {"reasons": 1, "reference": "average"}
    for answer in (
        client.post(path, params=average, json={"rows": ROWS}),
        client.post("/v1/batch-scores", params=asked | average, **csv),
        client.post(f"/v1/models/{done['output']['id']}/explain", json={"rows": ROWS}),
    ):
        problem = refused(answer, 422)
        assert problem["code"] == "no_reference"
    assert ask(client, path)["scores"]


def test_a_mean_rank_without_stored_rows_has_no_reference(shared: Service) -> None:
    """No reference is recommended that the request would not get either."""
    members = [{"algorithm": "logistic"}, {"algorithm": "additive"}]
    with shared.context.db.read() as session:
        for count, found in ((1, ["average"]), (2, [])):
            parameters = {"members": members[:count]}
            model = Model(id="mdl_none", algorithm="auto", parameters=parameters)
            assert list(stored_references(session, model)) == found


def test_too_many_rows(client: httpx.Client) -> None:
    answer = client.post(PATH, params={"reasons": 1}, json=LARGE)
    assert refused(answer, 422, 1000)["code"] == "too_many_rows"
    assert client.post(PATH, json=LARGE).status_code == 200


def test_revisions(shared: Service, client: httpx.Client) -> None:
    address = "/v1/models/linear/reason-codes"
    assert refused(client.get(address), 404)["code"] == "no_reason_codes"
    refused(client.put(address, json={"entries": []}, headers={"If-Match": '"1"'}), 412, "linear")
    first = client.put(address, json={"entries": [entry("A", "age")]})
    assert (first.status_code, first.headers["ETag"]) == (201, '"1"')
    refused(client.put(address, json={"entries": []}), 428, "If-Match")
    refused(client.put(address, json={"entries": []}, headers={"If-Match": '"2"'}), 412, 1)
    second = client.put(address, json={"entries": []}, headers={"If-Match": '"1"'})
    assert (second.status_code, second.json()["revision"]) == (200, 2)
    assert [step["revision"] for step in second.json()["history"]] == [2, 1]
    old = client.get(address, params={"revision": 1}).json()
    assert [each["code"] for each in old["entries"]] == ["A"]
    refused(client.get(address, params={"revision": 3}), 404, "revision 3")
    stranger = shared.client(shared.key("stranger"))
    refused(stranger.get(address), 404, "'linear'")
    refused(stranger.put(address, json={"entries": []}), 404, "'linear'")


def revisions(service: Service, name: str) -> list[int]:
    """Return the stored revisions of the dictionary of a name."""
    statement = select(ReasonCodes.revision).where(ReasonCodes.name == name)
    with service.context.db.write() as session:
        return sorted(session.scalars(statement))


def test_an_equal_dictionary_makes_no_revision(
    shared: Service, client: httpx.Client, put: Put
) -> None:
    first = put(entry("A", "age", min=1), entry("M", "income"))
    stored = revisions(shared, "credit")
    again = put(entry("A", "age", min=1.0), entry("M", "income"))
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["ETag"] == first.headers["ETag"]
    assert revisions(shared, "credit") == stored
    assert put(entry("M", "income"), entry("A", "age", min=1)).json()["revision"] > stored[-1]
    refused(client.put(ADDRESS, json={"entries": []}), 428, "If-Match")


def test_a_dictionary_has_at_most_so_many_bytes(client: httpx.Client, put: Put) -> None:
    entries = [entry(f"C{k}", "age", text="é" * 240) for k in range(160)]
    assert put(*entries).status_code in (200, 201)
    problem = refused(put(*entries[:80], *entries), 422, 262144)
    assert problem["errors"][0]["pointer"] == "/entries"


@long_form
def test_only_the_newest_revisions_stay(
    shared: Service,
    client: httpx.Client,
    put: Put,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And those that unfinished batches name."""
    monkeypatch.setattr("app.models.reason_codes.MAX_REVISIONS", 3)
    named = put(entry("KEPT", "age", "income", "debt", "job")).json()["revision"]
    csv: dict[str, Any] = {"content": IN_CSV, "headers": {"Content-Type": CSV}}
    asked = client.post("/v1/batch-scores", params={"model": "credit", "reasons": 1}, **csv)
    for k in range(4):
        last = put(entry(f"L{k}", "age")).json()["revision"]
    assert revisions(shared, "credit") == [named, last - 2, last - 1, last]
    shared.work()
    result = client.get(f"/v1/batch-scores/{asked.json()['id']}/result")
    told = pq.read_table(io.BytesIO(result.content))["reason_1_code"].to_pylist()
    assert {*told} <= {"KEPT", None}
    assert "KEPT" in told
    last = put(entry("M", "age")).json()["revision"]
    assert revisions(shared, "credit") == [last - 2, last - 1, last]
    refused(client.get(ADDRESS, params={"revision": named}), 404, f"revision {named}")
    assert client.get(ADDRESS, params={"revision": last - 2}).status_code == 200


def test_a_dictionary_goes_with_the_last_version(shared: Service, client: httpx.Client) -> None:
    """Its numbers go on: an answer's revision never means another."""
    dataset_id = shared.upload(client, people(100))
    address = "/v1/models/brief/reason-codes"

    def train() -> str:
        done = shared.train(client, dataset_id, name="brief", algorithm={"name": "logistic"})
        return str(done["output"]["id"])

    first, second = train(), train()
    client.put(address, json={"entries": [entry("A", "age")]})
    client.put(address, json={"entries": [entry("B", "age")]}, headers={"If-Match": '"1"'})
    for model_id in (first, second):
        assert revisions(shared, "brief") == [1, 2]
        assert client.delete(f"/v1/models/{model_id}").status_code == 204
        assert revisions(shared, "brief") == [1, 2]  # it can be restored
        assert client.delete(f"/v1/trash/{model_id}").status_code == 204
    assert revisions(shared, "brief") == [3]
    assert client.get(address).json()["entries"] == []
    assert client.get(address).headers["ETag"] == '"3"'
    train()
    again = client.put(address, json={"entries": [entry("A", "age")]}, headers={"If-Match": '"3"'})
    assert again.json()["revision"] == 4


def test_one_row_takes_a_turn(
    shared: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.dependencies.COMPUTATION_WAIT_SECONDS", 0.01)
    with shared.computing():
        answer = client.get(PATH, params={**ROWS[0], "reasons": 1})
        refused(answer, 429)
        assert client.get(PATH, params=ROWS[0]).status_code == 200
    assert client.get(PATH, params={**ROWS[0], "reasons": 1}).status_code == 200


def test_texts_in_a_csv_are_as_they_were_sent(client: httpx.Client, put: Put) -> None:
    put(entry("=1+1", "age", "income", "debt", "job", text="@SUM(A1)"))
    headers = {"Accept": CSV}
    query: dict[str, Any] = {"reasons": 2, "direction": "both"}
    answer = client.post(PATH, params=query, json={"rows": ROWS}, headers=headers)
    table = pa_csv.read_csv(
        io.BytesIO(answer.content),
        convert_options=pa_csv.ConvertOptions(strings_can_be_null=True),
    )
    assert table["reason_1_code"].to_pylist() == ["=1+1"] * 3
    assert table["reason_1_text"].to_pylist() == ["@SUM(A1)"] * 3
    assert table["reason_2_code"].to_pylist() == [None] * 3
    said = ask(client, **query)
    assert table["score"].to_pylist() == said["scores"]  # a number may begin with a minus
    assert min(table["reason_1_contribution"].to_pylist()) < 0
    assert [row[0]["code"] for row in said["reasons"]] == ["=1+1"] * 3
