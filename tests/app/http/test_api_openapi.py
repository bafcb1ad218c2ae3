"""The OpenAPI document: complete. That no request made from it breaks the service, the tour tests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from app.ingest.formats import CONTENT_TYPES, CSV, JSON_ARRAY
from app.jobs.kinds import KINDS
from core.registry import ALGORITHMS
from tests.app.live_service import Service, table
from tests.long_form import long_form

ROOT = Path(__file__).parents[3]
AS_BYTES = {*CONTENT_TYPES} - {JSON_ARRAY}
"""Formats that the description has: for an array in JSON a generator would send a model of its own."""


@pytest.fixture(scope="module")
def shared(start: Callable[..., Service]) -> Service:
    service = start()
    client = service.client(service.key())
    dataset_id = service.upload(client, table())
    service.train(client, dataset_id)
    service.train(client, dataset_id, name="b")
    return service


@pytest.fixture(scope="module")
def document(shared: Service) -> dict[str, Any]:
    document: dict[str, Any] = shared.client().get("/openapi.json").json()
    return document


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    tags = {tag["name"] for tag in document["tags"]}
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        # Generators write an operation with several tags once for each.
        (tag,) = operation["tags"]
        assert tag in tags, where
        if path.startswith("/v1/") or path == "/metrics":
            assert operation["security"] == [{"key": []}], where
            assert re.search(r"Scope: (`\w+`|any)\.", operation["description"]), where
        assert "422" in operation["responses"], where
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= operation["responses"].keys(), where


def test_every_refusal_is_a_problem(document: dict[str, Any]) -> None:
    for response in document["components"]["responses"].values():
        assert list(response["content"]) == ["application/problem+json"]
    for _, _, operation in operations(document):
        for status, response in operation["responses"].items():
            if status.startswith("4"):
                if "$ref" in response:
                    assert response == {"$ref": f"#/components/responses/Problem{status}"}
                else:
                    assert list(response["content"]) == ["application/problem+json"]


def test_an_operation_names_the_codes_of_its_errors(document: dict[str, Any]) -> None:
    named = {
        operation["operationId"]: {
            status: set(re.findall(r"`(\w+)`", response.get("description", "")))
            for status, response in operation["responses"].items()
        }
        for _, _, operation in operations(document)
    }
    assert {"model_in_use", "on_hold"} <= named["delete_model"]["409"]
    assert {"evaluation_in_use", "on_hold"} <= named["delete_evaluation"]["409"]
    assert {"unknown_feature", "absent_feature"} <= named["score_row"]["422"]
    assert "no_scorecard" in named["read_scorecard"]["404"]
    assert "model_in_use" not in named["delete_evaluation"]["409"]


def test_the_algorithms_are_a_union_told_apart_by_name(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    algorithm = schemas["JobRequest"]["properties"]["algorithm"]
    assert list(algorithm["discriminator"]["mapping"]) == ["auto", *ALGORITHMS]
    for name, reference in algorithm["discriminator"]["mapping"].items():
        schema = schemas[reference.rpartition("/")[2]]
        assert schema["properties"]["name"]["const"] == name
        if name != "auto" and "n_rounds" in ALGORITHMS[name]().get_params():
            n_rounds = schema["properties"]["n_rounds"]
            kinds = {kind["type"]: kind for kind in n_rounds.get("anyOf", [n_rounds])}
            assert kinds["integer"]["minimum"] == 1
    assert schemas["AutoAlgorithm"]["properties"]["budget_seconds"]["exclusiveMinimum"] == 0


OPEN = {
    "TableWarning.code",
    "ScoreWarning.code",
    "Progress.phase",
    "Dataset.sha256",
    "ListedDataset.sha256",
    "TopValue.value",
    "BatchScoreRequest.id",
    "ViewQuery.query",
    "parameters.rule_flags",
    "ErasureRemainder.what",
}
"""Codes and words for people, which later versions may add to; and texts whose words are not their values."""


def test_closed_sets_are_enums(document: dict[str, Any]) -> None:
    """A text whose description lists words of the API takes these alone, and says so to programs."""
    plain, closed = [], 0

    def walk(node: Any, place: tuple[str, ...]) -> None:
        nonlocal closed
        if isinstance(node, dict):
            words = re.findall("`[a-z_0-9]+`", str(node.get("description", "")))
            schema = node["schema"] if "in" in node else node
            if "in" in node:
                place = ("parameters", node["name"])
            shapes = schema.get("anyOf", [schema]) if isinstance(schema, dict) else []
            for shape in shapes:
                if shape.get("type") == "string" and len(words) > 1 and "format" not in shape:
                    closed += "enum" in shape
                    if "enum" not in shape and ".".join(place) not in OPEN:
                        plain.append(".".join(place))
            for key, value in node.items():
                if key not in ("examples", "example"):
                    inner = key in ("properties", "schemas", "schema")
                    walk(value, place if inner else (*place, key))
        elif isinstance(node, list):
            for value in node:
                walk(value, place)

    walk(document["paths"], ())
    for name, schema in document["components"]["schemas"].items():
        walk(schema, (name,))
    assert plain == []
    assert closed > 50


def test_names_of_schemas_are_words(document: dict[str, Any]) -> None:
    """Generators make the names of classes of them, and of the titles of shapes that have no name."""
    for name in (*document["components"]["schemas"], *document["components"]["responses"]):
        assert re.fullmatch("([A-Z][a-z]*)+[0-9]*", name), name
    listed = document["paths"]["/v1/datasets"]["get"]["responses"]["200"]["content"]
    assert listed["application/json"]["schema"] == {"$ref": "#/components/schemas/DatasetPage"}
    for path, method, operation in operations(document):
        for response in operation["responses"].values():
            for content in response.get("content", {}).values():
                assert "title" not in content["schema"], f"{method} {path}"


def test_objects_of_a_union_can_be_told_apart(document: dict[str, Any]) -> None:
    """By a member with a fixed value, or by a required member that none of the others has."""
    schemas = document["components"]["schemas"]
    kinds: Counter[str] = Counter()

    def walk(node: Any) -> None:
        for each in node.values() if isinstance(node, dict) else node:
            if isinstance(each, dict | list):
                walk(each)
        if not isinstance(node, dict):
            return
        references = [shape["$ref"] for shape in node.get("oneOf", ()) if "$ref" in shape]
        assert sum("$ref" in shape for shape in node.get("anyOf", ())) <= 1
        shapes = {name: schemas[name.rpartition("/")[2]] for name in references}
        if "discriminator" in node:
            kinds["tagged"] += 1
            tag = node["discriminator"]["propertyName"]
            for value, name in node["discriminator"]["mapping"].items():
                assert shapes.pop(name)["properties"][tag]["const"] == value
            assert not shapes
        elif len(shapes) > 1:
            kinds["by members"] += 1
            for name, shape in shapes.items():
                others = {
                    key for other in shapes if other != name for key in shapes[other]["properties"]
                }
                assert set(shape["required"]) - others, name

    walk(document)
    assert kinds["tagged"] == 4
    assert kinds["by members"] > 5


def test_every_example_fits_its_own_schema(document: dict[str, Any]) -> None:
    """Those of bodies and answers, of their members, and of parameters."""
    seen = 0

    def check(schema: dict[str, Any], examples: list[Any], place: str) -> None:
        nonlocal seen
        whole = {"allOf": [schema], "components": document["components"]}
        for example in examples:
            seen += 1
            faults = Draft202012Validator(whole).iter_errors(example)
            assert [f"{place}: {fault.message}" for fault in faults] == []

    def walk(node: Any, place: str) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("examples"), list):
                own = {key: value for key, value in node.items() if key != "examples"}
                check(own, node["examples"], place)
            if "schema" in node and "example" in node:
                check(node["schema"], [node["example"]], place)
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, dict | list) and key not in ("example", "examples"):
                walk(value, f"{place}/{key}")

    walk(document["paths"], "paths")
    walk(document["components"], "components")
    assert seen > 50


def test_names_of_schemas_are_free_in_the_languages_of_generated_clients(
    document: dict[str, Any],
) -> None:
    """Go has a function `NewKey` for a type `Key`, and TypeScript has types of its own."""
    names = document["components"]["schemas"].keys()
    assert [name for name in names if f"New{name}" in names] == []
    assert names & {"Promise", "Array", "Object", "Map", "Set", "Date", "Error", "Record"} == set()


def test_no_choice_has_an_array(document: dict[str, Any]) -> None:
    """The classes that openapi-generator writes of such a choice do not compile in Java. Null is no choice."""

    def walk(node: Any, place: str) -> None:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if key in ("anyOf", "oneOf"):
                kinds = [shape.get("type") for shape in value if shape.get("type") != "null"]
                assert len(kinds) == 1 or "array" not in kinds, place
            if isinstance(value, dict | list):
                walk(value, f"{place}/{key}")

    walk(document, "")


def test_a_success_has_one_shape(document: dict[str, Any]) -> None:
    """What is created is what its answer says it is: a check is a route of its own."""
    for path, method, operation in operations(document):
        if method == "post" and not path.endswith(("/score", "/rank", "/explain", "/metrics")):
            shapes = [
                content["schema"]
                for status, response in operation["responses"].items()
                if status.startswith("2")
                for media_type, content in response.get("content", {}).items()
                if media_type == "application/json"
            ]
            assert all(shape == shapes[0] for shape in shapes), path
            assert all("oneOf" not in shape and "anyOf" not in shape for shape in shapes), path


def test_the_document_names_its_server(shared: Service) -> None:
    assert shared.app.openapi()["servers"][0]["url"] == "http://127.0.0.1:8000"
    assert shared.client().get("/openapi.json").json()["servers"] == [{"url": "/"}]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                target: Any = document
                for part in node["$ref"].removeprefix("#/").split("/"):
                    target = target[part]
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(document)


def test_every_kind_of_job_is_named(document: dict[str, Any]) -> None:
    kinds = {kind for kind in KINDS if not kind.endswith("_part")}
    (query,) = [
        parameter
        for parameter in document["paths"]["/v1/jobs"]["get"]["parameters"]
        if parameter["name"] == "kind"
    ]
    for described in (query, document["components"]["schemas"]["Job"]["properties"]["kind"]):
        assert set(re.findall("`(.*?)`", described["description"])) == kinds


def test_a_check_of_a_job_is_as_described(shared: Service, document: dict[str, Any]) -> None:
    client = shared.client(shared.key())
    dataset_id = client.get("/v1/datasets").json()["data"][0]["id"]
    asked = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost"}}
    found = client.post("/v1/jobs/validate", json=asked).json()
    schema = {"$ref": "#/components/schemas/JobCheck", "components": document["components"]}
    assert [fault.message for fault in Draft202012Validator(schema).iter_errors(found)] == []


def test_who_reads_the_description_alone_can_send_its_examples(document: dict[str, Any]) -> None:
    """Clients that are made from it write JSON, forms and text; of what else a body may be they know the bytes only."""
    kinds = set()
    for path, method, operation in operations(document):
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            where = f"{method} {path} {media_type}"
            if media_type.startswith("multipart/") or media_type == "application/json":
                continue
            kinds.add(media_type.partition(";")[0])
            if not media_type.startswith(CSV):
                assert not {"example", "examples"} & content.keys(), where
            assert (content["schema"]["type"], content["schema"]["format"]) == ("string", "binary")
            if media_type == "application/x-ndjson":
                assert "object" in content["schema"]["description"], where
    # As JSON, a generator would send one of its own models. A model file may be of any kind.
    assert kinds == {*CONTENT_TYPES, "application/octet-stream"} - {JSON_ARRAY}


def test_no_two_schemas_have_the_same_title(document: dict[str, Any]) -> None:
    """openapi-python-client names a class by the title in camel case; a second class of that name is an error."""
    schemas = document["components"]["schemas"]
    titles = (str(schema.get("title", name)) for name, schema in schemas.items())
    found = Counter(re.sub(r"[\W_]", "", title).lower() for title in titles)
    assert [title for title, times in found.items() if times > 1] == []


def test_the_titles_of_algorithms_are_the_names_of_their_schemas(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    mapping = schemas["JobRequest"]["properties"]["algorithm"]["discriminator"]["mapping"]
    for name in (reference.rpartition("/")[2] for reference in mapping.values()):
        assert schemas[name]["title"] == name


def test_generators_can_read_bodies_and_answers(document: dict[str, Any]) -> None:
    """The document avoids what openapi-python-client and openapi-typescript cannot read; `make clients` runs both."""
    schemas, seen = document["components"]["schemas"], set()
    told: dict[str, object] = {}

    def walk(node: Any) -> None:
        if isinstance(node, list):
            for each in node:
                walk(each)
        elif isinstance(node, dict):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            if name in schemas and name not in seen:
                seen.add(name)
                walk(schemas[name])
            # In Go an integer has 32 bits unless its `maximum` has more: 2³¹ as an exclusive bound does not compile.
            assert node.get("exclusiveMaximum", 0) < 2**31, node
            required = node.get("required", [])
            for member, schema in node.get("properties", {}).items():
                # A member with a default would be taken for one that is always there.
                assert "default" not in schema, (node.get("title"), member)
                if "x-default" in schema:
                    assert member not in required, (node.get("title"), member)
                    assert "efault" in schema["description"], (node.get("title"), member)
                    told[f"{node.get('title')}.{member}"] = schema["x-default"]
            for key, each in node.items():
                if key not in ("examples", "x-default"):
                    walk(each)

    config = yaml.safe_load((ROOT / "docs" / "clients" / "openapi-python-client.yaml").read_text())
    as_bytes = "application/octet-stream"
    tables = {*CONTENT_TYPES, f"{CSV}; charset=utf-8"} - {JSON_ARRAY}
    pictures = {"image/svg+xml", "image/png"}
    assert config["content_type_overrides"] == dict.fromkeys(tables | pictures, as_bytes)
    for path, method, operation in operations(document):
        body = operation.get("requestBody", {})
        walk(body)
        walk([operation.get("parameters", []), operation["responses"]])
        files = [media for media in body.get("content", {}) if media.partition(";")[0] in AS_BYTES]
        # A client that knows only files sends one as the first of them, or as the last.
        assert not files or (files[0], files[-1]) == (CSV, f"{CSV}; charset=utf-8"), (
            f"{method} {path}"
        )
    # A client that knows one type of body takes the first: an upload is a table.
    assert next(iter(document["paths"]["/v1/datasets"]["post"]["requestBody"]["content"])) == CSV
    assert schemas["JobRequest"]["required"] == ["dataset_id", "algorithm"]
    assert {
        "JobRequest",
        "Holdout",
        "RankboostAlgorithm",
        "KeyRequest",
        "EvaluationRequest",
    } <= seen
    assert told["JobRequest.objective"] == {"metric": "auc"}
    assert (told["JobRequest.seed"], told["Holdout.fraction"]) == (0, 0.25)
    assert told["RankboostAlgorithm.max_bins"] == 255
    assert (told["Scores.approximate"], told["Score.approximate"]) == (False, False)


def test_algorithms_tell_their_defaults_as_json_schema_has_it(shared: Service) -> None:
    client = shared.client(shared.key())
    shared.client().get("/openapi.json")
    parameters = client.get("/v1/algorithms/rankboost").json()["parameters"]["properties"]
    assert parameters["max_bins"]["default"] == 255
    assert not any("x-default" in schema for schema in parameters.values())


def test_the_examples_hold(shared: Service, document: dict[str, Any]) -> None:
    """Every example request of the page is accepted, with an id that exists."""
    client = shared.client(shared.key())
    schemas = document["components"]["schemas"]
    dataset_id = client.get("/v1/datasets").json()["data"][0]["id"]
    for job in schemas["JobRequest"]["examples"]:
        asked = job | {"dataset_id": dataset_id}
        assert client.post("/v1/jobs/validate", json=asked).status_code == 200
    model = client.get("/v1/models/churn").json()["id"]
    head, *lines = table().splitlines()
    rows = [f"{line},{'ns'[i % 2]},{i}" for i, line in enumerate(lines)]
    others = shared.upload(client, "\n".join([f"{head},region,balance", *rows, ""]))
    for name, model_of in (
        ("evaluation", {"model": model}),
        ("comparison", {"models": [model, "b"]}),
    ):
        for example in schemas[f"{name.title()}Request"]["examples"]:
            asked = example | model_of | {"dataset_id": others}
            assert client.post(f"/v1/{name}s/validate", json=asked).status_code == 200
    assert client.post("/v1/keys", json=schemas["KeyRequest"]["examples"][0]).status_code == 201


@long_form
def test_the_document_is_compressed_once(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    client = shared.client()
    plain = client.get("/openapi.json", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    monkeypatch.setattr("app.http.responses.gzip.compress", None)
    for _ in range(2):
        packed = client.get("/openapi.json")
        assert packed.headers["Content-Encoding"] == "gzip"
        assert packed.headers["Vary"] == "Accept-Encoding"
        assert packed.json() == plain.json()
        assert int(packed.headers["Content-Length"]) * 5 < len(plain.content)


def test_the_page_loads_nothing_from_elsewhere(shared: Service) -> None:
    answer = shared.client().get("/docs")
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    files = re.findall(r'(?:href|src)="(docs/static/[^"]+)"', answer.text)
    assert len(files) == 2
    for text in (answer.text, *(shared.client().get(f"/{file}").text for file in files)):
        for word in ("http://", "https://", "@import", " url("):
            assert word not in text
    assert "openapi.json" in answer.text
    root = shared.client().get("/")
    assert (root.status_code, root.headers["Location"]) == (307, "/console")
