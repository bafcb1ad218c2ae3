"""The client has all of /openapi.json: every object, every operation, every query parameter."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import rankwright
from make_modules import PACKAGE, modules
from rankwright import types
from rankwright.operations import Blocking, Iteration, Operation
from rankwright.transport import Request, Response

from app.http.openapi import ERROR_CODES
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences
from tools.describe_api import DOCUMENT, as_text, codes_text, describe

ROOT = Path(__file__).resolve().parents[3]

NO_PART = {
    "metrics",  # for Prometheus
    # The client checks what is written by hand or comes from elsewhere: tables and jobs.
    *(f"validate_{of}" for of in ("reading", "version", "retry", "calibration", "evaluation")),
    *(f"validate_{of}" for of in ("decisions", "outcomes", "erasure")),
    *(f"validate_{of}" for of in ("comparison", "key", "rotation", "comment")),
    *(f"validate_{of}" for of in ("webhook", "refresh", "schedule", "import")),
}
PAGED = {"limit", "after"}
DOWNLOADED = {"format", "max_points", "band", "on", "width", "kind"}
"""What `model.download` takes for every part of a model."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return describe()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_the_modules_are_those_of_the_description(document: dict[str, Any]) -> None:
    assert DOCUMENT.read_text() == as_text(document), "run: make openapi"
    for file_name, text in modules(document).items():
        assert (PACKAGE / file_name).read_text() == text, "run: make openapi"


@long_form
def test_the_error_codes_are_those_of_the_source() -> None:
    assert ERROR_CODES.read_text() == codes_text(), "run: make openapi"


def test_examples_become_records_and_json_again(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        kind = getattr(types, name, None)
        if isinstance(kind, type):
            for example in schema.get("examples", []):
                record = kind.from_json(example)  # type: ignore[attr-defined]
                assert record.to_json() == example
                assert all(
                    getattr(record, field, None) is not None or value is None
                    for field, value in example.items()
                )


class Asked(Exception):
    """Ends a call with its first request."""


class Recorder:
    """A transport that answers with one thing until it is `begun`, and then keeps the first request of a call."""

    url = "http://nowhere"
    begun = False

    def do(self, step: Any) -> Response:
        if self.begun:
            raise Asked(step)
        return Response(
            200, {}, b'{"id": "x_1", "state": "running", "status": "ready", "job_id": "job_1"}'
        )

    def close(self) -> None:
        """Nothing is open."""


ROWS = [{"a": 1}]
ARGUMENTS: dict[str, Any] = {
    "table": ROWS,
    "file": b"tree",
    "rows": ROWS,
    "pairs": ROWS,
    "entries": [],
    "models": ["a", "b"],
    "scopes": ["read"],
    "parts": 1,
    "number": 1,
    "job": {},
    "alias": "n@a",
    "revision": 1,
    "idempotency_key": "tonight",
}
"""What parameters of these names get; others a text."""
OTHER_PARTS = [
    *(("model.download", (part,)) for part in ("artifact", "plot")),
    *(("health", (part,)) for part in ("live", "staffed")),
    ("models.restore_alias", ("n", "a", 1)),
    ("model.restore_calibration", (1,)),
]
"""Methods that have several operations, or ask what is there unless they are told."""


def things(recorder: Recorder) -> dict[str, Any]:
    """Return the client, its collections, and one thing of each kind; a call on them ends with its first request."""
    client = rankwright.Client("http://nowhere", transport=cast(Any, recorder))
    found = {"": client, "model": client.models["m"]}
    for name in ("dataset", "job", "evaluation", "comparison"):
        found[name] = getattr(client, f"{name}s").get("x_1")
    found["batch_score"] = client.batch_scores.get("x_1")
    recorder.begun = True
    return found | {
        name: each
        for name, each in ((name, getattr(client, name)) for name in dir(client))
        if not name.startswith("_") and isinstance(each, Blocking)
    }


def asked(method: Callable[..., Any], *arguments: Any, **more: Any) -> Request | None:
    """Return the first request of a call, if there is one that needs no answer before."""
    with suppress(TypeError):  # what waits for nothing has nothing to go through
        try:
            next(iter(method(*arguments, **more)))
        except Asked as ended:
            step = ended.args[0]
            assert isinstance(step, Request)
            return step
    return None


def requests(of: Mapping[str, Any]) -> Iterator[tuple[Request, set[str]]]:
    """Call every method, with what it needs and the key of a request if it takes one; yield what it asks first, and the
    names of its parameters.
    """
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    for name, arguments in OTHER_PARTS:
        owner, _, method = name.rpartition(".")
        calls.append((getattr(of[owner], method), arguments))
    for owner in of.values():
        for name, each in inspect.getmembers_static(type(owner)):
            if isinstance(each, (Operation, Iteration)) and not name.startswith("_"):
                calls.append((getattr(owner, name), ()))
    for call, arguments in calls:
        parameters = [*inspect.signature(call).parameters.values()][len(arguments) :]
        given = {
            each.name: ARGUMENTS.get(each.name, "x_1")
            for each in parameters
            if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
            and (each.default is each.empty or each.name in ("revision", "idempotency_key"))
        }
        first = [each.name for each in parameters if each.kind is each.POSITIONAL_ONLY]
        placed = [given.pop(name) for name in first if name in given]
        request = asked(call, *arguments, *placed, **given)
        if request is not None:
            if "idempotency_key" in given and request.method != "GET":
                assert request.headers["Idempotency-Key"] == "tonight", call
            yield request, set(inspect.signature(call).parameters)


def test_every_operation_and_parameter_is_one_of_the_clients(document: dict[str, Any]) -> None:
    """A caller can name every request that creates, too."""
    reached: dict[str, set[str]] = {}
    shapes = [
        (method, re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)), operation)
        for method, path, operation in operations(document)
    ]
    for request, taken in requests(things(Recorder())):
        for method, shape, operation in shapes:
            if method == request.method and shape.fullmatch(request.path):
                reached.setdefault(operation["operationId"], set()).update(taken)
    missing = []
    for _, _, operation in shapes:
        name = operation["operationId"]
        if name in NO_PART:
            continue
        taken = reached.get(name, set()) | PAGED | DOWNLOADED
        named = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
        headers = {each["name"].lower() for each in operation.get("parameters", [])}
        named += ["idempotency_key"] if "idempotency-key" in headers else []
        if name in ("score_row", "validate_table"):  # which take any
            named = []
        missing += [name] if name not in reached else []
        missing += [
            f"{name}: {each}" for each in named if not {each, each.removesuffix("_id")} & taken
        ]
    assert missing == []


def test_a_name_that_is_none_is_refused_by_type_checkers_too() -> None:
    with pytest.raises(AttributeError):
        rankwright.anything  # type: ignore[attr-defined]  # noqa: B018


def test_it_needs_no_server() -> None:
    """No module of the client knows one of the service."""
    for module in (ROOT / "client" / "rankwright").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) (app|core|workers)\b", module.read_text(), re.M), (
            module
        )


@pytest.mark.parametrize(
    ("name", "arguments", "more", "target"),
    [
        ("datasets.page", (), {"name": "a", "limit": 5}, "/v1/datasets?name=a&limit=5"),
        ("models.page", (), {"tag": ["team:risk", "b"]}, "/v1/models?tag=team%3Arisk&tag=b"),
        (
            "jobs.page",
            (),
            {"created_after": datetime(2026, 1, 31, tzinfo=UTC)},
            "/v1/jobs?created_after=2026-01-31T00%3A00%3A00%2B00%3A00",
        ),
        ("model.refresh", (), {}, "/v1/models/m?include=metrics"),
        ("metrics", (), {}, "/metrics"),
    ],
)
def test_pages_and_parts_ask_for_what_they_name(
    name: str, arguments: tuple[Any, ...], more: dict[str, Any], target: str
) -> None:
    owner, _, method = name.rpartition(".")
    request = asked(getattr(things(Recorder())[owner], method), *arguments, **more)
    assert request is not None
    assert request.target() == target


def test_a_page_of_a_list_has_records_and_its_cursor() -> None:
    class Answers(Recorder):
        def do(self, step: Any) -> Response:
            told = {"data": [{"id": "ds_1", "name": "a"}], "has_more": True, "next": "c"}
            return Response(200, {}, json.dumps(told).encode())

    answers: Any = Answers()
    page = rankwright.Client("http://nowhere", transport=answers).datasets.page()
    assert ([each.name for each in page.data], page.has_more, page.next) == (["a"], True, "c")


def test_a_thing_by_its_id_asks_nothing_until_it_is_used() -> None:
    recorder: Any = Recorder()
    client = rankwright.Client("http://nowhere", transport=recorder)
    recorder.begun = True
    for things in (client.datasets, client.jobs, client.evaluations, client.comparisons):
        assert things["x_1"].id == "x_1"
    with pytest.raises(Asked) as caught:
        client.jobs["x_1"].cancel(keep=True)
    assert caught.value.args[0].target() == "/v1/jobs/x_1/cancel?keep=true"
    with pytest.raises(rankwright.ConfigurationError):
        client.jobs["../x"].cancel()


def test_fields_of_several_records_are_read_when_they_are_asked_for(sentences: Sentences) -> None:
    told = {"dataset_id": "ds_1", "columns": [{"name": "a", "leak": True}], "more": 1}
    profile = types.DatasetProfile.from_json(told)
    assert [(each.name, each.leak, each.auc) for each in profile.columns] == [("a", True, None)]
    assert profile.columns is profile.columns
    assert (profile.dataset_id, profile.rows, profile.warnings) == ("ds_1", None, None)
    assert profile.to_json() == told
    with raises(AttributeError, "'more'"):
        profile.more  # type: ignore[attr-defined]  # noqa: B018
    with sentences.raises(TypeError):
        types.DatasetProfile.from_json({"columns": ["a"]}).columns  # noqa: B018
