"""CPU for a page of the console: `python -m benchmarks.console_pages [--against FOLDER] [--rounds 40] [--requests 2]`.

`--fill 10000` adds so many rows of models to the state, copies of the last one. "First byte" is the time from a request
to the first byte of its answer, by the clock: the median and the 95th percentile of all requests of the rounds.

`--interactions` uses the pages in Chromium instead, with a curve of `--points` points and a dataset of `--columns`
columns. A figure is what Event Timing tells of an interaction: from the key or the click to the next frame that is
drawn, in steps of 8 ms; what takes less than 16 ms is not told, and counts as 16. A drag has no such events between
its begin and its end, so the longest time between two frames is measured there. A click that opens another page is
timed until that page has drawn its first contents.

A process of its own serves the console from a stored state of some datasets, jobs, models and evaluations; the CPU of
that process is counted, and not of the caller. `--against` is another checkout of this repository, as of an earlier
commit: both serve copies of the same state, which the other checkout made, and take turns. A figure is the mean of the
quieter third of its rounds: what else the machine does adds to a round, and takes nothing away.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np

from benchmarks import at_least_one

HERE = Path(__file__).resolve().parents[1]
MODELS, ROWS = 20, 2_000


def settings_of(state: Path) -> Any:
    """Return the settings of a service on that state, which is brought to the code's version."""
    from app.platform import migrate
    from app.platform.settings import Settings

    migrate.upgrade(f"sqlite:///{state}/rankwright.db")
    return Settings(state_dir=state)


def wide_table(rows: int, columns: int) -> str:
    """Return a CSV of so many columns, with a label."""
    rng = np.random.default_rng(0)
    lines = [",".join([*(f"column{n}" for n in range(columns)), "left"])]
    for n, values in enumerate(rng.normal(size=(rows, columns)).round(3).tolist()):
        lines.append(",".join(map(str, [*values, "yes" if n % 3 == 0 else "no"])))
    return "\n".join(lines) + "\n"


def make_state(state: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Fill a state; return a key and the addresses of the pages."""
    from tests.app.live_service import OWNER, running, table

    with running(settings_of(state)) as service:
        secret = service.key(OWNER)
        client = service.client(secret)
        large = service.upload(client, table(options.rows, 1), name="large")
        small = service.upload(client, table(120, 2), name="small")
        jobs = [service.train(client, large, objective={"metric": "pauc", "fpr_max": 0.1})]
        algorithm = {"name": "rankboost", "n_rounds": 5}
        jobs += [
            service.train(client, small, algorithm=algorithm) for _ in range(options.models - 1)
        ]
        assert all(job["state"] == "succeeded" for job in jobs), jobs
        model = jobs[0]["output"]["id"]
        for other in jobs[1:]:
            body = {"model": other["output"]["id"], "dataset_id": large}
            evaluation = client.post("/v1/evaluations", json=body).raise_for_status().json()
        service.work()
        if options.interactions:
            wide = service.upload(client, wide_table(300, options.columns), name="wide")
            service.lengthen_curve(model, options.points)
        if options.fill:
            service.copy_model(jobs[-1]["output"]["id"], range(options.fill))
    return {
        "key": secret,
        "pages": {
            "first page": "/console",
            "datasets": "/console/datasets",
            "a dataset": f"/console/datasets/{large}",
            "jobs": "/console/jobs",
            "a job": f"/console/jobs/{jobs[0]['id']}",
            "models": "/console/models",
            "models, searched": "/console/models?search=m9",
            "models, by AUC": "/console/models?sort=-auc",
            "choosing a model": "/console/pick/models?find_models=m9",
            "comparing": "/console/comparisons",
            "a model": f"/console/models/{model}",
            "a model, with a cut": f"/console/models/{model}?on=train&by=fpr&at=.1",
            "evaluations": "/console/evaluations",
            "an evaluation": f"/console/evaluations/{evaluation['id']}",
            "the training form": f"/console/train?dataset_id={small}",
        },
        "wide": f"/console/datasets/{wide}" if options.interactions else None,
    }


def serve(state: Path) -> None:
    """Serve until the standard input ends."""
    from tests.app.live_service import running

    with running(settings_of(state)) as service:
        print(service.url, flush=True)
        sys.stdin.read()


def start(tree: Path, *arguments: str) -> subprocess.Popen[str]:
    """Run this file with the code of a checkout."""
    environment = os.environ | {
        "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'client'}",
        "RANKWRIGHT_WARM_UP": "false",
    }
    command = [sys.executable, "-P", __file__, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=tree, env=environment, stdin=pipe, stdout=pipe, text=True)


class Console:
    """A signed-in browser without scripts, and the CPU of the process that answers."""

    def __init__(self, process: subprocess.Popen[str], key: str) -> None:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        assert address.hostname is not None, "the service did not start"
        self.url = address.geturl()
        # The clock of all threads of another process; see clock_getcpuclockid(3).
        self.first_bytes: list[float] = []
        """The times to the first byte of the answers, in milliseconds, since it was last emptied."""
        self._clock = (~process.pid << 3) | 2
        self._connection = http.client.HTTPConnection(address.hostname, address.port)
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer = self._ask("POST", "/console/sign-in", urlencode({"key": key}), form)
        self._let_start()
        cookie = answer.getheader("set-cookie") or ""
        self._headers = {"cookie": cookie.partition(";")[0]}

    def _let_start(self) -> None:
        """Wait until the process has imported in the background what it needs later."""
        before = -1
        while (now := time.clock_gettime_ns(self._clock)) - before > 20_000_000:
            before = now
            time.sleep(1)

    def _ask(self, method: str, path: str, *more: Any) -> http.client.HTTPResponse:
        try:
            sent = time.perf_counter()
            self._connection.request(method, path, *more)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):  # it was idle for too long
            self._connection.close()
            sent = time.perf_counter()
            self._connection.request(method, path, *more)
            answer = self._connection.getresponse()
        self.first_byte = time.perf_counter() - sent
        answer.read()
        return answer

    def milliseconds(self, path: str, requests: int) -> float:
        """Return the CPU of one request for a page, as mean of several."""
        before = time.clock_gettime_ns(self._clock)
        for _ in range(requests):
            answer = self._ask("GET", path, None, self._headers)
            self.first_bytes.append(1e3 * self.first_byte)
            assert answer.status == 200, f"{path} answered {answer.status}"
        return (time.clock_gettime_ns(self._clock) - before) / requests / 1e6


@contextmanager
def console(tree: Path, made: Path, state: Path, key: str) -> Iterator[Console]:
    """Serve a copy of a state by the code of a checkout."""
    shutil.copytree(made, state)
    process = start(tree, "--serve", str(state))
    try:
        yield Console(process, key)
    finally:
        process.communicate()


OBSERVE = """
window.took = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (each.interactionId) took.push([each.interactionId, each.duration]);
}).observe({ type: "event", durationThreshold: 16, buffered: true });
window.frames = [];
let last = null;
requestAnimationFrame(function note(now) {
  if (last !== null) frames.push(now - last);
  last = now;
  requestAnimationFrame(note);
});
"""
TOLD = """() => {
  const longest = new Map();
  for (const [id, duration] of took) longest.set(id, Math.max(duration, longest.get(id) ?? 0));
  return [...longest.values()];
}"""
PAINTED = """() => new Promise((drawn) => {
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) if (each.name === "first-contentful-paint") drawn(each.startTime);
  }).observe({ type: "paint", buffered: true });
})"""


def print_interactions(url: str, state: dict[str, Any]) -> None:
    """Use the pages as a reader does, and print how long each kind of interaction takes."""
    from playwright.sync_api import sync_playwright

    print("| interaction | times | median, ms | 98th percentile, ms | longest, ms |")
    print("|---|---:|---:|---:|---:|")

    def told(name: str, times: list[float]) -> None:
        assert times, name
        median, late = np.percentile(times, [50, 98])
        print(
            f"| {name} | {len(times)} | {median:.0f} | {late:.0f} | {max(times):.0f} |", flush=True
        )

    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(60_000)
        page.goto(f"{url}/console/sign-in")
        page.get_by_label("API key").fill(state["key"])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{url}/console")
        page.add_init_script(OBSERVE)

        def open_page(address: str) -> None:
            page.goto(url + address)
            page.wait_for_load_state("networkidle")
            page.evaluate("took.length = 0")

        def times(events: int) -> list[float]:
            """Return the time of each of so many interactions."""
            page.wait_for_timeout(300)
            found: list[float] = page.evaluate(TOLD)
            return found + [16.0] * (events - len(found))

        model = state["pages"]["a model"]
        open_page(model)
        page.get_by_role("slider").focus()
        for _ in range(40):
            page.keyboard.press("ArrowRight")
        told("a cut, moved by a key", times(40))
        picture = page.locator('[data-picture="linear"] svg')
        picture.scroll_into_view_if_needed()
        box = picture.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.evaluate("frames.length = 0")
        for step in range(100):
            share = 0.15 + 0.7 * abs(1 - step / 50)
            page.mouse.move(box["x"] + share * box["width"], box["y"] + share * box["height"])
        told("a cut, dragged in a picture: frames", page.evaluate("frames"))
        page.mouse.up()
        open_page("/console/evaluations")
        page.get_by_role("combobox", name="Model").click()
        for _ in range(5):
            page.keyboard.type("m49", delay=60)
            page.get_by_role("option").first.wait_for()
            page.keyboard.press("ArrowDown")
            for _ in range(3):
                page.keyboard.press("Backspace", delay=60)
        told("a model, typed into a picker", times(36))
        assert state["wide"] is not None
        open_page(state["wide"])
        page.get_by_label("Search by name").click()
        for _ in range(5):
            page.keyboard.type("39", delay=120)
            for _ in range(2):
                page.keyboard.press("Backspace", delay=120)
        told("a column, typed into the search of a wide dataset", times(21))
        opened = []
        open_page(model)
        for _ in range(3):
            for tab in ("Score", "Explain", "Validation", "History and files", "Decide"):
                page.get_by_role("navigation", name="Parts of the page").get_by_role(
                    "link", name=tab, exact=True
                ).click()
                page.wait_for_load_state()
                opened.append(page.evaluate(PAINTED))
        told("a tab of a model, opened: its first contents", opened)
        opened = []
        open_page("/console/models")
        for number in [*range(page.locator("a.sort").count())] * 3:
            page.locator("a.sort").nth(number).click()
            page.wait_for_load_state()
            opened.append(page.evaluate(PAINTED))
        told("a list of models, sorted by a head: its first contents", opened)
        browser.close()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="another checkout of this repository")
    parser.add_argument("--rounds", type=at_least_one, default=40)
    parser.add_argument("--requests", type=at_least_one, default=2)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--rows", type=at_least_one, default=ROWS)
    parser.add_argument("--fill", type=int, default=0, help="rows of models to add")
    parser.add_argument("--pages", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--interactions", action="store_true", help="use the pages in Chromium")
    parser.add_argument("--points", type=at_least_one, default=250_000, help="of the model's curve")
    parser.add_argument("--columns", type=at_least_one, default=400, help="of the wide dataset")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        print(json.dumps(make_state(options.make, options)), flush=True)
        return
    if options.serve:
        serve(options.serve)
        return
    trees = [HERE, *([options.against.resolve()] if options.against else [])]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        made = Path(folder) / "made"
        made.mkdir()
        asked = [each for each in sys.argv[1:] if each != "--against"]
        if options.against:
            asked.remove(str(options.against))
        said, _ = start(trees[-1], "--make", str(made), *asked).communicate()
        state = json.loads(said.splitlines()[-1])
        consoles = [
            stack.enter_context(console(tree, made, Path(folder) / str(i), state["key"]))
            for i, tree in enumerate(trees)
        ]
        if options.interactions:
            print_interactions(consoles[0].url, state)
            return
        print(
            "| page | first byte, ms: median | 95th percentile | CPU, ms |"
            + (" before | ratio |" if len(trees) > 1 else "")
        )
        print("|---|---:|---:|---:|" + ("---:|---:|" if len(trees) > 1 else ""))
        for name, path in state["pages"].items():
            if options.pages and name not in options.pages:
                continue
            for each in consoles:  # fills the caches
                each.milliseconds(path, 2)
                each.first_bytes.clear()
            rounds: list[list[float]] = [[] for _ in consoles]
            turns = list(zip(consoles, rounds, strict=True))
            for _ in range(options.rounds):
                turns.reverse()
                for each, found in turns:
                    found.append(each.milliseconds(path, options.requests))
            metrics = [fmean(sorted(found)[: -(-options.rounds // 3)]) for found in rounds]
            more = f" {metrics[1]:.2f} | {metrics[0] / metrics[1]:.2f} |" if metrics[1:] else ""
            median, late = np.percentile(consoles[0].first_bytes, [50, 95])
            print(f"| {name} | {median:.1f} | {late:.1f} | {metrics[0]:.2f} |{more}", flush=True)


if __name__ == "__main__":
    main()
