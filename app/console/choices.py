"""Options that forms offer: models with their aliases, and datasets; the newest, or those that match a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import APIRouter
from rankwright.errors import ProblemError
from starlette.responses import Response

from app.console.api import at
from app.console.rendering import count
from app.console.session import ConsoleRoute, Page, PageDep

router = APIRouter(prefix="/console/pick", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
Kind = Literal["models", "datasets"]
MAX_OPTIONS = 50
MAX_PAGES = 3
"""Most entries that are searched for matches: each page is a request at the key's own rate, and people type fast."""
_VERSION = re.compile(r"(.*):\s*(\d*)", re.DOTALL)


@dataclass(frozen=True)
class Choice:
    """An option: the value that the form sends, and the text that a person reads."""

    value: str
    text: str


@dataclass(frozen=True)
class Offer:
    """Options, the text that they match, and whether there are more."""

    choices: Sequence[Choice]
    sought: str = ""
    more: bool = False


@router.get("/models")
async def find_models(page: PageDep) -> Response:
    """Return the models that match a text, as a fragment; models that are selected already stay."""
    chosen = page.request.query_params.getlist("models")
    offer = await offer_models(page, chosen)
    return page.show("options.html", offer=offer, chosen=chosen, several=bool(chosen))


@router.get("/datasets")
async def find_datasets(page: PageDep) -> Response:
    """Return the datasets that match a text, as a fragment."""
    offer = await offer_datasets(page)
    return page.show("options.html", offer=offer, chosen=[], several=False)


async def offer_models(page: Page, chosen: Sequence[str] = ()) -> Offer:
    """Return models, each alias before the version that it points to, and the selected ones."""
    return await _offer(page, "models", chosen, _of_model)


async def offer_datasets(page: Page, chosen: Sequence[str] = ()) -> Offer:
    """Return the datasets that are ready, and the selected ones."""
    return await _offer(page, "datasets", chosen, _of_dataset)


async def _offer(
    page: Page, kind: Kind, chosen: Sequence[str], choices_of: Callable[[Json], list[Choice]]
) -> Offer:
    # Two forms of a page may ask: use the one that does.
    asked = page.request.query_params.getlist(f"find_{kind}")
    sought = next(filter(None, (text.strip()[:255] for text in asked)), "")
    found, more = await _search(page, kind, sought)
    choices = [choice for each in found for choice in choices_of(each)]
    known = {choice.value for choice in choices} | {each["id"] for each in found}
    for ref in chosen:
        if ref and ref not in known:
            try:
                one = await page.api.get(at(f"/v1/{kind}", ref))
            except ProblemError as error:
                if error.status not in (404, 422):
                    raise
            else:
                choices.append(Choice(ref, choices_of(one)[-1].text if ref == one["id"] else ref))
    return Offer(choices, sought, more)


async def _search(page: Page, kind: Kind, sought: str) -> tuple[list[Json], bool]:
    """Return the newest models or datasets that match part of a name, `name:version` or `name@alias`, and whether
    there are more.

    A dataset's name may be any text: what looks like a version may belong to it, and there are no aliases.
    """
    if kind == "models":
        name, _, version = sought.partition(":")
        name, _, alias = name.partition("@")
        return await _look_through(page, kind, name, version, alias)
    found, more = await _look_through(page, kind, sought)
    if not found and not more and (cut := _VERSION.fullmatch(sought)):
        return await _look_through(page, kind, cut[1], cut[2])
    return found, more


async def _look_through(
    page: Page, kind: Kind, name: str, version: str = "", alias: str = ""
) -> tuple[list[Json], bool]:
    found: list[Json] = []
    after, more = None, True
    for n in range(MAX_PAGES):
        limit = 200 if n or version or alias else MAX_OPTIONS
        answer = await page.api.get(
            at(f"/v1/{kind}"), search=name.strip() or None, limit=limit, after=after
        )
        found += [each for each in answer["data"] if _fits(each, version, alias)]
        after, more = answer["next"], answer["has_more"]
        if len(found) >= MAX_OPTIONS or not more:
            break
    return found[:MAX_OPTIONS], more or len(found) > MAX_OPTIONS


def _fits(each: Json, version: str, alias: str) -> bool:
    ready = each.get("status", "ready") == "ready"
    named = any(one.startswith(alias) for one in each.get("aliases", [])) or not alias
    return ready and named and str(each["version"]).startswith(version.strip())


def _of_model(model: Json) -> list[Choice]:
    name, version = model["name"], model["version"]
    algorithm = model["algorithm"]
    if not isinstance(algorithm, str):
        algorithm = algorithm["name"]
    aliases = [
        Choice(f"{name}@{alias}", f"{name}@{alias}, now version {version}")
        for alias in model["aliases"]
    ]
    return [*aliases, Choice(model["id"], f"{name}:{version} ({algorithm})")]


def _of_dataset(dataset: Json) -> list[Choice]:
    kind = "" if dataset["kind"] == "bipartite" else f", {dataset['kind']}"
    name = f"{dataset['name']}:{dataset['version']}"
    return [Choice(dataset["id"], f"{name}, {count(dataset['rows'])} rows{kind}")]
