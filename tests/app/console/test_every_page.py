"""All pages: sound at each width, light and dark; what is not there or refused; and a service of many models."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import expect
from sqlalchemy import event, insert, select

from app.console.pages import ROUTERS
from app.platform.ids import new_id
from app.platform.sql import Base
from app.platform.tables import Job
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import STRANGER, Service, table
from tests.app.refusals import everything
from tests.fuzz.console import ROUTES
from tests.long_form import LONG_FORM, long_form, rest
from tests.raising import raises

LOOKS = [(390, True), *rest(*product((390, 1280, 1920), (False, True)))]
# They answer with a file, a stream or JSON, or sign in.
NO_PAGE = re.compile(
    "/static/|/download/|/evidence/|/events$|/cutoffs$|/result|/export$|/retrain$|/sign-in$|/oidc/"
)


class World:
    """A service with one of everything."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.secret = service.key()
        self.client = client = service.client(self.secret)
        dataset_id, later = service.upload(client), service.upload(client, name="later")
        jobs = [service.train(client, dataset_id, seed=seed) for seed in (1, 2)]
        models = [job["output"]["id"] for job in jobs]
        for alias in ("live", "a" * 63):
            answer = client.put(f"/v1/models/churn/aliases/{alias}", json={"model_id": models[0]})
            assert answer.is_success, answer.text
        locked = client.put(
            "/v1/models/churn/aliases/live/protection",
            json={"protected": True},
            headers={"If-Match": '"1"'},
        )
        assert locked.is_success, locked.text
        emergency = client.post(
            "/v1/models/churn/aliases/live/break-glass", json={"reason": "urgent"}
        )
        assert emergency.is_success, emergency.text
        asked = client.post(
            "/v1/alias-requests",
            json={
                "kind": "set",
                "name": "churn",
                "alias": "live",
                "model_id": models[1],
                "reason": "better",
            },
        )
        assert asked.is_success, asked.text
        recorded = client.put("/v1/models/churn/aliases/live/feedback", json={"monitor": {}})
        assert recorded.is_success, recorded.text
        on = {"dataset_id": later}

        def made(kind: str, **body: Any) -> str:
            answer = client.post(f"/v1/{kind}", json=on | body)
            assert answer.status_code == 202, answer.text
            service.work()
            id_: str = answer.json()["id"]
            return id_

        erasure = client.post("/v1/erasures", json={"id": "c1", "key_columns": ["age"]})
        service.work()
        hold = client.post("/v1/holds", json={"kind": "owner", "reason": "a case"}).json()["id"]
        client.post(f"/v1/holds/{hold}/release", json={"reason": "closed"})
        hook = client.post("/v1/webhooks", json={"url": "https://example.com/"}).json()["id"]
        client.post(f"/v1/webhooks/{hook}/ping")
        self.ids = {
            "webhook_id": hook,
            "erasure_id": erasure.json()["id"],
            "ref": models[0],
            "name": "churn",
            "alias": "live",
            "revision": "1",
            "dataset_id": dataset_id,
            "job_id": jobs[0]["id"],
            "evaluation_id": made("evaluations", model=models[0]),
            "comparison_id": made("comparisons", models=models),
            "alias_request_id": asked.json()["id"],
            "batch_id": made("batch-scores", model=models[0]),
        }

    def pages(self) -> list[str]:
        """Return the addresses of all pages, by the routes."""
        paths = [
            route.path
            for router in ROUTERS
            for route in router.routes
            if isinstance(route, APIRoute)
            and "GET" in route.methods
            and not NO_PAGE.search(route.path)
        ]
        return [path.format_map(self.ids) for path in paths]


SENT = {
    "/console/models/{ref}": {"alias": "next", "threshold": "1", "confirmed": "yes"},
    "/console/models/{ref}/aliases": {"alias": "next"},
    "/console/models/{ref}/aliases/{alias}/restore": {"to": "1", "revision": "2"},
    "/console/models/{ref}/calibration/restore": {"version": "1", "revision": "1"},
    "/console/datasets/{dataset_id}/read": {"group": "age"},
    "/console/delete/{collection}": {"models": "mdl_1"},
    "/console/train/check": {"dataset_id": "ds_1"},
    "/console/train/form": {"dataset_id": "ds_1"},
}
"""What is entered into a form that looks at its fields before it asks for the scope."""
WITH_A_TABLE = re.compile(
    "/datasets$|/datasets/check$|/versions$|/pairs$|/rows(/check)?$|/outcomes$|/import$"
)
NOT_MADE = ("/console/alarms/", "/console/models/{ref}/bins")
"""Forms of what the world has not got."""
OF_ANYBODY = ("/console/sign-", "/console/oidc/", "/console/owner", "/console/models/columns")
"""Forms of the browser's own session."""


@pytest.fixture(scope="module")
def world(start: Callable[..., Service]) -> World:
    return World(start())


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_each_page_is_sound_in_each_look(
    world: World, visit: Callable[..., Any], width: int, dark: bool
) -> None:
    window = visit(world.service, width=width, dark=dark)
    page = window.sign_in(world.secret)
    window.expect("status of 404")  # parts that a model of this kind lacks
    assert len(world.pages()) > 30
    for path in world.pages()[:: 1 if LONG_FORM else 3]:  # a page of its own opens most of them
        window.open(path)
        if page.locator("header.top").count() == 0:
            continue  # a part of a page
        window.settle()
        window.check()
        assert page.locator("h1").count() == 1, path
        expect(page.locator("[data-notice]")).to_have_count(0)
        page.set_viewport_size({"width": 375, "height": 900})
        window.check_width()
        page.set_viewport_size({"width": width, "height": 900})


@pytest.mark.parametrize("width", [390, 1440])
def test_no_page_cuts_a_word_or_a_column(
    world: World, visit: Callable[..., Any], width: int
) -> None:
    window = visit(world.service, width=width)
    page = window.sign_in(world.secret)
    window.expect("status of 404")  # parts that a model of this kind lacks
    cut: dict[str, list[list[str]]] = {}
    for path in world.pages():
        window.open(path)
        if page.locator("header.top").count() == 1:
            window.settle()
            window.unfold()
            if found := window.cut():
                cut[path] = found
    assert cut == {}


A4 = {"width": 688, "height": 1005}
"""The content of a printed page: 182 by 266 mm."""


def test_the_first_page_of_a_report_answers_five_questions(
    world: World, visit: Callable[..., Any]
) -> None:
    page = visit(world.service).page
    client = world.client
    page.set_content(client.get(f"/v1/models/{world.ids['ref']}/report?format=html").text)
    page.emulate_media(media="print")
    page.set_viewport_size(A4)
    first = page.locator(".first")
    assert first.locator("h2").count() == 5
    assert first.bounding_box()["y"] + first.bounding_box()["height"] <= A4["height"]
    after = "getComputedStyle(document.querySelector('.first + .brief')).breakBefore"
    assert page.evaluate(after) == "page"


def test_a_key_without_the_scope_changes_nothing_and_is_offered_nothing(world: World) -> None:
    """Whatever page it opens, and whatever form it sends; nor does another owner, to whom ours is not there."""
    reader = PlainBrowser(world.service, scopes=["read"])
    stranger = PlainBrowser(world.service, STRANGER)
    before = everything(world.service)
    known = defaultdict(lambda: "x_1", world.ids, collection="models", kind="csv")
    wrong = {}
    for method, route in ROUTES:
        path = route.format_map(known)
        if method == "GET" and "{" in route:
            if (status := stranger.get(path).status_code) != 404:
                wrong[f"another owner: {route}"] = status
        elif method == "POST" and not route.startswith(OF_ANYBODY + NOT_MADE):
            file = ("a.csv", table()) if WITH_A_TABLE.search(route) else None
            if (status := reader.post(path, file, **SENT.get(route, {})).status_code) != 403:
                wrong[f"reader: {route}"] = status
            is_known = "{" in route and "/delete/" not in route and "/uploads/" not in route
            if is_known and (status := stranger.post(path).status_code) not in (404, 422):
                wrong[f"another owner: {route}"] = status
    assert wrong == {}
    assert everything(world.service) == before
    for path in world.pages():
        page = reader.get(path)
        assert page.status_code in (200, 403, 404), path  # of this kind of model there may be none
        forms = re.findall(r'(?s)<form method="post" action="([^"]*)"(.*?)</form>', page.text)
        offered = [action for action, inner in forms if re.search("<button(?! type)", inner)]
        assert [each for each in offered if not each.startswith(OF_ANYBODY)] == [], path


def test_what_is_faint_is_found_on_a_page_that_was_sound(
    world: World, visit: Callable[..., Any]
) -> None:
    window = visit(world.service)
    page = window.sign_in(world.secret)
    window.open("/console/datasets")
    window.check()
    for part, style in (
        ("h1", "color: #ccc"),
        ("main table", "background: #777"),
        ("main label", "opacity: .4"),
    ):
        window.open("/console/datasets")
        page.locator(part).first.evaluate("(part, style) => { part.style.cssText = style; }", style)
        with raises(AssertionError, "color-contrast"):
            window.check()


@contextmanager
def counted(service: Service) -> Iterator[dict[str, int]]:
    """Count the statements that the service sends to its database, and the rows that it makes objects of. Who asks is
    looked up anew each second, which is not counted; nor is the mode of a connection, which depends on what the pool
    hands out: one that last wrote is first told to read.
    """
    counts = {"statements": 0, "rows": 0}

    def send(_: Any, __: Any, statement: str, *___: Any) -> None:
        prepares = statement == "BEGIN" or statement.startswith("PRAGMA query_only")
        counts["statements"] += not prepares and "api_keys" not in statement

    def load(*_: Any) -> None:
        counts["rows"] += 1

    engine = service.context.db.engine
    event.listen(engine, "before_cursor_execute", send)
    event.listen(Base, "load", load, propagate=True)
    try:
        yield counts
    finally:
        event.remove(engine, "before_cursor_execute", send)
        event.remove(Base, "load", load)


def copy_job(service: Service, job_id: str, numbers: Iterable[int]) -> None:
    """Write copies of a job's row, in each of several states."""
    states = ("queued", "running", "succeeded", "failed")
    with service.context.db.write() as session:
        row = dict(session.execute(select(Job.__table__).where(Job.id == job_id)).mappings().one())
        row["heartbeat_count"] = row.pop("beats")
        copies = [
            row | {"id": new_id("job"), "name": f"copy {n}", "state": states[n % 4]}
            for n in numbers
        ]
        session.execute(insert(Job), copies)


@long_form
def test_pages_cost_the_same_with_many_models(start: Callable[..., Service]) -> None:
    """With 10,000 models in place of 2,000, or 4,000 in the short form, no page sends more questions, nor reads more
    rows; the first page asks as often with 10 models and jobs as with many.
    """
    few_models, many_models, jobs = (2_000, 10_000, 500) if LONG_FORM else (2_000, 4_000, 300)
    service = start()
    # An owner without the evaluations of other tests: where one is shown, its acknowledgement is asked for, too.
    client = service.client(secret := service.key("many"))
    job = service.train(client, service.upload(client))
    model_id = job["output"]["id"]
    browser = PlainBrowser(service, secret=secret)
    pages = (
        *("/console", "/console/models", "/console/models?search=m1", "/console/comparisons"),
        *("/console/evaluations", "/console/batch-scores", "/console/train", "/console/audit"),
        *("/console/pick/models", "/console/pick/models?find_models=m1", "/console/datasets"),
        *("/console/pick/models?find_models=%40l", f"/console/models/{model_id}", "/console/jobs"),
    )

    def costs(*pages: str) -> dict[str, tuple[int, int]]:
        found = {}
        for page in pages:
            browser.read(page)  # what is read once is in memory, some of it for a second
            tries = []
            for _ in range(4):
                with counted(service) as counts:
                    browser.read(page)
                tries.append((counts["statements"], counts["rows"]))
            found[page] = min(tries)
        return found

    service.copy_model(model_id, range(10))
    copy_job(service, job["id"], range(10))
    first = costs("/console")["/console"][0]
    service.copy_model(model_id, range(10, few_models))
    copy_job(service, job["id"], range(10, jobs))
    few = costs(*pages)
    service.copy_model(model_id, range(few_models, many_models))
    many = costs(*pages)
    assert 0 < first == few["/console"][0] == many["/console"][0] <= 27
    for page, (statements, rows) in many.items():
        assert 0 < statements <= few[page][0], (page, few[page], many[page])
        assert rows <= few[page][1] + 10, (page, few[page], many[page])
        assert statements <= 40, (page, many[page])
