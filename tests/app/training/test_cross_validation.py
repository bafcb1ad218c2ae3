"""Cross-validated jobs: which ranker scores which rows, the answers about it, and no leakage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.models import repository as model_rows
from app.models import service as models
from app.models.curves import curve_of
from app.operations.repository import named
from app.platform.documents import Validation
from app.platform.tables import ModelBaselines, ModelMargins, ModelOutOfFold
from app.training import result
from app.training.splits import divide, split_rows
from app.trash import service as trash
from core import artifact
from core.metrics import auc, cross_validated_areas
from core.probability import Calibration, reliability
from core.registry import ALGORITHMS
from tests.app.training_jobs import (
    BASELINES,
    FOLDS,
    kept,
    noisy,
    payload,
    run,
    table_of,
)
from tests.app.workbench import OWNER, Workbench, breast_cancer, on_both, quiet
from tests.long_form import long_form, one_in, rest
from tests.sentences import Sentences


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("pauc_svm", {"C": 1.0, "feature_map": "bins"}),  # standardising, one-hot codes, a map
        *rest(
            ("rankboost", {"n_rounds": 10}),  # bins, and the order of categories
            ("treerank", {"pruning": "cv", "min_samples_leaf": 5.0}),
        ),
    ],
)
def test_all_that_is_learnt_is_learnt_in_each_fold(
    tmp_path: Path, name: str, given: dict[str, Any]
) -> None:
    """A fold's scores are those of a ranker that was fitted on the other folds' rows alone."""
    algorithm = {"name": name, "parameters": given}
    job = payload(tmp_path, noisy(), algorithm=algorithm)
    run(job, quiet)
    table, found = table_of(job), kept(job)
    row_splits = split_rows(table, FOLDS, 3)
    place = 0
    for number, row_split in enumerate(row_splits):
        learnt, held = divide(table, *row_split)
        ranker = ALGORITHMS[name](**given).fit(learnt.coded, learnt.y, learnt.weight)
        entries = slice(place, place + len(row_split.test))
        assert np.array_equal(found["row"][entries], row_split.test)
        assert set(found["repeat"][entries]) == {number // 3 + 1}
        assert set(found["fold"][entries]) == {number % 3 + 1}
        assert np.array_equal(found["y"][entries], table.y[row_split.test])
        assert np.array_equal(found["score"][entries], ranker.decision_function(held.coded))
        place = entries.stop
    assert place == 2 * 240


@pytest.mark.parametrize("name", ["rankboost", *rest("treerank", "pauc_svm")])
def test_what_is_noise_is_worth_half(tmp_path: Path, name: str) -> None:
    """Labels that have nothing to do with the rows, and a category of which each row has a value of its own."""
    rng = np.random.default_rng(5)
    rows = 300
    ids = pa.array([f"id{k:03d}" for k in rng.permutation(rows)]).dictionary_encode()
    a, b = rng.normal(size=(2, rows))
    y = (rng.permutation(rows) < 150).astype(np.int8)
    algorithm = {"name": name, "parameters": {}}
    validation = {"method": "cross_validation", "folds": 2}
    job = payload(
        tmp_path, {"id": ids, "a": a, "b": b, "y": y}, algorithm=algorithm, validation=validation
    )
    found = run(job, quiet)
    area = found["parts"]["validation"]["auc"]
    assert abs(area["value"] - 0.5) < 0.11  # three standard errors
    assert area["low"] < area["value"] < area["high"]


@on_both
def test_figures_and_curve(bench: Workbench) -> None:
    """The areas are the folds' means; the curve's area is near them; its thresholds are the served ranker's."""
    dataset = bench.ready(breast_cancer(), positive="malignant")
    window = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.2}
    job = bench.work_on(dataset, validation=FOLDS, objective=window, seed=3, baselines=True)
    model = bench.model(job)
    assert model.validation == FOLDS
    with bench.db.read() as session:
        kept = session.get_one(ModelOutOfFold, model.id)
        found = model_rows.find_roc_metrics(session, model.id, "validation")
        row = model_rows.find_curve(session, model.id, "validation")
        compared = session.get_one(ModelBaselines, model.id)
        assert session.get(ModelMargins, model.id) is not None
        assert model_rows.find_curve(session, model.id, "train") is not None
    assert (kept.entries, kept.repeats, kept.folds) == (2 * 569, 2, 3)
    assert kept.dataset_id == dataset.id
    with bench.db.read() as session:
        assert named(session, [kept.blob_key]) == {kept.blob_key}  # the sweeper leaves it alone
    assert row is not None
    assert found is not None
    table = pq.read_table(bench.blobs.path(kept.blob_key))
    entry = {name: table.column(name).to_numpy() for name in table.column_names}
    assert (found["positives"], found["negatives"]) == (212, 357)
    windows = [(0.0, 1.0), (0.0, 0.05), (0.0, 0.2)]
    expected = cross_validated_areas(
        entry["y"], entry["score"], entry["fold"], windows, repeat=entry["repeat"], row=entry["row"]
    )
    areas = [found["auc"], *found["pauc"]]
    told = [(area["value"], area["low"], area["high"]) for area in areas]
    assert told == [tuple(each) for each in expected]
    mean = np.mean([fold["auc"] for fold in kept.fold_aucs])
    assert found["auc"]["value"] == pytest.approx(mean, abs=1e-12)
    curve = curve_of(row)
    area = np.trapezoid(curve.tpr, curve.fpr)
    assert area == pytest.approx(mean, abs=0.004)
    own = bench.ranker(model).decision_function(features(bench, dataset))
    assert own.min() - 1 < curve.thresholds[-1] < curve.thresholds[1] < own.max() + 1
    assert [baseline["algorithm"] for baseline in compared.baselines] == BASELINES["algorithms"]
    assert [w["chosen"]["value"] for w in compared.windows] == [each.value for each in expected]
    assert compared.decided_on == {"fpr_min": 0.0, "fpr_max": 0.2}
    assert model.beats_baselines is False
    bench.db.writing(models.delete, OWNER, model.id)
    bench.db.writing(trash.delete, OWNER, model.id)
    with bench.db.read() as session:
        assert named(session, [kept.blob_key]) == set()
        assert session.get(ModelBaselines, model.id) is None
        assert session.get(ModelMargins, model.id) is None


def features(bench: Workbench, dataset: Any) -> pa.Table:
    names = [column["name"] for column in dataset.columns if column["role"] == "feature"]
    return pq.read_table(bench.blobs.path(dataset.table_key), columns=names)


def test_scores_turn_from_one_scale_into_another() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=5000)
    own, other = result.quantiles_of(scores), result.quantiles_of(np.exp(2 * scores))
    new = rng.normal(size=300).clip(-2.5, 2.5)
    assert result.convert(new, own, other) == pytest.approx(np.exp(2 * new), rel=0.2)
    beyond = result.convert(np.array([-9.0, -8.0, 8.0, 9.0]), own, other)
    assert (np.diff(beyond) > 0).all()
    leaves = rng.integers(0, 4, 1000).astype(float)  # a ranker of four scores
    marks = result.quantiles_of(leaves)
    assert result.convert(np.arange(4.0), marks, 10 * marks) == pytest.approx([0, 10, 20, 30])
    one = result.quantiles_of(np.ones(9))
    assert result.convert(np.array([1.0, 2.0]), one, one).tolist() == [1.0, 2.0]


WORLDS = ("groups", "independent", "times")


@pytest.mark.parametrize(("algorithm", "world"), one_in(6, ("logistic", "rankboost"), WORLDS))
def test_probabilities_and_cuts_hold_on_new_rows(
    tmp_path: Path, algorithm: str, world: str
) -> None:
    """Folds may differ: by groups of other means, or by a time in which the means move."""
    rng = np.random.default_rng(WORLDS.index(world))
    n, of_group = 1800, np.array([-2.4, -1.2, 0.0, 1.2, 2.4])

    def draw(place: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return rows and their probabilities; place is in [0, 1)."""
        shift = {
            "independent": np.zeros(len(place)),
            "groups": of_group[(place * 5).astype(int)],
            "times": 3.0 * place - 1.5,
        }[world]
        x = {name: rng.normal(size=len(place)) + shift * (name in "ab") for name in "abc"}
        p = 1.0 / (1.0 + np.exp(1.0 - x["a"] - 0.8 * x["b"] - 0.6 * x["c"]))
        return x, p

    place = np.arange(n) / n
    x, p = draw(place)
    columns: dict[str, Any] = {**x, "y": (rng.random(n) < p).astype(np.int8)}
    validation: Validation = {"method": "cross_validation", "folds": 5}
    if world == "groups":
        columns["g"] = pa.array([f"g{int(5 * each)}" for each in place])
    if world == "times":
        columns["t"] = place
        validation["time_column"] = "t"
    job = payload(
        tmp_path,
        columns,
        algorithm={"name": algorithm, "parameters": {}},
        validation=validation,
    )
    job["table"]["features"] = [{"name": name, "type": "numeric"} for name in "abc"]
    job["table"]["group"] = "g" if world == "groups" else None
    found = run(job, quiet)
    work = Path(job["workdir"])
    ranker = artifact.load((work / found["artifact"]["file"]).read_bytes())
    # Windows are judged from the second sixth on.
    x, p = draw(rng.uniform(1 / 6 if world == "times" else 0.0, 1.0, 20_000))
    y = rng.random(len(p)) < p
    scores = ranker.decision_function(pa.table(x))
    with np.load(work / found["calibration"]["file"]) as arrays:
        calibration = Calibration(
            found["calibration"]["method"],
            arrays["parameters"],
            found["calibration"]["prevalence"],
        )
    given = calibration.probability(scores)
    evaluated = reliability(y, given)
    assert (
        0.8 < evaluated.slope.value < 1.25
    )  # of one sample; in the mean of many it is .95 to 1.05
    unlikely = p < 0.1
    assert given[unlikely].mean() == pytest.approx(p[unlikely].mean(), abs=0.05)
    fpr, _, thresholds = np.fromfile(work / "validation.curve", "<f8").reshape(3, -1)
    flagged = scores >= thresholds[np.searchsorted(fpr, 0.05, "right") - 1]
    assert flagged[~y].mean() == pytest.approx(0.05, abs=0.03)  # three standard errors of 900


def test_every_fold_searches_for_itself(tmp_path: Path) -> None:
    """Nested: the rows that judge a fold's ranker have not chosen its parameters."""
    search = {
        "method": "grid",
        "space": {"n_rounds": [1, 20], "max_bins": [2, 200]},
        "fraction": 0.3,
    }
    algorithm = {"name": "rankboost", "parameters": {"n_rounds": 20, "max_bins": 200}}
    validation: Validation = {"method": "cross_validation", "folds": 3}
    job = payload(tmp_path, noisy(), algorithm=algorithm, search=search, validation=validation)
    found = run(job, quiet)
    assert len(found["search"]["candidates"]) == 4
    assert found["parameters"] == found["search"]["chosen"]
    chosen = [fold["chosen"] for fold in found["search"]["folds_chosen"]]
    table, entries = table_of(job), kept(job)
    for fold, (row_split, parameters) in enumerate(
        zip(split_rows(table, validation, 3), chosen, strict=True), start=1
    ):
        learnt, held = divide(table, *row_split)
        inner: Validation = {"method": "holdout", "fraction": 0.3}
        (rows,) = split_rows(learnt, inner, 3 + 2**32)
        train, judge = divide(learnt, *rows)
        best: tuple[float, dict[str, int]] = (0.0, {})
        for max_bins in (2, 200):
            for n_rounds in (1, 20):
                ranker = ALGORITHMS["rankboost"](n_rounds=n_rounds, max_bins=max_bins)
                ranker.fit(train.coded, train.y, train.weight)
                value = auc(judge.y, ranker.decision_function(judge.coded), judge.weight)
                if value > best[0] + 1e-9:
                    best = value, {"max_bins": max_bins, "n_rounds": n_rounds}
        assert parameters == best[1]
        ranker = ALGORITHMS["rankboost"](**parameters).fit(learnt.coded, learnt.y, learnt.weight)
        scores = entries["score"][entries["fold"] == fold]
        assert np.array_equal(scores, ranker.decision_function(held.coded))


def test_later_rows_judge_by_a_time_column(tmp_path: Path) -> None:
    """A feature whose meaning reverses later: with random folds it would look useful."""
    rng = np.random.default_rng(0)
    order = rng.permutation(400)
    days = [str(np.datetime64("2020-01-01") + np.timedelta64(int(k), "D")) for k in order]
    y = rng.integers(0, 2, 400).astype(np.int8)
    x = np.where(order < 300, 1, -1) * (y - 0.5) + 0.1 * rng.normal(size=400)
    columns = {"day": pa.array(days).dictionary_encode(), "x": x, "y": y}
    for validation, least, most in (
        ({"method": "holdout", "fraction": 0.25}, 0.6, 0.9),
        ({"method": "holdout", "fraction": 0.25, "time_column": "day"}, 0.0, 0.05),
        ({"method": "cross_validation", "folds": 3, "time_column": "day"}, 0.6, 0.7),
    ):
        job = payload(tmp_path, columns, validation=validation)
        if "time_column" in validation:
            job["table"]["features"] = [{"name": "x", "type": "numeric"}]
        area = run(job, quiet)["parts"]["validation"]["auc"]["value"]
        assert least <= area <= most


def test_a_time_column_is_no_feature(bench: Workbench) -> None:
    lines = [f"2026-01-{k + 1:02d},{k % 5},{int(k % 3 > 0)}" for k in range(28)]
    dataset = bench.ready("\n".join(["day,x,y", *lines, ""]), label="y")
    validation = {"method": "holdout", "fraction": 0.25, "time_column": "day"}
    model = bench.model(bench.work_on(dataset, validation=validation))
    assert [feature["name"] for feature in model.features] == ["x"]
    assert model.validation == validation


def test_a_control_that_cannot_be_fitted_is_said_to_be(
    tmp_path: Path, sentences: Sentences
) -> None:
    holdout = {"method": "holdout", "fraction": 0.25}
    picky = {
        "algorithms": ["greedy_pairs", "logistic"],
        "skipped": None,
        "share": None,
    }  # one takes no categories
    found = run(payload(tmp_path, noisy(), baselines=picky, validation=holdout), quiet)
    failed, fitted = found["baselines"]["baselines"]
    assert fitted["failed"] is None
    assert "place" in failed["failed"]
    (note,) = [each for each in found["warnings"] if each.endswith(f": {failed['failed']}")]
    sentences(note)
    (baseline,) = found["baselines"]["windows"][0]["baselines"]
    assert baseline["algorithm"] == "logistic"
    skipped = {"algorithms": [], "skipped": "too large", "share": None}
    found = run(payload(tmp_path, noisy(), baselines=skipped, validation=holdout), quiet)
    assert found["baselines"]["skipped"] == "too large"
    assert (found["baselines"]["windows"], found["baselines"]["beats"]) == ([], None)
    found = run(payload(tmp_path, noisy(), validation={"method": "none"}), quiet)
    assert (found["baselines"], found["out_of_fold"]) == (None, None)


@long_form
def test_trees_beat_lines_beyond_chance_where_there_is_no_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 500))
    y = (a * b > 0).astype(np.int8)
    given = {"n_rounds": 30, "weak_ranker": "tree"}
    for validation in ({"method": "holdout", "fraction": 0.3}, FOLDS):
        job = payload(
            tmp_path,
            {"a": a, "b": b, "y": y},
            algorithm={"name": "rankboost", "parameters": given},
            baselines=BASELINES,
            validation=validation,
        )
        found = run(job, quiet)["baselines"]
        assert found["beats"] is True
        whole, _ = found["windows"]
        assert whole["chosen"]["value"] > 0.95
        for baseline in whole["baselines"]:
            difference = baseline["difference"]
            assert difference["value"] == pytest.approx(
                whole["chosen"]["value"] - baseline["area"]["value"]
            )
            assert 0.2 < difference["low"] < difference["value"] < difference["high"]
            assert difference["p_value"] <= difference["adjusted_p_value"] < 1e-6


@long_form
def test_what_is_told_of_a_threshold_holds_on_new_rows(tmp_path: Path) -> None:
    """Overfitted trees leave a gap between the classes, in which new rows lie."""
    train, new = noisy(400, seed=3), noisy(4000, seed=53)
    given = {"n_rounds": 60, "weak_ranker": "tree", "learning_rate": 0.5, "min_samples_leaf": 3.0}
    spec = {"algorithm": {"name": "rankboost", "parameters": given}, "validation": FOLDS}
    job = payload(tmp_path, {name: train[name] for name in "aby"}, **spec)
    found = run(job, quiet)
    assert found["parts"]["train"]["auc"]["value"] > 0.99
    work = Path(job["workdir"])
    fpr, tpr, thresholds = np.fromfile(work / "validation.curve", "<f8").reshape(3, -1)
    ranker = artifact.load((work / found["artifact"]["file"]).read_bytes())
    scores = ranker.decision_function(pa.table({name: new[name] for name in "ab"}))
    for rate in (0.05, 0.1, 0.3):
        cut = np.searchsorted(fpr, rate, "right") - 1
        flagged = scores >= thresholds[cut]
        assert flagged[new["y"] == 0].mean() == pytest.approx(fpr[cut], abs=0.03)
        assert flagged[new["y"] == 1].mean() == pytest.approx(tpr[cut], abs=0.1)
