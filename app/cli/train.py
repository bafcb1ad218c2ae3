"""`rankwright train`: a job from a shell, followed to its end."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import quote

import typer

from app.cli.api_client import ClientError
from app.cli.client import out, service, show_model, split_assignment
from app.cli.options import AsJson, Key, Svg, Url
from app.cli.watch import wait_for_job, wait_for_model

Algorithm = Annotated[str, typer.Option(help="See `rankwright algorithms`; `auto` tries them all.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the algorithm, as n_rounds=200; may be repeated."),
]
Budget = Annotated[float | None, typer.Option(help="Of auto: the seconds that it may take.")]
FprMax = Annotated[float | None, typer.Option(help="Aim at the partial AUC on [0, FPR_MAX].")]
Fpr = Annotated[
    float | None,
    typer.Option(help="Aim at the TPR at this FPR; the model comes with its threshold."),
]
Folds = Annotated[int | None, typer.Option(help="Judge by cross-validation with so many folds.")]
Repeats = Annotated[
    int | None, typer.Option(help="Of cross-validation: divide the rows so many times.")
]
TimeColumn = Annotated[
    str | None, typer.Option(help="Judge on later rows, by this column of numbers or dates.")
]
Search = Annotated[
    list[str] | None,
    typer.Option(
        help="Choose among values on held-out rows, as n_rounds=50,100,200; of --search-method random and halving "
        "also a range, as learning_rate=0.01..0.3:log. May be repeated."
    ),
]
Candidates = Annotated[int | None, typer.Option(help="Of random and halving: how many are drawn.")]
SearchFolds = Annotated[
    int | None, typer.Option(help="Judge each candidate on so many inner folds.")
]
Controls = Annotated[
    bool | None,
    typer.Option(
        help="Fit plain algorithms for comparison, too, on all rows; by default in a tenth of the time.",
        show_default=False,
    ),
]


def train(
    dataset: Annotated[str, typer.Argument(help="Id of the dataset, as `upload` prints it.")],
    *,
    algorithm: Algorithm = "rankboost",
    name: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    parameters: Parameters = None,
    auto: Annotated[bool, typer.Option("--auto", help="Short for --algorithm auto.")] = False,
    budget: Budget = None,
    fpr_max: FprMax = None,
    fpr: Fpr = None,
    folds: Folds = None,
    repeats: Repeats = None,
    time_column: TimeColumn = None,
    search: Search = None,
    search_method: Annotated[str, typer.Option(help="grid, random or halving.")] = "grid",
    candidates: Candidates = None,
    search_folds: SearchFolds = None,
    controls: Controls = None,
    svg: Svg = None,
    seed: Annotated[int, typer.Option(help="Seed of everything drawn at random.")] = 0,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Train a ranker, show its progress, and say how good it is on held-out rows: by its ROC curve, if it has one."""
    if fpr_max is not None and fpr is not None:
        raise typer.BadParameter("give --fpr-max or --fpr, not both")
    chosen = {"name": "auto" if auto else algorithm}
    job: dict[str, Any] = {"dataset_id": dataset, "algorithm": chosen, "seed": seed}
    if name is not None:
        job["name"] = name
    if fpr_max is not None:
        job["objective"] = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": fpr_max}
    if fpr is not None:
        job["objective"] = {"metric": "tpr", "fpr": fpr}
    if budget is not None:
        job["algorithm"]["budget_seconds"] = budget
    if controls is not None:
        job["controls"] = controls
    if (validation := _validation(folds, repeats, time_column)) is not None:
        job["validation"] = validation
    with service(url, key) as client:
        job["algorithm"] |= dict(_assignment(text) for text in parameters or [])
        if search:
            asked = {"n_candidates": candidates, "folds": search_folds}
            job["search"] = {
                "method": search_method,
                "space": dict(_dimension(text) for text in search),
                **{field: value for field, value in asked.items() if value is not None},
            }
        model_id = wait_for_model(client, client.submit(job))
        show_model(client, model_id, svg, as_json=as_json)


def follow(
    job: Annotated[str, typer.Argument(help="Id of the job, as `train` says it when it is left.")],
    *,
    svg: Svg = None,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a job that was handed in before, and in the end how good its model is."""
    with service(url, key) as client:
        done = wait_for_job(client, client.request("GET", f"/v1/jobs/{quote(job, safe='')}"))
        if done["model_id"] is not None:
            show_model(client, done["model_id"], svg, as_json=as_json)
        elif as_json:
            out.print_json(data=done)
        else:
            out.print(f"job [bold]{done['id']}[/] has succeeded")


def _validation(
    folds: int | None, repeats: int | None, time_column: str | None
) -> dict[str, Any] | None:
    """How the model is to be judged; None where the service is left to its default."""
    asked = {"folds": folds, "repeats": repeats, "time_column": time_column}
    given = {field: value for field, value in asked.items() if value is not None}
    if not given:
        return None
    by_folds = folds is not None or repeats is not None
    return {"method": "cross_validation" if by_folds else "holdout"} | given


def _assignment(text: str) -> tuple[str, Any]:
    name, value = split_assignment(text)
    return name, _value(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text  # a plain word, such as stump


def _dimension(text: str) -> tuple[str, Any]:
    """A parameter's values, with commas between, or its range: low..high, and `:log` to draw the logarithm."""
    name, values = split_assignment(text)
    ends, colon, word = values.partition(":")
    if ".." not in ends:
        return name, [_value(value) for value in values.split(",")]
    if colon and word != "log":
        raise ClientError(f"a range must read low..high or low..high:log, got {values!r}")
    low, high = (_value(end) for end in ends.split("..", 1))
    integer = all(isinstance(end, int) for end in (low, high))
    return name, {"low": low, "high": high, "log": bool(colon), "integer": integer}


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (train, follow):
        app.command(rich_help_panel="Use the service")(command)
