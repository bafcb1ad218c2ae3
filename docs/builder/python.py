"""The reference of Python: an entry for each public name, made of its signature, annotations and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

from docs.builder.bounds import alternatives, python_type
from docs.builder.docstrings import Docstring, Entry, as_markdown, with_code
from docs.builder.markdown import code, first_sentence, gap, heading, hidden, link, sentence
from docs.builder.names import PACKAGES, Names, Public
from docs.builder.signatures import (
    Shown,
    field_texts,
    hints_of,
    parameters_of,
    signature_text,
    tidy,
)

INTERNAL = {
    *(
        "check_lists",
        "check_pair_parameters",
        "check_parameters",
        "check_path_parameters",
        "checked_rows",
    ),
    *(
        "combination",
        "count_shapley_steps",
        "count_visited",
        "divide_exactly",
        "find_directions",
        "fit_share",
    ),
    *(
        "fit_watched",
        "from_state",
        "get_metadata_routing",
        "get_parameters",
        "get_state",
        "join_shares",
    ),
    *(
        "keeps_when_stopped",
        "path",
        "path_parameter",
        "reads_columns",
        "reads_shards",
        "score_mixed",
        "score_rows",
    ),
    *(
        "set_fit_request",
        "set_score_request",
        "set_partial_fit_request",
        "takes_categories",
        "takes_grades",
    ),
    *("takes_query", "target", "walk_monotone"),
}
"""Members of rankers that only the service and other rankers call."""

INTERNAL_METHODS = ("core.metrics.functionals",)
"""Packages with classes whose methods only other functions of the package call."""

FIRST = (
    *(
        "fit",
        "fit_pairs",
        "partial_fit",
        "fit_path",
        "path_rankers",
        "predict",
        "decision_function",
    ),
    *("staged_decision_function", "score", "structure", "contributions", "shapley_values"),
)
"""Methods of rankers in the order in which a reader needs them; others follow by name."""

FOREIGN = ("sklearn", "numpy", "builtins", "typing", "collections", "abc", "enum")
"""Packages whose members are not ours to describe."""


class Writer:
    """Writes the entries of one page."""

    def __init__(self, names: Names, page: str) -> None:
        self.names = names
        self.page = page

    def text(self, text: str, own: str = "") -> str:
        """Return a text of a docstring for the page."""
        return self.names.linked(as_markdown(text), self.page, own)

    # --- entries ----------------------------------------------------------------------------------

    def entry(self, public: Public, level: int = 2) -> Iterator[str]:
        """Yield the entry of a public name."""
        yield from heading(level, f"`{public.path}`", public.path, "name", public.name)
        item = public.item
        if isinstance(item, type):
            yield from self.class_entry(public, level)
        elif callable(item):
            yield from self.function(public.path, item, level, public.path, is_public=True)
        else:
            yield from code(f"{public.path} = {item!r}"[:300], "python")

    def class_entry(self, public: Public, level: int) -> Iterator[str]:
        """Yield what there is to say about a class."""
        kind, path = public.item, public.path
        docstring = Docstring.of(kind)
        described = docstring.described("Parameters", "Keywords", "Attributes")
        parameters = parameters_of(kind, described)
        is_made = not (inspect.isabstract(kind) or is_protocol(kind) or issubclass(kind, Enum))
        if not is_made or (issubclass(kind, BaseException) and not described):
            parameters = []
        yield from self.signature(path, parameters, "")
        yield from self.about(docstring, path)
        yield from self.examples(docstring, path)
        title = "Fields" if is_record(kind) else "Parameters"
        yield from self.parameters(
            parameters, path, level + 1, as_headings=public.is_estimator, title=title
        )
        yield from self.attributes(
            kind, docstring, {each.name for each in parameters}, path, level + 1
        )
        yield from self.methods(kind, path, level + 1)
        yield from self.notes(docstring, level + 1, path)

    def function(
        self,
        name: str,
        item: Any,
        level: int,
        path: str,
        *,
        is_public: bool,
        returns: str | None = None,
    ) -> Iterator[str]:
        """Yield what there is to say about a function or a method."""
        docstring = Docstring.of(item)
        parameters = [self.as_for_fit(each, path) for each in parameters_of(item)]
        if returns is None:
            returns = self.returned(item)
        yield from self.signature(name, parameters, returns)
        yield from self.about(docstring, path)
        if is_public:
            yield from self.examples(docstring, path)
        yield from self.parameters(parameters, path, level + 1)
        yield from self.results(docstring, "Returns", "Yields", "Raises", "Warns")
        if not is_public and "Examples" in docstring.sections:
            yield from self.examples(docstring, path)
        yield from self.notes(docstring, level + 1, path)

    def as_for_fit(self, each: Shown, path: str) -> Shown:
        """Return a parameter of an estimator's method that has no text with that of `fit`."""
        owner, _, name = path.rpartition(".")
        kind: Any = getattr(self.names.entries.get(owner), "item", None)
        if each.text or name == "fit" or not hasattr(kind, "fit"):
            return each
        described = Docstring.of(kind.fit).described("Parameters")
        is_known = each.name in described and described[each.name].text
        return replace(each, text=f"As for [`fit`](#{owner}.fit)." if is_known else "")

    def signature(self, name: str, parameters: list[Shown], returns: str) -> Iterator[str]:
        """Yield a signature."""
        yield from ('<div class="signature" markdown>', "")
        yield from code(signature_text(name, parameters, returns), "python")
        yield from ("</div>", "")

    def returned(self, item: Any) -> str:
        """Return the type of what a function returns."""
        try:
            found = hints_of(item).get("return", inspect.signature(item).return_annotation)
        except (TypeError, ValueError):
            return ""
        return "" if found is inspect.Signature.empty else tidy(python_type(found))

    def about(self, docstring: Docstring, path: str) -> Iterator[str]:
        """Yield the text before the sections."""
        yield from (self.text(docstring.text, path) or gap("description", path), "")

    def examples(self, docstring: Docstring, path: str) -> Iterator[str]:
        """Yield the examples."""
        found = docstring.sections.get("Examples", "")
        sources = self.names.sources.get(path, [])
        if sources:
            links = [link(f"`{each.name}`", each.address, self.page) for each in sources[:6]]
            functions = [
                text
                for text, each in zip(links, sources, strict=False)
                if not isinstance(each.item, type)
            ]
            others = [text for text in links if text not in functions]
            words = [f"Returned by {alternatives(functions)}."] if functions else []
            words += [f"Part of {alternatives(others)}."] if others else []
            yield from (" ".join(words), "")
        elif ">>>" not in found:
            kind = (
                "example of another package" if path.rpartition(".")[0] in PACKAGES else "example"
            )
            yield from (gap(kind, path), "")
        if found:
            yield from ("<p class='caption'>Example</p>", "", '<div class="example" markdown>', "")
            yield from (*with_code("\n".join([*self.imports(found, path), found])), "</div>", "")

    def imports(self, example: str, path: str) -> list[str]:
        """Return the lines that an example of a package's own module does without: what it uses is imported there."""
        package = path.rpartition(".")[0]
        used = [
            each.name for each in self.names.of(package) if re.search(rf"\b{each.name}\b", example)
        ]
        if not used or "import" in example or package not in {*PACKAGES, "core", "core.metrics"}:
            return []
        numpy = [">>> import numpy as np"] if re.search(r"\bnp\.", example) else []
        return [*numpy, f">>> from {package} import {', '.join(used)}"]

    # --- parameters and attributes ----------------------------------------------------------------

    def parameters(
        self,
        parameters: list[Shown],
        path: str,
        level: int,
        *,
        as_headings: bool = False,
        title: str = "Parameters",
    ) -> Iterator[str]:
        """Yield the parameters: those of an estimator with headings, which the search finds."""
        if not parameters:
            return
        yield from self.label(title, level, as_headings=as_headings)
        if as_headings:
            for each in parameters:
                yield from heading(
                    5, f"`{each.name}` {hidden(path)}", f"{path}.{each.name}", "param"
                )
                yield from (f"{self.kind(each)}\n{{.kind}}", "")
                yield from (self.described(each, path), "")
            return
        yield from ('<div class="params" markdown>', "")
        for each in parameters:
            yield f"`{each.prefix}{each.name}`{{.param}} {self.kind(each)}"
            yield from self.definition(self.described(each, path))
        yield from ("</div>", "")

    def kind(self, each: Shown) -> str:
        """Return the type of a parameter and its default."""
        default = f"default `{each.default}`" if each.default is not None else ""
        kind = self.names.linked(
            tidy(each.kind) if "`" in each.kind else as_markdown(each.kind), self.page
        )
        return ", ".join(filter(None, (kind, default)))

    def described(self, each: Shown, path: str) -> str:
        """Return what a parameter means."""
        return self.text(sentence(each.text)) or gap("parameter", f"{path}: {each.name}")

    def definition(self, text: str) -> Iterator[str]:
        """Yield the definition of a term."""
        first, *others = (text or "–").splitlines()
        yield f":   {first}"
        yield from (f"    {line}" if line.strip() else "" for line in others)
        yield ""

    def label(self, title: str, level: int, *, as_headings: bool = True) -> Iterator[str]:
        """Yield the title of a part of an entry."""
        if as_headings and level <= 2:
            yield from heading(level, title)
        else:
            yield from (f"<p class='caption'>{title}</p>", "")

    def attributes(
        self, kind: type, docstring: Docstring, done: set[str], path: str, level: int
    ) -> Iterator[str]:
        """Yield the attributes: those of the docstrings of a class and its bases, of fields, and properties."""
        rows: dict[str, tuple[str, str]] = {}
        for base in kind.__mro__:
            if base.__module__.partition(".")[0] in FOREIGN:
                continue
            own = Docstring.of(base.__dict__.get("__doc__") or "")
            for entry in own.entries("Attributes"):
                for name in entry.names:
                    if name not in done:
                        rows.setdefault(name, (as_markdown(entry.kind), entry.text))
        for name, member in inspect.getmembers_static(
            kind, lambda each: isinstance(each, property | cached_property)
        ):
            if not name.startswith("_") and name not in INTERNAL | done:
                getter = member.fget if isinstance(member, property) else member.func
                text, kind_of = Docstring.of(member).text, self.returned(getter)
                was = rows.get(name, ("", ""))
                rows[name] = (was[0] or (f"`{kind_of}`" if kind_of else ""), was[1] or text)
        for name, text in field_texts(kind).items():
            if name not in done and not name.startswith("_") and name not in INTERNAL:
                rows.setdefault(name, ("", text))
        if not rows:
            return
        title = "Fitted attributes" if hasattr(kind, "fit") else "Attributes"
        yield from self.label(title, level)
        yield from ('<div class="params" markdown>', "")
        for name, (kind_of, text) in rows.items():
            yield f"`{name}`{{.param}} {self.names.linked(kind_of, self.page)}"
            yield from self.definition(
                self.text(sentence(text)) or gap("attribute", f"{path}.{name}")
            )
        yield from ("</div>", "")

    def results(self, docstring: Docstring, *sections: str) -> Iterator[str]:
        """Yield what a function returns and raises."""
        for section in sections:
            entries = docstring.entries(section)
            if entries:
                yield from (
                    f"<p class='caption'>{section}</p>",
                    "",
                    '<div class="params" markdown>',
                    "",
                )
                for entry in entries:
                    yield from self._result(entry)
                yield from ("</div>", "")

    def _result(self, entry: Entry) -> Iterator[str]:
        names = ", ".join(entry.names)
        head = f"`{names}` {as_markdown(entry.kind)}" if entry.kind else as_markdown(names)
        yield self.names.linked(head, self.page).strip()
        if entry.text:
            yield from self.definition(self.text(entry.text))
        else:
            yield ""

    # --- methods ----------------------------------------------------------------------------------

    def methods(self, kind: type, path: str, level: int) -> Iterator[str]:
        """Yield the public methods of a class, with those that it inherits."""
        if kind.__module__.startswith(INTERNAL_METHODS):
            return
        found = {
            name: item
            for name, item in inspect.getmembers(kind, inspect.isroutine)
            if not name.startswith("_") and name not in INTERNAL and not is_foreign(kind, name)
        }
        if not found:
            return
        yield from self.label("Methods", level)
        for name in sorted(
            found, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)
        ):
            yield from self.method(name, found[name], path, level + 1)

    def method(
        self, name: str, item: Callable[..., Any], path: str, level: int, returns: str | None = None
    ) -> Iterator[str]:
        """Yield the entry of a method."""
        yield from heading(level, f"`{name}` {hidden(path)}", f"{path}.{name}", "method", name)
        yield from self.function(
            name, item, level, f"{path}.{name}", is_public=False, returns=returns
        )

    def notes(self, docstring: Docstring, level: int, path: str) -> Iterator[str]:
        """Yield notes and references."""
        for section in ("Notes", "References", "See Also"):
            if section in docstring.sections:
                yield from self.label(section, level)
                yield from (self.text(docstring.sections[section], path), "")


def is_protocol(kind: type) -> bool:
    """Return True if a class only describes what others have."""
    return bool(getattr(kind, "_is_protocol", False))


def is_record(kind: type) -> bool:
    """Return True if a class holds the results of a call."""
    return hasattr(kind, "_fields") or (is_dataclass(kind) and not hasattr(kind, "fit"))


def is_foreign(kind: type, name: str) -> bool:
    """Return True if a member of a class comes from a library: only scikit-learn's best known are shown."""
    home = next((base for base in kind.__mro__ if name in vars(base)), object)
    is_known = name in ("get_params", "set_params", "score") and hasattr(kind, "fit")
    return home.__module__.partition(".")[0] in FOREIGN and not is_known


def summary(item: Any) -> str:
    """Return the first sentence about a name."""
    return first_sentence(Docstring.of(item).text)
