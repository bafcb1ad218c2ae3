"""`rankwright list | cancel | alias | codes`: what the service keeps, what an alias means, how reasons are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rankwright import api, types
from rankwright.cli.common import (
    CommandFailed,
    Service,
    asks,
    err,
    given,
    new_table,
    out,
    print_lines,
    takes,
)
from rankwright.client import Client

Collection = Literal["datasets", "jobs", "models", "evaluations", "comparisons", "batch-scores"]


def _dataset(each: Any) -> tuple[str, ...]:
    return each.id, f"{each.name}, version {each.version}", each.status, _rows(each.rows)


def _job(each: Any) -> tuple[str, ...]:
    return each.id, each.name, (each.algorithm or {}).get("name", each.kind), each.state


def _model(each: Any) -> tuple[str, ...]:
    names = ", ".join(f"@{alias}" for alias in each.aliases)
    area = "" if each.auc is None else f"AUC {each.auc.value:.4f}"
    return each.id, f"{each.name}:{each.version} {names}".strip(), each.algorithm["name"], area


def _evaluation(each: Any) -> tuple[str, ...]:
    return each.id, f"{each.model_name}:{each.model_version}", each.status, each.dataset_name or ""


def _comparison(each: Any) -> tuple[str, ...]:
    compared = ", ".join(f"{model.name}:{model.version}" for model in each.models)
    return each.id, compared, each.status, each.dataset_name or ""


def _batch_score(each: Any) -> tuple[str, ...]:
    return each.id, f"{each.model_name}:{each.model_version}", each.status, _rows(each.rows)


def _rows(rows: int | None) -> str:
    return "" if rows is None else f"{rows:,} rows"


_LISTS: dict[str, tuple[type[Any], Callable[[Any], tuple[str, ...]]]] = {
    "datasets": (api.ListDatasets, _dataset),
    "jobs": (api.ListJobs, _job),
    "models": (api.ListModels, _model),
    "evaluations": (api.ListEvaluations, _evaluation),
    "comparisons": (api.ListComparisons, _comparison),
    "batch-scores": (api.ListBatchScores, _batch_score),
}
"""For each collection the operation that lists it, and what is shown of an entry."""


def _records(client: Client, collection: str, fields: Mapping[str, Any]) -> Iterator[Any]:
    found = getattr(client, collection.replace("-", "_")).list(**fields)
    return (getattr(each, "data", each) for each in found)


@asks()
@takes(*(operation for operation, _ in _LISTS.values()), but=["after"])
def list_(
    client: Service,
    collection: Annotated[Collection, typer.Argument(help="What to list.")],
    *,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of items to list.")] = 20,
    **fields: Any,
) -> None:
    """List datasets, training jobs, models, evaluations, comparisons or batch scores, newest first."""
    operation, shown_of = _LISTS[collection]
    for name in fields.keys() - operation.__annotations__.keys():
        option = name.replace("_", "-")
        raise typer.BadParameter(f"--{option} is not an option of {collection}")
    found = list(_records(client, collection, {**fields, "limit": limit + 1}))
    shown = found[:limit]
    if client.prints_json([each.to_json() for each in shown]):
        return
    if not shown:
        named = f" with {fields['search']!r} in the name" if "search" in fields else ""
        such = "such " if fields.keys() - {"search"} else ""
        err.print_line(f"there are no {such}{collection}{named}")
        return
    lines = [(*shown_of(each), each.created_at[:19]) for each in shown]
    print_lines(lines)
    if len(found) > limit:
        err.print(f"… and more: --limit is {limit}")


@asks(json=None)
def cancel(
    client: Service,
    job: Annotated[str, typer.Argument(help="Id of the job.")],
    *,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="End the search or fit now, and keep the best model so far."),
    ] = False,
) -> None:
    """Cancel a job."""
    state = client.jobs.get(job).cancel(keep=True if keep else None).state
    out.print_line(f"{job}  {state}")


@asks(json=None)
def alias(
    client: Service,
    name: Annotated[str, typer.Argument(help="Name of the model.")],
    alias: Annotated[str, typer.Argument(help="The alias, such as champion.")],
    model: Annotated[
        str | None, typer.Argument(help="The model: id, name:version or name@alias.")
    ] = None,
    *,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Undo the last change of the alias, also its deletion."),
    ] = False,
    fpr: Annotated[
        float | None, typer.Option(help="Guarantee an FPR of at most this for every version.")
    ] = None,
    tpr: Annotated[
        float | None, typer.Option(help="Guarantee a TPR of at least this for every version.")
    ] = None,
    flagged: Annotated[
        float | None,
        typer.Option(help="Flag at most this fraction of the rows with every version."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Flag scores of at least this with every version.")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Guarantee the FPR or TPR for future rows with this confidence. Default: the rate holds on "
            "the validation rows."
        ),
    ] = None,
    no_guarantee: Annotated[
        bool,
        typer.Option("--no-guarantee", help="Remove the guarantee. Default: keep the current one."),
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="Reason for the decision, shown in the report.")
    ] = None,
    review: Annotated[
        float | None,
        typer.Option(help="Number of rows that can be reviewed, of every --rows rows."),
    ] = None,
    rows: Annotated[
        float | None, typer.Option(help="Number of rows that arrive in a period.")
    ] = None,
    cost_false_positive: Annotated[
        float | None, typer.Option(help="Cost of a false positive.")
    ] = None,
    cost_false_negative: Annotated[
        float | None, typer.Option(help="Cost of a false negative.")
    ] = None,
    prevalence: Annotated[
        float | None, typer.Option(help="Expected fraction of positives.")
    ] = None,
) -> None:
    """Point an alias to a version of a model, or undo its last change. Earlier versions remain in the alias's history.
    If it is protected, use `rankwright alias-requests create`.

    With a guarantee, responses under the alias have a flag, by the cutoff of the version that it points to.
    """
    memo = given(
        reason=reason,
        review=review,
        rows=rows,
        cost_false_positive=cost_false_positive,
        cost_false_negative=cost_false_negative,
        prevalence=prevalence,
    )
    guarantee = given(fpr=fpr, tpr=tpr, flagged=flagged, threshold=threshold, confidence=confidence)
    if guarantee and no_guarantee:
        raise CommandFailed(f"--no-guarantee cannot be combined with --{next(iter(guarantee))}")
    if undo != (model is None):
        raise CommandFailed("pass either a model or --undo")
    if model is None:
        if guarantee or no_guarantee or memo.keys() - {"reason"}:
            raise CommandFailed("--undo can be combined only with --reason")
        restored = client.models.restore_alias(name, alias, reason=reason)
        version = client.models[restored.model_id].read().version
        out.print_line(f"{name}@{alias} is {name}:{version} again{_guarantee(restored)}")
        return
    target = client.models[model].read()
    found = client.models.set_alias(
        name,
        alias,
        target.id,
        guarantee=guarantee or (None if no_guarantee else "keep"),
        memo=memo or None,
    )
    out.print_line(f"{name}@{alias} is {target.name}:{target.version}{_guarantee(found)}")


_NEXT = {
    "evaluate": "evaluate it on newer rows",
    "recalibrate": "recalibrate its probabilities",
    "retrain": "retrain it: it ranks worse",
    "compare": "compare it with the newest version",
}


@asks()
def overview(client: Service) -> None:
    """Show the aliases in use: the rows each flags, its last evaluation on newer rows, and the next step."""
    found = client.overview()
    if client.prints_json(found.to_json()):
        return
    table = new_table("alias", "version", "flags", "last check", "next")
    for each in found.live:
        flags = "–" if each.flagged is None else f"{100 * each.flagged:.1f} %"
        checked = "never"
        if each.evaluated_at is not None:
            checked = (
                f"{each.evaluated_at[:10]}: {'changed' if each.changed else 'no change found'}"
            )
        step = _NEXT.get(each.next_step or "", "nothing")
        table.add_row(f"{each.name}@{each.alias}", str(each.version), flags, checked, step)
    if found.live:
        out.print(table, markup=False, soft_wrap=False)
    else:
        err.print("no alias is in use", markup=False)
    alarms = sum(each.open_alarms for each in found.live)
    waiting = alarms + len(found.failed) + len(found.drifted) + len(found.outdated)
    if waiting:
        err.print_line(
            f"{waiting} item{'s need' if waiting > 1 else ' needs'} attention: see --json, or the console"
        )


@asks(json=None)
def codes(
    client: Service,
    name: Annotated[str, typer.Argument(help="Name of the models.")],
    file: Annotated[
        Path | None,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help='JSON file of the new reason codes: {"entries": [{"code": …, "text": …, "columns": […]}, …]}.',
        ),
    ] = None,
) -> None:
    """Print the reason codes of a model name, or replace them with those of a file.

    You can edit the printed codes and send them back.
    """
    if file is not None:
        entries = _entries_of(file)
        made = client.models.set_reason_codes(name, entries)
        err.print_line(f"{name} has revision {made.revision} of its reason codes")
        return
    found = client.models.read_reason_codes(name)
    out.print_json(data={"entries": [entry.to_json() for entry in found.entries]})


def _entries_of(file: Path) -> list[Any]:
    try:
        entries = json.loads(file.read_bytes())["entries"]
    except (ValueError, KeyError, TypeError) as error:
        raise CommandFailed(f'{file} must contain JSON of the form {{"entries": […]}}') from error
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise CommandFailed(f"the entries of {file} must be a list of objects")
    return entries


def _guarantee(alias: types.Alias) -> str:
    """Return the threshold of an alias and what it guarantees, in words."""
    if alias.guarantee is None or alias.cutoff is None:
        return ""
    kept, threshold = alias.guarantee, alias.cutoff.threshold
    at = "flags no rows" if threshold is None else f"threshold {threshold:g}"
    if kept.threshold is not None:
        return f", {at}"
    if kept.flagged is not None:
        return f", {at} (flags at most {100 * kept.flagged:.3g} % of rows)"
    limit = f"FPR ≤ {kept.fpr:g}" if kept.fpr is not None else f"TPR ≥ {kept.tpr:g}"
    sure = "" if kept.confidence is None else f" with {100 * kept.confidence:g} % confidence"
    return f", {at} ({limit}{sure})"
