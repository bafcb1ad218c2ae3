"""The reference of HTTP: a page for each tag, with its routes and the objects that they send and return."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from docs.builder.bounds import schema_words
from docs.builder.markdown import LONG, code, gap, heading, hidden, link, sentence, table, word
from docs.builder.openapi import HTTP, SHARED, Api, Route, json_text

Json = Mapping[str, Any]
ERRORS = "errors.md"
INDEX = f"{HTTP}index.md"

END_OF_A_JOB = """
- **Webhooks.** The service sends an event to your URL: see [Webhooks](../../webhooks.md).
- **Poll.** Read the job with [`GET /v1/jobs/{job_id}`](jobs.md#read_job) and the header `Prefer: wait=30`.
  The service holds the response until the job has ended, at most that many seconds.
- **Server-sent events.** Follow [`GET /v1/jobs/{job_id}/events`](jobs.md#read_job_events) with the header
  `Accept: text/event-stream`. Each event of the job arrives when it happens.
"""


def http_pages(api: Api, errors: str) -> dict[str, list[str]]:
    """Return every page about HTTP. `errors` is the text of docs/errors.md."""
    statuses = status_addresses(errors)
    pages = {page: [*_tag_page(api, page, statuses)] for page in api.pages}
    pages[SHARED] = [*_shared(api)]
    pages[INDEX] = [*_index(api)]
    return pages


def _index(api: Api) -> Iterator[str]:
    def to(page: str, title: str) -> str:
        return link(title, page, INDEX)

    yield from heading(1, "HTTP API")
    yield f"A request needs the address of your service and a key. The examples use `{api.host}`, the address of"
    yield from ("`rankwright serve`, and the environment variable `RANKWRIGHT_API_KEY`.", "")
    request = f'curl {api.host}/v1/datasets \\\n  -H "Authorization: Bearer $RANKWRIGHT_API_KEY"'
    yield from code(request, "bash")
    yield f"{to('api.md', 'HTTP rules')} describes authentication, pages of lists, idempotency and errors."
    yield f"{to(ERRORS, 'Errors')} has one entry for each error code. Each route names its codes that most"
    yield f"others do not have. {to('clients.md', 'Clients')} lists the routes of"
    yield from ("other servers' protocols. Programs read `/openapi.json` of the service.", "")
    yield from heading(2, "Learn that a job has ended", "end-of-a-job")
    yield from END_OF_A_JOB.strip().splitlines()
    yield ""
    yield from heading(2, "Routes", "routes")
    for page, (title, description) in api.pages.items():
        yield from heading(3, title)
        yield from (description, "")
        yield from _routes_table([each for each in api.routes if each.page == page], INDEX)


def _routes_table(routes: list[Route], page: str) -> Iterator[str]:
    rows = [
        (
            link(f"`{each.title}`{{.whole}}", f"{each.page}#{each.anchor}", page),
            each.operation["summary"],
        )
        for each in routes
    ]
    yield from table(("Route", "Description"), *rows, kind="names")


def _tag_page(api: Api, page: str, statuses: Mapping[str, str]) -> Iterator[str]:
    title, description = api.pages[page]
    yield from heading(1, title)
    yield from (description, "")
    routes = [each for each in api.routes if each.page == page]
    yield from _routes_table(routes, page)
    usual = _usual_codes(api)
    shown: dict[str, str] = {}
    for route in routes:
        yield from _route(api, route, statuses, usual, shown)
    names = [name for name, home in api.homes.items() if home == page]
    if names:
        yield from heading(2, "Objects", "objects")
        yield "The objects that these routes take and return. Objects that several pages use are on the page"
        yield from (f"{link('Shared objects', SHARED, page)}.", "")
        for name in sorted(names):
            yield from _schema(api, name, page)


def _shared(api: Api) -> Iterator[str]:
    yield from heading(1, "Shared objects")
    yield from ("Objects of the HTTP API that several groups of routes use.", "")
    for name, home in sorted(api.homes.items()):
        if home == SHARED:
            yield from _schema(api, name, SHARED, level=2)


def status_addresses(errors: str) -> dict[str, str]:
    """Return the address of each status: the first heading of docs/errors.md that has it."""
    found: dict[str, str] = {}
    for title in re.findall(r"^## (.+)$", errors, re.MULTILINE):
        anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())
        for status in re.findall(r"\b[45]\d\d\b", title):
            found.setdefault(status, f"{ERRORS}#{anchor}")
    return found


# --- routes ---------------------------------------------------------------------------------------


def _route(
    api: Api, route: Route, statuses: Mapping[str, str], usual: set[str], shown: dict[str, str]
) -> Iterator[str]:
    operation, page = route.operation, route.page
    yield from heading(
        2, f"`{route.title}` {hidden(route.anchor)}", route.anchor, "route", operation["summary"]
    )
    summary, description = sentence(operation["summary"]), operation.get("description") or ""
    yield from (f"{hidden(route.title)}**{summary}** {description}", "")
    yield from ('<div class="curl" markdown>', "", *code(api.curl(route), "bash"), "</div>", "")
    parameters = operation.get("parameters", ())
    if parameters:
        yield from ("<p class='caption'>Parameters</p>", "")
    for each in parameters:
        name = each["name"]
        yield from _entry(
            f"`{name}` {hidden(route.anchor)}",
            f"{route.anchor}.{name}",
            f"{_kind(api, each['schema'], page)}, in the {each['in']}{', required' if each.get('required') else ''}",
            _meaning(each, each["schema"], f"{route.title}: {name}"),
        )
    if content := operation.get("requestBody", {}).get("content"):
        yield from ("<p class='caption'>Body</p>", "", f"{_bodies(api, content, page)}.", "")
    yield from ("<p class='caption'>Responses</p>", "")
    for status, answer in route.answers:
        yield from _answer(api, route, status, answer, shown)
    responses = operation["responses"]
    errors = sorted(each for each in responses if each >= "400" and each.isdigit())
    if errors:
        words = []
        for status in errors:
            codes = [each for each in _codes(responses[status]) if each not in usual]
            address = statuses.get(status, ERRORS)
            named = ", ".join(f"`{code}`" for code in codes)
            words.append(f"{link(status, address, page)} ({named})" if codes else status)
        links = ", ".join(words)
        yield from (f"{link('Errors', ERRORS, page)}: {links}.\n{{.errors}}", "")


def _codes(response: Json) -> list[str]:
    """Return the codes that the description of an error names."""
    return re.findall(r"`(\w+)`", response.get("description", "").partition("`code`: ")[2])


def _usual_codes(api: Api) -> set[str]:
    """Return the codes that a third of the routes name: the pages leave them out."""
    responses = (each for route in api.routes for each in route.operation["responses"].values())
    counts = Counter(code for response in responses for code in _codes(response))
    return {code for code, count in counts.items() if count > len(api.routes) / 3}


def _entry(title: str, anchor: str, kind: str, text: str) -> Iterator[str]:
    """Yield a parameter or a field with an anchor."""
    yield from heading(5, title, anchor, "param")
    yield from (f"{kind}\n{{.kind}}", "", text, "")


def _answer(
    api: Api, route: Route, status: str, answer: Json, shown: dict[str, str]
) -> Iterator[str]:
    content = answer.get("content", {})
    body = f" Body: {_bodies(api, content, route.page)}." if content else ""
    yield from (
        f"**{status}.** {sentence(answer['description'])}{body}\n{{.response}}",
        "",
    )
    if headers := answer.get("headers"):
        rows = [
            (
                word(name),
                _kind(api, each.get("schema", {}), route.page),
                each.get("description", ""),
            )
            for name, each in headers.items()
        ]
        yield from table(("Header", "Type", "Description"), *rows)
    found = content.get("application/json")
    if found is None:
        texts = [each["example"] for each in content.values() if "example" in each]
        yield from code(str(texts[0]), "text") if texts else ()
        return
    example = api.example_of(found)
    text = json_text(example)
    if text in shown:
        yield from (
            (f"The example of the body is that of [{shown[text]}](#{shown[text]}).", "")
            if shown[text] != route.anchor
            else ()
        )
        return
    shown[text] = route.anchor
    if example is None or (example == {} and "$ref" in found["schema"]):
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
    for kind, found in media.items():
        names = [name for name in found if name != "text/csv; charset=utf-8"]
        words.append(f"{kind} as {', '.join(f'`{name}`' for name in names)}")
    return "; ".join(words)


# --- objects --------------------------------------------------------------------------------------


def _schema(api: Api, name: str, page: str, level: int = 3) -> Iterator[str]:
    schema = api.schemas[name]
    yield from heading(level, f"{hidden('object')} `{name}`", name, "object", name)
    yield from (schema.get("description", ""), "")
    required = schema.get("required", ())
    if name in api.requests:
        for member, each in schema.get("properties", {}).items():
            kind = _kind(api, each, page) + (", required" if member in required else "")
            text = _meaning(each, each, f"{name}.{member}")
            yield from _entry(f"`{member}` {hidden(name)}", f"{name}.{member}", kind, text)
        return
    rows = [
        (
            word(member) + (" <small>required</small>" if member in required else ""),
            _kind(api, each, page),
            _meaning(each, each, f"{name}.{member}"),
        )
        for member, each in schema.get("properties", {}).items()
    ]
    yield from table(("Field", "Type", "Description"), *rows)
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
