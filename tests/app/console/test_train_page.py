"""The form for a job: what JSON comes of it, what the API says of it, and that it leads to a job."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import httpx
import pytest
from rankwright.types import Algorithm

from app.console.job_form import JobForm, as_curl, as_python, read_space, read_value
from app.console.train import MAX_LISTED
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service

NASTY = "<script>alert(1)</script>\"'{{ 7 * 7 }}"
INTEGER = {"type": "integer"}
NUMBER_OR_NONE = {"anyOf": [{"type": "number"}, {"type": "null"}]}
ITEMS = "item,size\n" + "".join(f"i{n},{n}\n" for n in range(20))


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


@pytest.fixture(scope="module")
def dataset_id(service: Service) -> str:
    return service.upload(service.client(service.key()))


@pytest.fixture(scope="module")
def browser_of(service: Service) -> Callable[..., Callable[..., httpx.Response]]:
    """Sign in; returns what gets a page, or with fields posts a form."""
    return lambda *given, **scopes: PlainBrowser(service, *given, **scopes).ask


@pytest.fixture(scope="module")
def ask(browser_of: Callable[..., Callable[..., httpx.Response]]) -> Callable[..., httpx.Response]:
    return browser_of()


@pytest.fixture(scope="module")
def form_of(service: Service) -> Callable[..., JobForm]:
    """Make the form of some fields."""
    schemas = service.app.openapi()["components"]["schemas"]
    listed = service.client(service.key()).get("/v1/algorithms").json()["data"]
    algorithms = [Algorithm.from_json(each) for each in listed]

    def make(kind: str = "bipartite", **given: str) -> JobForm:
        fields = {name.replace("__", "."): value for name, value in given.items()}
        return JobForm(fields, algorithms=algorithms, schemas=schemas, kind=kind)

    return make


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("5", INTEGER, 5),
        ("1e-3", NUMBER_OR_NONE, 0.001),
        (".5", NUMBER_OR_NONE, 0.5),
        ("none", NUMBER_OR_NONE, None),
        ("None", INTEGER, "None"),
        ("nan", NUMBER_OR_NONE, "nan"),
        ("1e999", NUMBER_OR_NONE, "1e999"),
        ("9" * 400, INTEGER, "9" * 400),
        ("true", {"type": "boolean"}, True),
        ("true", {"enum": ["true"], "type": "string"}, "true"),
        ("auto", {"anyOf": [{"type": "number"}, {"const": "auto", "type": "string"}]}, "auto"),
        ("5", {"type": "string"}, "5"),
        ('{"a": 1, "b": [2]}', {"type": "object"}, {"a": 1, "b": [2]}),
        ('{"a":', {"type": "object"}, '{"a":'),
        ('{"a":' * 100_000, {"type": "object"}, '{"a":' * 100_000),
        ('{"a": NaN}', {"type": "object"}, '{"a": NaN}'),
    ],
)
def test_text_becomes_what_the_schema_wants(text: str, schema: Any, value: object) -> None:
    found = read_value(text, schema)
    assert (found, type(found)) == (value, type(value))


def test_what_a_search_tries() -> None:
    assert read_space("50, 100,200", INTEGER) == [50, 100, 200]
    assert read_space("none, 0.5", NUMBER_OR_NONE) == [None, 0.5]
    assert read_space("10 to 100", INTEGER) == {"low": 10, "high": 100, "integer": True}
    assert read_space("0.01 to 1 log", NUMBER_OR_NONE) == {"low": 0.01, "high": 1, "log": True}


def test_the_fields_become_the_body(form_of: Callable[..., JobForm]) -> None:
    given = {
        "dataset_id": "ds_1",
        "algorithm__name": "rankboost",
        "algorithm__n_rounds": "20",
        "algorithm__max_leaves": "none",
        "algorithm__C": "1",  # of another algorithm that was chosen before
        "objective__metric": "pauc",
        "objective__fpr_max": "0.1",
        "objective__fpr": "0.3",
        "validation__method": "cross_validation",
        "validation__folds": "3",
        "search__method": "random",
        "search__space__learning_rate": "0.1 to 1 log",
        "search__n_candidates": " 4 ",
        "baselines": "false",
        "tags": "team=risk\n\n a = b=c ",
    }
    assert form_of(**given).body() == {
        "dataset_id": "ds_1",
        "algorithm": {"name": "rankboost", "n_rounds": 20, "max_leaves": None},
        "objective": {"metric": "pauc", "fpr_max": 0.1},
        "validation": {"method": "cross_validation", "folds": 3},
        "search": {
            "method": "random",
            "space": {"learning_rate": {"low": 0.1, "high": 1, "log": True}},
            "n_candidates": 4,
        },
        "baselines": False,
        "tags": {"team": "risk", "a": "b=c"},
    }


@pytest.mark.parametrize(
    ("metric", "fields", "objective"),
    [
        ("average_precision", {}, {}),
        ("precision", {"count": "100", "share": ""}, {"count": 100}),
        ("lift", {"share": "0.15"}, {"share": 0.15}),
        ("precision_at_recall", {"recall": "0.8"}, {"recall": 0.8}),
        ("ndcg", {"count": ""}, {}),
    ],
)
def test_the_form_has_every_objective(
    form_of: Callable[..., JobForm], metric: str, fields: dict[str, str], objective: dict[str, Any]
) -> None:
    given = {f"objective__{name}": value for name, value in fields.items()}
    form = form_of(dataset_id="ds_1", objective__metric=metric, **given)
    assert [field.path for field in form.objective[1:]] == [f"objective.{name}" for name in fields]
    assert form.body()["objective"] == {"metric": metric, **objective}


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [("bipartite", "auto"), ("multilabel", "adaboost_mh"), ("preferences", "rankboost")],
)
def test_each_kind_of_data_begins_with_what_learns_from_it(
    form_of: Callable[..., JobForm], kind: str, algorithm: str
) -> None:
    form = form_of(kind, dataset_id="ds_1")
    assert form.body() == {"dataset_id": "ds_1", "algorithm": {"name": algorithm}}
    assert bool(form.objective) == (kind != "preferences")


def test_errors_stand_beside_their_fields(form_of: Callable[..., JobForm]) -> None:
    form = form_of(algorithm__name="rankboost", search__method="grid")
    errors = [
        {"pointer": "/algorithm/n_rounds", "detail": "a"},
        {"pointer": "/algorithm/n_rounds/0", "detail": "f"},
        {"pointer": "/search/space", "detail": "b"},
        {"pointer": "/tags/x", "detail": "c"},
        {"pointer": "/nowhere", "detail": "d"},
        {"detail": "e"},
    ]
    form.place({"detail": "all", "errors": errors})
    found = {field.path: field.error for field in form.fields if field.error}
    assert found == {"algorithm.n_rounds": "a; f", "search.method": "b", "tags": "c"}
    assert form.unplaced == ["d", "e"]


def test_the_request_in_other_words_is_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"name": "it's", "algorithm": {"n": None, "on": True}, "tags": {"é": NASTY}}
    curl = as_curl("http://x/", body)
    assert json.loads(curl.partition("-d '")[2][:-1].replace("'\\''", "'")) == body
    sent: dict[str, Any] = {}
    code = as_python("http://x/", body).replace("import requests\n", "")

    class Requests:
        @staticmethod
        def post(url: str, **given: Any) -> Any:
            sent.update(given, url=url)
            return type("Answer", (), {"json": staticmethod(lambda: {"id": "job_1"})})

    monkeypatch.setenv("RANKWRIGHT_API_KEY", "rw_x")
    exec(code, {"requests": Requests, "print": lambda *_: None})  # our own words
    assert (sent["url"], sent["json"]) == ("http://x/v1/jobs", body)


def test_a_form_says_which_rows_judge_before_it_is_sent(
    service: Service, ask: Callable[..., httpx.Response]
) -> None:
    text = "day,x,left\n" + "".join(
        f"2026-01-{n % 28 + 1:02},{n % 7},{'yes' if n % 3 else 'no'}\n" for n in range(120)
    )
    dated = service.upload(service.client(service.key()), text)
    fields = {"dataset_id": dated, "algorithm.name": "rankboost", "validation.method": "holdout"}
    by_time = ask("/console/train/check", fields).text
    assert "<strong>day</strong>" in by_time
    assert "has dates" not in by_time
    at_random = ask("/console/train/check", fields | {"validation.time_column": "none"}).text
    assert "<strong>day</strong>" not in at_random
    assert "has dates" in at_random
    assert "&#34;time_column&#34;: null" in at_random  # the request with curl
    for column, again in (("", "day"), ("none", "none")):
        chosen = {"validation.time_column": column, "algorithm.n_rounds": "1", "name": "again"}
        chosen |= {"baselines": "false"}
        ask("/console/train", fields | chosen)
        service.work()
        address = ask("/console/models/again/retrain").headers["location"]
        assert f"validation.time_column={again}" in address


def test_a_form_without_scripts_leads_to_a_job(
    service: Service, ask: Callable[..., httpx.Response], dataset_id: str
) -> None:
    text = ask("/console/train").text
    assert '<option value="auto" selected>' in text
    assert f'value="{dataset_id}"' in text
    assert f'value="{dataset_id}" selected' not in text  # nobody came from it
    assert f'value="{dataset_id}" selected' in ask(f"/console/train?dataset_id={dataset_id}").text
    chosen = {"dataset_id": dataset_id, "algorithm.name": "logistic"}
    text = ask("/console/train/form", chosen).text
    assert 'name="algorithm.standardize"' in text
    assert "Ready to train" in text  # it is checked
    fields = {
        "dataset_id": dataset_id,
        "algorithm.name": "rankboost",
        "algorithm.n_rounds": "5",
        "validation.method": "holdout",
        "baselines": "false",
        "name": "by-form",
    }
    answer = ask("/console/train", fields)
    assert answer.status_code == 303, answer.text
    job_id = answer.headers["location"].removeprefix("/console/jobs/")
    job = service.client(service.key()).get(f"/v1/jobs/{job_id}").json()
    assert (job["name"], job["algorithm"]["n_rounds"]) == ("by-form", 5)
    service.work()


def test_what_the_api_refuses_is_said_and_nothing_is_lost(
    ask: Callable[..., httpx.Response], dataset_id: str
) -> None:
    fields = {
        "dataset_id": dataset_id,
        "algorithm.name": "rankboost",
        "algorithm.n_rounds": "0",
        "algorithm.max_bins": "1",
        "tags": f"{NASTY}=1",
    }
    for path, status in (("/console/train", 422), ("/console/train/form", 200)):
        answer = ask(path, fields)
        assert answer.status_code == status
        text = unescape(answer.text)
        assert "errors, the first" not in text  # each stands in the list, and at its field
        for name, title in (("n_rounds", "Rounds"), ("max_bins", "Maximum bins per column")):
            assert f'<a href="#f-algorithm-{name}">“{title}” must' in text
            assert f'id="e-f-algorithm-{name}">“{title}” must' in text
        assert 'name="algorithm.n_rounds" aria-describedby' in text
        assert f"{NASTY}=1</textarea>" in text
        assert "<script>alert" not in answer.text
    named = ask("/console/train", {**fields, "name": NASTY})
    assert f'value="{NASTY}"' in unescape(named.text)
    assert "<script>alert" not in named.text
    found = ask("/console/train/check", fields).text
    assert 'id="e-f-algorithm-n_rounds" hx-swap-oob="true">“Rounds” must' in found
    assert "&#34;n_rounds&#34;: 0" in found  # the request is shown as it would be sent


@pytest.mark.parametrize(
    "fields",
    [
        {"dataset_id": ""},
        {"dataset_id": "ds_x"},
        {"algorithm.name": "nothing"},
        {"objective.metric": "made-up", "name": "???"},
        {"algorithm.name": "rankboost", "search.method": "grid", "search.space.n_rounds": "a to b"},
        {"seed": "-1"},
        {"tags": "=\n=="},
        {"algorithm.name": "rankboost", "algorithm.monotone": '{"a":' * 10_000},
        {"algorithm.name": "rankboost", "algorithm.monotone": '{"a":' * 900 + "1" + "}" * 900},
        {"algorithm.name": "rankboost", "algorithm.monotone": '{"a": NaN}'},
    ],
)
def test_bad_fields_are_refused_in_words(
    ask: Callable[..., httpx.Response], dataset_id: str, fields: dict[str, str]
) -> None:
    given = {"dataset_id": dataset_id, **fields}
    answer = ask("/console/train", given)
    assert answer.status_code in (404, 422), answer.text
    assert 'role="alert"' in answer.text
    assert ask("/console/train/check", given).status_code == 200


def test_a_dataset_of_items_has_no_objective(
    service: Service, ask: Callable[..., httpx.Response]
) -> None:
    client = service.client(service.key())
    answer = client.post(
        "/v1/datasets",
        params={"kind": "preferences", "item": "item"},
        content=ITEMS,
        headers={"Content-Type": "text/csv"},
    )
    service.work()
    text = ask(f"/console/train?dataset_id={answer.json()['id']}").text
    assert '<option value="rankboost" selected>' in text
    assert 'name="objective.metric"' not in text


def wide(n_columns: int) -> str:
    """Numbers, one column of words, and a label that the first column decides."""
    names = [f"n{at}" for at in range(n_columns)]
    rows = [
        ",".join([*(str((row * (at + 3)) % 11) for at in range(n_columns)), "ab"[row % 2],
                  "yes" if row % 11 > 5 else "no"])
        for row in range(90)
    ]  # fmt: skip
    return "\n".join([",".join([*names, "word", "left"]), *rows, ""])


@pytest.mark.parametrize(("n_columns", "listed"), [(3, 3), (MAX_LISTED + 1, 0)])
def test_monotone_constraints_are_chosen_by_column(
    service: Service, ask: Callable[..., httpx.Response], n_columns: int, listed: int
) -> None:
    """Without a script, too; of a wide table, a few columns are named."""
    client = service.client(service.key())
    dataset = service.upload(client, wide(n_columns), name=f"wide{n_columns}")
    fields = {"dataset_id": dataset, "algorithm.name": "rankboost", "algorithm.n_rounds": "5"}
    fields |= {"validation.method": "holdout", "baselines": "false"}
    empty = ask("/console/train/form", fields).text
    assert len(re.findall(r'<select name="algorithm\.monotone\.', empty)) == listed
    assert "algorithm.monotone.word" not in empty
    if listed:
        chosen = {"algorithm.monotone.n0": "increasing", "algorithm.monotone.n1": ""}
    else:
        assert 'list="ordered"' in empty
        chosen = {"more.column.0": "n0", "more.direction.0": "increasing", "more.column.1": ""}
    form = ask("/console/train/form", fields | chosen).text
    (select,) = re.findall(r'(?s)<select name="algorithm\.monotone\.n0".*?</select>', form)
    assert "<option selected>increasing</option>" in select
    assert "&#34;n0&#34;: &#34;increasing&#34;" in form  # the request with curl
    sent = ask("/console/train", fields | chosen | {"name": f"wide{n_columns}"})
    assert sent.status_code == 303, sent.text
    service.work()
    model = client.get(f"/v1/models/wide{n_columns}").json()
    assert model["algorithm"]["monotone"] == {"n0": "increasing"}
    # Trained again, it has the same.
    again = ask(f"/console/models/wide{n_columns}/retrain").headers["location"]
    assert "algorithm.monotone.n0=increasing" in again
    assert "<option selected>increasing</option>" in ask(again).text
    for wrong, words in (
        ({"more.column.0": "word", "more.direction.0": "increasing"}, "word"),
        ({"more.column.0": "nowhere", "more.direction.0": "increasing"}, "nowhere"),
        ({"more.column.0": "n2", "more.direction.0": ""}, "increasing"),
        ({"algorithm.monotone.n0": "upwards"}, "upwards"),
    ):
        refused = ask("/console/train/form", fields | wrong).text
        (fault,) = re.findall(r'id="e-f-algorithm-monotone"[^>]*>([^<]*)<', refused)
        assert words in fault
