"""Options of forms: models with aliases, and datasets. Offers the newest ones, or those that match a search text."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar, cast, get_args

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.operations import Page as ApiPage
from rankwright.types import Dataset, ListedDataset, ListedModel, Model
from starlette.responses import Response

from app.console.api import attempt, path_segment
from app.console.rendering import count, uploaded
from app.console.session import ConsoleRoute, Page, PageDep
from app.platform.errors import shown

router = APIRouter(prefix="/console/pick", include_in_schema=False, route_class=ConsoleRoute)

R = TypeVar("R", ListedModel, ListedDataset)
MAX_OPTIONS = 50
MAX_PAIRS = 200
"""Most pairs of a model and a dataset that GET /v1/fits takes: so many options are checked with fewer of the chosen."""
Use = Literal["evaluation", "comparison", "scoring", "calibration"]
USES = get_args(Use)
MAX_PAGES = 3
"""Most entries that are searched for matches: each page is a request at the key's own rate, and people type fast."""
_VERSION = re.compile(r"(.*):\s*(\d*)", re.DOTALL)


@dataclass(frozen=True)
class Choice:
    """An option: the value that the form sends, its text, and, if it cannot be chosen, the reason."""

    value: str
    text: str
    reason: str = ""


@dataclass(frozen=True)
class Offer:
    choices: Sequence[Choice]
    sought: str = ""
    more: bool = False


@router.get("/models")
async def find_models(page: PageDep) -> Response:
    """Say why some cannot be used with the chosen dataset."""
    offer = await offer_models(page)
    asked = page.query
    offer = await mark_misfits(
        page, offer, "model", asked.get("use"), asked.getlist("with_dataset")
    )
    return page.show("options.html", offer=offer, chosen=[])


@router.get("/datasets")
async def find_datasets(page: PageDep) -> Response:
    """Say why some cannot be used with the chosen models."""
    asked = page.query
    offer = await offer_datasets(page, labelled=asked.get("use") != "scoring")
    offer = await mark_misfits(
        page, offer, "dataset", asked.get("use"), asked.getlist("with_model")
    )
    return page.show("options.html", offer=offer, chosen=[])


async def offer_models(page: Page, chosen: Sequence[str] = ()) -> Offer:
    """Offer the aliases first, then the versions, newest first, and the selected models."""
    models, sought = page.client.models, _sought(page, "models")
    name, _, version = sought.partition(":")
    name, at, alias = name.partition("@")
    found, more = await _look_through(partial(models.page, aliased=True), name, version, alias)
    choices = [choice for each in found for choice in _aliases_of(each, alias)]
    ids: set[str] = set()
    if not at:
        newest, further = await _look_through(models.page, name, version)
        # version 7 comes before version 70
        newest.sort(key=lambda each: str(each.version) != version.strip())
        choices += map(_of_model, newest)
        ids, more = {each.id for each in newest}, more or further

    async def find(ref: str) -> tuple[str, Choice]:
        model = await models[ref].read()
        return model.id, _of_model(model)

    choices += await _chosen(page, "model", chosen, ids, choices, find)
    return Offer(choices, sought, more)


async def offer_datasets(page: Page, chosen: Sequence[str] = (), *, labelled: bool = True) -> Offer:
    """Offer datasets; one that is not ready has the reason why it cannot be chosen.

    With `labelled`, a dataset of kind `preferences` must also have pairs; for scoring rows it needs none.
    """
    datasets, sought = page.client.datasets, _sought(page, "datasets")
    found, more = await _look_through(datasets.page, sought)
    # A dataset has no aliases, and its name may be any text: what looks like a version may be part of the name.
    if not found and not more and (cutoff := _VERSION.fullmatch(sought)):
        found, more = await _look_through(datasets.page, cutoff[1], cutoff[2])

    async def find(ref: str) -> tuple[str, Choice]:
        dataset = await datasets[ref].refresh()
        return dataset.id, _of_dataset(dataset, labelled)

    choices = [_of_dataset(each, labelled) for each in found]
    choices += await _chosen(page, "dataset", chosen, {each.id for each in found}, choices, find)
    return Offer(choices, sought, more)


async def mark_misfits(
    page: Page,
    offer: Offer,
    kind: Literal["model", "dataset"],
    use: str | None,
    others: Sequence[str],
) -> Offer:
    """Add a reason to what cannot be combined with the form's other selections."""
    other = [each for each in others if each]
    values = [choice.value for choice in offer.choices if not choice.reason]
    if use not in USES or not other or not values:
        return offer
    other = other[: MAX_PAIRS // len(values)]
    models, datasets = (values, other) if kind == "model" else (other, values)
    found, _ = await attempt(page.client.fits(models, datasets, use=cast(Use, use)), 404, 422)
    if found is None:
        return offer  # a selected resource was just deleted: the check of the form reports it
    reasons: dict[str, str] = {}
    for each in found:
        if not each.fits:
            reasons.setdefault(
                each.model if kind == "model" else each.dataset_id, each.reason or ""
            )
    choices = [
        replace(choice, reason=choice.reason or reasons.get(choice.value, ""))
        for choice in offer.choices
    ]
    return replace(offer, choices=choices)


def _sought(page: Page, kind: str) -> str:
    """Return the search text. Of two forms on a page, the one that sent the request counts."""
    asked = page.query.getlist(f"find_{kind}")
    return next(filter(None, (text.strip()[:255] for text in asked)), "")


async def _chosen(
    page: Page,
    kind: str,
    chosen: Sequence[str],
    ids: Set[str],
    choices: Sequence[Choice],
    find: Callable[[str], Awaitable[tuple[str, Choice]]],
) -> list[Choice]:
    """Return options for selected resources that are not given. The page reports those that do not exist."""
    known, added = {choice.value for choice in choices} | ids, []
    for ref in chosen:
        if ref and ref not in known:
            try:
                found_id, choice = await find(path_segment(ref))
            except ProblemError as error:
                if error.status not in (404, 422):
                    raise
                page.tell(f"There is no {kind} {shown(ref)}: it was not selected.")
            else:
                added.append(Choice(ref, choice.text if ref == found_id else ref))
    return added


async def _look_through(
    read: Callable[..., Awaitable[ApiPage[R]]], name: str, version: str = "", alias: str = ""
) -> tuple[list[R], bool]:
    """Return the newest matches (datasets that are not ready come last), and True if there are more."""
    found: list[R] = []
    unready: list[R] = []
    after, more = None, True
    for n in range(MAX_PAGES):
        limit = 200 if n or version or alias else MAX_OPTIONS
        answer = await read(search=name.strip() or None, limit=limit, after=after)
        for each in answer.data:
            if _fits(each, version, alias):
                is_ready = not isinstance(each, ListedDataset) or each.status == "ready"
                (found if is_ready else unready).append(each)
        after, more = answer.next, answer.has_more
        if len(found) >= MAX_OPTIONS or not more:
            break
    found += unready
    return found[:MAX_OPTIONS], more or len(found) > MAX_OPTIONS


def _fits(each: ListedModel | ListedDataset, version: str, alias: str) -> bool:
    aliases = () if isinstance(each, ListedDataset) else each.aliases
    fits = not alias or any(one.startswith(alias) for one in aliases)
    return fits and str(each.version).startswith(version.strip())


def _aliases_of(model: ListedModel, start: str) -> list[Choice]:
    return [
        Choice(f"{model.name}@{alias}", f"{model.name}@{alias}, version {model.version}")
        for alias in model.aliases
        if alias.startswith(start)
    ]


def _of_model(model: ListedModel | Model) -> Choice:
    return Choice(model.id, f"{model.name}:{model.version} ({model.algorithm['name']})")


def _of_dataset(dataset: Dataset | ListedDataset, labelled: bool) -> Choice:
    """A dataset that is not ready has the reason."""
    kind = "" if dataset.kind == "bipartite" else f", {dataset.kind}"
    name, made = f"{dataset.name}:{dataset.version}", f"uploaded {uploaded(dataset.id)}"
    if reason := _why_not_ready(dataset, labelled):
        return Choice(dataset.id, f"{name}, {made}", reason)
    return Choice(dataset.id, f"{name}, {count(dataset.rows)} rows{kind}, {made}")


def _why_not_ready(dataset: Dataset | ListedDataset, labelled: bool) -> str:
    """Return an empty text if jobs can use the dataset."""
    if dataset.status == "processing":
        return "it is still being read"
    if dataset.status != "ready":
        return "it could not be read"
    if labelled and dataset.kind == "preferences":
        is_paired = dataset.pairs is not None and dataset.pairs.status == "ready"
        return "" if is_paired else "it has no pairs yet"
    return ""
