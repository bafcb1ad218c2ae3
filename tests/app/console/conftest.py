"""A real Chromium on a real service; whatever a page complains of fails the test that opened it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.app.live_service import Service
from tests.long_form import LONG_FORM
from tests.waiting import patience

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The first is Chromium without what draws windows: for the same pages it takes half of the processor's time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# What a page, or a part of it, is made of: of each element its tag, attributes, whether it says something, and what it
# is in; and the order of headings. Numbers differ from page to page, and count for nothing.
SHAPES = r"""(within) => {
    const NAMED = ["class", "role", "type", "id", "name", "for", "scope", "autocomplete"];
    const plain = (text) => text.replace(/[0-9a-f]{16,}|[0-9]+/g, "0");
    const shape = (each) => [
        each.tagName,
        ...[...each.attributes].map(({ name, value }) =>
            NAMED.includes(name) || name.startsWith("aria-") && value.length < 9 ? `${name}=${plain(value)}` : name
        ).sort(),
        each.textContent.trim() !== "",
        each.checkVisibility(),
    ].join(" ");
    const roots = within.length ? within.flatMap((part) => [...document.querySelectorAll(part)]) : [document.body];
    const found = new Set();
    for (const root of roots)
        for (const each of [root, ...root.querySelectorAll("*")])
            found.add(`${shape(each)} in ${each.parentElement.tagName}`);
    const headings = (root) => [...root.querySelectorAll("h1, h2, h3, h4, main, nav, header, footer")];
    for (const root of roots)
        for (const [at, each] of headings(root).entries())
            found.add(`${headings(root)[at - 1]?.tagName} before ${each.tagName}`);
    const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
    for (const id of ids.filter((id, at) => ids.indexOf(id) !== at))
        found.add(`${id} again`);
    const look = [innerWidth < 640, matchMedia("(prefers-color-scheme: dark)").matches];
    return [...found].map((each) => `${each} ${look}`);
}"""
# The contrast of words takes four fifths of all rules' time. It follows from the colours and the size of the words, and
# from what is painted behind them: of each such look that is not known yet a few elements are gone through. Returns
# what breaks a rule, and the looks that hold.
AUDIT = """async ([within, known, options]) => {
    const { violations } = await axe.run(within.length ? { include: within.map((part) => [part]) } : document, options);
    if (known === null) return { violations, looks: [] };
    const paints = new Map();
    const painted = (each) => {
        if (each === null) return "";
        if (!paints.has(each)) {
            const style = getComputedStyle(each);
            const own = ["backgroundColor", "backgroundImage", "opacity", "filter", "mixBlendMode", "position"]
                .map((name) => style[name]).join(" ");
            const behind = painted(each.parentElement);
            paints.set(each, own === "rgba(0, 0, 0, 0) none 1 none normal static" ? behind : `${behind}/${own}`);
        }
        return paints.get(each);
    };
    const is_off = (each) =>
        each.closest(":disabled, [aria-disabled=true]") !== null || each.closest("label")?.control?.disabled;
    const found = new Map();
    const roots = within.length ? within.flatMap((part) => [...document.querySelectorAll(part)]) : [document.body];
    for (const root of roots)
        for (const each of [root, ...root.querySelectorAll("*")]) {
            const has_words = [...each.childNodes].some((part) => part.nodeType === Node.TEXT_NODE && part.data.trim());
            if (!has_words && !each.matches("input, select, textarea") || !each.checkVisibility()) continue;
            const style = getComputedStyle(each);
            const own = ["color", "fontSize", "fontWeight", "textShadow"].map((name) => style[name]);
            const look = [each.tagName, is_off(each), ...own, painted(each)].join(" ");
            if (!found.has(look)) found.set(look, []);
            if (found.get(look).length < 3) found.get(look).push(each);
        }
    for (const look of known) found.delete(look);
    if (!found.size) return { violations, looks: [] };
    const contrast = await axe.run(
        { include: [...found.values()].flat() },
        { runOnly: { type: "rule", values: ["color-contrast"] }, elementRef: true },
    );
    const faint = contrast.violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ target }) => ({ target })) }));
    // Of some axe cannot say what lies behind them.
    const held = new Set(contrast.passes.flatMap(({ nodes }) => nodes.map(({ element }) => element)));
    const looks = [...found].filter(([, elements]) => elements.some((each) => held.has(each))).map(([look]) => look);
    return { violations: [...violations, ...faint], looks };
}"""

# What a reader cannot read at once: words in two lines (but ids and checksums), text that is hidden at an edge, what
# scrolls without a shadow that says so, and in a wide window a table that scrolls (but rows of a dataset, long names).
CUT = r"""() => {
    const seen = (each) => each.checkVisibility() && each.closest("svg, option, textarea, .away, .skip") === null;
    const found = [];
    for (const each of document.querySelectorAll("main, main *")) {
        if (!seen(each) || each.clientWidth === 0 || each.scrollWidth <= each.clientWidth + 1) continue;
        const how = getComputedStyle(each).overflowX, text = each.textContent.trim().slice(0, 60);
        if (["hidden", "clip"].includes(how) && !each.matches("input, .cell")) found.push(["hidden", text]);
        if (!["auto", "scroll"].includes(how) || each.matches("pre")) continue;
        if (!each.matches(".scroll.more")) found.push(["no shadow", text]);
        const is_free = each.querySelector("td.cell") !== null || /\S{40}/.test(each.textContent);
        if (innerWidth >= 1280 && !is_free) found.push(["scrolls", text]);
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
    while (texts.nextNode()) {
        const { data, parentElement } = texts.currentNode;
        if (!data.trim() || !seen(parentElement)) continue;
        for (const { 0: word, index } of data.matchAll(/[\p{L}\p{N}_]{2,30}(?![\p{L}\p{N}_])/gu)) {
            if (/[\p{L}\p{N}_]/u.test(data[index - 1] ?? "")) continue;
            range.setStart(texts.currentNode, index);
            range.setEnd(texts.currentNode, index + word.length);
            const parts = [...range.getClientRects()].filter(({ width }) => width > 0);
            const lines = parts.map(({ top }) => Math.round(top));
            if (new Set(lines).size > 1) found.push(["broken", word]);
        }
    }
    return found;
}"""

# Nothing is under way: all that htmx loads by itself is asked for before the page is complete, or as its part comes.
SETTLED = """() => document.readyState === "complete" &&
    document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling") === null"""
_sound: set[str] = set()
_legible: set[str] = set()


@pytest.fixture(scope="session")
def chromium() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """Debian's Chromium, without a window, and Playwright's event loop; one of each for all tests of this process. CI
    must have it: `make browser` installs it.
    """
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("there is no Chromium: `make browser` installs it")
        pytest.skip("there is no Chromium: `make browser` installs it")
    with sync_playwright() as playwright:
        # As root, as CI runs, Chromium has no sandbox; it opens nothing but the tests' own service.
        # A name is needed for what a browser says over plain HTTP: the loopback's address is as good as TLS to it.
        # What a graphics card would draw, is drawn by the processor twice unless it is told that there is none.
        options = ["--no-sandbox", "--disable-gpu"]
        options.append("--host-resolver-rules=MAP rankwright.test 127.0.0.1")
        found = playwright.chromium.launch(executable_path=path, args=options)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield found, loop
        asyncio._set_running_loop(loop)
        found.close()


@pytest.fixture
def browser(chromium: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """The browser, for one test. Playwright's event loop runs all the time; between the tests that use it, it counts as
    stopped, or no other test could run one of its own.
    """
    found, loop = chromium
    expect.set_options(timeout=milliseconds())
    asyncio._set_running_loop(loop)
    yield found
    asyncio._set_running_loop(None)


def milliseconds() -> float:
    """Return the limit against hangs as Playwright takes it."""
    return 1000 * patience()


class Visit:
    """A browser's window on a service, and what went wrong in it."""

    def __init__(self, page: Page, service: Service) -> None:
        self.page = page
        self.service = service
        self.complaints: list[str] = []
        self.expected: list[str] = []
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        page.on("request", self._on_request)

    def expect(self, pattern: str) -> None:
        """Let complaints of this kind pass: the test brings them about."""
        self.expected.append(pattern)

    def open(self, path: str) -> Page:
        """Go to a page of the service."""
        self.page.goto(self.service.url + path)
        return self.page

    def settle(self) -> None:
        """Wait until the page is there, with all parts that come by themselves."""
        self.page.wait_for_function(SETTLED)

    def unfold(self) -> None:
        """Open what is folded on the page, which loads parts of a model's page."""
        self.page.evaluate(
            "for (const each of document.querySelectorAll('main details:not(.versions)')) each.open = true"
        )
        self.settle()

    def sign_in(self, secret: str) -> Page:
        """Give the window a session, as the form does, and open no page."""
        request = self.page.context.request
        address = f"{self.service.url}/console/sign-in"
        answer = request.post(address, form={"key": secret}, max_redirects=0)
        assert answer.status == 303
        return self.page

    def sign_in_by_form(self, secret: str) -> Page:
        """Sign in with a key, through the form."""
        self.open("/console/sign-in")
        self.page.get_by_label("API key").fill(secret)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(re.compile("/console$"))
        return self.page

    def check(self, *within: str) -> None:
        """Fail if the page, or these parts of it, break a rule of accessibility, or it is wider than the window.

        A page of many elements takes a second or two. So in the short form, what is made of nothing but what was found
        sound in such a window is not gone through again.
        """
        self.check_width()
        shapes = set(self.page.evaluate(SHAPES, list(within)))
        if shapes <= _sound and not LONG_FORM:
            return
        # What holds is not told of: of each element that would take as long as to check it.
        options: dict[str, Any] = {"runOnly": RULES, "resultTypes": ["violations"]}
        known = None if LONG_FORM else list(_legible)
        if known is not None:
            options["rules"] = {"color-contrast": {"enabled": False}}
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_SCRIPT)
        found = self.page.evaluate(AUDIT, [list(within), known, options])
        broken = [
            (each["id"], [node["target"] for node in each["nodes"]]) for each in found["violations"]
        ]
        assert broken == []
        _legible.update(found["looks"])
        _sound.update(shapes)

    def check_width(self) -> None:
        """Fail if the page is wider than the window."""
        root = "document.documentElement"
        assert self.page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), self.page.url

    def cut(self) -> list[list[str]]:
        """Return the words, texts and columns that the page cuts. Fails if it is wider than the window."""
        self.check_width()
        return cast(list[list[str]], self.page.evaluate(CUT))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((self.service.url, "data:", "blob:")):
            self.complaints.append(f"request to another host: {request.url}")

    def unexpected(self) -> list[str]:
        """Return the unexpected complaints of the page."""
        return [
            complaint
            for complaint in self.complaints
            if not any(re.search(pattern, complaint) for pattern in self.expected)
        ]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open windows on services: `visit(service, width=390, dark=True, script=False)`."""
    visits: list[Visit] = []

    def open_window(
        service: Service, *, width: int = 1280, dark: bool = False, script: bool = True
    ) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
        )
        context.set_default_timeout(milliseconds())
        visits.append(Visit(context.new_page(), service))
        return visits[-1]

    yield open_window
    complaints = [complaint for each in visits for complaint in each.unexpected()]
    for each in visits:
        each.page.context.close()
    assert complaints == []
