"""An alias has a guarantee: every version behind it flags by its own cutoff. It moves only to one that can meet it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.live_service import NAMES, Service, table
from tests.app.refusals import refused
from tests.long_form import long_form

CSV, NDJSON = "text/csv", "application/x-ndjson"
ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"
ADDRESS = "/v1/models/churn/aliases/champion"
UNDER = "/v1/models/churn@champion/score"
ROWS = [dict(zip(NAMES, (a, a / 3, 0.5), strict=True)) for a in np.linspace(-2, 2, 41).tolist()]
IN_LISTS = {"columns": NAMES, "data": [list(row.values()) for row in ROWS]}
IN_CSV = ",".join(NAMES) + "\n" + "".join(",".join(map(repr, r.values())) + "\n" for r in ROWS)

Put = Callable[..., httpx.Response]


def train_two(service: Service, client: httpx.Client) -> list[str]:
    """Return the ids of two versions of `churn`, with different cuts."""
    dataset_id = service.upload(client, table(600))
    return [service.train(client, dataset_id, seed=seed)["output"]["id"] for seed in (0, 1)]


def putting(client: httpx.Client) -> Put:
    """Return what moves the alias from the revision that it has."""

    def put(model_id: str, **body: Any) -> httpx.Response:
        now = client.get(ADDRESS)
        headers = {"If-Match": now.headers["ETag"]} if now.is_success else {}
        return client.put(ADDRESS, json={"model_id": model_id, **body}, headers=headers)

    return put


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(scope="module")
def versions(shared: Service, client: httpx.Client) -> list[str]:
    return train_two(shared, client)


@pytest.fixture
def put(client: httpx.Client) -> Put:
    """What moves the alias; it does not exist yet."""
    now = client.get(ADDRESS)
    if now.is_success:
        client.delete(ADDRESS, headers={"If-Match": now.headers["ETag"]})
    return putting(client)


def cutoff_of(client: httpx.Client, model_id: str, **asked: float) -> dict[str, float]:
    """Return the cut of a version, as its operating point has it."""
    answer = client.get(f"/v1/models/{model_id}/operating-point", params=asked)
    assert answer.status_code == 200, answer.text
    point = answer.json()
    rates = {rate: point[rate]["value"] for rate in ("fpr", "tpr")}
    return {"threshold": point["threshold"], **rates}


def test_each_revision_keeps_who_moved_it_and_why(
    shared: Service, client: httpx.Client, versions: list[str], put: Put
) -> None:
    memo = {
        "reason": "  Four reviewers ",
        "review": 200,
        "rows": 5000,
        "cost_false_positive": 0,
        "cost_false_negative": 20.5,
        "amount": "loan_amount",
        "prevalence": 0.05,
    }
    first = put(versions[0], guarantee={"flagged": 0.04}, memo=memo).json()
    stored = memo | {"reason": "Four reviewers", "approved_by": None}
    assert (first["memo"], first["author"]) == (stored, "test")
    other = shared.client(shared.key(name="night job"))
    second = putting(other)(versions[1]).json()
    # The reason is of one revision; capacity and costs stay until they are changed.
    standing = stored | {"reason": None}
    assert (second["memo"], second["author"]) == (standing, "night job")
    now, before, *_ = client.get(ADDRESS).json()["history"]
    assert (now["memo"], now["author"]) == (standing, "night job")
    assert (before["memo"], before["author"]) == (stored, "test")
    part = put(versions[0], memo={"reason": "Back", "prevalence": None}).json()["memo"]
    assert part == standing | {"reason": "Back", "prevalence": None}
    costs = {"cost_false_positive": 1, "cost_false_negative": 2}
    assert put(versions[0], memo=costs).json()["memo"]["amount"] is None  # it was of other costs
    again = put(
        versions[0],
        memo={"cost_false_positive": 0, "cost_false_negative": 20.5, "amount": "loan_amount"},
    )
    assert again.json()["memo"]["amount"] == "loan_amount"
    half = put(versions[0], memo={"review": None}).json()["memo"]
    assert (half["review"], half["rows"], half["cost_false_positive"]) == (None, None, 0)
    assert put(versions[0], memo=None).json()["memo"] is None


def test_a_wrong_memo_is_refused_and_moves_nothing(
    client: httpx.Client, versions: list[str], put: Put
) -> None:
    was = put(versions[0]).json()
    for memo, named in (
        ({"review": 10}, ("review", "rows")),
        ({"cost_false_negative": 1}, ("cost_false_positive", "cost_false_negative")),
        ({"review": 11, "rows": 10}, ("review", "rows", 10, 11)),
        ({"amount": "loan_amount"}, ("amount", "cost_false_negative")),
        ({"amount": ""}, ("amount",)),
        ({"review": 0, "rows": 10}, ("review",)),
        ({"cost_false_positive": -1, "cost_false_negative": 1}, ("cost_false_positive",)),
        ({"prevalence": 1.5}, ("prevalence",)),
        ({"reason": " "}, ("reason",)),
        ({"reason": "x" * 2001}, ("reason",)),
        ({"reason": "a\0b"}, ("reason",)),
        ({"author": "me"}, ("author",)),
        ({"approved_by": "me"}, ("approved_by",)),
        ([], ("memo",)),
    ):
        refused(put(versions[1], memo=memo), 422, "invalid", *named)
        assert client.get(ADDRESS).json() == was


def test_the_flag_follows_the_alias(client: httpx.Client, versions: list[str], put: Put) -> None:
    first, second = versions
    guarantee = {"fpr": 0.1}
    kept = {"fpr": 0.1, **dict.fromkeys(("tpr", "flagged", "threshold", "confidence"))}
    cutoffs = {model_id: cutoff_of(client, model_id, fpr=0.1) for model_id in (first, second)}
    assert cutoffs[first]["threshold"] != cutoffs[second]["threshold"]

    def check(model_id: str) -> None:
        answer = client.post(UNDER, json={"rows": ROWS}).json()
        assert answer["model_id"] == model_id
        flags = [score >= cutoffs[model_id]["threshold"] for score in answer["scores"]]
        assert set(flags) == {True, False}
        assert answer["flags"] == flags
        values = {name: repr(value) for name, value in ROWS[30].items()}
        assert client.get(UNDER, params=values).json()["flag"] is flags[30]
        without = client.get(UNDER, params=values | {"probability": "false"}).json()
        assert without.keys() == {"model_id", "score", "fpr", "tpr", "flag"}

    made = put(first, guarantee=guarantee)
    assert made.status_code == 201
    assert (made.json()["guarantee"], made.json()["cutoff"]) == (kept, cutoffs[first])
    check(first)
    stale = client.put(ADDRESS, json={"model_id": second}, headers={"If-Match": '"999"'})
    assert stale.status_code == 412
    moved = put(second)
    assert moved.status_code == 200
    assert (moved.json()["guarantee"], moved.json()["cutoff"]) == (kept, cutoffs[second])
    check(second)
    earlier = moved.json()["history"][1]
    assert (earlier["guarantee"], earlier["cutoff"]) == (kept, cutoffs[first])
    assert put(earlier["model_id"]).json()["cutoff"] == cutoffs[first]
    check(first)
    listed = client.get("/v1/models/churn/aliases").json()["data"][0]
    assert (listed["guarantee"], listed["cutoff"]) == (kept, cutoffs[first])
    ended = put(first, guarantee=None).json()
    assert (ended["guarantee"], ended["cutoff"]) == (None, None)
    assert "flags" not in client.post(UNDER, json={"rows": ROWS}).json()
    now = client.get(ADDRESS)
    history = [step["cutoff"] for step in now.json()["history"]]
    assert history[:4] == [None, cutoffs[first], cutoffs[second], cutoffs[first]]
    # A new alias of the old name starts without a guarantee.
    assert client.delete(ADDRESS, headers={"If-Match": now.headers["ETag"]}).status_code == 204
    assert put(second).json()["guarantee"] is None


def test_an_alias_keeps_a_threshold_or_a_share_of_the_rows(
    client: httpx.Client, versions: list[str], put: Put
) -> None:
    table = client.get(f"/v1/models/{versions[0]}/operating-points", params={"points": 1000}).json()
    points = table["points"]
    saved = points[len(points) // 3]
    made = put(versions[0], guarantee={"threshold": saved["threshold"]}).json()
    assert made["guarantee"]["threshold"] == saved["threshold"]
    assert made["cutoff"] == cutoff_of(client, versions[0], threshold=saved["threshold"])
    scored = client.post(UNDER, json={"rows": ROWS}).json()
    assert scored["flags"] == [score >= saved["threshold"] for score in scored["scores"]]
    moved = put(versions[1]).json()  # the threshold stays, whatever the scale of the next version
    assert moved["cutoff"] == cutoff_of(client, versions[1], threshold=saved["threshold"])
    for guarantee in ({"fpr": 0.2, "confidence": 0.9}, {"tpr": 0.6, "confidence": 0.95}):
        cutoff = put(versions[0], guarantee=guarantee).json()["cutoff"]
        assert cutoff == cutoff_of(client, versions[0], **guarantee)
    # A share that was read off a cut is that cut; between two cuts it is the one that flags less.
    share = saved["flagged"]["value"]
    for flagged, index in ((share, len(points) // 3), (share * 0.9999, len(points) // 3 - 1)):
        made = put(versions[0], guarantee={"flagged": flagged}).json()
        assert made["cutoff"]["threshold"] == points[index]["threshold"]
    other = put(versions[1]).json()
    kept = client.get(f"/v1/models/{versions[1]}/operating-points", params={"points": 1000}).json()
    few = [each for each in kept["points"] if each["flagged"]["value"] <= share * 0.9999]
    assert other["cutoff"]["threshold"] == few[-1]["threshold"]
    # Where the first score alone is of more rows, nothing is flagged.
    none = put(versions[0], guarantee={"flagged": 1e-6}).json()["cutoff"]
    assert none == {"threshold": None, "fpr": 0.0, "tpr": 0.0}


@long_form
def test_every_format_has_the_same_flags(
    client: httpx.Client, versions: list[str], put: Put
) -> None:
    threshold = put(versions[0], guarantee={"fpr": 0.1}).json()["cutoff"]["threshold"]
    by_id = client.post(f"/v1/models/{versions[0]}/score", json=IN_LISTS).json()
    expected = [score >= threshold for score in by_id["scores"]]
    names = ["score", "fpr", "tpr", "probability", "flag"]

    def post(accept: str, **sent: Any) -> httpx.Response:
        headers = {"Accept": accept, **({} if "json" in sent else {"Content-Type": CSV})}
        answer = client.post(UNDER, headers=headers, **sent)
        assert answer.status_code == 200, answer.text
        return answer

    for sent in ({"json": {"rows": ROWS}}, {"json": IN_LISTS}, {"content": IN_CSV}):
        assert post("application/json", **sent).json()["flags"] == expected
        with pa.ipc.open_stream(post(ARROW, **sent).content) as stream:
            arrow = stream.read_all()
        parquet = pq.read_table(io.BytesIO(post(PARQUET, **sent).content))
        for found in (arrow, parquet):
            assert found.column_names == names
            assert found["flag"].type == pa.bool_()
            assert found["flag"].to_pylist() == expected
        lines = post(NDJSON, **sent).text.splitlines()
        assert [json.loads(line)["flag"] for line in lines] == expected
        cells = [line.split(",")[-1] for line in post(CSV, **sent).text.splitlines()]
        assert cells == ["flag", *(str(flag).lower() for flag in expected)]
    for row, flag in zip(ROWS, expected, strict=True):
        values = {name: repr(value) for name, value in row.items()}
        one = client.get(UNDER, params=values)
        assert one.json()["flag"] is flag
        assert one.headers["Cache-Control"] == "no-cache"
    without = client.get(UNDER, params=values | {"probability": "false"}).json()
    assert without.keys() == {"model_id", "score", "fpr", "tpr", "flag"}


def test_only_the_alias_flags(client: httpx.Client, versions: list[str], put: Put) -> None:
    put(versions[1], guarantee={"fpr": 0.1})
    client.put("/v1/models/churn/aliases/plain", json={"model_id": versions[1]})
    values = {name: repr(value) for name, value in ROWS[0].items()}
    for ref in (versions[1], "churn:2", "churn@plain"):
        path = f"/v1/models/{ref}/score"
        assert "flags" not in client.post(path, json={"rows": ROWS}).json()
        assert "flag" not in client.get(path, params=values).json()


def test_a_batch_has_the_flag(
    shared: Service, client: httpx.Client, versions: list[str], put: Put
) -> None:
    threshold = put(versions[0], guarantee={"fpr": 0.1}).json()["cutoff"]["threshold"]

    def submit(query: str, text: str = IN_CSV) -> str:
        path, headers = f"/v1/batch-scores?{query}", {"Content-Type": CSV}
        answer = client.post(path, content=text, headers=headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def scored(batch_id: str) -> pa.Table:
        result = client.get(f"/v1/batch-scores/{batch_id}/result")
        assert result.status_code == 200, result.text
        return pq.read_table(io.BytesIO(result.content))

    lines = IN_CSV.splitlines()
    own = "\n".join([f"{lines[0]},flag", *(f"{line},x" for line in lines[1:])])
    asked = [
        submit("model=churn@champion"),
        submit("model=churn@champion&top=5"),
        submit("model=churn:1"),
        submit("model=churn@champion&keep=flag", own),
    ]
    put(versions[0], guarantee={"fpr": 0.3})  # what was asked for stays as it was then
    shared.work()
    found, best, plain, kept = map(scored, asked)
    assert found.column_names == ["row_number", "score", "fpr", "tpr", "probability", "flag"]
    assert found["flag"].to_pylist() == [score >= threshold for score in found["score"].to_pylist()]
    assert best["flag"].to_pylist() == [True] * 5
    assert "flag" not in plain.column_names
    assert kept["flag"].to_pylist() == ["x"] * len(ROWS)


def test_a_bad_guarantee_is_refused(client: httpx.Client, versions: list[str], put: Put) -> None:
    put(versions[0], guarantee={"tpr": 0.5})
    before = client.get(ADDRESS).json()
    for guarantee, words in (
        ({}, "exactly one of fpr, tpr, flagged, threshold, got none"),
        ({"confidence": 0.9}, "exactly one of fpr, tpr, flagged, threshold, got none"),
        ({"fpr": 0.1, "tpr": 0.9}, "got fpr and tpr"),
        ({"flagged": 0.1, "threshold": 0}, "got flagged and threshold"),
        ({"threshold": 1.0, "confidence": 0.9}, "must come with fpr or tpr, got threshold"),
        ({"flagged": 0.1, "confidence": 0.9}, "must come with fpr or tpr, got flagged"),
        ({"flagged": 1.5}, "flagged"),
        ({"threshold": "1"}, "threshold"),
        ({"fpr": 0}, "fpr"),
        ({"tpr": 1}, "tpr"),
        ({"fpr": "0.1"}, "fpr"),
        ({"fpr": 0.1, "confidence": 1}, "confidence"),
        ({"fpr": 1e-12, "confidence": 0.9}, "for a guarantee, got 1e-12"),
        ({"fpr": 0.1, "label": "x"}, "label"),
        ("fpr", "guarantee"),
    ):
        answer = put(versions[1], guarantee=guarantee)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"].startswith("/guarantee")
        assert words in answer.text
        assert client.get(ADDRESS).json() == before


def test_a_version_that_cannot_meet_the_guarantee_is_refused(
    shared: Service, client: httpx.Client, versions: list[str], put: Put
) -> None:
    careful = {"fpr": 0.01, "confidence": 0.95}
    # An alias that is refused is not made.
    problem = refused(put(versions[0], guarantee=careful), 422, "too_few_rows", "churn:1", "299")
    assert problem["errors"][0]["pointer"] == "/guarantee/fpr"
    assert problem["errors"][0]["needed"] == 299
    assert client.get(ADDRESS).status_code == 404

    dataset_id = client.get(f"/v1/models/{versions[0]}").json()["dataset_id"]
    train = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost", "n_rounds": 3}}
    blind = shared.train(client, **train, validation={"method": "none"})["output"]["id"]
    folds = {"method": "cross_validation", "folds": 2}
    folded = shared.train(client, **train, validation=folds)["output"]["id"]
    many = client.post(
        "/v1/datasets?name=days&kind=multilabel&labels=hot,big",
        content="a,hot,big\n" + "".join(f"{k},{k % 2},{k // 20 % 2}\n" for k in range(80)),
        headers={"Content-Type": CSV},
    ).json()["id"]
    shared.work()
    job = shared.train(client, many, algorithm={"name": "adaboost_mh", "n_rounds": 3})
    labels = job["output"]["id"]
    put(versions[0], guarantee={"fpr": 0.2, "confidence": 0.9})
    before = client.get(ADDRESS).json()
    for model_id, named in ((blind, ()), (folded, ("cross-validated",)), (labels, ("multilabel",))):
        kept = refused(put(model_id), 422, "no_guarantee", *named)
        assert kept["errors"][0]["pointer"] == "/model_id"
        other = put(model_id, guarantee={"tpr": 0.5, "confidence": 0.9})
        refused(other, 422, "no_guarantee", *named)
    assert client.get(ADDRESS).json() == before
    # Without a confidence the out-of-fold scores will do, as they do for an operating point.
    plain = put(folded, guarantee={"fpr": 0.2}).json()
    assert plain["cutoff"] == cutoff_of(client, folded, fpr=0.2)
    assert put(labels, guarantee=None).json()["model_id"] == labels


def test_an_evaluation_measures_the_cutoff_of_the_alias(
    shared: Service, client: httpx.Client, versions: list[str], put: Put
) -> None:
    cutoff = put(versions[0], guarantee={"fpr": 0.1}).json()["cutoff"]
    asked = {
        "dataset_id": shared.upload(client, table(500, seed=3)),
        "costs": {"false_negative": {"fixed": 5}, "false_positive": {"fixed": 1}},
    }

    def submit(model: str, **body: Any) -> str:
        answer = client.post("/v1/evaluations", json={"model": model, **asked, **body})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    own = submit("churn@champion")
    named = submit("churn@champion", at={"threshold": 0.25})
    rate = submit("churn@champion", at={"fpr": 0.3})
    plain = submit("churn:1")
    put(versions[0], guarantee={"fpr": 0.3})  # an evaluation keeps the cut of its request
    shared.work()
    found = {each: client.get(f"/v1/evaluations/{each}").json() for each in (own, named, rate)}
    at_rate = cutoff_of(client, versions[0], fpr=0.3)["threshold"]
    for each, threshold, source in (
        (own, cutoff["threshold"], "alias"),
        (named, 0.25, "at"),
        (rate, at_rate, "at"),
    ):
        assert found[each]["cutoff"] == {"threshold": threshold, "source": source}
        assert found[each]["alias"] == "champion"
        metrics = found[each]["metrics"]
        assert metrics["operating_point"]["threshold"] == threshold
        assert found[each]["amounts"]["costs"]["threshold"] == threshold
        asking = {"threshold": threshold}
        point = client.get(f"/v1/evaluations/{each}/operating-point", params=asking).json()
        assert metrics["operating_point"]["fpr"] == point["fpr"]
    assert found[own]["at"] is None
    without = client.get(f"/v1/evaluations/{plain}").json()
    assert (without["cutoff"], without["metrics"]["operating_point"]) == (None, None)
    listed = {each["id"]: each for each in client.get("/v1/evaluations").json()["data"]}[own]
    whole = found[own]
    auc = whole["metrics"]["auc"]
    assert listed["metric"] == {name: auc[name] for name in ("value", "low", "high")}
    assert listed.pop("changed") is any(each["answer"] == "no" for each in whole["findings"])
    assert listed == {name: whole[name] for name in listed}
    assert not listed.keys() & {"metrics", "groups", "protected", "amounts", "drift", "findings"}
