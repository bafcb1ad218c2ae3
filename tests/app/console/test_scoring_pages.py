"""Scoring in the console: a file of one's own from the form to its result, and one row."""

from __future__ import annotations

import csv
import html
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape
from playwright.sync_api import Page, expect

from tests.app.console.plain_browser import PlainBrowser
from tests.app.ingest.test_workbooks import sheets
from tests.app.live_service import Service
from tests.long_form import long_form

NASTY = "<script>alert(1)</script>\"'{{ 7 * 7 }}"
FEATURES = ("age", "income", "town", "since")
AT_RANDOM = {"method": "holdout", "time_column": None}
"""With it dates are features."""


def customers(rows: int, seed: int, *, left: bool = True) -> str:
    """Customers with a number of their own, gaps, words and dates; who left is known or not."""
    rng = np.random.default_rng(seed)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["customer", *FEATURES, *(["left"] if left else [])])
    for k in range(rows):
        age, income, town = rng.normal(45, 12), rng.normal(3, 1), rng.integers(3)
        leaves = "ja" if (age - 45) / 12 + income + town + rng.normal() > 6 else "nein"
        words = ("Bern", "Genf, Stadt", NASTY)[town]
        cells = [f"c{k}", f"{age:.1f}", f"{income:.2f}" if k % 9 else "", words]
        cells.append(f"20{10 + k % 14}-0{1 + k % 9}-1{k % 10}")
        writer.writerow([*cells, leaves] if left else cells)
    return out.getvalue()


class World:
    """A service with a model behind the alias champion, which flags a tenth of the negatives."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.secret = service.key()
        self.api = service.client(self.secret)
        self.dataset_id = service.upload(
            self.api, customers(600, 0), label="left", positive="ja", drop="customer"
        )
        job = service.train(self.api, self.dataset_id, validation=AT_RANDOM)
        self.model_id = job["output"]["id"]
        guarantee = {"model_id": self.model_id, "guarantee": {"fpr": 0.1}}
        answer = self.api.put("/v1/models/churn/aliases/champion", json=guarantee)
        self.cutoff = answer.raise_for_status().json()["cutoff"]["threshold"]

    def score(self, text: str, **query: Any) -> dict[str, Any]:
        asked = {"model": "churn@champion", **query}
        headers = {"Content-Type": "text/csv"}
        answer = self.api.post("/v1/batch-scores", params=asked, content=text, headers=headers)
        assert answer.status_code == 202, answer.text
        self.service.work()
        found: dict[str, Any] = self.api.get(answer.headers["Location"]).json()
        assert found["status"] == "ready", found
        return found


# In wider windows test_every_page.py looks at these pages, too.
LOOKS = [
    (390, True),
    *(pytest.param(*wide, marks=long_form) for wide in ((1280, False), (1920, True))),
]


@pytest.fixture(scope="module")
def world(start: Callable[..., Service]) -> World:
    return World(start())


def shoot(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        page.wait_for_load_state("networkidle")
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_what_came_out_of_a_file(
    world: World, visit: Callable[..., Any], width: int, dark: bool
) -> None:
    keep = {"keep": "customer", "reasons": 2, "file_name": "may <b>.csv"}
    batch = world.score(customers(300, 1), **keep)
    summary = world.api.get(f"/v1/batch-scores/{batch['id']}/summary").json()
    window = visit(world.service, width=width, dark=dark)
    window.sign_in(world.secret)
    page = window.open(f"/console/batch-scores/{batch['id']}")
    assert page.get_by_role("heading", level=1).inner_text() == "Scores of may <b>.csv"
    assert "churn@champion (churn:1)" in page.inner_text("main")
    tiles = page.locator(".tile").all_inner_texts()
    assert tiles[0].split() == ["Rows", "scored", "300"]
    flagged = " ".join(tiles[1].split())
    assert flagged.startswith(f"Flagged by champion {summary['flagged']} ")
    assert f" {summary['flagged'] / 3:.1f} %" in flagged
    assert "Ignored columns: left" in page.inner_text("main")
    # The histogram has a bar for each bin with rows, and the cut.
    (histogram,) = summary["scores"]
    chart = page.get_by_role("img", name="Distribution of score")
    expect(chart.locator("rect.bar")).to_have_count(sum(map(bool, histogram["counts"])))
    expect(chart.locator("line.cross")).to_have_count(1)
    # The best rows, with their number in the file, the kept name, the cut and the reasons.
    rows = page.get_by_role("region", name="Rows with the highest scores").locator("tbody tr")
    expect(rows).to_have_count(50)
    first = dict(zip(summary["columns"], summary["first"][0], strict=True))
    cells = rows.first.locator("td").all_inner_texts()
    assert cells[:2] == [str(first["row_number"]), first["customer"]]
    assert first["customer"] == f"c{first['row_number'] - 1}"
    assert cells[-2] == "yes"
    assert f"{first['reason_1_text']} → {first['reason_1_contribution']:+.3g}" in cells[-1]
    # They are rows of the page: its scrolling shows all of them, and what each figure is.
    region = page.get_by_role("region", name="Rows with the highest scores", exact=True)
    hidden = region.evaluate("part => part.scrollHeight - part.clientHeight")
    assert hidden <= 1
    rows.nth(30).scroll_into_view_if_needed()
    page.evaluate("window.scrollBy(0, 400)")
    if width > 390:
        expect(region.get_by_role("columnheader", name="Score")).to_be_in_viewport()
    else:  # each cell of a listed row says what it is
        score = rows.nth(30).get_by_role("cell", name=re.compile("^Score: -?[0-9]"))
        expect(score).to_have_count(1)
    window.check()
    shoot(page, f"result-{width}")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0].replace('"', "").startswith("customer,row_number,score,")
    window.open("/console/batch-scores")
    listed = page.locator("tbody tr").filter(has_text="may <b>.csv").first.locator("td")
    expect(listed.nth(5)).to_have_text(str(summary["flagged"]))
    assert len(lines) == 301


def test_results_without_a_cut_reasons_or_a_file(world: World) -> None:
    browser = PlainBrowser(world.service)
    plain = world.score(customers(20, 2, left=False), model="churn:1", ignore="customer", top=5)
    page = browser.read(f"/console/batch-scores/{plain['id']}")
    assert re.search("<h1>Scores of [^<]+</h1>", page)
    assert "scored with <strong>churn:1</strong>." in page
    assert "Top 5 rows" in page
    assert "Top 5 of 20 rows;" in page
    assert "Flagged" not in page
    # Who names a version is told of the alias that flags, before and after.
    hint = f"churn@champion has a cutoff at {world.cutoff:.4f}"
    assert f"churn@champion has one at {world.cutoff:.4f}" in page
    for_version = browser.read(f"/console/batch-scores?model={world.model_id}")
    assert hint in for_version
    for text in (page, for_version):
        assert 'href="/console/batch-scores?model=churn%40champion' in text
    by_alias = browser.read("/console/batch-scores?model=churn@champion")
    assert hint in by_alias
    assert "The result shows which rows " in by_alias
    assert "has a cutoff" not in browser.read("/console/batch-scores?model=no/such")
    assert 'name="decimal"' in browser.read("/console/batch-scores")
    assert world.service.app.openapi_schema is None  # to make it takes seconds
    assert "Reasons" not in page
    assert "Ignored columns: customer" in page
    # Who may not read the dataset does not see its columns here, and is told why.
    asked = {"model": "churn", "dataset_id": world.dataset_id, "keep": ["town"]}
    made = world.api.post("/v1/batch-scores", json=asked).json()["id"]
    world.service.work()
    assert "Bern" in browser.read(f"/console/batch-scores/{made}")
    scorer = PlainBrowser(world.service, scopes=["score"])
    page = scorer.read(f"/console/batch-scores/{made}")
    assert "Bern" not in page
    assert "No overview" in page
    listed = browser.read("/console/batch-scores")
    assert "uploaded table" in listed


def file(text: str, name: str = "june.csv") -> Any:
    return {"name": name, "mimeType": "text/csv", "buffer": text.encode()}


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_columns_that_do_not_fit_are_one_message_and_one_click(
    world: World, visit: Callable[..., Any], width: int, dark: bool
) -> None:
    window = visit(world.service, width=width, dark=dark)
    window.expect("status of 422")
    window.sign_in(world.secret)
    page = window.open("/console/batch-scores?model=churn@champion")
    own = page.locator("form[data-upload]")
    n_before = len(world.api.get("/v1/batch-scores").json()["data"])
    # Nothing is sent but the head of the file, and no job is made.
    lines = customers(200, 3).replace("customer", "client", 1).splitlines()
    text = "\n".join([f"{lines[0]},note", *(f"{line},x" for line in lines[1:])]) + "\n"
    page.set_input_files("#file", file(text))
    own.get_by_label("Reasons per row").fill("2")
    own.get_by_label("Top rows only").fill("30")
    own.get_by_label("Fraction of positives").fill("0.05")
    own.get_by_role("button", name="Score", exact=True).click()
    alert = own.get_by_role("alert")
    alert.get_by_text("2 columns not used by the model: client, note").wait_for()
    assert "left" not in alert.inner_text()  # the model's own label
    window.check()
    shoot(page, f"misfit-{width}")
    # What is missing and what is no number, in the same message; nothing can be ignored about it.
    bad = text.replace("age", "years", 1).replace(lines[1].split(",")[1], "old", 1)
    page.set_input_files("#file", file(bad))
    own.get_by_role("button", name="Check only").click()
    alert.get_by_text("1 column missing from the table: age").wait_for()
    expect(alert).to_contain_text("3 columns not used by the model: client, years, note")
    own.get_by_label("Columns to ignore").fill("client,note")
    page.set_input_files("#file", file(text.replace(f",{lines[1].split(',')[1]},", ",old,", 1)))
    own.get_by_role("button", name="Check only").click()
    expect(alert).to_contain_text("1 column with the wrong type:")
    expect(alert).to_contain_text("feature 'age' must be a finite number, got 'old' (line 2)")
    # One click ignores them, and the check runs again by itself.
    own.get_by_label("Columns to ignore").fill("")
    page.set_input_files("#file", file(text))
    own.get_by_role("button", name="Check only").click()
    alert.get_by_role("button", name="Ignore them and check again").click()
    own.get_by_role("status").get_by_text("The file is valid: 200 rows.").wait_for()
    assert own.get_by_label("Columns to ignore").input_value() == "client,note"
    assert "Ignored columns: client, left, note." in own.inner_text()
    assert len(world.api.get("/v1/batch-scores").json()["data"]) == n_before
    # Or the names are kept, and the file is scored.
    own.get_by_label("Columns to ignore").fill("note")
    own.get_by_role("button", name="Score", exact=True).click()
    alert.get_by_role("button", name="Keep it and score").click()
    page.wait_for_url("**/batch-scores/bat_*")
    made = world.api.get(f"/v1{page.url.partition('/console')[2]}").json()
    assert (made["keep"], made["top"], made["reasons"]["n"]) == (["client"], 30, 2)
    assert (made["file_name"], made["alias"]) == ("june.csv", "champion")
    with world.service.at_work():
        page.get_by_role("heading", name="Top 30 rows").wait_for()
    assert "Top 30 of 200 rows" in page.inner_text("main")


def test_the_sheet_of_a_workbook_to_score_is_chosen(
    world: World, visit: Callable[..., Any], tmp_path: Path
) -> None:
    csv_text = customers(60, 1, left=False).replace(NASTY, "Chur").replace('"Genf, Stadt"', "Genf")
    lines = [line.split(",") for line in csv_text.splitlines()]
    path = sheets(tmp_path / "q.xlsx", {"Notizen": [["x", "y"], [1, 2]], "Quartal": lines})
    body = path.read_bytes()
    window = visit(world.service, width=390)
    window.expect("status of 422")
    page = window.sign_in(world.secret)
    window.open("/console/batch-scores?model=churn")
    page.set_input_files("#file", {"name": "q.xlsx", "mimeType": "x/x", "buffer": body})
    page.get_by_role("button", name="Check only").click()
    outcome = page.locator("[data-outcome]")
    outcome.get_by_text("The table does not fit the model.").wait_for()
    window.check()
    outcome.get_by_label("Sheet").select_option("Quartal")
    page.get_by_role("button", name="Check only").click()
    expect(outcome).to_contain_text("The file is valid: sheet “Quartal”")
    window.check()
    # The same without a script.
    plain = PlainBrowser(world.service)
    address, sent = "/console/batch-scores/rows/check", ("q.xlsx", body)
    answer = plain.post(address, sent, model="churn")
    assert answer.status_code == 422
    assert '<option value="Quartal">' in answer.text
    answer = plain.post(address, sent, model="churn", sheet="Quartal")
    assert answer.status_code == 200
    assert "The file is valid: sheet “Quartal”" in answer.text
    assert plain.post(address, sent, model="churn", sheet="Q4").status_code == 422
    assert plain.post(address, model="churn").status_code == 422


def test_of_a_long_file_the_head_is_checked(world: World, visit: Callable[..., Any]) -> None:
    window = visit(world.service)
    window.expect("status of 422")
    window.sign_in(world.secret)
    page = window.open("/console/batch-scores?model=churn&ignore=customer")
    own = page.locator("form[data-upload]")
    own.evaluate("form => { form.dataset.most = 100000; }")
    sent: list[int] = []
    page.on("request", lambda request: sent.append(len(request.post_data_buffer or b"")))
    page.set_input_files("#file", file(customers(9000, 4)))
    own.get_by_role("button", name="Check only").click()
    own.get_by_text("Only the first rows").or_(
        own.get_by_text("The columns and the first")
    ).wait_for()
    assert max(sent) < 70_000
    page.set_input_files("#file", file(customers(9000, 4), "june.csv.gz"))
    own.get_by_role("button", name="Check only").click()
    own.get_by_text("too long to check here").wait_for()


def test_a_dataset_is_scored_with_the_same_options(world: World) -> None:
    browser = PlainBrowser(world.service)
    fields = {"model": "churn@champion", "dataset_id": world.dataset_id, "keep": ' "town",age'}
    sent = browser.post("/console/batch-scores", **fields, top="7", reasons="1", prevalence="0.02")
    world.service.work()
    page = browser.read(sent.headers["location"])
    assert "Top 7 rows" in page
    assert "Top 7 of 600 rows" in page
    assert "Reasons" in page
    assert escape(NASTY) in page
    assert "<script>alert" not in page
    for name, value in (("top", "many"), ("reasons", "99"), ("prevalence", "2")):
        bad = browser.post("/console/batch-scores", **fields, **{name: value})
        assert bad.status_code == 422
        assert name in bad.text
        assert f'name="{name}" value="{value}"' in bad.text  # nothing typed is lost
        marked = re.search(rf'<input id="stored-{name}"[^>]*>', bad.text)
        assert marked is not None
        assert f'aria-describedby="e-stored-{name} ' in marked[0]
        assert 'aria-invalid="true"' in marked[0]


def test_a_failed_batch_leads_to_a_form_that_ignores_the_columns(world: World) -> None:
    """Without a script the columns are first looked at by the worker."""
    browser = PlainBrowser(world.service)
    text = customers(5, 5).replace("customer,", '"customer, no",', 1).replace("age", "years", 1)
    sent = browser.client.post(
        "/console/batch-scores/rows",
        data={"csrf": browser.csrf, "model": "churn@champion", "reasons": "2", "keep": "town"},
        files={"file": ("rows.csv", text.encode())},
    )
    assert sent.status_code == 303, sent.text
    world.service.work()
    page = browser.read(sent.headers["location"])
    assert " these columns: customer, no, years." in page
    assert "columns of the model: age." in page
    found = re.search(r'href="(/console/batch-scores\?[^"]+)">Score again', page)
    assert found is not None
    form = browser.read(html.unescape(found[1]))
    for name, value in (("ignore", '"customer, no",years'), ("reasons", "2"), ("keep", "town")):
        assert (
            f'name="{name}" value="{html.escape(value, quote=True).replace("&quot;", "&#34;")}"'
            in form
        )
    assert re.search(r'<option value="churn@champion" selected', form)


# --- one row -------------------------------------------------------------------------------------


def fill(page: Page, **values: str) -> None:
    for name, value in values.items():
        field = page.locator("#score").get_by_label(name, exact=True)
        if field.evaluate("each => each.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_row_has_its_answer_its_flag_and_its_values_beside_reasons(
    world: World, visit: Callable[..., Any], width: int, dark: bool
) -> None:
    window = visit(world.service, width=width, dark=dark)
    window.sign_in(world.secret)
    page = window.open(f"/console/models/{world.model_id}/score")
    # What is wrong stands at its field, and is read with it; other fields keep what was typed.
    fill(page, age="old", income="4.25", since="may")
    page.get_by_role("button", name="Score", exact=True).click()
    answer = page.locator("#answer")
    expect(answer).to_contain_text("2 values are invalid")
    for name, words in (("age", "must be a finite number, got 'old'"), ("since", "'may'")):
        field = page.locator("#score").get_by_label(name, exact=True)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_accessible_description(re.compile(re.escape(words)))
    assert page.get_by_label("income", exact=True).input_value() == "4.25"
    window.check()
    shoot(page, f"row-wrong-{width}")
    fill(page, age="70", since="2015-05-01", town="Genf, Stadt")
    page.get_by_role("button", name="Score", exact=True).click()
    expect(answer).to_contain_text("Reasons")
    row = {"age": 70, "income": 4.25, "town": "Genf, Stadt", "since": "2015-05-01"}
    query: dict[str, Any] = {"reasons": 4, "direction": "both", "interval": True}
    path = f"/v1/models/{world.model_id}/score"
    found = world.api.post(path, params=query, json={"rows": [row]}).json()
    score = found["scores"][0]
    told = " ".join(answer.inner_text().split())
    assert f"Score {score:.4f}" in told
    assert ("Flagged: at or above" if score >= world.cutoff else "Not flagged: below") in told
    assert f" cutoff of champion ({world.cutoff:.4f})" in told
    for reason in found["reasons"][0]:
        (name,) = reason["columns"]
        moved = f"{name} = {row[name]} → {reason['contribution']:+.3g}"
        assert moved in told
    assert f"scores {found['reference']['score']:.4f}" in told
    # The pair of Venn–Abers is behind the mark: it is not a range around the probability.
    assert f"Probability {100 * found['probabilities'][0]:.1f} %" in told
    pair = f"{100 * found['probabilities_low'][0]:.1f} %"
    mark = answer.get_by_role("button", name="About interval")
    expect(answer.get_by_text("Venn–Abers")).to_be_hidden()
    mark.click()
    expect(answer.get_by_text("Venn–Abers")).to_contain_text(pair)
    page.keyboard.press("Escape")
    # Beside the form where there is room, else below the button; in view both times.
    box, button = answer.bounding_box(), page.locator("#score-button").bounding_box()
    assert box is not None
    assert button is not None
    if width >= 1280:
        assert box["x"] > button["x"] + button["width"]
    else:
        assert box["y"] > button["y"]
    expect(answer.get_by_text("Score", exact=False).first).to_be_in_viewport()
    window.check()
    shoot(page, f"row-{width}")
    # Another reference: the cut of the alias.
    page.get_by_label("Compare with").select_option("the cutoff of champion")
    page.get_by_role("button", name="Score", exact=True).click()
    expect(answer).to_contain_text(f"The cutoff of champion scores {world.cutoff:.4f}")
    chosen = page.get_by_label("Compare with")
    expect(chosen).to_have_value("cutoff:champion")


def test_estimated_reasons_have_their_error(world: World) -> None:
    forest = world.service.train(
        world.api,
        world.dataset_id,
        name="forest",
        algorithm={"name": "treerank_forest"},
        validation=AT_RANDOM,
    )["output"]["id"]
    row = {"age": 70, "income": None, "town": "Bern", "since": "2015-05-01"}
    path = f"/v1/models/{forest}/score?reasons=4&direction=both"
    found = world.api.post(path, json={"rows": [row]}).json()
    browser = PlainBrowser(world.service)
    page = browser.post(
        f"/console/models/{forest}/score", f0="70", f1="", f2="Bern", f3="2015-05-01"
    )
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.text)).split())
    assert "The average negative row " in text
    for reason in found["reasons"][0]:
        (name,) = reason["columns"]
        value = "missing" if row[name] is None else row[name]
        moved = f"{name} = {value} → {reason['contribution']:+.3g}"
        assert moved in text
    assert found["exact"] == [True]  # of four features all sets are scored
    assert "standard error" not in text
    bad = browser.post(f"/console/models/{forest}/score", f0="70", compare="<b>")
    assert bad.status_code == 200
    assert "&lt;b&gt;" in bad.text
    assert "No reasons: " in html.unescape(bad.text)


def test_many_features_are_found_by_a_part_of_their_name(
    world: World, visit: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(1)
    names = [f"measure {k:03}" for k in range(240)]
    rows = rng.normal(size=(80, 240)).round(2)
    lines = [",".join([*names, "left"])]
    for row in rows:
        lines.append(",".join([*map(str, row), "yes" if row[7] + row[230] > 0 else "no"]))
    dataset_id = world.service.upload(
        world.api, "\n".join(lines) + "\n", label="left", positive="yes", name="wide"
    )
    model_id = world.service.train(world.api, dataset_id, name="wide")["output"]["id"]
    window = visit(world.service)
    window.sign_in(world.secret)
    page = window.open(f"/console/models/{model_id}/score")
    expect(page.get_by_label("measure 230", exact=True)).to_be_hidden()
    finder = page.get_by_label("Search features")
    finder.fill("RE 23")
    page.get_by_text("10 found").wait_for()
    page.get_by_label("measure 230", exact=True).fill("far")
    expect(page.get_by_label("measure 007", exact=True)).to_be_hidden()
    window.check("#score")
    shoot(page, "row-many")
    page.get_by_role("button", name="Score", exact=True).click()
    # The group with the field is open, and the field says what is wrong.
    wrong = page.get_by_label("measure 230", exact=True)
    expect(wrong).to_have_accessible_description(re.compile("finite number, got 'far'"))
    expect(wrong).to_be_visible()
    wrong.fill("3.5")
    page.get_by_role("button", name="Score", exact=True).click()
    expect(page.locator("#answer")).to_contain_text("measure 230 = 3.5 → +")
    plain = visit(world.service, script=False)
    plain.sign_in(world.secret)
    page = plain.open(f"/console/models/{model_id}/score")
    page.get_by_text("201 to 240").click()
    page.get_by_label("measure 230", exact=True).fill("3.5")
    page.get_by_role("button", name="Score", exact=True).click()
    expect(page.locator("#answer")).to_contain_text("measure 230 = 3.5 → +")
