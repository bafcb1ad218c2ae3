"""The OpenAPI document: FastAPI's own, completed with examples, scopes, errors and descriptions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from app import __version__
from app.http.bodies import VALIDATE
from app.http.problems import MEDIA_TYPE
from app.http.proxies import root_path_of
from app.http.responses import CompressedPage, StoredText
from app.http.schemas import Problem
from app.http.static import POLICY, StaticFiles

EXAMPLES = Path(__file__).with_name("examples.json")
"""Examples of bodies and responses by the name of their schema; those of responses without one by method and path."""
ERROR_CODES = Path(__file__).with_name("error_codes.json")
"""The codes of errors by operation and status, as tools/error_codes.py finds them in the source."""
INFO: dict[str, Any] = {
    "title": "Rankwright",
    "version": __version__,
    "summary": (
        "Trains, evaluates and serves rankers: models that put the likely positives at the top of a "
        "list."
    ),
    "description": (
        "Upload a table, submit a training job, read the model's ROC curve, and request scores.\n\n"
        "**Authentication.** Send `Authorization: Bearer` with an API key, or with a token of your identity "
        "provider, in every request. Each operation names the scope that it needs. `POST /v1/keys` creates "
        "further keys.\n\n"
        "**Values.** Times are RFC 3339 in UTC. Rates are between 0 and 1. Responses never contain NaN or "
        "infinity; `null` replaces them.\n\n"
        "**Errors.** Every error is `application/problem+json`. Its `code` names the type of the error. "
        "The response repeats the `X-Request-ID` of the request, or contains a new one."
    ),
    "license_info": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
    "openapi_tags": [
        {"name": "datasets", "description": "Upload, inspect and version tables."},
        {
            "name": "sources",
            "description": "List the object stores and databases that datasets can be read from.",
        },
        {"name": "schedules", "description": "Refresh datasets from their sources at given times."},
        {"name": "algorithms", "description": "List the ranking algorithms and their parameters."},
        {
            "name": "jobs",
            "description": "Submit, follow, cancel and retry background work.",
        },
        {
            "name": "models",
            "description": "Inspect trained rankers: metrics, curves, explanations and calibration.",
        },
        {
            "name": "aliases",
            "description": "Point names at versions, protect them, and approve changes of protected ones.",
        },
        {"name": "evaluations", "description": "Evaluate a model on another dataset."},
        {
            "name": "comparisons",
            "description": "Test whether several models differ on the same rows.",
        },
        {"name": "scoring", "description": "Score, rank and explain rows."},
        {
            "name": "feedback",
            "description": "Record decisions and outcomes, and monitor whether a model is still right.",
        },
        {"name": "erasures", "description": "Erase what is stored about one person."},
        {
            "name": "overview",
            "description": "See running jobs, resources that need attention, and the newest resources.",
        },
        {
            "name": "trash",
            "description": "Restore resources deleted in the last 30 days, or delete them permanently.",
        },
        {"name": "webhooks", "description": "Send events to URLs, and read the log of deliveries."},
        {"name": "keys", "description": "Create, rotate and revoke API keys."},
        {"name": "quotas", "description": "Read usage, and read and set the limits of owners."},
        {
            "name": "retention",
            "description": "Read and set after how many days an owner's resources are deleted.",
        },
        {"name": "holds", "description": "Legal holds: forbid deletions, and allow them again."},
        {
            "name": "audit",
            "description": "Read the log of all changes: who changed what, and when.",
        },
        {
            "name": "health",
            "description": "Check the state of the service, for load balancers, orchestrators and alerts.",
        },
    ],
}
DEFAULT_URL = "http://127.0.0.1:8000"
"""The default address of `rankwright serve`."""
_PREFIX = "#/components/schemas/"
_REFUSALS = {
    "400": "The request is malformed.",
    "401": "The key is missing, unknown, revoked or expired.",
    "403": "The caller lacks the scope, or may not change this model.",
    "404": "The resource does not exist, or belongs to another owner.",
    "406": "No media type in `Accept` is available; `errors` lists those that are.",
    "409": "The state of the resource does not allow this, or the resource is in use.",
    "412": "The revision in If-Match is not the current one.",
    "413": "The body is too large.",
    "415": "The content type or the encoding is not supported by this route.",
    "422": "The request breaks a rule; `errors` gives the location of each error.",
    "428": "If-Match is missing.",
    "429": (
        "Too many requests, or a quota is exhausted. Retry after the number of seconds in "
        "`Retry-After`."
    ),
    "503": (
        "A component of the service is unavailable or overloaded. Retry after the number of seconds "
        "in `Retry-After`."
    ),
    "507": "A disk of the service is full or nearly full.",
    "default": "Any other error.",
}
_SUCCESSES = {
    "200": "Success.",
    "201": "The resource was created.",
    "202": "Accepted: a job does the work. Poll the URL in `Location` until it is done.",
    "204": "Success, without a body.",
}
"""Descriptions of responses whose route does not give one."""
_IN_PATHS = {
    "alias": "The alias, such as `live`.",
    "item_id": "Id of the deleted resource.",
    "decision_id": "Id of the decision.",
    "file_id": "Id of the file.",
    "kind": "Kind of the curve.",
    "name": "Name of the models.",
    "number": "Number of the part, from 1.",
    "owner": "The owner.",
    "ref": "The model: id, name (its latest version), name:version or name@alias.",
}
"""Meanings of the parts of addresses. All others are the id of what their name says."""

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def names_resources(endpoint: Endpoint) -> Endpoint:
    """Declare that a request refers to other resources: OpenAPI then lists a 404 for a missing one."""
    endpoint.names_resources = True  # type: ignore[attr-defined]  # read back by `_add_problems`
    return endpoint


@dataclass(frozen=True)
class DomainDocs:
    """The domains' additions to the OpenAPI document.

    `scope_of` returns an endpoint's scope. `operations` are the operations that FastAPI does not serve, by path and
    method, and `schemas` are their schemas. `algorithms` returns every algorithm with the JSON Schema of its
    parameters.
    """

    scope_of: Callable[[Callable[..., Any]], str | None]
    operations: Mapping[str, Mapping[str, dict[str, Any]]]
    schemas: Sequence[type[BaseModel]]
    algorithms: Callable[[], Sequence[Mapping[str, Any]]]


def install(app: FastAPI, docs: DomainDocs, build: str) -> None:
    """The document is built once, with version and build."""
    made: dict[str, Any] = {}

    def document() -> dict[str, Any]:
        if not made:
            made.update(_complete(app, docs))
            made["info"]["x-build"] = build
        return made

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's own way to extend it
    app.state.document = _WrittenOnce(document)


MAX_PREFIXES = 8
"""Path prefixes for each of which the document is kept."""


class _WrittenOnce:
    """The document as bytes, once for each path prefix: serializing and compressing take seconds."""

    def __init__(self, document: Callable[[], dict[str, Any]]) -> None:
        self._document = document
        self._written: dict[str, StoredText] = {}
        self._writing = asyncio.Lock()

    async def read(self, root: str) -> StoredText:
        """The path prefix `root` is the service's URL."""
        async with self._writing:
            if root not in self._written:
                if len(self._written) >= MAX_PREFIXES:
                    self._written.clear()
                self._written[root] = await run_in_threadpool(self._write, root)
            return self._written[root]

    def _write(self, root: str) -> StoredText:
        document = {**self._document(), "servers": [{"url": root or "/"}]}
        return StoredText(bytes(JSONResponse(document).body), "application/json")


def _complete(app: FastAPI, docs: DomainDocs) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        tags=app.openapi_tags,
        license_info=app.license_info,
        routes=_by_tag(app),
        servers=[{"url": DEFAULT_URL, "description": "`rankwright serve` on this machine."}],
    )
    document["externalDocs"] = {
        "description": "Guides, reference and source code.",
        "url": "https://github.com/rankwright/rankwright",
    }
    components = document["components"]
    shapes: list[type[BaseModel]] = [Problem, *docs.schemas]
    _, defined = models_json_schema(
        [(shape, "serialization") for shape in shapes],
        ref_template=_PREFIX + "{model}",
    )
    schemas = components["schemas"]
    schemas.update(defined["$defs"])
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    _name_bodies(document["paths"], schemas)
    examples = json.loads(EXAMPLES.read_text())
    for name in examples.keys() & schemas.keys():
        schemas[name]["examples"] = examples.pop(name)
    _show_pages(schemas)
    components["securitySchemes"] = {
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key such as `rw_…`, or an access token (JWT) of a configured identity provider. The "
            "scopes of the key, or of the caller's roles, determine which routes it can use.",
        }
    }
    components["responses"] = {
        _problem_name(status): _problem(description) for status, description in _REFUSALS.items()
    }
    for path, operations in docs.operations.items():
        for method, operation in operations.items():
            document["paths"].setdefault(path, {})[method] = {**operation}
    for operation, of_media_types in examples.items():
        method, path = operation.split()
        content = document["paths"][path][method.lower()]["responses"]["200"]["content"]
        for media_type, example in of_media_types.items():
            content[media_type]["example"] = example
    _name_algorithms(schemas, docs.algorithms())
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in map(str.lower, route.methods or ()):
                operation = document["paths"][route.path_format][method]
                operation["operationId"] = route.name
                if route.path.endswith(
                    VALIDATE
                ):  # nothing is created, so nothing to repeat or to wait for
                    named = operation.get("parameters", ())
                    operation["parameters"] = [each for each in named if each["in"] != "header"]
    endpoints = {
        (route.path_format, method.lower()): route.endpoint
        for route in app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
    }
    codes = json.loads(ERROR_CODES.read_text())
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            endpoint = endpoints.get((path, method))
            scope = None if endpoint is None else docs.scope_of(endpoint)
            _describe_parts(operation, schemas)
            _add_problems(path, method, operation, endpoint, scope)
            _name_codes(operation, codes.get(operation["operationId"], {}))
    _write_for_generators(document)
    return document


def _by_tag(app: FastAPI) -> list[BaseRoute]:
    """Return the routes in the order of the tags; `app.routes` has the order in which they are matched."""
    places = {tag["name"]: place for place, tag in enumerate(app.openapi_tags or ())}

    def place(route: BaseRoute) -> int:
        tag = route.tags[0] if isinstance(route, APIRoute) and route.tags else ""
        return places.get(str(tag), len(places))

    return sorted(app.routes, key=place)


def _name_bodies(paths: Mapping[str, Any], schemas: dict[str, Any]) -> None:
    """Name the schemas of JSON bodies next to tables: some generators cannot handle unnamed ones."""
    for operations in paths.values():
        for operation in operations.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                schema = content["schema"]
                if schema.get("type") == "object":
                    schemas.setdefault(schema["title"], schema)
                    content["schema"] = {"$ref": _PREFIX + schema["title"]}


def _show_pages(schemas: Mapping[str, Any]) -> None:
    """Add an example to each schema of a page whose items have examples: a last page with one item."""
    for schema in schemas.values():
        members = schema.get("properties", {})
        item = members.get("data", {}).get("items", {}).get("$ref", "").removeprefix(_PREFIX)
        if "examples" in schema or "examples" not in schemas.get(item, {}):
            continue
        page = {"data": schemas[item]["examples"][:1], "has_more": False, "next": None}
        schema["examples"] = [{name: value for name, value in page.items() if name in members}]


def _describe_parts(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Describe path parameters, and responses with FastAPI's default description: a 200 by its schema."""
    for parameter in operation.get("parameters", ()):
        name, schema = parameter["name"], parameter["schema"]
        if parameter["in"] == "path":
            thing = name.removesuffix("_id").replace("_", " ")
            parameter.setdefault("description", _IN_PATHS.get(name, f"Id of the {thing}."))
        types = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
        if len(types) == 1:
            del schema["anyOf"]
            schema.update(types[0])
    for status, response in operation["responses"].items():
        contents = response.get("content", {})
        if response["description"] == "Successful Response":
            schema = contents.get("application/json", {}).get("schema", {})
            name = schema.get("$ref", "").removeprefix(_PREFIX)
            described = schemas.get(name, {}).get("description") if status == "200" else None
            response["description"] = described or _SUCCESSES[status]
            if status == "202":
                response.setdefault("headers", {})["Location"] = {
                    "description": "Path of the resource that the job creates or changes.",
                    "schema": {"type": "string"},
                }
        for media_type, content in contents.items():
            if str(content["schema"].get("title", "")).startswith("Response "):
                del content["schema"]["title"]
            for shape in content["schema"].get("anyOf", ())[
                :1
            ]:  # of several shapes the first one is the usual
                shown = schemas.get(shape.get("$ref", "").removeprefix(_PREFIX), {}).get("examples")
                if shown and media_type == "application/json":
                    content.setdefault("example", shown[0])


DEFAULT = "x-default"


def _write_for_generators(node: Any) -> None:
    """Mark unions of objects as `oneOf`; move defaults of members to `x-default` and the description.

    Generated clients treat a member with a `default` as always present: their types refuse a body without it, hide that
    an answer may lack it, and they support no default that is an object.
    """
    for name, each in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(each, dict | list) and name not in ("examples", DEFAULT):
            _write_for_generators(each)
    if not isinstance(node, dict):
        return
    shapes = node.get("anyOf", ())
    others = [shape for shape in shapes if "$ref" not in shape]
    if len(shapes) - len(others) > 1 and others in ([], [{"type": "null"}]):
        node["oneOf"] = node.pop("anyOf")
    required = node.get("required", ())
    for name, member in node.get("properties", {}).items():
        value = member.pop("default", None)
        if value is not None and name not in required:  # an answer's member is always there
            member[DEFAULT] = value
            said = member.get("description", "")
            if "efault" not in said:
                member["description"] = f"{said} Default: `{json.dumps(value)}`.".lstrip()


def _add_problems(
    path: str,
    method: str,
    operation: dict[str, Any],
    endpoint: Callable[..., Any] | None,
    scope: str | None,
) -> None:
    """Add the errors of scope, body, headers and referred resources."""
    responses = operation["responses"]
    responses.pop("422", None)
    statuses = ["422"]
    needed = "none" if scope is None else "any" if scope == "any" else f"`{scope}`"
    operation["description"] = f"{operation.get('description', '')}\n\nScope: {needed}."
    if scope is not None:
        operation["security"] = [{"key": []}]
        statuses += ["401", "403", "429", "503"]
    if "{" in path or hasattr(endpoint, "names_resources"):
        statuses.append("404")
    if scope is not None and (method != "get" or "{" in path):
        statuses.append("409")
    if "requestBody" in operation:
        statuses += ["400", "413", "415", "507"]
    if any(each["name"] == "if-match" for each in operation.get("parameters", ())):
        statuses += ["412", "428"]
    if any(status[0] == "2" and "content" in response for status, response in responses.items()):
        statuses.append("406")
    for status in [*statuses, "default"]:
        if (
            status == "406" or status not in responses
        ):  # a route that negotiates the media type lists 406
            responses[status] = {"$ref": f"#/components/responses/{_problem_name(status)}"}


def _name_codes(operation: dict[str, Any], codes: Mapping[str, Sequence[str]]) -> None:
    """Name the codes of an operation's errors in their descriptions."""
    for status, found in codes.items():
        response = operation["responses"].get(status, {})
        if "$ref" in response:
            named = ", ".join(f"`{code}`" for code in found)
            operation["responses"][status] = _problem(f"{_REFUSALS[status]} `code`: {named}.")


def _problem(description: str) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": _PREFIX + "Problem"}}}
    return {"description": description, "content": content}


def _problem_name(status: str) -> str:
    return f"Problem{status.capitalize()}"


def _name_algorithms(schemas: dict[str, Any], algorithms: Sequence[Mapping[str, Any]]) -> None:
    """Make a job's `algorithm` a union of all registered ones, by name."""
    names = {}
    for algorithm in algorithms:
        schema = deepcopy(algorithm["parameters"])
        title = f"{algorithm['name'].title().replace('_', '')}Algorithm"
        schema["title"] = title
        schema["description"] = algorithm["summary"]
        schema["required"] = ["name"]
        schema["properties"] = {
            "name": {
                "const": algorithm["name"],
                "type": "string",
                "description": f"Always `{algorithm['name']}`.",
            },
            **schema["properties"],
        }
        schemas[title] = schema
        names[algorithm["name"]] = _PREFIX + title
    field = schemas["JobRequest"]["properties"]["algorithm"]
    schemas["JobRequest"]["properties"]["algorithm"] = {
        "description": field["description"],
        "oneOf": [{"$ref": reference} for reference in names.values()],
        "discriminator": {"propertyName": "name", "mapping": names},
    }


router = APIRouter()

STATIC = StaticFiles(Path(__file__).with_name("static"), "/docs/static")
_PAGE = Path(__file__).with_name("docs.html")


@cache
def _page() -> str:
    page = _PAGE.read_text(encoding="utf-8")
    for name in ("docs.css", "docs.js"):
        page = page.replace("{{" + name + "}}", STATIC.url(name).removeprefix("/"))
    return page


@router.get("/docs", include_in_schema=False)
async def read_docs() -> Response:
    """Return the documentation page, which reads /openapi.json."""
    return CompressedPage(_page(), headers={"Content-Security-Policy": POLICY})


@router.get("/openapi.json", include_in_schema=False)
async def read_document(request: Request) -> Response:
    """Return the document."""
    document: _WrittenOnce = request.app.state.document
    return (await document.read(root_path_of(request.scope))).answer(request)
