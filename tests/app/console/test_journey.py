"""A risk analyst's day in a browser; hostile names; and what pages weigh."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import rankwright
from playwright.sync_api import Locator, Page, expect
from rankwright import types
from rankwright.types import AliasRequest, EvaluationThresholdGroups, ModelThresholdGroups

from app.access import service as keys
from app.access import sessions
from app.console.rendering import number as spelled
from app.console.rendering import points as spelled_points
from tests.app.console.conftest import Visit
from tests.app.console.hands import Keyboard
from tests.app.console.loans import loans
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service
from tests.long_form import LONG_FORM, long_form, rest


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


# --- a risk analyst's day ------------------------------------------------------------------------

WIDTHS = (390, 820, 1440)


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as pages show it."""
    assert value is not None
    return f"{100 * value:.{digits}f} %"


class Day:
    """What an analyst does in a day, in the order of the methods; each compares the pages with the client's values."""

    def __init__(self, service: Service, window: Visit, folder: Path) -> None:
        self.service, self.window, self.folder = service, window, folder
        self.at = Keyboard(window)
        self.page = window.page
        self.width = self.page.viewport_size["width"]
        self.owner = f"analyst-{self.width}"
        self.secret = service.key(self.owner, name="Risk team")
        self.api = rankwright.Client(service.url, self.secret)
        second = service.key(self.owner, name="Head of risk", scopes=["read", "approve"])
        self.head = rankwright.Client(service.url, second)
        """A second person, who approves."""

    # --- what all steps need ---------------------------------------------------------------------

    def look(self) -> None:
        """Fail if the page breaks a rule of accessibility, or is wider than the window."""
        self.fits()
        # The head that stays lies over a part of what is scrolled.
        self.page.evaluate("scrollTo(0, 0)")
        self.window.check()

    def fits(self) -> None:
        """Fail if the page is wider than the window; in the short form, one day tries the widths of the long one."""
        self.window.settle()
        assert self.page.evaluate(TOO_WIDE) == [], self.page.url
        if not LONG_FORM:
            for other in WIDTHS:
                self.page.set_viewport_size({"width": other, "height": 900})
                assert self.page.evaluate(TOO_WIDE) == [], (self.page.url, other)
            self.page.set_viewport_size({"width": self.width, "height": 900})

    def link(self, name: str | re.Pattern[str], within: Locator | Page | None = None) -> Locator:
        return (within or self.page).get_by_role("link", name=name, exact=True).first

    def button(self, name: str | re.Pattern[str], within: Locator | Page | None = None) -> Locator:
        return (within or self.page).get_by_role("button", name=name, exact=True).first

    def field(self, name: str, within: Locator | Page | None = None) -> Locator:
        return (within or self.page).get_by_label(name, exact=True).first

    def region(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    def heading(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("heading", name=name).first

    def part(self, name: str, title: str) -> Locator:
        """Return a part of a model's page, which comes by itself."""
        found = self.page.locator(f"#{name}")
        self.at.wait(found.get_by_role("heading", name=title).first)
        return found

    def tab(self, name: str) -> None:
        """Go to a part of a model's page."""
        self.at.follow(
            self.link(name, self.page.get_by_role("navigation", name="Parts of the page"))
        )

    def shown_id(self) -> str:
        return re.sub(r"[?#].*", "", self.page.url).rpartition("/")[2]

    def folded(self, title: str | re.Pattern[str], within: Locator | Page | None = None) -> None:
        """Open a folded part of the page."""
        self.at.unfold((within or self.page).locator("summary").filter(has_text=title))

    # --- the steps -------------------------------------------------------------------------------

    def sign_in(self) -> None:
        """Open the link that a colleague has sent."""
        link = self.service.context.db.writing(sessions.make_link, self.secret)
        self.page.goto(f"{self.service.url}/console/sign-in?link={link}")
        self.at.follow(self.button("Sign in"))
        self.at.wait(self.heading("Welcome to Rankwright"))
        self.look()

    def upload(self) -> None:
        """Upload the table of 2024, whose encoding and decimals are repaired at once; the sex is protected."""
        at, page = self.at, self.page
        (file := self.folder / "kredite.csv").write_bytes(loans(1500, 1))
        at.follow(self.link("Upload a table"))
        at.give(self.field("Drop a file here, or choose one"), file)
        self.window.expect("status of 422")  # the checks of the head of the table
        at.click(
            page.get_by_role("button", name="Fill in decimal = comma, encoding = windows-1252")
        )
        at.wait(self.region("Columns of the file"))
        expect(page.get_by_text("suggested by its name")).to_have_count(1)
        at.tick(self.field("geschlecht is protected"))
        at.tick(self.field("ja"))
        self.look()
        at.click(self.button("Upload"))
        at.wait(self.link("Train on this"))
        self.look()
        self.dataset = self.shown_id()
        found = self.api.datasets.get(self.dataset)
        assert (found.rows, found.protected, found.positive) == (1500, ["geschlecht"], "ja")
        types = {each.name: (each.type, each.role) for each in found.columns or []}
        assert types["plz"] == ("categorical", "feature")
        assert types["antragsdatum"][0] == "datetime"
        assert types["einkommen"] == types["betrag"] == ("numeric", "feature")
        assert types["geschlecht"][1] == "protected"
        tiles = " ".join(page.locator("dl.grid").first.inner_text().split())
        assert f"Rows 1,500 Positives {found.positives:,}" in tiles

    def train(self) -> None:
        """Train a scorecard, validated on the newest quarter of the loans, with the directions of two columns."""
        at = self.at
        at.follow(self.link("Train on this"))
        self.choose_algorithm("Scorecard (bins and points)", "scorecard")
        self.validate_on_the_newest()
        self.folded("Parameters")
        self.folded("No column constrained")
        at.choose(self.field("Effect of einkommen"), "decreasing")
        at.choose(self.field("Effect of betrag"), "increasing")
        expect(self.page.get_by_text("geschlecht: declared as protected")).to_be_visible()
        self.first = self.train_now()
        model = self.api.models.get(self.first).data
        assert model.algorithm["monotone"] == {"einkommen": "decreasing", "betrag": "increasing"}
        assert "geschlecht" not in [each.name for each in model.features]

    def choose_algorithm(self, title: str, name: str) -> None:
        """Choose an algorithm, for which the form is drawn again, and name the model."""
        self.at.choose(self.field("Algorithm"), title)
        self.at.wait(self.page.get_by_text(f"{name}: ", exact=False).first)
        self.at.write(self.field("Model name"), "kredite")

    def validate_on_the_newest(self) -> None:
        """Hold out the newest quarter; the field of the time column comes with the choice."""
        self.at.choose(self.field("Validate on"), "Held-out rows")
        self.at.write(self.field("Time column"), "antragsdatum")

    def train_now(self) -> str:
        """Submit the form, wait for the model, and go to its page."""
        self.at.wait(self.page.get_by_text("Ready to train"))
        self.fits()
        self.at.follow(self.button("Train"))
        return self.open_what_was_made()

    def open_what_was_made(self) -> str:
        self.at.wait(self.link("View model"))
        self.look()
        self.at.follow(self.link("View model"))
        self.at.wait(self.region("Verdict"))
        return self.shown_id()

    def read_the_verdict(self) -> None:
        """The measures and the checks of the model's page are those of the API."""
        model = self.api.models.get(self.first)
        verdict = self.region("Verdict")
        metrics = model.read_metrics()
        assert isinstance(metrics, types.Metrics)
        for words in (
            f"AUC {spelled(metrics.auc.value)}",
            f"({spelled(metrics.auc.low)} to {spelled(metrics.auc.high)})",
            f"Gini {spelled(metrics.gini.value)}",
            f"KS {spelled(metrics.ks)}",
            "held-out rows, the newest by antragsdatum",
        ):
            expect(verdict).to_contain_text(words)
        checks = verdict.locator(".checks li")
        found = model.checks().findings
        expect(checks).to_have_count(len(found))
        for row, check in zip(checks.all(), found, strict=True):
            badge = check.answer.replace("_", " ")
            assert row.locator(".badge").inner_text() == badge
            assert check.words in row.inner_text()
        expect(self.page.locator("#protected")).to_contain_text("geschlecht")
        self.look()

    def compare_groups(self) -> None:
        """The rates of the sexes at a threshold are those of the API."""
        at = self.at
        at.click(self.page.locator("summary").filter(has_text="Protected groups at this threshold"))
        part = self.page.locator("#groups")
        at.wait(part.locator("table").first)
        at.write(self.field("Threshold", part), "-1.5")
        at.click(self.button("Show", part))
        at.wait(part.get_by_text("score of at least -1.5 are flagged"))
        found = self.api.models.get(self.first).groups_at(threshold=-1.5)
        self.compare_ratios(part, found)
        self.look()

    def compare_ratios(
        self, part: Locator, found: ModelThresholdGroups | EvaluationThresholdGroups
    ) -> None:
        (column,) = found.columns
        assert column.column == "geschlecht"
        rows = part.locator("tbody tr")
        expect(rows).to_have_count(len(column.groups))
        for row, group in zip(rows.all(), column.groups, strict=True):
            text = " ".join(row.inner_text().split())
            assert f"{group.rows:,}" in text
            for each in (group.not_flagged, group.not_flagged_ratio, group.tpr, group.fpr):
                if each is not None and each.value is not None:
                    assert spelled(each.value) in text, (text, each)
        ratios = [each.not_flagged_ratio for each in column.groups]
        assert any(each is not None and each.value not in (None, 1.0) for each in ratios)
        expect(part).to_contain_text(column.words)

    def edit_the_scorecard(self) -> None:
        """In the workshop: points at another scale and at a cutoff, two bins merged, edges edited, and a refit."""
        at, page = self.at, self.page
        model = self.api.models[self.first]
        self.tab("Explain")
        self.part("scorecard", "Scorecard")
        at.follow(self.link("Edit bins"))
        at.wait(self.heading("Scorecard workshop"))
        bins = model.bins()
        self.compare_bins(bins)
        at.write(page.get_by_label("Points to double the odds"), "40")
        at.write(page.get_by_label("Points cutoff"), "520.5")
        at.follow(self.button("Apply"))
        cutoff = model.points_cutoff(points=520.5, pdo=40)
        shown = page.locator(".done")
        expect(shown).to_contain_text(f"At most {spelled(cutoff.points, 2)} points")
        expect(shown).to_contain_text(f"flags {percent(cutoff.tpr)} of the positives")
        expect(shown).to_contain_text(f"{percent(cutoff.fpr)} of the negatives")
        self.compare_bins(model.bins(pdo=40))
        self.look()
        # Amounts in round numbers, and the two best purposes as one.
        amount = [each.name for each in bins.features].index("betrag")
        self.unfold_feature("betrag")
        at.write(page.locator(f"[id='edges.{amount}']"), "5000; 10000; 20000")
        self.unfold_feature("zweck")
        at.follow(
            page.get_by_role(
                "button", name=re.compile("^Merge .* with the next bin of zweck$")
            ).first
        )
        self.unfold_feature("betrag")
        expect(page.locator(f"[id='edges.{amount}']")).to_have_value("5000; 10000; 20000")
        expect(page.get_by_text("Edited, not yet refitted")).to_be_visible()
        at.follow(self.button("Refit with these bins"))
        self.second = self.open_what_was_made()
        made = self.api.models.get(self.second).data
        assert (made.name, made.version) == ("kredite", 2)
        assert made.algorithm["bins"]["betrag"] == [5000, 10000, 20000]
        purposes = {each.name: each for each in bins.features}["zweck"].bins
        groups = [each for each in purposes if each.of == "categories"]
        assert len(made.algorithm["bins"]["zweck"]) == len(groups) - 1

    def unfold_feature(self, name: str) -> None:
        """Show the bins of a feature, if they are folded."""
        summary = self.page.locator("form.workshop summary").filter(has_text=name)
        if summary.count():
            self.at.unfold(summary)

    def compare_bins(self, found: Any) -> None:
        """The points of each bin on the page are those of the API."""
        folded = self.page.locator("summary").filter(has_text="Points table")
        if folded.count():
            self.at.unfold(folded)
        table = self.page.locator("table").filter(
            has=self.page.get_by_role("columnheader", name="Rounded")
        )
        rows = table.locator("tbody tr")
        points = [found.base_points] + [one.points for each in found.features for one in each.bins]
        expect(rows).to_have_count(len(points))
        shown = [row.locator("td").nth(-2).inner_text() for row in rows.all()]
        assert shown == [spelled_points(each) for each in points]

    def choose_a_cutoff(self) -> None:
        """Costs by the amount and a capacity choose a threshold, which the protected name `produktion` gets."""
        at, page = self.at, self.page
        model = self.api.models[self.second]
        at.write(page.get_by_label("Cost of a false positive"), "900")
        at.write(page.get_by_label("Cost of a false negative"), "0,45")
        at.choose(page.get_by_label("False negative: times the column"), "betrag")
        at.wait(page.locator('[data-metric="cost"]'))
        self.window.settle()
        at.write(page.get_by_label("I can review"), "50")
        at.write(page.get_by_label("of", exact=True), "300")
        self.window.settle()
        at.wait(page.locator('[data-metric="cost"]'))
        # Of all thresholds that flag so few rows, none costs less.
        self.costs: dict[str, Any] = {
            "cost_false_positive": 900,
            "cost_false_negative": 0.45,
            "amount": "betrag",
        }
        along = model.operating_points(points=300, flagged=50 / 300, **self.costs)
        assert along.of_flagged is not None
        self.threshold = along.points[along.of_flagged].threshold
        shown = page.locator("[data-threshold]")
        expect(shown).to_have_attribute("data-threshold", repr(self.threshold))
        point = model.operating_point(threshold=self.threshold, **self.costs)
        few = [each for each in along.points if each.flagged.value <= 50 / 300]
        assert point.cost.value == min(each.cost.value for each in few)
        self.compare_point(point, rows=300)
        self.wait_for_groups()
        self.look()
        at.write(page.get_by_label("Alias", exact=True), "produktion")
        at.follow(self.button("Save cutoff…"))
        self.look()
        at.write(page.get_by_label("Reason", exact=True), "Fifty files a day.")
        at.follow(self.button("Save to produktion"))
        at.wait(page.get_by_text("Saved. kredite@produktion flags scores of"))
        self.wait_for_groups()
        self.look()
        alias = self.api.models.read_alias("kredite", "produktion")
        assert (alias.model_id, alias.cutoff.threshold) == (self.second, self.threshold)
        assert alias.memo.amount == "betrag"
        assert alias.memo.reason == "Fifty files a day."
        assert (alias.memo.review, alias.memo.rows) == (50, 300)

    def wait_for_groups(self) -> None:
        """Wait until the groups are compared at the cutoff, which a script asks for once the cutoff rests."""
        self.window.unfold()
        threshold = self.page.locator("[data-threshold]").get_attribute("data-threshold") or ""
        expect(self.page.locator("#groups-threshold")).to_have_value(threshold)
        self.window.settle()

    def compare_point(self, point: Any, rows: int) -> None:
        for name, digits in (("tpr", 3), ("fpr", 3), ("precision", 3), ("lift", 3), ("cost", 3)):
            shown = self.page.locator(f'[data-metric="{name}"] span').first
            expect(shown).to_have_text(spelled(getattr(point, name).value, digits))
        flagged = self.page.locator('[data-metric="flagged"] span').first
        expect(flagged).to_have_text(spelled(rows * point.flagged.value, 1))
        for name in ("saved_to_random",):
            shown = self.page.locator(f'[data-total-of="{name}"] span').first
            expect(shown).to_have_text(spelled(rows * getattr(point.cost, name).value))

    def train_another(self) -> None:
        """Retrain with another algorithm and the same settings."""
        self.at.follow(self.link("Retrain"))
        self.choose_algorithm("Logistic regression", "logistic")
        self.third = self.train_now()
        made = self.api.models.get(self.third).data
        assert (made.name, made.version, made.algorithm["name"]) == ("kredite", 3, "logistic")
        assert made.validation["time_column"] == "antragsdatum"

    def compare_versions(self) -> None:
        """Compare both on a later quarter, whose outcomes are known by now."""
        at, page = self.at, self.page
        self.quarter = self.api.upload(
            loans(1200, 2, year=2025, shift=1.0),
            name="quartal",
            label="ausfall",
            positive="ja",
            protected="geschlecht",
            encoding="latin-1",
            decimal="comma",
            media_type="text/csv",
        ).id
        at.follow(self.link("Compare", page.locator(".model-head")))
        at.pick("Models", "kredite:2", page)
        at.pick("Dataset", "quartal", page)
        at.write(page.get_by_label("I can review"), "50")
        at.write(page.get_by_label("of", exact=True), "300")
        at.follow(self.button("Compare"))
        at.wait(self.heading("ROC curves on these rows"))
        self.look()
        found = self.api.comparisons.get(self.shown_id()).data
        assert (found.dataset_id, found.warnings) == (self.quarter, [])
        (difference,) = found.result.windows[0].differences
        assert {difference.first, difference.second} == {self.second, self.third}
        cards = page.locator("section.card")
        window = cards.filter(has=self.heading("Areas")).first.locator("tbody tr")
        assert spelled(difference.value, 4) in window.first.inner_text()
        capacity = page.locator("#capacity table").first.locator("tbody tr")
        for row, each in zip(capacity.all(), found.result.capacity.values, strict=True):
            assert spelled(each.value, 1) in row.inner_text()

    def promote(self) -> None:
        """The alias is protected; pointing it to another version shows from and to, asks for a reason, and is approved
        by another person.
        """
        at, page = self.at, self.page
        at.follow(self.link("kredite:3"))
        self.tab("History and files")
        part = self.part("aliases", "Aliases")
        at.unfold(part.locator("summary").filter(has_text="Protect"))
        at.follow(self.button("Protect", part.locator("details.protection")))
        part = self.part("aliases", "Aliases")
        expect(part.get_by_text("protected", exact=True).first).to_be_visible()
        at.follow(self.link("Request to point produktion here…"))
        at.wait(self.heading("Point kredite@produktion to version 3?"))
        self.look()
        preview = self.api.models.preview_alias("kredite", "produktion", self.third)
        for row, of in (
            ("Rows flagged", "flagged"),
            ("True positive rate", "tpr"),
            ("Precision", "precision"),
        ):
            cells = (
                page.get_by_role("row")
                .filter(has=page.get_by_role("rowheader", name=row))
                .locator("td")
            )
            for cell, side in zip(cells.all(), (preview.before, preview.after), strict=True):
                assert percent(getattr(side.point, of).value) in cell.inner_text()
        reason = page.get_by_label(re.compile("^Reason"))
        assert preview.approval_required
        expect(reason).to_have_attribute("required", "")
        at.write(reason, "Simpler, and as good on the quarter.")
        at.follow(self.button("Request approval"))
        at.wait(page.get_by_text("You requested this change, so another person must approve it."))
        self.look()
        self.approve("Simpler, and as good on the quarter.")
        self.open_model()
        self.tab("History and files")
        part = self.part("aliases", "Aliases")
        expect(part).to_contain_text("points to version 3 (this version)")
        self.look()
        alias = self.api.models.read_alias("kredite", "produktion")
        assert (alias.model_id, alias.protected) == (self.third, True)
        assert alias.memo.reason == "Simpler, and as good on the quarter."
        assert (alias.history[0].author, alias.memo.approved_by) == ("Risk team", "Head of risk")
        self.moved = alias

    def approve(self, reason: str) -> AliasRequest:
        """Another person approves the open request; returns it."""
        (asked,) = self.api.alias_requests.list(state="open")
        assert (asked.reason, asked.author) == (reason, "Risk team")
        return self.head.alias_requests.approve(asked.id)

    def keep_the_evidence(self) -> None:
        """The evidence of the move is a ZIP whose files have the hashes of the API."""
        with self.page.expect_download() as download:
            self.at.click(self.page.get_by_role("link", name=re.compile(r"^\d+ files?$")).first)
        content = Path(download.value.path()).read_bytes()
        revision = next(
            each
            for each in self.api.models.alias_revisions("kredite", "produktion")
            if each.revision == self.moved.revision
        )
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = {
                name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()
            }
        assert {each.name: each.sha256 for each in revision.evidence}.items() <= found.items()
        kinds = [each.of for each in revision.evidence]
        assert {"report", "comparison"} <= set(kinds), kinds

    def comment(self) -> None:
        """Leave a comment for colleagues."""
        part = self.part("comments", "Comments")
        self.at.write(part.get_by_label("New comment on version 3"), "Watch the loans for debts.")
        self.at.follow(self.button("Add comment", part))
        (comment,) = self.api.models[self.third].comments()
        assert (comment.text, comment.author) == ("Watch the loans for debts.", "Risk team")
        part = self.part("comments", "Comments")
        expect(part).to_contain_text("Watch the loans for debts.")

    def score_a_row(self) -> None:
        """One application, with numbers as in the table: its score and its flag are those of the API."""
        at, page = self.at, self.page
        self.tab("Score")
        at.write(self.field("einkommen"), "1450,5")
        at.write(self.field("betrag"), "28000")
        at.write(self.field("laufzeit"), "72")
        at.choose(self.field("zweck"), "Umschuldung")
        row = {"einkommen": 1450.5, "betrag": 28000, "laufzeit": 72, "zweck": "Umschuldung"}
        row["plz"] = self.field("plz").input_value()  # the most frequent one, unless it is changed
        at.click(self.button("Score"))
        answer = page.locator("#answer")
        at.wait(answer.get_by_text("Score").first)
        self.look()
        scored = self.api.models["kredite@produktion"].score([row], reasons=2)[0]
        expect(answer).to_contain_text(f"Score {spelled(scored['score'], 4)}")
        assert scored["score"] >= self.moved.cutoff.threshold
        expect(answer).to_contain_text("Flagged: at or above the cutoff of produktion")

    def score_a_batch(self) -> None:
        """New applications without outcomes: what is flagged, and whether they are like those of the validation."""
        at, page = self.at, self.page
        (rows := self.folder / "neu.csv").write_bytes(
            loans(1000, 3, year=2025, shift=1.0, label=False)
        )
        at.follow(self.link("Score a file"))
        own = page.locator("form[data-upload]")
        self.folded("File format", own)
        at.choose(self.field("CSV encoding", own), "Latin-1")
        at.choose(self.field("CSV decimal separator", own), "comma: 1,5")
        at.give(self.field("Table", own), rows)
        at.write(self.field("Columns to keep", own), "kreditnr")
        at.follow(self.button("Score", own))
        at.wait(self.link("Download CSV"))
        batch = self.api.batch_scores.get(self.shown_id())
        summary, drift = batch.summary(), batch.drift()
        assert (batch.data.model_id, batch.data.alias, summary.rows) == (
            self.third,
            "produktion",
            1000,
        )
        tiles = " ".join(" ".join(page.locator(".tile").all_inner_texts()).split())
        assert (
            f"Flagged by produktion {summary.flagged:,} {percent(summary.flagged / 1000)}" in tiles
        )
        assert f"PSI of the score {spelled(drift.scores.psi.value)}" in tiles
        assert f"KS distance {spelled(drift.scores.distance)}" in tiles
        section = self.region("Same scores and columns as at validation?")
        assert drift.finding.answer == "no"
        expect(section.locator(".badge").first).to_have_text("no")
        expect(section).to_contain_text(drift.finding.words)
        self.look()

    def evaluate(self) -> None:
        """The quarter with its outcomes: the measures and the ratios of the sexes are those of the API."""
        at, page = self.at, self.page
        self.open_model()
        at.follow(self.link("Evaluate"))
        at.pick("Dataset", "quartal", page)
        at.follow(self.button("Evaluate"))
        at.wait(self.heading("Changes since validation"))
        self.evaluation = self.shown_id()
        evaluation = self.api.evaluations.get(self.evaluation)
        found = evaluation.data
        assert (found.dataset_id, found.seen) == (self.quarter, "new")
        assert "no" in {each.answer for each in found.findings}
        for each in found.findings:
            expect(page.get_by_text(each.words)).to_be_visible()
        at.unfold(page.locator("summary").filter(has_text="All metrics"))
        tiles = " ".join(" ".join(page.locator(".tile").all_inner_texts()).split())
        assert isinstance(found.metrics, types.EvaluatedCurve)
        for words in (
            f"AUC {spelled(found.metrics.auc.value)}",
            f"Gini {spelled(found.metrics.gini.value)}",
            f"KS {spelled(found.metrics.ks)}",
        ):
            assert words in tiles, (words, tiles)
        overall = next(each for each in found.drift.scores if each.of == "all")
        at.unfold(page.locator("summary").filter(has_text="Tests of probabilities and scores"))
        expect(page.locator("tr").filter(has_text="All scores")).to_contain_text(
            spelled(overall.psi.value)
        )
        self.look()
        at.unfold(page.locator("summary").filter(has_text="Groups at a threshold"))
        part = page.locator("#groups")
        at.wait(part.locator("tbody tr").first)
        self.compare_ratios(part, evaluation.groups_at())

    def open_model(self) -> None:
        """Go to the page of the version in use, from the first page."""
        self.at.follow(self.page.locator(".brand"))
        self.at.follow(self.link("kredite@produktion"))

    def acknowledge(self) -> None:
        """The alarm is on the first page until somebody says why nothing else is done."""
        at, page = self.at, self.page
        at.follow(page.locator(".brand"))
        alarm = (
            self.region("Needs attention")
            .locator("li")
            .filter(has_text="kredite:3 (alias produktion) on quartal")
        )
        expect(alarm.locator(".badge")).to_have_text("changed")
        self.look()
        at.follow(self.link("Acknowledge", alarm))
        at.write(page.locator("#acknowledge").get_by_role("textbox"), "Known: higher incomes.")
        at.follow(self.button("Acknowledge"))
        at.wait(page.get_by_text("Acknowledged by Risk team").first)
        found = self.api.evaluations.get(self.evaluation).data
        assert found.acknowledgement.reason == "Known: higher incomes."
        at.follow(page.locator(".brand"))
        expect(alarm.locator(".badge")).to_have_text("acknowledged")
        expect(alarm).to_contain_text("Known: higher incomes.")
        at.follow(self.link("kredite:3 (alias produktion) on quartal", alarm))

    def recalibrate(self) -> None:
        """Its probabilities are fitted again on that quarter, with a reason, and put back as they were."""
        at, page = self.at, self.page
        model = self.api.models[self.third]
        at.follow(self.button("Recalibrate on these rows…"))
        at.wait(self.heading("Recalibrate kredite:3?"))
        self.look()
        reason = page.get_by_label(re.compile("^Reason"))
        expect(reason).to_have_attribute("required", "")
        at.write(reason, "Probabilities were off.")
        at.follow(self.button("Request approval"))
        at.wait(page.get_by_text("You requested this change, so another person must approve it."))
        self.api.jobs.get(self.approve("Probabilities were off.").job_id).wait()
        after = model.read_calibration()
        assert (after.version, after.history[0].reason) == (2, "Probabilities were off.")
        self.open_model()
        self.tab("Validation")
        part = self.part("calibration", "Probabilities")
        expect(part).to_contain_text("Calibration version 2")
        self.window.expect("status of 409")  # it is protected
        at.follow(self.button("Undo version 2", part))
        at.wait(self.heading("Restore calibration 1 of kredite:3?"))
        at.write(page.get_by_label(re.compile("^Reason")), "They were right.")
        at.follow(self.button("Request approval"))
        at.wait(page.get_by_text("You requested this change, so another person must approve it."))
        self.approve("They were right.")
        self.open_model()
        self.tab("Validation")
        part = self.part("calibration", "Probabilities")
        expect(part).to_contain_text("Calibration version 3")
        now = model.read_calibration()
        assert (now.version, now.restores) == (3, 1)

    def print_the_report(self) -> None:
        """The report of the version in use has few pages, its version and the threshold."""
        at, page = self.at, self.page
        self.open_model()
        self.tab("History and files")
        at.follow(page.locator("a[href$='/download/report.html']"))
        expect(page.get_by_role("heading", level=1)).to_contain_text("kredite")
        expect(page.get_by_text("version 3").first).to_be_attached()
        expect(page.get_by_text("Simpler, and as good on the quarter.").first).to_be_attached()
        assert page.evaluate(TOO_WIDE) == []
        pages = page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n")
        assert 2 <= pages <= 10

    def read_the_audit_log(self) -> None:
        """What changed, in words that name both versions and both thresholds."""
        at, page = self.at, self.page
        page.go_back()
        at.follow(self.link("Admin", page.get_by_role("navigation", name="Main")))
        at.follow(self.link("Audit"))
        self.look()
        entries = list(self.api.audit())
        text = page.locator("main").inner_text()
        threshold = f"{self.threshold:.6g}".replace("-", "\N{MINUS SIGN}")
        moved = f"produktion: kredite v2 (threshold {threshold}) → v3 (threshold {threshold})"
        assert any((each.summary or "").startswith(f"{moved}. Reason: ") for each in entries)
        for entry in self.api.audit_page(limit=50).data:
            assert not entry.summary or entry.summary in text
        assert "POST /" not in text


# By the keyboard alone. The pages' own tests use the mouse, and send forms as a browser without scripts does.
@long_form
@pytest.mark.parametrize("width", [1366, *rest(*WIDTHS)])
def test_a_risk_analysts_day(
    service: Service,
    visit: Callable[..., Visit],
    tmp_path: Path,
    width: int,
) -> None:
    """From a messy table to a version in use that was chosen for a reason, is watched, and can be put back."""
    day = Day(service, visit(service, width=width, dark=width == 820), tmp_path)
    day.sign_in()
    with service.at_work():
        day.upload()
        day.train()
        day.read_the_verdict()
        day.compare_groups()
        day.edit_the_scorecard()
        day.choose_a_cutoff()
        day.train_another()
        day.compare_versions()
        day.promote()
        day.keep_the_evidence()
        day.comment()
        day.score_a_row()
        day.score_a_batch()
        day.evaluate()
        day.acknowledge()
        day.recalibrate()
        day.print_the_report()
        day.read_the_audit_log()


# --- names that pages must not take for markup ---------------------------------------------------

SCRIPT = "<script>alert(1)</script>\"'{{ 7 * 7 }}</option><img src=x onerror=alert(2)>"
RIGHT_TO_LEFT = "שלום עולם"
TURNED = "\u202e" + RIGHT_TO_LEFT  # which no name may contain, but a value of a table may
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
    tags = {SCRIPT[:50]: EMOJI, RIGHT_TO_LEFT: LONG}
    jobs = [service.train(api, dataset_id, seed=seed, tags=tags) for seed in (1, 2)]
    models = [job["output"]["id"] for job in jobs]
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
        f"/console/jobs/{jobs[0]['id']}": (SCRIPT, EMOJI, RIGHT_TO_LEFT, LONG),
        "/console/models": (SCRIPT,),
        model: (SCRIPT, EMOJI),
        f"{model}/score": columns,
        f"{model}/explain": (),  # its parts come by themselves
        f"{model}/validation": (),
        f"{model}/history": (EMOJI, RIGHT_TO_LEFT, LONG),
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
    plain = PlainBrowser(service, secret=secret)
    for path, names in shown.items():
        page = plain.read(path)
        text = unescape(re.sub("<[^>]*>", "", page))
        assert [name for name in names if name not in text] == [], path
        assert not re.search(r"<img[^>]* src=.?x|<script(?![^>]* src=)", page), path
    window = visit(service, width=390)
    window.page.add_init_script(CALLS)
    page = window.sign_in(secret)
    for path in (
        "/console",
        f"/console/datasets/{dataset_id}",
        model,
        f"{model}/score",
        f"{model}/explain",
    ):
        window.open(path)
        window.settle()
        if path.endswith("/explain"):
            text = page.locator("main").text_content()
            assert [name for name in columns if name not in text] == []
        assert page.evaluate(TOO_WIDE) == [], path
        assert page.evaluate("document.querySelectorAll('img[src=x]').length") == 0


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
    window.sign_in_by_form(secret)
    assert 10_000 < first.weigh() <= 60_000

    # A curve of 250,000 points, as of so many rows that judge.
    model_id = service.train(api, dataset_id)["output"]["id"]
    service.lengthen_curve(model_id, 250_000)
    fresh = visit(service)
    fresh.sign_in_by_form(secret)
    heavy = Scales(fresh)
    page = fresh.open(f"/console/models/{model_id}")
    page.get_by_text("thresholds; use “Look up a cutoff” for any other").wait_for()
    assert "250,000" in page.inner_text("#curve")
    page.get_by_role("heading", name="Top of the list").wait_for()
    assert 30_000 < heavy.weigh() <= 90_000
