"""Take the screenshots of the documentation, docs/figures/console-*.png and report.png, from a running service.

    python -m examples.console_pictures              # all of them
    python -m examples.console_pictures home model   # some of them

It starts a service of its own in a temporary folder, uploads the bank-marketing table, trains, evaluates, compares and
scores. It needs what the tests need: Playwright, and Debian's Chromium (`make browser`).
"""

from __future__ import annotations

import shutil
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import rankwright
from playwright.sync_api import Page, sync_playwright

from examples.demo import TABLE, running_service

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
WIDTH, HEIGHT = 1440, 900
MAX_HEIGHT = 1500
"""Longer pages are cut off below the last paragraph, table row or chart that fits."""
MAX_BYTES = 250_000
COLOURS = 256


class Scene:
    """The addresses of the pages, once the service has something to show."""

    def __init__(self, client: rankwright.Client, folder: Path) -> None:
        whole = client.upload(
            TABLE, name="bank-marketing", label="subscribed", positive="yes", progress=False
        )
        first = client.train(whole, "rankboost", weak_ranker="tree", name="deposits").wait()
        second = client.train(whole, "logitboost", name="deposits").wait()
        memo = {"reason": "Four callers.", "review": 1000, "rows": 10000}
        client.models.set_alias("deposits", "live", second, guarantee={"flagged": 0.2})
        client.models.set_alias("deposits", "live", first, guarantee={"flagged": 0.1}, memo=memo)
        # The table has no dates, but its rows are in the order of the calls: the last ones are newer.
        rows = pq.read_table(TABLE)
        early = self._shuffled(client, rows.slice(0, 30_000), folder / "calls-early.parquet")
        late = self._shuffled(client, rows.slice(30_000, 10_000), folder / "calls-late.parquet")
        model = client.train(early, "rankboost", weak_ranker="tree", name="calls").wait()
        plain = client.train(early, "logistic", name="calls-logistic").wait()
        client.models.set_alias("calls", "live", model, guarantee={"flagged": 0.1})
        found = client.evaluate("calls@live", late, group_by="marital")
        compared = client.compare([model, plain], late)
        self._monitor(client, rows.slice(30_000, 15_000).to_pandas())
        decide = f"/models/{first.id}"
        self.addresses = {
            "home": "",
            "dataset": f"/datasets/{whole.id}",
            "train": f"/train?dataset_id={whole.id}",
            "model": f"{decide}/validation",
            "cutoff": f"{decide}?review=1000&rows=10000#curve",
            "score": f"{decide}/score",
            "evaluation": f"/evaluations/{found.id}",
            "compare": f"/comparisons/{compared.id}",
            "alias": f"{decide}/history#aliases",
            "monitor": "/monitoring/calls/live",
            "report": f"{decide}/download/report.html",
        }

    @staticmethod
    def _monitor(client: rankwright.Client, calls: pd.DataFrame) -> None:
        """Record later calls as decisions of fifteen weeks, with their outcomes, and monitor them."""
        label = calls.pop("subscribed")
        calls["score"] = client.models["calls"].score(calls)["score"]
        calls["id"] = [f"c{number}" for number in range(len(calls))]
        at = pd.date_range("2026-07-06", "2026-10-19", len(calls) + 1, tz="UTC")[:-1]
        known = pd.DataFrame({"id": calls["id"], "label": label, "event_at": at, "known_at": at})
        outcome = {"horizon_days": 7}
        client.models.set_feedback("calls", "live", outcome=outcome)
        client.send_decisions("calls@live", calls.assign(at=at))
        client.send_outcomes(known)
        client.models.set_feedback("calls", "live", outcome=outcome, monitor={"period": "week"})
        while len(client.models.monitor("calls", "live").periods) < 15:
            time.sleep(1)

    @staticmethod
    def _shuffled(client: rankwright.Client, rows: pa.Table, path: Path) -> object:
        order = np.random.Generator(np.random.Philox(0)).permutation(len(rows))
        pq.write_table(rows.take(pa.array(order)), path)
        return client.upload(
            path, name=path.stem, label="subscribed", positive="yes", progress=False
        )


def train(page: Page) -> None:
    """Fill in the form."""
    page.get_by_label("Algorithm", exact=True).select_option("rankboost")
    page.locator("#train strong", has_text="rankboost").first.wait_for()
    page.get_by_label("Model name").fill("deposits")
    page.get_by_text("Ready to train").wait_for()


def score(page: Page) -> None:
    """Score the row that the form starts with."""
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_role("heading", name="Reasons").wait_for()


def model(page: Page) -> None:
    """Wait for the parts that come after the page."""
    page.get_by_role("heading", name="Recalibrate").wait_for()


def evaluation(page: Page) -> None:
    """Fold the charts of the columns."""
    page.evaluate("for (const each of document.querySelectorAll('td details')) each.open = false")


def alias(page: Page) -> None:
    """Show the history."""
    page.get_by_text("History", exact=True).click()


def nothing(page: Page) -> None:
    """Take the page as it is."""


PREPARE: dict[str, Callable[[Page], None]] = {
    "train": train,
    "score": score,
    "model": model,
    "evaluation": evaluation,
    "alias": alias,
}
PARTS = {"cutoff": "#curve"}
"""The part of a page that a picture shows; others show the page from its beginning."""


def main(chosen: Sequence[str]) -> None:
    """Take the pictures with these names, or all."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_service(Path(folder) / "state", log_file=Path(folder) / "log") as client,
        sync_playwright() as playwright,
    ):
        key = (Path(folder) / "state" / "api-key").read_text().strip()
        addresses = Scene(client, Path(folder)).addresses
        path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", timezone_id="UTC"
        )
        page.set_default_timeout(120_000)
        page.goto(f"{client.url}/console/sign-in")
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/console")
        for name, address in addresses.items():
            if not chosen or name in chosen:
                page.goto(f"{client.url}/console{address}")
                page.wait_for_load_state("networkidle")
                PREPARE.get(name, nothing)(page)
                page.wait_for_load_state("networkidle")
                take(page, name)
        browser.close()


def take(page: Page, name: str) -> None:
    """Take a picture of a page, or of a part of it."""
    to = FIGURES / ("report.png" if name == "report" else f"console-{name}.png")
    # As high as the picture, so that what stays in sight at the end of a window is at the end of the picture.
    page.set_viewport_size({"width": WIDTH, "height": MAX_HEIGHT})
    page.mouse.move(0, 0)
    page.wait_for_timeout(1_000)  # for what fades
    top, bottom = page.evaluate(
        """([part, most]) => {
            scrollTo(0, 0);
            const whole = document.querySelector(part).getBoundingClientRect();
            const top = part === "main" ? 0 : whole.top - 12;
            if (whole.bottom + 24 - top <= most) return [top, whole.bottom + 24];
            const parts = "section, .card, figure, table, tr, p, form, fieldset";
            const ends = [...document.querySelectorAll(`${part} :is(${parts})`)]
                .map((each) => each.getBoundingClientRect())
                .filter((each) => each.height && each.bottom + 24 - top <= most);
            const end = Math.max(...ends.map((each) => each.bottom));
            return [top, end + 24];
        }""",
        [PARTS.get(name, "main"), MAX_HEIGHT],
    )
    height = round(bottom - top)
    page.set_viewport_size({"width": WIDTH, "height": max(HEIGHT, round(bottom))})
    to.write_bytes(
        with_palette(
            page.screenshot(
                full_page=True, clip={"x": 0, "y": top, "width": WIDTH, "height": height}
            )
        )
    )
    size = to.stat().st_size
    print(to.name, f"{height} px, {size / 1000:.0f} kB", flush=True)
    if size > MAX_BYTES:
        sys.exit(f"{to.name} is larger than {MAX_BYTES / 1000:.0f} kB")


# --- small PNG files ------------------------------------------------------------------------------

Pixels = npt.NDArray[np.uint8]


def with_palette(png: bytes) -> bytes:
    """Return a PNG of true colours as one with a palette: the most frequent colours, and for others the nearest."""
    pixels = read(png)
    colours, place, counts = np.unique(
        pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    kept = np.argsort(-counts, kind="stable")[:COLOURS]
    palette = colours[kept]
    distances = ((colours[:, None].astype(int) - palette[None].astype(int)) ** 2).sum(axis=2)
    indices = distances.argmin(axis=1).astype(np.uint8)[place.ravel()].reshape(pixels.shape[:2])
    lines = np.pad(indices, ((0, 0), (1, 0)))  # each begins with its filter: none
    height, width = indices.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    chunks = ((b"IHDR", header), (b"PLTE", palette.tobytes()), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def read(png: bytes) -> Pixels:
    """Return the pixels of a PNG of 8 bits, RGB or RGBA, as Chromium writes it."""
    at, data, width, height, channels = 8, b"", 0, 0, 3
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            data += body
        at += length + 12
    raw = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    found = np.zeros((height, width * channels), np.uint8)
    before = np.zeros(width * channels, np.uint8)
    for y in range(height):
        found[y] = before = unfilter(int(raw[y, 0]), raw[y, 1:], before, channels)
    return found.reshape(height, width, channels)[:, :, :3]


def unfilter(kind: int, line: Pixels, above: Pixels, step: int) -> Pixels:
    """Return a line of pixels without its filter; see the specification of PNG, section 9."""
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)
    if kind == 2:
        return line + above
    found, up = [0] * step + line.tolist(), [0] * step + above.tolist()
    for x in range(step, len(found)):
        left, top, corner = found[x - step], up[x], up[x - step]
        if kind == 3:
            guess = (left + top) // 2
        else:
            near = left + top - corner
            guess = min((left, top, corner), key=lambda each: abs(near - each))
        found[x] = (found[x] + guess) & 255
    return np.array(found[step:], np.uint8)


if __name__ == "__main__":
    main(sys.argv[1:])
