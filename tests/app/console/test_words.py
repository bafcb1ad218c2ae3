"""Names and times on pages, in people's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import expect
from starlette.routing import Route

from app.console.rendering import ago, duration, linked, number, plain, rows, when
from app.console.words import CHANGES, PARAMETERS, change, title
from app.main import create_app
from app.measures import metric
from app.platform.settings import Settings
from app.training.algorithms import parameter_schema
from core.registry import ALGORITHMS
from tests.app.live_service import Service
from tests.long_form import long_form
from tests.sentences import Sentences

AGES = (0, 59.9, 60, 119, 3599, 3600, 7200, 86_399, 86_400, 30 * 86_400, 31 * 86_400, 4e8)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_parameter_has_a_name_in_words(name: str) -> None:
    parameters = parameter_schema(name, ALGORITHMS[name])["properties"]
    assert set(parameters) <= set(PARAMETERS)
    assert title(f"algorithm.{next(iter(parameters))}") != next(iter(parameters))


def test_a_figure_has_a_name_in_words() -> None:
    for name, words in (
        ("auc", "AUC"),
        ("precision@1%", "Precision of the top 1 %"),
        ("lift@10", "Lift of the top 10 rows"),
        ("ndcg@10", "NDCG of the top 10 rows"),
        ("pauc:0,0.2", "Partial AUC, FPR 0 to 0.2"),
        ("precision_at_recall:0.8", "Precision at a recall of 0.8"),
        ("two_way:0.1,0.8", "Two-way area, FPR at most 0.1, TPR at least 0.8"),
    ):
        assert metric(name) == words


def test_each_route_that_changes_something_is_said_in_words(sentences: Sentences) -> None:
    app = create_app(Settings())
    changing = {
        f"{method.upper()} {path}"
        for path, methods in app.openapi()["paths"].items()
        for method in methods
        if method != "get"
        and not path.endswith(
            ("/score", "/rank", "/explain", "/validate", "/preview", "/points", "/letters")
        )
    }
    sessions = {"POST /console/sign-in", "POST /console/sign-out"}
    recorded = {
        f"{method} {route.path_format}"
        for route in app.routes
        if isinstance(route, Route) and getattr(route.endpoint, "records_reads", False)
        for method in route.methods or ()
    }
    recorded.add("GET /v1/audit")  # its export
    assert changing | sessions | recorded == set(CHANGES)
    for action in sessions:
        assert "/" not in change(action, action.partition(" ")[2])
    path = "/v1/models/caf%C3%A9/aliases/live"
    said = change("PUT /v1/models/{name}/aliases/{alias}", path)
    assert " café@live " in said
    sentences(said)
    assert change("rankwright keys create", None) == "rankwright keys create"


def test_a_time_has_words_and_the_exact_time_behind_them(sentences: Sentences) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    said = [ago(now - timedelta(seconds=age), now) for age in AGES]
    assert said == [
        *("just now", "just now", "1 minute ago", "1 minute ago", "59 minutes ago", "1 hour ago"),
        *("2 hours ago", "23 hours ago", "1 day ago", "30 days ago", "2026-01-29", "2013-06-27"),
    ]
    sentences(ago(now + timedelta(seconds=30), now))
    assert ago(now + timedelta(days=3, hours=5), now) == "in 3 days"
    almost = [timedelta(days=7), timedelta(days=1), timedelta(hours=1), timedelta(minutes=2)]
    assert [ago(now + each - timedelta(seconds=1), now) for each in almost] == [
        *("in 7 days", "in 1 day", "in 1 hour", "in 2 minutes")
    ]
    exact = ET.fromstring(str(when("2013-06-28T04:53:20+02:00")))
    assert (exact.tag, exact.text) == ("time", "2013-06-28")
    assert exact.attrib == {
        "datetime": "2013-06-28T02:53:20.000+00:00",
        "title": "2013-06-28 02:53:20 UTC",
    }
    assert when(None) == "–"


def test_numbers_of_rows_are_whole_and_short_times_are_not_rounded_away() -> None:
    assert [rows(each) for each in (None, 0.3, 7.65, 8.0, 1234.6)] == [
        "–",
        "< 1",
        "8",
        "8",
        "1,235",
    ]
    said = [duration(each) for each in (0.0, 0.01, 0.05, 61.0)]
    assert said == ["0.0 s", "less than 0.1 s", "0.1 s", "1 min 1 s"]


def test_small_numbers_are_written_without_an_exponent() -> None:
    """As JavaScript writes them."""
    small = (0.00099, 8.2949e-05, -1.5e-06, 8.2949e-08, 1e-07)
    shown = ["0.00099", "0.0000829", "-0.0000015", "8.29e-8", "1e-7"]
    assert [number(each) for each in small] == shown


def test_ids_of_resources_are_links_and_the_rest_is_escaped() -> None:
    id_ = "mdl_01a219eafccd7fcb83bd544d84c7c4e7"
    shown = linked(f"the model {id_} has <b>; ds_12 is none", "/prefix")
    assert f'href="/prefix/console/models/{id_}"' in shown
    assert "&lt;b&gt;; ds_12 is none" in shown
    assert id_ not in re.sub("<[^>]*>", "", shown)


def test_the_mark_and_the_button_escape_what_they_say() -> None:
    from app.console.rendering import environment

    macros = '{% import "macros.html" as m with context %}{{ m.info(a, b) }}{{ m.copy(a, b) }}'
    page = environment().from_string(macros).render(a="<i>", b='"x"', root="")
    assert "<i>" not in page
    assert page.count("&lt;i&gt;") == 2


@long_form
@pytest.mark.parametrize("script", [True, False])
def test_marks_times_and_copying_in_a_browser(
    start: Callable[..., Service], visit: Callable[..., Any], script: bool
) -> None:
    service = start()
    client = service.client(secret := service.key())
    dataset_id = service.upload(client)
    service.train(client, dataset_id, seed=1)
    window = visit(service, width=390, script=script)
    page = window.sign_in(secret)

    page.goto(f"{service.url}/console/evaluations")
    mark = page.get_by_role("button", name="About windows")
    words = page.get_by_text("area under the ROC curve up to this")
    expect(words).to_be_hidden()
    mark.focus()
    page.keyboard.press("Enter")
    expect(words).to_be_visible()
    expect(words).to_contain_text("In the API: windows")
    if script:
        window.check()
    page.keyboard.press("Escape")
    expect(words).to_be_hidden()

    page.goto(f"{service.url}/console/keys")
    page.get_by_label("Name").fill("mine")
    page.get_by_role("button", name="Create key").click()
    button = page.locator("button.copy")
    if not script:
        expect(page.get_by_label("Secret")).to_be_visible()
        expect(button).to_be_hidden()
        return
    button.click()
    expect(button).to_contain_text("Copied")
    expect(button).to_have_text("Copy the secret")
    made = page.get_by_label("Secret", exact=True).input_value()
    page.goto(f"{service.url}/console/keys")
    field = page.get_by_label("Name")
    field.click()
    page.keyboard.press("Control+V")
    assert len(made) > 20
    expect(field).to_have_value(made)

    # The words move on while the page is open; the script and the service have the same rule.
    time = page.locator("td time").first
    expect(time).to_have_text("just now")
    expect(time).to_have_attribute("title", (time.get_attribute("title") or "").strip())
    moments = page.evaluate(
        """ages => {
          const cell = document.querySelector("td time").parentNode;
          cell.replaceChildren();
          const now = Date.now();
          for (const age of ages) {
            const time = document.createElement("time");
            time.dateTime = new Date(now - age * 1000 - 500).toISOString();
            time.title = "a time";
            cell.append(time);
          }
          document.dispatchEvent(new Event("visibilitychange"));
          return [...cell.children].map(time => [time.dateTime, time.textContent]);
        }""",
        [*AGES, -90_001, -7 * 86_400, -3600, -86_000],
    )
    for moment, said in moments:
        assert said == ago(datetime.fromisoformat(moment), datetime.now(UTC)), moment


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("2014-03-05", "2014-03-05"),
        ("2014-03-05T12:30:00Z", "2014-03-05 12:30"),
        ("2014-03-05T12:30:09Z", "2014-03-05 12:30:09"),
        ("2014-03-05T12:30:09.250000Z", "2014-03-05 12:30:09.250000"),
        ("at 2014-03-05T12:30:00Z", "at 2014-03-05T12:30:00Z"),
        (3.0, "3"),
        (True, "true"),
    ],
)
def test_values_of_a_table_are_shown_as_people_write_them(value: object, shown: str) -> None:
    assert plain(value) == shown
