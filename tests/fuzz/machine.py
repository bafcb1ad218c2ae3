"""Requests made from the service's description by schemathesis, each of which may use what those before it made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)

from app.ingest.formats import CONTENT_TYPES, JSON_ARRAY
from tests.fuzz.sound import ALIAS, PROTECTION, Request, World
from tests.waiting import patience

SOUND = 0.5  # share of the requests that take all that is known to work
MIXED = 0.3  # of the others' parts, the share that do
WEIGHT = 4  # how much more often something is made than read
MAX_REPEATS = 10  # consecutive requests of one kind
MODES = [GenerationMode.POSITIVE] * 3 + [GenerationMode.NEGATIVE]
CHECKS = [content_type_conformance, response_headers_conformance, response_schema_conformance]
# Refusals that any route may give, which the description sums up as `default`
ANYWHERE = {400, 406, 408, 413, 414, 429, 431}
FIRST = (
    *("POST /v1/datasets",) * 6,
    *("POST /v1/jobs",) * 8,
    *(ALIAS,) * 8,
    *(PROTECTION,) * 4,
    *("POST /v1/webhooks",) * 3,
    *("POST /v1/webhooks/{webhook_id}/ping",) * 3,
)
# They say 503 where a part is away, and describe that.
PROBES = ("GET /health/ready", "GET /health/staffed")


@schemathesis.serializer(*(media for media in CONTENT_TYPES if media != JSON_ARRAY))
def _as_it_is(_context: Any, value: Any) -> bytes:
    """Send tables as bytes, and other generated values as their text."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def creating(document: dict[str, Any]) -> list[str]:
    """Return the operations that make something: their answer may be 201 or 202, and they do more than end a thing.

    Files of the service can be added only where it has a folder for them, and datasets can be refreshed only where it
    has connections.
    """
    return [
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in ("post", "put") and {"201", "202"} & operation["responses"].keys()
        if not path.endswith(("/cancel", "/files", "/refresh", "/schedules"))
    ]


@dataclass
class Tally:
    """The requests and their results, by operation."""

    statuses: defaultdict[str, Counter[int]] = field(
        default_factory=lambda: defaultdict(Counter[int])
    )
    created: Counter[str] = field(default_factory=Counter)
    faults: dict[tuple[str, int], str] = field(default_factory=dict)  # the first of each kind

    @property
    def cases(self) -> int:
        """Return how many requests were sent."""
        return sum(counts.total() for counts in self.statuses.values())


class Fuzzer:
    """Sends requests to one service with one key, and holds each answer to its description."""

    def __init__(self, url: str, secret: str, key_id: str, document: dict[str, Any]) -> None:
        self.tally = Tally()
        self.creating = creating(document)
        self._round = 0
        self._world = World(Random(0), key_id)
        self.url = url
        self._session = requests.Session()
        self._headers = {"Authorization": f"Bearer {secret}"}
        self._schema = schemathesis.openapi.from_dict(document)
        described = list(self._schema.get_all_operations())
        if wrong := [one for one in described if not isinstance(one, Ok)]:
            raise ValueError(f"the API's description has operations that cannot be read: {wrong}")
        self.operations = {one.ok().label: one.ok() for one in described if isinstance(one, Ok)}
        self._described = {
            f"{method.upper()} {path}": {
                int(code) for code in operation["responses"] if code.isdigit()
            }
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }

    def begin(self) -> None:
        """Make one of everything, so that there is something to read."""
        for label in (*FIRST, *self.creating):
            operation = self.operations[label]
            path = {
                parameter.name: self._world.parameter(label, parameter.name)
                for parameter in operation.path_parameters
            }
            request = self._world.request(label)
            if request is not None and None not in path.values():
                self._send(_put_in(operation.Case(path_parameters=path), request))

    def ask(self, cases: int, only: Sequence[str] = ()) -> None:
        """Send at least so many requests, of all operations unless they are named, those that make something more
        often; operation by operation, round by round.
        """
        labels, until = list(only or self.operations), self.tally.cases + cases
        weights = [WEIGHT if label in self.creating else 1 for label in labels]
        each = min(-(-cases // sum(weights)), MAX_REPEATS)
        while self.tally.cases < until:
            self._round += 1
            for label, weight in zip(labels, weights, strict=True):
                self._ask_for(self.operations[label], each * weight)

    def _ask_for(self, operation: Any, cases: int) -> None:
        """What is drawn depends on no answer, as hypothesis wants it; what exists is put in afterwards."""

        @seed(self._round)
        @given(data=st.data())
        @settings(
            max_examples=cases,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask_one(data: st.DataObject) -> None:
            mode = data.draw(st.sampled_from(MODES))
            case = data.draw(operation.as_strategy(generation_mode=mode))
            self._make_sound(case)
            self._send(case)

        ask_one()

    def _make_sound(self, case: Any) -> None:
        """Most of the time, replace generated values by values that are known to work."""
        label, world = case.operation.label, self._world
        share = 1.0 if world.random.random() < SOUND else MIXED
        for header in ("Accept", "Prefer"):  # may ask for a stream, or for a wait of a minute
            case.headers.pop(header, None)
        for name, generated in case.path_parameters.items():
            known = world.parameter(label, name)
            if known is not None and world.random.random() < share:
                case.path_parameters[name] = known
            elif generated == world.own_key:
                case.path_parameters[name] = "key_none"
        request = world.request(label)
        if request is not None and world.random.random() < share:
            case.headers.pop("Idempotency-Key", None)
            case.headers.pop("Content-Encoding", None)
            _put_in(case, request)

    def _send(self, case: Any) -> None:
        try:
            response = case.call(
                base_url=self.url, session=self._session, headers=self._headers, timeout=patience()
            )
        except (requests.exceptions.InvalidHeader, requests.exceptions.InvalidURL, UnicodeError):
            return  # no client could send it
        label, status = case.operation.label, response.status_code
        self.tally.statuses[label][status] += 1
        fault = self._fault(case, response)
        if fault is not None:
            self.tally.faults.setdefault((label, status), f"{fault}\n{case.as_curl_command()}")
        if status in (200, 201, 202) and response.headers["content-type"] == ["application/json"]:
            answer = response.json()
            self._world.learn(answer, case.path_parameters)
            if label in self.creating and "valid" not in answer:
                self.tally.created[label] += 1
        elif status in (204, 404):
            # DELETE of a part, such as an acknowledgement, leaves the thing itself.
            is_whole = case.operation.path.endswith("}")
            self._world.forget(case.path_parameters.values(), gone=status == 204 and is_whole)

    def _fault(self, case: Any, response: Any) -> str | None:
        """Return what is wrong with the answer."""
        label, status = case.operation.label, response.status_code
        if status >= 500 and label not in PROBES:
            told = status == 503 and "retry-after" in response.headers
            return None if told else f"our own fault: {response.text[:500]}"
        if status not in self._described[label] | ANYWHERE:
            return f"the description has no {status}: {response.text[:500]}"
        if status < 300 and self._world.is_gone(case.path_parameters.values()):
            return "what was deleted is there"
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            return "; ".join(
                f"{type(error).__name__}: {error.message[:500]}"
                for error in group.exceptions
                if isinstance(error, Failure)
            )
        return None


def _put_in(case: Any, request: Request) -> Any:
    case.query = dict(request.query)
    case.headers.update(request.headers)
    if request.body is not None:
        case.body, case.media_type = request.body, request.media_type
    return case
