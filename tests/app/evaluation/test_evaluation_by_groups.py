"""Evaluations by groups: the stored figures are those of the column, the artifact's scores and the model's own cut."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.evaluation.checks import check_model
from app.evaluation.schemas import evaluation_of
from app.models import calibrations, curves, operating_points
from app.models import service as models
from app.platform.errors import Invalid
from app.platform.tables import Measurement
from core import metrics
from tests.app.evaluated_people import People, evaluate, interval, train
from tests.app.evaluated_people import ask as ask_for
from tests.app.live_service import Service
from tests.app.preference_data import draw_pairs, items_csv, pairs_csv, upload_items, worths
from tests.app.refusals import refused
from tests.app.workbench import OWNER, Workbench
from tests.raising import raises
from tests.sentences import Sentences

REGIONS = ("north", "south", "")


class PeopleOfRegions(People):
    """People with a region, unknown for some, which says nothing of the label, a flag, and a number of four values."""

    def csv(self) -> str:
        """The table as it is uploaded."""
        head, *lines = super().csv().splitlines()
        rows = [
            f"{line},{REGIONS[i % 3]},{'true' if i % 2 else 'false'},{i % 4 / 2}"
            for i, line in enumerate(lines)
        ]
        return "\n".join([f"{head},region,flag,size", *rows, ""])


def test_figures_by_group(bench: Workbench, sentences: Sentences) -> None:
    model = train(bench, People(300, 0).upload(bench), "churn")
    people = PeopleOfRegions(420, 1)
    new = people.upload(bench, weight="w", group="g")
    window = (0.0, 0.3)
    found = evaluate(
        bench,
        "churn",
        new,
        windows=[window],
        level=0.9,
        group_by="region",
        at={"fpr": 0.2},
        cutoffs="equal_fpr",
    )
    shown = json.loads(evaluation_of(found).model_dump_json())
    assert (shown["group_by"], shown["cutoffs"]) == ("region", "equal_fpr")
    assert shown["at"] == {"fpr": 0.2, "tpr": None, "threshold": None}
    groups = shown["groups"]
    point = operating_points.point_on(
        bench.db.reading(curves.roc, OWNER, model.id, "validation"), fpr=0.2
    )
    assert (
        groups["threshold"] == shown["metrics"]["operating_point"]["threshold"] == point.threshold
    )
    assert (groups["cutoffs"], groups["rate"]) == ("equal_fpr", 0.2)
    sentences(groups["note"])
    scores = people.scores(bench, model)
    with bench.db.read() as session:
        served = calibrations.served_of(calibrations.find_served(session, model))
    probability = served.calibration.probability(scores)
    by = np.arange(len(scores)) % 3
    expected = metrics.compare_groups(
        people.y,
        scores,
        by,
        windows=[window],
        threshold=point.threshold,
        cutoffs="equal_fpr",
        rate=0.2,
        level=0.9,
        sample_weight=people.weight,
        group=people.group,
        probability=probability,
    )
    assert [one["value"] for one in groups["groups"]] == ["north", "south", None]
    for one, same in zip(groups["groups"], expected.groups, strict=True):
        assert (one["rows"], one["positives"]) == (same.rows, same.positives)
        assert (one["rows"], one["negatives"]) == (same.rows, same.rows - same.positives)
        (area,) = one["pauc"]
        assert (area["fpr_min"], area["fpr_max"]) == window
        for metric, core in (
            (one["auc"], same.auc),
            (area, same.partial_aucs[0]),
            (one["tpr"], same.tpr),
            (one["fpr"], same.fpr),
        ):
            assert core is not None
            assert core.interval is not None
            assert interval(metric) == pytest.approx(core.interval)
            assert metric["reason"] is None
        assert same.cutoff is not None
        assert one["cutoff"]["threshold"] == same.cutoff.threshold
        assert interval(one["cutoff"]["tpr"]) == pytest.approx(same.cutoff.tpr)
        calibration = one["calibration"]
        assert same.calibration is not None
        assert calibration["predicted"] == pytest.approx(same.calibration.predicted)
        for metric, core in (
            (calibration["observed"], same.calibration.observed),
            (calibration["in_the_large"], same.calibration.in_the_large),
        ):
            assert core.interval is not None
            assert interval(metric) == pytest.approx(core.interval)
        assert 2 <= len(calibration["points"]) <= 11
        own = probability[(by == groups["groups"].index(one)) & (people.weight > 0)]
        ends = [calibration["points"][place]["probability"] for place in (0, -1)]
        assert own.min() - 1e-9 <= ends[0] <= ends[1] <= own.max() + 1e-9
        assert all(
            each["low"] <= each["observed"] <= each["high"] for each in calibration["points"]
        )
    across = [(one["positives_of"], one["negatives_of"]) for one in groups["xauc"]]
    assert across[:4] == [
        ("north", "north"),
        ("north", "south"),
        ("north", None),
        ("south", "north"),
    ]
    for one, cross in zip(groups["xauc"], expected.cross_areas, strict=True):
        assert cross.metric.interval is not None
        assert interval(one) == pytest.approx(cross.metric.interval)
    of = [test["of"] for test in groups["tests"]]
    assert of == ["auc", "pauc", "tpr", "fpr", "calibration"]
    for test, same_test in zip(groups["tests"], expected.tests, strict=True):
        assert test["adjusted_p_value"] == pytest.approx(same_test.adjusted_p_value)
        assert "the 3 groups" in test["words"]
    assert [worst["of"] for worst in groups["worst"]] == ["auc", "pauc", "tpr", "fpr"]


class PeopleOfSexes(People):
    """People with a sex and an age. The label is drawn at random for women: no model ranks them."""

    def __init__(self, n: int, seed: int) -> None:
        super().__init__(n, seed)
        rng = np.random.default_rng(seed + 100)
        self.women = np.arange(n) % 2 == 1
        self.y[self.women] = rng.random(self.women.sum()) < 0.3
        self.age = rng.integers(18, 90, n)

    def csv(self) -> str:
        """The table as it is uploaded."""
        head, *lines = super().csv().splitlines()
        kinds = zip(lines, self.women, self.age, strict=True)
        rows = [f"{line},{'w' if woman else 'm'},{age}" for line, woman, age in kinds]
        return "\n".join([f"{head},Geschlecht,Alter", *rows, ""])


def test_protected_columns_are_compared_by_themselves(bench: Workbench) -> None:
    train(bench, People(600, 0).upload(bench), "fair")
    people = PeopleOfSexes(1200, 1)
    new = people.upload(bench)

    def shown(**groups: Any) -> Any:
        return json.loads(evaluation_of(evaluate(bench, "fair", new, **groups)).model_dump_json())

    found = shown()
    assert found["groups"] is None
    sexes, ages = found["protected"]
    assert (sexes["column"], [one["value"] for one in sexes["groups"]]) == (
        "Geschlecht",
        ["m", "w"],
    )
    (of_auc,) = (test for test in sexes["tests"] if test["of"] == "auc")
    assert of_auc["differs"]
    edges = [
        int(edge) for edge in np.quantile(people.age, (0.25, 0.5, 0.75), method="inverted_cdf")
    ]
    bands = np.searchsorted(edges, people.age)
    assert [one["rows"] for one in ages["groups"]] == np.bincount(bands).tolist()
    assert [one["value"] for one in ages["groups"]] == [
        *(f"up to {edges[0]}", f"above {edges[0]} to {edges[1]}"),
        *(f"above {edges[1]} to {edges[2]}", f"above {edges[2]}"),
    ]
    assert not any(test["differs"] for test in ages["tests"])
    # All tests of both columns are adjusted together.
    tests = [each for of in (sexes, ages) for each in of["tests"] if each["p_value"] is not None]
    least = min(tests, key=lambda each: each["p_value"])
    assert least["adjusted_p_value"] == pytest.approx(min(1.0, len(tests) * least["p_value"]))

    model = bench.db.reading(models.find, OWNER, "fair")
    _, checked = bench.db.reading(check_model, OWNER, model.id)
    (groups,) = (each for each in checked if each.question == "groups")
    assert groups.answer == "no"
    assert "Geschlecht: AUC differs" in groups.details[0]
    # Each column is named with its own metrics: the ages do not differ.
    assert "Geschlecht (AUC, partial AUC)." in groups.words
    # A column of the request is not measured twice, and an empty list turns it off.
    both = shown(group_by="Geschlecht")
    assert (both["groups"]["column"], [of["column"] for of in both["protected"]]) == (
        "Geschlecht",
        ["Alter"],
    )
    assert shown(protected=[])["protected"] == []
    assert [of["column"] for of in shown(protected=["a", "a"])["protected"]] == ["a"]
    # Bands whose ends differ in the eighth digit have names that differ.
    people.age = people.age + 10_000_000
    new = people.upload(bench)
    (far,) = shown(protected=["Alter"])["protected"]
    assert [one["value"] for one in far["groups"]] == [
        re.sub(r"\d+", lambda edge: str(int(edge[0]) + 10_000_000), one["value"])
        for one in ages["groups"]
    ]


def test_columns_of_every_type_and_cuts_of_every_kind(bench: Workbench) -> None:
    train(bench, People(300, 0).upload(bench), "tprs", objective={"metric": "tpr", "fpr": 0.1})
    new = PeopleOfRegions(400, 1).upload(bench, weight="size", group="g")
    for column, values in (
        ("flag", ["false", "true"]),
        ("size", ["0.5", "1", "1.5"]),  # the weights; rows of weight 0 are in no figure, but named
        ("region", ["north", "south", None]),
    ):
        found = evaluate(bench, "tprs", new, group_by=column)
        assert found.metrics is not None
        groups = found.metrics["by_group"]
        named = [one["value"] for one in groups["groups"]]
        assert named == (["0", *values] if column == "size" else values)
        if column == "size":
            assert groups["groups"][0]["rows"] == 0
            nobody = groups["groups"][0]
            assert nobody["auc"]["reason"].startswith("0 positives")
            assert nobody["calibration"]["predicted"] is None
            assert nobody["calibration"]["points"] == []
            assert nobody["calibration"]["observed"]["reason"].startswith("0 rows")
        # The objective has a cut, which is the one that all are judged at.
        assert groups["threshold"] == found.metrics["operating_point"]["threshold"]
        assert groups["note"] is None
    found = evaluate(bench, "tprs", new, at={"threshold": 0.25})
    assert found.metrics is not None
    assert found.metrics["operating_point"]["threshold"] == 0.25
    assert "by_group" not in found.metrics
    found = evaluate(bench, "tprs", new, group_by="flag", at={"fpr": 0.3}, cutoffs="equal_tpr")
    assert found.metrics is not None
    everyone = found.metrics["operating_point"]["tpr"]["value"]
    assert found.metrics["by_group"]["rate"] == pytest.approx(everyone)


def test_what_is_said_of_cuts_and_of_small_groups(bench: Workbench, sentences: Sentences) -> None:
    people = People(300, 0).upload(bench)
    train(bench, people, "folds", validation={"method": "cross_validation", "folds": 2})
    lines = PeopleOfRegions(90, 1).csv().splitlines()
    rare = "\n".join([*lines, lines[1].replace("north", "islands"), ""])
    new = bench.ready(rare, label="left", positive="yes", drop="w,g").id
    found = evaluate(bench, "folds", new, group_by="region", at={"fpr": 0.1})
    assert any("rankers of the folds" in each for each in found.warnings)
    assert found.metrics is not None
    groups = found.metrics["by_group"]
    islands = groups["groups"][0]
    assert (islands["value"], islands["rows"], islands["auc"]["value"]) == ("islands", 1, None)
    sentences(islands["auc"]["reason"])
    sentences(islands["calibration"]["in_the_large"]["reason"])
    assert islands["calibration"]["points"] == []
    one_value = evaluate(
        bench,
        "folds",
        bench.ready(
            "\n".join(
                [
                    lines[0],
                    *(
                        line.replace(",south,", ",north,").replace(",,", ",north,")
                        for line in lines[1:]
                    ),
                    "",
                ]
            ),
            label="left",
            positive="yes",
            drop="w,g",
        ).id,
        group_by="region",
    )
    assert one_value.metrics is not None
    groups = one_value.metrics["by_group"]
    assert [one["value"] for one in groups["groups"]] == ["north"]
    test = groups["tests"][0]
    assert test["p_value"] is None
    sentences(test["words"])
    assert groups["groups"][0]["tpr"] is None  # nobody asked for a cut


@pytest.fixture(scope="module")
def ask(start: Callable[..., Service]) -> Callable[..., Any]:
    """POST an evaluation of a model on people of regions, with these members, by a key of these scopes."""
    service = start()
    client = service.client(service.key())
    old = service.upload(client, People(120, 0).csv(), label="left", drop="w,g")
    service.train(client, old, name="churn")
    service.train(client, old, name="unjudged", validation={"method": "none"})
    lines = PeopleOfRegions(120, 1).csv().splitlines()
    more = ",day,code,empty,same"
    rows = [f"{line},2026-01-{1 + i % 9:02d},c{i % 40},,1" for i, line in enumerate(lines[1:])]
    new = service.upload(client, "\n".join([lines[0] + more, *rows, ""]), label="left", drop="w")

    def post(body: dict[str, Any], scopes: list[str] | None = None, at: str = "") -> Any:
        by = client if scopes is None else service.client(service.key(scopes=scopes))
        asked = {"model": "churn", "dataset_id": new} | body
        return by.post(f"/v1/evaluations{at}", json=asked)

    return post


def test_bad_groups_and_cuts(ask: Callable[..., Any], sentences: Sentences) -> None:
    for body, code, pointer in (
        ({"group_by": "planet"}, "unknown_column", "/group_by"),
        ({"group_by": "left"}, "invalid", "/group_by"),
        ({"group_by": "w"}, "invalid", "/group_by"),
        ({"group_by": "day"}, "invalid", "/group_by"),
        ({"group_by": "empty"}, "invalid", "/group_by"),
        ({"group_by": "code"}, "invalid", "/group_by"),
        ({"group_by": "a"}, "invalid", "/group_by"),
        ({"group_by": ""}, "invalid", "/group_by"),
        ({"group_by": "x" * 300}, "invalid", "/group_by"),
        ({"group_by": "\x00"}, "invalid", "/group_by"),
        ({"group_by": ["region"]}, "invalid", "/group_by"),
        ({"at": {}}, "invalid", "/at"),
        ({"at": {"fpr": 0.1, "tpr": 0.2}}, "invalid", "/at"),
        ({"at": {"fpr": 1.5}}, "invalid", "/at/fpr"),
        ({"at": {"threshold": "high"}}, "invalid", "/at/threshold"),
        ({"at": {"cutoff": 1}}, "invalid", "/at/cutoff"),
        ({"at": {"fpr": 0.1}, "model": "unjudged"}, "no_curve", "/at/fpr"),
        ({"cutoffs": "equal"}, "invalid", "/cutoffs"),
        ({"cutoffs": "equal_fpr", "at": {"fpr": 0.1}}, "invalid", "/cutoffs"),
        ({"cutoffs": "equal_fpr", "group_by": "region"}, "invalid", "/cutoffs"),
        ({"protected": ["region", "planet"]}, "unknown_column", "/protected/1"),
        ({"protected": ["left"]}, "invalid", "/protected/0"),
        ({"protected": ["day"]}, "invalid", "/protected/0"),
        ({"protected": ["code"]}, "invalid", "/protected/0"),
        ({"protected": ["empty"]}, "invalid", "/protected/0"),
        ({"protected": "region"}, "invalid", "/protected"),
        ({"protected": ["region"] * 11}, "invalid", "/protected"),
    ):
        problem = refused(ask(body), 422, code)
        sentences(problem["errors"][0])
        assert problem["errors"][0]["pointer"] == pointer


def test_promises_by_group_over_http(start: Callable[..., Service]) -> None:
    service = start()
    client = service.client(service.key())
    old = service.upload(client, People(300, 0).csv(), label="left", drop="w,g")
    model = service.train(client, old, name="churn")["output"]["id"]
    people = PeopleOfRegions(400, 1)
    lines = people.csv().splitlines()
    region = [line.split(",")[-3] for line in lines[1:]]
    rare = "\n".join([*lines[:-1], lines[-1].replace(f",{region[-1]},", ",islands,"), ""])
    region[-1] = "islands"

    def evaluated(text: str, name: str, **options: str) -> str:
        dataset = service.upload(client, text, name=name, label="left", positive="yes", **options)
        body = {"model": model, "dataset_id": dataset, "group_by": "region"}
        answer = client.post("/v1/evaluations", json=body)
        service.work()
        return f"/v1/evaluations/{answer.json()['id']}/operating-point"

    path = evaluated(rare, "rare", drop="w,g")
    rows = [dict(zip(("a", "b", "c"), values, strict=True)) for values in people.X.tolist()]
    scores = np.array(
        client.post(f"/v1/models/{model}/score", json={"rows": rows}).json()["scores"]
    )
    by = np.array(["~" if each == "" else each for each in region])  # no value comes last
    for asked in ({"fpr": 0.2}, {"tpr": 0.7}):
        for word, together in (("together", True), ("each", False)):
            params: dict[str, Any] = {**asked, "confidence": 0.9, "by_group": word}
            answer = client.get(path, params=params)
            assert answer.status_code == 200, answer.text
            found = answer.json()["groups"]
            of_class = people.y == ("tpr" in asked)
            own = {name: scores[(by == name) & of_class] for name in np.unique(by).tolist()}
            expected = metrics.guarantees_on_scores(own, **asked, confidence=0.9, together=together)
            assert [each["value"] for each in found["groups"]] == [
                *("islands", "north", "south"),
                None,
            ]
            assert (found["column"], found["by_group"]) == ("region", word)
            assert "Check whether" in found["note"]
            for one, same in zip(found["groups"], expected.groups, strict=True):
                assert one["threshold"] == pytest.approx(same.threshold, abs=1e-12)
                assert (one["rows"], one["needed"]) == (same.rows, same.needed)
                if same.threshold is None:
                    assert (one["errors"], one["broken"], one["fpr"]) == (None, None, None)
                    continue
                assert same.guarantee is not None
                assert (one["errors"], one["broken"]) == (
                    same.guarantee.errors,
                    same.guarantee.broken,
                )
                own = by == same.group
                for name, label in (("fpr", False), ("tpr", True)):
                    flagged = (scores[own & (people.y == label)] >= same.threshold).mean()
                    assert one[name]["value"] == pytest.approx(flagged)
            assert found["threshold"] is None  # the islands have one row
            assert found["groups"][0]["threshold"] is None

    asked_all: dict[str, Any] = {"fpr": 0.2, "confidence": 0.9, "by_group": "together"}
    refused(client.get(path, params={"fpr": 0.2, "by_group": "each"}), 422, "invalid", "confidence")
    refused(client.get(path, params=asked_all | {"by_group": "x"}), 422, "invalid", "by_group")
    body = {"model": model, "dataset_id": service.upload(client, rare, label="left", drop="w,g")}
    plain = client.post("/v1/evaluations", json=body).json()["id"]
    service.work()
    answer = client.get(f"/v1/evaluations/{plain}/operating-point", params=asked_all)
    refused(answer, 422, "no_guarantee", "group_by")
    for options in ({"weight": "w", "drop": "g"}, {"group": "g", "drop": "w"}):
        unequal = evaluated(people.csv(), "unequal", **options)
        refused(client.get(unequal, params=asked_all), 422, "no_guarantee")

    def forget(session: Any) -> None:
        session.get_one(Measurement, path.split("/")[3]).group_scores = None

    service.context.db.writing(forget)  # as of an earlier version
    refused(client.get(path, params=asked_all), 422, "no_guarantee")
    assert client.get(path, params={"fpr": 0.2, "confidence": 0.9}).json()["groups"] is None


def test_groups_are_for_keys_that_may_read(ask: Callable[..., Any]) -> None:
    for at in ("", "/validate"):
        answer = ask({"group_by": "region"}, ["train"], at)
        refused(answer, 403, "forbidden", "group_by", "'read'")
        unknown = ask({"group_by": "planet"}, ["train"], at)
        refused(unknown, 403, "forbidden", "train")
        named = ask({"protected": ["region"]}, ["train"], at)
        refused(named, 403, "forbidden", "protected", "'read'")
    assert ask({}, ["train"], "/validate").status_code == 200
    assert ask({"group_by": "region"}, ["train", "read"], "/validate").status_code == 200


def test_pairs_have_no_groups_and_no_amounts(bench: Workbench, sentences: Sentences) -> None:
    dataset, _, worth = upload_items(bench, 60)
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 600)))
    bench.model(bench.work_on(dataset, name="films"))
    X, worth = worths(40, seed=5)
    fresh = bench.ready(items_csv(X), kind="preferences", item="item")
    bench.compare(fresh, pairs_csv(draw_pairs(worth, 200, seed=5)))
    assert ask_for(bench, "films", fresh.id, protected=[]).id
    with raises(Invalid, "preferences", fresh.id):
        ask_for(bench, "films", fresh.id, protected=["a"])
    with sentences.raises(Invalid):
        ask_for(bench, "films", fresh.id, group_by="a")
    with sentences.raises(Invalid):
        ask_for(bench, "films", fresh.id, amount="a")
