"""May a model be used? The checks of what is stored about it, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np

from tests.app.live_service import NAMES, Service, table
from tests.long_form import long_form
from tests.sentences import Sentences

CHECKS = ("ranks", "beats_baselines", "probabilities", "ranking_kept", "stable", "groups")


def checks(client: httpx.Client, model: str) -> dict[str, dict[str, Any]]:
    answer = client.get(f"/v1/models/{model}/checks")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    answers = {each["answer"] for each in found["findings"]} - {"not_applicable"}
    expected = "no" if "no" in answers else "unknown" if "unknown" in answers else "yes"
    assert found["answer"] == expected
    assert all(each["words"] for each in found["findings"])
    assert all(
        (each["answer"] in ("yes", "no")) == (each["reason"] is None) for each in found["findings"]
    )
    told = {each["question"]: each for each in found["findings"]}
    assert tuple(told) == CHECKS
    return told


def based_on(finding: dict[str, Any]) -> str | None:
    """Return the id of the evaluation that a finding is based on."""
    rows = finding["rows"]
    found: str | None = None if rows is None or rows["of"] != "evaluation" else rows["id"]
    return found


def results(client: httpx.Client, model: str) -> str:
    """Return the answers: (y)es, (n)o, (u)nknown, not applicable (-)."""
    return answered(checks(client, model))


def answered(told: dict[str, dict[str, Any]]) -> str:
    return "".join(
        {"not_applicable": "-"}.get(each["answer"], each["answer"][0]) for each in told.values()
    )


def evaluated(service: Service, client: httpx.Client, model: str, rows: str, **body: str) -> str:
    dataset_id = service.upload(client, rows, name="newer")
    answer = client.post("/v1/evaluations", json={"model": model, "dataset_id": dataset_id} | body)
    assert answer.status_code == 202, answer.text
    service.work()
    found = client.get(answer.headers["Location"]).json()
    assert found["status"] == "ready", found
    evaluation_id: str = found["id"]
    return evaluation_id


def of_regions(rows: int, seed: int, *, differ: bool) -> str:
    """A table with regions; if they differ, the labels of one of them are drawn at random."""
    rng = np.random.default_rng(seed)
    head, *lines = table(rows, seed).splitlines()
    told = [f"{head},region"]
    for at, line in enumerate(lines):
        values, label = line.rsplit(",", 1)
        if differ and at % 2:
            label = "yes" if rng.random() < 0.5 else "no"
        told.append(f"{values},{label},{'south' if at % 2 else 'north'}")
    return "\n".join(told) + "\n"


def test_what_each_check_tells(service: Service, client: httpx.Client) -> None:
    old = service.upload(client, table(2_000))
    job = service.train(client, old, algorithm={"name": "logistic"}, baselines=True)
    model = job["output"]["id"]
    told = checks(client, model)
    # Whether it is better than logistic regression does not apply to it; nothing newer is known.
    assert answered(told) == "y-uuuu"
    assert client.get(f"/v1/models/{model}").json()["beats_baselines"] is None
    compared = client.get(f"/v1/models/{model}/baselines").json()
    assert (compared["beats"], compared["is_baseline"]) == (None, True)
    assert len(compared["windows"]) > 0
    assert {based_on(each) for each in told.values()} == {None}
    # Four hundred rows of the validation are too few for the probabilities, and cannot test later rows.
    assert told["probabilities"]["rows"]["of"] == "cross_fitted"
    assert told["probabilities"]["more_rows"] > 400
    auc = client.get(f"/v1/models/{model}/metrics").json()["auc"]
    assert all(f"{auc[end]:.3f}" in told["ranks"]["words"] for end in ("value", "low", "high"))

    # Rows of the training tell nothing.
    answer = client.post("/v1/evaluations", json={"model": model, "dataset_id": old})
    assert answer.status_code == 202, answer.text
    service.work()
    assert results(client, model) == "y-uuuu"

    same = evaluated(service, client, model, of_regions(2_000, 1, differ=False), group_by="region")
    told = checks(client, model)
    # Not tested finds a difference between groups, but they are too small to exclude one.
    assert answered(told) == "y-yyyu"
    for name in ("probabilities", "ranking_kept", "stable", "groups"):
        assert based_on(told[name]) == same
        assert told[name]["measured_at"] is not None
        assert told[name]["margin"] > 0.0
    assert told["ranking_kept"]["more_rows"] is None

    # Half of the rows have labels that the features do not tell.
    other = evaluated(service, client, model, of_regions(600, 2, differ=True), group_by="region")
    told = checks(client, model)
    assert answered(told) == "y-nnyn"
    for name in ("probabilities", "ranking_kept", "stable", "groups"):
        assert based_on(told[name]) == other
    assert "north" not in told["stable"]["words"]
    assert "region" in told["groups"]["words"]

    # What is in the trash tells nothing.
    assert client.delete(f"/v1/evaluations/{other}").status_code == 204
    assert results(client, model) == "y-yyyu"


def by_time(rows: int, seed: int, *, drift: float) -> str:
    """A table with days, whose log odds are higher by `drift` on each of six days."""
    rng = np.random.default_rng(seed)
    lines = ["x,day,left"]
    for at in range(rows):
        day = 6 * at // rows
        x = rng.normal()
        positive = rng.random() < 1.0 / (1.0 + np.exp(2.0 - 1.5 * x - drift * day))
        lines.append(f"{x:.4f},2026-01-{day + 1:02d},{'yes' if positive else 'no'}")
    return "\n".join([*lines, ""])


def test_a_level_that_moves_from_one_window_to_the_next_is_found(
    service: Service, client: httpx.Client
) -> None:
    validation = {"method": "cross_validation", "folds": 5, "time_column": "day"}
    found = {}
    for name, drift in (("moving", 0.3), ("still", 0.0)):
        dataset_id = service.upload(client, by_time(6_000, 1, drift=drift), name=name)
        job = service.train(
            client, dataset_id, name=name, algorithm={"name": "logistic"}, validation=validation
        )
        model = job["output"]["id"]
        calibration = client.get(f"/v1/models/{model}/calibration").json()
        assert calibration["reliability"]["later"] is True
        assert calibration["reliability"]["n"] == 1_000
        assert len(calibration["reliability"]["periods"]["levels"]) == 5
        found[name] = calibration, checks(client, model)["probabilities"]
    calibration, told = found["moving"]
    assert (told["answer"], told["rows"]["of"]) == ("no", "later_rows")
    levels = calibration["reliability"]["periods"]["levels"]
    assert levels[0]["high"] < -0.5
    assert calibration["reliability"]["periods"]["p_value"] < 0.001
    # In all windows together 36 % are positive, in the last one about half.
    assert calibration["prevalence"] > 0.4
    calibration, told = found["still"]
    assert told["answer"] != "no"
    assert told["rows"]["of"] == "later_rows"


def test_older_rows_do_not_show_that_a_model_is_stable(
    service: Service, client: httpx.Client, sentences: Sentences
) -> None:
    validation = {"method": "holdout", "time_column": "day"}
    dataset_id = service.upload(client, by_time(2_000, 1, drift=0.0))
    job = service.train(
        client, dataset_id, name="m", algorithm={"name": "logistic"}, validation=validation
    )
    model = job["output"]["id"]
    done = client.put("/v1/models/m/aliases/live", json={"model_id": model})
    assert done.status_code == 201, done.text

    def last_checked() -> str | None:
        (live,) = client.get("/v1/overview").json()["live"]
        found: str | None = live["evaluation_id"]
        return found

    older = by_time(2_000, 2, drift=0.0)
    first = evaluated(service, client, model, older)
    (warning,) = client.get(f"/v1/evaluations/{first}").json()["warnings"]
    sentences(warning)
    assert checks(client, model)["stable"]["rows"] is None
    assert last_checked() is None
    # Of later rows, without a relation to the label; earlier rows do not replace the result.
    rows = older.replace("2026-01", "2027-01").splitlines()
    labels = [row.rpartition(",")[2] for row in rows[1:]]
    later = [
        f"{row.rpartition(',')[0]},{label}"
        for row, label in zip(rows[1:], reversed(labels), strict=True)
    ]
    worse = evaluated(service, client, model, "\n".join([rows[0], *later, ""]))
    assert client.get(f"/v1/evaluations/{worse}").json()["warnings"] == []
    evaluated(service, client, model, by_time(2_000, 3, drift=0.0))
    told = checks(client, model)["ranking_kept"]
    assert (told["answer"], based_on(told)) == ("no", worse)
    assert last_checked() == worse
    # Rows between those of the training and these do not replace the result, although they were evaluated later.
    between = [row.replace("2026-01", "2026-07") for row in older.splitlines()]
    fine = evaluated(service, client, model, "\n".join([*between, ""]))
    told = checks(client, model)["ranking_kept"]
    assert (told["answer"], based_on(told)) == ("no", worse)
    assert last_checked() == worse != fine
    # Nor do the training rows.
    evaluated(service, client, model, by_time(2_000, 1, drift=0.0))
    assert last_checked() == worse
    (drifted,) = client.get("/v1/overview").json()["drifted"]
    assert drifted["evaluation_id"] == worse


def test_chance_is_not_ranking(service: Service, client: httpx.Client) -> None:
    """Labels that no feature tells, and a model without validation."""
    rng = np.random.default_rng(5)
    lines = [",".join([*NAMES, "left"])]
    for row in rng.normal(size=(300, len(NAMES))).tolist():
        lines.append(",".join(f"{each:.4f}" for each in row) + f",{rng.choice(['yes', 'no'])}")
    noise = service.upload(client, "\n".join([*lines, ""]))
    model = service.train(client, noise)["output"]["id"]
    assert results(client, model)[:2] == "nu"
    blind = service.train(client, noise, name="blind", validation={"method": "none"})
    told = checks(client, blind["output"]["id"])
    assert answered(told) == "u" * len(CHECKS)
    assert "without validation" in told["probabilities"]["words"]


def with_fewer_negatives(rows: int, seed: int) -> str:
    """A table in which a part of the negatives is left out: each class is as before, but more rows are positive."""
    rng = np.random.default_rng(seed)
    head, *lines = table(rows, seed).splitlines()
    return "\n".join([head, *(x for x in lines if x.endswith("yes") or rng.random() < 0.6), ""])


def test_a_recalibration_handles_the_findings_on_probabilities(
    service: Service, client: httpx.Client
) -> None:
    model = service.train(client, service.upload(client, table(3_000)))["output"]["id"]
    done = client.put("/v1/models/churn/aliases/live", json={"model_id": model})
    assert done.status_code == 201, done.text
    tested = evaluated(service, client, model, with_fewer_negatives(6_000, 5))
    drift = client.get(f"/v1/evaluations/{tested}").json()["drift"]
    assert any(test["changed"] for test in drift["probabilities"])
    assert not any(area["changed"] for area in drift["areas"])
    told = checks(client, model)
    assert told["probabilities"]["answer"] == "no"

    def overview() -> tuple[list[str], dict[str, Any]]:
        found = client.get("/v1/overview?limit=100").json()
        drifted = [x["evaluation_id"] for x in found["drifted"] if x["model_id"] == model]
        (live,) = (each for each in found["live"] if each["model_id"] == model)
        return drifted, live

    drifted, live = overview()
    assert drifted == [tested]
    assert (live["changed"], live["next_step"]) == (True, "recalibrate")
    assert live["recalibrated_at"] is None

    newer = service.upload(client, with_fewer_negatives(6_000, 6), name="for the calibration")
    done = client.put(f"/v1/models/{model}/calibration", json={"dataset_id": newer})
    assert done.status_code == 202, done.text
    service.work()
    told = checks(client, model)
    assert told["probabilities"]["answer"] != "no"
    for name in ("ranking_kept", "stable"):
        assert told[name]["answer"] != "no"
        assert based_on(told[name]) == tested
    drifted, live = overview()
    assert drifted == []
    assert (live["changed"], live["next_step"]) == (False, "evaluate")
    assert live["recalibrated_at"] is not None
    # The evaluation itself stays as it was.
    assert client.get(f"/v1/evaluations/{tested}").json()["drift"] == drift

    def restore(version: int, now: int) -> None:
        answer = client.post(
            f"/v1/models/{model}/calibration/restore",
            json={"version": version},
            headers={"If-Match": f'"{now}"'},
        )
        assert answer.status_code == 200

    for version, now, is_tested in ((1, 2, True), (2, 3, False), (3, 4, True), (4, 5, False)):
        restore(version, now)
        probabilities = checks(client, model)["probabilities"]
        assert (based_on(probabilities) == tested) is is_tested
        assert (probabilities["answer"] == "no") is is_tested
        drifted, live = overview()
        assert drifted == ([tested] if is_tested else [])
        assert live["next_step"] == ("recalibrate" if is_tested else "evaluate")
        assert (live["recalibrated_at"] is None) is is_tested

    evaluated(service, client, model, with_fewer_negatives(6_000, 7))
    _, live = overview()
    assert live["recalibrated_at"] is None
    assert live["next_step"] != "recalibrate"


@long_form
def test_few_new_rows_do_not_show_that_a_model_is_stable(
    service: Service, client: httpx.Client
) -> None:
    """Twenty-four rows of which half have labels that the features do not tell, and as many without a change."""
    model = service.train(client, service.upload(client, table(2_000)))["output"]["id"]
    for differ in (True, False):
        evaluated(service, client, model, of_regions(24, 7, differ=differ))
        told = checks(client, model)
        for name in ("ranking_kept", "stable", "probabilities"):
            assert told[name]["answer"] != "yes"
        if told["ranking_kept"]["answer"] == "unknown":
            more = told["ranking_kept"]["more_rows"]
            assert more is None or more > 24


def test_a_baseline_is_not_easier_to_explain_than_a_scorecard(
    service: Service, client: httpx.Client
) -> None:
    dataset = service.upload(client, table(600))
    words = {}
    for name, algorithm in {
        "card": {"name": "scorecard"},
        "curves": {"name": "additive", "n_pairs": 0, "max_rounds": 20},
        "trees": {"name": "logitboost", "n_rounds": 5},
    }.items():
        job = service.train(client, dataset, name=name, algorithm=algorithm, baselines=True)
        check = checks(client, job["output"]["id"])["beats_baselines"]
        assert check["answer"] == "no"  # the classes differ by a linear score
        words[name] = check["words"]
    assert [name for name, each in words.items() if "easier to explain" in each] == ["trees"]
    for each in words.values():
        assert "over the baseline" in each or "significantly better than" in each


@long_form
def test_a_recalibration_makes_earlier_evaluations_tell_nothing_of_probabilities(
    service: Service, client: httpx.Client
) -> None:
    model = service.train(client, service.upload(client, table(400)))["output"]["id"]
    first = evaluated(service, client, model, of_regions(600, 2, differ=True))
    told = checks(client, model)["probabilities"]
    assert (told["answer"], based_on(told)) == ("no", first)
    newer = service.upload(client, of_regions(6_000, 3, differ=True), name="for the calibration")
    answer = client.put(f"/v1/models/{model}/calibration", json={"dataset_id": newer})
    assert answer.status_code == 202, answer.text
    service.work()
    told = checks(client, model)["probabilities"]
    assert (told["answer"], based_on(told)) == ("yes", None)
    again = evaluated(service, client, model, of_regions(6_000, 4, differ=True))
    told = checks(client, model)["probabilities"]
    assert (told["answer"], based_on(told)) == ("yes", again)
