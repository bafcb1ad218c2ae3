"""Pages of comparisons, evaluations, batch scores, keys, audit and health; and the first page."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from rankwright.types import AuditEntry
from sqlalchemy import insert, update

from app.access import service as keys
from app.console.admin import author_of, count_entries
from app.console.rendering import number as spelled
from app.jobs import execution, queue
from app.platform.ids import new_id
from app.platform.tables import ApiKey, BrowserSession, Dataset, Model
from core.errors import CoreError
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import OWNER, Service, table
from tests.app.queue_steps import add_model, change, submit
from tests.long_form import long_form

HOSTILE = "<script>alert(1)</script>'\"{{7*7}}"


class World:
    """A service with two models, and browsers that are signed in with keys of any scopes."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.client = service.client(service.key())
        self.dataset_id = service.upload(self.client)
        jobs = [service.train(self.client, self.dataset_id, seed=seed) for seed in (1, 2)]
        self.models = [job["output"]["id"] for job in jobs]
        self.job_id = jobs[0]["id"]

    def browser(self, *scopes: str, owner: str = OWNER) -> PlainBrowser:
        return PlainBrowser(self.service, owner, scopes=scopes or keys.SCOPES)


@pytest.fixture(scope="module")
def world(start: Callable[..., Service]) -> World:
    return World(start())


def test_a_comparison_from_the_form_to_its_charts(world: World) -> None:
    browser = world.browser()
    sent = browser.post(
        "/console/comparisons", models=world.models, dataset_id=world.dataset_id, fpr_max="0.2"
    )
    assert sent.status_code == 303
    place = sent.headers["location"]
    assert "hx-trigger" in browser.read(place)  # it is followed as long as it is made
    world.service.work()
    page = browser.read(place)
    assert "hx-trigger" not in page
    made = world.client.get(place.replace("/console", "/v1")).json()
    (difference,) = made["result"]["windows"][0]["differences"]
    for metric in (difference["value"], difference["low"], difference["high"]):
        assert f"{metric:.4f}" in page
    assert "FPR 0 to 0.2" in page
    assert "Random scores: 0.500" in page
    assert "Random scores: 0.100" in page
    assert page.count("<svg") == 6
    picture = page.partition("ROC curves of the models on ")[2].partition("</svg>")[0]
    for number, curve in enumerate(made["result"]["curves"]):
        drawn = re.findall(
            rf'series-{number}\b[^>]*>(?:\s*<[^>]*>)*?\s*<path[^>]* d="([^"]+)"', picture
        )
        drawn += re.findall(rf'<path[^>]*series-{number}\b[^>]* d="([^"]+)"', picture)
        # Each point but the first is the end of a line, straight or by a step.
        assert len(re.findall("[A-Za-z]", drawn[0])) >= len(curve["points"])
    assert "Settings that differ" in page
    assert place in browser.read("/console/comparisons")
    assert browser.post(f"{place}/delete").status_code == 303
    browser.read(place, 404)


def test_a_comparison_is_made_and_shown_at_the_entered_capacity(world: World) -> None:
    browser = world.browser()
    asked = {"models": world.models, "dataset_id": world.dataset_id, "capacity": "30"}
    sent = browser.post("/console/comparisons", **asked, rows="200")
    place = sent.headers["location"]
    world.service.work()
    page = browser.read(place)
    made = world.client.get(place.replace("/console", "/v1")).json()
    assert made["capacity"] == {"review": 30, "rows": 200}
    found = made["result"]["capacity"]
    assert (found["review"], found["rows"], found["metric"]) == (30, 200, "precision@15%")
    counts = [f"{each['value']:,.0f}" for each in found["values"]]
    best = max(counts, key=float)
    said = (
        "find about equally many positives"
        if counts.count(best) > 1
        else "finds the most positives"
    )
    assert "30 of 200" in page
    assert f"{said}: {best}" in page
    for each in (*found["values"], *found["differences"]):
        assert f"{each['low']:.1f}".removesuffix(".0") in page
    for capacity, rows in (("30", ""), ("0", "9"), ("3", "2"), ("1.5", "9"), ("x", "9")):
        bad = browser.post("/console/comparisons", **asked | {"capacity": capacity}, rows=rows)
        assert bad.status_code == 422
        assert re.search(r'id="e-capacity"[^>]*>[^<]+', bad.text)
        assert f'value="{capacity}"' in bad.text


def test_the_first_page_says_what_is_in_use_and_what_to_do_next(world: World) -> None:
    name = world.client.get(f"/v1/models/{world.models[0]}").json()["name"]
    address = f"/v1/models/{name}/aliases/live"
    memo = {"review": 100, "rows": 1000}
    body = {"model_id": world.models[1], "guarantee": {"flagged": 0.1}, "memo": memo}
    assert world.client.put(address, json=body).status_code == 201
    (live,) = world.client.get("/v1/overview").json()["live"]
    point = world.client.get(f"/v1/models/{world.models[1]}/operating-point?flagged=0.1").json()
    assert live["flagged"] == pytest.approx(point["flagged"]["value"])
    assert (live["alias"], live["evaluation_id"], live["next_step"]) == ("live", None, "evaluate")
    page = world.browser().read("/console")
    assert f"about {1000 * live['flagged']:.0f} of 1,000 rows" in page
    assert f'href="/console/evaluations?model_id={name}@live"' in page
    # An evaluation on new rows that finds nothing leaves nothing to do.
    other = world.service.upload(world.client, table(seed=9))
    sent = {"model": f"{name}@live", "dataset_id": other}
    made = world.client.post("/v1/evaluations", json=sent).json()
    world.service.work()
    (live,) = world.client.get("/v1/overview").json()["live"]
    found = world.client.get(f"/v1/evaluations/{made['id']}").json()["findings"]
    changed = any(each["answer"] == "no" for each in found)
    assert (live["evaluation_id"], live["changed"]) == (made["id"], changed)
    assert live["next_step"] in ((None,) if not changed else (None, "recalibrate", "retrain"))
    evaluation = world.browser().read(f"/console/evaluations/{made['id']}")
    assert f"{name}@live" in evaluation
    assert f"{1000 * point['flagged']['value']:.0f} of 1,000" in evaluation
    assert "Training and now" in evaluation
    # An older version is compared first.
    now = world.client.get(address)
    moved = body | {"model_id": world.models[0]}
    match = {"If-Match": now.headers["ETag"]}
    assert world.client.put(address, json=moved, headers=match).status_code == 200
    (live,) = world.client.get("/v1/overview").json()["live"]
    assert live["next_step"] == "compare"
    for dataset_id in (world.dataset_id, other):  # a comparison on training rows shows nothing
        asked = {"models": world.models[:2], "dataset_id": dataset_id}
        compared = world.client.post("/v1/comparisons", json=asked).json()
        world.service.work()
        overview = world.client.get("/v1/overview").json()
        is_new = dataset_id == other
        assert (overview["live"][0]["next_step"] == "compare") is not is_new
        expected = compared["id"] if is_new else None
        assert [each["comparison_id"] for each in overview["outdated"]] == [expected]
    assert f"/console/comparisons/{compared['id']}" in world.browser().read("/console")
    gone = {"If-Match": world.client.get(address).headers["ETag"]}
    assert world.client.delete(address, headers=gone).status_code == 204
    assert world.client.get("/v1/overview").json()["live"] == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"models": ["x"], "dataset_id": "ds_x"}, "“Models” must have at least 2 items, got 1"),
        (
            {"models": ["x", "y"], "dataset_id": "ds_x", "fpr_max": "0,5"},
            "“Partial AUC up to FPR” must be a number, got &#39;0,5&#39;. Write 0.5, with a decimal point",
        ),
        ({}, "“Dataset” must not be empty"),
    ],
)
def test_a_bad_comparison_is_refused_once_in_the_words_of_the_form(
    world: World, fields: dict[str, Any], words: str
) -> None:
    answer = world.browser().post("/console/comparisons", **fields)
    assert answer.status_code == 422
    assert answer.text.count(words) == 1
    assert 'role="alert"' in answer.text
    if "fpr_max" in fields:
        assert 'value="0,5"' in answer.text


def test_each_error_of_an_evaluation_stands_at_its_field(world: World) -> None:
    unread = world.client.post(
        "/v1/datasets", content=table(), headers={"Content-Type": "text/csv"}
    ).json()["id"]
    browser = world.browser()
    sent = {"model": world.models[0], "dataset_id": unread}
    bad = browser.post("/console/evaluations", **sent, false_positive="5,5", fpr_max="half")
    assert bad.status_code == 422
    for field, words in (
        ("false_positive", "got '5,5'. Write 5.5, with a decimal point instead of a comma"),
        ("fpr_max", "got 'half'"),
    ):
        assert unescape(bad.text).count(words) == 1
        (entered,) = re.findall(rf'<input[^>]* name="{field}"[^>]*>', bad.text)
        assert 'aria-invalid="true"' in entered
        assert f'href="#e-{field}"' in bad.text
    early = browser.post("/console/evaluations", **sent)
    assert (early.status_code, "must be ready" in early.text) == (409, True)
    # The lists say so beforehand, wherever a dataset is chosen.
    for page in ("evaluations", "train", f"models/{world.models[0]}/calibration"):
        options = re.findall("<option[^>]* disabled[^>]*>[^<]*", browser.read(f"/console/{page}"))
        assert any("it is still being read" in each for each in options), page
    assert any("the model was not trained on" in each for each in options)
    world.service.upload(world.client, "age,left\n" + "1,yes\n2,no\n" * 40, name="unlike")
    page = browser.read(f"/console/pick/datasets?use=evaluation&with_model={world.models[0]}")
    (unlike,) = (each for each in re.findall("(?s)<option.*?</option>", page) if "unlike" in each)
    assert " disabled" in unlike
    assert "lacks" in unlike
    world.service.work()


def test_areas_over_time_are_of_new_rows(world: World) -> None:
    service, client = world.service, world.client
    model_id = service.train(client, world.dataset_id, name="aged")["output"]["id"]
    months = [service.upload(client, table(150, seed), name=f"month {seed}") for seed in (11, 12)]
    found = {}
    for dataset_id in (world.dataset_id, *months):
        body = {"model": model_id, "dataset_id": dataset_id}
        made = client.post("/v1/evaluations", json=body).json()["id"]
        service.work()
        found[dataset_id] = client.get(f"/v1/evaluations/{made}").json()["metrics"]["auc"]["value"]
    page = world.browser().read(f"/console/evaluations?model_id={model_id}")
    picture = page.partition("AUC by day of the evaluation")[2].partition("</svg>")[0]
    hints = re.findall("<circle[^>]*><title>([^<]*)", picture)
    assert len(hints) == 2
    for hint, dataset_id in zip(hints, months, strict=True):
        assert f": {found[dataset_id]:.4g}, " in hint
    assert page.count("used to train") == 1


def test_an_evaluation_by_groups(world: World) -> None:
    browser = world.browser()
    lines = table(120, 5).splitlines()
    rows = [
        f"{line},{'' if i < 4 else ('<b>n</b>', 's')[i % 2]}" for i, line in enumerate(lines[1:])
    ]
    other = world.service.upload(world.client, "\n".join([f"{lines[0]},region", *rows, ""]))
    asked = {"group_by": "region", "at": {"fpr": 0.2}, "cutoffs": "equal_tpr"}
    body = {"model": world.models[0], "dataset_id": other} | asked
    made = world.client.post("/v1/evaluations", json=body).json()
    world.service.work()
    page = browser.read(f"/console/evaluations/{made['id']}")
    groups = world.client.get(f"/v1/evaluations/{made['id']}").json()["groups"]
    assert "<h3>By region</h3>" in page
    assert "Requested cutoff" in page
    assert "&lt;b&gt;n&lt;/b&gt;" in page
    assert "<em>no value</em>" in page
    assert "at least 10 " in page
    assert "equal tpr" in page
    for test in groups["tests"]:
        assert test["words"] in page
    for one in groups["groups"][:2]:
        assert f"{spelled(one['auc']['value'])}" in page
    assert "Worst AUC: " in page
    assert "truly the worst" in page
    form = {"model": world.models[0], "dataset_id": other, "group_by": "region", "at_fpr": "0.2"}
    for group in groups["groups"]:
        assert f"{spelled(group['calibration']['predicted'])}" in page
    place = browser.post("/console/evaluations", **form).headers["location"]
    asked_for = world.client.get(place.replace("/console", "/v1")).json()
    assert (asked_for["group_by"], asked_for["at"]["fpr"]) == ("region", 0.2)
    world.service.work()
    for wrong, words in (({"group_by": "planet"}, "planet"), ({"at_fpr": "half"}, "half")):
        bad = browser.post("/console/evaluations", **(form | wrong))
        assert (bad.status_code, words in bad.text) == (422, True)


def test_an_evaluation_by_amounts(world: World) -> None:
    browser = world.browser()
    lines = table(120, 5).splitlines()
    rows = [f"{line},{i % 7}" for i, line in enumerate(lines[1:])]
    other = world.service.upload(world.client, "\n".join([f"{lines[0]},balance", *rows, ""]))
    form = {"model": world.models[0], "dataset_id": other, "amount": "balance"}
    prices = {"false_negative": "1", "review": "0.5", "false_positive": "0.25"}
    place = browser.post("/console/evaluations", **(form | prices)).headers["location"]
    asked = world.client.get(place.replace("/console", "/v1")).json()
    assert asked["amount"] == "balance"
    assert asked["costs"]["false_negative"] == {"fixed": 0.0, "rate": 1.0}
    assert asked["costs"]["false_positive"] == {"fixed": 0.25, "rate": 0.0}
    world.service.work()
    page = browser.read(place)
    amounts = world.client.get(place.replace("/console", "/v1")).json()["amounts"]
    assert "<h2>Value by balance</h2>" in page
    assert "Caught in top 10 %" in page
    assert f"{spelled(amounts['values'][0]['area']['value'])}" in page
    fixed = {"model": world.models[0], "dataset_id": other, "false_negative": "5", "review": "1"}
    place = browser.post("/console/evaluations", **fixed).headers["location"]
    world.service.work()
    page = browser.read(place)
    assert "Costs per row" in page
    assert "Value by" not in page
    for wrong, words in (({"amount": "planet"}, "planet"), ({"review": "much"}, "much")):
        bad = browser.post("/console/evaluations", **(form | prices | wrong))
        assert (bad.status_code, words in bad.text) == (422, True)


def test_evaluations_of_what_was_deleted_and_those_that_failed(world: World) -> None:
    browser, service = world.browser(), world.service
    trained = service.train(world.client, world.dataset_id, name="gone")
    model_id = trained["output"]["id"]
    other = service.upload(world.client, name="later")
    made = browser.post("/console/evaluations", model=model_id, dataset_id=other)
    service.work()
    failed = browser.post("/console/evaluations", model=model_id, dataset_id=other)
    problem, _ = execution.problem_of(CoreError("the rows have\nfled"))
    claim = service.context.db.writing(queue.claim, service.settings, "worker")
    service.context.db.writing(queue.fail, claim, problem)
    service.work()
    for path in (f"/v1/models/{model_id}", f"/v1/datasets/{other}"):
        assert world.client.delete(path).status_code == 204

    listed = browser.read(f"/console/evaluations?model_id={model_id}")
    assert "gone:1 (deleted)" in listed
    assert "AUC over time" in listed
    assert "Dashed: value at validation" not in listed
    for page in (listed, browser.read("/console/evaluations")):
        assert "the rows have" in page
        assert page.count("gone:1</a>") == 2
    shown = browser.read(failed.headers["location"])
    assert "the rows have" in shown
    page = browser.read(made.headers["location"])
    for text in (shown, page):
        assert "model (deleted)" in text
        assert "dataset (deleted)" in text
        assert f'href="/console/models/{model_id}"' not in text
    assert "<h2>ROC curve " in page

    job = browser.read(f"/console/jobs/{trained['id']}")
    assert f'href="/console/models/{model_id}"' not in job
    assert 'id="metrics"' not in job
    assert 'id="metrics"' in browser.read(f"/console/jobs/{world.job_id}")
    assert f"/console/models/{model_id}" not in job
    assert "It was deleted, " in browser.read(f"/console/models/{model_id}", 404)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("models/{model}?alias=nix", "has no alias 'nix': it"),
        ("models/{model}?scale=nix", "scale must be one of linear, log, got 'nix'"),
        ("models?nome=x", "'nome' is not a parameter of this page and was ignored. Did you mean"),
        ("train?dataset_id=nix", "There is no dataset 'nix': it was not selected."),
        ("train?dataset_id={dataset}&algorithm.nix=3", "'algorithm.nix' is not a parameter of"),
        ("evaluations?model=nix", "There is no model 'nix': it was not selected."),
        (
            "evaluations?model_id=nix",
            "There is no model 'nix'. Showing the evaluations of all models",
        ),
        ("comparisons?models=nix", "There is no model 'nix': it was not selected."),
        ("batch-scores?dataset_id=nix", "There is no dataset 'nix': it was not selected."),
        ("audit?day=nix", "'day' is not a parameter of this page"),
        ("jobs/{job}?events_after=x", "events_after must be an event number, got 'x'"),
    ],
)
def test_what_a_page_cannot_use_of_its_address_is_said(world: World, path: str, words: str) -> None:
    ids = {"model": world.models[0], "dataset": world.dataset_id, "job": world.job_id}
    page = unescape(world.browser().read(f"/console/{path.format_map(ids)}"))
    assert f"data-notice>{words}" in page or words in page.split("data-notice>")[1]


def test_whatever_there_is_can_be_chosen(world: World, visit: Callable[..., Any]) -> None:
    service, owner = world.service, "hoarder"
    secret = service.key(owner)
    api = service.client(secret)
    dataset_id = service.upload(api, name="first table")
    model_id = service.train(api, dataset_id, name="oldest")["output"]["id"]
    assert (
        api.put(
            "/v1/models/oldest/aliases/live",
            json={"model_id": model_id},
            headers={"If-None-Match": "*"},
        ).status_code
        < 300
    )

    def copies(first: Any, name: str) -> list[dict[str, Any]]:
        columns = [each.key for each in type(first).__mapper__.column_attrs]
        row = {column: getattr(first, column) for column in columns}
        row |= {"name": name, "created_at": first.created_at + 1}
        return [{**row, "version": 1 + n} for n in range(210)]

    with service.context.db.write() as session:
        models = copies(session.get_one(Model, model_id), "later")
        for each in models:
            each |= {"id": new_id("mdl"), "job_id": new_id("job")}
        datasets = copies(session.get_one(Dataset, dataset_id), "other table")
        for each in datasets:
            each |= {"id": new_id("ds"), "job_id": None}
        session.execute(insert(Model), models)
        session.execute(insert(Dataset), datasets)
    found = api.get("/v1/models", params={"search": "OLD"}).json()["data"]
    assert [each["id"] for each in found] == [model_id]
    assert api.get("/v1/datasets", params={"search": "%"}).json()["data"] == []
    assert api.get("/v1/datasets", params={"search": ""}).status_code == 422

    plain = PlainBrowser(service, secret=secret)
    for page in ("/console/evaluations", "/console/batch-scores", "/console/comparisons"):
        text = plain.read(page)
        assert model_id not in text
        assert text.count("<option") < 200
        text = plain.read(f"{page}?find_models=oldest&find_datasets=first")
        assert f'value="{model_id}"' in text
        assert 'value="oldest@live"' in text
        assert f'value="{dataset_id}"' in text
    for sought, words in (
        ("later:7", "later:7 "),
        ("later:210", "later:210 "),
        ("oldest@l", "oldest@live"),
        ("liv", "oldest@live"),
        ("nothing", "No matches"),
        ("", "Type to see more"),
    ):
        assert words in plain.read(f"/console/pick/models?find_models={sought}")
    window = visit(service, width=390)
    page = window.sign_in(secret)
    window.open("/console/evaluations")
    model = page.get_by_role("combobox", name="Model", exact=True)
    expect(model).to_have_value("")
    page.get_by_role("button", name="Evaluate").click()
    assert page.url.endswith("/evaluations")  # the browser asks for a model
    model.press_sequentially("ATER")
    options = page.get_by_role("option")
    options.filter(has_text="later:").first.wait_for()
    expect(options).to_have_count(51)
    window.check()
    # Whoever leaves the field without choosing has chosen nothing.
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_have_count(0)
    expect(model).to_have_value("")
    model.press_sequentially("oldest@")
    options.filter(has_text="oldest@live, version 1").wait_for()
    expect(model).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Enter")
    expect(model).to_have_value("oldest@live, version 1")
    dataset = page.get_by_role("combobox", name="Dataset", exact=True)
    dataset.press_sequentially("first")
    options.filter(has_text="first table:1").click()
    expect(dataset).to_have_value(re.compile("first table:1, "))
    window.check()
    page.get_by_role("button", name="Evaluate").click()
    page.get_by_role("heading", name="oldest:1 on first table").wait_for()
    service.work()


def test_a_dataset_is_found_whatever_its_name(world: World) -> None:
    service, secret = world.service, world.service.key("namer")
    api = service.client(secret)
    names = ("sales: 2024", "sales:2024", "me@work.csv", "plain")
    ids = {name: service.upload(api, name=name) for name in names}
    browser = PlainBrowser(service, secret=secret)

    def found(sought: str) -> set[str]:
        page = browser.client.get("/console/pick/datasets", params={"find_datasets": sought})
        return {name for name, dataset_id in ids.items() if dataset_id in page.text}

    for sought, expected in (
        *((name, {name}) for name in names),
        ("sales:", {"sales: 2024", "sales:2024"}),
        ("me@", {"me@work.csv"}),
        ("plain:", {"plain"}),
        ("plain:1", {"plain"}),
        ("plain:2", set()),
        ("sales:2024:1", {"sales:2024"}),
    ):
        assert found(sought) == expected, sought


@long_form
def test_what_was_typed_outlives_a_session(world: World, visit: Callable[..., Any]) -> None:
    service, secret = world.service, world.service.key()

    def end_sessions() -> None:
        with service.context.db.write() as session:
            session.execute(update(BrowserSession).values(expires_at=1.0))

    def sign_in_again() -> None:
        page.get_by_label("API key").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("your entries are kept").wait_for()

    window = visit(service)
    window.expect("status of 40[13]|htmx:")  # what is under way when the page goes
    page = window.sign_in(secret)
    # A form that a script follows; what is typed asks the service, which has forgotten the session.
    window.open(f"/console/train?dataset_id={world.dataset_id}")
    page.get_by_label("Algorithm", exact=True).select_option("treerank")
    page.locator("#train strong", has_text="treerank").wait_for()
    page.get_by_label("Validate on").select_option("cross_validation")
    page.get_by_label("Folds", exact=True).wait_for()
    page.get_by_text("Parameters (").click()
    page.get_by_label("Maximum depth").fill("7")
    end_sessions()
    page.get_by_label("Model name").fill("kept-through-it")
    page.get_by_label("API key").wait_for()
    sign_in_again()
    expect(page.get_by_label("Maximum depth")).to_have_value("7")
    assert page.url.endswith(f"/console/train?dataset_id={world.dataset_id}")
    assert page.get_by_label("Model name").input_value() == "kept-through-it"
    assert page.get_by_label("Algorithm", exact=True).input_value() == "treerank"
    assert page.get_by_label("Validate on").input_value() == "cross_validation"
    page.get_by_text("Ready to train.").wait_for()

    # A plain form.
    window.open("/console/keys")
    page.get_by_label("Name").fill("of the night")
    page.locator("input[value=score]").check()
    end_sessions()
    page.get_by_role("button", name=re.compile("Create")).click()
    sign_in_again()
    assert page.get_by_label("Name").input_value() == "of the night"
    assert page.locator("input[value=score]").is_checked()
    assert "of the night" not in str(world.client.get("/v1/keys").json())
    # A file cannot be kept, and that is said. Nothing of a key or a token is.
    window.open("/console/datasets/new")
    page.get_by_label("Name", exact=True).fill("with a file")
    page.set_input_files(
        "#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": table().encode()}
    )
    page.get_by_text("Types are from").wait_for()
    end_sessions()
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_label("API key").wait_for()
    kept = page.evaluate("JSON.stringify(sessionStorage)")
    assert "with a file" in kept
    for hidden in ("csrf", secret):
        assert hidden not in kept
    sign_in_again()
    page.get_by_text("Choose the file again").wait_for()
    assert page.get_by_label("Name", exact=True).input_value() == "with a file"
    assert "rankwright" not in page.evaluate("JSON.stringify(sessionStorage)")
    # Who signs in as somebody else finds nothing of it.
    end_sessions()
    page.get_by_label("Name", exact=True).fill("private")
    page.set_input_files(
        "#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": table().encode()}
    )
    # The check of the file notices it.
    page.get_by_label("API key").fill(service.key("another"))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Upload a table").wait_for()
    assert page.get_by_label("Name", exact=True).input_value() == ""
    assert "rankwright" not in page.evaluate("JSON.stringify(sessionStorage)")


def test_a_key_is_made_shown_once_rotated_and_revoked(world: World) -> None:
    browser, other = world.browser(), world.browser()
    sent = browser.post("/console/keys", name=HOSTILE, scopes=["read"], days="1")
    assert (sent.status_code, sent.headers["location"]) == (303, "/console/keys/made")
    for part in ("HttpOnly", "SameSite=strict", "Path=/console/keys/made", "Max-Age=60"):
        assert part in sent.headers["set-cookie"]
    note = browser.client.cookies["rankwright_note"]
    page = browser.read("/console/keys/made")
    secret = re.search(r'value="(rw_[^"]+)"', page)
    assert secret is not None
    # Loaded again it makes no other key, and shows none; nor does it in another session, or with what somebody made up.
    n_keys = len(world.client.get("/v1/keys").json()["data"])
    assert "shown only once" in browser.read("/console/keys/made")
    session = other.client.cookies["rankwright_session"]
    for made_up in (note, f"{'0' * 64}.e30=", ".", "é"):
        cookies = f"rankwright_session={session}; rankwright_note={made_up}"
        answer = other.client.get("/console/keys/made", headers={b"Cookie": cookies.encode()})
        assert (answer.status_code, "rw_" in answer.text) == (200, False)
    assert len(world.client.get("/v1/keys").json()["data"]) == n_keys
    assert world.service.client(secret[1]).get("/v1/jobs").status_code == 200
    listed = browser.read("/console/keys")
    assert secret[1] not in listed
    assert "<script>alert" not in listed
    assert "{{7*7}}" in listed
    key_id = world.client.get("/v1/keys").json()["data"][0]["id"]
    assert browser.post(f"/console/keys/{key_id}/rotate").status_code == 303
    assert "rw_" in browser.read("/console/keys/made")
    assert browser.post(f"/console/keys/{key_id}/revoke").status_code == 303
    assert world.service.client(secret[1]).get("/v1/jobs").status_code == 401
    for fields in (
        {"name": "", "scopes": ["read"]},
        {"name": "x"},
        {"name": "x", "scopes": ["all"]},
        {"name": "x", "scopes": ["read"], "days": "soon"},
    ):
        assert browser.post("/console/keys", **fields).status_code == 422


def test_a_key_that_has_expired_is_called_so(world: World) -> None:
    browser = world.browser()
    for days in ("1e400", "0", "nan", "37038"):
        bad = browser.post("/console/keys", name="short", scopes=["read"], days=days)
        said = (
            f"“Lifetime in days” must be more than 0 and at most 37,037 days, got &#39;{days}&#39;"
        )
        assert (bad.status_code, said in bad.text) == (422, True), days
        assert 'aria-describedby="e-days days-note" aria-invalid="true"' in bad.text
        assert bad.text.count(said) == 1
    browser.post("/console/keys", name="short", scopes=["read"], days="1")
    assert "expired" not in browser.read("/console/keys")
    with world.service.context.db.write() as session:
        session.execute(update(ApiKey).where(ApiKey.name == "short").values(expires_at=1.0))
    page = browser.read("/console/keys")
    assert '<span class="badge expired">expired</span>' in page
    assert 'aria-label="Revoke short"' not in page


def test_the_audit_log_is_read_in_sentences_and_searched(world: World) -> None:
    owner = "auditor"
    service = world.service
    api = service.client(secret := service.key(owner))
    dataset_id = service.upload(api)
    service.upload(api, name="second")
    made = api.post("/v1/keys", json={"name": "n", "scopes": ["read"]}).json()["id"]
    assert api.delete(f"/v1/keys/{made}").status_code == 204
    plain = PlainBrowser(service, secret=secret)

    def rows(query: str = "") -> list[str]:
        page = plain.read(f"/console/audit{query}").partition("<tbody>")[2]
        return re.findall("(?s)<tr>.*?</tr>", page.partition("</tbody>")[0])

    found = rows()
    assert len(found) == 5
    assert "Revoked the key" in found[1]
    assert f"/v1/keys/{made}" in found[1]
    assert len(rows("?about=datasets")) == 2
    assert api.post("/v1/erasures", json={"id": "customer 1"}).status_code == 202
    assert len(rows("?about=/v1/erasures")) == 1
    assert rows("?about=/v1/alarms") == []
    (found,) = (rows(f"?about=datasets&resource={dataset_id}"),)
    assert len(found) == 1
    assert f'href="/console/datasets/{dataset_id}"' in found[0]
    assert '<p class="empty">' in plain.read("/console/audit?key_id=-")
    assert api.get(f"/v1/datasets/{dataset_id}/preview").is_success
    (read, *_) = rows("?outcome=read&principal=test")
    assert dataset_id in read
    assert plain.read("/console/audit/export") == ""  # nothing is sealed here
    assert '<p class="empty">' in plain.read("/console/audit?until=2020-01-31")
    assert plain.read("/console/audit?since=2020-01-31&outcome=done").count("<tr>") == 7
    for query, words in (
        ("since=soon", "“From (UTC)” must be a day such as 2026-01-31"),
        ("until=9999-12-31", "“To (UTC)” must be a day"),
        (f"resource={'x' * 256}", "“ID or model name” must have at most"),
        ("outcome=lost", "outcome must be"),
        (f"principal={'x' * 256}", "“Person or key” must have at most"),
    ):
        assert words in plain.read(f"/console/audit?{query}", 422)


def test_health_shows_the_queue_to_who_may_see_it(world: World) -> None:
    shown = world.browser().read("/console/health")
    for tile in ("Active workers", "Longest wait in the queue", "Uploads in progress"):
        assert tile in shown
    world.service.key("theirs")  # now there are other owners
    plain = world.browser("read").read("/console/health")
    assert "Components" in plain
    assert "Active workers" not in plain


def test_models_are_found_by_a_part_of_their_name_and_by_tag(world: World) -> None:
    owner = "collector"
    tags: tuple[dict[str, str], ...] = ({"team": "risk"}, {"team": "risk: old", "<b>": ""}, {})
    for number in range(60):
        name = f"{('churn', 'fraud', 'other')[number % 3]}{number}"
        add_model(world.service.context.db, owner=owner, name=name, tags=tags[number % 3])
    browser = PlainBrowser(world.service, owner)

    def found(**query: str) -> tuple[list[str], str]:
        page = browser.client.get("/console/models", params=query).text
        return re.findall(r">([a-z]+\d+):1<", page), page

    names, page = found(search="RAUD")
    assert len(names) == 20
    assert all(name.startswith("fraud") for name in names)
    assert 'value="RAUD"' in page
    (tagged,) = {*re.findall(r'href="([^"]*tag=[^"]*)">team: risk: old<', page)}
    names = re.findall(r">([a-z]+\d+):1<", browser.read(unescape(tagged)))
    assert len(names) == 20
    assert len(found(tag="team")[0]) == 40
    assert len(found(tag="team", search="churn3")[0]) == 5  # 3, 30, 33, 36 and 39
    assert "Show all" in found(tag="team", search="churn3")[1]


class TestNeedsAttention:
    """What the first page says needs attention: nothing is forgotten, and what is mended goes."""

    @pytest.fixture(scope="class")
    def troubled(self, world: World) -> PlainBrowser:
        return PlainBrowser(world.service, "troubled")

    @pytest.fixture(scope="class")
    def client(self, world: World) -> httpx.Client:
        return world.service.client(world.service.key("troubled"))

    @pytest.fixture(scope="class")
    def dataset_id(self, world: World, client: httpx.Client) -> str:
        return world.service.upload(client)

    def items(self, browser: PlainBrowser, path: str = "/console") -> str:
        """Return the list of what needs attention; nothing if there is none."""
        page = browser.read(path)
        found = re.search(r'<section [^>]*labelledby="attention".*?</section>', page, re.DOTALL)
        return "" if found is None else found[0]

    @long_form
    def test_the_cards_of_jobs_say_what_they_are_about(
        self, world: World, visit: Callable[..., Any]
    ) -> None:
        owner, db = "busy", world.service.context.db
        oldest = submit(db, owner=owner, name="done")
        change(db, oldest.id, state="succeeded", created_at=1.0, finished_at=2.0)
        jobs = [submit(db, owner=owner, name=f"job number {number:02}") for number in range(55)]
        window = visit(world.service)
        window.sign_in(world.service.key(owner))
        page = window.open("/console")
        under_way = page.locator("#running")
        expect(under_way.get_by_text("job number")).to_have_count(10)
        expect(page.get_by_text("None of the newest 50 jobs has finished yet.")).to_be_visible()
        # Only this card is asked for again, without all that the page is made of.
        with page.expect_response(re.compile("/console/under-way$")) as answered:
            for job in jobs:
                change(db, job.id, state="succeeded", finished_at=3.0)
        assert len(answered.value.text()) < 8000
        expect(under_way.get_by_text("No jobs running.")).to_be_visible()
        window.check()

    def test_more_of_them_than_a_page_holds(self, world: World) -> None:
        browser = PlainBrowser(world.service, "unlucky")
        names = [f"job number {number:02}" for number in range(12)]
        for number, name in enumerate(names):
            job = submit(world.service.context.db, owner="unlucky", name=name)
            change(world.service.context.db, job.id, state="failed", created_at=100.0 + number)
        first = self.items(browser)
        assert [name for name in names if name in first] == names[2:]
        link = re.search(r'rel="next" href="([^"]*)"', first)
        assert link is not None
        rest = self.items(browser, link[1])
        assert [name for name in names if name in rest] == names[:2]
        client = world.service.client(world.service.key("unlucky"))
        overview = client.get("/v1/overview?limit=7").json()
        assert [job["name"] for job in overview["failed"]] == names[:4:-1]
        following = {"kind": "all", "unresolved": True, "after": overview["failed_next"]}
        older = client.get("/v1/jobs", params=following).json()["data"]
        assert [job["name"] for job in older] == names[4::-1]
        assert (len(overview["ended"]), overview["searched_jobs"]) == (7, 12)

    def test_a_newer_version_that_is_worse_is_not_recommended(
        self, world: World, troubled: PlainBrowser, client: httpx.Client, dataset_id: str
    ) -> None:
        service = world.service
        words = {"yes": "no", "no": "yes"}
        lines = [line.rpartition(",") for line in table(120, 4).splitlines()[1:]]
        head = table(2).splitlines()[0]
        wrong = [head, *(f"{rest},{words[left]}" for rest, _, left in lines), ""]
        inverted = service.upload(client, "\n".join(wrong), name="inverted")
        first = service.train(client, dataset_id, name="served")["output"]["id"]
        answer = client.put(
            "/v1/models/served/aliases/live",
            json={"model_id": first},
            headers={"If-None-Match": "*"},
        )
        assert answer.status_code < 300
        second = service.train(client, inverted, name="served")["output"]["id"]
        for number in range(51):  # the alias's model is far from the newest
            add_model(service.context.db, owner="troubled", name=f"m{number}")
        assert "served@live" in self.items(troubled)
        later = service.upload(client, table(300, 5), name="unseen")

        def compare(dataset: str) -> None:
            body = {"models": [first, second], "dataset_id": dataset}
            assert client.post("/v1/comparisons", json=body).status_code == 202
            service.work()

        compare(dataset_id)  # the alias's model has learnt these rows by heart: they show nothing
        assert "served@live" in self.items(troubled)
        compare(later)
        assert "served@live" not in self.items(troubled)
        # A third version has not been compared.
        third = service.train(client, dataset_id, name="served", seed=3)["output"]["id"]
        assert "served@live" in self.items(troubled)
        # The same over the API, with a model that a later table has changed.
        evaluated = client.post(
            "/v1/evaluations", json={"model": first, "dataset_id": inverted}
        ).json()
        service.work()
        overview = client.get("/v1/overview?limit=1").json()
        (outdated,), (drifted,) = overview["outdated"], overview["drifted"]
        assert not overview["has_more_outdated"]
        assert (outdated["name"], outdated["alias"], outdated["version"]) == ("served", "live", 1)
        assert (outdated["model_id"], outdated["newest_model_id"]) == (first, third)
        assert (drifted["evaluation_id"], drifted["model_id"]) == (evaluated["id"], first)
        items = self.items(troubled)
        assert all(each["words"].split(". ")[0] in items for each in drifted["findings"])
        assert not overview["has_more_drifted"]


@long_form
def test_the_description_is_a_page(world: World, visit: Callable[..., Any]) -> None:
    window = visit(world.service, width=390, dark=True)
    docs = window.open("/docs")
    docs.locator("details.op summary").first.click()  # drawn by its script
    # The others are like it. Only to look whether they are seen takes half a minute.
    docs.evaluate("document.querySelectorAll('details.op:not([open])').forEach(op => op.remove())")
    window.check("nav", "h1", "details.op[open]")


def test_a_table_of_ones_own_is_scored_from_the_plain_form(world: World) -> None:
    browser = world.browser()
    text = table(6).replace("age", "id,age", 1).replace("\n", "\n7,").removesuffix("7,")
    fields = {"model": "churn", "keep": "id", "ignore": "left"}

    def send(file: str, **given: str) -> httpx.Response:
        return browser.client.post(
            "/console/batch-scores/rows",
            data={"csrf": browser.csrf, **fields, **given},
            files={"file": ("rows.csv", file.encode())},
        )

    sent = send(text)
    assert sent.status_code == 303, sent.text
    place = sent.headers["location"]
    world.service.work()
    assert "Scores of rows.csv" in browser.read(place)
    assert "id" in browser.client.get(f"{place}/result.csv").text.splitlines()[0]
    # What the API says of the fields; they are kept.
    bad = send(text, keep="nope", delimiter="dots", missing=HOSTILE)
    assert bad.status_code == 422
    assert 'role="alert"' in bad.text
    assert 'value="nope"' in bad.text
    assert "<script>alert" not in bad.text
    assert "{{7*7}}" in bad.text
    assert send("").status_code == 422
    # What is wrong with the rows: lines and columns.
    faulty = send(text.replace("\n7,", "\n7,x", 1))
    assert faulty.status_code == 303
    world.service.work()
    assert '<td class="n">2</td><td>age</td>' in browser.read(faulty.headers["location"])


def test_rows_are_scored_with_the_scope_for_it_alone(world: World) -> None:
    rows = {"file": ("rows.csv", table(4).encode())}
    scorer = world.browser("score")
    page = scorer.read("/console/batch-scores")
    assert '<h2 id="own">' in page
    assert "Score a dataset" not in page  # which are for whoever may read them
    fields = {"model": "churn", "ignore": "left"}
    token = {"X-CSRF-Token": scorer.csrf}
    for path, status in {
        "/console/batch-scores/rows": 303,
        "/console/uploads/batch-scores": 202,
    }.items():
        given = fields if status == 202 else {**fields, "csrf": scorer.csrf}
        answer = scorer.client.post(path, data=given, files=rows, headers=token)
        assert answer.status_code == status, answer.text


def test_the_head_is_one_line_and_leads_everywhere(world: World, visit: Callable[..., Any]) -> None:
    window = visit(world.service, width=390)
    window.sign_in(world.service.key())
    page = window.open("/console")
    groups = page.get_by_role("navigation", name="Main").get_by_role("link")
    names = ["Data", "Train", "Models", "Monitor", "Admin"]
    assert groups.all_inner_texts() == names
    header = page.get_by_role("banner").bounding_box()
    assert header is not None
    assert header["height"] < 64  # the text of a second line would not fit
    found = []
    for group in names:
        page.get_by_role("link", name=group, exact=True).first.click()
        expect(groups.get_by_text(group)).to_have_attribute("aria-current", "true")
        inner = page.get_by_role("navigation", name=group, exact=True)
        lines = {
            box["y"] for each in inner.get_by_role("link").all() if (box := each.bounding_box())
        }
        assert len(lines) <= 2  # it wraps, and nothing is out of sight
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")
        found += inner.get_by_role("link").all_inner_texts()
        expect(inner.locator("[aria-current=page]")).to_have_count(1)
    assert found == [
        *("Datasets", "Upload", "Trash", "Train", "Import a model", "Jobs"),
        *("Models", "Alias requests", "Compare", "Evaluations", "Batch scores"),
        *("Aliases and alarms", "Outcomes", "Erasures", "Legal holds"),
        *("Keys", "Webhooks", "Audit", "Health", "API"),
    ]
    window.open(f"/console/models/{world.models[0]}")
    expect(groups.get_by_text("Models")).to_have_attribute("aria-current", "true")
    # By keyboard alone: the skip link, the brand, then the groups.
    window.open("/console")
    for _ in range(5):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/models")


def test_the_head_leads_only_where_a_key_may_go(world: World) -> None:
    text = world.browser("score").read("/console")
    assert "/console/batch-scores" in text
    for hidden in ("/console/models", "/console/train", "/console/jobs", "/console/keys"):
        assert f'href="{hidden}"' not in text


class TestLists:
    """Lists are found in, gone through, sorted and thinned out."""

    def rows_of(self, world: World, owner: str, names: list[str]) -> dict[str, str]:
        return {
            name: add_model(world.service.context.db, owner=owner, name=name).id for name in names
        }

    def test_pages_lead_on_and_back(self, world: World) -> None:
        names = [f"m{number:03}" for number in range(120)]
        self.rows_of(world, "walker", names)
        browser = PlainBrowser(world.service, "walker")

        def page(address: str) -> tuple[list[str], dict[str, str]]:
            text = browser.read(address)
            links = re.findall(r'class="button" rel="(\w+)" href="([^"]+)"', text)
            return re.findall(r">(m\d{3}):1<", text), {
                name: to.replace("&amp;", "&") for name, to in links
            }

        first, links = page("/console/models?search=m")
        assert set(links) == {"next"}
        second, links = page(links["next"])
        assert set(links) == {"first", "next"}  # the newest page is the newer one
        third, links = page(links["next"])
        assert set(links) == {"first", "prev"}
        assert sorted(first + second + third) == names
        assert page(links["prev"])[0] == second
        assert page(links["first"])[0] == first

    def test_lists_are_sorted_on_all_their_pages(self, world: World) -> None:
        """By links, without a script; a search and the pages keep the order."""
        owner = "sorter"
        names = [f"s{number * 37 % 61:02}" for number in range(61)]
        self.rows_of(world, owner, names)
        browser = PlainBrowser(world.service, owner)

        def page(address: str) -> tuple[list[str], str]:
            text = browser.read(address)
            return re.findall(r">(s\d\d):1<", text), text

        def link(text: str, mark: str) -> str:
            (found,) = re.findall(rf'{mark}[^>]* href="([^"]+)"', text)
            return str(found).replace("&amp;", "&")

        _, text = page("/console/models?search=s")
        first, text = page(link(text, r'<th scope="col"><a class="sort"[^>]*(?=[^>]*sort=name)'))
        assert 'aria-sort="ascending"' in text
        assert '<input type="hidden" name="sort" value="name">' in text
        second, text = page(link(text, 'rel="next"'))
        assert first + second == sorted(names)
        assert ">Previous<" not in text
        assert page(link(text, 'rel="first"'))[0] == first
        last, text = page(link(text, r'<th scope="col" aria-sort="ascending"><a class="sort"'))
        assert last == sorted(names, reverse=True)[:50]
        assert 'aria-sort="descending"' in text

    def test_the_chosen_are_sorted_compared_and_deleted(
        self, world: World, visit: Callable[..., Any]
    ) -> None:
        owner = "tidier"
        self.rows_of(world, owner, ["b", "a", "c", "d"])
        world.service.upload(world.service.client(secret := world.service.key(owner)))
        window = visit(world.service, width=390)
        window.sign_in(secret)
        page = window.open("/console/models")
        names = page.locator("tbody tr td:nth-child(2)")
        page.get_by_role("link", name="Model", exact=True).click()
        expect(names).to_have_text(["a:1", "b:1", "c:1", "d:1"])
        expect(page.get_by_role("columnheader", name="Model", exact=True)).to_have_attribute(
            "aria-sort", "ascending"
        )
        expect(page.get_by_text("By name, A to Z")).to_be_visible()
        page.get_by_role("link", name="Model", exact=True).press("Enter")
        expect(names).to_have_text(["d:1", "c:1", "b:1", "a:1"])
        window.check()

        page.get_by_label("Select all on this page").check()
        expect(page.get_by_text("4 selected")).to_be_visible()
        page.get_by_label("Select b:1").uncheck()
        page.get_by_label("Select d:1").uncheck()
        page.get_by_role("button", name="Delete selected").click()
        expect(page.get_by_text("Moved 2 items to the trash")).to_be_visible()
        expect(names).to_have_text(["d:1", "b:1"])
        window.check()
        page.get_by_role("link", name="trash", exact=True).click()
        window.check()
        for name in ("a:1", "c:1"):
            page.get_by_role("button", name=f"Restore {name}").click()
            expect(page.get_by_role("heading", level=1)).to_contain_text(name)
            window.open("/console/trash")
        expect(page.get_by_text("The trash is empty.")).to_be_visible()
        window.open("/console/models?sort=-name")
        expect(names).to_have_text(["d:1", "c:1", "b:1", "a:1"])

        for name in ("a:1", "c:1"):
            page.get_by_label(f"Select {name}").check()
        page.get_by_role("button", name="Compare selected").click()
        page.wait_for_url("**/comparisons?*")
        assert "csrf" not in page.url
        chips = page.locator(".chips li")
        expect(chips.filter(has_text="a:1")).to_have_count(1)
        expect(chips).to_have_count(2)

    def test_what_cannot_be_deleted_is_said(self, world: World) -> None:
        owner = "careful"
        ids = self.rows_of(world, owner, ["kept", "gone"])
        browser = PlainBrowser(world.service, owner)
        api = world.service.client(world.service.key(owner))
        put = api.put(
            "/v1/models/kept/aliases/live",
            json={"model_id": ids["kept"]},
            headers={"If-None-Match": "*"},
        )
        assert put.status_code < 300
        answer = browser.post("/console/delete/models", models=list(ids.values()))
        assert answer.status_code == 409
        assert "1 of 2 " in answer.text
        assert "kept@live" in answer.text
        assert [each["id"] for each in api.get("/v1/models").json()["data"]] == [ids["kept"]]
        assert (
            browser.post("/console/delete/models", models=[ids["gone"], "a/b"]).status_code == 303
        )
        assert browser.post("/console/delete/keys", models=["x"]).status_code == 404
        assert browser.post("/console/delete/models", models=["x"] * 2).status_code == 409
        many = [f"mdl_{number}" for number in range(201)]
        assert browser.post("/console/delete/models", models=many).status_code == 422

    def test_lists_of_results_are_searched(self, world: World) -> None:
        browser = world.browser()
        for place, nothing in (
            ("evaluations", "No evaluations match"),
            ("comparisons", "No comparisons match"),
            ("batch-scores", "No batch scores match"),
        ):
            assert nothing in browser.read(f"/console/{place}?search=nothing-has-this")
            assert 'value="chur"' in browser.read(f"/console/{place}?search=chur")


@pytest.mark.parametrize(
    ("entries", "counted"),
    [
        ([], ""),
        (
            [("done", "Ann", None, "PUT /v1/models", "2026-05-02")],
            "1 change by Ann on 2026-05-02 (UTC).",
        ),
        (
            [
                ("read", None, None, "rankwright audit", "2026-05-03"),
                ("denied", None, "key_1", "PUT /v1/models", "2026-05-02"),
                ("done", None, None, "monitor", "2026-05-02"),
                ("done", "Ann", None, "PUT /v1/models", "2026-05-01"),
            ],
            "2 changes, 1 denied request, 1 read or download by 4 people, keys and services from 2026-05-01 to "
            "2026-05-03 (UTC).",
        ),
    ],
)
def test_audit_entries_are_counted(entries: list[tuple[Any, ...]], counted: str) -> None:
    names = ("outcome", "author", "key_id", "action", "created_at")
    found = [AuditEntry.from_json(dict(zip(names, each, strict=True))) for each in entries]
    assert count_entries(found, {"key_1": "nightly"}, is_part=False) == counted
    of_part = count_entries(found, {"key_1": "nightly"}, is_part=True)
    assert of_part.endswith(counted)
    assert (f"{len(found)} entries" in of_part) == bool(found)
    authors = [author_of(each, {"key_1": "nightly"}) for each in found]
    if len(authors) == 4:
        assert authors == ["the command line", "nightly", "the service", "Ann"]
