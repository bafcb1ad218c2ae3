"""Models in the console: the list, the slider against the API's numbers, parts, aliases, a scored row."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import expect

from app.console.model_curve import TERMS, count_at, is_at
from app.console.rendering import number as spelled
from app.console.rendering import percent
from app.measures import CHOSEN_ON_ROWS, OPTIMISTIC
from app.measures import metric as in_words
from tests.app.console.plain_browser import PlainBrowser, alert
from tests.app.live_service import Service
from tests.long_form import long_form, rest
from tests.raising import mentions
from tests.sentences import Sentences

NASTY = "<script>alert(1)</script>\"'{{ 7 * 7 }}"
WORD = "<img src=x>"
PARTS = (
    *("top", "calibration", "importance", "dependence", "structure"),
    *("baselines", "leaderboard", "bounds", "aliases"),
)


def people(rows: int = 200) -> str:
    """Features of all three types and a label, with names and values that pages must not take for markup."""
    rng = np.random.default_rng(0)
    lines = ['age,member,"{}",left'.format(NASTY.replace('"', '""'))]
    for age in rng.normal(40, 9, size=rows).round(1).tolist():
        member, word = rng.random() < 0.5, rng.choice([WORD, "b & c", ""])
        left = age + 9 * member + 12 * (word == WORD) + rng.normal(0, 9) > 50
        lines.append(f"{age},{str(member).lower()},{word},{'<b>yes' if left else 'no'}")
    return "\n".join(lines) + "\n"


class Browser(PlainBrowser):
    """Opens pages with a query."""

    def get(self, path: str, **query: Any) -> httpx.Response:
        """Open a page."""
        return self.client.get(path, params=query or None)


class World:
    """A service with a few small models."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.api = service.client(service.key())
        self.dataset_id = service.upload(self.api, people(), positive="<b>yes")
        window = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.2}
        self.first = self.train(objective=window, baselines=True)
        self.second = self.train(
            algorithm={"name": "treerank", "max_depth": 2},
            objective={"metric": "tpr", "fpr": 0.1},
            tags={NASTY: NASTY},
        )
        self.page = f"/console/models/{self.first}"

    def train(self, **job: Any) -> str:
        found: str = self.service.train(self.api, self.dataset_id, **job)["output"]["id"]
        return found

    def point(self, model_id: str, alias: str = "champion", **headers: str) -> httpx.Response:
        address = f"/v1/models/churn/aliases/{alias}"
        return self.api.put(address, json={"model_id": model_id}, headers=headers)

    def ask(self, part: str, model_id: str | None = None, **query: Any) -> Any:
        address = f"/v1/models/{model_id or self.first}/{part}"
        return self.api.get(address, params=query).raise_for_status().json()


@pytest.fixture(scope="module")
def world(start: Callable[..., Service]) -> World:
    return World(start())


@pytest.fixture(scope="module")
def ours(world: World) -> Browser:
    return Browser(world.service)


# --- in a real browser ---------------------------------------------------------------------------


def shown(page: Any, name: str) -> tuple[str, str]:
    tile = page.locator(f'[data-metric="{name}"]')
    return tile.locator("span").nth(0).inner_text(), tile.locator("span").nth(1).inner_text()


def said(metric: dict[str, float], times: float = 1, digits: int = 3) -> tuple[str, str]:
    value, low, high = (spelled(times * metric[end], digits) for end in ("value", "low", "high"))
    return value, f"{low} to {high}"


def inside(picture: Any, across: float, up: float) -> dict[str, float]:
    """Where a point of a picture's axes lies in it, in pixels."""
    edges = {name: float(picture.get_attribute(f"data-{name}")) for name in EDGES}
    pixels = picture.bounding_box()["width"] / float(picture.get_attribute("viewBox").split()[2])
    return {
        "x": pixels * (edges["left"] + across * (edges["right"] - edges["left"])),
        "y": pixels * (edges["bottom"] + up * (edges["top"] - edges["bottom"])),
    }


EDGES = ("left", "right", "top", "bottom", "x-low", "x-high")


def drag(page: Any, name: str, start: tuple[float, float], end: tuple[float, float]) -> None:
    picture = page.locator(f'[data-picture="{name}"] svg')
    picture.scroll_into_view_if_needed()
    picture.hover(position=inside(picture, *start))
    page.mouse.down()
    picture.hover(position=inside(picture, *end))
    page.mouse.up()
    page.evaluate("new Promise((drawn) => requestAnimationFrame(drawn))")


def assert_marked(page: Any, cutoff: dict[str, Any], probability: float | None = None) -> None:
    """Every picture shows this cut, each by its own figure along x."""
    places = {
        "linear": cutoff["fpr"]["value"],
        "precision_recall": cutoff["tpr"]["value"],
        "gains": cutoff["flagged"]["value"],
        "cost": cutoff["flagged"]["value"],
        "histogram": cutoff["threshold"],
    } | ({} if probability is None else {"reliability": probability})
    for name, value in places.items():
        picture = page.locator(f'[data-picture="{name}"] svg')
        edges = {each: float(picture.get_attribute(f"data-{each}")) for each in EDGES}
        share = (value - edges["x-low"]) / (edges["x-high"] - edges["x-low"])
        place = edges["left"] + min(max(share, 0), 1) * (edges["right"] - edges["left"])
        drawn = float(picture.locator(".down").get_attribute("x1"))
        assert drawn == pytest.approx(place, abs=0.01), name


@long_form
def test_one_cut_is_linked_in_all_pictures_and_stands_in_the_address(
    world: World, ours: Browser, visit: Callable[..., Any]
) -> None:
    window = visit(world.service)
    window.sign_in(world.service.key())
    page = window.open(world.page)
    window.unfold()
    table = world.ask("operating-points", points=300)

    def shown_cutoff() -> tuple[dict[str, Any], float]:
        page.evaluate("new Promise((drawn) => requestAnimationFrame(drawn))")
        threshold = float(page.locator("[data-threshold]").get_attribute("data-threshold"))
        (index,) = [
            i for i, cutoff in enumerate(table["points"]) if cutoff["threshold"] == threshold
        ]
        assert_marked(page, table["points"][index], table["probabilities"][index])
        return table["points"][index], table["probabilities"][index]

    first, _ = shown_cutoff()
    # A mouse over a picture is told the nearest cut, and moves none.
    picture = page.locator('[data-picture="gains"] svg')
    picture.scroll_into_view_if_needed()
    picture.hover(position=inside(picture, 0.5, 0.9))
    hint = page.locator("[data-hint]")
    hint.wait_for()
    told = re.fullmatch(
        r"Threshold \S+: flags ([\d.]+) % of the rows, TPR ([\d.]+) %, .*", hint.inner_text()
    )
    assert told is not None
    assert abs(float(told[1]) - 50) < 10
    near = [f"{100 * cutoff['flagged']['value']:.1f}" for cutoff in table["points"]]
    assert told[1] in near
    assert shown_cutoff()[0] == first
    # In each picture the cut follows the finger.
    for name, end, metric in (
        ("gains", (0.2, 0.5), "flagged"),
        ("precision_recall", (0.9, 0.5), "tpr"),
        ("cost", (0.6, 0.4), "flagged"),
    ):
        drag(page, name, (0.5, 0.5), end)
        assert abs(shown_cutoff()[0][metric]["value"] - end[0]) < 0.12, name
    edges = [table["points"][1]["threshold"], table["points"][-1]["threshold"]]
    drag(page, "histogram", (0.5, 0.5), (0.75, 0.5))
    assert edges[1] < shown_cutoff()[0]["threshold"] < edges[0]
    drag(page, "reliability", (0.2, 0.5), (0.8, 0.5))
    assert abs(shown_cutoff()[1] - 0.8) < 0.15
    expect(page.locator("[data-hint]")).to_be_hidden()
    # What can be reviewed chooses the cut.
    page.get_by_label("I can review").fill("30")
    page.get_by_label("of", exact=True).fill("400")
    expect(page.locator("[data-why-shown]")).to_have_text(
        "The best cutoff for your review capacity"
    )
    cutoff, _ = shown_cutoff()
    few = [each for each in table["points"] if each["flagged"]["value"] <= 30 / 400]
    assert cutoff == few[-1]
    # The address has the cut and what was typed: a reload, and another reader without scripts, see the same.
    page.get_by_label("Cost of a false positive").fill("1")
    page.get_by_label("Cost of a false negative").fill("6")
    page.locator('[data-metric="cost"]').wait_for()
    page.locator('[data-picture="cost"]').get_by_text("Cost per row").wait_for()
    drag(page, "gains", (0.5, 0.5), (0.3, 0.6))
    cutoff, _ = shown_cutoff()
    page.wait_for_url(re.compile(re.escape(f"cutoff={cutoff['threshold']!r}")))
    for each in ("review=30", "rows=400", "cost_false_positive=1", "cost_false_negative=6"):
        assert each in page.url
    costs, words = shown(page, "cost"), page.locator("[data-workload]").inner_text()
    of_rows = shown(page, "flagged")
    page.reload()
    assert shown_cutoff()[0] == cutoff
    assert shown(page, "cost") == costs
    # The tabs keep it, too.
    tabs = page.get_by_role("navigation", name="Parts of the page")
    for tab in ("Explain", "Validation", "Decide"):
        tabs.get_by_role("link", name=tab).click()
        page.get_by_role("heading", name="churn:1").wait_for()
        assert tabs.locator("[aria-current]").inner_text() == tab
    page.locator("[data-threshold]").wait_for()
    assert shown_cutoff()[0] == cutoff
    assert shown(page, "cost") == costs
    assert shown(page, "flagged") == of_rows
    window.check()
    other = ours.read(page.url.removeprefix(world.service.url))
    for name, (value, low_to_high) in (("cost", costs), ("flagged", of_rows)):
        tile = other.partition(f'data-metric="{name}"')[2].partition("</div>")[0]
        assert value in tile
        assert low_to_high in tile
    assert f'data-threshold="{cutoff["threshold"]!r}"' in other
    assert words in " ".join(re.sub("<[^>]+>", "", other).split())
    # Without a script the form asks for what can be reviewed.
    reviewed = ours.get(world.page, review="30", rows="400").text
    assert f'data-threshold="{few[-1]["threshold"]!r}"' in reviewed


def test_the_cutoffs_of_aliases_are_shown_and_linked(
    world: World, ours: Browser, sentences: Sentences
) -> None:
    name = "cuts"
    model = world.train(name=name)
    curve = world.ask("operating-points", model, points=300)["points"]
    high = next(each["threshold"] for each in curve if each["flagged"]["value"] > 0.25)
    low = curve[-2]["threshold"] + 1e-9  # between two scores: it flags the same rows
    address = f"/console/models/{model}"
    for alias, threshold in (("live", high), ("wide", low)):
        body = {"model_id": model, "guarantee": {"threshold": threshold}}
        assert world.api.put(f"/v1/models/{name}/aliases/{alias}", json=body).is_success
        for reached in (model, f"{name}@{alias}") if alias == "live" else (f"{name}@{alias}",):
            page = ours.get(f"/console/models/{reached}").text
            assert f"The cutoff of {name}@{alias}" in page
            assert f'data-threshold="{threshold!r}"' in page
    verdict = text_of(ours.get(f"/console/models/{name}@live")).partition("Choose a cutoff")[0]
    flagged = world.ask("operating-point", model, threshold=high)["flagged"]["value"]
    assert f"{name}@live" in verdict
    assert percent(flagged) in verdict
    # The share of a cutoff that flags all rows is none; one that flags nothing is none; an old page is refused.
    saved = {"alias": "next", "keep": "flagged", "threshold": repr(curve[-1]["threshold"])}
    sentences(alert(ours.post(address, **saved).text))
    sentences(alert(ours.post(address, alias="next", threshold="").text))
    old = ours.post(f"{address}/aliases", alias="old", threshold="1")
    assert (old.status_code, "nothing was saved" in old.text) == (422, True)


@long_form
def test_what_is_typed_wrongly_is_told_at_its_field(
    world: World, ours: Browser, visit: Callable[..., Any]
) -> None:
    """While it is typed, and without a script when it is sent: in the same words."""
    window = visit(world.service)
    window.sign_in(world.service.key())
    page = window.open(world.page)
    other = ""

    def fill(**fields: str) -> str:
        """Fill in the fields, and send them without a script; returns the cut."""
        nonlocal other
        fields = dict.fromkeys(("review", "rows", *TERMS), "") | fields
        for name, value in fields.items():
            page.locator(f"#{name}").fill(value)
        other = ours.get(world.page, **fields).text
        (found,) = re.findall(r'data-threshold="([^"]*)"', other)
        return str(found)

    def told(name: str, words: str) -> None:
        expect(page.locator(f"#e-{name}")).to_have_text(words)
        wrong = "true" if words else None
        assert page.locator(f"#{name}").get_attribute("aria-invalid") == wrong
        (said,) = re.findall(rf'id="e-{name}"[^>]*>([^<]*)<', other)
        assert html.unescape(said).strip() == words

    few = "The number of rows to review must be a whole number above 0 without separators, such as 1000, got "
    for wrong in ("abc", "0", "1.000"):
        cutoff = fill(review=wrong, rows="400")
        told("review", f"{few}'{wrong}'.")
        told("rows", "")
        assert page.locator("[data-threshold]").get_attribute("data-threshold") == cutoff
    fill(review="500", rows="400")
    told(
        "review",
        "The number of rows to review must not exceed the number of rows per day.",
    )
    page.get_by_role("slider").press("ArrowRight")
    page.wait_for_url(re.compile("cutoff="))
    assert "review" not in page.url
    assert "rows" not in page.url
    fill(cost_false_positive="x", cost_false_negative="-1")
    told("cost_false_positive", "The cost of a false positive must be 0 or more, got 'x'.")
    told(
        "cost_false_negative",
        "The cost of a false negative must be 0 or more, got '-1'.",
    )
    assert "cost" not in page.url
    expect(page.locator('[data-metric="cost"]')).to_be_hidden()  # no figure of no cost
    fill(review="50")
    told("rows", "Also enter how many rows you get per day.")
    fill(cost_false_positive="2")
    told("cost_false_negative", "Enter both costs.")
    told("cost_false_positive", "")
    # What costs least may be more than can be reviewed: then the best of what can be is shown, and it is said.
    asked: dict[str, Any] = {"cost_false_positive": 1, "cost_false_negative": 30}
    cutoff = fill(review="30", rows="400", **{name: str(value) for name, value in asked.items()})
    told("cost_false_negative", "")
    table = world.ask("operating-points", points=300, **asked)
    cheapest = table["points"][table["least_cost"]]
    within = [each for each in table["points"] if each["flagged"]["value"] <= 30 / 400]
    best = within[-1]  # each row up to the lowest-cost cutoff is expected to save something
    words = (
        f"The lowest-cost cutoff flags about {400 * cheapest['flagged']['value']:,.0f} of 400 rows, more than "
        "the 30 that you can review."
    )
    expect(page.locator("[data-exceeded]")).to_have_text(words)
    shown_cutoff = page.locator("[data-threshold]")
    expect(shown_cutoff).to_have_attribute("data-threshold", repr(best["threshold"]))
    expect(page.locator("[data-why-shown]")).to_have_text(
        "The best cutoff for your review capacity"
    )
    assert cutoff == repr(best["threshold"])
    page.evaluate("scrollTo(0, 0)")  # the head that stays lies over a part of what is scrolled
    window.check("#curve")
    # Without costs nothing is said of them; another fraction of positives chooses another cut, on both pages.
    cutoff = fill(review="100", rows="1000", prevalence="0.9")
    table = world.ask("operating-points", points=300, prevalence=0.9)
    within = [each for each in table["points"] if each["flagged"]["value"] <= 0.1]
    expect(page.locator("[data-exceeded]")).to_have_text("")
    expect(shown_cutoff).to_have_attribute("data-threshold", repr(within[-1]["threshold"]))
    assert cutoff == repr(within[-1]["threshold"])


def test_the_slider_shows_the_numbers_of_the_api(world: World, visit: Callable[..., Any]) -> None:
    window = visit(world.service)
    window.sign_in(world.service.key())
    page = window.open(world.page)
    slider = page.get_by_role("slider")
    verdict = page.get_by_role("region", name="Verdict")

    def agrees(**terms: Any) -> dict[str, Any]:
        """The figures on the page are the API's for the threshold on the page."""
        page.evaluate("new Promise((drawn) => requestAnimationFrame(drawn))")
        threshold = page.locator("[data-threshold]").get_attribute("data-threshold")
        cutoff: dict[str, Any] = world.ask("operating-point", threshold=threshold, **terms)
        for name in ("fpr", "tpr", "precision", "lift"):
            assert shown(page, name) == said(cutoff[name]), name
        assert shown(page, "flagged") == said(cutoff["flagged"], 1000, 1)
        metrics = world.ask("metrics")
        caught = page.locator('[data-count="tp"]').inner_text()
        assert int(caught) == round(cutoff["tpr"]["value"] * metrics["positives"])
        negatives = (1 - cutoff["fpr"]["value"]) * metrics["negatives"]
        assert int(page.locator('[data-count="tn"]').inner_text()) == round(negatives)
        rows = (1 - cutoff["prevalence"]) * 1000 * cutoff["fpr"]["value"]
        assert (
            f" {math.floor(rows + 0.5):,} of the flagged"
            in page.locator("[data-workload-of]").inner_text()
        )
        assert_marked(page, cutoff)
        flagged = "The cutoff below flags the top {:.1f} % of the rows and finds {:.0f} %"
        values = (100 * cutoff[each]["value"] for each in ("flagged", "tpr"))
        assert terms or flagged.format(*values) in verdict.inner_text()
        return cutoff

    # It begins at the best cut in the objective's window, which is the best of these rows.
    first = agrees()
    assert OPTIMISTIC in verdict.inner_text()
    assert first["fpr"]["value"] <= 0.2
    assert "objective" in page.locator("[data-why-shown]").inner_text()
    # By keyboard, one cut at a time, and to either end.
    slider.focus()
    page.keyboard.press("ArrowRight")
    second = agrees()
    assert second["threshold"] < first["threshold"]
    assert f"FPR {spelled(second['fpr']['value'])}" in slider.get_attribute("aria-valuetext")
    page.keyboard.press("Home")
    page.get_by_text("flag none", exact=True).wait_for()
    assert shown(page, "tpr")[0] == "0.000"
    assert "The cutoff below flags no rows." in verdict.inner_text()
    assert OPTIMISTIC not in verdict.inner_text()
    # By a finger on the curve: the mark comes to where it is.
    drag(page, "linear", (0.3, 0.3), (0.5, 0.9))
    page.wait_for_function(
        "document.querySelector('[data-why-shown]').innerText.startsWith('Cutoff ')"
    )
    assert abs(agrees()["fpr"]["value"] - 0.5) < 0.15
    # Costs and another share of positives: the table is made anew, the cut that costs least is found.
    terms: dict[str, Any] = {
        "cost_false_positive": 1.0,
        "cost_false_negative": 4.0,
        "prevalence": 0.05,
    }
    for label, value in zip(
        (
            "Cost of a false positive",
            "Cost of a false negative",
            "Fraction of positives in future rows",
        ),
        terms.values(),
        strict=True,
    ):
        page.get_by_label(label).fill(str(value))
    page.locator('[data-metric="cost"]').wait_for()
    page.wait_for_function(
        "document.querySelector('[data-why-shown]').innerText.includes('lowest')"
    )
    cheapest = world.ask("operating-point", **terms)
    assert shown(page, "cost") == said(cheapest["cost"])
    assert agrees(**terms)["threshold"] == cheapest["threshold"]
    # The logarithmic picture has the same mark.
    page.get_by_role("link", name="Log FPR").click()
    assert page.locator('[data-picture="log"] .cutoff').is_visible()
    assert not page.locator('[data-picture="linear"]').is_visible()
    window.unfold()
    page.get_by_role("heading", name="Gains").wait_for()
    window.settle()
    window.check()


def test_an_answer_is_in_view_and_parts_come_by_themselves(
    world: World, visit: Callable[..., Any]
) -> None:
    window = visit(world.service, width=390, dark=True)
    window.sign_in(world.service.key())
    page = window.open(f"{world.page}/score")
    # The answer is where the eye is in a low window, below the button; and whoever listens is told.
    page.set_viewport_size({"width": 390, "height": 420})
    page.get_by_role("button", name="Score", exact=True).click()
    expect(page.locator("#answer")).to_be_focused()
    box = page.locator("#answer .result").bounding_box()
    assert 0 <= box["y"] <= box["y"] + box["height"] <= 420
    page.set_viewport_size({"width": 390, "height": 900})
    page.get_by_role("link", name="Explain").click()
    page.locator("#importance").get_by_text("Show as table").wait_for()
    window.settle()
    page.locator("#dependence").get_by_label("Feature").select_option("member")
    page.locator("#dependence").get_by_text("after member is set").wait_for()
    window.settle()
    window.check()


def test_the_head_leads_on_with_this_model_chosen(world: World, ours: Browser) -> None:
    head = ours.get(f"/console/models/{world.second}").text
    links = {html.unescape(each) for each in re.findall(r'href="([^"]+)"', head)}
    for where in ("comparisons", "evaluations", "batch-scores"):
        pages = [ours.get(each).text for each in links if each.startswith(f"/console/{where}?")]
        assert any(f'value="{world.second}" selected' in page for page in pages), where
    again = ours.get(f"/console/models/{world.second}/retrain").headers["location"]
    assert "algorithm.name=treerank" in again
    assert f'href="/console/models/{world.first}' in ours.get(f"{world.page}/versions").text


# --- by plain HTTP -------------------------------------------------------------------------------


def text_of(answer: httpx.Response) -> str:
    """The page's words, without its tags."""
    assert NASTY not in answer.text
    assert "<img src=x>" not in answer.text
    assert "<b>yes" not in answer.text
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=[\"']", answer.text)
    return html.unescape(re.sub(r"<[^>]+>", " ", answer.text))


def test_the_list_is_filtered_and_paged(world: World, ours: Browser, sentences: Sentences) -> None:
    text = text_of(ours.get("/console/models"))
    assert "churn:1" in text
    assert "FPR 0 to 0.2" not in text  # what it was aimed at is a column that can be chosen
    chosen = ours.post("/console/models/columns", columns=["aim", "auc", "none such"])
    assert chosen.status_code == 303
    page = ours.get("/console/models")
    heads = re.findall(r"(?s)<th scope=.col.[^>]*>(.*?)</th>", page.text)
    titles = [re.sub("<[^>]+>|▼", "", head).strip() for head in heads]
    assert [
        title for title in titles if title in ("Model", "Objective", "AUC", "Gini", "Trained")
    ] == [
        *("Model", "Objective", "AUC"),
    ]
    text = text_of(page)
    assert "FPR 0 to 0.2" in text
    assert f"{spelled(world.ask('metrics')['auc']['value'])}" in text
    assert "churn:1" not in text_of(ours.get("/console/models", name="nothing"))
    bad = ours.get("/console/models", name="<b>")
    assert bad.status_code == 422
    sentences(alert(bad.text))
    assert "“&lt;b&gt;”" in bad.text
    api = world.api.get("/v1/models", params={"limit": 1}).json()
    older = ours.get("/console/models", after=api["next"])
    assert api["data"][0]["id"] not in older.text
    assert ours.get("/console/models", after="nonsense").status_code == 422


def test_a_page_without_scripts_says_it_all(world: World, ours: Browser) -> None:
    page = ours.get(world.page)
    text = text_of(page)
    metrics = world.ask("metrics")
    bounds = world.ask("bounds")
    limits = text_of(ours.get(f"{world.page}/bounds"))
    for bound in bounds["bounds"]:
        assert f"{spelled(1 - bound['risk'])}" in limits
        if not bound["vacuous"]:
            assert f"{spelled(1 - bound['value'])}" in limits
    assert "FPR 0 to 0.2" in limits
    for words in (f"{spelled(metrics['auc']['value'])}", "<b>yes (positive)"):
        assert words in text
    assert len(page.content) < 150_000
    tabs = {
        tab: ours.get(f"{world.page}/{tab}").text for tab in ("explain", "validation", "history")
    }
    assert "25 %" in tabs["history"]
    assert f"{spelled(metrics['pauc'][0]['value'])}" in tabs["validation"]
    assert "random: 0.1" in tabs["validation"]  # of the partial area up to an FPR of 0.2
    for tab in (*tabs, "score"):
        assert f'href="{world.page}/{tab}"' in page.text
    for part in PARTS:
        link = f'href="{world.page}/{part}"'
        homes = [text for text in (page.text, *tabs.values()) if link in text]
        assert len(homes) == (part != "leaderboard"), part
    for scale in ("linear", "log"):
        other = ours.get(world.page, scale=scale).text
        hidden = re.findall(r'data-picture="(\w+)" hidden', other)
        assert hidden == ["log" if scale == "linear" else "linear"]
    asked = ours.get(
        world.page, by="fpr", at="0.1", cost_false_positive="1", cost_false_negative="2"
    )
    cutoff = world.ask("operating-point", fpr=0.1, cost_false_positive=1, cost_false_negative=2)
    text = text_of(asked)
    for name in ("tpr_at_fpr", "precision", "cost"):
        assert f"{cutoff[name]['value']:.4f}" in text
    assert repr(cutoff["threshold"]) in text
    training = text_of(ours.get(world.page, on="train"))
    assert f"{spelled(world.ask('metrics', on='train')['auc']['value'])}" in training
    assert ours.get(world.page, on="moon").status_code == 422


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            {"by": "fpr", "at": "0,5"},
            "“Value” must be a number, got '0,5'. Write 0.5, with a decimal point",
        ),
        ({"by": "tpr", "at": ""}, "“Value” must not be empty"),
        ({"by": "threshold", "at": "1e999"}, "“Value” must be a finite number, got '1e999'"),
        ({"by": "cost"}, "enter both costs under “Cost of errors”"),
        ({"cost_false_positive": "-1", "cost_false_negative": "1"}, "must be 0 or more, got '-1'"),
        ({"cost_false_positive": NASTY}, f"must be 0 or more, got {NASTY!r}"),
        (
            {"cost_false_positive": "0", "cost_false_negative": "0"},
            "must be above 0, got 0 for both",
        ),
        ({"prevalence": "1"}, "between 0 and 1, such as 0.05, got '1'"),
        ({"review": "0", "rows": "5"}, "such as 1000, got '0'"),
        ({"review": "5", "rows": NASTY}, "of rows per day must be a whole number above 0"),
        ({"review": "5"}, "Also enter how many rows you get per day."),
        ({"rows": "5"}, "Also enter how many rows you can review."),
    ],
)
def test_what_is_wrong_with_a_question_is_said_and_kept(
    world: World, ours: Browser, query: dict[str, str], words: str
) -> None:
    answer = ours.get(world.page, **query)
    assert answer.status_code == 200
    wrong = re.findall(
        r'role="alert">(.*?)</div>|class="error"[^>]*>(.*?)</p>', answer.text, re.DOTALL
    )
    assert words in html.unescape(" ".join(map("".join, wrong)))
    assert NASTY not in answer.text
    for value in filter(None, query.values()):
        assert (
            f'"{html.escape(value).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")}"'
            in answer.text
        )


@pytest.mark.parametrize("cutoff", [NASTY, "nan", "1e999"])
def test_a_cutoff_that_is_no_score_is_told(world: World, ours: Browser, cutoff: str) -> None:
    page = text_of(ours.get(world.page, cutoff=cutoff))
    assert f"'{cutoff[:8]}" in page


def test_the_table_of_cuts_is_the_apis(world: World, ours: Browser, sentences: Sentences) -> None:
    terms: dict[str, Any] = {"cost_false_positive": 2, "cost_false_negative": 3}
    table = ours.get(f"{world.page}/cutoffs", **terms).json()
    cutoffs = world.ask("operating-points", points=300, **terms)
    assert table["problem"] is None
    assert table["thresholds"] == [cutoff["threshold"] for cutoff in cutoffs["points"]]
    assert table["places"]["cost"] == cutoffs["least_cost"]
    at = 3 * table["metrics"].index("cost")
    for row, cutoff in zip(table["cutoffs"], cutoffs["points"], strict=True):
        metric = cutoff["cost"]
        assert row[at : at + 3] == pytest.approx(
            [metric[end] for end in ("value", "low", "high")], rel=1e-4
        )
    bad = ours.get(f"{world.page}/cutoffs", prevalence="2").json()
    assert bad["problem"] is None
    assert bad["errors"].keys() == {"prevalence"}
    sentences(bad["errors"]["prevalence"])
    of_objective = ours.get(f"/console/models/{world.second}/cutoffs").json()
    assert (
        of_objective["places"]["objective"]
        == world.ask("operating-points", world.second, points=300)["of_objective"]
    )


def test_the_best_ks_cutoff_is_the_same_with_any_costs(world: World, ours: Browser) -> None:
    metrics = world.ask("metrics")
    threshold = repr(metrics["ks_threshold"])
    assert f"KS {metrics['ks']:.3f} (at threshold {metrics['ks_threshold']:.3f})" in text_of(
        ours.get(world.page)
    )
    costs = {"cost_false_positive": "1", "cost_false_negative": "6", "prevalence": "0.03"}
    for terms in ({}, costs):
        without = ours.get(world.page, **terms).text
        (link,) = re.findall(r'href="([^"]*place=ks[^"]*)"', without)
        shown_there = ours.get(html.unescape(link).partition("#")[0]).text
        assert f'data-threshold="{threshold}"' in shown_there
        for name, value in terms.items():
            assert re.search(rf'name="{name}"[^>]* value="{re.escape(value)}"', shown_there)


def test_the_top_of_the_list_has_the_numbers_of_the_api(world: World, ours: Browser) -> None:
    asked = {"rate": "tpr", "limit": "0.6", "confidence": "0.9", "count": "10"}
    page = " ".join(
        text_of(ours.get(f"{world.page}/top", **asked, metric="two_way:0.3,0.4")).split()
    )
    cutoff = world.ask("operating-point", tpr=0.6, confidence=0.9)
    assert mentions(page, f"{cutoff['threshold']:.6g}")
    assert mentions(page, cutoff["guarantee"]["errors"])
    (own,) = world.ask("gains", count=10)["rows"]
    for metric in (own["precision"], own["recall"]):
        assert (
            f"{spelled(metric['value'])} {spelled(metric['low'])} to {spelled(metric['high'])}"
            in page
        )
    names = ["two_way:0.3,0.4", "average_precision", "precision@1%", "precision@10%"]
    metrics = world.ask("metric-estimates", metric=[*names, "ndcg"])["metrics"]
    assert " the top 1 %" in page
    for each in metrics:
        value = f"{spelled(each['value'])} {spelled(each['low'])} to {spelled(each['high'])}"
        assert f"{in_words(each['metric'])} {value}" in page
    # What is wrong stands with its own answer, and the others are there.
    for wrong, words in (
        ({"limit": "0.0001"}, "requires 29,956 negatives"),
        ({"limit": "0.1", "confidence": NASTY}, "“Confidence” must be a number"),
        ({"count": "0"}, "“Top rows” must be greater"),
        ({"metric": NASTY}, "“Another metric” must be"),
    ):
        answer = ours.get(f"{world.page}/top", **wrong)
        assert answer.status_code == 200
        assert answer.text.count('role="alert"') == 1, wrong
        assert answer.text.count(words) == 1, words
        assert NASTY not in answer.text
        assert "Average precision" in answer.text
    bare = world.train(validation={"method": "none"}, name="bare")
    none = text_of(ours.get(f"/console/models/{bare}/top"))
    assert "validation" in none
    assert "Promise" not in none


def test_a_model_is_recalibrated_in_its_page(world: World, ours: Browser) -> None:
    model = world.train(name="renewed")
    page = f"/console/models/{model}/calibration"
    shown = text_of(ours.get(page))
    evaluated = world.ask("calibration", model)["reliability"]
    assert f"{evaluated['brier']['score']:.4f}" in shown
    assert f"{spelled(evaluated['slope']['value'])}" in shown
    newer = world.service.upload(world.api, people(260), name=NASTY[:60], positive="<b>yes")
    reader = Browser(world.service, scopes=["read"])
    assert "Recalibrate" not in reader.get(page).text
    assert reader.post(page, dataset_id=newer).status_code == 403
    for dataset, status, words in (
        (world.dataset_id, 409, "was trained on rows of this dataset"),
        ("ds_none", 404, "there is no dataset"),
        ("", 422, "dataset_id"),
    ):
        refused = ours.post(page, dataset_id=dataset)
        assert refused.status_code == status
        assert words in text_of(refused)
    assert "Recalibrate renewed:1?" in text_of(ours.post(page, dataset_id=newer))
    sent = ours.post(page, dataset_id=newer, confirmed="yes")
    assert sent.headers["location"].startswith("/console/jobs/")
    world.service.work()
    assert "calibration" in ours.get(sent.headers["location"]).text
    after = ours.get(page)
    assert "Calibration version 2 " in text_of(after)
    assert NASTY[:60] not in after.text
    bare = world.train(validation={"method": "none"}, name="bare")
    assert "without validation" in text_of(ours.get(f"/console/models/{bare}/calibration"))


def test_parts_as_pages_and_as_fragments(world: World, ours: Browser) -> None:
    for part in PARTS:
        page = ours.get(f"{world.page}/{part}")
        assert page.status_code == 200, part
        assert "churn:1" in text_of(page)
        fragment = ours.client.get(f"{world.page}/{part}", headers={"HX-Request": "true"})
        assert "<html" not in fragment.text
        assert text_of(fragment).strip() in text_of(page)
    assert NASTY in text_of(ours.get(f"{world.page}/importance"))
    chosen = text_of(ours.get(f"{world.page}/dependence", feature=NASTY))
    assert f"after {NASTY} is set" in chosen
    assert WORD in chosen
    assert "feature 'no' is unknown" in text_of(ours.get(f"{world.page}/dependence", feature="no"))
    assert "logistic" in text_of(ours.get(f"{world.page}/baselines"))
    tree = ours.get(f"/console/models/{world.second}/structure")
    assert "ranking tree of" in text_of(tree)
    drawing = ours.get(f"/console/models/{world.second}/download/tree.svg")
    assert drawing.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in drawing.headers["content-security-policy"]


@pytest.mark.parametrize(
    "algorithm", [{"name": "martirank"}, *rest({"name": "auto", "budget_seconds": 1.5})]
)
def test_a_row_scored_by_a_model_that_is_no_sum_has_reasons(
    world: World, ours: Browser, algorithm: dict[str, Any]
) -> None:
    """Of many features its reasons are estimated, and say which values set the row apart."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 12)).round(2)
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=300) > 0
    lines = [",".join([*(f"part{j}" for j in range(12)), "left"])]
    lines += [
        ",".join([*map(str, x), "yes" if late else "no"]) for x, late in zip(X, y, strict=True)
    ]
    dataset_id = world.service.upload(world.api, "\n".join([*lines, ""]), name="parts")
    done = world.service.train(world.api, dataset_id, name="parts", algorithm=algorithm)
    row = {f"f{j}": "3.5" if j == 2 else "0" for j in range(12)}
    page = ours.post(f"/console/models/{done['output']['id']}/score", **row)
    answer = text_of(page).partition("Reasons")[2]
    assert "part2 = 3.5" in answer
    assert "No reasons" not in answer


def test_the_leaderboard_of_auto(world: World, ours: Browser) -> None:
    model_id = world.train(
        name="auto", algorithm={"name": "auto", "budget_seconds": 0.2}, baselines=True
    )
    assert "Candidates of auto" in text_of(ours.get(f"/console/models/{model_id}/history"))
    page = ours.get(f"/console/models/{model_id}/leaderboard")
    board = world.ask("leaderboard", model_id)
    candidates = board["candidates"]
    assert ("<caption>Members" in page.text) == (len(board["members"]) > 1)
    assert page.text.count('class="badge chosen"') == sum(
        each["state"] == "chosen" for each in candidates
    )
    text = text_of(page)
    for each in candidates:
        assert each["algorithm"] in text
        # What is nearly as good, or better, than the best alone is told so that a minus is no riddle.
        assert not re.search(r"-\d", each["reason"] or "")
    tried = sum(each["state"] != "untried" for each in candidates)
    assert f"auto tried {tried} candidates" in text
    assert ("Not tried: " in text) == (tried < len(candidates))
    # Whether simple benchmark models are worse is not known where there was no time for them, or nobody asked.
    baselines = world.ask("baselines", model_id)
    assert baselines["beats"] is None
    evaluated = text_of(ours.get(f"/console/models/{model_id}/baselines"))
    assert baselines["skipped"] in evaluated
    unasked = ours.get(f"/console/models/{world.second}/baselines").text
    assert '/retrain">retrain it<' in unasked
    structure = ours.get(f"/console/models/{model_id}/structure")
    assert structure.status_code == 200
    assert world.ask("structure", model_id)["type"] in text_of(structure)


def test_downloads(world: World, ours: Browser) -> None:
    for name, kind in (
        ("report.html", "text/html"),
        ("roc.csv", "text/csv"),
        ("artifact", "application/octet-stream"),
        ("python", "text/x-python"),
        ("sql", "application/sql"),
        ("structure.json", "application/json"),
    ):
        answer = ours.get(f"{world.page}/download/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["content-type"].startswith(kind)
    direct = world.api.get(f"/v1/models/{world.first}/artifact").content
    assert ours.get(f"{world.page}/download/artifact").content == direct
    for name in ("nothing", "out-of-fold.csv"):
        assert ours.get(f"{world.page}/download/{name}").status_code == 404


def test_a_format_that_cannot_hold_the_model_says_why(world: World, ours: Browser) -> None:
    page = f"/console/models/{world.train(name='order', algorithm={'name': 'martirank'})}"
    history = ours.read(f"{page}/history")
    assert not [name for name in ("onnx", "python", "sql") if f"{page}/download/{name}" in history]
    refused = ours.get(f"{page}/download/sql")
    assert refused.status_code == 422
    assert all(mentions(text_of(refused), value) for value in ("martirank", "sql"))


def test_rows_by_a_plain_form(world: World, ours: Browser) -> None:
    form = ours.get(f"{world.page}/score")
    preview = world.api.get(f"/v1/datasets/{world.dataset_id}/preview?limit=1").json()
    assert f'value="{preview["data"][0][0]:g}"' in form.text
    bad = ours.post(f"{world.page}/score", f0=NASTY, f1="true", f2="")
    assert bad.status_code == 422
    assert re.search(r'(?s)role="alert".*?<a href="#f0">age</a></p>', bad.text)
    assert "&lt;script&gt;" in bad.text
    for number in ("-inf", "inf", "1e999"):
        assert ours.post(f"{world.page}/score", f0=number, f1="", f2="").status_code == 422
    good = ours.post(f"{world.page}/score", f0="44", f1="false", f2=WORD)
    row = {"age": 44, "member": False, NASTY: WORD}
    scored = world.api.post(f"/v1/models/{world.first}/score", json={"rows": [row]}).json()
    assert f"Score {scored['scores'][0]:.4f}" in re.sub(r"\s+", " ", text_of(good))
    chain = world.train(algorithm={"name": "martirank", "n_rounds": 2}, name="chain")
    other = text_of(ours.post(f"/console/models/{chain}/score", f0="44", f1="true", f2=""))
    assert "Score " in other
    assert "age = 44" in other
    assert "±" not in other  # of three features it is exact
    for body in ("[", "[1]", '{"age": 1}', json.dumps({NASTY: 1})):
        answer = ours.post(f"{world.page}/score", row=body)
        assert answer.status_code == 422, body
    beyond = ours.post(f"{world.page}/score", row='{"age": 1e400, "member": true}')
    assert alert(beyond.text).endswith(" age")
    assert " got '1e400'" in text_of(beyond)


def test_dates_and_numbers_are_taken_as_they_are_shown(world: World, ours: Browser) -> None:
    """And as the table has them: it was written in an office in Germany."""
    rows = "".join(
        f"{i % 28 + 1}.{i % 12 + 1}.2026{' 08:00' if i % 2 else ''};{i % 5 + 1}.000,5;{i % 12 > 6}\n"
        for i in range(120)
    )
    said = {"label": "late", "positive": "True", "decimal": "comma", "thousands": "point"}
    dataset_id = world.service.upload(world.api, "since;x;late\n" + rows, **said)
    preview = world.api.get(f"/v1/datasets/{dataset_id}/preview", params={"limit": 2}).json()
    assert [row[0] for row in preview["data"]] == ["2026-01-01", "2026-02-02T08:00:00Z"]
    page = text_of(ours.get(f"/console/datasets/{dataset_id}"))
    assert "2026-01-01 to 2026-12-28" in page
    assert "2026-02-02 08:00" in page
    pages = [page]
    for algorithm in ({"name": "treerank", "max_depth": 2},):
        at_random = {"method": "holdout", "time_column": None}  # with dates as features
        job = world.service.train(
            world.api, dataset_id, name="late", algorithm=algorithm, validation=at_random
        )
        model_id = job["output"]["id"]
        address = f"/console/models/{model_id}"
        # What stands in the form is taken as it is.
        form = ours.get(f"{address}/score").text
        shown = re.findall(r'name="f\d+" value="([^"]*)"', form)
        assert shown == ["2026-01-01", "1000,5"]
        assert "for example 1.234,56." in html.unescape(form)
        scored = ours.post(f"{address}/score", f0=shown[0], f1=shown[1])
        assert scored.status_code == 200
        same = ours.post(f"{address}/score", f0=shown[0], f1="1.000,5")
        read, meant = (text_of(each).partition("Score a row")[2] for each in (same, scored))
        assert read == meant != ""
        assert ours.post(f"{address}/score", f0="1.1.2026", f1="1000.5").status_code == 422
        assert ours.post(f"{address}/score", f0="1.1.2026", f1="1000,5").status_code == 200
        wrong = ours.post(f"{address}/score", f0="1/1/2026", f1="1.23")
        assert wrong.status_code == 422
        assert " as 1.234,5, got '1.23'" in text_of(wrong)
        assert " as 2026-01-31" in text_of(wrong)
        assert 'action="' + address + '/score#answer"' in form
        # Conditions and axes say dates, too.
        structure = text_of(ours.get(f"{address}/structure"))
        assert re.search(r"since (<=|>) 2026-\d\d-\d\d", structure)
        dependence = ours.get(f"{address}/dependence", feature="since")
        assert ">2026-01-01<" in dependence.text
        axis = world.ask("partial-dependence", model_id, feature="since")["features"][0]
        assert axis["values"][0] == "2026-01-01"
        pages += [text_of(scored), text_of(dependence)]
    drawing = ours.get(f"{address}/download/tree.svg").text
    assert "2026-" in drawing
    assert not [page for page in [*pages, drawing] if re.search(r"\b17[6-9]\d{7}", page)]


@long_form
def test_a_table_may_say_nothing_of_thousands(world: World, ours: Browser) -> None:
    """Decimal commas alone, or an encoding alone, are said of most tables."""
    rows = "".join(f"{i % 7},5;{i % 11};{'ja' if i % 3 else 'nein'}\n" for i in range(120))
    text = "x;y;late\n" + rows
    for said, example, entered in (
        ({"decimal": "comma"}, "for example 1234,56.", "3,5"),
        ({"encoding": "latin-1", "categorical": "x"}, "for example 1234.56.", "3,5"),
    ):
        params = {"label": "late", "positive": "ja", "delimiter": "semicolon", **said}
        job = world.service.train(world.api, world.service.upload(world.api, text, **params))
        address = f"/console/models/{job['output']['id']}/score"
        assert example in html.unescape(ours.read(address))
        assert ours.post(address, f0=entered, f1="4").status_code == 200


def test_aliases_by_plain_forms(world: World, ours: Browser, sentences: Sentences) -> None:
    page = world.page
    for alias in ("!", "", " ", "?", "…"):
        answer = ours.post(f"{page}/aliases", alias=alias)
        assert answer.status_code == 422, alias
        sentences(alert(answer.text))
        assert f'value="{alias.strip()}"' in html.unescape(answer.text)
    assert ours.post(f"{page}/aliases", alias="champion").status_code == 303
    again = ours.post(f"{page}/aliases", alias="champion")
    assert again.status_code == 412
    assert " at revision 1" in alert(again.text)
    second = f"/console/models/{world.second}"
    assert "Point champion here" in text_of(ours.get(f"{second}/aliases"))
    assert ours.post(f"{second}/aliases", alias="champion", revision="7").status_code == 412
    assert ours.post(f"{second}/aliases", alias="champion", revision="1").status_code == 303
    shown = re.sub(r"\s+", " ", text_of(ours.get(f"{second}/aliases")))
    assert "points to version 2 " in shown
    history = ours.get(f"{second}/aliases").text.partition('class="worded history"')[2]
    history = history.partition("</table>")[0]
    assert re.findall(r"version (\d)", history) == ["2", "1"]
    assert "churn@champion" in text_of(ours.get(second))
    careful = "/v1/models/churn/aliases/careful"
    world.api.put(careful, json={"model_id": world.second, "guarantee": {"fpr": 0.2}})
    assert "(target: FPR ≤ 0.2 on the validation rows)" in text_of(ours.get(f"{second}/aliases"))
    world.api.delete(careful, headers={"If-Match": '"1"'})
    remove = f"{second}/aliases/champion/remove"
    for revision in ("1", "", "x"):
        answer = ours.post(remove, revision=revision)
        assert answer.status_code == (412 if revision == "1" else 422)
        assert "points to version 2" in re.sub(r"\s+", " ", text_of(answer))
    assert ours.post(remove, revision="2").status_code == 303
    assert "No aliases yet" in text_of(ours.get(f"{second}/aliases"))
    assert ours.post(remove, revision="2").status_code == 404
    assert ours.get(remove).status_code == 404
    assert ours.post(f"{second}/aliases", alias="champion").status_code == 303
    assert "churn:2" in text_of(ours.get("/console/models/churn@champion"))
    used = ours.post(f"{second}/delete")
    assert used.status_code == 409
    assert " churn@champion" in alert(used.text)
    gone = world.train(name="gone")
    gone_to = ours.post(f"/console/models/{gone}/delete").headers["location"]
    assert gone_to == f"/console/models?deleted={gone}"
    assert ours.get(f"/console/models/{gone}").status_code == 404


def test_models_without_one_curve_have_pages_too(world: World, ours: Browser) -> None:
    api, service = world.api, world.service
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 2)).round(2).tolist()
    tagged = "".join(f"{a},{b},{int(a > 0)},{int(b > a)}\n" for a, b in rows)
    answer = api.post(
        "/v1/datasets",
        params={"kind": "multilabel", "labels": "hot, big"},
        content="a,b,hot,big\n" + tagged,
        headers={"Content-Type": "text/csv"},
    )
    service.work()
    dataset_id = answer.json()["id"]
    service.train(api, dataset_id, name="tags", algorithm={"name": "adaboost_mr", "n_rounds": 3})
    page = "/console/models/tags"
    text = text_of(ours.get(page))
    for words in ("Mean AUC", "hot", "big", "2 of 2"):
        assert words in text
    assert "Threshold" not in text
    for part in PARTS:
        assert ours.get(f"{page}/{part}").status_code == 200, part
    assert "big" in text_of(ours.get(f"{page}/importance", label="big"))
    scored = text_of(ours.post(f"{page}/score", f0="1", f1="2", label="big"))
    assert "Reasons for big" in scored

    items = "".join(f"m{i},{a},{b}\n" for i, (a, b) in enumerate(rows[:40]))
    answer = api.post(
        "/v1/datasets",
        params={"kind": "preferences", "item": "film"},
        content="film,a,b\n" + items,
        headers={"Content-Type": "text/csv"},
    )
    service.work()
    dataset_id = answer.json()["id"]
    better = [
        (i, k) if rows[i][0] > rows[k][0] else (k, i) for i in range(40) for k in range(i + 1, 40)
    ]
    api.put(
        f"/v1/datasets/{dataset_id}/pairs",
        content="better,worse\n" + "".join(f"m{i},m{k}\n" for i, k in better),
        headers={"Content-Type": "text/csv"},
    )
    service.work()
    service.train(api, dataset_id, name="films")
    text = text_of(ours.get("/console/models/films"))
    assert "Pairs in order" in text
    lineage = text_of(ours.get("/console/models/films/history"))
    assert "objective: fraction of pairs in order" in re.sub(r"\s+", " ", lineage)
    assert "Score " in text_of(ours.post("/console/models/films/score", f0="1", f1="2"))

    service.train(api, world.dataset_id, name="unevaluated", validation={"method": "none"})
    unevaluated = text_of(ours.get("/console/models/unevaluated"))
    assert "has no validation" in unevaluated
    assert "AUC" in text_of(ours.get("/console/models/unevaluated", on="train"))
    assert "Reasons" in text_of(
        ours.post("/console/models/unevaluated/score", f0="1", f1="", f2="")
    )


# --- costs by amount -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loans(start: Callable[..., Service]) -> tuple[Service, str]:
    """A service with a model of loans, whose table has decimal commas and marks between thousands."""
    service = start()
    client = service.client(service.key())
    rng = np.random.default_rng(0)
    lines = ["kredit;alter;heute;ausfall"]
    for amount, age in zip(rng.lognormal(8, 0.7, 400), rng.normal(40, 9, 400), strict=True):
        bad = rng.random() < 1 / (1 + np.exp((age - 36) / 4 + 9000 / (amount + 3000) - 1))
        spelled = f"{amount:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")
        now = "ablehnen" if amount > 6000 else "annehmen"
        lines.append(f"{spelled};{age:.1f};{now};{'ja' if bad else 'nein'}".replace(".5;", ",5;"))
    text = "\n".join([lines[0], *(re.sub(r";(\d+)\.(\d)", r";\1,\2", each) for each in lines[1:])])
    params = {"name": "kredite", "label": "ausfall", "positive": "ja", "decimal": "comma"}
    dataset = service.upload(
        client, text + "\n", **params, thousands="point", delimiter="semicolon"
    )
    job = service.train(client, dataset, name="kredite")
    return service, job["output"]["id"]


LOAN_COSTS = {
    "cost_false_positive": "1.234,5",
    "cost_false_negative": "0,6",
    "amount": "kredit",
    "rule": "heute",
    "rule_flags": "ablehnen",
    "rows": "200",
    "review": "200",
}


def test_costs_by_amount_without_a_script(loans: tuple[Service, str]) -> None:
    """Entered as in the table, and shown as the API has them."""
    service, model = loans
    ours, api = Browser(service), service.client(service.key())
    asked: dict[str, Any] = {
        "cost_false_positive": 1234.5,
        "cost_false_negative": 0.6,
        "total_rows": 200,
    }
    asked |= {name: LOAN_COSTS[name] for name in ("amount", "rule", "rule_flags")}
    found = api.get(f"/v1/models/{model}/operating-point", params=asked).raise_for_status().json()
    page = ours.get(f"/console/models/{model}", **LOAN_COSTS)
    assert page.status_code == 200
    shown = text_of(page)
    for metric in ("cost", "saved_to_random", "saved_to_rule"):
        total = found["cost"]["totals"][metric]
        ends = " to ".join(spelled(total[end]) for end in ("low", "high"))
        assert f"{spelled(total['value'])} {ends}" in re.sub(r"\s+", " ", shown)
    assert f"flagging none costs {spelled(found['cost']['totals']['flag_none'])}" in shown
    for name, value in LOAN_COSTS.items():
        kept = rf'name="{name}"[^>]*value="{re.escape(value)}"|<option selected>{value}</option>'
        assert re.search(kept, page.text), name
    for plain in ("1234.5", "0.6"):  # as the page itself shows numbers
        page = ours.get(f"/console/models/{model}", **LOAN_COSTS | {"cost_false_positive": plain})
        assert not re.search(r'id="e-cost_false_positive"[^>]*>([^<]+)<', page.text)
    # What is wrong is said at its field, and the rest of the page stays.
    for name, value, words in (
        ("amount", "heute", "amount must be a column of numbers"),
        ("rule_flags", "x", "rule_flags must be a value of"),
        ("rule", "gestern", "rule must be a column of dataset"),
        ("cost_false_positive", "1.234", "can mean 1234 or 1,234"),
    ):
        wrong = ours.get(f"/console/models/{model}", **LOAN_COSTS | {name: value})
        assert wrong.status_code == 200
        (fault,) = re.findall(rf'id="e-{name}"[^>]*>([^<]+)<', wrong.text)
        assert words in fault
        assert 'id="curve"' in wrong.text


def test_a_memo_has_the_costs_that_were_meant(loans: tuple[Service, str]) -> None:
    service, model = loans
    ours, api = Browser(service), service.client(service.key())
    address = f"/console/models/{model}?cost_false_positive=1.234,5&cost_false_negative=0,6"
    asked = {"threshold": "0.1", "alias": "live", "keep": "threshold", "why": "address"}
    saved = ours.post(address, **asked, confirmed="yes")
    assert saved.status_code == 303, saved.text
    memo = api.get("/v1/models/kredite/aliases/live").json()["memo"]
    assert (memo["cost_false_positive"], memo["cost_false_negative"]) == (1234.5, 0.6)


def test_a_guarantee_has_the_capacity_that_was_entered(loans: tuple[Service, str]) -> None:
    """And not the share of the validation rows, which is below it; another cutoff keeps its own share."""
    service, model = loans
    ours, api = Browser(service), service.client(service.key())
    address = f"/console/models/{model}?review=21&rows=97"
    for capacity, expected in ((21 / 97, 21 / 97), (0.1, None)):
        query = {"flagged": capacity}
        point = api.get(f"/v1/models/{model}/operating-point", params=query).json()
        asked = {"threshold": repr(point["threshold"]), "alias": "busy", "keep": "flagged"}
        alias = api.get("/v1/models/kredite/aliases/busy")
        known = {"revision": str(alias.json()["revision"])} if alias.is_success else {}
        saved = ours.post(address, **asked, **known, why="capacity", confirmed="yes")
        assert saved.status_code == 303, saved.text
        kept = api.get("/v1/models/kredite/aliases/busy").json()["guarantee"]["flagged"]
        assert kept == (point["flagged"]["value"] if expected is None else expected)
    assert kept < capacity


def test_an_evaluation_reads_costs_as_its_model_does(loans: tuple[Service, str]) -> None:
    service, model = loans
    ours, api = Browser(service), service.client(service.key())
    dataset = api.get(f"/v1/models/{model}").json()["dataset_id"]
    fields = {"model": model, "dataset_id": dataset, "amount": "kredit"}
    sent = ours.post(
        "/console/evaluations", **fields, false_negative="0,6", false_positive="1.234,5"
    )
    assert sent.status_code == 303, sent.text
    made = api.get(sent.headers["location"].replace("/console", "/v1")).json()
    assert made["costs"]["false_negative"]["rate"] == 0.6
    assert made["costs"]["false_positive"]["fixed"] == 1234.5


def test_counts_are_rounded_after_their_differences() -> None:
    """1,000 rows, 100 of them positive: 43.0 are flagged, of which 24.6 are positive and 18.4 are not."""
    counts = count_at(0.246, 18.4 / 900, 100.0, 900.0)
    assert (counts.true_positives, counts.false_positives) == (25, 18)
    assert (counts.false_negatives, counts.true_negatives) == (75, 882)


def test_rates_at_the_best_cutoff_of_the_same_rows_are_said_to_be_optimistic() -> None:
    places = {"ks": 3, "capacity": 5, "@live": 7}
    assert [is_at(places, CHOSEN_ON_ROWS, index) for index in (3, 5, 7)] == [True, False, False]
