"""Jobs in the console: the list, a job's page, which follows it, and what can be asked of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from html import unescape
from typing import Any

import httpx
import pytest

from app.console.rendering import number as spelled
from app.jobs import execution, queue
from app.jobs.progress import Report, clocked
from app.platform.settings import Settings
from tests.app.console.plain_browser import PlainBrowser, alert
from tests.app.live_service import Service, running, table
from tests.long_form import LONG_FORM, long_form
from tests.sentences import Sentences

NASTY = "<script>alert(1)</script>\"'{{ 7 * 7 }}"
JOB = {
    "algorithm": {"name": "rankboost", "n_rounds": 5},
    "name": "churn",
    "baselines": False,
    "validation": {"method": "holdout"},
}


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


@pytest.fixture(scope="module")
def client(service: Service) -> httpx.Client:
    return service.client(service.key())


@pytest.fixture(scope="module")
def dataset_id(service: Service, client: httpx.Client) -> str:
    return service.upload(client)


@pytest.fixture(scope="module")
def browser_of(service: Service) -> Callable[..., Callable[..., httpx.Response]]:
    """Sign in; returns what gets a page, or with fields posts a form."""
    return lambda *given, **scopes: PlainBrowser(service, *given, **scopes).ask


@pytest.fixture(scope="module")
def ask(browser_of: Callable[..., Callable[..., httpx.Response]]) -> Callable[..., httpx.Response]:
    return browser_of()


@pytest.fixture
def hand_in(service: Service, client: httpx.Client, dataset_id: str) -> Any:
    """Hand a job in, which stays queued until the test has work done; it is cancelled behind the test."""
    made: list[str] = []

    def hand_in(**job: Any) -> str:
        answer = client.post("/v1/jobs", json={"dataset_id": dataset_id, **JOB, **job})
        assert answer.status_code == 202, answer.text
        made.append(answer.json()["id"])
        return made[-1]

    yield hand_in
    for job_id in made:
        client.post(f"/v1/jobs/{job_id}/cancel")


def test_a_job_that_ended_leads_to_what_it_made(
    service: Service,
    client: httpx.Client,
    ask: Callable[..., httpx.Response],
    hand_in: Any,
    sentences: Sentences,
) -> None:
    job_id = hand_in(tags={NASTY: NASTY})
    assert f"/console/jobs/{job_id}/cancel" in ask(f"/console/jobs/{job_id}").text
    service.work()
    model_id = client.get(f"/v1/jobs/{job_id}").json()["output"]["id"]
    text = ask(f"/console/jobs/{job_id}").text
    assert f'href="/console/models/{model_id}"' in text
    assert "data-events" not in text
    assert "<script>alert" not in text
    assert NASTY in unescape(text)
    for words in ("succeeded", "queued", "running", "fraction", "Submitted"):
        assert words in text
    # The stream of its events goes on after the last that the browser has.
    stream = f"/console/jobs/{job_id}/events"
    for query, headers in (("?after=2", {}), ("?after=0", {"Last-Event-ID": "2"})):
        behind = ask(stream + query, **headers)
        assert behind.headers["content-type"].startswith("text/event-stream")
        assert re.findall(r"(?m)^id: (\d+)", behind.text)[0] == "3"
    assert ask(f"{stream}?after=x").status_code == 422
    late = ask(f"/console/jobs/{job_id}/cancel", {})
    assert late.status_code == 409
    sentences(alert(late.text))


def work_and_report(service: Service, look: Callable[[], None]) -> None:
    """Do the next job, and report on it as a worker does, though more often than once a second. `look` is called after
    the first step of a fit.
    """
    db, blobs, settings = service.context.db, service.context.blobs, service.settings
    claim = db.writing(queue.claim, settings, "w")
    assert claim is not None

    told: dict[str, Any] = {}

    def report(step: int, of: int, info: Any) -> None:
        if isinstance(info, Report):
            told.update(info.job, fraction=info.fraction)
            told.update(clocked(told, claim.spec, time.monotonic() - started))
            is_first = step and "step" not in told
            told.update({"step": step, "of": of} if step else {})
            db.writing(queue.heartbeat, settings, claim, told)
            if is_first:
                look()

    started = time.monotonic()

    payload = execution.fetch(
        blobs, db.reading(execution.prepare, settings, claim, blobs.staging_dir())
    )
    result = execution.run(payload, report)
    published = execution.publish(blobs, claim, result)
    db.writing(execution.complete, claim, result, published)


def test_a_job_that_succeeded_shows_its_models_figures_and_what_it_tried(
    service: Service,
    client: httpx.Client,
    ask: Callable[..., httpx.Response],
    visit: Callable[..., Any],
    hand_in: Any,
) -> None:
    grid = {"method": "grid", "space": {"n_rounds": [1, 4, 16], "max_bins": [2, 8]}}
    objective = {"metric": "pauc", "fpr_min": 0, "fpr_max": 0.4}
    job_id = hand_in(
        search=grid, algorithm={"name": "rankboost"}, objective=objective, name="searched"
    )
    under_way: list[str] = []
    work_and_report(service, lambda: under_way.append(ask(f"/console/jobs/{job_id}").text))
    # Steps begin anew with each fit of a search, so they are not told there.
    assert "<dt>Trial</dt>" in under_way[0]
    assert "<dt>Step" not in under_way[0]
    job = client.get(f"/v1/jobs/{job_id}").json()
    best, board = job["progress"]["best"], job["progress"]["leaderboard"]
    assert (job["state"], job["progress"]["fraction"]) == ("succeeded", 1.0)
    assert [each["value"] for each in board] == sorted(
        (each["value"] for each in board), reverse=True
    )
    assert best == board[0] | {"metric": "pauc"}

    # What is kept of the best over time is what a reader would pick from all reports by hand.
    path = f"/v1/jobs/{job_id}/events"
    told: list[float] = []
    for event in client.get(path, params={"limit": 200}).json()["data"]:
        value = (event["data"].get("best") or {}).get("value")
        if event["type"] == "progress" and value not in (None, *told[-1:]):
            told.append(value)
    assert [each["value"] for each in job["progress"]["improvements"]] == told
    assert told[-1] == best["value"]
    assert told == sorted(told)

    metrics = client.get(f"/v1/models/{job['output']['id']}/metrics").json()
    (area,) = (each for each in metrics["pauc"] if (each["fpr_min"], each["fpr_max"]) == (0, 0.4))
    for width, dark in ((390, True), (1280, False)) if LONG_FORM else ((390, True),):
        window = visit(service, width=width, dark=dark)
        page = window.sign_in(service.key())
        window.open(f"/console/jobs/{job_id}")
        tiles = page.get_by_role("region", name="Metrics").locator(".tile")
        for tile, title, of, chance in zip(
            tiles.all_inner_texts(),
            ("AUC", "Partial AUC, FPR "),
            (metrics["auc"], area),
            ("0.5", "0.2"),
            strict=True,
        ):
            assert tile.strip().startswith(title)
            shown = [f"{spelled(of[end])}" for end in ("value", "low", "high")]
            assert re.findall(r"\d\.\d{3}", tile) == shown
            assert tile.strip().endswith(f"random: {chance}")
        rows = page.locator("[aria-label='Candidates by value'] tbody tr")
        assert rows.locator("td:first-child").all_inner_texts() == [
            f"{each['value']:.4f}" for each in board
        ]
        chart = page.get_by_role("region", name="Search progress")
        dots = chart.locator("circle title").all_text_contents()
        assert [each.split()[0] for each in dots] == [f"{value:.4f}" for value in told]
        assert "too optimistic" in chart.inner_text()
        window.check()


def test_a_job_that_ends_the_same_way_again_has_no_retry(
    service: Service, client: httpx.Client, ask: Callable[..., httpx.Response], hand_in: Any
) -> None:
    bad = service.upload(client, "a,left\n1,yes\n2\n3,no\n", name="broken")
    page = f"/console/jobs/{client.get(f'/v1/datasets/{bad}').json()['job_id']}"
    text = ask(page).text
    assert f"{page}/retry" not in text
    for code, words in (
        ("file_not_found", "is readable, then retry"),
        ("internal", "Retry the job. If it fails again"),
    ):
        page = f"/console/jobs/{hand_in(name=code)}"
        claim = service.context.db.writing(queue.claim, service.settings, "w")
        assert claim is not None
        problem = {"code": code, "title": "Lost", "detail": "lost", "errors": []}
        service.context.db.writing(queue.fail, claim, problem)
        text = ask(page).text
        assert words in text
        assert f'action="{page}/retry"' in text


def test_a_job_is_handed_in_anew_with_changes(
    client: httpx.Client, ask: Callable[..., httpx.Response], hand_in: Any
) -> None:
    job_id = hand_in(
        algorithm={"name": "rankboost", "weak_ranker": "tree", "max_depth": 4},
        objective={"metric": "pauc", "fpr_max": 0.2},
        validation={"method": "cross_validation", "folds": 3},
        search={
            "method": "random",
            "space": {"n_rounds": [5, 10], "learning_rate": {"low": 0.1, "high": 1, "log": True}},
            "n_candidates": 2,
        },
        tags={"team": "risk"},
        seed=3,
    )
    client.post(f"/v1/jobs/{job_id}/cancel")
    link = re.search(r'href="(/console/train\?[^"]+)"', ask(f"/console/jobs/{job_id}").text)
    assert link is not None
    text = unescape(ask(unescape(link[1])).text)
    fields = dict(re.findall(r'name="([a-z_.]+)" aria[^>]*?value="([^"]+)"', text))
    fields |= {
        name: chosen
        for name, options in re.findall(
            r'(?s)<select id="[^"]+" name="([^"]+)"(.*?)</select>', text
        )
        for chosen in re.findall(r'<option(?: value="([^"]*)")? selected>', options)[:1]
    }
    assert fields["search.space.n_rounds"] == "5, 10"
    assert fields["search.space.learning_rate"] == "0.1 to 1 log"
    assert fields["validation.folds"] == "3"
    assert fields["validation.method"] == "cross_validation"
    assert fields["objective.fpr_max"] == "0.2"
    assert fields["seed"] == "3"
    assert "team=risk</textarea>" in text
    assert "<option selected>tree</option>" in text
    assert fields["algorithm.max_depth"] == "4"


def test_a_job_that_failed_says_why_and_what_to_do(
    service: Service,
    client: httpx.Client,
    ask: Callable[..., httpx.Response],
    sentences: Sentences,
) -> None:
    bad = service.upload(client, "a,left\n1,yes\n2\n3,no\n", name=NASTY)
    job_id = client.get(f"/v1/datasets/{bad}").json()["job_id"]
    text = ask(f"/console/jobs/{job_id}").text
    sentences(alert(text))
    assert "What to do" in text
    assert f'href="/console/datasets/{bad}"' in text
    assert "<script>alert" not in text
    listed = ask("/console/jobs?kind=ingest&state=failed").text
    assert NASTY in unescape(listed)
    assert "<script>alert" not in listed


def test_cancel_and_retry(ask: Callable[..., httpx.Response], hand_in: Any) -> None:
    job_id = hand_in()
    page = f"/console/jobs/{job_id}"
    refused = ask(f"{page}/cancel", {"keep": "true"})
    assert refused.status_code == 409
    assert "nothing to keep" in refused.text
    assert ask(f"{page}/retry", {}).status_code == 409
    assert ask(f"{page}/cancel", {}).headers["location"] == page
    assert "cancelled" in ask(page).text
    again = ask(f"{page}/retry", {}).headers["location"]
    assert again != page
    assert f'<a href="{page}">an earlier job</a>' in ask(again).text
    assert ask(f"{again}/cancel", {}).status_code == 303


def test_the_list_filters_and_pages(
    service: Service, browser_of: Callable[..., Callable[..., httpx.Response]]
) -> None:
    client, ask = service.client(service.key("many")), browser_of("many")
    dataset_id = service.upload(client, table(40))
    names = [f"n{index}" for index in range(52)]
    for name in names:
        client.post("/v1/jobs", json={**JOB, "dataset_id": dataset_id, "name": name})
    first = ask(f"/console/jobs?dataset_id={dataset_id}").text
    assert re.findall(r">(n\d+)</a>", first) == names[:1:-1]
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older is not None
    assert re.findall(r">(n\d+)</a>", ask(unescape(older[1])).text) == ["n1", "n0"]
    assert '<p class="empty">' in ask("/console/jobs?state=failed").text
    name = re.findall(r'/console/jobs/job_\w+">([^<]+)</a>', first)[0]
    part = name[1:-1].upper()
    found = ask(f"/console/jobs?dataset_id={dataset_id}&search={part}").text
    assert f">{name}</a>" in found
    assert f'value="{part}"' in found
    assert '<p class="empty">' in ask("/console/jobs?search=nothing-like-it").text
    assert "reading a table" in ask("/console/jobs?kind=ingest").text
    for wrong in ("state=x", "dataset_id=x", "after=x", "kind=%00é"):
        answer = ask(f"/console/jobs?{wrong}")
        assert answer.status_code in (400, 422), wrong
    assert NASTY not in ask(f"/console/jobs?kind={NASTY}").text


@long_form
def test_the_log_pages_backwards(
    service: Service, ask: Callable[..., httpx.Response], hand_in: Any, monkeypatch: Any
) -> None:
    job_id = hand_in()
    service.work()
    monkeypatch.setattr("app.console.jobs.EVENTS", 2)
    text = ask(f"/console/jobs/{job_id}").text
    assert ">succeeded</span>" in text
    assert ">queued</span>" not in text
    earlier = re.search(r'href="([^"]+events_after=0)"', text)
    while earlier is None:
        step = re.search(r'href="([^"]+events_after=\d+)"', text)
        assert step is not None
        text = ask(step[1]).text
        earlier = re.search(r'href="([^"]+events_after=0)"', text)
    assert ">queued</span>" in ask(earlier[1]).text
    assert ask(f"/console/jobs/{job_id}?events_after=x").status_code == 200
    assert ask(f"/console/jobs/{job_id}?events_after={'9' * 40}").status_code == 200


def test_a_live_page_outlives_a_restart_of_the_service(
    settings: Settings, visit: Callable[..., Any]
) -> None:
    with running(settings) as before:
        client, secret = before.client(before.key()), before.key()
        dataset_id = before.upload(client, table(40))
        job_id = client.post("/v1/jobs", json={**JOB, "dataset_id": dataset_id}).json()["id"]
        window = visit(before)
        window.expect("ERR_|status of 5|htmx:")
        page = window.sign_in(secret)
        window.open(f"/console/jobs/{job_id}")
        page.get_by_text("Waiting for a worker").wait_for()
    page.get_by_text(re.compile("Connection lost|not responding")).wait_for()
    port = int(before.url.rpartition(":")[2])
    with running(settings, port) as after:
        after.client(after.key()).post(f"/v1/jobs/{job_id}/cancel")
        page.get_by_text("The job was cancelled").wait_for()
        assert page.locator("#busy").inner_text() == ""
        page.goto("about:blank")  # or the stream would hold up the end
