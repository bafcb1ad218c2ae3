"""Scoring in the console: a file of one's own from the form to its result, and one row."""

from __future__ import annotations

import csv
import html
import io
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


def test_what_came_out_of_a_file(world: World) -> None:
    keep = {"keep": "customer", "reasons": 2, "file_name": "may <b>.csv"}
    batch = world.score(customers(300, 1), **keep)
    summary = world.api.get(f"/v1/batch-scores/{batch['id']}/summary").json()
    ours = PlainBrowser(world.service)
    page = ours.read(f"/console/batch-scores/{batch['id']}")
    text = words_of(page)
    assert "Scores of may <b>.csv" in text
    assert "churn@champion (churn:1)" in text
    assert "Rows scored 300" in text
    assert f"Flagged by champion {summary['flagged']} {summary['flagged'] / 3:.1f} %" in text
    assert "Ignored columns: left" in text
    # The histogram has a bar for each bin with rows, and the cut.
    (histogram,) = summary["scores"]
    chart = page.partition("Distribution of score")[2].partition("</svg>")[0]
    assert len(re.findall('<rect[^>]* class="bar', chart)) == sum(map(bool, histogram["counts"]))
    assert len(re.findall('<line[^>]* class="cross', chart)) == 1
    # The best rows, with their number in the file, the kept name, the cut and the reasons.
    table = page.partition("Rows with the highest scores")[2].partition("<tbody>")[2]
    shown, _, rest = table.partition("</tbody>")
    rows = re.findall("(?s)<tr>.*?</tr>", shown)
    # The others are behind a disclosure.
    more = re.findall("(?s)<tr>.*?</tr>", rest.partition("<tbody>")[2].partition("</tbody>")[0])
    assert (len(rows), len(more)) == (10, 40)
    assert "<summary>40 more rows</summary>" in rest
    first = dict(zip(summary["columns"], summary["first"][0], strict=True))
    assert first["customer"] == f"c{first['row_number'] - 1}"
    told = words_of(rows[0])
    assert told.startswith(f"{first['row_number']} {first['customer']} ")
    reason = f"{first['reason_1_text']} → {first['reason_1_contribution']:+.3g}"
    assert " yes " in told.partition(reason)[0]
    lines = ours.get(f"/console/batch-scores/{batch['id']}/result.csv").text.splitlines()
    assert lines[0].replace('"', "").startswith("customer,row_number,score,")
    assert len(lines) == 301
    (listed,) = re.findall(
        "(?s)<tr>(?:(?!</tr>).)*may &lt;b&gt;.*?</tr>", ours.read("/console/batch-scores")
    )
    assert f" {summary['flagged']} " in words_of(listed)


def words_of(part: str) -> str:
    """Return what a part of a page says, without its tags."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", part)).split())


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
    assert "churn@champion" in page
    assert f"{world.cutoff:.4f}" in page
    for_version = browser.read(f"/console/batch-scores?model={world.model_id}")
    assert hint in for_version
    for text in (page, for_version):
        assert 'href="/console/batch-scores?model=churn%40champion' in text
    by_alias = browser.read("/console/batch-scores?model=churn@champion")
    assert hint in by_alias
    assert "has a cutoff" not in browser.read("/console/batch-scores?model=no/such")
    assert 'name="decimal"' in browser.read("/console/batch-scores")
    assert world.service.app.openapi_schema is None  # to make it takes seconds
    assert "Reasons" not in page
    assert "Ignored columns: customer" in page
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
    # One click ignores them, and the check runs again by itself.
    own.get_by_label("Columns to ignore").fill("")
    page.set_input_files("#file", file(text))
    own.get_by_role("button", name="Check only").click()
    alert.get_by_role("button", name="Ignore them and check again").click()
    own.get_by_role("status").get_by_text("The file is valid: 200 rows.").wait_for()
    assert own.get_by_label("Columns to ignore").input_value() == "client,note"
    assert "client, left, note" in own.inner_text()
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


def test_the_sheet_of_a_workbook_to_score_is_chosen(world: World, tmp_path: Path) -> None:
    csv_text = customers(60, 1, left=False).replace(NASTY, "Chur").replace('"Genf, Stadt"', "Genf")
    lines = [line.split(",") for line in csv_text.splitlines()]
    path = sheets(tmp_path / "q.xlsx", {"Notizen": [["x", "y"], [1, 2]], "Quartal": lines})
    body = path.read_bytes()
    plain = PlainBrowser(world.service)
    address, sent = "/console/batch-scores/rows/check", ("q.xlsx", body)
    answer = plain.post(address, sent, model="churn")
    assert answer.status_code == 422
    assert '<option value="Quartal">' in answer.text
    answer = plain.post(address, sent, model="churn", sheet="Quartal")
    assert answer.status_code == 200
    assert "“Quartal”" in answer.text
    assert plain.post(address, sent, model="churn", sheet="Q4").status_code == 422
    assert plain.post(address, model="churn").status_code == 422


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
    assert ": customer, no, years." in page
    assert ": age." in page
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
    fill(page, age="70", since="2015-05-01", town="Genf, Stadt")
    page.get_by_role("button", name="Score", exact=True).click()
    expect(answer).to_contain_text("Reasons")
    row = {"age": 70, "income": 4.25, "town": "Genf, Stadt", "since": "2015-05-01"}
    query: dict[str, Any] = {"reasons": 4, "direction": "both"}
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
    page.get_by_role("button", name="Score", exact=True).click()
    # The group with the field is open, and the field says what is wrong.
    wrong = page.get_by_label("measure 230", exact=True)
    expect(wrong).to_have_accessible_description(re.compile("finite number, got 'far'"))
    expect(wrong).to_be_visible()
    wrong.fill("3.5")
    page.get_by_role("button", name="Score", exact=True).click()
    expect(page.locator("#answer")).to_contain_text("measure 230 = 3.5 → +")
