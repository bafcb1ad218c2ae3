"""An analyst's journey in a browser: from a link to an alias that moves; hostile names; and what pages weigh."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest
import xlsxwriter
from playwright.sync_api import Locator, Page, expect

from app.access import service as keys
from app.access import sessions
from app.console.rendering import number as spelled
from app.jobs import queue
from app.platform.tables import JobState
from tests.app.console.conftest import Visit
from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service
from tests.long_form import LONG_FORM


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


# --- an analyst's journey ------------------------------------------------------------------------

PLANS = ("basic", "family", "büro")


def customers(rows: int, seed: int, *, later: bool = False) -> str:
    """Customers with words, dates, gaps and repeated rows. About one in ten leaves ("ja"); later for other reasons."""
    rng = np.random.default_rng(seed)
    lines = ["customer,since,plan,bill,calls,leaves"]
    for n in range(rows):
        days, plan, calls = int(rng.integers(2000)), int(rng.integers(3)), int(rng.poisson(2))
        bill = float(rng.gamma(4, 15))
        reason = -(calls - 2) + (plan == 0) if later else (calls - 2) + (plan == 2)
        leaves = 1.5 * reason + bill / 30 - days / 1000 + rng.logistic() > 5
        cells = [
            f"c{seed}-{n}",
            (date(2019, 1, 1) + timedelta(days)).isoformat() if rng.random() > 0.05 else "",
            PLANS[plan] if rng.random() > 0.05 else "",
            f"{bill:.2f}" if rng.random() > 0.1 else "",
            calls,
            "ja" if leaves else "nein",
        ]
        lines += [",".join(map(str, cells))] * (2 if n % 10 == 0 else 1)
    return "\n".join(lines) + "\n"


def as_workbook(table: str, path: Path) -> Path:
    """Write a CSV as a spreadsheet, as an office keeps it: dates are dates, and amounts are numbers."""
    head, *lines = table.splitlines()
    with xlsxwriter.Workbook(path) as book:
        sheet, day = book.add_worksheet("Kunden"), book.add_format({"num_format": "dd.mm.yyyy"})
        sheet.write_row(0, 0, head.split(","))
        for row, line in enumerate(lines, start=1):
            for column, cell in enumerate(line.split(",")):
                if column == 1 and cell:
                    sheet.write_datetime(row, column, datetime.fromisoformat(cell), day)
                elif column in (3, 4) and cell:
                    sheet.write_number(row, column, float(cell))
                elif cell:
                    sheet.write_string(row, column, cell)
    return path


class Mouse:
    """What an analyst does at a window with a mouse; a page that changes by itself is waited for."""

    def __init__(self, window: Visit) -> None:
        self.page = window.page

    def click(self, what: Locator) -> None:
        what.click()

    def write(self, field: Locator, text: str) -> None:
        field.fill(text)

    def choose(self, field: Locator, text: str) -> None:
        field.select_option(label=text)

    def give(self, field: Locator, path: Path) -> None:
        field.set_input_files(path)

    def pick(self, name: str, part: str, within: Locator | Page) -> None:
        """Choose in a field of models or datasets the entry with this part in its name."""
        self.click(field := within.get_by_role("combobox", name=name))
        self.write(field, part)
        entry = self.page.get_by_role("option").filter(has_text=part)
        expect(entry).to_have_count(1)
        entry.click()

    def wait(self, what: Locator) -> None:
        what.wait_for()


class Keyboard(Mouse):
    """The same by the keyboard alone. What has the focus must be in sight."""

    def __init__(self, window: Visit) -> None:
        super().__init__(window)
        # Playwright asks the browser for choosers once somebody listens, and a key may be quicker than that.
        self.page.on("filechooser", lambda _: None)

    def reach(self, what: Locator) -> None:
        """Go on by the tabulator until `what` has the focus."""
        what.wait_for()
        there = what.element_handle()
        for _ in range(300):
            if at := there.evaluate(HAS_FOCUS):
                break
            if at is None:  # its part of the page was replaced
                there = what.element_handle()
            self.page.keyboard.press("Tab")
        else:
            pytest.fail(f"no key leads to {what}")
        assert there.evaluate(IN_SIGHT), f"{what} has the focus out of sight"

    def click(self, what: Locator) -> None:
        self.reach(what)
        box = what.evaluate("(each) => each.type") in ("checkbox", "radio")
        self.page.keyboard.press("Space" if box else "Enter")

    def write(self, field: Locator, text: str) -> None:
        self.reach(field)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def choose(self, field: Locator, text: str) -> None:
        self.reach(field)
        self.page.keyboard.type(text)

    def give(self, field: Locator, path: Path) -> None:
        self.reach(field)
        with self.page.expect_file_chooser() as chooser:
            self.page.keyboard.press("Enter")
        chooser.value.set_files(path)

    def pick(self, name: str, part: str, within: Locator | Page) -> None:
        field = within.get_by_role("combobox", name=name)
        self.write(field, part)
        entry = self.page.get_by_role("option").filter(has_text=part)
        expect(entry).to_have_count(1)
        while "marked" not in (entry.get_attribute("class") or ""):
            self.page.keyboard.press("ArrowDown")
        self.page.keyboard.press("Enter")


class NoScript(Mouse):
    """The same where scripts are off: a page changes by loading it again."""

    def pick(self, name: str, part: str, within: Locator | Page) -> None:
        select = within.locator("select").and_(within.get_by_label(name, exact=True))
        # An entry that cannot be chosen yet says why, until the page is loaded again.
        entries = select.locator("option:not([disabled])").filter(has_text=part)
        self.load_until(lambda: entries.count() > 0, f"{name}: {part}")
        entry = entries.first.get_attribute("value") or ""
        select.select_option([*select.evaluate(CHOSEN), entry])

    def wait(self, what: Locator) -> None:
        self.load_until(what.is_visible, str(what))

    def load_until(self, there: Callable[[], bool], what: str) -> None:
        """Load the page again until what is asked for is there."""
        until = time.monotonic() + 60
        while not there():
            assert time.monotonic() < until, f"{what} did not come"
            time.sleep(0.2)
            self.page.reload()


# What is chosen in a select of several; one that takes one value is given the new one alone.
CHOSEN = "(each) => each.multiple ? [...each.selectedOptions].map((option) => option.value) : []"

HAS_FOCUS = "(each) => each.isConnected ? each === document.activeElement : null"

# In the middle of the element stands the element, or what belongs to it.
IN_SIGHT = """(each) => {
  const { left, right, top, bottom } = each.getBoundingClientRect();
  const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return there !== null && (each.contains(there) || there.contains(each));
}"""

# The short form: once by each pair of hands, in windows of three sizes; by the mouse to the end, by others as far as a
# scored row.
WAYS = [(Mouse, 1366, False), (Keyboard, 390, True), (NoScript, 1920, False)]
if LONG_FORM:
    WAYS += [(Mouse, width, dark) for width in (390, 1366, 1920) for dark in (False, True)][1:]


@pytest.mark.parametrize(("hands", "width", "dark"), WAYS)
def test_from_a_link_to_an_alias_that_moves(
    service: Service,
    visit: Callable[..., Visit],
    tmp_path: Path,
    hands: type[Mouse],
    width: int,
    dark: bool,
) -> None:
    """What a table of customers becomes: a cut, flagged rows with reasons, drift a month later, a better version."""
    owner = f"{hands.__name__.lower()}-{width}-{'dark' if dark else 'light'}"
    scripts = hands is not NoScript
    secret = service.key(owner)
    api = service.client(secret)
    window = visit(service, width=width, dark=dark, script=scripts)
    page, at = window.page, hands(window)

    def look() -> None:
        """The page is sound; in the short form the walk with a mouse looks at it in other windows, too."""
        if scripts:
            window.settle()
        assert page.evaluate(TOO_WIDE) == [], page.url
        if hands is Mouse and not LONG_FORM:
            page.emulate_media(color_scheme="dark")
            for other in (1920, 390):
                page.set_viewport_size({"width": other, "height": 900})
                assert page.evaluate(TOO_WIDE) == [], (page.url, other)
        if scripts:
            # The head that stays lies over a part of what is scrolled.
            page.evaluate("scrollTo(0, 0)")
            window.check()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if dark else "light")

    def link(name: str, within: Locator | Page = page, *, exact: bool = True) -> Locator:
        return within.get_by_role("link", name=name, exact=exact).first

    def button(name: str, within: Locator | Page = page) -> Locator:
        return within.get_by_role("button", name=name, exact=True)

    def shown_id() -> str:
        return re.sub(r"[?#].*", "", page.url).rpartition("/")[2]

    def upload(file: Path) -> None:
        """From the first page to a dataset, with an answer to which rows are to be caught."""
        at.click(link("Upload a table"))
        at.give(page.get_by_label("Drop a file here, or choose one"), file)
        step = page.get_by_role("region", name="Which rows are positive?")
        if scripts:
            columns = page.get_by_role("region", name="Columns of the file")
            assert "date" in columns.get_by_role("row", name="since").inner_text()
            at.click(step.get_by_label("ja", exact=True))
            look()
            at.click(button("Upload"))
            at.wait(link("Train on this"))
            return
        at.write(page.get_by_label("Name", exact=True), file.stem)
        at.click(button("Upload"))
        step = page.locator("#label-step")
        at.wait(step)
        step.get_by_label("nein", exact=True).uncheck()
        at.click(step.get_by_label("ja", exact=True))
        at.click(button("Read again with these values"))
        at.wait(link("Train on this"))

    page.goto(
        f"{service.url}/console/sign-in?link={service.context.db.writing(sessions.make_link, secret)}"
    )
    at.click(button("Sign in"))
    at.wait(page.get_by_role("heading", name="Welcome to Rankwright"))
    look()

    with service.at_work():
        # The table: its repeated rows lead to the group, which keeps them on one side.
        upload(as_workbook(customers(1500, 1), tmp_path / "may.xlsx"))
        repeated = page.locator(".tile").filter(has_text="Duplicate rows")
        assert int(repeated.locator("dd").inner_text().split()[0]) >= 150  # and a few by chance
        look()
        at.click(
            button(
                "Group by customer (1,500 values)",
                page.get_by_role("region", name="Duplicate rows"),
            )
        )
        at.wait(page.get_by_text("Rows with the same customer stay on the same side of a split"))
        dataset = api.get(f"/v1/datasets/{shown_id()}").json()
        assert (dataset["positive"], dataset["group"]) == ("ja", "customer")

        # A model, and what it is worth in words.
        at.click(link("Train on this"))
        at.choose(page.get_by_label("Algorithm", exact=True), "Boosted ranking trees (RankBoost)")
        if not scripts:
            at.click(button("Update the form"))
        at.wait(page.get_by_text("rankboost: ", exact=False).first)
        at.write(page.get_by_label("Model name"), "leavers")
        if scripts:
            at.wait(page.get_by_text("Ready to train"))
            look()
        at.click(button("Train"))
        at.wait(link("View model"))
        look()
        at.click(link("View model"))
        verdict = page.get_by_role("region", name="Verdict")
        at.wait(verdict)
        first = shown_id()
        model = f"/v1/models/{first}"
        folds = (
            "on 1,650 rows, each scored by rankers that were trained without it: 5-fold cross-val"
        )
        expect(verdict).to_contain_text(re.compile(r"AUC 0\.\d{3} .* " + folds))
        # The cut is found among all thresholds; no other one that flags so few rows costs less.
        costs = {"cost_false_positive": 1, "cost_false_negative": 8}
        query = {"points": 300, "flagged": 0.01, **costs}
        along = api.get(f"{model}/operating-points", params=query).json()
        few = [each for each in along["points"] if each["flagged"]["value"] <= 0.01]
        top = min(few, key=lambda each: each["cost"]["value"])
        assert top == along["points"][along["of_flagged"]]
        look()

        # What errors cost, and what can be reviewed, which chooses the cut; the alias keeps the share.
        at.write(page.get_by_label("Cost of a false positive"), "1")
        at.write(page.get_by_label("Cost of a false negative"), "8")
        if scripts:
            at.wait(page.locator('[data-metric="cost"]'))
        at.write(page.get_by_label("I can review"), "10")
        at.write(page.get_by_label("of", exact=True), "1000")
        if not scripts:
            at.click(button("Apply"))
        at.wait(page.locator('[data-metric="cost"]'))
        threshold = page.locator("[data-threshold]")
        expect(threshold).to_have_attribute("data-threshold", repr(top["threshold"]))
        share = f"{100 * top['flagged']['value']:.1f} %"
        caught, low, high = (f"{100 * top['tpr'][name]:.0f} %" for name in ("value", "low", "high"))
        expect(verdict).to_contain_text(f"flags the top {share} of the rows and finds")
        expect(verdict).to_contain_text(f"finds {caught} ({low} to {high}) of the positives")
        asked = {"threshold": top["threshold"], **costs}
        cutoff = api.get(f"{model}/operating-point", params=asked).json()
        cost = page.locator('[data-metric="cost"] span').first
        expect(cost).to_have_text(f"{spelled(cutoff['cost']['value'])}")
        at.write(page.get_by_label("Alias", exact=True), "champion")
        at.choose(page.get_by_label("Later versions keep"), "the share of flagged rows")
        at.click(button("Save cutoff…"))
        at.write(page.get_by_label("Reason", exact=True), "Two people call back.")
        at.write(page.get_by_label("Approved by"), "Head of sales")
        at.click(button("Save to champion"))
        at.wait(page.get_by_text("Saved. leavers@champion flags scores of"))
        look()
        alias = api.get("/v1/models/leavers/aliases/champion").json()
        assert alias["model_id"] == first
        assert alias["guarantee"]["flagged"] == top["flagged"]["value"]
        assert alias["cutoff"]["threshold"] == top["threshold"]
        assert (alias["memo"]["review"], alias["memo"]["cost_false_negative"]) == (10, 8)
        at.click(link("Open the report"))
        for words in (
            "Ready for use?",
            "Two people call back.",
            "Head of sales",
            "10 of 1,000 rows",
        ):
            expect(page.get_by_text(words).first).to_be_visible()
        page.go_back()

        # A row, and a file with reasons: what is flagged is flagged by that cut.
        at.click(link("Score", page.get_by_role("navigation", name="Parts of the page")))
        for name, value in (("since", "2019-05-01"), ("bill", "120.5"), ("calls", "9")):
            at.write(page.get_by_label(name, exact=True), value)
        at.click(button("Score"))
        at.wait(page.get_by_text(re.compile("^Flagged: at or above the cutoff of champion")))
        look()
        if hands is not Mouse and not LONG_FORM:
            return
        at.click(link("Score a file"))
        own = page.locator("form[data-upload]")
        (rows := tmp_path / "june.csv").write_text(customers(400, 2))
        at.give(own.get_by_label("Table", exact=True), rows)
        at.write(own.get_by_label("Columns to keep"), "customer")
        at.write(own.get_by_label("Reasons per row"), "2")
        at.click(button("Score", own))
        at.wait(link("Download CSV"))
        batch = api.get(f"/v1/batch-scores/{shown_id()}").json()
        summary = api.get(f"/v1/batch-scores/{shown_id()}/summary").json()
        assert (batch["model_id"], batch["alias"], summary["rows"]) == (first, "champion", 440)
        assert summary["flagged"] > 0
        assert summary["threshold"] == top["threshold"]
        tiles = " ".join(" ".join(page.locator(".tile").all_inner_texts()).split())
        assert f"Flagged by champion {summary['flagged']} " in tiles
        table = page.get_by_role("region", name="Rows with the highest scores")
        # In a small window the table is cards, which have no cells.
        flagged = table.locator("tbody tr").filter(
            has=page.locator("td").filter(has_text=re.compile(r"^\s*yes\s*$"))
        )
        expect(flagged).to_have_count(summary["flagged"])
        assert re.search(r"^c2-\d+$", flagged.first.locator("th, td").nth(1).inner_text())
        assert re.search(r"(calls|bill|plan|since) .* → \+", flagged.first.inner_text())
        look()

        # A month later leaving has other reasons: the evaluation says what has changed, and so does the model's page.
        (june := tmp_path / "june-known.csv").write_text(customers(1500, 3, later=True))
        at.click(link("Data"))
        upload(june)
        later = shown_id()
        expect(link("Evaluate on this")).to_have_attribute(
            "href", re.compile(f"evaluations.dataset_id={later}")
        )
        at.click(link("Models"))
        at.click(link("leavers:1"))
        at.click(link("Evaluate"))
        if scripts:
            expect(page.get_by_role("combobox", name="Model")).to_have_value(
                re.compile("leavers@champion")
            )
        at.pick("Dataset", "june-known", page)
        at.click(button("Evaluate"))
        at.wait(page.get_by_role("heading", name="Changes since validation"))
        found = api.get(f"/v1/evaluations/{shown_id()}").json()
        assert (found["dataset_id"], found["seen"], found["drift"]["changed"]) == (
            later,
            "new",
            True,
        )
        expect(page.get_by_text(found["drift"]["summary"])).to_be_visible()
        expect(
            page.get_by_text("The cutoff of leavers@champion was planned to flag ")
        ).to_be_visible()
        look()

        # Its probabilities are learnt anew from that month.
        at.click(button("Recalibrate on these rows…"))
        at.wait(page.get_by_role("heading", name="Recalibrate leavers:1?"))
        look()
        at.write(page.get_by_label("Reason", exact=True), "Other reasons to leave.")
        at.click(button("Recalibrate"))
        at.wait(page.get_by_role("heading", name="leavers", level=1))
        at.wait(page.get_by_text("succeeded", exact=True).first)
        assert api.get(f"{model}/calibration").json()["version"] == 2
        page.goto(f"{service.url}/console/evaluations/{found['id']}")

        # A second version learns from that month, and is compared on rows that neither has seen.
        at.click(link("model"))
        # What was said of the probabilities no longer holds; the rest does.
        worse, _, _ = found["drift"]["summary"].partition(" Probabilities are ")
        assert worse != found["drift"]["summary"]
        expect(verdict).to_contain_text(worse)
        expect(verdict).to_contain_text("The probabilities were recalibrated after this evaluation")
        expect(verdict).not_to_contain_text("Probabilities are ")
        at.click(link("Retrain"))
        at.pick("Dataset", "june-known", page)
        if not scripts:
            at.click(button("Update the form"))
        expect(page.get_by_label("Algorithm", exact=True)).to_have_value("rankboost")
        expect(page.get_by_label("Model name")).to_have_value("leavers")
        if scripts:
            at.wait(page.get_by_text("Ready to train"))
        at.click(button("Train"))
        at.wait(link("View model"))
        at.click(link("View model"))
        at.wait(verdict)
        second = shown_id()
        july = service.upload(
            api, customers(1000, 4, later=True), name="july", label="leaves", positive="ja"
        )
        at.click(link("Compare", page.locator(".model-head")))
        at.pick("Models", "leavers:1", page)
        at.pick("Dataset", "july", page)
        at.click(button("Compare"))
        at.wait(page.get_by_role("heading", name="ROC curves on these rows"))
        compared = api.get(f"/v1/comparisons/{shown_id()}").json()
        assert (compared["dataset_id"], compared["warnings"]) == (july, [])
        (difference,) = compared["result"]["windows"][0]["differences"]
        assert {difference["first"], difference["second"]} == {first, second}
        assert difference["adjusted_p_value"] < 0.05
        look()

        # The alias moves to the better one, which flags the same share of rows.
        at.click(link("leavers:2"))
        at.click(link("History and files"))
        if not scripts:
            at.click(link("Aliases of this model"))
        at.click(link("Point champion here…"))
        at.wait(page.get_by_role("heading", name="Point leavers@champion to version 2?"))
        look()
        at.write(page.get_by_label("Reason", exact=True), "Better on the rows of July.")
        at.click(button("Point champion to version 2"))
        title = page.get_by_role("heading", level=1)
        at.wait(title.filter(has_text="leavers:2").filter(has_text="leavers@champion"))
        if scripts:
            at.wait(page.get_by_text("leavers@champion points to version 2 (this version)"))
        look()
        alias = api.get("/v1/models/leavers/aliases/champion").json()
        assert (alias["model_id"], alias["guarantee"]["flagged"]) == (
            second,
            top["flagged"]["value"],
        )
        assert alias["memo"]["reason"] == "Better on the rows of July."
        moved = api.get(
            f"/v1/models/{second}/operating-point",
            params={"threshold": alias["cutoff"]["threshold"]},
        ).json()
        assert 0 < moved["flagged"]["value"] <= top["flagged"]["value"]

        # The first page says what is in use. A colleague who may only read sees the same, and nothing to change.
        at.click(page.locator(".brand"))
        in_use = page.get_by_role("region", name="In use")
        expect(in_use.get_by_role("row").filter(has_text="leavers@champion")).to_contain_text(
            "version 2"
        )
        look()
        reader = PlainBrowser(service, owner, scopes=["read"])
        for path in (
            "/console",
            "/console/models",
            f"/console/models/{second}",
            f"/console/models/{second}/history",
        ):
            text = reader.read(path)
            for word in (
                "Save cutoff",
                "Retrain",
                "Delete selected",
                "Create alias",
                "Upload a table",
            ):
                assert word not in text, (path, word)
        assert "leavers@champion" in reader.read(f"/console/models/{second}")

        # A dataset is deleted, which says what depends on it, and comes back from the trash.
        at.click(link("Data"))
        at.click(link("june-known"))
        page.once("dialog", lambda dialog: dialog.accept())
        at.click(button("Delete"))
        at.wait(page.get_by_text(re.compile("Moved to the trash")).first)
        at.click(link("Trash"))
        look()
        at.click(page.get_by_role("button", name=re.compile("^Restore june-known")))
        at.wait(page.get_by_text(re.compile("june-known")).first)
        assert api.get(f"/v1/datasets/{later}").json()["status"] == "ready"


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
    page.get_by_text("The job was cancelled").wait_for()
    page.get_by_role("button", name="Retry").wait_for()


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
        f"{model}/explain": columns,
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
    window = visit(service, width=390)
    window.page.add_init_script(CALLS)
    page = window.sign_in(secret)
    for path, names in shown.items():
        window.open(path)
        if path.startswith((model, "/console/train")):  # parts come by themselves
            window.settle()
        text = page.evaluate("document.documentElement.textContent")
        assert [name for name in names if name not in text] == [], path
        assert page.evaluate(TOO_WIDE) == [], path
        assert (
            page.evaluate("document.querySelectorAll('img[src=x], script:not([src])').length") == 0
        )

    # Names that have a form of their own are refused in words, and kept as they were entered.
    window.expect("status of 422|status of 404")
    window.open(f"{model}/history")
    page.get_by_label("New alias").fill("<>")
    page.get_by_role("button", name="Create alias").click()
    page.get_by_role("alert").filter(has_text="lowercase letter (a to z)").wait_for()
    assert page.get_by_label("New alias").input_value() == "<>"
    window.open("/console/train?" + urlencode({"name": "<>", "dataset_id": dataset_id}))
    page.locator("#check").get_by_role(
        "link", name="“Model name” must start with a lowercase letter"
    ).wait_for()
    assert page.get_by_label("Model name").input_value() == "<>"
    window.open("/console/models?" + urlencode({"name": SCRIPT}))
    page.get_by_role("alert").filter(has_text="name must start with a lowercase letter").wait_for()


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


def test_a_long_list_comes_in_pages_of_fifty(service: Service) -> None:
    api = service.client(service.key("many"))
    model_id = service.train(api, service.upload(api))["output"]["id"]
    service.copy_model(model_id, range(120))
    browser = PlainBrowser(service, "many")
    path, pages = "/console/models", []
    while path:
        text = browser.get(path).text
        pages.append(re.findall(r">((?:churn|m\d+):\d+)</a>", text))
        older = re.search(r'rel="next" href="([^"]+)"', text)
        path = html.unescape(older[1]) if older else ""
    assert [len(page) for page in pages] == [50, 50, 21]
    assert len({name for page in pages for name in page}) == 121
