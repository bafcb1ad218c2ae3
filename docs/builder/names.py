"""The public names of Python: where each is imported from, and the page that describes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any, get_args

from docs.builder.markdown import link, slug
from docs.builder.signatures import hints_of

PYTHON = "reference/python/"

GROUPS = {
    "ROC curves and areas": ("curve", "window", "bands", "groups", "functionals"),
    "Intervals and comparisons": (
        "intervals",
        "comparison",
        "estimates",
        "ks",
        "equivalence",
    ),
    "Top of the list": ("measuring", "gains", "margins", "top"),
    "Cutoffs and guarantees": ("operating", "guarantees", "net_benefit"),
    "Amounts and costs": ("amounts",),
    "Lists, grades and pairs": ("lists", "grades", "pairs"),
    "Groups and drift": ("fairness", "drift"),
}
"""Pages of `core.metrics`, and the modules whose names each has. Names of other modules are on the first page."""

PACKAGES = {
    "core.explain": "Explanations",
    "core.probability": "Probabilities",
    "core.selection": "Searches",
    "core.bounds": "Bounds",
    "core.monitoring": "Monitoring",
}


@dataclass(frozen=True)
class Public:
    """A public name."""

    path: str
    """As users import it: `core.metrics.auc`."""
    item: Any
    page: str
    """The page of the site that describes it."""

    @property
    def name(self) -> str:
        """The name itself."""
        return self.path.rpartition(".")[2]

    @property
    def is_estimator(self) -> bool:
        """Whether it is a ranker of `core`."""
        return (
            isinstance(self.item, type)
            and hasattr(self.item, "fit")
            and self.path.startswith("core.")
        )

    @property
    def address(self) -> str:
        """The page and the anchor of its entry."""
        return f"{self.page}#{self.path}"


@dataclass
class Names:
    """All public names, which texts about Python link to."""

    entries: dict[str, Public] = field(default_factory=dict)
    """By path."""

    def of(self, package: str) -> list[Public]:
        """Return the names of a package."""
        return [each for path, each in self.entries.items() if path.rpartition(".")[0] == package]

    def on(self, page: str) -> list[Public]:
        """Return the names that a page describes."""
        return [each for each in self.entries.values() if each.page == page]

    def linked(self, text: str, page: str, own: str = "") -> str:
        """Return a text in which the public names between backticks are links, except for `own`."""
        pieces = re.split(r"(```.*?```|`[^`\n]+`)", text, flags=re.DOTALL)
        return "".join(
            self._linked(piece, page, own) if k % 2 else piece for k, piece in enumerate(pieces)
        )

    def _linked(self, piece: str, page: str, own: str) -> str:
        name = piece.strip("`").removesuffix("()")
        found = self.entries.get(name) or self._short.get(name)
        if piece.startswith("```") or found is None or found.path == own:
            return piece
        return link(piece, found.address, page)

    @cached_property
    def sources(self) -> dict[str, list[Public]]:
        """The functions that return each record, and the records that have it as a field, by its path."""
        found: dict[str, list[Public]] = {}
        records = {
            each.item: each.path for each in self.entries.values() if isinstance(each.item, type)
        }
        for each in self.entries.values():
            if not callable(each.item):
                continue
            hints = hints_of(each.item)
            kinds = hints.values() if isinstance(each.item, type) else [hints.get("return")]
            inner = [part for hint in kinds for part in _parts(hint) if isinstance(part, type)]
            for kind in dict.fromkeys(inner):
                if kind in records and records[kind] != each.path:
                    found.setdefault(records[kind], []).append(each)
        return found

    @property
    def _short(self) -> dict[str, Public]:
        """The names that are long enough, and of which there is only one, by themselves."""
        if not hasattr(self, "_by_name"):
            by_name: dict[str, list[Public]] = {}
            for each in self.entries.values():
                by_name.setdefault(each.name, []).append(each)
            self._by_name = {
                name: found[0]
                for name, found in by_name.items()
                if len(found) == 1 and (name[0].isupper() or "_" in name)
            }
        return self._by_name


def find_names() -> Names:
    """Return all public names."""
    import rankwright

    import core
    import core.metrics
    from core import bounds, explain, monitoring, probability, selection

    names = Names()
    for path, item in _exports(core):
        page = (
            f"{PYTHON}estimators/{slug(path.rpartition('.')[2])}.md"
            if isinstance(item, type)
            else f"{PYTHON}artifacts.md"
        )
        names.entries[path] = Public(path, item, page)
    for path, item in _exports(core.metrics):
        names.entries[path] = Public(path, item, f"{PYTHON}metrics/{slug(_group_of(item))}.md")
    for package in (explain, probability, selection, bounds, monitoring):
        for path, item in _exports(package):
            names.entries[path] = Public(
                path, item, f"{PYTHON}{slug(PACKAGES[package.__name__])}.md"
            )
    for path, item in _exports(rankwright):
        names.entries[path] = Public(path, item, f"{PYTHON}{_client_page(item)}.md")
    return names


def _exports(package: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in package.__all__:
        yield f"{package.__name__}.{name}", getattr(package, name)


def _parts(hint: Any) -> Iterator[Any]:
    """Yield an annotation and all that it is made of."""
    yield hint
    for inner in get_args(hint):
        yield from _parts(inner)


def _group_of(item: Any) -> str:
    module = str(getattr(item, "__module__", "")).split(".")
    of_module = {each: title for title, modules in GROUPS.items() for each in modules}
    return next(
        (of_module[each] for each in reversed(module) if each in of_module), next(iter(GROUPS))
    )


def _client_page(item: Any) -> str:
    if isinstance(item, type) and issubclass(item, Exception):
        return "client/errors"
    return {"RemoteRanker": "client/remote-ranker", "AsyncClient": "client/async-client"}.get(
        item.__name__, "client/index"
    )
