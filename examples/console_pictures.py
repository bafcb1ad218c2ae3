"""Draw the pictures of the console in docs/figures anew: the sample table, a model with its slider, a scored row.

    rankwright serve --port 8000                     # on an empty state folder, in another window
    python examples/console_pictures.py http://127.0.0.1:8000 rw_…

It takes what tests take: Playwright, and Debian's Chromium (`make browser`).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
WIDTH = 1100


def main(address: str, key: str) -> None:
    """Go from the sample table to a scored row, and take the pictures."""
    with sync_playwright() as playwright:
        path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 720})
        page.set_default_timeout(60_000)
        page.goto(address + "/console/sign-in")
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        page.goto(address + "/console/datasets/new")
        page.get_by_role("button", name="Try a sample table").click()
        page.get_by_role("link", name="Train on this").wait_for()
        dataset = page.url
        for algorithm in ("coordinate_rankboost", "treerank"):
            page.goto(dataset)
            page.get_by_role("link", name="Train on this").click()
            page.get_by_label("Algorithm", exact=True).select_option(algorithm)
            page.locator("#train strong", has_text=algorithm).first.wait_for()
            page.get_by_label("Name of the model").fill("leavers")
            page.get_by_text("Ready to train").wait_for()
            page.get_by_role("button", name="Train", exact=True).click()
            page.get_by_role("link", name="The model").click()
            page.locator("#curve").wait_for()
        page.goto(address + "/console/models?name=leavers")
        page.get_by_role("link", name="leavers:1").click()
        page.get_by_role("slider").wait_for()
        page.wait_for_load_state("networkidle")
        page.set_viewport_size({"width": 1500, "height": 1000})
        page.get_by_label("I can review").fill("200")
        page.get_by_label("of", exact=True).fill("1000")
        page.wait_for_url("**rows=1000**cut=**")
        take(page, "curve", "#curve")
        page.set_viewport_size({"width": WIDTH, "height": 720})
        page.get_by_role("link", name="Score", exact=True).click()
        page.get_by_role("button", name="Score", exact=True).click()
        page.get_by_role("heading", name="Reasons").wait_for()
        take(page, "score", "#score")
        page.goto(dataset)
        take(page, "dataset", None)
        browser.close()


def take(page: Page, name: str, part: str | None) -> None:
    """Take a picture of a part of a page, or of its beginning."""
    to = FIGURES / f"console-{name}.png"
    if part is None:
        page.screenshot(path=to)
    else:
        box = page.locator(part).evaluate(
            "(each) => { const { x, y, width, height } = each.getBoundingClientRect();"
            " return { x: x + scrollX, y: y + scrollY, width, height: Math.min(height, 960) }; }"
        )
        page.screenshot(path=to, full_page=True, clip=box)
    print(to.name, f"{to.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(*sys.argv[1:])
