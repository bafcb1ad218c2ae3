"""The pages of the reference of Python: estimators, metrics, packages and the client."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from docs.builder.docstrings import Docstring
from docs.builder.markdown import cell, heading, link, slug, table
from docs.builder.names import GROUPS, PACKAGES, PYTHON, Names, Public, find_names
from docs.builder.python import Writer, summary

Pages = dict[str, list[str]]
"""The lines of each page, by its path."""

ASYNC = """
`AsyncClient` has the operations of [`Client`](index.md), with the same names and parameters. These are the differences:

- Await every call: `job = await client.train(data)`, then `model = await job.wait()`.
- Iterate over a list with `async for`: `async for job in client.jobs.list(): …`
- Use the client with `async with`, or await `close()`.
- Calls return `AsyncDataset`, `AsyncJob`, `AsyncModel`, `AsyncEvaluation`, `AsyncComparison` and `AsyncBatchScore`.
  They have the methods of [`Dataset`](dataset.md), [`Job`](job.md), [`Model`](model.md),
  [`Evaluation`](evaluation.md), [`Comparison`](comparison.md) and [`BatchScore`](batch-score.md). Await these, too.
"""


def python_pages() -> tuple[Pages, Names]:
    """Return every page about Python, and the names that they describe."""
    from docs.builder.client import client_pages

    names = find_names()
    pages = {
        **_estimators(names),
        f"{PYTHON}artifacts.md": [
            *_functions(
                names,
                f"{PYTHON}artifacts.md",
                "Save, load, import and export",
                "core",
                _is_function,
            )
        ],
        **_metrics(names),
        **_packages(names),
        **client_pages(names),
        f"{PYTHON}client/async-client.md": [*_async_client(names)],
        f"{PYTHON}client/errors.md": [*_errors(names)],
        f"{PYTHON}client/remote-ranker.md": [*_remote_ranker(names)],
    }
    pages[f"{PYTHON}index.md"] = [*_index(names)]
    return pages, names


def _estimators(names: Names) -> Pages:
    from core.registry import ALGORITHMS

    algorithm = {item: name for name, item in ALGORITHMS.items()}
    pages: Pages = {}
    estimators = [each for each in names.of("core") if isinstance(each.item, type)]
    for each in estimators:
        pages[each.page] = [*_estimator(names, each, algorithm.get(each.item))]
    page = f"{PYTHON}estimators/index.md"
    rows = [
        (
            link(f"`{each.name}`{{.whole}}", each.address, page),
            f"`{algorithm.get(each.item, '–')}`",
            summary(each.item),
        )
        for each in estimators
    ]
    pages[page] = [
        *heading(1, "Estimators"),
        "All of them are scikit-learn classifiers. You fit them on rows, and they score rows: a higher score means "
        f"more likely positive. {link('Which algorithm?', 'algorithms.md', page)} helps you to choose one.",
        "",
        *table(("Estimator", "Name in jobs", "Description"), *rows),
    ]
    return pages


def _estimator(names: Names, public: Public, algorithm: str | None) -> Iterator[str]:
    writer = Writer(names, public.page)
    yield from heading(1, f"`{public.path}`", public.path, "name")
    if algorithm:
        target = "reference/http/algorithms.md"
        yield f"In jobs and on the command line, its name is {link(f'`{algorithm}`', target, public.page)}."
        yield ""
    yield from writer.class_entry(public, 1)


def _is_function(public: Public) -> bool:
    return not isinstance(public.item, type)


def _functions(
    names: Names,
    page: str,
    title: str,
    package: str,
    chosen: Callable[[Public], bool] = lambda _: True,
) -> Iterator[str]:
    """Yield a page with the entries of a package, and a table of them at its beginning."""
    writer = Writer(names, page)
    found = [each for each in names.of(package) if each.page == page and chosen(each)]
    found.sort(key=lambda each: each.name.lower())
    yield from heading(1, title)
    rows = [
        (link(f"`{each.name}`{{.whole}}", each.address, page), writer.text(summary(each.item)))
        for each in found
    ]
    yield from table(("Name", "Description"), *rows, kind="names")
    for each in found:
        yield from writer.entry(each)


def _metrics(names: Names) -> Pages:
    pages: Pages = {}
    for title in GROUPS:
        page = f"{PYTHON}metrics/{slug(title)}.md"
        pages[page] = [*_functions(names, page, title, "core.metrics")]
    page = f"{PYTHON}metrics/index.md"
    lines = [*heading(1, "Metrics"), "Import them from `core.metrics`.", ""]
    for title in GROUPS:
        of_group = f"{PYTHON}metrics/{slug(title)}.md"
        rows = [
            (link(f"`{each.name}`{{.whole}}", each.address, page), summary(each.item))
            for each in names.on(of_group)
        ]
        lines += [*heading(2, title), *table(("Name", "Description"), *rows, kind="names")]
    pages[page] = lines
    return pages


def _packages(names: Names) -> Pages:
    pages: Pages = {}
    for package, title in PACKAGES.items():
        page = f"{PYTHON}{slug(title)}.md"
        first, *lines = _functions(names, page, f"{title} (`{package}`)", package)
        unstable = link("may change with every minor version", "stability.md", page)
        pages[page] = [first, "", f"Names in `{package}` {unstable}.", *lines]
    return pages


def _async_client(names: Names) -> Iterator[str]:
    page = f"{PYTHON}client/async-client.md"
    writer, public = Writer(names, page), names.entries["rankwright.AsyncClient"]
    docstring = Docstring.of(public.item)
    from docs.builder.signatures import parameters_of

    described = Docstring.of(names.entries["rankwright.Client"].item).described("Parameters")
    yield from heading(1, f"`{public.path}`", public.path, "name")
    parameters = parameters_of(public.item, described)
    yield from writer.signature(public.path, parameters, "")
    yield from writer.about(docstring, public.path)
    yield from ASYNC.splitlines()
    yield ""
    yield from writer.examples(docstring, public.path)
    yield from writer.parameters(parameters, public.path, 2)


def _errors(names: Names) -> Iterator[str]:
    page = f"{PYTHON}client/errors.md"
    writer = Writer(names, page)
    import rankwright.errors

    yield from heading(1, "Errors of the client")
    yield "Every error is a `RankwrightError`. An error of the service is a `ProblemError`: its class depends on the"
    yield "HTTP status."
    yield ""
    exported = {each.item: each for each in names.on(page)}
    classes = [
        each
        for _, each in inspect.getmembers(rankwright.errors, inspect.isclass)
        if issubclass(each, Exception) and each.__module__ == "rankwright.errors"
    ]
    classes.sort(key=lambda each: (each not in exported, len(each.__mro__)))
    for each in classes:
        public = exported.get(each) or Public(f"rankwright.errors.{each.__name__}", each, page)
        yield from heading(2, f"`{public.path}`", public.path, "name")
        (base,) = each.__bases__
        if base is not Exception:
            yield from (f"Base class: {names.linked(f'`{base.__name__}`', page)}.", "")
        if each in exported:
            yield from writer.class_entry(public, 2)
        else:  # it has what its base class has
            yield from writer.about(Docstring.of(each), public.path)


def _remote_ranker(names: Names) -> Iterator[str]:
    public = names.entries["rankwright.RemoteRanker"]
    yield from heading(1, f"`{public.path}`", public.path, "name")
    yield from Writer(names, public.page).class_entry(public, 1)


def _index(names: Names) -> Iterator[str]:
    page = f"{PYTHON}index.md"

    def to(path: str, title: str) -> str:
        return link(title, f"{PYTHON}{path}", page)

    yield from heading(1, "Python reference")
    yield "Two distributions have Python names. `rankwright` is the client of a running service. `core` has the"
    yield "algorithms and metrics themselves."
    yield ""
    rows: list[tuple[Any, str]] = [
        (
            to("client/index.md", "`rankwright.Client`"),
            "Upload, train, evaluate and score with a service",
        ),
        (to("client/async-client.md", "`rankwright.AsyncClient`"), "The same with `await`"),
        (
            to("client/remote-ranker.md", "`rankwright.RemoteRanker`"),
            "A scikit-learn estimator that trains on a service",
        ),
        (to("client/errors.md", "Errors"), "What calls of the client raise"),
        (to("estimators/index.md", "`core`: estimators"), "Rankers to fit in your own process"),
        (
            to(
                "artifacts.md", "`core.save`, `core.load`, `core.import_model`, `core.export_model`"
            ),
            "Store a ranker, and load it; import a model of LightGBM or XGBoost",
        ),
        (to("metrics/index.md", "`core.metrics`"), "ROC curves, areas, intervals, cutoffs, costs"),
        *((to(f"{slug(title)}.md", f"`{name}`"), title) for name, title in PACKAGES.items()),
    ]
    yield from table(("Names", "Purpose"), *((cell(a), b) for a, b in rows), kind="names")
