"""The editor of reason codes and their letters, with the letter of a sample customer before anything is saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.types import LettersAnswer, Model
from starlette.responses import Response

from app.console.api import attempt, refusal
from app.console.model_parts import model_page, show_tab
from app.console.row_score import (
    cutoffs_of_aliases,
    entered_fields,
    example_row,
    faults_of_row,
    read_row,
)
from app.console.session import ConsoleRoute, ModelDep, Page, PageDep
from app.console.words import FieldLabel, FormFaults, place_faults
from app.http.forms import Fields

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
MAX_FORM_FIELDS = 900
"""Fields of a page whose codes can be edited: a form has a limited number of fields."""
PLACEHOLDERS = {
    "{feature}": "the feature",
    "{value}": "its value for the customer",
    "{points}": "the points of the customer, as a whole number",
    "{points_lost}": "the points that the feature cost",
    "{cutoff_points}": "the points at the cutoff of the alias",
    "{text}": "the text of the code",
    "{code}": "the code",
}
"""The placeholders of a letter, and what replaces them."""
DIRECTIONS = {"raises": "raises the score", "lowers": "lowers the score", "": "either"}
MAX_REASONS = 4
"""Maximum number of reasons of a previewed letter."""
NEW = ("code", "text", "letter", "direction")
"""The fields of a code that is added, beside its features."""
TITLES = (("code", "Code"), ("text", "Text"), ("columns", "Features"), ("letter", "Letter"))
"""The labels of these fields."""


@dataclass(frozen=True)
class EditedCode:
    """A reason code: its text, its letter, and in words what it applies to."""

    code: str
    text: str
    letter: str
    applies_to: str
    is_removed: bool = False


@dataclass(frozen=True)
class Draft:
    """The edited reason codes: the stored entries, their revision (empty without codes), and the entered values.

    `is_drafted`: the entries are a proposal, and nothing is stored.
    """

    stored: Sequence[Json]
    revision: str
    is_drafted: bool
    codes: Sequence[EditedCode]
    new: Mapping[str, str] = field(default_factory=dict)
    new_columns: Sequence[str] = ()

    def entries(self) -> tuple[list[Json], dict[str, FieldLabel]]:
        """Return entries for the API, and form fields by the API's names."""
        by_code = {each.code: (k, each) for k, each in enumerate(self.codes)}
        entries: list[Json] = []
        labels: dict[str, FieldLabel] = {}
        for each in self.stored:
            k, edited = by_code[each["code"]]
            if edited.is_removed:
                continue
            at = f"entries/{len(entries)}"
            labels |= {
                f"{at}/{name}": FieldLabel(f"{name}.{k}", f"{title} of {edited.code}")
                for name, title in (("text", "Text"), ("letter", "Letter"))
            }
            entries.append({**each, "text": edited.text, "letter": edited.letter or None})
        if any(self.new[name] for name in ("code", "text", "letter")) or self.new_columns:
            at = f"entries/{len(entries)}"
            labels |= {f"{at}/{name}": FieldLabel(f"new.{name}", title) for name, title in TITLES}
            entries.append(
                {
                    **self.new,
                    "columns": list(self.new_columns),
                    "direction": self.new["direction"] or None,
                    "letter": self.new["letter"] or None,
                }
            )
        return entries, labels


@router.get("/{ref}/letters")
async def read_letters(page: PageDep, model: ModelDep) -> Response:
    """Show a proposal of codes if the query asks for it."""
    draft = await _read_draft(page, model, None, is_drafted=bool(page.asked("draft")))
    return await _show(page, model, draft, await example_row(page, model))


@router.post("/{ref}/letters")
async def edit_letters(page: PageDep, ref: str) -> Response:
    """Show the letter with the entered codes; or save them if the button says so."""
    form = await page.form()
    model = await page.client.models[ref].read()
    if not page.can("train", model.name):
        detail = f"you cannot change the reason codes. {page.lacks('train', model.name)}"
        raise refusal(403, "Forbidden", detail)
    draft = await _read_draft(page, model, form, is_drafted=bool(form.get("draft")))
    entries, labels = draft.entries()
    row = entered_fields(form, model.features)
    answer: LettersAnswer | None = None
    # Letters name the cutoff of an alias, so that of the first alias with one is previewed.
    of_alias = next(iter(await cutoffs_of_aliases(page, model)), "")
    scored_as = f"{model.name}@{of_alias}" if of_alias else ref
    try:
        if form.get("action") == "save":
            await page.client.models.set_reason_codes(
                model.name, entries, revision=draft.revision or None
            )
            return page.go(f"{model_page(model.id)}/letters", saved="yes")
        answer = await page.client.models[scored_as].preview_letters(
            [read_row(form, model)], entries, reasons=MAX_REASONS
        )
    except ProblemError as error:
        if error.status not in (409, 412, 422, 428):
            raise
        problem = error.problem if error.status == 422 else CHANGED
        return await _show(page, model, draft, row, error.status, problem, labels=labels)
    return await _show(page, model, draft, row, answer=answer, of_alias=of_alias)


CHANGED = {
    "title": "Not saved",
    "detail": "Somebody changed the reason codes after you opened the page. Open it again and repeat your edits.",
}
"""The error if the reason codes have another revision than those on the page."""


async def _read_draft(page: Page, model: Model, form: Fields | None, *, is_drafted: bool) -> Draft:
    """Use the entered texts; without a form, the newest revision."""
    revision = str(form.get("revision", "")) if form else ""
    if revision and not (revision.isascii() and revision.isdigit() and len(revision) < 10):
        rule = f"revision must be a revision of the reason codes, got {revision[:100]!r}"
        raise refusal(422, "Invalid request", rule)
    found = None
    if form is None or revision:
        asked = page.client.models.read_reason_codes(
            model.name, revision=int(revision) if revision else None
        )
        found, _ = await attempt(asked, 404)
    if revision and found is None:
        rule = f"the reason codes of {model.name} have no revision {revision}: open the page again"
        raise refusal(422, "Invalid request", rule)
    stored = [] if found is None else [each.to_json() for each in found.entries]
    if found is not None:
        is_drafted, revision = False, str(found.revision)
    elif is_drafted:
        stored = _propose(model)
    codes = _codes_of(stored, form)
    new = {name: _entered(form, f"new.{name}") for name in NEW}
    columns = [each for each in (form.getlist("new.columns") if form else []) if each]
    return Draft(stored, revision, is_drafted, codes, new, columns)


def _propose(model: Model) -> list[Json]:
    """Return one code for each feature that raises the score."""
    return [
        {"code": f"R{j:02d}", "text": each.name, "columns": [each.name], "direction": "raises"}
        for j, each in enumerate(model.features, start=1)
    ]


def _codes_of(stored: Sequence[Json], form: Fields | None) -> list[EditedCode]:
    by_code: dict[str, list[Json]] = {}
    for each in stored:
        by_code.setdefault(each["code"], []).append(each)
    codes = []
    for k, (code, entries) in enumerate(by_code.items()):
        text, letter = entries[0]["text"], entries[0].get("letter") or ""
        codes.append(
            EditedCode(
                code,
                _entered(form, f"text.{k}", text),
                _entered(form, f"letter.{k}", letter),
                "; ".join(map(_applies_to, entries)),
                is_removed=bool(form and form.get(f"remove.{k}")),
            )
        )
    return codes


def _entered(form: Fields | None, name: str, default: str = "") -> str:
    """Lines end with line feeds alone."""
    value = default if form is None else str(form.get(name, default))
    return value.replace("\r\n", "\n").strip()


def _applies_to(entry: Mapping[str, Any]) -> str:
    said = ", ".join(entry["columns"])
    low, high, missing = entry.get("min"), entry.get("max"), entry.get("missing")
    if low is not None:
        said += f" of at least {low}"
    if high is not None:
        said += f"{' and' if low is not None else ' of'} at most {high}"
    if entry.get("categories"):
        said += f": {', '.join(entry['categories'])}"
    if missing is not None:
        said += ", also missing values" if missing else ", known values only"
    if entry.get("direction"):
        said += f", if it {DIRECTIONS[entry['direction']]}"
    return said


async def _show(
    page: Page,
    model: Model,
    draft: Draft,
    row: Mapping[str, str],
    status: int = 200,
    problem: Mapping[str, Any] | None = None,
    *,
    labels: Mapping[str, FieldLabel] | None = None,
    answer: LettersAnswer | None = None,
    of_alias: str = "",
) -> Response:
    faults: FormFaults = place_faults(problem, labels or {})
    n_fields = 3 * len(draft.codes) + len(model.features)
    return await show_tab(
        page,
        model,
        "model_letters.html",
        "explain",
        status,
        draft=draft,
        faults=faults,
        row=row,
        at_fault=faults_of_row(problem, model.features),
        answer=answer,
        of_alias=of_alias,
        most_reasons=MAX_REASONS,
        saved=bool(page.asked("saved")),
        editable=page.can("train", model.name) and n_fields <= MAX_FORM_FIELDS,
        placeholders=PLACEHOLDERS,
        directions=DIRECTIONS,
    )
