"""Models judged on datasets: every figure against the artifact's own scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import delete, select, update

from app.access import repository as quota_rows
from app.datasets import service as datasets
from app.evaluation import evaluations
from app.evaluation.checks import findings_of
from app.evaluation.comparisons import COMPARISONS
from app.evaluation.evaluations import EVALUATIONS
from app.jobs import service as jobs
from app.jobs.kinds import status_of
from app.models import calibrations, repository
from app.models import metrics as model_metrics
from app.models import service as models
from app.platform.errors import Conflict, Invalid, NotFound
from app.platform.tables import (
    Comparison,
    ComparisonModel,
    Evaluation,
    Job,
    JobState,
    Measurement,
    Model,
)
from app.trash import service as trash
from core import artifact, metrics
from core.metrics.comparison import change
from tests.app.evaluated_people import People, ask, ask_comparison, evaluate, interval, train
from tests.app.preference_data import draw_pairs, items_csv, pairs_csv, upload_items, worths
from tests.app.workbench import OWNER, Workbench, on_both
from tests.long_form import long_form
from tests.raising import mentions, raises
from tests.sentences import Sentences


def test_weights_that_leave_a_class_next_to_nothing(bench: Workbench, sentences: Sentences) -> None:
    """The model has no probabilities; where it has some, their evaluation fails with the reason."""
    rows = np.random.default_rng(0).normal(size=300)
    lines = [f"{x:.4f},{1e8 if i % 3 else 1e-8},{i % 3 > 0}" for i, x in enumerate(rows)]
    uneven = bench.ready("\n".join(["a,w,y", *lines]) + "\n", weight="w", label="y")
    even = bench.ready("\n".join(["a,w,y", *lines]) + "\n", label="y", drop="w")
    assert train(bench, uneven.id, "uneven").calibration_version is None
    assert train(bench, even.id, "even").calibration_version is not None
    assert evaluate(bench, "uneven", uneven.id).metrics is not None
    ask(bench, "even", uneven.id)
    job = bench.work()
    assert job.error["code"] == "invalid_data"
    sentences(job.error)


def test_the_figures_of_an_evaluation(bench: Workbench) -> None:
    model = train(bench, People(300, 0).upload(bench), "churn")
    people = People(400, 1)
    new = people.upload(bench, weight="w", group="g")
    found = evaluate(bench, "churn", new, windows=[(0.0, 0.1), (0.2, 0.5)], level=0.9)
    assert (found.model_id, found.model_name, found.model_version) == (model.id, "churn", 1)
    assert status_of(found) == "ready"
    scores = people.scores(bench, model)
    rows: dict[str, Any] = {"sample_weight": people.weight, "group": people.group}
    measured = found.metrics
    assert measured is not None
    expected = metrics.auc_interval(people.y, scores, 0.9, **rows)
    assert interval(measured["auc"]) == pytest.approx(expected)
    assert measured.get("periods") is None  # the rows have no time
    for area, window in zip(measured["pauc"], [(0.0, 0.1), (0.2, 0.5)], strict=True):
        assert (area["fpr_min"], area["fpr_max"]) == window
        expected = metrics.partial_auc_interval(people.y, scores, *window, level=0.9, **rows)
        assert interval(area) == pytest.approx(expected)
        strict = metrics.partial_auc(
            people.y, scores, *window, definition="empirical", sample_weight=people.weight
        )
        assert area["empirical"] == pytest.approx(strict)
    present = people.weight > 0
    assert measured["positives"] == (people.y & present).sum()
    assert measured["negatives"] == (~people.y & present).sum()
    assert measured["groups"] == len(set(people.group[present]))
    assert measured["totals"]["positive"] == people.weight[people.y].sum()
    per_group = np.bincount(people.group[people.y], people.weight[people.y])
    kish = per_group.sum() ** 2 / (per_group**2).sum()
    assert measured["totals"]["positive_effective"] == pytest.approx(kish)
    _, curve, _ = bench.db.reading(evaluations.roc, OWNER, found.id)
    exact = metrics.roc_curve(people.y, scores, people.weight)
    for name in ("fpr", "tpr", "thresholds"):
        assert getattr(curve, name) == pytest.approx(getattr(exact, name))


def test_metrics_of_models_and_of_evaluations_count_in_the_quota(bench: Workbench) -> None:
    train(bench, People(300, 0).upload(bench), "churn")
    evaluate(bench, "churn", People(400, 1).upload(bench))
    for of in (Measurement.model_id, Measurement.evaluation_id):
        before = bench.db.reading(quota_rows.row_bytes, OWNER)
        with bench.db.write() as session:
            columns = (Measurement.fpr, Measurement.tpr, Measurement.thresholds)
            curves = session.execute(select(*columns).where(of.is_not(None))).all()
            size = sum(len(column) for curve in curves for column in curve if column is not None)
            session.execute(delete(Measurement).where(of.is_not(None)))
        assert before - bench.db.reading(quota_rows.row_bytes, OWNER) > size > 0


def test_drift_where_nothing_and_where_much_has_changed(
    bench: Workbench, sentences: Sentences
) -> None:
    objective = {"metric": "tpr", "fpr": 0.1}
    model = train(bench, People(600, 0).upload(bench), "churn", objective=objective)
    same = evaluate(bench, model.id, People(300, 1).upload(bench))
    assert same.drift is not None
    assert "no" not in answers(same).values()
    sentences(findings_of(same)[0].words)
    assert [each["of"] for each in same.drift["scores"]] == ["positives", "negatives", "all"]

    weaker = People(500, 2, signal=0.2)
    worse = evaluate(bench, model.id, weaker.upload(bench), level=0.8)
    drift = worse.drift
    assert drift is not None
    assert answers(worse)["ranking_kept"] == "no"
    assert drift["level"] == 0.95  # of the model's own intervals, whatever is asked for here
    shown = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")
    before = metrics.Interval(*interval(shown["auc"]))
    after = metrics.auc_interval(weaker.y, weaker.scores(bench, model), 0.95)
    area = drift["areas"][0]
    assert interval(area["before"]) == before
    assert interval(area["after"]) == pytest.approx(after)
    assert area["p_value"] == pytest.approx(change(before, after).p_value)
    *by_class, of_all = drift["scores"]
    with_outcomes = [*drift["areas"], drift["prevalence"], *drift["probabilities"], *by_class]
    # AUC, two windows, the prevalence, three metrics of calibration, the scores of two classes
    for tests, n_tests in ((with_outcomes, 9), ([*drift["features"], of_all], 4)):
        assert len(tests) == n_tests
        assert min(test["adjusted_p_value"] for test in tests) == pytest.approx(
            min(1.0, n_tests * min(test["p_value"] for test in tests))
        )

    moved = evaluate(bench, model.id, People(500, 3, shift=1.0).upload(bench))
    assert moved.drift is not None
    assert all(shift["changed"] and shift["higher"] > 0.6 for shift in moved.drift["scores"])
    assert answers(moved)["rates_kept"] == "no"
    first, *others = moved.drift["features"]
    assert (first["name"], first["changed"], first["importance"] > 0.2) == ("a", True, True)
    assert first["psi"]["low"] > 0.5
    # Tenths of the training rows; here more of them lie above.
    tenths = [round(each["before"], 2) for each in first["bins"] if each["of"] == "values"]
    assert tenths == [0.1] * 10
    middle = len(first["bins"]) // 2
    shares = [
        sum(each["after"] for each in half)
        for half in (first["bins"][:middle], first["bins"][middle:])
    ]
    assert shares[0] < 0.3
    assert sum(shares) == pytest.approx(1.0)
    ends = [each["high"] for each in first["bins"][:-1]]
    assert ends == sorted(ends) == [each["low"] for each in first["bins"][1:]]
    assert not any(each["changed"] for each in others)
    (stable,) = [each for each in findings_of(moved) if each.question == "stable"]
    assert stable.answer == "no"
    assert mentions(stable.words, "a")
    (large, _, _) = moved.drift["probabilities"]
    assert large["high"] < 0
    assert answers(moved)["probabilities"] == "no"
    assert moved.metrics is not None
    cutoff = moved.metrics["operating_point"]  # the threshold that flagged a tenth of the negatives
    assert cutoff["fpr"]["value"] > 0.2


def answers(found: Evaluation) -> dict[str, str]:
    return {each.question: each.answer for each in findings_of(found)}


class PeopleOfAnotherYear(People):
    """More of them leave, whatever they are like."""

    def __init__(self, n: int, seed: int) -> None:
        super().__init__(n, seed)
        noise = np.random.default_rng(seed + 1).normal(size=n)
        self.y = self.X[:, 0] - self.X[:, 1] + noise > -0.2


def test_another_share_of_positives_is_told_where_the_order_holds(bench: Workbench) -> None:
    model = train(bench, People(600, 0).upload(bench), "churn")
    found = evaluate(bench, model.id, PeopleOfAnotherYear(500, 1).upload(bench))
    drift = found.drift
    assert drift is not None
    assert not any(area["changed"] for area in drift["areas"])
    assert not any(feature["changed"] for feature in drift["features"])
    large = drift["probabilities"][0]
    assert found.metrics is not None
    evaluated = found.metrics["calibration"]
    assert interval(large) == interval(evaluated["in_the_large"])
    for name in ("predicted", "observed"):
        assert large[name] == evaluated[name]
    assert drift["prevalence"]["change"]["low"] > 0.1
    told = answers(found)
    assert (told["probabilities"], told["positives_kept"]) == ("no", "no")
    assert told["ranking_kept"] != "no"


def test_words_and_gaps_that_move_are_told(bench: Workbench) -> None:
    def table(n: int, seed: int, share: float, new: str) -> str:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n).round(3)
        words = np.where(rng.random(n) < share, "red", new)
        gaps = np.where(rng.random(n) < share, "", rng.integers(0, 3, n).astype(str))
        y = np.where(x + rng.normal(size=n) > 0, "yes", "no")
        rows = zip(x, words, gaps, y, strict=True)
        return "x,word,gap,y\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows)

    before = bench.ready(table(500, 0, 0.5, "blue"), label="y", positive="yes")
    model = train(bench, before.id, "words")
    after = bench.ready(table(400, 1, 0.2, "green"), label="y", positive="yes")
    found = evaluate(bench, model.id, after.id)
    assert found.drift is not None
    moves = {each["name"]: each for each in found.drift["features"]}
    assert {name for name, each in moves.items() if each["changed"]} == {"word", "gap"}
    assert moves["word"]["distance"] == pytest.approx(0.8, abs=0.05)  # green is a bin of its own
    assert moves["gap"]["distance"] == pytest.approx(0.3, abs=0.08)


def test_what_has_no_drift_says_why(bench: Workbench, sentences: Sentences) -> None:
    people = People(300, 0)
    old, new = people.upload(bench), People(200, 1).upload(bench)
    train(bench, old, "evaluated", validation={"method": "dataset", "dataset_id": new})
    train(bench, old, "unjudged", validation={"method": "none"})
    copy = people.upload(bench, name="copy")
    for ref, dataset_id, words in (
        ("evaluated", old, "evaluated:1 was trained on rows of this dataset"),
        ("evaluated", copy, "evaluated:1 was trained on rows of this dataset"),
        ("evaluated", new, "evaluated:1 was validated on rows of this dataset"),
        ("unjudged", new, "drift was not tested: the model was trained with validation.method"),
    ):
        found = evaluate(bench, ref, dataset_id)
        assert found.drift is None
        (warning,) = found.warnings
        assert warning.startswith(words)
        told = [event.data for event in bench.db.reading(jobs.events, OWNER, found.job_id)]
        assert {"text": warning} in told
    with bench.db.write() as session:  # as a worker of a version without lineage writes them
        session.execute(update(Model).values(dataset=None, validation_dataset=None))
    for dataset_id, words in ((old, "trained on"), (new, "validated on")):
        (warning,) = evaluate(bench, "evaluated", dataset_id).warnings
        assert words in warning
        sentences(warning)


def test_rows_that_were_there_in_training_are_counted(bench: Workbench) -> None:
    people, more = People(200, 0), People(300, 1)
    for name, given in (("bare", {}), ("boosted", {"algorithm": {"name": "logistic"}})):
        train(bench, people.upload(bench), name, **given)
    head, *lines = people.csv().splitlines()
    grown = "\n".join([head, *lines[::2], *more.csv().splitlines()[1:], ""])
    dataset_id = bench.ready(grown, label="left", positive="yes", drop="w,g").id
    words = (
        "25 % of these rows equal a row of the table that bare:1 was trained on, where 0 % equal"
    )
    found = evaluate(bench, "bare", dataset_id)
    assert [warning[: len(words)] for warning in found.warnings] == [words]
    compared = ask_comparison(bench, ["bare", "boosted"], dataset_id)
    assert bench.work().state == JobState.SUCCEEDED
    warnings = bench.db.reading(COMPARISONS.find, OWNER, compared.id).warnings
    assert [warning.split(" was")[0].split()[-1] for warning in warnings] == ["bare:1", "boosted:1"]
    # Where features are coarse, that rows are equal says nothing.
    coarse = ["a,left\n" + "".join(f"{i % 7},{k}\n" for i in range(90) for k in "yn")] * 2
    old, new = (
        bench.ready(text + end, label="left", positive="y").id
        for text, end in zip(coarse, ("1,y\n", "2,n\n"), strict=True)
    )
    train(bench, old, "coarse")
    (of_the_window,) = evaluate(bench, "coarse", new).warnings
    assert "91 negatives" in of_the_window


def test_areas_whose_interval_the_rows_cannot_bear_are_named(bench: Workbench) -> None:
    """In training, evaluations and comparisons: few negatives in the window, with the number that is needed."""
    old = People(600, 0).upload(bench)
    train(bench, old, "churn", algorithm={"name": "logistic"}, baselines=False)
    train(bench, old, "other", algorithm={"name": "logistic"}, baselines=False, seed=2)
    few, many = People(40, 1).upload(bench), People(2_000, 3).upload(bench)
    of_whole, warning = evaluate(bench, "churn", few).warnings
    assert "11 positives" in of_whole
    assert "FPR 0 to 0.05" in warning
    assert "negatives" in warning
    assert evaluate(bench, "churn", many).warnings == []
    compared = ask_comparison(bench, ["churn", "other"], few)
    assert bench.work().state == JobState.SUCCEEDED
    warnings = bench.db.reading(COMPARISONS.find, OWNER, compared.id).warnings
    # by default the areas under the whole curves are compared
    assert [words.split(": ")[0] for words in warnings] == ["churn:1", "other:1"]
    assert all("11 positives" in words for words in warnings)


def test_drift_from_a_validation_by_folds_leaves_the_scores_out(
    bench: Workbench, sentences: Sentences
) -> None:
    validation = {"method": "cross_validation", "folds": 2}
    train(bench, People(300, 0).upload(bench), "churn", validation=validation)
    found = evaluate(bench, "churn", People(200, 1).upload(bench))
    assert found.drift is not None
    assert [area["of"] for area in found.drift["areas"]] == ["auc", "pauc"]
    assert found.drift["scores"] == []
    sentences(found.warnings[0])


@long_form
def test_drift_from_repeated_folds_tests_the_scores(bench: Workbench, sentences: Sentences) -> None:
    validation = {"method": "cross_validation", "folds": 3, "repeats": 3}
    algorithm = {"name": "logistic"}
    model = train(
        bench, People(300, 0).upload(bench), "churn", validation=validation, algorithm=algorithm
    )
    found = evaluate(bench, "churn", People(200, 1).upload(bench))
    assert found.drift is not None
    assert found.warnings == []
    assert [test["of"] for test in found.drift["scores"]] == ["positives", "negatives", "all"]
    assert all(test["p_value"] > 0.001 for test in found.drift["scores"])
    row = bench.db.reading(repository.find_roc_metrics, model.id, "validation")
    assert row is not None
    assert row["positive_effective"] <= row["positives"]
    assert row["negative_effective"] <= row["negatives"]


def test_net_benefit_and_the_distance_of_an_evaluation(bench: Workbench) -> None:
    model = train(bench, People(500, 0).upload(bench), "churn", baselines=False)
    people = People(400, 1)
    found = evaluate(bench, "churn", people.upload(bench, weight="w", group="g"), level=0.9)
    assert found.metrics is not None
    scores = people.scores(bench, model)
    rows: dict[str, Any] = {"sample_weight": people.weight, "group": people.group, "level": 0.9}
    assert interval(found.metrics["ks_interval"]) == pytest.approx(
        metrics.ks_interval(people.y, scores, **rows)
    )
    assert found.metrics["ks_interval"]["value"] == pytest.approx(found.metrics["ks"])
    curve = found.metrics["decision_curve"]
    served = bench.db.reading(calibrations.find_served, model)
    assert served is not None
    p = calibrations.served_of(served).calibration.probability(scores)
    expected = metrics.decision_curve(people.y, p, **rows)
    assert len(curve) == len(expected) == 59
    for point, each in zip(curve, expected, strict=True):
        assert (point["threshold"], point["flagged"]) == pytest.approx(each[:2])
        for name in ("benefit", "flag_all", "over_all"):
            assert interval(point[name]) == pytest.approx(getattr(each, name))
    brier = found.metrics["calibration"]["brier"]
    assert brier["low"] < brier["score"] < brier["high"]


def monthly(n: int, seed: int, first: int = 0, start: float = 0.0) -> str:
    """Rows in time, ten an hour: `a` and the label's noise are series whose neighbours correlate by .97, `b` is not."""
    rng = np.random.default_rng(seed)
    noise = math.sqrt(1 - 0.97**2) * rng.normal(size=n)
    a = np.empty(n)
    a[0] = start
    for row in range(1, n):
        a[row] = 0.97 * a[row - 1] + noise[row]
    b = rng.normal(size=n)
    y = a + b + rng.normal(size=n) > 0.5
    times = np.datetime64("2026-01-01T00:00") + 6 * (first + np.arange(n))
    lines = [f"{t},{u:.4f},{v:.4f},{int(w)}" for t, u, v, w in zip(times, a, b, y, strict=True)]
    return "\n".join(["seen_at,a,b,y", *lines, ""])


def test_rows_in_time_are_tested_as_series(bench: Workbench) -> None:
    old, new = monthly(4_000, 0), monthly(1_500, 1, first=4_000, start=1.5)
    train(bench, bench.ready(old, label="y").id, "timed", baselines=False)
    train(bench, bench.ready(old, label="y", drop="seen_at").id, "untimed", baselines=False)
    timed = evaluate(bench, "timed", bench.ready(new, label="y").id).drift
    assert timed is not None
    features = {each["name"]: each for each in timed["features"]}
    assert features["a"]["p_value"] > 0.01
    assert not features["a"]["changed"]
    assert features["a"]["psi"]["high"] > 0.2  # 1,500 rows say little of such a series
    assert features["b"]["psi"]["high"] < 0.1
    untimed = evaluate(bench, "untimed", bench.ready(new, label="y", drop="seen_at").id).drift
    assert untimed is not None
    features = {each["name"]: each for each in untimed["features"]}
    # The order of the table is that of time here, and counts as such where neighbours are similar.
    for name in ("a", "b"):
        assert not features[name]["changed"]
    assert features["a"]["psi"]["high"] > 0.2
    assert features["b"]["psi"]["high"] < 0.1
    assert not any(shift["changed"] for shift in untimed["scores"])


def test_a_time_that_is_missing_in_some_rows_orders_nothing(bench: Workbench) -> None:
    old, new = monthly(2_000, 0), monthly(1_000, 1, first=2_000)
    train(bench, bench.ready(old, label="y").id, "timed", baselines=False)
    first, *lines = new.splitlines()
    holes = "\n".join(
        [first, *[line if i else "," + line.partition(",")[2] for i, line in enumerate(lines)]]
    )
    drift = evaluate(bench, "timed", bench.ready(holes + "\n", label="y").id).drift
    assert drift is not None
    features = {each["name"]: each for each in drift["features"]}
    assert features["a"]["reason"] is not None
    assert features["b"]["reason"] is None


def test_pairs(bench: Workbench, sentences: Sentences) -> None:
    dataset, _, worth = upload_items(bench, 100)
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 1500)))
    model = bench.model(bench.work_on(dataset, name="films"))
    X, worth = worths(80, seed=5)
    fresh = bench.ready(items_csv(X), kind="preferences", item="item")
    with sentences.raises(Conflict):
        ask(bench, "films", fresh.id)
    pairs = draw_pairs(worth, 600, seed=5)
    bench.compare(fresh, pairs_csv(pairs))
    found = evaluate(bench, "films", fresh.id)
    assert found.windows == []
    ranker = artifact.load(bench.blobs.path(model.artifact_key).read_bytes())
    scores = ranker.decision_function(pa.table({name: X[:, i] for i, name in enumerate("abc")}))
    expected = metrics.summarise_pairs(scores, np.array(pairs))
    assert found.metrics is not None
    assert interval(found.metrics["pair_order"]) == pytest.approx(expected.order)
    assert (found.metrics["pairs"], found.metrics["items"]) == (600, expected.items)
    assert found.drift is not None
    assert [area["of"] for area in found.drift["areas"]] == ["pair_order"]
    with sentences.raises(NotFound):
        bench.db.reading(evaluations.roc, OWNER, found.id)
    with raises(Invalid, "windows"):
        ask(bench, "films", fresh.id, windows=[(0.0, 0.1)])
    bench.work_on(dataset, name="more")
    with sentences.raises(Invalid):
        ask_comparison(bench, ["films", "more"], fresh.id)


def test_several_labels(bench: Workbench, sentences: Sentences) -> None:
    def table(seed: int, rare: int) -> str:
        X = np.random.default_rng(seed).normal(size=(200, 2)).round(3)
        lines = [
            f"{a},{b},{int(a > 0.2)},{int(b > a)},{int(i < rare)}"
            for i, (a, b) in enumerate(X.tolist())
        ]
        return "\n".join(["a,b,hot,big,rare", *lines, ""])

    given = {"kind": "multilabel", "labels": "hot,big,rare"}
    old, new = bench.ready(table(0, 40), **given), bench.ready(table(1, 1), **given)
    model = bench.model(bench.work_on(old, algorithm={"name": "adaboost_mh", "n_rounds": 20}))
    found = evaluate(bench, model.id, new.id, windows=[(0.0, 0.2)])
    metrics = found.metrics
    assert metrics is not None
    assert [label["label"] for label in metrics["labels"]] == ["hot", "big", "rare"]
    rare = {"label": "rare", "auc": None, "pauc": [], "positives": 1, "negatives": 199}
    assert metrics["labels"][2] == rare
    assert metrics["evaluated"] == 2
    values = [label["auc"]["value"] for label in metrics["labels"][:2]]
    assert metrics["mean_auc"] == pytest.approx(np.mean(values))
    assert min(values) > 0.9
    assert len(found.warnings) == 1
    sentences(found.warnings[0])
    assert found.drift is not None
    assert [area["label"] for area in found.drift["areas"]] == ["hot", "big"]


def test_the_figures_of_a_comparison(bench: Workbench, sentences: Sentences) -> None:
    old = People(300, 0).upload(bench)
    plain = [
        train(bench, old, "boosted"),
        train(bench, old, "linear", algorithm={"name": "logistic"}),
    ]
    people = People(250, 1)
    new = people.upload(bench, weight="w", group="g")
    other = train(bench, new, "other", algorithm={"name": "auc_svm"})
    asked = ask_comparison(
        bench, ["boosted", "linear:1", other.id], new, windows=[(0.0, 1.0), (0.0, 0.2)], level=0.9
    )
    assert bench.work().state == JobState.SUCCEEDED
    found = bench.db.reading(COMPARISONS.find, OWNER, asked.id)
    assert [model.model_id for model in found.models] == [model.id for model in (*plain, other)]
    (warning,) = found.warnings
    sentences(warning)
    expected = metrics.compare(
        people.y,
        [people.scores(bench, model) for model in (*plain, other)],
        [(0.0, 1.0), (0.0, 0.2)],
        level=0.9,
        sample_weight=people.weight,
        group=people.group,
    )
    result = found.result
    assert result is not None
    assert result["n_tests"] == 6
    assert result["p_value"] == pytest.approx(expected.joint_p_value)
    assert result["groups"] == len(set(people.group[people.weight > 0]))
    for window, exact in zip(result["windows"], expected.windows, strict=True):
        assert window["p_value"] == pytest.approx(exact.joint_p_value)
        for value, one in zip(window["values"], exact.values, strict=True):
            assert interval(value) == pytest.approx(one)
        named = [
            (model.id, next_.id)
            for i, model in enumerate((*plain, other))
            for next_ in (*plain, other)[i + 1 :]
        ]
        assert [(d["first"], d["second"]) for d in window["differences"]] == named
        for difference, two in zip(window["differences"], exact.differences, strict=True):
            assert interval(difference) == pytest.approx((two.value, two.low, two.high))
            assert difference["adjusted_p_value"] == pytest.approx(two.adjusted_p_value)


@on_both
def test_what_is_deleted_meanwhile(bench: Workbench, sentences: Sentences) -> None:
    old, new = People(200, 0).upload(bench), People(100, 1).upload(bench)
    first = train(bench, old, "first")
    second = train(bench, old, "second", algorithm={"name": "logistic"})
    asked = ask(bench, first.id, new)
    compared = ask_comparison(bench, [second.id, first.id], new)
    for model in (first, second):
        with raises(Conflict, model.id, compared.job_id):
            bench.db.writing(models.delete, OWNER, model.id)
    with sentences.raises(Conflict):
        bench.db.writing(datasets.delete, OWNER, new)
    with sentences.raises(Conflict):
        bench.db.writing(EVALUATIONS.delete, OWNER, asked.id)
    bench.work(), bench.work()
    # What was found stays, whatever becomes of whom it was found of.
    for model in (first, second):
        bench.db.writing(models.delete, OWNER, model.id)
    bench.db.writing(datasets.delete, OWNER, new)
    kept = bench.db.reading(EVALUATIONS.find, OWNER, asked.id)
    assert (kept.model_name, kept.metrics is not None) == ("first", True)
    assert len(bench.db.reading(evaluations.roc, OWNER, asked.id)[1]) > 2
    assert bench.db.reading(COMPARISONS.find, OWNER, compared.id).result is not None
    bench.db.writing(EVALUATIONS.delete, OWNER, asked.id)
    bench.db.writing(COMPARISONS.delete, OWNER, compared.id)
    for deleted in (asked, compared):
        bench.db.writing(trash.delete, OWNER, deleted.id)
    with bench.db.read() as session:
        for table in (Evaluation, Comparison, ComparisonModel):
            assert session.scalars(select(table)).all() == []
        of_evaluations = select(Measurement).where(Measurement.evaluation_id.is_not(None))
        assert session.scalars(of_evaluations).all() == []


@on_both
def test_a_job_that_is_cancelled_may_be_retried(bench: Workbench, sentences: Sentences) -> None:
    old, new = People(200, 0).upload(bench), People(100, 1).upload(bench)
    train(bench, old, "churn")
    asked = ask(bench, "churn", new)
    bench.db.writing(jobs.cancel, OWNER, asked.job_id)
    stopped = bench.db.reading(EVALUATIONS.find, OWNER, asked.id)
    assert (status_of(stopped), stopped.metrics) == ("cancelled", None)
    with sentences.raises(NotFound):
        bench.db.reading(evaluations.roc, OWNER, asked.id)
    with bench.db.write() as session:
        job = jobs.retry(session, bench.settings, OWNER, asked.job_id)
    again = bench.db.reading(EVALUATIONS.find, OWNER, asked.id)
    assert (again.job_id, status_of(again)) == (job.id, "processing")
    assert bench.work().state == JobState.SUCCEEDED
    assert status_of(bench.db.reading(EVALUATIONS.find, OWNER, asked.id)) == "ready"
    asked = ask(bench, "churn", new)
    bench.db.writing(jobs.cancel, OWNER, asked.job_id)
    bench.db.writing(EVALUATIONS.delete, OWNER, asked.id)
    with raises(Conflict, asked.id):
        bench.db.writing(jobs.retry, bench.settings, OWNER, asked.job_id)


@long_form
def test_subjects_that_have_gone_fail_the_job(bench: Workbench) -> None:
    old, new = People(200, 0).upload(bench), People(100, 1).upload(bench)
    model = train(bench, old, "churn")
    train(bench, old, "more")
    asked = [ask(bench, ref, new) for ref in ("churn", "churn", "more")]
    compared = ask_comparison(bench, ["churn", "more"], new)
    with bench.db.write() as session:  # in the moment between a check and its commit
        session.delete(session.get_one(Evaluation, asked[0].id))
        session.get_one(Job, asked[2].job_id).dataset_id = "ds_" + "0" * 32
        session.delete(session.get_one(Model, model.id))
    for code in ("evaluation_deleted", "model_deleted", "dataset_deleted", "model_deleted"):
        job = bench.work()
        assert (job.state, job.error and job.error["code"]) == (JobState.FAILED, code)
    assert bench.left_over() == []
    failed = bench.db.reading(COMPARISONS.find, OWNER, compared.id)
    assert status_of(failed) == "failed"
