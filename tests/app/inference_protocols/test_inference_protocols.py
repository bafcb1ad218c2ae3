"""The protocols of other servers: the same scores as by our own, in each form, and what each refuses."""

from __future__ import annotations

import dataclasses
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.routing import APIRoute
from pydantic import ValidationError

from app.access.authentication import scope_of
from app.inference_protocols.open_inference import infer, read_request
from app.ingest.errors import BadTable
from app.platform.documents import ModelFeature
from app.platform.settings import Settings
from app.scoring.features import FeatureIndex
from app.scoring.service import ModelCache, Served
from app.scoring.table_rows import Bounds
from core.registry import ALGORITHMS
from tests.app.live_service import NAMES, OWNER, Service, table
from tests.raising import raises
from tests.sentences import Sentences

ROWS = [[0.25, -1.5, 0.5], [1.0, 0.0, None], [-2.0, 0.75, -0.125]]
NUMBERS = np.array(ROWS, dtype=np.float64)


@pytest.fixture(scope="module")
def model(shared: Service) -> str:
    client = shared.client(shared.key())
    shared.train(client, shared.upload(client, table(200)), name="churn")
    return "churn"


@pytest.fixture
def client(shared: Service, model: str) -> httpx.Client:
    return shared.client(shared.key(scopes=["score"]))


@pytest.fixture
def scores(client: httpx.Client) -> list[float]:
    """Return the answer of our own route."""
    body = {"columns": NAMES, "data": ROWS}
    found: list[float] = client.post("/v1/models/churn/score", json=body).json()["scores"]
    return found


def tensor(name: str, datatype: str, shape: Sequence[int], **more: Any) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape), **more}


def binary(
    inputs: list[tuple[dict[str, Any], bytes]], **others: Any
) -> tuple[bytes, dict[str, str]]:
    """A body with binary tensors, and its headers."""
    described = [{**each, "parameters": {"binary_data_size": len(data)}} for each, data in inputs]
    text = json.dumps({"inputs": described, **others}).encode()
    body = text + b"".join(data for _, data in inputs)
    return body, {"Inference-Header-Content-Length": str(len(text))}


def of_bytes(values: Sequence[str]) -> bytes:
    encoded = [value.encode() for value in values]
    return b"".join(len(value).to_bytes(4, "little") + value for value in encoded)


def texts(values: Sequence[float | None]) -> list[str]:
    return ["" if value is None else repr(value) for value in values]


COLUMNS: list[list[float | None]] = [list(column) for column in zip(*ROWS, strict=True)]
FORMS: dict[str, list[dict[str, Any]]] = {
    "a tensor a feature": [
        tensor(name, "FP64", [3], data=column) for name, column in zip(NAMES, COLUMNS, strict=True)
    ],
    "a column a feature": [
        tensor(name, "FP64", [3, 1], data=[[value] for value in column])
        for name, column in zip(NAMES, COLUMNS, strict=True)
    ],
    "one tensor, flat": [tensor("x", "FP64", [3, 3], data=[v for row in ROWS for v in row])],
    "one tensor, by rows": [tensor("x", "FP32", [3, 3], data=ROWS)],
    "one tensor of text": [
        tensor("x", "BYTES", [3, 3], data=[text for row in ROWS for text in texts(row)])
    ],
    "with a tensor that is no feature": [
        tensor("id", "INT64", [3], data=[7, 8, 9]),
        *(
            tensor(name, "FP64", [3], data=column)
            for name, column in zip(NAMES, COLUMNS, strict=True)
        ),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_tensors_scores_as_our_own_door(
    client: httpx.Client, scores: list[float], form: str
) -> None:
    body = {"id": "42", "inputs": FORMS[form]}
    answer = client.post("/oip/v2/models/churn/infer", json=body)
    found = answer.json()
    assert (answer.status_code, found["id"], found["model_name"]) == (200, "42", "churn")
    assert [each["name"] for each in found["outputs"]] == ["score", "fpr", "tpr"]
    assert found["outputs"][0] == tensor("score", "FP64", [3], data=scores)
    assert answer.headers.get("X-Ignored-Inputs") == ("id" if "no feature" in form else None)


def test_gaps_may_be_bare_nan(client: httpx.Client, scores: list[float]) -> None:
    text = json.dumps({"inputs": FORMS["one tensor, flat"]}).replace("null", "NaN")
    assert "NaN" in text
    headers = {"Content-Type": "application/json"}
    found = client.post("/oip/v2/models/churn/infer", content=text, headers=headers).json()
    assert found["outputs"][0]["data"] == scores
    named = text.replace('"inputs"', r'"id": "NaN \"NaN", "inputs"')
    found = client.post("/oip/v2/models/churn/infer", content=named, headers=headers).json()
    assert (found["id"], found["outputs"][0]["data"]) == ('NaN "NaN', scores)


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "\\ud800", "inputs": [NaN]}',
        '{"inputs": [NaN, Infinity]}',
        '{"inputs": [NaNa]}',
        '{"inputs": NaN, "' + '\\\\\\"' * 1_000_000,  # a string without an end
        "[NaN" + ',""' * 1_000_000,
        "[NaN" + "[" * 2_000,
    ],
    ids=["half a character", "Infinity", "NaNa", "no end", "many", "depth"],
)
def test_no_more_than_bare_nan_is_let_through(client: httpx.Client, text: str) -> None:
    assert "not JSON" in refuse(client, 400, content=text)


@pytest.mark.parametrize("coding", [None, "gzip", "deflate"])
@pytest.mark.parametrize("datatype", ["FP64", "BYTES"])
def test_binary_tensors_there_and_back(
    client: httpx.Client, scores: list[float], datatype: str, coding: str | None
) -> None:
    data = NUMBERS.astype("<f8").tobytes()
    if datatype == "BYTES":
        data = of_bytes([text for row in ROWS for text in texts(row)])
    outputs = [{"name": "tpr"}, {"name": "score", "parameters": {"binary_data": True}}]
    body, headers = binary([(tensor("x", datatype, [3, 3]), data)], outputs=outputs)
    if coding is not None:
        parts = gzip.compress(body[:40]) + gzip.compress(body[40:]) + bytes(512)
        body = parts if coding == "gzip" else zlib.compress(body)
        headers |= {"Content-Encoding": coding, "Accept-Encoding": coding}
    answer = client.post("/oip/v2/models/churn/versions/1/infer", content=body, headers=headers)
    assert answer.headers.get("Content-Encoding") == coding
    length = int(answer.headers["Inference-Header-Content-Length"])
    found = json.loads(answer.content[:length])
    assert found["model_version"] == "1"
    described = {each["name"]: each for each in found["outputs"]}
    assert described["score"]["parameters"] == {"binary_data_size": 24}
    assert np.frombuffer(answer.content[length:], "<f8").tolist() == scores
    assert len(described["tpr"]["data"]) == 3


@pytest.fixture(scope="module")
def coded(shared: Service) -> str:
    """A model of numbers whose table writes -999 for a missing one."""
    client = shared.client(shared.key())
    shared.train(client, shared.upload(client, table(200), missing="-999"), name="coded")
    return "coded"


@pytest.mark.parametrize("datatype", ["FP64", "FP32"])
@pytest.mark.parametrize("rows", [1, 3])
def test_plain_numbers_are_read_as_every_table_is(
    client: httpx.Client, coded: str, datatype: str, rows: int
) -> None:
    X = np.array([[-999.0, -1.5, np.nan], *ROWS[:2]], dtype=np.float64)[:rows]
    address, kind = f"/oip/v2/models/{coded}/infer", "<f8" if datatype == "FP64" else "<f4"
    gaps = [[None if np.isnan(value) else value for value in row] for row in X.tolist()]
    asked = {
        "inputs": [tensor("x", datatype, X.shape, data=gaps)],
        "outputs": [{"name": "reasons"}],
    }
    asked["outputs"] += [{"name": "score"}, {"name": "fpr"}]
    as_json = client.post(address, json=asked).json()["outputs"]
    own = client.post(f"/v1/models/{coded}/score", json={"columns": NAMES, "data": gaps}).json()
    assert as_json[1]["data"] == own["scores"]
    forms = {
        "one": [(tensor("x", datatype, X.shape), X.astype(kind).tobytes())],
        "each": [
            (tensor(name, datatype, [rows, 1]), X[:, NAMES.index(name)].astype(kind).tobytes())
            for name in reversed(NAMES)
        ],
    }
    for inputs in forms.values():
        body, headers = binary(inputs, outputs=asked["outputs"])
        assert client.post(address, content=body, headers=headers).json()["outputs"] == as_json
    X[0, 1] = np.inf
    body, headers = binary([(tensor("x", "FP64", X.shape), X.tobytes())])
    refused = client.post(address, content=body, headers=headers)
    assert (refused.status_code, refused.json()["errors"][0]["column"]) == (422, NAMES[1])


def test_whole_numbers_and_reasons(client: httpx.Client) -> None:
    ints = np.array([[1, 0, 2], [3, -1, 0]])
    expected = client.post(
        "/v1/models/churn/explain",
        params={"probability": "false"},
        json={"rows": [dict(zip(NAMES, row, strict=True)) for row in ints.tolist()]},
    ).json()["explanations"]
    for datatype in ("INT64", "INT8", "FP16"):
        kind = {"INT64": "<i8", "INT8": "|i1", "FP16": "<f2"}[datatype]
        body, headers = binary(
            [(tensor("x", datatype, [2, 3]), ints.astype(kind).tobytes())],
            outputs=[{"name": "reasons"}],
        )
        found = client.post("/oip/v2/models/churn/infer", content=body, headers=headers).json()
        (reasons,) = found["outputs"]
        assert (reasons["datatype"], reasons["shape"]) == ("BYTES", [2])
        assert [json.loads(each) for each in reasons["data"]] == expected


def test_reasons_take_a_turn_however_they_are_spelled(
    client: httpx.Client, shared: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.dependencies.COMPUTATION_WAIT_SECONDS", 0.01)
    inputs = [tensor("x", "FP64", [1, 3], data=[1.0, 2.0, 3.0])]
    plain = json.dumps({"inputs": inputs, "outputs": [{"name": "score"}]})
    spelled = [
        plain.replace("score", name) for name in ("reasons", r"\u0072easons", r"reason\u0073")
    ]
    with shared.computing():
        for body in spelled:
            assert "try again" in refuse(client, 429, content=body)
        assert client.post("/oip/v2/models/churn/infer", content=plain).status_code == 200
    for body in spelled:
        assert client.post("/oip/v2/models/churn/infer", content=body).status_code == 200


def test_what_can_be_asked_of_server_and_model(client: httpx.Client, shared: Service) -> None:
    anybody = shared.client()
    assert anybody.get("/oip/v2").json()["extensions"] == ["binary_tensor_data"]
    assert anybody.get("/oip/v2/health/live").json() == {"live": True}
    assert anybody.get("/oip/v2/health/ready").json() == {"ready": True}
    found = client.get("/oip/v2/models/churn%3A1").json()
    assert [each["name"] for each in found["inputs"]] == NAMES
    assert {each["datatype"] for each in found["inputs"]} == {"FP64"}
    assert client.get("/oip/v2/models/churn/versions/1/ready").json()["ready"] is True
    for address in ("/oip/v2/models/gone", "/oip/v2/models/churn/versions/9/ready"):
        answer = client.get(address)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def refuse(client: httpx.Client, status: int, **request: Any) -> str:
    """Check that the protocol's own error comes; return what it says."""
    answer = client.post("/oip/v2/models/churn/infer", **request)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/json")
    found: str = answer.json()["error"]
    return found


WRONG: list[tuple[Any, str]] = [
    ([], "must be a JSON object"),
    ({}, "inputs must be a list"),
    ({"inputs": []}, "at least one"),
    ({"inputs": [3]}, r"inputs[0] must be an object"),
    ({"inputs": [{"name": ""}]}, "name of inputs[0]"),
    ({"inputs": [tensor("x", "FP99", [1], data=[1])]}, "datatype of 'x'"),
    ({"inputs": [tensor("x", "FP64", [-1, 3], data=[])]}, "shape of 'x'"),
    ({"inputs": [tensor("x", "FP64", [1, 2, 3], data=[])]}, "shape of 'x'"),
    ({"inputs": [tensor("x", "FP64", [2**39, 3], data=[1.0])]}, "must have 1649267441664 values"),
    ({"inputs": [tensor("x", "FP64", [2**39, 0], data=[])]}, "at most"),
    ({"inputs": [tensor("x", "FP64", [1, 3], data=[[1, 2]])]}, "row 0 of 'x'"),
    ({"inputs": [tensor("x", "FP64", [1, 3], data=[1, "a", 3])]}, "must be numbers"),
    ({"inputs": [tensor("x", "FP64", [1, 2], data=[1, 2])]}, "shape [rows, 3]"),
    ({"inputs": [tensor("age", "FP64", [1], data=[1])]}, "feature 'income' is absent"),
    (
        {"inputs": [tensor("id", "FP64", [1], data=[1]), tensor("b", "FP64", [1], data=[1])]},
        "no input",
    ),
    (
        {
            "inputs": [
                tensor("age", "FP64", [1], data=[1]),
                tensor("income", "FP64", [2], data=[1, 2]),
            ]
        },
        "same number of rows",
    ),
    ({"inputs": [tensor("age", "FP64", [1], data=[1])] * 2}, "occurs twice"),
    ({"inputs": FORMS["one tensor, flat"], "outputs": [{"name": "proba"}]}, "must be one of score"),
    ({"inputs": FORMS["one tensor, flat"], "outputs": [{"name": "score"}] * 2}, "occurs twice"),
    ({"inputs": FORMS["one tensor, flat"], "id": 4}, "id must be a string"),
    (
        {"inputs": FORMS["one tensor, flat"], "parameters": {"binary_data_output": 1}},
        "true or false",
    ),
    ({"inputs": [tensor("x", "BYTES", [1, 3], data=["1", "x", "3"])]}, "income"),
]


@pytest.mark.parametrize(("body", "said"), WRONG)
def test_what_breaks_the_protocol_is_named(client: httpx.Client, body: Any, said: str) -> None:
    status = 400 if body == [] else 422
    assert said in refuse(client, status, json=body)


def test_outputs_that_there_are_not_are_refused_before_rows_are_scored(
    client: httpx.Client,
    sentences: Sentences,
) -> None:
    """The last row holds what no score can be made of: it is never read."""
    rows = [[0.0, 0.0, 0.0]] * 1000 + [["x", "x", "x"]]
    text = tensor("x", "BYTES", [1001, 3], data=[str(value) for row in rows for value in row])
    said = refuse(client, 422, json={"inputs": [text], "outputs": [{"name": "reasons"}]})
    sentences(said)


EMPTY_LISTS = b"[%s[]]" % (b"[]," * 200_000)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize(
    ("path", "name"),
    [("/oip/v2/models/churn/infer", b"inputs")]
    + [("/v1/models/churn/invocations", name) for name in (b"inputs", b"instances")],
)
def test_more_lists_than_the_bytes_of_a_body_can_have(
    client: httpx.Client, path: str, name: bytes, encoding: str
) -> None:
    content = b'{"%s":%s}' % (name, EMPTY_LISTS)
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    sent = gzip.compress(content) if encoding == "gzip" else content
    answer = client.post(path, content=sent, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "too_many_rows")


@pytest.mark.parametrize("form", ["one", "each"])
def test_too_many_binary_rows_are_refused_before_a_value_is_converted(form: str) -> None:
    n_rows, names = 65_536, [f"f{i}" for i in range(64)]
    features = [ModelFeature(name=name, type="numeric", missing=False) for name in names]
    index = FeatureIndex(features, [None] * len(names))
    served = Served("mdl_1", ALGORITHMS["rankboost"](), index, None, "")
    if form == "one":
        tensors = [(tensor("x", "FP16", [n_rows, len(names)]), bytes(2 * n_rows * len(names)))]
    else:
        tensors = [(tensor(name, "FP16", [n_rows]), bytes(2 * n_rows)) for name in names]
    body, headers = binary(tensors)
    asked = read_request(body, headers["Inference-Header-Content-Length"], len(body), n_rows)
    tracemalloc.start()
    try:
        bounds = Bounds(100, 8 * len(names) * (n_rows - 1), n_rows)
        with raises(BadTable, n_rows - 1):
            infer(served, asked, "churn", None, bounds, lambda served, rows: None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(body) / 4  # as float64 the values take four times the body


def test_bytes_that_lie(client: httpx.Client, shared: Service) -> None:
    good, headers = binary([(tensor("x", "FP64", [3, 3]), NUMBERS.tobytes())])
    length = "Inference-Header-Content-Length"
    assert "9 left" in refuse(client, 400, content=good[:-63], headers=headers)
    assert "after its last" in refuse(client, 400, content=good + b"x", headers=headers)
    for lie in ("-1", "x", "9" * 30, str(len(good) + 1)):
        assert length.lower() in refuse(client, 400, content=good, headers={length: lie}).lower()
    assert "not JSON" in refuse(client, 400, content=good, headers={length: "20"})
    short, headers = binary([(tensor("x", "FP64", [3, 3]), NUMBERS.tobytes()[:-8])])
    assert "72 bytes" in refuse(client, 422, content=short, headers=headers)
    huge = (2**31).to_bytes(4, "little") + b"x"
    lying, headers = binary([(tensor("x", "BYTES", [1, 3]), huge)])
    assert "beyond the end" in refuse(client, 400, content=lying, headers=headers)
    coded = {"Content-Encoding": "gzip"}
    assert "gzip" in refuse(client, 400, content=good, headers=coded)
    assert "damaged" in refuse(client, 400, content=gzip.compress(good)[:-4], headers=coded)
    bomb = gzip.compress(bytes(shared.settings.max_score_bytes + 1), 1)
    assert "decompression" in refuse(client, 413, content=bomb, headers=coded)
    assert "gzip" in refuse(client, 415, content=good, headers={"Content-Encoding": "br"})


def test_nobody_passes_the_doors_without_a_key(shared: Service, model: str) -> None:
    for client, status in (
        (shared.client(), 401),
        (shared.client(shared.key(scopes=["read"])), 403),
        (shared.client(shared.key("theirs")), 404),
    ):
        for address in ("/oip/v2/models/churn/infer", "/v1/models/churn/invocations"):
            answer = client.post(address, json={})
            assert (answer.status_code, "error" in answer.json()) == (status, True)
        assert client.get("/oip/v2/models/churn").status_code == status


RECORDS = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
BODIES: dict[str, Any] = {
    "dataframe_split": {
        "columns": [*NAMES, "id"],
        "index": [4, 5, 6],
        "data": [[*row, 1] for row in ROWS],
    },
    "dataframe_records": [{**row, "id": 1} for row in RECORDS],
    "instances": RECORDS,
    "inputs": dict(zip(NAMES, COLUMNS, strict=True)),
}


@pytest.mark.parametrize("address", ["/v1/models/churn/invocations", "/v1/models/churn:predict"])
@pytest.mark.parametrize("form", BODIES)
def test_each_form_of_invocations_scores_as_our_own_door(
    client: httpx.Client, scores: list[float], form: str, address: str
) -> None:
    assert client.post(address, json={form: BODIES[form]}).json() == {"predictions": scores}
    if form in ("instances", "inputs"):
        assert client.post(address, json={form: ROWS}).json() == {"predictions": scores}


def test_csv_with_and_without_a_line_of_names(client: httpx.Client, scores: list[float]) -> None:
    lines = [",".join(texts(row)) for row in ROWS]
    named = "\n".join([",".join(NAMES), *lines])
    headers = {"Content-Type": "text/csv"}
    address = "/v1/models/churn/invocations"
    for text in (named, "\n".join(lines)):
        found = client.post(address, content=text, headers=headers).json()
        assert found == {"predictions": scores}
    plain = client.post(address, content=named, headers={**headers, "Accept": "text/csv"})
    assert [float(line) for line in plain.text.splitlines()] == scores


def test_header_is_what_the_content_type_says(
    client: httpx.Client, shared: Service, scores: list[float]
) -> None:
    rows = "\n".join(",".join(texts(row)) for row in ROWS)
    named = ",".join(NAMES) + "\n" + rows
    for address, member in (("invocations", "predictions"), ("score", "scores")):
        for text, header, status in (
            (named, "present", 200),
            (rows, "absent", 200),
            (named, "absent", 422),
            (rows, "present", 422),
            (named, "perhaps", 415),
        ):
            sent = {"Content-Type": f"text/csv; header={header}"}
            answer = client.post(f"/v1/models/churn/{address}", content=text, headers=sent)
            assert answer.status_code == status, (address, header)
            if status == 200:
                assert answer.json()[member] == scores
    writer = shared.client(shared.key())
    for address in ("/v1/datasets", "/v1/batch-scores?model=churn", "/v1/outcomes"):
        sent = {"Content-Type": "text/csv; header=absent"}
        assert writer.post(address, content=rows, headers=sent).status_code == 415, address


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "exactly one of"),
        ({"instances": [], "inputs": []}, "exactly one of"),
        ({"dataframe_split": [1]}, "columns and data"),
        ({"dataframe_split": {"columns": 3, "data": []}}, "list of names"),
        ({"dataframe_split": {"columns": [*NAMES, "id"], "data": [[1]]}}, "row 0 of data"),
        ({"instances": 3}, "list of rows"),
        ({"instances": [3]}, "must be an object"),
        ({"instances": [[1, 2]]}, "list of 3 values"),
        ({"instances": [{"age": 1}]}, "absent"),
        ({"inputs": {"age": [1, 2], "income": [1]}}, "equal length"),
    ],
)
def test_what_is_wrong_with_an_invocation_is_named(
    client: httpx.Client, body: Any, said: str
) -> None:
    answer = client.post("/v1/models/churn/invocations", json=body)
    assert answer.status_code == 422
    assert said in answer.json()["message"]


@pytest.fixture
def serve_with(shared: Service) -> Iterator[Callable[[Settings], None]]:
    """Let the service run with other settings, until the test ends."""
    kept = shared.app.state.context

    def change(settings: Settings) -> None:
        shared.app.state.context = dataclasses.replace(kept, settings=settings)

    yield change
    shared.app.state.context = kept


def test_the_root_serves_the_model_that_a_setting_names(
    client: httpx.Client,
    shared: Service,
    serve_with: Callable[[Settings], None],
    scores: list[float],
) -> None:
    assert client.get("/ping").status_code == 404
    named = shared.context.settings.model_copy(update={"served_model": "churn"})
    serve_with(named)
    assert client.get("/ping").status_code == 200
    assert client.get("/health").status_code == 200
    assert client.get("/v1/models/churn/ping").status_code == 200
    assert shared.client().get("/version").text
    found = client.post("/invocations", json={"instances": RECORDS}).json()
    assert found == {"predictions": scores}


def test_a_setting_opens_the_root_to_callers_without_a_key_and_nothing_else(
    client: httpx.Client,
    shared: Service,
    serve_with: Callable[[Settings], None],
    scores: list[float],
) -> None:
    stranger = shared.client()
    body = {"instances": ROWS}
    asks: list[Callable[[httpx.Client], httpx.Response]] = [
        lambda caller: caller.post("/invocations", json=body),
        lambda caller: caller.get("/ping"),
        lambda caller: caller.get("/health"),
    ]
    closed = shared.context.settings.model_copy(update={"served_model": "churn"})
    serve_with(closed)
    assert [ask(stranger).status_code for ask in asks] == [401, 401, 401]
    opened = closed.model_copy(update={"served_owner": OWNER})
    serve_with(opened)
    assert [ask(stranger).status_code for ask in asks] == [200, 200, 200]
    assert asks[0](stranger).json() == {"predictions": scores}
    # A key that is sent is checked as everywhere.
    assert [ask(shared.client("rw_bad")).status_code for ask in asks] == [401, 401, 401]
    assert asks[0](shared.client(shared.key(scopes=["read"]))).status_code == 403
    assert asks[0](shared.client(shared.key("theirs"))).status_code == 404
    for route in shared.app.routes:
        if not isinstance(route, APIRoute) or scope_of(route.endpoint) is None:
            continue
        path = route.path.replace("{ref}", "churn")
        if path not in ("/invocations", "/ping", "/health") and not path.startswith("/console"):
            for method in route.methods:
                assert stranger.request(method, path).status_code == 401, (method, path)
    assert stranger.post("/invocations", json={"instances": [3]}).status_code == 422
    assert stranger.post("/invocations?x=1", json=body).status_code == 422
    serve_with(opened.model_copy(update={"served_owner": "nobody"}))
    assert [ask(stranger).status_code for ask in asks] == [404, 404, 404]


def test_an_owner_is_served_to_all_only_with_a_model() -> None:
    assert Settings.model_validate({"served_owner": ""}).served_owner is None
    with raises(ValidationError, "RANKWRIGHT_SERVED_MODEL"):
        Settings.model_validate({"served_owner": OWNER})


@pytest.fixture
def probabilities(client: httpx.Client) -> dict[str, list[float]]:
    """Return the answer of our own route for another prevalence."""
    body = {"columns": NAMES, "data": ROWS}
    asked = {"interval": "true", "prevalence": "0.125"}
    found: dict[str, list[float]] = client.post(
        "/v1/models/churn/score", json=body, params=asked
    ).json()
    return found


def test_probabilities_stand_beside_the_scores_if_they_are_asked_for(
    client: httpx.Client, probabilities: dict[str, list[float]]
) -> None:
    names = ("score", "probability", "probability_low", "probability_high")
    columns = ("scores", "probabilities", "probabilities_low", "probabilities_high")
    rows = [*zip(*(probabilities[name] for name in columns), strict=True)]
    wanted = [dict(zip(names, row, strict=True)) for row in rows]
    address = "/v1/models/churn/invocations"
    asked = {"interval": True, "prevalence": 0.125}
    for member in ("params", "parameters"):
        found = client.post(address, json={"instances": ROWS, member: asked}).json()
        assert found == {"predictions": wanted}
    attributes = {"X-Amzn-SageMaker-Custom-Attributes": "trace=1, interval=true,prevalence=0.125,"}
    found = client.post(address, json={"instances": ROWS}, headers=attributes).json()
    assert found == {"predictions": wanted}
    plain = client.post(
        address, json={"instances": ROWS}, headers={**attributes, "Accept": "text/csv"}
    )
    lines = [tuple(map(float, line.split(","))) for line in plain.text.splitlines()]
    assert lines == rows
    found = client.post(address, json={"instances": ROWS, "params": {"probability": True}}).json()
    assert [set(each) for each in found["predictions"]] == [{"score", "probability"}] * 3
    empty = {"instances": [], "parameters": {"probability": True}}
    assert client.post(address, json=empty).json() == {"predictions": []}
    unasked: list[dict[str, Any]] = [
        {},
        {"params": None},
        {"parameters": {}},
        {"params": {"probability": False}},
    ]
    for nothing in unasked:
        found = client.post(address, json={"instances": ROWS, **nothing}).json()
        assert found == {"predictions": probabilities["scores"]}


@pytest.mark.parametrize(
    "stated",
    [
        [],
        {"threshold": 1},
        {"probability": 3},
        {"interval": None},
        {"prevalence": 1.0},
        {"prevalence": {"a": [1]}},
        {"probability": False, "interval": True},
    ],
)
def test_what_is_wrong_with_parameters_is_named(
    client: httpx.Client, stated: Any, sentences: Sentences
) -> None:
    body = {"instances": ROWS, "params": stated}
    answer = client.post("/v1/models/churn/invocations", json=body)
    assert answer.status_code == 422
    sentences(answer.json()["message"])


def test_a_model_without_probabilities_says_why(
    client: httpx.Client, shared: Service, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    served = shared.app.state.models.find(OWNER, "churn")
    without = dataclasses.replace(served, calibration=None, why_no_calibration="it has none")
    monkeypatch.setattr(ModelCache, "cached", lambda *_: without)
    body = {"instances": ROWS, "params": {"probability": True}}
    answer = client.post("/v1/models/churn/invocations", json=body)
    assert answer.status_code == 422
    sentences(answer.json()["message"])


def test_triton_s_client_finds_models_and_their_configurations(
    shared: Service, client: httpx.Client
) -> None:
    reader = shared.client(shared.key(scopes=["read"]))
    index = reader.post("/oip/v2/repository/index", json={"ready": True}).json()
    assert {"name": "churn", "version": "1", "state": "READY"} in index
    assert len({each["name"] for each in index}) == len(index)
    assert reader.post("/oip/v2/repository/index").json() == index
    assert client.post("/oip/v2/repository/index").status_code == 403
    theirs = shared.client(shared.key("theirs"))
    assert theirs.post("/oip/v2/repository/index").json() == []
    for path in ("churn", "churn/versions/1"):
        found = client.get(f"/oip/v2/models/{path}/config").json()
        described = client.get(f"/oip/v2/models/{path}").json()
        assert (found["name"], found["max_batch_size"]) == ("churn", 0)
        for part, whole in (("input", "inputs"), ("output", "outputs")):
            assert found[part] == [
                {
                    "name": each["name"],
                    "data_type": f"TYPE_{each['datatype']}",
                    "dims": each["shape"],
                }
                for each in described[whole]
            ]
    assert client.get("/oip/v2/models/gone/config").status_code == 404
    assert client.get("/oip/v2/models/churn/versions/x/config").status_code in (404, 422)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/models/churn/score", {"rows": [{"age": "secret", "incom": 1}]}),
        ("/v1/models/churn/rank", {"columns": ["age"], "data": [["secret"]]}),
        ("/v1/models/churn/explain", {"rows": [{"age": "secret"}]}),
        ("/v1/models/churn/score?age=secret", None),
        ("/v1/models/churn/invocations", {"instances": [["secret", 1, 2]]}),
        ("/v1/models/churn:predict", {"instances": [{"age": "secret"}]}),
        ("/oip/v2/models/churn/infer", {"inputs": [tensor("age", "BYTES", [1], data=["secret"])]}),
    ],
)
def test_a_setting_has_refusals_show_nothing_of_rows(
    client: httpx.Client,
    shared: Service,
    serve_with: Callable[[Settings], None],
    path: str,
    body: dict[str, Any] | None,
) -> None:
    def ask() -> httpx.Response:
        return client.get(path) if body is None else client.post(path, json=body)

    told = ask()
    terse = shared.context.settings.model_copy(update={"terse_errors": True})
    serve_with(terse)
    found = ask()
    assert (found.status_code, found.json()["code"]) == (told.status_code, told.json()["code"])
    assert found.status_code == 422
    assert "errors" not in found.json()
    for word in ("secret", "income", "age "):
        assert word not in found.text
    assert any(word in told.text for word in ("secret", "income"))


def test_ids_and_probabilities_stand_beside_the_scores_together(
    client: httpx.Client, probabilities: dict[str, list[float]]
) -> None:
    rows = [dict(zip(NAMES, row, strict=True)) | {"key": f"k{i}"} for i, row in enumerate(ROWS)]
    body = {"instances": rows, "id": "key", "params": {"interval": True, "prevalence": 0.125}}
    address, ids = "/v1/models/churn/invocations", [row["key"] for row in rows]
    found = client.post(address, json=body).json()
    assert found["ids"] == ids
    assert [each["probability"] for each in found["predictions"]] == probabilities["probabilities"]
    lines = client.post(address, json=body, headers={"Accept": "text/csv"}).text.splitlines()
    cells = [line.replace('"', "").split(",") for line in lines]
    assert [each[0] for each in cells] == ids
    assert [float(each[2]) for each in cells] == probabilities["probabilities"]
