"""The reference of HTTP: a page for each tag, with its routes and the objects that they send and return."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from docs.builder.bounds import schema_words
from docs.builder.markdown import LONG, code, gap, heading, link, sentence, table, word
from docs.builder.openapi import ALGORITHMS, HTTP, SHARED, Api, Route, json_text

Json = Mapping[str, Any]
ERRORS = "reference/errors.md"
INDEX = f"{HTTP}index.md"

WEBHOOKS = """
The service sends no webhooks yet. Use one of these instead:

- **Poll.** Read the job with [`GET /v1/jobs/{job_id}`](jobs.md#read_job) and the header `Prefer: wait=30`. The service holds the response until the
  job has ended, at most that many seconds.
- **Server-sent events.** Follow [`GET /v1/jobs/{job_id}/events`](jobs.md#read_events) with the header `Accept: text/event-stream`. Each event of the
  job arrives when it happens.
"""


def http_pages(api: Api) -> dict[str, list[str]]:
    """Return every page about HTTP."""
    pages = {page: [*_tag_page(api, page)] for page in api.pages}
    pages[SHARED] = [*_shared(api)]
    pages[INDEX] = [*_index(api)]
    return pages


def _index(api: Api) -> Iterator[str]:
    yield from heading(1, "HTTP API")
    yield f"A request needs the address of your service and a key. The examples use `{api.host}`, the address of `rankwright serve`, and the"
    yield "environment variable `RANKWRIGHT_API_KEY`."
    yield ""
    yield from code(f'curl {api.host}/v1/datasets \\\n  -H "Authorization: Bearer $RANKWRIGHT_API_KEY"', "bash")
    to_rules = link("Rules for all routes", "api.md", INDEX)
    yield f"{to_rules} describes authentication, pages of lists, idempotency and errors. {link('Errors', ERRORS, INDEX)} has one entry for each error code."
    yield f"The same description for programs is `/openapi.json` of the service. {link('Clients', 'clients.md', INDEX)} lists the routes of other servers' protocols."
    yield ""
    yield from heading(2, "Webhooks", "webhooks")
    yield from WEBHOOKS.strip().splitlines()
    yield ""
    yield from heading(2, "Routes", "routes")
    for page, (title, description) in api.pages.items():
        yield from heading(3, title)
        yield from (description, "")
        rows = [
            (link(f"`{route.title}`{{.whole}}", f"{page}#{route.anchor}", INDEX), route.operation["summary"])
            for route in api.routes
            if route.page == page
        ]
        yield from table(("route", "what it does"), *rows, kind="names")


def _tag_page(api: Api, page: str) -> Iterator[str]:
    title, description = api.pages[page]
    yield from heading(1, title)
    yield from (description, "")
    routes = [each for each in api.routes if each.page == page]
    rows = [(link(f"`{r.title}`{{.whole}}", f"{page}#{r.anchor}", page), r.operation["summary"]) for r in routes]
    yield from table(("route", "what it does"), *rows, kind="names")
    shown: dict[str, str] = {}
    for route in routes:
        yield from _route(api, route, shown)
    names = [name for name, home in api.homes.items() if home == page]
    if names:
        yield from heading(2, "Objects" if page != ALGORITHMS else "Objects and parameters", "objects")
        yield f"The objects that these routes take and return. Objects that several pages use are on the page {link('Shared objects', SHARED, page)}."
        yield ""
        for name in sorted(names):
            yield from _schema(api, name, page)


def _shared(api: Api) -> Iterator[str]:
    yield from heading(1, "Shared objects")
    yield from ("Objects of the HTTP API that several groups of routes use.", "")
    for name, home in sorted(api.homes.items()):
        if home == SHARED:
            yield from _schema(api, name, SHARED, level=2)


# --- routes ---------------------------------------------------------------------------------------


def _route(api: Api, route: Route, shown: dict[str, str]) -> Iterator[str]:
    operation, page = route.operation, route.page
    yield from heading(2, f"`{route.title}`", route.anchor, "route")
    yield from (f"**{sentence(operation['summary'])}** {operation.get('description') or ''}", "")
    rows = [
        (
            f"{word(each['name'])} <small>{each['in']}{', required' if each.get('required') else ''}</small>",
            _kind(api, each["schema"], page),
            _meaning(each, each["schema"], f"{route.title}: {each['name']}"),
        )
        for each in operation.get("parameters", ())
    ]
    yield from table(("parameter", "type", "description"), *rows)
    if content := operation.get("requestBody", {}).get("content"):
        yield from (f"Body: {_bodies(api, content, page)}.", "")
    yield from ("<p class='caption'>Request</p>", "", '<div class="curl" markdown>', "")
    yield from (*code(api.curl(route), "bash"), "</div>", "")
    for status, answer in route.answers:
        yield from _answer(api, route, status, answer, shown)
    errors = sorted(s for s in operation["responses"] if "$ref" in operation["responses"][s] and s.isdigit())
    if errors:
        links = ", ".join(link(status, f"{ERRORS}#status-{status}", page) for status in errors)
        yield from (f"Errors: {links}.\n{{.errors}}", "")


def _answer(api: Api, route: Route, status: str, answer: Json, shown: dict[str, str]) -> Iterator[str]:
    content = answer.get("content", {})
    body = f" Body: {_bodies(api, content, route.page)}." if content else ""
    yield from (f"**Response {status}.** {sentence(answer['description'])}{body}\n{{.response}}", "")
    if headers := answer.get("headers"):
        rows = [(word(name), _kind(api, each.get("schema", {}), route.page), each.get("description", "")) for name, each in headers.items()]
        yield from table(("header", "type", "description"), *rows)
    found = content.get("application/json")
    if found is None:
        texts = [each["example"] for each in content.values() if "example" in each]
        yield from code(str(texts[0]), "text") if texts else ()
        return
    example = api.example_of(found)
    text = json_text(example)
    if text in shown:
        yield from (f"The example of the body is that of [{shown[text]}](#{shown[text]}).", "") if shown[text] != route.anchor else ()
        return
    shown[text] = route.anchor
    if example is None or example == {} and "$ref" in found["schema"]:
        yield from (gap("example of a response", f"{route.title} {status}"), "")
        return
    yield from _folded(text, f"{status} response")


def _folded(text: str, title: str) -> Iterator[str]:
    lines = [*code(text, "json")]
    if len(lines) > LONG:
        yield from (f'??? example "Example, {len(lines) - 3} lines"', "")
        yield from (f"    {line}" if line else "" for line in lines)
    else:
        yield from lines


def _bodies(api: Api, content: Json, page: str) -> str:
    """Return the types of a body, each with its media types."""
    media: dict[str, list[str]] = {}
    for name, each in content.items():
        media.setdefault(_kind(api, each["schema"], page), []).append(name)
    words = []
    for kind, names in media.items():
        names = [name for name in names if name != "text/csv; charset=utf-8"]
        words.append(f"{kind} as {', '.join(f'`{name}`' for name in names)}")
    return "; ".join(words)


# --- objects --------------------------------------------------------------------------------------


def _schema(api: Api, name: str, page: str, level: int = 3) -> Iterator[str]:
    schema = api.schemas[name]
    yield from heading(level, f"`{name}`", name, "object")
    yield from (schema.get("description", ""), "")
    rows = [
        (
            word(member) + (" <small>required</small>" if member in schema.get("required", ()) else ""),
            _kind(api, each, page),
            _meaning(each, each, f"{name}.{member}"),
        )
        for member, each in schema.get("properties", {}).items()
    ]
    yield from table(("field", "type", "description"), *rows)
    if "properties" not in schema:
        yield from (f"{_kind(api, schema, page)}.", "")


def _kind(api: Api, schema: Json, page: str) -> str:
    return schema_words(schema, lambda name: link(f"`{name}`", api.address(name), page))


def _meaning(described: Json, schema: Json, name: str) -> str:
    """Return what a parameter or a member means."""
    text = str(described.get("description") or "").strip()
    if not text and "$ref" not in schema:
        kinds = schema.get("anyOf") or schema.get("oneOf") or [schema]
        text = next((str(each["description"]) for each in kinds if each.get("description")), "")
    default = schema.get("default")
    is_told = "efault" in text or default in (None, [], {})
    told = text if is_told else f"{sentence(text)} Default: `{json.dumps(default)}`."
    return told.strip() if text else f"{gap('description of a field', name)}{told.strip()}"
