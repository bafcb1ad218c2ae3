"""What the site owes its readers, checked in the pages that were built. Each check yields a kind and a sentence."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from docs.builder.commands import COMMON, Command, usage
from docs.builder.names import Public
from docs.builder.openapi import Api
from docs.builder.site import Page, Section

MAX_BYTES = 300_000
"""Most bytes of a page."""

Pages = Mapping[str, Page]
Fault = tuple[str, str]
"""A kind and a sentence."""
Ask = Callable[[Path, list[str]], dict[str, list[str]]]
"""Returns the locations of the first results of each query."""

PACKAGES = ("core", "core.metrics", "rankwright")
"""Packages all of whose names need an example."""

_NAME = re.compile(r"\b(?:core|rankwright|app|workers|migrations)(?:\.\w+)+")


def address(page: str) -> str:
    """Return the address of a page of Markdown."""
    return re.sub(r"(^|/)index\.md$", r"\1", page).replace(".md", "/")


def sizes(pages: Pages) -> Iterator[Fault]:
    """Yield pages that are too large."""
    for page in pages.values():
        if page.size > MAX_BYTES:
            yield "size", f"{page.path} has {page.size:,} bytes, at most {MAX_BYTES:,} are allowed"


def marks(pages: Pages) -> Iterator[Fault]:
    """Yield what the builder marked as missing."""
    for page in pages.values():
        for section in page.sections:
            for gap in section.gaps:
                kind, _, name = gap.partition(": ")
                yield kind, f"{name} ({page.path})"


def public_names(pages: Pages, names: Iterable[Public]) -> Iterator[Fault]:
    """Yield public names without an entry, a signature, a parameter or an example."""
    for public in names:
        page = pages.get(address(public.page))
        entry = page.entry(public.path) if page else []
        if not entry or page is None:
            yield "entry", f"{public.path} has no entry on {public.page}"
            continue
        own = _until_method(entry)
        if callable(public.item) and not any("signature" in each.classes for each in own):
            yield "signature", f"{public.path} has no signature"
        shown = next((code for each in own for code in each.codes), "")
        for parameter in _parameters_in(shown):
            if not _has_parameter(own, parameter):
                yield "parameter", f"{public.path}: {parameter} has no entry of its own"
        has_example = any(">>>" in code for each in own for code in each.codes) or any(
            re.search(r"^(Returned by|Part of) ", each.text, re.MULTILINE) for each in own
        )
        if public.path.rpartition(".")[0] in PACKAGES and callable(public.item) and not has_example:
            yield "example", f"{public.path} ({page.path})"


def _until_method(entry: list[Section]) -> list[Section]:
    """Return the sections of an entry before those of its methods."""
    end = next((k for k, each in enumerate(entry) if "method" in each.classes and k), len(entry))
    return entry[:end]


def _parameters_in(signature: str) -> list[str]:
    """Return the names of the parameters in a signature."""
    inside, depth, names = signature.partition("(")[2], 0, [""]
    for letter in inside:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            names.append("")
        else:
            names[-1] += letter
    found = (re.match(r"\s*\**(\w+)", each) for each in names)
    return [each[1] for each in found if each]


def _has_parameter(entry: list[Section], name: str) -> bool:
    for section in entry:
        if section.title.split(" ")[0] == name or re.search(
            rf"^\**{name}\b", section.text, re.MULTILINE
        ):
            return True
    return False


def headings(pages: Pages, allowed: Iterable[str]) -> Iterator[Fault]:
    """Yield headings that name a module which is not public. `allowed`: the public names."""
    known = set(allowed)
    for page in pages.values():
        if not page.path.startswith("reference/"):
            continue
        for section in page.sections:
            for name in _NAME.findall(section.title):
                if name not in known and name.rpartition(".")[0] not in known:
                    yield (
                        "internal name",
                        f"{page.path}: the heading {section.title!r} names {name}",
                    )


def routes(pages: Pages, api: Api) -> Iterator[Fault]:
    """Yield routes without a complete request, or without an example of a response."""
    for route in api.routes:
        page = pages.get(address(route.page))
        entry = page.entry(route.anchor) if page else []
        if not entry:
            yield "entry", f"{route.title} has no entry"
            continue
        codes = [code for each in entry for code in each.codes]
        request = next((code for code in codes if code.startswith("curl ")), "")
        if api.host not in request:
            yield "curl", f"{route.title} has no complete request"
        elif (
            route.operation.get("security", api.root.get("security"))
            and "Authorization: Bearer" not in request
        ):
            yield "curl", f"{route.title}: the request has no key"
        if "…" in request:
            yield "curl", f"{route.title}: a part of the address has no example"
        text = " ".join(each.text for each in entry)
        documented = [
            s for s, answer in route.answers if "application/json" in answer.get("content", {})
        ]
        is_shown = any(code.lstrip().startswith(("{", "[")) for code in codes)
        if documented and not is_shown and "example of the body is that of" not in text:
            yield "example of a response", f"{route.title} {documented[0]}"
        for parameter in route.operation.get("parameters", ()):
            if page and f"{route.anchor}.{parameter['name']}" not in page.anchors:
                yield (
                    "entry",
                    f"{route.title}: the parameter {parameter['name']} has no entry of its own",
                )


def objects(pages: Pages, api: Api) -> Iterator[Fault]:
    """Yield objects of the API that no page describes."""
    for name in api.schemas:
        page, _, anchor = api.address(name).partition("#")
        if address(page) not in pages or anchor not in pages[address(page)].anchors:
            yield "entry", f"the object {name} has no entry"


def commands(pages: Pages, found: Iterable[Command]) -> Iterator[Fault]:
    """Yield commands without usage or example, or that show a private option."""
    for command in found:
        page = pages.get(address(command.page))
        entry = page.entry(command.anchor) if page else []
        codes = [code for each in entry for code in each.codes]
        if not any(usage(command) in code for code in codes):
            yield "usage", f"{command.name} has no usage line"
        if not any(code.startswith("$ rankwright") for code in codes):
            yield "example of a command", command.name
        private = [
            each
            for each in command.item.get_params(command.context)
            if getattr(each, "hidden", False)
        ]
        text = " ".join(each.title + each.text for each in entry)
        for option in private:
            if re.search(rf"(?<!\w){option.opts[0]}\b", text):
                yield "private option", f"{command.name} shows {option.opts[0]}"


def examples_of_commands(
    found: Iterable[Command], examples: Mapping[str, list[str]]
) -> Iterator[Fault]:
    """Yield examples whose command or options do not exist."""
    by_name = {each.name: each for each in found}
    for name, lines in examples.items():
        if name not in by_name:
            yield "example of a command", f"{name} is no command"
            continue
        known = {
            option
            for each in by_name[name].parameters
            for option in [*each.opts, *each.secondary_opts]
        }
        for line in lines:
            for option in re.findall(r"(?<=\s)--[\w-]+", line):
                if option not in known:
                    yield "example of a command", f"{name} has no option {option}"


# --- search ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Query:
    """What a reader searches for."""

    text: str
    title: str
    """How the title of its entry begins."""
    within: int = 1
    """The entry is to be among so many first results."""
    is_always_asked: bool = False
    """Also if it is short."""


ASKED = {
    "sso": "Sign in with your identity provider",
    "gdpr": "Erase, keep, hold",
    "delete customer data": "Erase, keep, hold",
    "fairness": "Groups, amounts and costs",
    "webhooks": "Webhooks (",
}
"""What readers ask in words that the page does not use, and how the title of that page begins."""


def queries(
    pages: Pages,
    api: Api,
    names: Iterable[Public],
    found: Iterable[Command],
    settings: Iterable[str],
) -> Iterator[Query]:
    """Yield every setting, error code, route, option, parameter and public name.

    The search matches the beginnings of words in any order. So other results may come before an entry whose name is a
    single word, or the beginning of another name. Words of up to five letters are left out.
    """
    yield from (Query(text, title, 1, is_always_asked=True) for text, title in ASKED.items())
    yield from (Query(name, name) for name in settings)
    if "errors/" in pages:
        yield from (
            _word_query(each.title) for each in pages["errors/"].sections if each.level == 3
        )
    for route in api.routes:
        longer = sum(each.path.startswith(route.path) for each in api.routes) - 1
        yield Query(route.title, route.title, 3 + longer)
        yield from (_word_query(each["name"]) for each in route.operation.get("parameters", ()))
    for public in names:
        yield Query(public.path, public.path, 10)
        page = pages.get(address(public.page))
        if public.is_estimator and page:
            shown = [each.title.split(" ")[0] for each in page.sections if each.level == 5]
            yield from map(_word_query, shown)
    for command in found:
        yield Query(command.name, command.name, 3)
        for each in command.parameters:
            if each.opts[0].startswith("-") and each.name not in COMMON:
                short = command.name.removeprefix("rankwright ")
                yield Query(f"{short} {each.opts[0]}", each.opts[0], 3)


def _word_query(name: str) -> Query:
    return Query(name, name, 3 if "_" in name else 10)


def search(folder: Path, asked: Iterable[Query], ask: Ask | None = None) -> Iterator[Fault]:
    """Yield what the site's own search does not find first at its own entry; needs node."""
    index = json.loads((folder / "search.json").read_text(encoding="utf-8"))
    titles = {
        item["location"]: _words(re.sub(r"<[^>]+>", "", item["title"])) for item in index["items"]
    }
    by_text = {each.text: each for each in asked if each.is_always_asked or len(each.text) > 5}
    for text, locations in (ask or ask_node)(folder, [*by_text]).items():
        query = by_text[text]
        own = _words(query.title)
        shown = [titles.get(each, "") for each in locations[: query.within]]
        if not any(title == own or title.startswith(own + " ") for title in shown):
            yield "search", f"{text!r} finds {locations[0] if locations else 'nothing'} first"


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.replace("_", " ").lower()))


def ask_node(folder: Path, texts: list[str]) -> dict[str, list[str]]:
    """Return the locations of the first results of each query; nothing where there is no node."""
    node = shutil.which("node")
    if node is None:
        return {}
    script = Path(__file__).parent / "search.js"
    given = json.dumps({"folder": str(folder), "queries": texts})
    done = subprocess.run(
        [node, str(script)], input=given, capture_output=True, text=True, check=True
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def navigation(pages: Pages, given: Iterable[str]) -> Iterator[Fault]:
    """Yield pages that are not in the navigation, and entries of it without a page."""
    patterns = [*given]
    for entry in patterns:
        if not entry.endswith("/*") and address(entry) not in pages:
            yield "navigation", f"{entry} does not exist"
    listed = {address(each) for each in patterns}
    folders = tuple(address(each).removesuffix("*") for each in patterns if each.endswith("/*"))
    for path in pages:
        is_page = not path.endswith(".html")
        if is_page and path not in listed and not path.startswith(folders):
            yield "navigation", f"no entry leads to {path}"
