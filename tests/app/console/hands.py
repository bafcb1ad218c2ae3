"""The console by the keyboard alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.console.conftest import Visit


class Keyboard:
    """What an analyst does at a window by the keyboard alone. What has the focus must be in sight, and must show that
    it has the focus. A page that changes by itself is waited for.
    """

    def __init__(self, window: Visit) -> None:
        self.window = window
        self.page = window.page
        # Playwright asks the browser for choosers once somebody listens, and a key may be quicker than that.
        self.page.on("filechooser", lambda _: None)

    def reach(self, what: Locator) -> None:
        """Go on by the tabulator until `what` has the focus."""
        what.wait_for()
        there = what.element_handle()
        for _ in range(400):
            if at := there.evaluate(HAS_FOCUS):
                break
            if at is None:  # its part of the page was replaced
                there = what.element_handle()
            self.page.keyboard.press("Tab")
        else:
            pytest.fail(f"no key leads to {what}")
        assert there.evaluate(IN_SIGHT), f"{what} has the focus out of sight"
        assert there.evaluate(SHOWS_FOCUS), f"{what} does not show that it has the focus"

    def click(self, what: Locator) -> None:
        """Activate a link, a button, a check box or a radio button."""
        self.reach(what)
        box = what.evaluate("(each) => each.type") in ("checkbox", "radio")
        self.page.keyboard.press("Space" if box else "Enter")

    def follow(self, what: Locator) -> None:
        """Activate what leads to another page, and wait for that page; what is under way on this one ends before."""
        what.wait_for()
        self.window.settle()
        with self.page.expect_navigation():
            self.click(what)

    def write(self, field: Locator, text: str) -> None:
        """Replace the text of a field."""
        self.reach(field)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def choose(self, field: Locator, text: str) -> None:
        """Select the option with this label."""
        self.reach(field)
        self.page.keyboard.type(text)

    def tick(self, box: Locator) -> None:
        """Tick a check box."""
        self.click(box)
        expect(box).to_be_checked()

    def give(self, field: Locator, path: Path) -> None:
        """Choose a file."""
        self.reach(field)
        with self.page.expect_file_chooser() as chooser:
            self.page.keyboard.press("Enter")
        chooser.value.set_files(path)

    def unfold(self, summary: Locator) -> None:
        """Open what is folded below a summary, unless it is open."""
        summary.first.wait_for()
        if not summary.first.evaluate(IS_OPEN):
            self.click(summary.first)

    def pick(self, name: str, part: str, within: Locator | Page) -> None:
        """Choose in a field of models or datasets the entry with this part in its name."""
        field = within.get_by_role("combobox", name=name)
        self.write(field, part)
        entry = self.page.get_by_role("option").filter(has_text=part)
        expect(entry).to_have_count(1)
        while "marked" not in (entry.get_attribute("class") or ""):
            self.page.keyboard.press("ArrowDown")
        self.page.keyboard.press("Enter")

    def wait(self, what: Locator) -> None:
        """Wait until something is shown."""
        what.wait_for()


IS_OPEN = "(each) => each.parentElement.open"

HAS_FOCUS = "(each) => each.isConnected ? each === document.activeElement : null"

# At least a line of the element is in the window (a browser scrolls no further than to the caret of a text area), and
# nothing else covers the middle of what is in it.
IN_SIGHT = """(each) => {
  const box = each.getBoundingClientRect();
  const left = Math.max(box.left, 0), right = Math.min(box.right, innerWidth);
  const top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
  if (right < left || bottom - top < Math.min(box.height, 20) - 1) return false;
  const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return there !== null && (each.contains(there) || there.contains(each));
}"""

# An outline or a shadow that the element has only while it has the focus.
SHOWS_FOCUS = """(each) => {
  const style = getComputedStyle(each);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none";
}"""
