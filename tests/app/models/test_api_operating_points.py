"""Operating points over HTTP: least cost, a fraction of the rows, along the curve, of the objective."""

from __future__ import annotations

import httpx
import pytest

from tests.app.live_service import Service
from tests.long_form import long_form


def test_cuts_along_the_curve_are_the_single_ones(reader: httpx.Client, address: str) -> None:
    for terms in (
        {},
        {"prevalence": 0.02, "cost_false_positive": 1.0, "cost_false_negative": 30.0},
    ):
        found = reader.get(f"{address}/operating-points", params=terms | {"points": 1000}).json()
        curve = reader.get(f"{address}/roc").json()["points"]
        assert found["exact"]
        assert found["total_points"] == len(found["points"]) == len(curve)
        assert (found["level"], found["approximate"], found["of_objective"]) == (0.95, False, None)
        assert found["points"][0]["threshold"] is None
        for cutoff in found["points"][1::7]:
            asked = terms | {"threshold": cutoff["threshold"]}
            single = reader.get(f"{address}/operating-point", params=asked).json()
            assert cutoff == {name: single[name] for name in cutoff}
    cheapest = found["points"][found["least_cost"]]
    single = reader.get(f"{address}/operating-point", params=terms).json()
    assert (cheapest["threshold"], cheapest["cost"]) == (single["threshold"], single["cost"])
    few = reader.get(f"{address}/operating-points", params=terms | {"points": 10}).json()
    assert len(few["points"]) <= 10
    assert not few["exact"]
    assert few["points"][few["least_cost"]] == cheapest


def test_the_best_ks_cutoff_is_that_of_all_thresholds(reader: httpx.Client, address: str) -> None:
    metrics = reader.get(f"{address}/metrics").json()
    curve = reader.get(f"{address}/roc", params={"max_points": 100_000}).json()
    assert curve["exact"]
    best = max(curve["points"], key=lambda point: point["tpr"] - point["fpr"])
    assert metrics["ks"] == best["tpr"] - best["fpr"]
    costs = {"cost_false_positive": 1.0, "cost_false_negative": 7.0}
    asked: tuple[dict[str, float], ...]
    asked = ({}, costs, costs | {"prevalence": 0.01}, {"flagged": 0.013}, {"points": 1000})
    for terms in asked:
        found = reader.get(f"{address}/operating-points", params={"points": 10, **terms}).json()
        cutoff = found["points"][found["of_ks"]]
        assert cutoff["threshold"] == metrics["ks_threshold"]
        assert cutoff["tpr"]["value"] - cutoff["fpr"]["value"] == metrics["ks"]


def test_all_thresholds_are_looked_at_for_a_share_of_the_rows(
    reader: httpx.Client, address: str
) -> None:
    for share in (0.0, 0.013, 0.2, 1.0):
        costs = {"cost_false_positive": 1.0, "cost_false_negative": 2.0}
        for terms in ({}, {"prevalence": 0.1}, costs):
            every = reader.get(
                f"{address}/operating-points", params=terms | {"points": 1000}
            ).json()
            assert (every["exact"], every["of_flagged"]) == (True, None)
            within = [
                cutoff for cutoff in every["points"] if cutoff["flagged"]["value"] <= share + 1e-12
            ]
            best = within[-1]
            if terms is costs:  # the cheapest of all, if it flags fewer
                index = min(len(within) - 1, every["least_cost"])
                best = every["points"][index]
            asked = terms | {"flagged": share}
            few = reader.get(f"{address}/operating-points", params=asked | {"points": 10}).json()
            assert (few["points"][few["of_flagged"]], few["exact"]) == (best, False)
            alone = reader.get(f"{address}/operating-point", params=asked).json()
            assert best == {name: alone[name] for name in best}


def test_shares_of_the_rows_that_cannot_be(reader: httpx.Client, address: str) -> None:
    for query, parameter in (
        ("operating-point?flagged=1.5", "flagged"),
        ("operating-point?flagged=nan", "flagged"),
        ("operating-points?flagged=-1", "flagged"),
        ("operating-points?flagged=x", "flagged"),
        ("operating-point?flagged=.1&confidence=.9", "flagged"),
        ("operating-point?flagged=.1&fpr=.1", None),
    ):
        answer = reader.get(f"{address}/{query}")
        assert answer.status_code == 422
        if parameter is not None:
            assert [each["parameter"] for each in answer.json()["errors"]] == [parameter]


def test_the_best_cutoff_in_a_window_of_false_positive_rates_is_among_them(
    small: Service, dataset_id: str
) -> None:
    client = small.client(small.key())
    objective = {"metric": "pauc", "fpr_max": 0.15}
    job = small.train(client, dataset_id, name="window", objective=objective)
    address = f"/v1/models/{job['output']['id']}"
    best = client.get(f"{address}/operating-point?fpr=0.15").json()
    for points in (10, 1000):
        found = client.get(f"{address}/operating-points?points={points}").json()
        assert found["points"][found["of_objective"]]["threshold"] == best["threshold"]


@long_form
def test_the_cut_of_the_objective_is_among_them(small: Service, dataset_id: str) -> None:
    client = small.client(small.key())
    objective = {"metric": "tpr", "fpr": 0.2}
    job = small.train(client, dataset_id, name="cutoff", objective=objective)
    address = f"/v1/models/{job['output']['id']}"
    chosen = client.get(address).json()["operating_point"]
    for on in ("validation", "train"):
        found = client.get(f"{address}/operating-points?points=10&on={on}").json()
        cutoff = found["points"][found["of_objective"]]
        there = client.get(f"{address}/metrics?on={on}").json()["operating_point"]
        assert (cutoff["fpr"], cutoff["tpr"]) == (there["fpr"], there["tpr"])
        assert found["least_cost"] is None
        assert found["of_aliases"] == {}
        if on == "validation":
            assert cutoff["threshold"] == chosen["threshold"]
    # So are the cuts of its aliases, however few points there are; a threshold between two points is at the one that
    # flags the same rows.
    whole = client.get(f"{address}/operating-points?points=1000").json()["points"]
    middle = (whole[7]["threshold"] + whole[8]["threshold"]) / 2
    guarantees = {
        "half": {"threshold": middle},
        "live": {"tpr": 0.7},
        "none": {"fpr": 0.0, "confidence": 0.5},
        "silent": None,
    }
    kept = {}
    for alias, guarantee in guarantees.items():
        body = {"model_id": job["output"]["id"], "guarantee": guarantee}
        answer = client.put(f"/v1/models/cutoff/aliases/{alias}", json=body)
        if answer.is_success:
            kept[alias] = answer.json()["cutoff"]
    found = client.get(f"{address}/operating-points?points=12").json()
    assert set(found["of_aliases"]) == {name for name, cutoff in kept.items() if cutoff is not None}
    assert len(found["points"]) <= 12
    for alias, index in found["of_aliases"].items():
        cutoff = found["points"][index]
        assert (cutoff["fpr"]["value"], cutoff["tpr"]["value"]) == (
            kept[alias]["fpr"],
            kept[alias]["tpr"],
        )
    assert found["points"][found["of_aliases"]["half"]]["threshold"] == whole[7]["threshold"]


@long_form
def test_the_cut_that_costs_least(reader: httpx.Client, address: str) -> None:
    asked = {"cost_false_positive": 1.0, "cost_false_negative": 30.0, "prevalence": 0.02}
    best = reader.get(f"{address}/operating-point", params=asked).json()
    cost = best["cost"]
    flagged, missed = 0.98 * best["fpr"]["value"], 0.6 * (1 - best["tpr"]["value"])
    assert cost["value"] == pytest.approx(flagged + missed)
    assert cost["low"] < cost["value"] < cost["high"]
    assert cost["value"] < min(cost["flag_none"], cost["flag_all"])
    assert (cost["flag_none"], cost["flag_all"]) == pytest.approx((0.6, 0.98))
    assert best["prevalence"] == 0.02
    assert best["lift"]["value"] == pytest.approx(best["precision"]["value"] / 0.02)
    for point in reader.get(f"{address}/roc").json()["points"]:
        other = 0.98 * point["fpr"] + 0.6 * (1 - point["tpr"])
        assert other >= cost["value"] - 1e-12
    other = reader.get(f"{address}/operating-point", params=asked | {"tpr": 1.0}).json()
    assert other["cost"]["value"] == pytest.approx(0.98 * other["fpr"]["value"])
    assert other["fpr_at_tpr"]["low"] <= other["fpr_at_tpr"]["value"]
    assert other["tpr_at_fpr"] is None
