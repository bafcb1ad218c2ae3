"""The scorecard workshop: the page shows the API's values, edits bins without a script, and trains with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import numpy as np
import pytest

from tests.app.console.plain_browser import PlainBrowser, alert
from tests.app.live_service import OWNER, Service
from tests.app.scoring.test_scorecard import people
from tests.long_form import long_form, rest


class World:
    """A service with a scorecard and another model."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.api = service.client(service.key())
        self.dataset = service.upload(self.api, people(600), label="bad", positive="yes")
        algorithm = {"name": "scorecard", "special_values": {"amount": [9.7]}}
        self.model = self.train(algorithm=algorithm, name="card")
        self.page = f"/console/models/{self.model}/bins"

    def train(self, **job: Any) -> str:
        found: str = self.service.train(self.api, self.dataset, **job)["output"]["id"]
        return found

    def bins(self) -> Any:
        return self.api.get(f"/v1/models/{self.model}/bins").json()


@pytest.fixture(scope="module")
def world(start: Callable[..., Service]) -> World:
    return World(start())


def fields_of(page: str) -> dict[str, str]:
    """Return the fields that edit bins."""
    found = re.findall(
        r'<input id="[^"]+" name="((?:edges|special|group)\.[^"]+)"[^>]*value="([^"]*)"', page
    )
    assert found
    return {name: unescape(value) for name, value in found}


def unfolded(page: str) -> list[int]:
    """Return the numbers of the features whose bins are shown."""
    folds = re.findall(r'<details class="[^"]*"( open)?>\s*<summary><h3>', page)
    assert folds
    return [j for j, shown in enumerate(folds) if shown]


def test_it_shows_the_values_of_the_api(world: World) -> None:
    browser = PlainBrowser(world.service)
    page = browser.read(f"{world.page}?points=500")
    for feature in world.bins()["features"]:
        assert feature["name"] in page
        for each in feature["bins"]:
            if each["of"] == "values" and each["high"] is not None:
                assert f"{each['high']:.10g}" in page
    assert "500" in page
    assert f"{world.page}" in browser.read(f"/console/models/{world.model}/scorecard")
    assert alert(browser.read(f"{world.page}?pdo=0", 422))
    assert alert(browser.read(f"{world.page}?points=x", 422))


def test_merging_edits_the_fields_and_trains_nothing(world: World) -> None:
    browser = PlainBrowser(world.service)
    fields = fields_of(browser.read(world.page))
    n_jobs = len(world.api.get("/v1/jobs").json()["data"])
    for name, value in fields.items():
        j = name.split(".")[1]
        if name.startswith("edges") and ";" in value:
            answer = browser.post(world.page, **fields, merge=f"{j}.0")
            assert unfolded(answer.text) == [int(j)]
            assert fields_of(answer.text)[name] == value.partition(";")[2].strip()
        if name == f"group.{j}.0":
            answer = browser.post(world.page, **fields, merge=f"{j}.0")
            assert fields_of(answer.text)[f"group.{j}.1"] == value
    for nonsense in ("9.0", "x", "0.99", "", "0"):
        assert browser.post(world.page, **fields, merge=nonsense).status_code in {200, 303}
    assert len(world.api.get("/v1/jobs").json()["data"]) <= n_jobs + 1  # an empty name is a refit


def test_a_refit_trains_with_the_edited_bins(world: World) -> None:
    browser = PlainBrowser(world.service)
    fields = fields_of(browser.read(world.page))
    names = [each["name"] for each in world.bins()["features"]]
    amount, purpose = names.index("amount"), names.index("purpose")
    edited = fields | {
        f"edges.{amount}": "7; 9 11.5",
        f"special.{amount}": "",
        f"monotone.{amount}": "increasing",
        f"group.{purpose}.0": "1",
        f"group.{purpose}.1": "1",
    }
    answer = browser.post(world.page, **edited, refit="yes")
    assert answer.status_code == 303
    job = world.api.get(answer.headers["Location"].replace("/console", "/v1")).json()
    bins = job["algorithm"]["bins"]
    assert bins["amount"] == [7.0, 9.0, 11.5]
    assert [sorted(group) for group in bins["purpose"]] == [["car", "house"]]
    assert job["algorithm"]["monotone"] == {"amount": "increasing"}
    assert not job["algorithm"].get("special_values")
    assert (job["name"], job["dataset_id"]) == ("card", world.dataset)
    # and training again from that job's model keeps them
    world.service.work()
    made = world.api.get(f"/v1/jobs/{job['id']}").json()["output"]["id"]
    location = browser.get(f"/console/models/{made}/retrain").headers["Location"]
    assert "algorithm.bins=" in location


def test_bad_values_are_shown_beside_their_fields(world: World) -> None:
    browser = PlainBrowser(world.service)
    fields = fields_of(browser.read(world.page))
    assert unfolded(browser.read(world.page)) == [0]
    edges = next(name for name in fields if name.startswith("edges"))
    group = next(name for name in fields if name.startswith("group"))
    for name, value in ((edges, "3; x"), (edges, "nan"), (group, "a"), (group, "")):
        answer = browser.post(world.page, **fields | {name: value}, refit="yes")
        assert answer.status_code == 422
        assert f'aria-describedby="e-{name}"' in answer.text
        assert unfolded(answer.text) == [int(name.split(".")[1])]
    answer = browser.post(world.page, **fields | {edges: "5; 3"}, refit="yes")
    assert answer.status_code == 422
    assert "5" in alert(answer.text)


def test_the_score_form_shows_the_letter(world: World) -> None:
    entry = {
        "code": "R1",
        "text": "Amount",
        "columns": ["amount"],
        "letter": "Your {feature} of {value} is <b>high</b>.",
    }
    browser = PlainBrowser(world.service)
    features = world.api.get(f"/v1/models/{world.model}").json()["features"]
    values = {"amount": "17.5", "purpose": "car"}
    row = {f"f{i}": values[each["name"]] for i, each in enumerate(features)}
    page = f"/console/models/{world.model}/score"
    assert 'class="letter"' not in browser.post(page, **row).text
    answer = world.api.put("/v1/models/card/reason-codes", json={"entries": [entry]})
    assert answer.is_success, answer.text
    shown = browser.post(page, **row).text
    assert "Your amount of 17.5 is &lt;b&gt;high&lt;/b&gt;." in shown


def test_scores_and_cutoffs_are_shown_in_points(world: World) -> None:
    """With the scale of the model; those of other models have no points."""
    scale = {"pdo": 40, "base_score": 500}
    card = world.train(algorithm={"name": "scorecard", **scale}, name="scaled")
    other = world.train(algorithm={"name": "logistic"}, name="line")
    row = {"amount": 17.5, "purpose": "car"}
    browser = PlainBrowser(world.service)
    for model, name in ((card, "scaled"), (other, "line")):
        body = {"model_id": model, "guarantee": {"flagged": 0.2}}
        alias = world.api.put(f"/v1/models/{name}/aliases/live", json=body).json()
        features = world.api.get(f"/v1/models/{model}").json()["features"]
        sent = {f"f{i}": str(row[each["name"]]) for i, each in enumerate(features)}
        answer = browser.post(f"/console/models/{model}/score", **sent).text
        decide = browser.get(f"/console/models/{model}").text
        if model == other:
            assert "data-points" not in decide
            assert " points" not in answer
            continue
        query = {"threshold": alias["cutoff"]["threshold"]}
        cutoff = world.api.get(f"/v1/models/{model}/scorecard/cutoff", params=query).json()
        points = world.api.post(f"/v1/models/{model}/score", json={"rows": [row]}).json()["points"]
        assert f"<strong>{points[0]:.1f}</strong> points" in answer
        assert f"at most {cutoff['points']:.1f} points" in answer
        assert f"data-points>{cutoff['points']:.1f} points" in decide


def test_a_decision_page_does_without_points_while_the_artifact_is_lost(world: World) -> None:
    folder = world.service.blobs.root / "artifacts"
    before = set(folder.rglob("*"))
    card = world.train(algorithm={"name": "scorecard", "pdo": 30}, name="lost")
    browser = PlainBrowser(world.service)
    assert "data-points" in browser.read(f"/console/models/{card}")
    for path in set(folder.rglob("*")) - before:
        if path.is_file():
            path.unlink()
    world.service.app.state.models.forget(OWNER, card)
    page = browser.read(f"/console/models/{card}")
    assert "data-points" not in page
    assert "data-threshold" in page


def many_features(rows: int = 400, features: int = 20) -> str:
    """Return a CSV with so many numeric features, the first of which have information."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    bad = X[:, :4].sum(axis=1) + rng.normal(size=rows) > 1.0
    lines = [",".join([*(f"x{j}" for j in range(features)), "bad"])]
    for row, label in zip(X.tolist(), bad.tolist(), strict=True):
        lines.append(",".join([*(f"{value:.3f}" for value in row), "yes" if label else "no"]))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def long_page(world: World) -> str:
    """The workshop of a scorecard of twenty features."""
    dataset = world.service.upload(world.api, many_features(), label="bad", positive="yes")
    job = world.service.train(world.api, dataset, algorithm={"name": "scorecard"}, name="long")
    return f"/console/models/{job['output']['id']}/bins"


@long_form
@pytest.mark.parametrize(("width", "dark"), [(1440, True), *rest((390, False))])
def test_it_fits_the_window(
    world: World, long_page: str, visit: Callable[..., Any], width: int, dark: bool
) -> None:
    window = visit(world.service, width=width, dark=dark)
    page = window.sign_in(world.service.key())
    window.open(long_page)
    window.check()
    assert page.evaluate("document.documentElement.scrollHeight") < (
        3_200 if width > 1000 else 5_500
    )
    page.locator('button[name="merge"]:visible').first.click()
    assert page.locator("details.feature[open] .badge", has_text="edited").is_visible()


def test_a_fold_opens_by_link_and_by_keyboard(
    world: World, long_page: str, visit: Callable[..., Any]
) -> None:
    window = visit(world.service, script=False)
    page = window.sign_in(world.service.key())
    window.open(long_page)
    page.locator('a[href="#feature-7"]').click()
    page.locator("#edges\\.7").fill("-1; 0; 1")
    summary = page.locator("details.feature > summary").nth(5)
    summary.focus()
    page.keyboard.press("Enter")
    page.locator("#edges\\.5").fill("0; 1")
    merge = page.locator('button[name="merge"]:visible').first
    assert merge.get_attribute("formaction")
    merge.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('details.feature .badge').length > 1")
    assert page.locator("#edges\\.7").input_value() == "-1; 0; 1"
    assert page.locator("#edges\\.7").is_visible()
    assert page.locator("#edges\\.5").is_visible()
