"""Bands of a curve, and the cut that costs least, over HTTP."""

from __future__ import annotations

import csv

import httpx
import pytest
from live_service import Service


@pytest.fixture(scope="module")
def address(small: Service, model_id: str) -> str:
    return f"/v1/models/{model_id}"


@pytest.fixture(scope="module")
def reader(small: Service) -> httpx.Client:
    return small.client(small.key(scopes=["read"]))


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


def test_bands(reader: httpx.Client, address: str) -> None:
    assert "band" not in reader.get(f"{address}/roc").json()
    narrow, wide = (
        reader.get(f"{address}/roc", params={"band": kind}).json()
        for kind in ("pointwise", "simultaneous")
    )
    assert narrow["band"] == {"kind": "pointwise", "level": 0.95}
    assert wide["band"] == {"kind": "simultaneous", "level": 0.95}
    for inner, outer in zip(narrow["points"], wide["points"], strict=True):
        assert 0.0 <= inner["low"] <= inner["high"] <= 1.0
        assert inner["low"] <= inner["tpr"] or inner["fpr"] == 0.0
        assert outer["high"] >= inner["tpr"]
        assert outer["low"] <= inner["tpr"] or inner["fpr"] == 0.0
    text = reader.get(f"{address}/roc?band=pointwise&format=csv").text
    rows = list(csv.DictReader(text.splitlines()))
    assert [float(row["low"]) for row in rows] == [point["low"] for point in narrow["points"]]
    assert rows[0]["threshold"] == ""
