"""The whole way in a browser: from a link and an empty service to scored rows; hostile names; and what pages weigh."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest
from sqlalchemy import insert, inspect

from app.access import service as keys
from app.access import sessions
from app.jobs import queue
from app.platform.ids import new_id
from app.platform.tables import JobState, Model, ModelCurve, ModelMetrics
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


def test_from_a_link_and_an_empty_service_to_scored_rows(
    service: Service, visit: Callable[..., Any], tmp_path: Any
) -> None:
    secret = service.key("newcomer")
    api = service.client(secret)
    link = service.context.db.writing(sessions.make_link, secret)
    window = visit(service)
    window.expect("status of 422")
    page = window.open(f"/console/sign-in?link={link}")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Welcome to Rankwright").wait_for()
    window.check()

    # A table with faults is refused with lines and columns; the sample is read.
    bad = tmp_path / "bad.csv"
    bad.write_text("age,left\n40,yes\n41\n42,no\n")
    page.get_by_role("link", name="Upload a table").click()
    page.set_input_files("#file", bad)
    page.get_by_role("button", name="Upload", exact=True).click()
    with service.at_work():
        page.get_by_text("The table cannot be used as it is").wait_for()
        row = page.get_by_role("row", name="1 value where the header has 2")
        assert row.get_by_role("cell").first.inner_text() == "3"
        page.get_by_role("link", name="Datasets").first.click()
        page.get_by_role("button", name="Try a sample table").click()
        page.get_by_role("link", name="Train on this").wait_for()
    window.check()

    # The job is followed without a reload.
    page.get_by_role("link", name="Train on this").click()
    page.get_by_label("Algorithm", exact=True).select_option("rankboost")
    page.get_by_text("Parameters: ").click()
    page.get_by_label("Rounds", exact=True).fill("20")
    page.get_by_label("Name of the model").fill("customers")
    page.get_by_text("Ready to train").wait_for()
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_text("Waiting for a worker").wait_for()
    with service.at_work():
        page.get_by_role("link", name="The model").click()

    # The slider goes by keyboard; its numbers are the API's.
    page.get_by_role("heading", name="customers:1").wait_for()
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.get_by_text("Cut 2 of").wait_for()
    model_id = page.url.rpartition("/")[2].partition("?")[0]
    threshold = page.locator("[data-threshold] .limits").inner_text()
    cut = api.get(f"/v1/models/{model_id}/operating-point", params={"threshold": threshold}).json()
    assert (
        page.locator('[data-figure="tpr"] span').first.inner_text() == f"{cut['tpr']['value']:.3f}"
    )

    page.get_by_role("link", name="Lineage").click()
    page.get_by_label("New alias").fill("live")
    page.get_by_role("button", name="Make alias").click()
    page.get_by_text("customers@live", exact=True).first.wait_for()
    assert api.get("/v1/models/customers@live").json()["id"] == model_id

    page.get_by_role("link", name="Score", exact=True).click()
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_text(re.compile("A cut at this score flags")).wait_for()
    page.get_by_role("heading", name="Reasons").wait_for()

    # Rows of one's own: checked, refused in the API's words, scored by a worker.
    good = tmp_path / "rows.csv"
    good.write_text(
        "id,age,months,monthly_bill,support_calls,contract,payment,city\n"
        "c1,40,12,30,1,one year,card,Lyon\nc2,,3,55.5,4,month to month,invoice,Turin\n"
    )
    page.get_by_role("link", name="Batch scores").click()
    page.locator("#own-model-find").click()
    page.locator(".picker-list [role=option]").first.click()
    page.set_input_files("#file", good)
    page.get_by_role("button", name="Check without scoring").click()
    page.get_by_role("alert").get_by_text("id", exact=False).first.wait_for()
    window.check()
    page.locator("form[data-upload]").get_by_label("Keep columns").fill("id")
    page.get_by_role("button", name="Check without scoring").click()
    page.get_by_text("The file can be used: 2 rows").wait_for()
    window.check()
    page.locator("form[data-upload]").get_by_role("button", name="Score", exact=True).click()
    page.get_by_text("A worker is working on it").wait_for()
    with service.at_work():
        page.get_by_role("link", name="Download CSV").wait_for()
    window.check()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0].replace('"', "") == "id,row_number,score,fpr,tpr,probability"
    assert len(lines) == 3


def test_a_key_that_is_revoked_under_an_open_page_leads_to_sign_in(
    service: Service, visit: Callable[..., Any]
) -> None:
    row, secret = service.context.db.writing(keys.create, "leaver", "laptop", keys.SCOPES)
    window = visit(service)
    window.expect("status of 401")
    page = window.sign_in(secret)
    window.open("/console/batch-scores")
    service.context.db.writing(keys.revoke, "leaver", row.id)
    page.get_by_role("link", name="Data", exact=True).click()
    page.get_by_label("API key").wait_for()
    assert page.url.endswith("?next=%2Fconsole%2Fdatasets")


def test_a_running_job_is_cancelled_from_its_page(
    service: Service, visit: Callable[..., Any]
) -> None:
    secret, db = service.key("hasty"), service.context.db
    api = service.client(secret)
    body = {"dataset_id": service.upload(api), "algorithm": {"name": "rankboost"}, "name": "hasty"}
    job_id = api.post("/v1/jobs", json=body).json()["id"]
    window = visit(service)
    page = window.sign_in(secret)
    window.open(f"/console/jobs/{job_id}")
    page.get_by_text("Waiting for a worker").wait_for()
    claim = db.writing(queue.claim, service.settings, "test-worker")
    assert claim is not None
    assert claim.job_id == job_id
    page.get_by_text("running", exact=True).first.wait_for()  # it was told
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("cancelling", exact=True).first.wait_for()
    assert not page.get_by_role("button", name="Cancel").is_visible()
    db.writing(queue.fail, claim, None, state=JobState.CANCELLED)  # as its worker does
    page.get_by_text("It was cancelled").wait_for()
    page.get_by_role("button", name="Retry").wait_for()


# --- names that pages must not take for markup ---------------------------------------------------

SCRIPT = "<script>alert(1)</script>\"'{{ 7 * 7 }}</option><img src=x onerror=alert(2)>"
RIGHT_TO_LEFT = "שלום עולם"
TURNED = "\u202e" + RIGHT_TO_LEFT  # which no column may be called
EMOJI = "🦊 ' onfocus='alert(3)"
LONG = "very" + "_long" * 50
HOSTILE = (SCRIPT, TURNED, EMOJI, LONG)
CALLS = "for (const name of ['alert', 'confirm', 'prompt']) window[name] = () => console.error('it ran');"

TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('main *')]
    .filter((each) => each.getBoundingClientRect().right > innerWidth && !each.closest('.scroll, svg'))
    .map((each) => `${each.tagName} ${each.className} ${each.textContent.trim().slice(0, 30)}`)"""


def csv_line(*values: object) -> str:
    return ",".join('"' + str(value).replace('"', '""') + '"' for value in values) + "\n"


def hostile_table(rows: int = 120) -> str:
    """Columns and values of hostile names, and a label that goes with them."""
    rng = np.random.default_rng(1)
    lines = [csv_line(SCRIPT, RIGHT_TO_LEFT, LONG, EMOJI)]
    for value in rng.normal(size=rows).round(3).tolist():
        word = HOSTILE[rng.integers(4)]
        left = value + (word == SCRIPT) + rng.normal(0, 0.5) > 0.3
        lines.append(csv_line(value, word, rng.integers(100), SCRIPT if left else EMOJI))
    return "".join(lines)


def test_names_that_users_choose_are_text_on_every_page(
    service: Service, visit: Callable[..., Any]
) -> None:
    _, secret = service.context.db.writing(keys.create, "hostile", SCRIPT, keys.SCOPES)
    api = service.client(secret)

    def make(path: str, **body: Any) -> str:
        answer = api.post(path, json=body)
        assert answer.status_code == 202, answer.text
        service.work()
        made: str = api.get(answer.headers["location"]).raise_for_status().json()["id"]
        return made

    dataset_id = service.upload(api, hostile_table(), name=SCRIPT, label=EMOJI, positive=SCRIPT)
    long_id = service.upload(api, hostile_table(60), name=LONG, label=EMOJI, positive=SCRIPT)
    tags = {SCRIPT[:50]: EMOJI, TURNED: LONG}
    jobs = [service.train(api, dataset_id, seed=seed, tags=tags) for seed in (1, 2)]
    models = [job["model_id"] for job in jobs]
    evaluation = make("/v1/evaluations", model=models[0], dataset_id=long_id)
    comparison = make("/v1/comparisons", models=models, dataset_id=long_id)
    batch = make(
        "/v1/batch-scores", model=models[0], dataset_id=dataset_id, keep=[SCRIPT, RIGHT_TO_LEFT]
    )
    model = f"/console/models/{models[0]}"
    columns = (SCRIPT, RIGHT_TO_LEFT, LONG)
    shown: dict[str, tuple[str, ...]] = {
        "/console": (SCRIPT, LONG),
        "/console/datasets": (SCRIPT, LONG),
        f"/console/datasets/{dataset_id}": (*columns, EMOJI),
        f"/console/train?dataset_id={dataset_id}": (SCRIPT, LONG),
        "/console/jobs": (SCRIPT,),
        f"/console/jobs/{jobs[0]['id']}": (SCRIPT, EMOJI, TURNED, LONG),
        "/console/models": (SCRIPT,),
        model: (SCRIPT, EMOJI),
        f"{model}/score": columns,
        f"{model}/explain": columns,
        f"{model}/judge": (),
        f"{model}/lineage": (EMOJI, TURNED, LONG),
        f"{model}/dependence?feature={quote(RIGHT_TO_LEFT)}": (RIGHT_TO_LEFT,),
        f"{model}/structure": (SCRIPT,),
        "/console/evaluations": (SCRIPT, LONG),
        f"/console/evaluations/{evaluation}": (LONG,),
        "/console/comparisons": (SCRIPT, LONG),
        f"/console/comparisons/{comparison}": (LONG,),
        "/console/batch-scores": (SCRIPT, LONG),
        f"/console/batch-scores/{batch}": (SCRIPT, RIGHT_TO_LEFT),
        "/console/keys": (SCRIPT,),
        "/console/audit": (),
    }
    window = visit(service, width=390)
    window.page.add_init_script(CALLS)
    page = window.sign_in(secret)
    for path, names in shown.items():
        window.open(path)
        if path.startswith((model, "/console/train")):  # parts come by themselves
            page.wait_for_load_state("networkidle")
        text = page.evaluate("document.documentElement.textContent")
        assert [name for name in names if name not in text] == [], path
        assert page.evaluate(TOO_WIDE) == [], path
        assert (
            page.evaluate("document.querySelectorAll('img[src=x], script:not([src])').length") == 0
        )

    # Names that have a form of their own are refused in words, and kept as they were entered.
    window.expect("status of 422|status of 404")
    window.open(f"{model}/lineage")
    page.get_by_label("New alias").fill(SCRIPT)
    page.get_by_role("button", name="Make alias").click()
    page.get_by_role("alert").filter(has_text="alias must not").wait_for()
    assert page.get_by_label("New alias").input_value() == SCRIPT
    window.open("/console/train?" + urlencode({"name": SCRIPT, "dataset_id": dataset_id}))
    page.locator("#check").get_by_role(
        "link", name="name must begin with a small letter"
    ).wait_for()
    assert page.get_by_label("Name of the model").input_value() == SCRIPT
    window.open("/console/models?" + urlencode({"name": SCRIPT}))
    page.get_by_role("alert").filter(has_text="name must begin with a small letter").wait_for()


# --- what pages weigh ----------------------------------------------------------------------------


class Scales:
    """Bytes that a window has taken in, heads and bodies, as they were sent."""

    def __init__(self, window: Any) -> None:
        self.page = window.page
        self.requests: list[Any] = []
        self.page.on("requestfinished", self.note)

    def note(self, request: Any) -> None:
        self.requests.append(request)

    def weigh(self) -> int:
        self.page.wait_for_load_state("networkidle")
        sizes = [request.sizes() for request in self.requests]
        return sum(each["responseBodySize"] + each["responseHeadersSize"] for each in sizes)


def test_what_pages_weigh(service: Service, visit: Callable[..., Any]) -> None:
    secret = service.key("heavy")
    api = service.client(secret)
    dataset_id = service.upload(api)
    window = visit(service)
    first = Scales(window)
    window.sign_in(secret)
    assert 10_000 < first.weigh() <= 60_000

    # A curve of 250,000 points, as of so many rows that judge.
    model_id = service.train(api, dataset_id)["model_id"]
    rng = np.random.default_rng(0)
    points = 250_000
    positive = np.sort(rng.random(points - 1)) + rng.normal(0, 0.3, points - 1) < 0.5
    tpr, fpr = (np.cumsum(each) / each.sum() for each in (positive, ~positive))
    columns = {
        "fpr": np.concatenate(([0.0], fpr)),
        "tpr": np.concatenate(([0.0], tpr)),
        "thresholds": np.concatenate(([np.inf], np.linspace(3, -3, points - 1))),
    }
    with service.context.db.write() as session:
        curve = session.get_one(ModelCurve, (model_id, "validation"))
        curve.points = points
        for name, values in columns.items():
            setattr(curve, name, values.astype("<f8").tobytes())
        metrics = session.get_one(ModelMetrics, (model_id, "validation"))
        for name, count in (("positive", positive.sum()), ("negative", (~positive).sum())):
            setattr(metrics, f"{name}s", int(count))
            setattr(metrics, f"{name}_weight", float(count))
            setattr(metrics, f"{name}_effective", float(count))
    fresh = visit(service)
    fresh.sign_in(secret)
    heavy = Scales(fresh)
    page = fresh.open(f"/console/models/{model_id}")
    page.get_by_text("thresholds; ask below for any other").wait_for()
    assert "250,000" in page.inner_text("#curve")
    page.get_by_role("heading", name="The first rows of the list").wait_for()
    assert 30_000 < heavy.weigh() <= 90_000


def test_a_long_list_comes_in_pages_of_fifty(service: Service) -> None:
    api = service.client(service.key("many"))
    model_id = service.train(api, service.upload(api))["model_id"]
    with service.context.db.write() as session:
        first = session.get_one(Model, model_id)
        row = {column.key: getattr(first, column.key) for column in inspect(Model).column_attrs}
        session.execute(
            insert(Model),
            [
                row | {"id": new_id("mdl"), "job_id": new_id("job"), "version": 2 + n}
                for n in range(120)
            ],
        )
    browser = PlainBrowser(service, "many")
    path, pages = "/console/models", []
    while path:
        text = browser.get(path).text
        pages.append(re.findall(r">churn:(\d+)</a>", text))
        older = re.search(r'rel="next" href="([^"]+)"', text)
        path = html.unescape(older[1]) if older else ""
    assert [len(page) for page in pages] == [50, 50, 21]
    assert sorted(int(version) for page in pages for version in page) == list(range(1, 122))
