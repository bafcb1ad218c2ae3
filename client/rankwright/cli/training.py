"""`rankwright train | follow`: submit a training job, and show its progress to the end."""

from __future__ import annotations

import json
import re
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankwright import api, types
from rankwright.cli.common import (
    CommandFailed,
    Exit,
    Service,
    Svg,
    Terminal,
    asks,
    err,
    given,
    out,
    split_assignment,
    takes,
)
from rankwright.cli.datasets import find_dataset
from rankwright.cli.metrics import metric_name, show_model
from rankwright.errors import RankwrightError, describe_errors
from rankwright.resources import FINAL_STATES, Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType
    from rich.table import Table

PLAIN_SECONDS = 5.0
"""Seconds between two lines of progress without a terminal."""
POLL_SECONDS = 0.1
"""Seconds between two looks at a job's progress."""
INTERRUPTED = 130


def wait_for_job(job: Job) -> types.Job:
    """Show a job until it has succeeded; on Ctrl-C ask whether to cancel it. Raises CommandFailed if it fails."""
    cancelling = False
    while True:
        try:
            with _showing(job.data) as show:
                while True:
                    show(job.refresh())
                    if job.state in FINAL_STATES:
                        break
                    time.sleep(POLL_SECONDS)
            break
        except KeyboardInterrupt:
            cancelling = _ask(job) or cancelling
    if job.state == "cancelled" and cancelling:
        err.print_line(f"job {job.id} is cancelled")
        raise typer.Exit(INTERRUPTED)
    if job.state != "succeeded":
        problem = job.data.error or {}
        errors = describe_errors(problem.get("errors", []))
        reason = problem.get("detail", "the reason is unknown")
        said = "\n".join([f"job {job.id} {job.state}: {reason}", *errors])
        raise CommandFailed(said, Exit.FAILED_JOB)
    return job.data


def _ask(job: Job) -> bool:
    """Ask whether to cancel the job, and do it; returns whether it is cancelled. If the job is left running, the
    command ends here.
    """
    words = "Cancel the job? [y]es, [n]o (leave it running): "
    answers = "yn"
    if _can_keep(job.data):
        words = "Cancel the job? [y]es, [k]eep the best so far, [n]o (leave it running): "
        answers = "ykn"
    answer = "n"
    if sys.stdin.isatty() and err.is_terminal:
        answer = _read_answer(words, answers)
    if answer == "n":
        err.print(
            f"job {job.id} continues to run; `rankwright follow {job.id}` shows it again",
            markup=False,
        )
        raise typer.Exit(INTERRUPTED)
    try:
        job.cancel(keep=True if answer == "k" else None)
    except RankwrightError as error:  # it may have ended meanwhile, or have nothing to keep
        err.print(str(error), style="red", markup=False)
        return False
    return answer == "y"


def _can_keep(job: types.Job) -> bool:
    searches = job.search is not None or (job.algorithm or {}).get("name") == "auto"
    return searches or bool(job.progress and job.progress.keepable)


def _read_answer(words: str, answers: str) -> str:
    """Read one of the letters. The end of the input, or another Ctrl-C, counts as no."""
    while True:
        try:
            err.print(words, end="", markup=False)
            # A Ctrl-C just before a blocking read would be noticed only after it.
            while not select.select([sys.stdin], [], [], 0.1)[0]:
                pass
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            line = ""
        if not line:
            err.print()
            return "n"
        if (answer := line.strip().lower()[:1]) and answer in answers:
            return answer


@contextmanager
def _showing(job: types.Job) -> Iterator[Callable[[types.Job], None]]:
    """Yield a function that shows a job's state: as a live display on a terminal, else as a line now and then."""
    if not err.is_terminal:
        yield _Lines().show
        return
    from rich.live import Live

    view = _View(job)
    # A console of its own: lines are cut at the terminal's edge, not wrapped.
    console = Terminal(stderr=True, highlight=False)
    with Live(view, console=console, refresh_per_second=8, transient=True) as live:
        yield view.show
        # The results stay on the screen; the running work is removed.
        if view.job.state == "succeeded" and (board := leaderboard(view.job)) is not None:
            live.transient = False
            live.update(board)


class _Lines:
    """Progress as plain lines, a few seconds apart."""

    def __init__(self) -> None:
        self._next = time.monotonic() + PLAIN_SECONDS
        self._latest = ""

    def show(self, job: types.Job) -> None:
        """Write a line if enough time has passed and there is news."""
        now = time.monotonic()
        line = "; ".join(filter(None, [status(job), _best(job)]))
        if now >= self._next and line != self._latest:
            self._next, self._latest = now + PLAIN_SECONDS, line
            err.print_line(line)


class _View:
    """The leaderboard, with the status below it. Drawn several times a second, so that the clock runs between two
    reports.
    """

    def __init__(self, job: types.Job) -> None:
        self.job = job
        self._last: Any = None
        self._since = time.monotonic()

    def show(self, job: types.Job) -> None:
        """Store the job's state for the display."""
        heard = job.state, job.progress and job.progress.elapsed_seconds
        if heard != self._last:
            self._last, self._since = heard, time.monotonic()
        self.job = job

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        line = Text(
            status(self.job, time.monotonic() - self._since), no_wrap=True, overflow="ellipsis"
        )
        board = leaderboard(self.job)
        return line if board is None else Group(board, line)


def status(job: types.Job, since: float = 0.0) -> str:
    """Return what a job is doing, in one line. `since` is the time since its last report, in seconds."""
    progress = job.progress or types.Progress()
    if job.state not in ("running", "cancelling") or not progress.phase:
        words, fraction = [job.state, progress.detail], progress.fraction
        return ", ".join(
            [each for each in words if each] + ([f"{100.0 * fraction:.0f} %"] if fraction else [])
        )
    doing = progress.phase
    if job.state == "cancelling":
        doing = f"cancelling, {doing}"
    elif job.keep_requested_at:
        doing = f"ending early, {doing}"
    fits = progress.algorithm and progress.phase != "reading the table"
    about = [f"{doing} {progress.algorithm}" if fits else doing]
    if progress.auto_phase:
        about.insert(0, progress.auto_phase)
    if progress.trial:
        of = f" of {progress.trials:,}" if progress.trials else ""
        about.append(f"trial {progress.trial:,}{of}")
    if progress.fold:
        about.append(f"fold {progress.fold}")
    if progress.rows:
        about.append(f"{progress.rows:,} rows")
    if progress.of and progress.phase == "fitting":
        about.append(f"step {progress.step:,} of {progress.of:,}")
    about += filter(None, [progress.detail, _in_words(progress.parameters or {})])
    if progress.elapsed_seconds is not None:
        clock = f"{progress.elapsed_seconds + since:.0f} s"
        if progress.seconds_left is not None:
            clock += f", {max(progress.seconds_left - since, 0.0):.0f} s left"
        about.insert(0, clock)
    return " · ".join(about)


def leaderboard(job: types.Job) -> Table | None:
    """Return a table of the best candidates of a search so far; None if there are none."""
    from rich.table import Table
    from rich.text import Text

    rows = job.progress and job.progress.leaderboard
    if not rows:
        return None
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for heading in (_metric(job.objective or {}), "trial", "rows", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("algorithm", no_wrap=True)
    table.add_column("parameters", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in rows:
        table.add_row(
            f"{row.value:.4f}",
            f"{row.trial:,}" if row.trial else "",
            "" if row.rows is None else f"{row.rows:,}",
            f"{row.seconds:.1f}",
            row.algorithm,
            Text(_in_words(_distinguishing(row, rows))),
        )
    return table


def _distinguishing(row: types.ProgressRow, rows: list[types.ProgressRow]) -> dict[str, Any]:
    """Return a row's parameters, without those that are equal in all rows of its algorithm."""
    alike = [each.parameters for each in rows if each.algorithm == row.algorithm]
    if len(alike) == 1:
        return row.parameters
    return {
        name: value
        for name, value in row.parameters.items()
        if any(name not in each or each[name] != value for each in alike)
    }


def _in_words(parameters: dict[str, Any]) -> str:
    return " ".join(f"{name}={_short(value)}" for name, value in parameters.items())


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _best(job: types.Job) -> str | None:
    best = job.progress and job.progress.best
    if not best:
        return None
    return f"best {_metric(job.objective or {})} {best.value:.4f} ({best.algorithm})"


def _metric(objective: dict[str, Any]) -> str:
    match objective.get("metric"):
        case "pauc":
            return f"pAUC[{objective['fpr_min']:g}, {objective['fpr_max']:g}]"
        case "tpr":
            return f"TPR at FPR {objective['fpr']:g}"
        case "pair_order":
            return "pairs in order"
        case None | "auc":
            return "AUC"
    return metric_name(objective)


Algorithm = Annotated[
    str,
    typer.Option(help="Name of the algorithm; see `rankwright algorithms`. `auto` tries several."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Parameter of the algorithm, for example n_rounds=200. Repeat it for several.",
    ),
]
Budget = Annotated[float | None, typer.Option(help="For auto: time budget in seconds.")]
FprMax = Annotated[float | None, typer.Option(help="Maximise the partial AUC on [0, FPR_MAX].")]
Fpr = Annotated[
    float | None,
    typer.Option(help="Maximise the TPR at this FPR. The model comes with its threshold."),
]
Objective = Annotated[
    str | None,
    typer.Option(
        help="What to maximise: average_precision, precision@100, precision@1%, lift@15%, "
        "precision_at_recall:0.8, ndcg@10 or auc. A number of rows refers to the validation rows."
    ),
]
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,12})?"
_OBJECTIVE = re.compile(rf"([a-z][a-z0-9_]*)(?:@([0-9]{{1,15}})|@({_NUMBER})%|:({_NUMBER}))?")
HeldOut = Annotated[
    float | None,
    typer.Option(
        "--holdout",
        help="Validate on this fraction of the rows, for example 0.25. Default: a small table is validated by "
        "repeated cross-validation, any other on a quarter of the rows.",
    ),
]
Folds = Annotated[
    int | None, typer.Option(help="Validate by cross-validation with this number of folds.")
]
Repeats = Annotated[
    int | None,
    typer.Option(help="For cross-validation: how many times the rows are divided into folds."),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(
        help="Validate on the newest rows by this column of numbers or dates, which is then not used as a "
        "feature. Default: the table's date column, if it has one."
    ),
]
RandomSplit = Annotated[
    bool,
    typer.Option(
        "--random-split", help="Draw the validation rows at random, even if there are dates."
    ),
]
Search = Annotated[
    list[str] | None,
    typer.Option(
        help="Parameter to search and its values, for example n_rounds=50,100,200. With --search-method "
        "random or halving also a range, for example learning_rate=0.01..0.3:log. Repeat it for "
        "several."
    ),
]
Candidates = Annotated[
    int | None, typer.Option(help="For random and halving: number of candidates to draw.")
]
SearchFolds = Annotated[
    int | None, typer.Option(help="Number of inner folds to compare candidates on.")
]


def _objective_named(name: str) -> dict[str, Any]:
    """Return the objective of a metric's name; the service checks the name and the numbers."""
    found = _OBJECTIVE.fullmatch(name)
    if found is None:
        raise typer.BadParameter(
            "an objective must be like auc, precision@100, precision@1% or precision_at_recall:0.8, got "
            f"{name[:60]!r}"
        )
    metric, count, share, recall = found.groups()
    objective: dict[str, Any] = {"metric": metric}
    if count is not None:
        objective["count"] = int(count)
    if share is not None:
        objective["share"] = float(share) / 100.0
    if recall is not None:
        objective["recall"] = float(recall)
    return objective


@asks()
@takes(api.SubmitJob, but=["validation"])
def train(
    client: Service,
    dataset: Annotated[str, typer.Argument(help="Id or name of the dataset.")],
    *,
    algorithm: Algorithm = "rankboost",
    parameters: Parameters = None,
    auto: Annotated[bool, typer.Option("--auto", help="Same as --algorithm auto.")] = False,
    budget: Budget = None,
    fpr_max: FprMax = None,
    fpr: Fpr = None,
    objective: Objective = None,
    holdout: HeldOut = None,
    folds: Folds = None,
    repeats: Repeats = None,
    time_column: TimeColumn = None,
    random_split: RandomSplit = False,
    search: Search = None,
    search_method: Annotated[
        str, typer.Option(help="Search method: grid, random or halving.")
    ] = "grid",
    candidates: Candidates = None,
    search_folds: SearchFolds = None,
    svg: Svg = None,
    tags: Annotated[
        list[str] | None,
        typer.Option(
            "--tag", help="Tag of the job and its model, as name=value. Repeat it for several."
        ),
    ] = None,
    **fields: Any,
) -> None:
    """Train a ranker and show its progress, then its metrics and ROC curve on held-out rows."""
    if sum(each is not None for each in (fpr_max, fpr, objective)) > 1:
        raise typer.BadParameter("--objective, --fpr-max and --fpr cannot be combined")
    chosen: dict[str, Any] = {"name": "auto" if auto else algorithm}
    if budget is not None:
        chosen["budget_seconds"] = budget
    aim = None if objective is None else _objective_named(objective)
    if fpr_max is not None:
        aim = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": fpr_max}
    if fpr is not None:
        aim = {"metric": "tpr", "fpr": fpr}
    chosen |= dict(_assignment(text) for text in parameters or [])
    tried = None
    if search:
        tried = {
            "method": search_method,
            "space": dict(_dimension(text) for text in search),
            **given(n_candidates=candidates, folds=search_folds),
        }
    job = client.train(
        find_dataset(client, dataset),
        chosen,
        **fields,
        objective=aim,
        validation=_validation(holdout, folds, repeats, time_column, random_split=random_split),
        search=tried,
        tags=dict(split_assignment(text) for text in tags) if tags else None,
    )
    validation = job.data.validation or {}
    if not client.as_json and folds is None and repeats is None and "folds" in validation:
        out.print_line(
            f"The table is small, so it is validated by {validation['folds']}-fold cross-validation, repeated "
            f"{validation['repeats']} times. Use --holdout 0.25 to train only once."
        )
    if not client.as_json and (by := validation.get("time_column")) is not None:
        out.print_line(f"Validated on the newest rows by {by!r}, which is not used as a feature.")
    done = wait_for_job(job)
    show_model(client, client.models.get(cast(types.JobOutput, done.output).id), svg)


@asks()
def follow(
    client: Service,
    job: Annotated[str, typer.Argument(help="Id of the job, as printed by `train`.")],
    *,
    svg: Svg = None,
) -> None:
    """Show the progress of an existing job, then the metrics of its model."""
    done = wait_for_job(client.jobs.get(job))
    if done.output is not None and done.output.kind == "model":
        show_model(client, client.models.get(done.output.id), svg)
    elif client.as_json:
        out.print_json(data=done.to_json())
    else:
        out.print(f"job [bold]{done.id}[/] has succeeded")


def _validation(
    holdout: float | None,
    folds: int | None,
    repeats: int | None,
    time_column: str | None,
    *,
    random_split: bool,
) -> dict[str, Any] | None:
    """Return the requested validation; None for the service's default."""
    by_folds = folds is not None or repeats is not None
    if by_folds and holdout is not None:
        raise typer.BadParameter("--holdout cannot be combined with --folds and --repeats")
    asked = given(fraction=holdout, folds=folds, repeats=repeats, time_column=time_column)
    if random_split:
        if time_column is not None:
            raise typer.BadParameter("--time-column and --random-split cannot be combined")
        asked["time_column"] = None  # to leave it out is the service's default
    if not asked:
        return None
    return {"method": "cross_validation" if by_folds else "holdout"} | asked


def _assignment(text: str) -> tuple[str, Any]:
    name, value = split_assignment(text)
    return name, _value(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text  # a plain word, such as stump


def _dimension(text: str) -> tuple[str, Any]:
    """Return a parameter's values, given as 1,2,3, or its range: low..high, with `:log` for a logarithmic scale."""
    name, values = split_assignment(text)
    ends, colon, word = values.partition(":")
    if ".." not in ends:
        return name, [_value(value) for value in values.split(",")]
    if colon and word != "log":
        raise CommandFailed(
            f"a range must have the form low..high or low..high:log, got {values!r}"
        )
    low, high = (_value(end) for end in ends.split("..", 1))
    integer = all(isinstance(end, int) for end in (low, high))
    return name, {"low": low, "high": high, "log": bool(colon), "integer": integer}
