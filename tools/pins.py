"""What a head does, as one file; and where two heads differ. Run by hand before and after a change that moves code.

    python -m tools.pins record before.json
    python -m tools.pins compare before.json after.json

Compare records of one machine: another processor or other libraries may round a sum differently.

A file has hashes of each form of each ranker on three real tables (in memory, by columns, over hosts in this process;
on one thread and on two), of each public metric on drawn tables, the description of the API, the answers of a session
over all its operations, and seconds and peak memory of each form. The artifacts lie in a folder beside the file:
`python -m tools.pins score FOLDER` opens those of another head and hashes their scores.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import inspect
import json
import re
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd

from core import load, metrics, save
from core.base.columns import ColumnTable
from core.errors import InvalidData
from tests.core.column_sources import ArrayColumns, LocalHosts
from tests.core.forms import COLOURS, FORMS, Form, Rows
from tests.core.threads import on_threads

DRAWN_TABLES = 200
MAX_ROWS = 400  # the forms that fit forests within rankers take minutes for more
THREADS = (1, 2)
SLOWER = 1.5  # a ratio of seconds or megabytes that is worth a line; one run on a busy machine says no more

Pins = dict[str, Any]


# --- fits ------------------------------------------------------------------------------------------


def real_tables() -> Iterator[tuple[str, Rows]]:
    """Three tables that scikit-learn ships, with a column of words and one of gaps each."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

    loaders: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
        "breast cancer": (load_breast_cancer, lambda y: y == 0),
        "diabetes": (load_diabetes, lambda y: y > 200),
        "wine": (load_wine, lambda y: y == 1),
    }
    for name, (loader, positive) in loaders.items():
        data = loader(as_frame=True)
        table = data.data.iloc[:MAX_ROWS, :10].copy()
        y = positive(data.target.to_numpy()[:MAX_ROWS]).astype(int)
        first = table.columns[0]
        places = pd.qcut(table[first].rank(method="first"), len(COLOURS), labels=False)
        table["word"] = [COLOURS[k] for k in places]
        table.iloc[::13, 1] = np.nan
        labels = np.column_stack([y, places > 2, places < 1]).astype(int)
        rng = np.random.default_rng(0)
        ends = rng.integers(0, len(y), (3 * len(y), 2))
        yield name, Rows(table, y, labels, ends[y[ends[:, 0]] > y[ends[:, 1]]])


def fit_form(form: Form, rows: Rows, X: Any = None) -> Any:
    """Fit a form to a table, or to another form of the table."""
    ranker = form.make()
    table = X
    if table is None:
        table = rows.table if ranker.takes_categories() else rows.table.drop(columns="word")
    if form.learns == "pairs":
        return ranker.fit_pairs(table, rows.pairs)
    return ranker.fit(table, rows.labels if form.learns == "labels" else rows.y)


def column_tables(form: Form, rows: Rows, folder: Path) -> Iterator[tuple[str, ColumnTable]]:
    """The table by columns, alone and over two hosts in this process."""
    words = form.make().takes_categories()
    numbers = rows.table.drop(columns="word")
    X = numbers.to_numpy(dtype=float)
    names: tuple[str, ...] = tuple(numbers.columns)
    categories: tuple[tuple[str, ...] | None, ...] = (None,) * len(names)
    if words:
        codes = [COLOURS.index(word) for word in rows.table["word"]]
        X = np.column_stack([X, codes])
        names, categories = (*names, "word"), (*categories, COLOURS)
    source = ArrayColumns(np.asfortranarray(X), names, categories)
    yield "columns", ColumnTable(source, folder)
    yield "hosts", ColumnTable(source, folder, placement=LocalHosts(2, folder))


def fits(artifacts: Path) -> Iterator[tuple[str, str]]:
    """The hash of each artifact, by form, table, way and threads; and of its scores."""
    for table, rows in real_tables():
        for name, form in FORMS.items():
            for n_threads in THREADS:
                at = f"{name} | {table} | {n_threads} threads"
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ranker = on_threads(n_threads, partial(fit_form, form, rows))
                data = save(ranker)
                yield f"{at} | memory", digest(data)
                with tempfile.TemporaryDirectory() as folder:
                    for way, X in column_tables(form, rows, Path(folder)):
                        with suppress(InvalidData):  # this form is not fitted in this way
                            yield f"{at} | {way}", digest(save(fit_form(form, rows, X)))
            place = artifacts / f"{name} | {table}"
            place.with_suffix(".rw").write_bytes(data)
            yield f"{name} | {table} | scores", scores_of(place.with_suffix(".rw"), rows)


def scores_of(artifact: Path, rows: Rows) -> str:
    """The hash of the scores that a stored artifact gives."""
    ranker = load(artifact.read_bytes())
    table = rows.table if ranker.takes_categories() else rows.table.drop(columns="word")
    return digest(np.ascontiguousarray(ranker.decision_function(table)).tobytes())


def stored_scores(artifacts: Path) -> Iterator[tuple[str, str]]:
    """The hashes of the scores of another head's artifacts, as this one opens them."""
    tables = dict(real_tables())
    for path in sorted(artifacts.iterdir()):
        table = path.stem.rpartition(" | ")[2]
        try:
            yield f"{path.stem} | scores", scores_of(path, tables[table])
        except Exception as error:
            yield f"{path.stem} | scores", type(error).__name__


# --- metrics -----------------------------------------------------------------------------------------


def drawn(seed: int) -> dict[str, Any]:
    """Arguments by the names that the metrics give them: ties, weights, groups, few rows of a class, perfect scores."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 120))
    y = (rng.random(n) < rng.choice([0.05, 0.3, 0.5])).astype(int)
    if seed % 20:
        y[:2] = 0, 1
    scores = y * rng.choice([0.0, 1.0, 9.0]) + rng.normal(size=n)
    if seed % 2:
        scores = scores.round(int(rng.integers(0, 2)))
    weight = rng.integers(0, 4, n).astype(float) if seed % 3 == 0 else None
    group = rng.integers(0, 1 + n // 3, n) if seed % 5 == 0 else None
    ends = rng.integers(0, n, (2 * n, 2))
    costs = metrics.Costs(1.0, 5.0)
    arguments = {
        "y": y,
        "scores": scores,
        "sample_weight": weight,
        "group": group,
        "by": rng.integers(0, 3, n),
        "query": rng.integers(0, 1 + n // 6, n),
        "amount": rng.gamma(2.0, 50.0, n),
        "fold": rng.integers(0, 3, n),
        "pairs": ends[ends[:, 0] != ends[:, 1]],
        "fpr": 0.1,
        "fpr_max": 0.3,
        "threshold": float(np.median(scores)),
        "prevalence": 0.2,
        "costs": costs,
        "value": float(rng.random()),
        "n": n,
        "at": (0.1, 0.5),
        "n_bootstrap": 50,
        "metrics": [metrics.metric_named(name) for name in ("average_precision", "precision@20%")],
        "negative": 1.0 / max(1, n - y.sum()),
        "max_points": 20,
        "n_images": 5,
        "n_negatives": int(n - y.sum()),
        "per_image_min": 0.1,
        "per_image_max": 1.0,
        "rows": (int(n - y.sum()), int(y.sum())),
        "tpr": 0.8,
        "fpr_min": 0.0,
        "groups": {0: scores[::2], 1: scores[1::2]},
        "name": "average_precision",
        "metric": metrics.metric_named("average_precision"),
        "kind": "pointwise",
    }
    if 0 < y.sum() < n:
        arguments["curve"] = metrics.roc_curve(y, scores)
        arguments["totals"] = metrics.ClassTotals.of_counts(int(y.sum()), int(n - y.sum()))
    return arguments


OWN: dict[str, dict[str, Any]] = {
    "roc_band": {"fpr": np.array([0.05, 0.2])},
    "operating_points_on_curve": {"points": np.array([0, 1])},
    "list_curve": {"kind": "gains"},
    "compare_lists": {"metrics": [metrics.list_metric_named("ndcg@3")]},
    "list_values": {"metrics": [metrics.list_metric_named("ndcg@3")]},
    "measure_lists": {"metrics": [metrics.list_metric_named("ndcg@3")]},
    "list_metric_named": {"name": "ndcg@3"},
}
ONE_OF = ("fpr", "tpr", "threshold", "flagged", "costs")


def measured() -> Iterator[tuple[str, str]]:
    """The hash of what each public function of `core.metrics` returns, or raises, over the drawn tables."""
    functions = {
        name: getattr(metrics, name)
        for name in metrics.__all__
        if inspect.isfunction(getattr(metrics, name))
    }
    found: dict[str, list[str]] = {name: [] for name in functions}
    for seed in range(DRAWN_TABLES):
        arguments = drawn(seed)
        for name, function in functions.items():
            given = chosen(name, function, arguments)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = canonical(function(**given))
            except Exception as error:
                value = type(error).__name__
            found[name].append(json.dumps(value, sort_keys=True))
    for name, values in found.items():
        yield name, digest("\n".join(values).encode())


def chosen(name: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for a function, by the names of its parameters."""
    parameters = inspect.signature(function).parameters
    given = {key: arguments[key] for key in parameters if key in arguments}
    if name.startswith(("operating_point", "guarantee", "rows_to")):
        for key in ONE_OF[1:]:
            given.pop(key, None)
    if name.startswith("compare") and name != "compare_groups":
        given["scores"] = [given["scores"], -given["scores"], np.round(given["scores"])]
    if name.startswith(("cost_report", "compare_costs")):
        given["costs"] = metrics.AmountCosts(metrics.Price(2.0), metrics.Price(0.0, 1.0))
    return {**given, **OWN.get(name, {})}


def canonical(value: Any) -> Any:
    """Return a value as JSON, every bit of its numbers."""
    if isinstance(value, np.ndarray | list | tuple):
        return [canonical(each) for each in value]
    if isinstance(value, bool | np.bool_ | str | int | np.integer) or value is None:
        return value if isinstance(value, str) or value is None else int(value)
    if isinstance(value, float | np.floating):
        return float(value).hex()
    if isinstance(value, Mapping):
        return {str(key): canonical(each) for key, each in value.items()}
    if dataclasses.is_dataclass(value):
        return {
            each.name: canonical(getattr(value, each.name)) for each in dataclasses.fields(value)
        }
    return type(value).__name__


# --- the API -------------------------------------------------------------------------------------------

_ID = re.compile(r"\b([a-z]{2,4})_[0-9a-f]{32}\b")
_SECRET = re.compile(r"rw_[A-Za-z0-9_-]{10,}")
_FOLDER = re.compile(re.escape(tempfile.gettempdir()) + r"/[^/\s]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?")
_PASSING = re.compile(
    r"(^|_)(seconds|ms|microseconds|memory_bytes|etag|cursor|next|free_bytes|prefix)$|_at$"
)


class Session:
    """Requests to a service of this process, and their answers without what is new in every run."""

    def __init__(self, client: httpx.Client, work: Callable[[], object]) -> None:
        self._client = client
        self._work = work
        self._names: dict[str, str] = {}
        self.answers: dict[str, Any] = {}
        self.touched: list[tuple[str, str]] = []

    def ask(self, method: str, path: str, **request: Any) -> Any:
        """Send a request, and do the work that it makes; returns the answer's JSON, or None."""
        answer = self._client.request(method, path, **request)
        self._work()
        self.touched.append((method, path))
        kind = answer.headers.get("content-type", "").partition(";")[0]
        body: Any = None
        parsed = None
        if kind.endswith("json") and answer.content:
            parsed = answer.json()
            body = self._plain(parsed)
        elif path == "/metrics":  # the figures pass
            body = sorted({line.split("{")[0].split(" ")[0] for line in answer.text.splitlines()})
        elif kind.startswith("text/") and kind != "text/html":
            body = digest(self._text(answer.text).encode())
        key = f"{len(self.answers):03} {method} {self._text(path)}"
        self.answers[key] = {"status": answer.status_code, "type": kind, "body": body}
        return parsed

    def _plain(self, value: Any, name: str = "") -> Any:
        if _PASSING.search(name) and isinstance(value, int | float | str):
            return name
        if isinstance(value, Mapping):
            return {self._text(key): self._plain(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        text = _ID.sub(self._named, text)
        text = _FOLDER.sub("FOLDER", _SECRET.sub("rw_SECRET", text))
        return _TIME.sub("TIME", text)

    def _named(self, found: re.Match[str]) -> str:
        return self._names.setdefault(found[0], f"{found[1]}_{len(self._names)}")


CSV = {"Content-Type": "text/csv"}


def table_of(rows: Rows) -> bytes:
    """Return a table as CSV, with its label, an amount and a group."""
    table = rows.table.assign(label=np.where(rows.y, "yes", "no"), team=np.arange(len(rows.y)) % 7)
    return str(table.to_csv(index=False)).encode()


def go_through(session: Session, rows: Rows) -> None:
    """Ask every operation once, and a few that are refused."""
    ask = session.ask
    halves = [rows.take(np.arange(k, len(rows.y), 2)) for k in (0, 1)]
    body, unseen = map(table_of, halves)
    query = "name=people&label=label&positive=yes&drop=team"
    ask("POST", f"/v1/datasets/validate?{query}", content=body, headers=CSV)
    dataset = ask("POST", f"/v1/datasets?{query}", content=body, headers=CSV)["id"]
    for path in ("", "/preview", "/versions", "/profile"):
        ask("GET", f"/v1/datasets/{dataset}{path}")
    other = ask("POST", f"/v1/datasets/{dataset}/versions", content=unseen, headers=CSV)["id"]
    again = ask("POST", f"/v1/datasets/{dataset}/read", json={"drop": "team,word"})["id"]
    pairs = ask(
        "POST", "/v1/datasets?kind=preferences&item=item&name=pairs", headers=CSV,
        content="item,a,b\n" + "".join(f"i{k},{k % 7},{k % 3}\n" for k in range(30)),
    )  # fmt: skip
    ask(
        "PUT", f"/v1/datasets/{pairs['id']}/pairs", headers=CSV,
        content="preferred,other\n" + "".join(f"i{k},i{k - 1}\n" for k in range(1, 30)),
    )  # fmt: skip
    upload = ask("POST", "/v1/uploads", json={"name": "parts", "label": "label", "positive": "yes"})
    ask("PUT", f"/v1/uploads/{upload['id']}/parts/1", content=body, headers=CSV)
    ask("GET", f"/v1/uploads/{upload['id']}")
    ask("POST", f"/v1/uploads/{upload['id']}/files", json={"path": "x.csv"})
    ask("POST", f"/v1/uploads/{upload['id']}/close", json={"parts": 1})
    ask("DELETE", f"/v1/uploads/{upload['id']}")
    ask("GET", "/v1/uploads")
    ask("GET", "/v1/algorithms")
    ask("GET", "/v1/algorithms/rankboost")
    trained = {"dataset_id": dataset, "name": "people", "baselines": True}
    small = {"name": "rankboost", "n_rounds": 10}
    ask("POST", "/v1/jobs/validate", json=trained | {"algorithm": small})
    ask("POST", "/v1/jobs", json=trained | {"algorithm": {"name": "nothing"}})
    job = ask(
        "POST",
        "/v1/jobs",
        json=trained
        | {"algorithm": small, "validation": {"method": "cross_validation", "folds": 3}},
    )["id"]
    plain = ask("POST", "/v1/jobs", json=trained | {"algorithm": small})["id"]
    ask(
        "POST",
        "/v1/jobs",
        json=trained
        | {
            "algorithm": {"name": "rankboost"},
            "search": {"method": "random", "space": {"n_rounds": [5, 9]}, "n_candidates": 2},
        },
    )
    for path in ("", "/events"):
        ask("GET", f"/v1/jobs/{job}{path}")
    ask("POST", f"/v1/jobs/{job}/cancel")
    ask("POST", f"/v1/jobs/{plain}/retry")
    ask("PUT", "/v1/models/people/aliases/live", json={"model_id": "people:1"})
    ask("GET", "/v1/models/people/aliases")
    ask("GET", "/v1/models/people/aliases/live")
    ask(
        "PUT",
        "/v1/models/people/reason-codes",
        json={"entries": [{"code": "R1", "columns": ["word"], "text": "Its word"}]},
    )
    ask("GET", "/v1/models/people/reason-codes")
    first = rows.table.columns[0]
    judge = ask("POST", f"/v1/datasets?{query}", content=unseen, headers=CSV)["id"]
    ask("PUT", "/v1/models/people:1/calibration", json={"dataset_id": judge})
    for path in (
        "", "?include=metrics,roc,operating_points&max_points=20&points=10", "/metrics", "/artifact",
        "/roc?max_points=20",
        "/roc?format=csv&band=simultaneous", "/operating-point?fpr=0.1", "/operating-points?points=10",
        "/metrics?metric=average_precision", "/gains", "/curves/gains", "/curves/histogram", "/calibration",
        "/bounds", "/importance", f"/partial-dependence?feature={first}&points=5",
        f"/variable-dependence?feature={first}",
        "/structure", "/margins", "/out-of-fold", "/baselines", "/leaderboard", "/plot", "/report",
    ):  # fmt: skip
        for ref in ("people:1", "people:2"):
            ask("GET", f"/v1/models/{ref}{path}")
    evaluation = ask(
        "POST",
        "/v1/evaluations",
        json={"model": "people:2", "dataset_id": other, "group_by": "word"},
    )
    for path in (
        "", "/roc?max_points=20", "/operating-point?fpr=0.1", "/metrics?metric=average_precision", "/gains",
        "/curves/gains",
    ):  # fmt: skip
        ask("GET", f"/v1/evaluations/{evaluation['id']}{path}")
    ask("GET", f"/v1/fits?model=people:1&dataset_id={other}")
    compared = {"models": ["people:1", "people:2"], "dataset_id": other}
    comparison = ask("POST", "/v1/comparisons", json=compared)
    ask("GET", f"/v1/comparisons/{comparison['id']}")
    data = rows.table.head(20).to_csv(index=False).encode()
    row = {name: None if value != value else value for name, value in rows.table.iloc[0].items()}
    batch = ask("POST", "/v1/batch-scores?model=people:2", content=data, headers=CSV)
    for path in ("", "/result", "/summary"):
        ask("GET", f"/v1/batch-scores/{batch['id']}{path}")
    for ref in ("people:1", "people@live", "nobody"):
        ask("POST", f"/v1/models/{ref}/score", json={"rows": [row]})
        ask("POST", f"/v1/models/{ref}/score?reasons=2", content=data, headers=CSV)
        ask("POST", f"/v1/models/{ref}/rank?top=5", json={"rows": [row, row]})
        ask("POST", f"/v1/models/{ref}/explain", json={"rows": [row]})
        ask(
            "GET", f"/v1/models/{ref}/score", params={k: v for k, v in row.items() if v is not None}
        )
    key = ask("POST", "/v1/keys", json={"name": "another", "scopes": ["read"]})
    ask("POST", f"/v1/keys/{key['id']}/rotate", json={})
    ask("GET", f"/v1/keys/{key['id']}")
    ask("DELETE", f"/v1/keys/{key['id']}")
    for path in (
        "datasets", "jobs", "models", "evaluations", "comparisons", "batch-scores", "keys", "overview",
    ):  # fmt: skip
        ask("GET", f"/v1/{path}")
    for path in (
        "/v1/audit?limit=5",
        "/health/live",
        "/health/ready",
        "/health/staffed",
        "/metrics",
    ):
        ask("GET", path)
    ask("DELETE", f"/v1/batch-scores/{batch['id']}")
    ask("DELETE", f"/v1/comparisons/{comparison['id']}")
    ask("DELETE", f"/v1/evaluations/{evaluation['id']}")
    ask("DELETE", "/v1/models/people/aliases/live")
    ask("DELETE", "/v1/models/people/aliases/live", headers={"If-Match": '"1"'})
    ask("DELETE", "/v1/models/people:1")
    ask("DELETE", f"/v1/datasets/{again}")


def served() -> Pins:
    """The description of the API, the answers of a session over it, and the operations that the session left out."""
    from app.platform.migrate import upgrade
    from app.platform.settings import Settings
    from tests.app.live_service import running

    rows = dict(real_tables())["breast cancer"]
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(state_dir=Path(folder))
        upgrade(settings.sqlalchemy_url)
        with running(settings) as service:
            session = Session(service.client(service.key()), service.work)
            go_through(session, rows)
            description = service.app.openapi()
    return {
        "openapi": description,
        "answers": session.answers,
        "not asked": sorted(left_out(description, session.touched)),
    }


def left_out(description: Mapping[str, Any], touched: list[tuple[str, str]]) -> Iterator[str]:
    """The operations of a description that no request was for."""
    for path, operations in description["paths"].items():
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        for method in operations:
            if not any(
                method.upper() == asked and pattern.fullmatch(at.partition("?")[0])
                for asked, at in touched
            ):
                yield f"{method.upper()} {path}"


# --- speed -----------------------------------------------------------------------------------------------


def speeds() -> Iterator[tuple[str, dict[str, float]]]:
    """Seconds of the second of two fits of each form, and the peak memory of the process after it, in megabytes."""
    rows = dict(real_tables())["breast cancer"]
    for name, form in FORMS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_form(form, rows)
            began = time.process_time()
            fit_form(form, rows)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield name, {"seconds": time.process_time() - began, "peak_mb": peak}


# --- the command -------------------------------------------------------------------------------------------


def tell(text: str) -> None:
    """Write to the terminal."""
    sys.stdout.write(f"{text}\n")


def digest(data: bytes) -> str:
    """Return a short SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]


def record(target: Path) -> None:
    """Write everything to a file, and the artifacts to the folder beside it."""
    artifacts = target.with_suffix(".artifacts")
    artifacts.mkdir(parents=True, exist_ok=True)
    pins: Pins = served()
    pins["metrics"] = dict(measured())
    pins["speed"] = dict(speeds())
    pins["fits"] = dict(fits(artifacts))
    target.write_text(json.dumps(pins, indent=1, sort_keys=True) + "\n")


def compare(before: Path, after: Path) -> int:
    """Print where two files differ; returns how many places, without those of speed."""
    one, other = (json.loads(file.read_bytes()) for file in (before, after))
    for name in one["speed"].keys() & other["speed"].keys():
        for metric, value in one["speed"][name].items():
            now = other["speed"][name][metric]
            if now > SLOWER * value and now > 0.05:
                tell(f"slower or larger: {name}, {metric}: {value:.3g}, now {now:.3g}")
    one.pop("speed"), other.pop("speed")
    lines = list(differences(one, other))
    tell("\n".join(lines) or "no difference")
    return len(lines)


def differences(one: Any, other: Any, at: str = "") -> Iterator[str]:
    """The places where two documents differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted(one.keys() | other.keys()):
            if key not in other:
                yield f"{at}/{key} is gone"
            elif key not in one:
                yield f"{at}/{key} is new"
            else:
                yield from differences(one[key], other[key], f"{at}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{at}/{number}")
    elif one != other:
        yield f"{at}: {str(one)[:80]} -> {str(other)[:80]}"


def main() -> None:
    """Record, compare, or score the artifacts of another head."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("file", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    commands.add_parser("score").add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        record(given.file)
    elif given.command == "compare":
        sys.exit(min(compare(given.before, given.after), 1))
    else:
        tell(json.dumps(dict(stored_scores(given.folder)), indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
