"""What is done with the top of a list, over HTTP: guaranteed cutoffs, metrics by name, gains tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest

from tests.app.live_service import Service, table
from tests.app.refusals import refused
from tests.core.metrics.square_area import WITH_SQUARE_AREA


@dataclass
class World:
    """A model that was validated on a holdout, one that was cross-validated, and evaluations on other rows."""

    service: Service
    client: httpx.Client
    model: str
    folded: str
    evaluation: str
    seen: str

    def read(self, path: str, **params: Any) -> dict[str, Any]:
        """The answer to a question."""
        answer = self.client.get(f"/v1/{path}", params=params)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture(scope="module")
def world(start: Callable[..., Service]) -> World:
    service = start()
    client = service.client(service.key())
    old, new = (
        service.upload(client, table(600)),
        service.upload(client, table(400, 1), name="new"),
    )
    plain = {"name": "logistic"}
    model = service.train(client, old, algorithm=plain)["output"]["id"]
    folds = {"method": "cross_validation", "folds": 2}
    folded = service.train(client, old, name="folded", algorithm=plain, validation=folds)
    evaluations = []
    for dataset in (new, old):
        body = {"model": folded["output"]["id"], "dataset_id": dataset}
        evaluations.append(client.post("/v1/evaluations", json=body).json()["id"])
        service.work()
    return World(service, client, model, folded["output"]["id"], *evaluations)


def test_a_guaranteed_rate(world: World) -> None:
    path = f"models/{world.model}/operating-point"
    plain = world.read(path, fpr=0.1)
    assert plain["guarantee"] is None
    for asked in ({"fpr": 0.1}, {"tpr": 0.8}):
        (rate, limit), *_ = asked.items()
        found = world.read(path, confidence=0.9, **asked)
        guarantee = found["guarantee"]
        counts = world.read(f"models/{world.model}/metrics")
        rows = counts["negatives" if rate == "fpr" else "positives"]
        assert (guarantee["rate"], guarantee["limit"], guarantee["rows"]) == (rate, limit, rows)
        assert guarantee["broken"] <= 0.1 == pytest.approx(1 - guarantee["confidence"])
        wrong = found["fpr"]["value"] if rate == "fpr" else 1 - found["tpr"]["value"]
        assert wrong * rows <= guarantee["errors"] + 1e-9
        assert guarantee["errors"] < rows * (limit if rate == "fpr" else 1 - limit)
        # the same cut as that of the more careful rate
        share = guarantee["errors"] / rows
        same = world.read(path, **{rate: share if rate == "fpr" else 1 - share})
        assert same["threshold"] == found["threshold"]
        assert same["precision"] == found["precision"]


def test_too_few_rows_say_how_many_are_needed(world: World) -> None:
    answer = world.client.get(
        f"/v1/models/{world.model}/operating-point", params={"fpr": 0.001, "confidence": 0.95}
    )
    problem = refused(answer, 422, "too_few_rows", "2,995 negatives")
    (error,) = problem["errors"]
    assert (error["parameter"], error["needed"]) == ("fpr", 2995)


def test_an_evaluation_guarantees_where_the_model_has_not_seen_the_rows(world: World) -> None:
    path = f"evaluations/{world.evaluation}/operating-point"
    found = world.read(path, tpr=0.9, confidence=0.95)
    assert (found["evaluation_id"], found["model_id"]) == (world.evaluation, world.folded)
    assert found["guarantee"]["needed"] == 29
    assert found["tpr"]["value"] > 0.9
    cheap = world.read(path, cost_false_positive=1, cost_false_negative=2)
    assert cheap["guarantee"] is None
    assert cheap["cost"]["value"] < cheap["cost"]["flag_none"]
    asked = {"fpr": 0.1, "confidence": 0.9}
    answer = world.client.get(f"/v1/evaluations/{world.seen}/operating-point", params=asked)
    refused(answer, 422, "no_guarantee", world.seen)
    answer = world.client.get("/v1/evaluations/evl_1/operating-point", params=asked)
    refused(answer, 404, "not_found")


def test_bad_questions_of_guarantees(world: World) -> None:
    for query, code, named in (
        ("fpr=0.1&confidence=0", "invalid", ("confidence",)),
        ("fpr=0.1&confidence=1", "invalid", ("confidence",)),
        ("fpr=0.1&confidence=nan", "invalid", ("confidence",)),
        ("fpr=0.1&confidence=x", "invalid", ("confidence",)),
        ("fpr=0&confidence=0.9", "invalid_parameter", ("fpr",)),
        ("tpr=1&confidence=0.9", "invalid_parameter", ("tpr",)),
        ("confidence=0.9", "invalid_parameter", ("fpr", "tpr")),
        ("fpr=0.1&tpr=0.9&confidence=0.9", "invalid_parameter", ("fpr", "tpr")),
        ("threshold=1&confidence=0.9", "no_guarantee", ("threshold",)),
        ("fpr=0.1&confidence=0.9&on=train", "no_guarantee", ("on",)),
        ("fpr=0.1&confidence=0.9&prevalence=2", "invalid", ("prevalence",)),
    ):
        answer = world.client.get(f"/v1/models/{world.model}/operating-point?{query}")
        refused(answer, 422, code, *named)


def test_costs_alone_have_no_guarantee(world: World) -> None:
    """Of a model and of an evaluation alike."""
    costs = "cost_false_positive=1&cost_false_negative=1&confidence=0.9"
    for path in (f"models/{world.model}", f"evaluations/{world.evaluation}"):
        answer = world.client.get(f"/v1/{path}/operating-point?{costs}")
        problem = refused(answer, 422, "invalid_parameter", "confidence")
        assert [error["parameter"] for error in problem["errors"]] == ["confidence"]
        assert world.client.get(f"/v1/{path}/operating-point?{costs}&fpr=0.3").status_code == 200
    grouped = f"/v1/evaluations/{world.evaluation}/operating-point?{costs}&fpr=0.3&by_group=each"
    assert world.client.get(grouped).status_code == 422  # that evaluation has no groups


def test_cross_validated_scores_guarantee_nothing(world: World) -> None:
    answer = world.client.get(f"/v1/models/{world.folded}/operating-point?fpr=0.1&confidence=0.9")
    refused(answer, 422, "no_guarantee", "cross-validated")


NAMES = ["average_precision", "precision@20", "precision@10%", "ndcg@20", "two_way:0.3,0.4"]
NAMES += ["auc", "gini"]


def test_metrics_by_name(world: World) -> None:
    path = f"models/{world.model}"
    found = world.read(f"{path}/metric-estimates", metric=NAMES)
    assert [each["metric"] for each in found["metrics"]] == NAMES
    by_name = {each["metric"]: each for each in found["metrics"]}
    metrics = world.read(f"{path}/metrics")
    for end in ("value", "low", "high"):
        assert by_name["auc"][end] == pytest.approx(metrics["auc"][end])
    prevalence = metrics["positives"] / (metrics["positives"] + metrics["negatives"])
    assert by_name["average_precision"]["chance"] == pytest.approx(prevalence)
    assert by_name["two_way:0.3,0.4"]["chance"] is by_name["two_way:0.3,0.4"]["p_value"] is None
    for end in ("value", "low", "high", "chance"):
        assert by_name["gini"][end] == pytest.approx(2 * by_name["auc"][end] - 1)
    assert by_name["gini"]["p_value"] == pytest.approx(by_name["auc"]["p_value"])
    assert by_name["auc"]["p_value"] <= by_name["auc"]["adjusted_p_value"] < 0.001
    for each in found["metrics"]:
        assert 0 <= each["low"] <= each["value"] <= each["high"] <= 1
    there = world.read(f"evaluations/{world.evaluation}/metric-estimates", metric=["auc", "ndcg"])
    assert (there["model_id"], there["level"]) == (world.folded, 0.95)
    assert world.read(f"models/{world.folded}/metric-estimates", metric="auc")["approximate"]


def test_a_new_metric_needs_no_route(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.metrics.measuring.METRICS", WITH_SQUARE_AREA)
    for path in (f"models/{world.model}", f"evaluations/{world.evaluation}"):
        new, area = world.read(f"{path}/metric-estimates", metric=["square_area:1", "auc"])[
            "metrics"
        ]
        assert new["value"] == pytest.approx(area["value"] ** 2)
        assert new["low"] < new["value"] < new["high"]


def test_the_strict_partial_area_by_name_and_by_definition(world: World) -> None:
    """It is the `empirical` of the metrics, with an interval and a test."""
    strict = ["empirical:0,0.05", "empirical:0,1"]
    for path in (f"models/{world.model}", f"evaluations/{world.evaluation}"):
        read = partial(world.read, f"{path}/metric-estimates")
        asked = read(metric=["pauc:0,0.05", "auc"], definition="empirical")["metrics"]
        assert asked == read(metric=strict)["metrics"]
        assert [each["metric"] for each in asked] == strict
        for each in asked:
            assert each["low"] <= each["value"] <= each["high"]
            assert each["p_value"] <= each["adjusted_p_value"]
        (plain,) = read(metric="pauc:0,0.05", definition="interpolated")["metrics"]
        assert plain["metric"] == "pauc:0,0.05"
    (window, *_) = world.read(f"models/{world.model}/metrics")["pauc"]
    (same,) = world.read(f"models/{world.model}/metric-estimates", metric=strict[0])["metrics"]
    assert same["value"] == pytest.approx(window["empirical"])


def test_a_fixed_prevalence_narrows_the_metrics_that_depend_on_it(world: World) -> None:
    for path in (f"models/{world.model}", f"evaluations/{world.evaluation}"):
        asked = {"metric": ["precision@50%", "auc"]}
        free, fixed = (
            world.read(f"{path}/metric-estimates", **asked, fixed_prevalence=known)["metrics"]
            for known in (False, True)
        )
        assert world.read(f"{path}/metric-estimates", **asked)["metrics"] == free
        assert free[1] == fixed[1]
        assert free[0]["value"] == fixed[0]["value"]
        assert free[0]["p_value"] == fixed[0]["p_value"]
        assert free[0]["high"] - free[0]["low"] > fixed[0]["high"] - fixed[0]["low"]


def test_the_gains_table(world: World) -> None:
    for path in (f"models/{world.model}", f"evaluations/{world.evaluation}"):
        whole = world.read(f"{path}/gains")
        assert [row["share"] for row in whole["rows"][:4]] == [0.01, 0.02, 0.05, 0.1]
        assert whole["rows"][-1]["recall"]["value"] == pytest.approx(1.0)
        found = world.read(f"{path}/gains", share=[0.1, 0.5], count=20)
        tenth, half, twenty = found["rows"]
        assert tenth["lift"]["value"] > half["lift"]["value"] > 1.0
        assert twenty["count"] == 20
        named = world.read(f"{path}/metric-estimates", metric=["precision@20", "precision@10%"])
        for row, metric in zip((twenty, tenth), named["metrics"], strict=True):
            for end in ("value", "low", "high"):
                assert row["precision"][end] == pytest.approx(metric[end])
        rare = world.read(f"{path}/gains", share=0.1, prevalence=0.01)
        assert rare["prevalence"] == 0.01
        assert rare["rows"][0]["precision"]["value"] < tenth["precision"]["value"]


def test_curves_of_the_list(world: World) -> None:
    """Their points are those of the whole ROC curve, by the definitions of precision, share and cost."""
    for path in (f"models/{world.model}", f"evaluations/{world.evaluation}"):
        roc = world.read(f"{path}/roc", max_points=100_000)["points"]
        metrics = world.read(f"{path}/gains", share=1)
        share = metrics["prevalence"]
        flagged = [share * p["tpr"] + (1 - share) * p["fpr"] for p in roc]
        found = world.read(f"{path}/curves/precision_recall", max_points=100_000)
        assert (found["kind"], found["axes"]) == ("precision_recall", ["recall", "precision"])
        assert found["exact"]
        assert found["total_points"] == len(roc) - 1 == len(found["points"])
        for point, cutoff, size in zip(found["points"], roc[1:], flagged[1:], strict=True):
            assert (point["x"], point["threshold"]) == (cutoff["tpr"], cutoff["threshold"])
            assert point["y"] == pytest.approx(share * cutoff["tpr"] / size)
        gains = world.read(f"{path}/curves/gains", max_points=100_000)["points"]
        assert gains[0] == {"x": 0.0, "y": 0.0, "threshold": None}
        assert [p["x"] for p in gains] == pytest.approx(flagged)
        costs = world.read(f"{path}/curves/cost")
        assert costs["prevalence"] is None
        for point in costs["points"]:
            each = [point["x"] * (1 - p["tpr"]) + (1 - point["x"]) * p["fpr"] for p in roc]
            assert point["y"] == pytest.approx(min(each))
        thin = world.read(f"{path}/curves/precision_recall", max_points=7, prevalence=0.01)
        assert (thin["exact"], thin["prevalence"]) == (False, 0.01)
        assert len(thin["points"]) <= 7
        answer = world.client.get(f"/v1/{path}/curves/gains", params={"format": "csv"})
        head, *lines = answer.text.splitlines()
        assert head == "share,recall,threshold"
        assert len(lines) == len(roc)
    assert world.read(f"models/{world.folded}/curves/gains")["approximate"]
    assert world.read(f"models/{world.model}/curves/gains", on="train")["on"] == "train"


def test_cuts_have_the_probabilities_of_their_thresholds(world: World) -> None:
    found = world.read(f"models/{world.model}/operating-points", points=1000)
    known = dict(
        zip((each["threshold"] for each in found["points"]), found["probabilities"], strict=True)
    )
    assert known.pop(None) is None
    model = world.read(f"models/{world.model}")
    preview = world.read(f"datasets/{model['dataset_id']}/preview", limit=100)
    names = [feature["name"] for feature in model["features"]]
    rows = [dict(zip(preview["columns"], row, strict=True)) for row in preview["data"]]
    answer = world.client.post(
        f"/v1/models/{world.model}/score",
        json={"rows": [{name: row[name] for name in names} for row in rows]},
    ).json()
    pairs = [
        (known[score], probability)
        for score, probability in zip(answer["scores"], answer["probabilities"], strict=True)
        if score in known
    ]
    assert len(pairs) > 5
    assert [one for one, _ in pairs] == pytest.approx([other for _, other in pairs])


def test_the_histogram_of_the_scores(world: World) -> None:
    """Each bin has the rows of each class whose scores lie in it, as the ROC curve counts them."""
    for path in (f"models/{world.model}", f"evaluations/{world.evaluation}"):
        roc = world.read(f"{path}/roc", max_points=100_000)["points"]
        found = world.read(f"{path}/curves/histogram")
        assert (found["axes"], found["prevalence"]) == (["score", "positives"], None)
        bins = found["points"]
        assert len(bins) == found["total_points"] == 40
        assert sum(each["y"] for each in bins) == pytest.approx(1)
        assert sum(each["negatives"] for each in bins) == pytest.approx(1)
        for left, right in itertools.pairwise(bins):
            assert left["high"] == right["x"] == right["threshold"]
            # What lies above a bin is what a cut there flags.
            flagged = [each for each in roc[1:] if each["threshold"] >= left["high"]]
            tpr, fpr = (flagged[-1]["tpr"], flagged[-1]["fpr"]) if flagged else (0, 0)
            after = [each for each in bins if each["x"] >= left["high"]]
            assert sum(each["y"] for each in after) == pytest.approx(tpr)
            assert sum(each["negatives"] for each in after) == pytest.approx(fpr)
        few = world.read(f"{path}/curves/histogram", max_points=7)["points"]
        assert len(few) == 7
        answer = world.client.get(f"/v1/{path}/curves/histogram", params={"format": "csv"})
        head, *lines = answer.text.splitlines()
        assert head == "score,high,positives,negatives"
        assert len(lines) == 40


def test_pictures_of_the_curves_of_the_list(world: World) -> None:
    metrics = world.read(f"models/{world.model}/metric-estimates", metric="average_precision")
    area = f"{metrics['metrics'][0]['value']:.4f}"
    for kind, words in (("precision_recall", f"average precision {area}"), ("cost", "best cutoff")):
        answer = world.client.get(f"/v1/models/{world.model}/plot", params={"kind": kind})
        assert answer.headers["content-type"] == "image/svg+xml"
        assert words in answer.text
        assert "NaN" not in answer.text.replace("nan", "NaN")


def test_bad_questions_of_lists(world: World) -> None:
    twice = "metric-estimates?metric=auc&metric=empirical:0,1&definition=empirical"
    many = [f"ndcg@{k}" for k in range(1, 22)]
    for query, code, named in (
        ("curves/roc", "invalid", ("kind",)),
        ("curves/gains?max_points=1", "invalid", ("max_points", 2)),
        ("curves/gains?max_points=1e9", "invalid", ("max_points",)),
        ("curves/gains?max_points=100001", "invalid", ("max_points", 100_000)),
        ("curves/gains?prevalence=0", "invalid", ("prevalence",)),
        ("curves/gains?prevalence=1", "invalid", ("prevalence",)),
        ("curves/gains?prevalence=nan", "invalid", ("prevalence",)),
        ("curves/cost?prevalence=0.1", "invalid_parameter", ("cost",)),
        ("curves/histogram?prevalence=0.1", "invalid_parameter", ("prevalence", 0.1)),
        ("curves/histogram?max_points=1", "invalid", ("max_points",)),
        ("curves/gains?format=xml", "invalid", ("format",)),
        ("metric-estimates", "invalid", ("metric",)),
        ("metric-estimates?metric=", "invalid_parameter", ("metric",)),
        ("metric-estimates?metric=area", "invalid_parameter", ("'area'",)),
        ("metric-estimates?metric=precision@1e9", "invalid_parameter", ("'precision@1e9'",)),
        ("metric-estimates?metric=precision@100000", "invalid_parameter", ("count", 100_000)),
        ("metric-estimates?metric=two_way:0,0.5", "invalid_parameter", ("fpr_max",)),
        ("metric-estimates?metric=auc&metric=auc", "invalid_parameter", ("auc",)),
        ("metric-estimates?metric=auc&definition=strict", "invalid", ("definition",)),
        (twice, "invalid_parameter", ("empirical:0,1",)),
        ("metric-estimates?metric=empirical:0.2,0.1", "invalid_parameter", ("fpr_max",)),
        ("metric-estimates?metric=" + "&metric=".join(many), "invalid", ("metric",)),
        ("metric-estimates?metric=auc&on=moon", "invalid", ("on",)),
        ("metric-estimates?metric=auc&fixed_prevalence=0.1", "invalid", ("fixed_prevalence",)),
        ("gains?share=0", "invalid", ("share", "0.000000001")),
        ("gains?share=1.1", "invalid", ("share", 1)),
        ("gains?share=nan", "invalid", ("share",)),
        ("gains?count=5&count=0", "invalid", ("count[1]",)),
        ("gains?count=1.5", "invalid", ("count[0]",)),
        ("gains?count=100000", "invalid_parameter", ("count",)),
        ("gains?count=5&prevalence=0.1", "invalid_parameter", ("prevalence",)),
        ("gains?share=5e-324", "invalid", ("share", "0.000000001")),
        ("gains?prevalence=1e-320", "invalid", ("prevalence", "0.000000001")),
        ("gains?prevalence=0,5", "invalid", ("'0,5'", 0.5)),
        ("gains?prevalence=1e-200&share=0.1", "invalid", ("prevalence",)),
        ("gains?prevalence=1", "invalid", ("prevalence", "0.999999999")),
    ):
        for path in (f"models/{world.model}", f"evaluations/{world.evaluation}"):
            if "on=" in query and path.startswith("evaluations"):
                continue
            refused(world.client.get(f"/v1/{path}/{query}"), 422, code, *named)


def test_models_are_compared_by_metrics(world: World) -> None:
    dataset = world.read(f"evaluations/{world.evaluation}")["dataset_id"]
    body = {
        "models": [world.model, world.folded],
        "dataset_id": dataset,
        "metrics": ["average_precision", "precision@20", "lift@20", "empirical:0,0.2"],
    }
    made = world.client.post("/v1/comparisons", json=body)
    assert made.status_code == 202, made.text
    world.service.work()
    result = world.read(f"comparisons/{made.json()['id']}")["result"]
    assert [each["metric"] for each in result["metrics"]] == body["metrics"]
    there = world.read(f"evaluations/{world.evaluation}/metric-estimates", metric=body["metrics"])
    for compared, metric in zip(result["metrics"], there["metrics"], strict=True):
        (_, of_folded), (pair,) = compared["values"], compared["differences"]
        assert of_folded["value"] == pytest.approx(metric["value"])
        assert (pair["first"], pair["second"]) == (world.model, world.folded)
        assert pair["p_value"] <= pair["adjusted_p_value"]
        assert compared["p_value"] == pytest.approx(pair["p_value"])
    assert len(result["windows"]) == 1
    for metrics, words in (
        (["area"], "a metric must be"),
        (["auc", "auc"], "/metrics/1"),
        ([f"ndcg@{k}" for k in range(1, 22)], "/metrics"),
        (["x" * 5000], "/metrics/0"),
        ("auc", "/metrics"),
        ([1], "/metrics/0"),
        (["auc", "precision@5000"], "/metrics/1"),  # the dataset has fewer rows
        (["auc", "lift@5000"], "/metrics/1"),
    ):
        answer = world.client.post("/v1/comparisons", json=body | {"metrics": metrics})
        assert answer.status_code == 422
        assert words in answer.text


def test_rows_of_unequal_weight_are_not_counted(world: World) -> None:
    """Refused at once: in the job a count could exceed the weight, and a rank has no fractions."""
    head, *lines = table(200, 2).splitlines()
    text = "\n".join([f"{head},w", *(f"{line},0.5" for line in lines), ""])
    weighted = world.service.upload(world.client, text, name="weighted", weight="w")
    body = {"models": [world.model, world.folded], "dataset_id": weighted}
    for name in ("precision@20", "lift@2", "ndcg@5", "ndcg"):
        made = world.client.post("/v1/comparisons", json=body | {"metrics": ["auc", name]})
        problem = refused(made, 422, "invalid_parameter", name)
        assert problem["errors"][0]["pointer"] == "/metrics/1"
