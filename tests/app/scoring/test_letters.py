"""Adverse-action letters: templates stored with the reason codes, and the paragraphs of a row."""

from __future__ import annotations

import math
from typing import Any

import httpx
import numpy as np
import pytest

from app.models.letters import MAX_FILLED, Fault, fill, parse
from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.app.scoring.test_scorecard import people, train
from tests.sentences import Sentences

CARD = "/v1/models/card"
CODES = f"{CARD}/reason-codes"
CANDIDATES = [{"amount": amount, "purpose": "car"} for amount in (0.0, 5.0, 10.0, 17.5, 30.0, 60.0)]
ROWS = [{"amount": 17.5, "purpose": "car"}, {"amount": None, "purpose": None}]


def entry(code: str, column: str, letter: str | None = None, **more: Any) -> dict[str, Any]:
    found = {"code": code, "text": f"Because of {code}", "columns": [column], **more}
    return found if letter is None else found | {"letter": letter}


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(scope="module")
def trained(shared: Service, client: httpx.Client) -> str:
    dataset = shared.upload(client, people(400), label="bad", positive="yes")
    return train(shared, client, dataset, name="scorecard")


@pytest.fixture
def model(client: httpx.Client, trained: str) -> str:
    """A scorecard, whose name has no reason codes."""
    put(client)
    return trained


def put(client: httpx.Client, *entries: dict[str, Any]) -> httpx.Response:
    known = client.get(CODES)
    headers = {"If-Match": known.headers["ETag"]} if known.is_success else {}
    return client.put(CODES, json={"entries": list(entries)}, headers=headers)


def test_a_letter_has_the_paragraphs_of_the_reasons(
    shared: Service, client: httpx.Client, model: str
) -> None:
    letter = "Your {feature} of {value} cost you {points_lost} points ({code}: {text}) {{sic}}."
    stored = put(client, entry("R1", "amount", letter)).json()
    assert client.get(CODES).json()["entries"][0]["letter"] == letter
    found = client.post(f"{model}/letters", json={"rows": ROWS}, params={"pdo": 40}).json()
    assert found["revision"] == stored["revision"]
    scored = client.post(f"{model}/score?reasons=4", json={"rows": ROWS}).json()
    assert found["reference_score"] == scored["reference"]["score"]
    for one, score, reasons in zip(
        found["letters"], scored["scores"], scored["reasons"], strict=True
    ):
        assert one["score"] == score
        stated = [each["contribution"] for each in one["reasons"]]
        assert stated == [each["contribution"] for each in reasons][: len(stated)]
        assert stated == sorted(stated, reverse=True)
        for each in one["reasons"]:
            assert each["points_lost"] == pytest.approx(each["contribution"] * 40 / math.log(2))
            assert each["has_template"] is (each["code"] == "R1")
            assert each["paragraph"] in one["text"]
    (of_amount,) = [each for each in found["letters"][0]["reasons"] if each["code"] == "R1"]
    points = round(of_amount["points_lost"])
    expected = f"Your amount of 17.5 cost you {points} points (R1: Because of R1) {{sic}}."
    assert of_amount["paragraph"] == expected
    # without any reason codes the paragraphs are generic
    one = client.post(f"{model}/letters", json={"rows": ROWS}, params={"reasons": 1}).json()
    assert all(len(each["reasons"]) <= 1 for each in one["letters"])


def test_reasons_that_add_little_are_not_in_a_letter(service: Service) -> None:
    client = service.client(service.key())
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 4))
    y = X @ [3.0, 1.0, 0.5, 0.3] + rng.normal(size=600) > 0
    lines = [
        f"{','.join(f'{v:.3f}' for v in x)},{'yes' if one else 'no'}"
        for x, one in zip(X, y, strict=True)
    ]
    text = "\n".join(["a,b,c,d,bad", *lines, ""])
    dataset = service.upload(client, text, label="bad", positive="yes")
    model = train(service, client, dataset, name="scorecard")
    rows = [dict(zip("abcd", map(float, x), strict=True)) for x in X[:300].round(3)]
    found = client.post(f"{model}/letters?reasons=20", json={"rows": rows}).json()
    reasons = client.post(f"{model}/score?reasons=20", json={"rows": rows}).json()["reasons"]
    assert found["least_share"] == 0.05
    left_out = 0
    for letter, every in zip(found["letters"], reasons, strict=True):
        total = sum(each["contribution"] for each in every)
        shares = [each["contribution"] / total for each in every]
        assert [each["share"] for each in letter["reasons"]] == pytest.approx(
            [share for share in shares if share >= 0.05]
        )
        left_out += sum(share < 0.05 for share in shares)
    assert left_out
    # Fewer reasons have the same shares.
    two = client.post(f"{model}/letters?reasons=2", json={"rows": rows}).json()
    for few, many in zip(two["letters"], found["letters"], strict=True):
        assert few["reasons"] == many["reasons"][:2]


def test_letters_have_the_points_of_the_row_and_of_the_cutoff(
    client: httpx.Client, model: str
) -> None:
    alias = client.put(
        f"{CARD}/aliases/live", json={"model_id": "card:1", "guarantee": {"flagged": 0.2}}
    ).json()
    scale = {"pdo": 40, "base_score": 500, "base_odds": 20}
    letter = "A score of {points} (cutoff {cutoff_points})."
    assert put(client, entry("R1", "amount", letter)).is_success
    url = "/v1/models/card@live/letters"
    threshold = alias["cutoff"]["threshold"]
    scores = client.post(f"{model}/score", json={"rows": CANDIDATES}).json()["scores"]
    rows = [row for row, score in zip(CANDIDATES, scores, strict=True) if score >= threshold]
    accepted = [row for row, score in zip(CANDIDATES, scores, strict=True) if score < threshold]
    assert len(rows) >= 2
    # An applicant below the cutoff gets no letter, neither from the codes nor in a preview of others.
    mixed = [rows[0], accepted[0]]
    answer = client.post(url, params=scale, json={"rows": mixed})
    refused(answer, 422, "row_not_flagged", "row 2")
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/rows/1"]
    preview = {"entries": [entry("R1", "amount")], "rows": accepted[:1]}
    refused(client.post(f"{url}/preview", json=preview), 422, "row_not_flagged", "row 1")
    found = client.post(url, params=scale, json={"rows": rows}).json()
    points = client.post(f"{model}/points", params=scale, json={"rows": rows}).json()["rows"]
    cutoff = client.get(f"{model}/scorecard/cutoff", params=scale | {"threshold": threshold}).json()
    assert found["cutoff_points"] == pytest.approx(cutoff["points"])
    assert [each["points"] for each in found["letters"]] == pytest.approx(
        [each["points"] for each in points]
    )
    expected = f"A score of {round(points[0]['points'])} (cutoff {round(cutoff['points'])})."
    assert expected in found["letters"][0]["text"]
    # Without the alias there is no cutoff to print.
    refused(client.post(f"{model}/letters", json={"rows": ROWS}), 422, "no_points", "cutoff")
    put(client, entry("R1", "amount", "{points}"))
    assert client.post(f"{model}/letters", json={"rows": ROWS}).json()["cutoff_points"] is None


def test_what_is_refused(
    shared: Service, client: httpx.Client, model: str, sentences: Sentences
) -> None:
    for letter, position in (
        ("You {who}", 5),
        ("{feature", 1),
        ("a } b", 3),
        ("{}", 1),
        ("{feature!r}", 1),
        ("{{{value}}", 10),
        ("{value.__class__}", 1),
    ):
        problem = refused(put(client, entry("R1", "amount", letter)), 422, "invalid")
        (error,) = problem["errors"]
        assert error["pointer"] == "/entries/0/letter"
        assert str(position) in error["detail"]
        sentences(error)
    for text in ("", "x" * 2001, "a\0b", 3):
        answer = put(client, entry("R1", "amount") | {"letter": text})
        assert answer.status_code == 422
        assert any("letter" in each["pointer"] for each in answer.json()["errors"])
    two = entry("R1", "amount", "One"), entry("R1", "purpose", "Two")  # a code has one letter
    problem = refused(put(client, *two), 422, "invalid")
    assert problem["errors"][0]["pointer"] == "/entries/1/letter"
    for query in ("reasons=0", "reasons=21", "reference=cutoff", "pdo=0"):
        assert client.post(f"{model}/letters?{query}", json={"rows": ROWS}).status_code == 422
    assert client.post(f"{model}/letters", json={"rows": 3}).status_code == 422
    assert client.post(f"{model}/letters", json={"rows": []}).json()["letters"] == []
    stranger = shared.client(shared.key("stranger"))
    refused(stranger.post(f"{model}/letters", json={"rows": ROWS}), 404, "not_found")
    reader = shared.client(shared.key(scopes=("read",)))
    refused(reader.post(f"{model}/letters", json={"rows": ROWS}), 403, "forbidden")
    # Nor are such previews.
    address = f"{model}/letters/preview"
    good = {"rows": ROWS, "entries": [entry("R1", "amount")]}
    for pointer, wrong in (
        ("/rows", {"rows": []}),
        ("/rows", {"rows": ROWS[:1] * 101}),
        ("/rows", {"rows": None}),
        ("/rows/0", {"rows": [1]}),
        ("/rows/0", {"rows": [{"amount": 1.0, "other": 1}]}),
        ("/rows/0/amount", {"rows": [{"amount": "x", "purpose": "car"}]}),
        ("/rows/0/amount", {"rows": [{"amount": [1], "purpose": "car"}]}),
        ("/entries", {"entries": None}),
        ("/entries/0/columns/0", {"entries": [entry("R1", "none")]}),
        ("/entries/0/letter", {"entries": [entry("R1", "amount", "{who}")]}),
        ("/entries/0/code", {"entries": [entry("", "amount")]}),
        ("/more", {"more": 1}),
    ):
        answer = client.post(address, json=good | wrong)
        assert answer.status_code == 422, wrong
        errors = answer.json().get("errors", [])
        assert any(each["pointer"].startswith(pointer) for each in errors), answer.text
        sentences(answer.json())
    for query in ("reasons=0", "reference=cutoff", "pdo=0"):
        assert client.post(f"{address}?{query}", json=good).status_code == 422
    assert client.post(address, content=b"{").status_code in (400, 415, 422)
    refused(stranger.post(address, json=good), 404, "not_found")
    refused(reader.post(address, json=good), 403, "forbidden")


def test_points_need_log_odds(shared: Service, client: httpx.Client, model: str) -> None:
    dataset = shared.upload(client, people(200), label="bad", positive="yes")
    other = train(shared, client, dataset, name="rankboost", n_rounds=5)
    put(client, *(entry("R1", name, "{points_lost}") for name in ("amount", "purpose")))
    refused(client.post(f"{other}/letters", json={"rows": ROWS}), 422, "no_points", "R1")
    put(client, *(entry("R1", name, "{value}") for name in ("amount", "purpose")))
    found = client.post(f"{other}/letters", json={"rows": ROWS}).json()
    assert all(each["points_lost"] is None for each in found["letters"][0]["reasons"])
    assert (found["letters"][0]["points"], found["cutoff_points"]) == (None, None)


def test_a_preview_is_what_the_stored_codes_would_write(
    shared: Service, client: httpx.Client, model: str
) -> None:
    letter = "Your {feature} of {value} cost you {points_lost} points."
    codes = [entry("R1", "amount", letter), entry("R2", "purpose", direction="raises")]
    asked = {"rows": ROWS, "entries": codes}
    shown = client.post(f"{model}/letters/preview?pdo=40&reasons=2", json=asked).json()
    assert shown.pop("revision") is None
    assert client.get(CODES).json()["entries"] == []
    revision = put(client, *codes).json()["revision"]
    stored = client.post(f"{model}/letters?pdo=40&reasons=2", json={"rows": ROWS}).json()
    assert stored.pop("revision") == revision
    assert shown == stored
    without = client.post(f"{model}/letters/preview", json={"rows": ROWS, "entries": []}).json()
    assert all(each["code"] is None for each in without["letters"][0]["reasons"])
    again = client.post(f"{model}/letters", json={"rows": ROWS}).json()
    assert again["letters"][0]["reasons"][0]["code"] is not None


def test_values_are_no_templates() -> None:
    values = dict.fromkeys(("feature", "value", "points_lost", "text", "code"), "{code} <b>")
    assert fill("a {value}{{", values) == "a {code} <b>{"
    long = fill("{value}", values | {"value": "x" * 1000})
    assert len(long) == MAX_FILLED
    assert isinstance(parse("{"), Fault)
