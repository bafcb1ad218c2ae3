"""How a model was trained, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator

from app import __version__
from app.reports import document
from app.reports.document import Block, Paragraph, Table
from app.reports.service import Facts
from core.parameters import list_parameters
from core.registry import ALGORITHMS

MOST_CANDIDATES = 50


def training(facts: Facts) -> list[Block]:
    """Algorithm, aim, validation, seed, every parameter, and what a search has tried."""
    model = facts.model
    facts_of_it = [
        ["algorithm", model.algorithm],
        ["objective", document.objective(model.objective)],
        ["the algorithm itself optimises", document.objective(model.optimised_for)],
        [
            "parameters chosen by",
            document.objective(model.selected_by)
            if model.selected_by
            else "nothing: they are as given",
        ],
        ["validation", document.validation(model.validation)],
        ["seed", str(model.seed)],
        ["time of the fit", f"{model.fit_seconds:.3g} s"],
    ]
    blocks: list[Block] = [Table((), facts_of_it)]
    if parameters := list(_parameters(facts)):
        blocks.append(Table(("parameter", "value", "meaning"), parameters))
    return [*blocks, *_search(facts)]


def _parameters(facts: Facts) -> Iterator[list[str]]:
    known = ALGORITHMS.get(facts.model.algorithm)
    meanings = {p.name: " ".join(p.doc.split()) for p in list_parameters(known)} if known else {}
    for name, value in facts.model.parameters.items():
        if name == "members":  # of `auto`, told with its leaderboard
            continue
        yield [name, document.value(value), meanings.get(name, "")]


def _search(facts: Facts) -> Iterator[Block]:
    search = facts.model.search
    if search is None:
        return
    aim = document.objective(facts.model.selected_by)
    yield Paragraph(
        f"A {search['method']} search chose {document.settings(search['chosen'])} by {aim}, "
        f"in {search['seconds']:.3g} s. The values flatter what was chosen by them."
    )
    rows = [
        [
            document.settings(candidate["parameters"]),
            document.figure(candidate["value"]),
            "chosen" if candidate["parameters"] == search["chosen"] else "",
        ]
        for candidate in search["candidates"][:MOST_CANDIDATES]
    ]
    yield Table(("candidate", "value", ""), rows)
    if (more := len(search["candidates"]) - MOST_CANDIDATES) > 0:
        yield Paragraph(f"… and {more:,} more.")
    if folds := search.get("folds_chosen"):  # searches of earlier versions have no such entry
        yield Paragraph("Each fold has chosen for itself, by the rows that it learnt from.")
        yield Table(
            ("repeat", "fold", "chosen"),
            [[str(f["repeat"]), str(f["fold"]), document.settings(f["chosen"])] for f in folds],
        )


def lineage(facts: Facts) -> Table:
    """What came from what, and by which hand."""
    model, job = facts.model, facts.job
    rows = [
        ["model", f"{model.id}, version {model.version} of {model.name}"],
        ["aliases", ", ".join(facts.aliases) or "none"],
        ["tags", ", ".join(f"{name} = {value}" for name, value in model.tags.items()) or "none"],
        ["artifact, SHA-256", model.artifact_sha256],
        ["artifact, size", document.size(model.artifact_bytes)],
        ["job", model.job_id],
    ]
    if job is not None:
        rows += [
            ["handed in", document.moment(job.created_at)],
            ["begun", document.moment(job.started_at)],
            ["ended", document.moment(job.finished_at)],
            ["attempt", f"{job.attempt} of at most {job.max_attempts}"],
        ]
    rows += [
        ["dataset", document.version(model.dataset) if model.dataset else model.dataset_id],
        ["model made", document.moment(model.created_at)],
        ["report by", f"Rankwright {__version__}"],
    ]
    return Table((), rows)
