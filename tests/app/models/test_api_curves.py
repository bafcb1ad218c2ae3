"""Bands of a curve, and pictures, over HTTP."""

from __future__ import annotations

import struct
from xml.etree import ElementTree as ET

import httpx
import pytest
import resvg_py

from tests.app.live_service import Service, table
from tests.app.refusals import refused

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("kind", ["roc", "pauc"])
def test_pictures_of_one_curve(reader: httpx.Client, address: str, kind: str) -> None:
    metrics = reader.get(f"{address}/metrics").json()
    ask = {"kind": kind, "band": "simultaneous"}
    assert reader.get("/v1/models/none/plot").status_code == 404
    for given in ({"width": 10000}, {"format": "vega"}):
        assert reader.get(f"{address}/plot", params=given).status_code == 422
    drawn = reader.get(f"{address}/plot", params=ask)
    assert drawn.headers["Content-Type"] == "image/svg+xml"
    assert drawn.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    svg = ET.fromstring(drawn.content)
    words = "\n".join(text.text or "" for text in svg.iter(f"{SVG}text"))
    assert f"AUC {metrics['auc']['value']:.4f} [" in words
    assert f"partial AUC {metrics['pauc'][0]['value']:.4f} [" in words
    assert "95 % confidence band" in words
    in_view = 3 if kind == "roc" else 2  # the best cuts at FPR 0.01, 0.05 and 0.1
    assert len(list(svg.iter(f"{SVG}circle"))) == in_view + 1
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
    address = f"/v1/models/{job['output']['id']}"
    for question in (
        "roc",
        "operating-point?fpr=0.1",
        "operating-points",
        "plot",
        "plot?kind=pauc&format=png",
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
        found.append(client.get(f"/v1/models/{job['output']['id']}/metrics").json())
    once, thrice = found
    assert thrice["positives"] == 3 * once["positives"]
    assert thrice["auc"] == pytest.approx(once["auc"])
    assert thrice["pauc"][0] == pytest.approx(once["pauc"][0])
    for height, same in zip(thrice["tpr_at_fpr"], once["tpr_at_fpr"], strict=True):
        assert height == pytest.approx(same)
