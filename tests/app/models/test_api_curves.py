"""Bands of a curve, the cut that costs least, and pictures, over HTTP."""

from __future__ import annotations

import csv
import struct
from xml.etree import ElementTree as ET

import httpx
import pytest
import resvg_py

from tests.app.live_service import Service, table
from tests.app.refusals import refused

SVG = "{http://www.w3.org/2000/svg}"


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
        for cut in found["points"][1::7]:
            asked = terms | {"threshold": cut["threshold"]}
            single = reader.get(f"{address}/operating-point", params=asked).json()
            assert cut == {name: single[name] for name in cut}
    cheapest = found["points"][found["least_cost"]]
    single = reader.get(f"{address}/operating-point", params=terms).json()
    assert (cheapest["threshold"], cheapest["cost"]) == (single["threshold"], single["cost"])
    few = reader.get(f"{address}/operating-points", params=terms | {"points": 10}).json()
    assert len(few["points"]) <= 10
    assert not few["exact"]
    assert few["points"][few["least_cost"]] == cheapest


def test_the_cut_of_the_objective_is_among_them(small: Service, dataset_id: str) -> None:
    client = small.client(small.key())
    objective = {"metric": "tpr", "fpr": 0.2}
    job = small.train(client, dataset_id, name="cut", objective=objective)
    address = f"/v1/models/{job['model_id']}"
    chosen = client.get(address).json()["operating_point"]
    for on in ("validation", "train"):
        found = client.get(f"{address}/operating-points?points=10&on={on}").json()
        cut = found["points"][found["of_objective"]]
        there = client.get(f"{address}/metrics?on={on}").json()["operating_point"]
        assert (cut["fpr"], cut["tpr"]) == (there["fpr"], there["tpr"])
        assert found["least_cost"] is None
        if on == "validation":
            assert cut["threshold"] == chosen["threshold"]


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


@pytest.mark.parametrize("kind", ["roc", "pauc"])
def test_pictures_of_one_curve(reader: httpx.Client, address: str, kind: str) -> None:
    metrics = reader.get(f"{address}/metrics").json()
    ask = {"kind": kind, "band": "simultaneous"}
    deprecated = reader.get(f"{address}/plot", params=ask | {"format": "vega"})
    assert deprecated.headers["Deprecation"].startswith("@")
    assert "Sunset" in deprecated.headers
    spec = deprecated.json()
    x = spec["layer"][-2]["encoding"]["x"]
    assert (x["field"], x["scale"]["domain"]) == ("fpr", [0, 1 if kind == "roc" else 0.08])
    line = [(point["fpr"], point["tpr"]) for point in spec["layer"][-2]["data"]["values"]]
    points = reader.get(f"{address}/roc").json()["points"]
    in_view = [
        (point["fpr"], point["tpr"]) for point in points if point["fpr"] <= x["scale"]["domain"][1]
    ]
    assert set(in_view) <= set(line)
    assert line == sorted(line)
    band = spec["layer"][1]["data"]["values"]
    assert all(limit["tpr"] <= limit["high"] for limit in band)
    assert spec["layer"][0]["data"]["values"][0]["fpr_max"] == 0.05

    drawn = reader.get(f"{address}/plot", params=ask)
    assert drawn.headers["Content-Type"] == "image/svg+xml"
    assert drawn.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    svg = ET.fromstring(drawn.content)
    words = "\n".join(text.text or "" for text in svg.iter(f"{SVG}text"))
    assert f"AUC {metrics['auc']['value']:.4f} [" in words
    assert f"partial AUC {metrics['pauc'][0]['value']:.4f} [" in words
    assert "95% confidence band, of the whole curve" in words
    assert len(list(svg.iter(f"{SVG}circle"))) == len(spec["layer"][-1]["data"]["values"]) + 1
    plain = reader.get(f"{address}/plot", params={"kind": kind, "band": "none"}).text
    assert "confidence band" not in plain
    assert "href" not in drawn.text + plain


def test_pixels_are_those_of_the_picture(reader: httpx.Client, address: str) -> None:
    answer = reader.get(f"{address}/plot?format=png&width=300")
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", answer.content[16:24])
    assert (width, height > width) == (300, True)
    # Without a font there would be no words; a picture of the same without any is smaller by far.
    nowhere = resvg_py.svg_to_bytes(
        svg_string=reader.get(f"{address}/plot").text, width=300, skip_system_fonts=True
    )
    assert len(answer.content) > 1.5 * len(nowhere)


def test_what_was_not_judged_has_no_curve(small: Service, dataset_id: str) -> None:
    client = small.client(small.key())
    job = small.train(client, dataset_id, name="unjudged", validation={"method": "none"})
    address = f"/v1/models/{job['model_id']}"
    for question in (
        "roc",
        "operating-point?fpr=0.1",
        "operating-points",
        "plot",
        "plot?kind=pauc&format=vega",
    ):
        refused(client.get(f"{address}/{question}"), 404, "no_curve", "'none'")
    score = client.get(f"{address}/score?age=1&income=2").json()
    assert (score["fpr"], score["tpr"]) == (None, None)


def test_rows_of_a_group_are_drawn_together(small: Service) -> None:
    """The same people, each asked once or three times: what is known of them does not grow by asking again."""
    client = small.client(small.key())
    rows = table(150).splitlines()
    found = []
    for times in (1, 3):
        lines = [f"{rows[0]},person"]
        lines += [f"{row},p{i}" for i, row in enumerate(rows[1:]) for _ in range(times)]
        dataset_id = small.upload(client, "\n".join(lines) + "\n", group="person")
        job = small.train(client, dataset_id, name="people")
        found.append(client.get(f"/v1/models/{job['model_id']}/metrics").json())
    once, thrice = found
    assert thrice["positives"] == 3 * once["positives"]
    assert thrice["auc"] == pytest.approx(once["auc"])
    assert thrice["pauc"][0] == pytest.approx(once["pauc"][0])
    for height, same in zip(thrice["tpr_at_fpr"], once["tpr_at_fpr"], strict=True):
        assert height == pytest.approx(same)
