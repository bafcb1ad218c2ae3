"""A search for the number of rounds: the rows that choose, the choice, and the served ranker."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from app.datasets.matrices import Columns, Table, read_table
from app.jobs import execution
from app.jobs import service as jobs
from app.jobs.progress import Report
from app.models.repository import find_roc_metrics
from app.platform.tables import Dataset, JobState, Model
from app.training.multilabel import MultilabelSplitData
from app.training.preferences import PreferenceSplitData
from app.training.splits import InnerSplits, split, split_rows
from core.metrics import auc, pair_order, partial_auc
from core.registry import ALGORITHMS
from tests.app.preference_data import draw_pairs, metrics_of, pairs_csv, upload_items
from tests.app.workbench import OWNER, Workbench, on_both
from tests.long_form import long_form, rest
from tests.raising import mentions
from tests.sentences import Sentences

GRID = {"method": "grid", "space": {"n_rounds": [40, 5, 1]}, "fraction": 0.25}
WINDOW = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.3}
RATE = {"metric": "tpr", "fpr": 0.2}


def noisy(rows: int = 300, seed: int = 0) -> str:
    """Many useless features: more rounds than a few learn noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 8)).round(3)
    y = X[:, 0] + 1.5 * rng.normal(size=rows) > 0
    head = ",".join([*"abcdefgh", "y"])
    lines = (",".join([*map(str, x), str(int(label))]) for x, label in zip(X, y, strict=True))
    return "\n".join([head, *lines, ""])


def read(bench: Workbench, dataset: Dataset, label: str | None) -> Table:
    names = [column["name"] for column in dataset.columns if column["role"] == "feature"]
    assert dataset.table_key
    return read_table(bench.blobs.path(dataset.table_key), Columns(names, label, None, None))


def served_scores(bench: Workbench, model: Model, X: np.ndarray) -> np.ndarray:
    return np.asarray(bench.ranker(model).score_rows(np.ascontiguousarray(X)))


def found(model: Model) -> list[float]:
    assert model.search
    assert [c["parameters"]["n_rounds"] for c in model.search["candidates"]] == [1, 5, 40]
    return [candidate["value"] for candidate in model.search["candidates"]]


def worth(objective: dict[str, Any], y: np.ndarray, scores: np.ndarray) -> float:
    match objective["metric"]:
        case "auc":
            return auc(y, scores)
        case "pauc":
            return partial_auc(y, scores, objective["fpr_min"], objective["fpr_max"])
        case "average_precision":
            return float(average_precision_score(y, scores))
        case "precision":
            share = objective.get("share") or objective["count"] / 75  # of 300 rows held out
            return precision_of_first(share * len(y), y, scores)
        case "lift":
            return float(precision_of_first(objective["share"] * len(y), y, scores) / y.mean())
        case "ndcg":
            first = round(objective["count"] / 75 * len(y))
            return float(ndcg_score([y], [scores], k=first))
        case "precision_at_recall":
            enough = [t for t in scores if y[scores >= t].sum() >= objective["recall"] * y.sum()]
            return float(y[scores >= max(enough)].mean())
    flagged = scores >= np.unique(scores)[:, None]  # by each cut
    allowed = flagged[:, y == 0].mean(axis=1) <= objective["fpr"]
    return float(flagged[allowed][:, y == 1].mean(axis=1).max(initial=0.0))


def precision_of_first(size: float, y: np.ndarray, scores: np.ndarray) -> float:
    """The precision of so many first rows; of a tie at the cut an equal part of each row."""
    caught, left = 0.0, size
    for score in np.unique(scores)[::-1]:
        tie = scores == score
        caught += min(1.0, left / tie.sum()) * y[tie].sum()
        left = max(0.0, left - tie.sum())
    return float(caught / size)


@pytest.mark.parametrize(
    "objective",
    [
        WINDOW,
        *rest(
            {"metric": "precision", "count": 10},
            RATE,
            {"metric": "auc"},
            {"metric": "average_precision"},
            {"metric": "precision", "share": 0.2},
            {"metric": "lift", "share": 0.15},
            {"metric": "precision_at_recall", "recall": 0.8},
            {"metric": "ndcg", "count": 12},
        ),
    ],
    ids=lambda objective: "-".join(map(str, objective.values())),
)
def test_inner_rows_choose_and_others_judge(bench: Workbench, objective: dict[str, Any]) -> None:
    dataset = bench.ready(noisy())
    model = bench.model(
        bench.work_on(
            dataset, algorithm={"name": "rankboost"}, objective=objective, search=GRID, seed=4
        )
    )
    table = read(bench, dataset, "y")
    outer, judging = split(table, 0.25, seed=4)
    training = table.take(outer)
    learnt, choosing = (training.take(rows) for rows in split(training, 0.25, 4 + 2**32))
    values = []
    for n_rounds in (1, 5, 40):
        ranker = ALGORITHMS["rankboost"](n_rounds=n_rounds, random_state=4).fit(learnt.X, learnt.y)
        values.append(worth(objective, choosing.y, ranker.decision_function(choosing.X)))
    assert found(model) == pytest.approx(values, abs=1e-9)
    chosen = [1, 5, 40][int(np.argmax(values))]
    assert model.search["chosen"] == {"n_rounds": chosen}
    assert model.search["space"] == GRID["space"]
    assert model.search["seconds"] > 0
    assert (model.selected_by, model.optimised_for) == (objective, {"metric": "auc"})

    # The served ranker learnt from the whole training part, and the rows that judge it chose nothing.
    assert model.parameters["n_rounds"] == chosen
    anew = ALGORITHMS["rankboost"](n_rounds=chosen, random_state=4).fit(training.X, training.y)
    scores = served_scores(bench, model, table.X)
    assert np.array_equal(scores, anew.decision_function(table.X))
    with bench.db.read() as session:
        metrics = find_roc_metrics(session, model.id, "validation")
    assert metrics is not None
    assert metrics["auc"]["value"] == pytest.approx(auc(table.y[judging], scores[judging]))


@long_form
def test_one_path_of_C_chooses_for_an_svm(bench: Workbench) -> None:
    dataset = bench.ready(noisy())
    grid = {"method": "grid", "space": {"C": [10, 0.001, 1]}, "fraction": 0.25}
    told: list[float] = []
    algorithm = {"name": "pauc_svm"}
    bench.submit(dataset, algorithm=algorithm, objective=RATE, search=grid, seed=4)
    claim = bench.claim()
    payload: Any = bench.prepare(claim)
    made = execution.run(payload, lambda step, of, info: told.append(cast(Report, info).fraction))
    bench.complete(claim, made)
    model = bench.model(bench.db.reading(jobs.find, OWNER, claim.job_id))
    table = read(bench, dataset, "y")
    outer, _ = split(table, 0.25, seed=4)
    training = table.take(outer)
    learnt, choosing = (training.take(rows) for rows in split(training, 0.25, 4 + 2**32))
    given = {"fpr_min": 0.1, "fpr_max": 0.2, "random_state": 4}
    values = []
    for C in (0.001, 1.0, 10.0):
        ranker = ALGORITHMS["pauc_svm"](C=C, **given).fit(learnt.X, learnt.y)
        values.append(worth(RATE, choosing.y, ranker.decision_function(choosing.X)))
    assert model.search
    tried = model.search["candidates"]
    assert [candidate["parameters"] for candidate in tried] == [{"C": C} for C in (0.001, 1, 10)]
    assert [candidate["value"] for candidate in tried] == pytest.approx(values, abs=0.03)
    assert model.parameters["C"] == model.search["chosen"]["C"]
    anew = ALGORITHMS["pauc_svm"](C=model.parameters["C"], **given).fit(training.X, training.y)
    assert served_scores(bench, model, table.X) == pytest.approx(anew.decision_function(table.X))
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)
    assert any(0 < fraction <= 0.5 for fraction in told)


def test_groups_stay_on_one_side_of_the_inner_split(bench: Workbench) -> None:
    """Rows of a group are copies: on both sides, they would make more rounds always win."""
    head, *rows = noisy(60).splitlines()
    copies = [f"{row},q{i}" for i, row in enumerate(rows) for _ in range(8)]
    body = "\n".join([f"{head},q", *copies, ""])
    dataset = bench.ready(body, label="y", group="q")
    search = GRID | {"space": {"n_rounds": [2, 400]}}
    model = bench.model(bench.work_on(dataset, algorithm={"name": "rankboost"}, search=search))
    assert model.search["candidates"][1]["value"] < 0.9


def test_categories_are_those_of_the_rows_learnt_from(bench: Workbench) -> None:
    """Most places occur once or twice, so many of the rows that choose have unknown places."""
    rng = np.random.default_rng(3)
    places = np.concatenate([rng.integers(0, 4, 150), np.arange(4, 154)])
    labels = (places % 2 + rng.normal(size=300) > 0.5).astype(int)
    body = "".join(
        f"p{k},{x:.3f},{y}\n" for k, x, y in zip(places, rng.random(300), labels, strict=True)
    )
    dataset = bench.ready("place,x,y\n" + body, label="y")
    model = bench.model(bench.work_on(dataset, algorithm={"name": "rankboost"}, search=GRID))
    table = read(bench, dataset, "y")
    training = table.take(split(table, 0.25, seed=0)[0]).known_to()
    learnt, choosing = (training.take(rows) for rows in split(training, 0.25, 2**32))
    learnt = learnt.known_to()
    values = []
    for n_rounds in (1, 5, 40):
        ranker = ALGORITHMS["rankboost"](n_rounds=n_rounds).fit(learnt.coded, learnt.y)
        scores = ranker.decision_function(choosing.coded_as(learnt).coded)
        values.append(auc(choosing.y, scores))
    assert found(model) == pytest.approx(values, abs=1e-9)
    assert max(values) > 0.55


def test_pairs_choose_by_their_order(bench: Workbench) -> None:
    dataset, X, worth = upload_items(bench, 120)
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 3000)))
    job = bench.submit(dataset, algorithm={"name": "coordinate_rankboost"}, search=GRID, seed=2)
    claim = bench.claim()
    payload: Any = bench.prepare(claim)
    split_data = PreferenceSplitData(payload, ["a", "b", "c"])
    inner = split_data.inner(InnerSplits(1, 0.25), 0, 2 + 2**32)
    held, learnt = inner.validation, inner.train
    assert held is not None
    assert not set(held.rows.ravel()) & set(learnt.rows.ravel())
    assert {*map(tuple, held.rows)} | {*map(tuple, learnt.rows)} <= {
        *map(tuple, split_data.train.rows)
    }
    bench.complete(claim, execution.run(payload, lambda *step: None))
    model = bench.model(bench.db.reading(jobs.find, OWNER, job.id))
    values = []
    for n_rounds in (1, 5, 40):
        ranker = ALGORITHMS["coordinate_rankboost"](n_rounds=n_rounds).fit_pairs(X, learnt.rows)
        values.append(pair_order(ranker.decision_function(X), held.rows))
    assert found(model) == pytest.approx(values, abs=1e-9)
    assert model.selected_by == {"metric": "pair_order"}
    assert metrics_of(bench, model).value > 0.5


def test_labels_choose_by_their_mean(bench: Workbench) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).round(3)
    has = X[:, :2] + rng.normal(size=(300, 2)) > 0
    rare = np.arange(300) == 7  # one row: no part can judge this label
    lines = [
        ",".join(map(str, [*x, *h.astype(int), int(r)]))
        for x, h, r in zip(X, has, rare, strict=True)
    ]
    dataset = bench.ready("\n".join(["a,b,c,u,v,w", *lines]), kind="multilabel", labels="u,v,w")
    bench.submit(dataset, algorithm={"name": "adaboost_mr"}, objective=WINDOW, search=GRID)
    claim = bench.claim()
    payload: Any = bench.prepare(claim)
    inner = MultilabelSplitData(payload, ["a", "b", "c"]).inner(InnerSplits(1, 0.25), 0, 2**32)
    learnt, held = inner.train, inner.validation
    assert held is not None
    bench.complete(claim, execution.run(payload, lambda *step: None))
    model = bench.model(bench.db.reading(jobs.find, OWNER, claim.job_id))
    values = []
    for n_rounds in (1, 5, 40):
        ranker = ALGORITHMS["adaboost_mr"](n_rounds=n_rounds).fit(learnt.table.X, learnt.has)
        scores = ranker.decision_function(held.table.X)
        each = [partial_auc(held.has[:, k], scores[:, k], 0.0, 0.3) for k in (0, 1)]
        values.append(sum(each) / 2)
    assert found(model) == pytest.approx(values, abs=1e-9)
    assert any(mentions(warning, "n_rounds") for warning in model.warnings)


def test_without_validation_all_rows_may_choose(bench: Workbench) -> None:
    dataset = bench.ready(noisy())
    job = bench.work_on(
        dataset, algorithm={"name": "rankboost"}, validation={"method": "none"}, search=GRID
    )
    model = bench.model(job)
    assert len(found(model)) == 3
    table = read(bench, dataset, "y")
    anew = ALGORITHMS["rankboost"](**model.parameters).fit(table.X, table.y)
    scores = served_scores(bench, model, table.X)
    assert np.array_equal(scores, anew.decision_function(table.X))


def test_too_few_rows_to_choose_by(bench: Workbench, sentences: Sentences) -> None:
    body = "x,y\n" + "".join(f"{i},{int(i % 2)}\n" for i in range(6))
    job = bench.work_on(
        bench.ready(body),
        algorithm={"name": "rankboost"},
        validation={"method": "none"},
        search=GRID,
    )
    assert job.state == JobState.FAILED
    assert job.error["code"] == "too_few_rows"
    sentences(job.error)


def test_progress_adds_up_over_both_fits(bench: Workbench) -> None:
    dataset = bench.ready(noisy())
    bench.submit(dataset, algorithm={"name": "rankboost"}, search=GRID)
    claim = bench.claim()
    steps: list[tuple[int, int, float]] = []
    execution.run(
        bench.prepare(claim),
        lambda step, of, info: steps.append((step, of, cast(Report, info).fraction)),
    )
    fractions = [fraction for _, _, fraction in steps]
    assert fractions == sorted(fractions)
    tried = [(step, of, fraction) for step, of, fraction in steps if of == 40][:40]
    assert [(step, of) for step, of, _ in tried] == [(k, 40) for k in range(1, 41)]
    assert [fraction for *_, fraction in tried] == pytest.approx(
        [0.5 * k / 40 for k in range(1, 41)]
    )
    assert fractions[-1] == pytest.approx(1.0)


@long_form
def test_inner_folds_and_ranges(bench: Workbench) -> None:
    """A candidate's value is its mean over the inner folds; drawn values keep to their range."""
    dataset = bench.ready(noisy())
    search = {
        "method": "random",
        "space": {"C": [0.01, 1.0], "max_bins": {"low": 2, "high": 9, "integer": True}},
        "n_candidates": 3,
        "folds": 3,
        "fraction": 0.25,
    }
    algorithm = {"name": "auc_svm", "feature_map": "bins"}
    model = bench.model(bench.work_on(dataset, algorithm=algorithm, search=search, seed=4))
    table = read(bench, dataset, "y")
    training = table.take(split(table, 0.25, seed=4)[0])
    folds = split_rows(training, {"method": "cross_validation", "folds": 3}, 4 + 2**32)
    assert len(model.search["candidates"]) == 6
    for candidate in model.search["candidates"]:
        given = candidate["parameters"]
        assert given["C"] in (0.01, 1.0)
        assert given["max_bins"] in range(2, 10)
        values = []
        for fold in folds:
            learnt, held = (training.take(rows) for rows in fold)
            ranker = ALGORITHMS["auc_svm"](**given, feature_map="bins", random_state=4)
            values.append(auc(held.y, ranker.fit(learnt.X, learnt.y).decision_function(held.X)))
        assert candidate["value"] == pytest.approx(np.mean(values), abs=0.02)
    best = max(candidate["value"] for candidate in model.search["candidates"])
    (chosen,) = (c for c in model.search["candidates"] if c["state"] == "chosen")
    assert (chosen["value"], chosen["parameters"]) == (best, model.search["chosen"])
    assert {**model.parameters, **chosen["parameters"]} == model.parameters


def test_halving_gives_more_rows_to_fewer(bench: Workbench) -> None:
    """On pairs and on labels, too: a dropped candidate has learnt from a part of them."""
    rows = bench.ready(noisy())
    items, _, worth = upload_items(bench, 120)
    bench.compare(items, pairs_csv(draw_pairs(worth, 3000)))
    body = "a,b,u,v\n" + "".join(f"{k % 7},{k % 11},{k % 2},{k % 3 > 0}\n" for k in range(300))
    labels = bench.ready(body, kind="multilabel", labels="u,v")
    for dataset, name in ((rows, "rankboost"), (items, "rankboost"), (labels, "adaboost_mh")):
        space = {"max_bins": [2, 3, 4, 6, 8, 16, 32, 64, 128], "n_rounds": [2, 5]}
        search = {"method": "halving", "space": space, "n_candidates": 9, "fraction": 0.25}
        job = bench.work_on(dataset, algorithm={"name": name}, search=search)
        found = bench.model(job).search["candidates"]
        shares = [candidate["rows"] for candidate in found]
        assert {round(share, 3): shares.count(share) // 2 for share in shares} == {
            0.111: 6,
            0.333: 2,
            1.0: 1,
        }
        (chosen,) = (c for c in found if c["state"] == "chosen")
        assert chosen["rows"] == 1.0


def test_trees_are_pruned_by_search(bench: Workbench) -> None:
    dataset = bench.ready(noisy())
    space = {"pruning": ["cv", "structural", None], "max_depth": [2, 6]}
    search = {"method": "grid", "space": space, "fraction": 0.25}
    job = bench.work_on(dataset, algorithm={"name": "treerank"}, search=search)
    model = bench.model(job)
    assert len(model.search["candidates"]) == 6
    assert all(candidate["value"] > 0.5 for candidate in model.search["candidates"])
    assert model.parameters["pruning"] == model.search["chosen"]["pruning"]


@on_both
def test_candidates_that_cannot_be_fitted_are_out_of_the_race(
    bench: Workbench, sentences: Sentences
) -> None:
    dataset = bench.ready(noisy())
    space = {"weak_ranker": ["stump", "tree"], "smoothing": [0.5, 4.0]}  # too much for stumps
    search = {"method": "grid", "space": space, "fraction": 0.25}
    algorithm = {"name": "rankboost", "n_rounds": 3}
    model = bench.model(bench.work_on(dataset, algorithm=algorithm, search=search))
    failed = [c for c in model.search["candidates"] if c["state"] == "failed"]
    assert [c["parameters"] for c in failed] == [{"smoothing": 4.0, "weak_ranker": "stump"}]
    assert failed[0]["value"] is None
    sentences(failed[0]["reason"])
