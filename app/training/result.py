"""What the parts of a training job have found, put together as what its model is."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app.models.service import VALIDATION
from app.platform.sql import Json
from app.training import baselines, out_of_fold, search
from app.training.bipartite import BipartiteTable, scores_file
from app.training.plan import (
    BASELINE,
    SCORES_FILE,
    SERVED,
    Plan,
    Scope,
    is_served,
    is_trial_for_served,
    scope_of,
    seconds_of,
)

if TYPE_CHECKING:
    from app.training.fitting import FitContext
    from core.ranker import Floats
    from core.selection import Chosen


Finished = Sequence[Mapping[str, Any]]


def put_together(
    payload: Mapping[str, Any],
    plan: Plan,
    context: FitContext,
    finished: Finished,
    notes: Sequence[str] = (),
) -> Json:
    """What `training.complete` writes: small JSON, and files in the work folder."""
    spec, workdir = payload["spec"], Path(payload["workdir"])
    served = next(each["result"] for each in finished if is_served(each["spec"]))
    for name, file in served["files"].items():
        if not name.endswith(".npy"):  # scores are read where they lie
            shutil.copyfile(file, workdir / name)
    parts, kept, scores = dict(served["parts"]), None, None
    if plan.folds:
        found = out_of_fold.gather(_table(context), plan.folds, finished)
        parts[VALIDATION] = out_of_fold.judge(found, spec["objective"], workdir)
        kept, scores = out_of_fold.write(found, workdir), found.score
    elif (file := served["files"].get(scores_file(VALIDATION))) is not None:
        scores = np.load(file)
    compared = None if scores is None else _compare(spec, plan, context, finished, scores)
    chosen = plan.chosen(SERVED, finished)
    selection = ranked = None
    if spec.get("search") is not None:
        selection = _describe_search(spec, plan, finished)
    elif search.searches(spec):
        seconds = seconds_of([each for each in finished if scope_of(each["spec"]) is SERVED])
        ranked = search.leaderboard(spec, chosen, seconds)
    return {
        "workdir": str(workdir),
        "dataset_kind": payload["dataset_kind"],
        **{key: served[key] for key in ("artifact", "samples", "importance", "features")},
        "parts": parts,
        "out_of_fold": kept,
        "controls": compared,
        "label": payload["table"]["label"],
        "pair": payload["pair"],
        "labels": payload["labels"],
        "parameters": _parameters(spec, ranked, chosen),
        "search": selection,
        "leaderboard": ranked,
        "fit_seconds": served["seconds"],
        "warnings": [
            *notes,
            *_search_notes(selection, finished),
            *chosen.notes,
            *served["trial_notes"],
            *served["notes"],
            *_note_empty(served["empty_features"]),
            *_note_baselines(compared),
        ],
    }


def _parameters(spec: Mapping[str, Any], ranked: Json | None, chosen: Chosen) -> Json:
    """Those of the ranker that is served; of `auto` its own, and the members of what it came to."""
    if ranked is None:
        return dict(chosen.members[0].parameters)
    return {**spec["algorithm"]["parameters"], "members": ranked["members"]}


def _table(context: FitContext) -> BipartiteTable:
    """Folds and baselines are for rows with one label; jobs of other kinds were refused, or have none."""
    assert isinstance(context.data, BipartiteTable)
    return context.data


def _compare(
    spec: Mapping[str, Any], plan: Plan, context: FitContext, finished: Finished, chosen: Floats
) -> Json | None:
    """How the chosen ranker compares with the baselines; None where the job has none."""
    asked = spec.get("controls")  # jobs of earlier versions have no such entry
    if asked is None or not (asked["algorithms"] or asked["skipped"]):
        return None
    judged: list[Scope] = [*plan.folds] or [SERVED]
    described, scores = [], {}
    for name in asked["algorithms"]:
        parts = [
            each
            for each in finished
            if each["spec"]["what"] == BASELINE and each["spec"]["algorithm"] == name
        ]
        if not parts:
            continue
        fitted = baselines.find_judged(parts, len(judged))
        failed = None
        if not fitted:
            failed = next(each["result"]["failed"] for each in parts if each["result"]["failed"])
        of_first = (fitted or parts)[0]["result"]
        described.append(
            {
                "algorithm": name,
                "parameters": parts[0]["spec"]["parameters"],
                "fit_seconds": sum(each["result"]["seconds"] for each in fitted),
                "failed": failed,
                "rows": of_first.get("rows"),
                "of_rows": of_first.get("of"),
            }
        )
        if fitted:
            files = {scope_of(each["spec"]): each["result"]["files"] for each in fitted}
            scores[name] = np.concatenate([np.load(files[it][SCORES_FILE]) for it in judged])
    skipped = asked["skipped"]
    if asked["algorithms"] and not described:
        budget = spec["algorithm"]["parameters"]["budget_seconds"]
        skipped = f"search and last fit left nothing of the budget of {budget:g} s"
    found = {"controls": described, "skipped": skipped}
    held_out = _table(context).held_out_rows(plan.folds) if scores else None
    return found | baselines.judge(spec["objective"], held_out, chosen, scores)


def _describe_search(spec: Mapping[str, Any], plan: Plan, finished: Finished) -> Json:
    """What was tried to choose what is served, and what the folds have chosen for themselves."""
    tried = [each["result"] for each in finished if is_trial_for_served(each["spec"])]
    seconds = sum(result["elapsed"] for result in tried)
    return search.describe(spec, plan.chosen(SERVED, finished), seconds) | {
        "folds_chosen": [
            {
                "repeat": repeat + 1,
                "fold": fold + 1,
                "chosen": search.searched(spec["search"], plan.chosen((repeat, fold), finished)),
            }
            for repeat, fold in plan.folds
        ]
    }


def _search_notes(selection: Json | None, finished: Finished) -> list[str]:
    """What the trials say of the inner splits, once each."""
    if selection is None:
        return []
    notes = dict.fromkeys(
        note
        for each in finished
        if is_trial_for_served(each["spec"])
        for note in each["result"]["notes"]
    )
    return [f"to choose {', '.join(selection['chosen'])}: {note}" for note in notes]


def _note_empty(names: list[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:10])
    return [f"{len(names)} features have no value in the training part: {shown}"]


def _note_baselines(compared: Json | None) -> list[str]:
    notes = []
    for control in (compared or {"controls": []})["controls"]:
        name, rows, of_rows = (control[key] for key in ("algorithm", "rows", "of_rows"))
        if control["failed"]:
            notes.append(f"the control {name} could not be fitted: {control['failed']}")
        elif rows is not None and rows < of_rows:
            notes.append(
                f"the control {name} was fitted on {rows:,} of {of_rows:,} rows, to take little time"
            )
    return notes
