"""Bands of a curve, the cut that costs least, pictures, bounds and margins, over HTTP."""

from __future__ import annotations

import csv
import struct
from functools import partial
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest
import resvg_py
from sqlalchemy import event

from app.platform.logging import request_id
from core import metrics
from core.bounds import bound_partial_auc
from tests.app.live_service import Service, table
from tests.app.refusals import refused

SVG = "{http://www.w3.org/2000/svg}"
LINEAR = {"name": "pauc_svm", "C": 1.0}
WINDOW = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.2}
BOUNDS = ["theorem_2", "corollary_4", "equation_2", "corollary_5", "held_out"]
WRONG_OF_BOUNDS = {
    "fpr_min=1": "fpr_min",
    "fpr_max=0": "fpr_max",
    "fpr_max=nan": "fpr_max",
    "fpr_min=0.3": "fpr_min",  # above the upper end of the window trained for
    "fpr_min=0.1&fpr_max=0.1": "fpr_max",
    "fpr_min=0.1&fpr_max=0.1000000001": "fpr_max",
    "delta=0": "delta",
    "delta=1": "delta",
    "delta=x": "delta",
}
WRONG_OF_MARGINS = {
    **dict.fromkeys(("theta=0", "theta=1e-7", "theta=1.01", "theta=nan", "theta=inf"), "theta"),
    **dict.fromkeys(("delta=0", "delta=1", "delta=-inf", "delta=x"), "delta"),
    **dict.fromkeys(("max_rounds=-1", "max_rounds=100001"), "max_rounds"),
}


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


@pytest.mark.parametrize("share", [0.0, 0.013, 0.2, 1.0])
def test_all_thresholds_are_looked_at_for_a_share_of_the_rows(
    reader: httpx.Client, address: str, share: float
) -> None:
    costs = {"cost_false_positive": 1.0, "cost_false_negative": 2.0}
    for terms in ({}, {"prevalence": 0.1}, costs):
        every = reader.get(f"{address}/operating-points", params=terms | {"points": 1000}).json()
        assert (every["exact"], every["of_flagged"]) == (True, None)
        within = [
            cutoff for cutoff in every["points"] if cutoff["flagged"]["value"] <= share + 1e-12
        ]
        best = (
            min(within, key=lambda cutoff: cutoff["cost"]["value"])
            if terms is costs
            else within[-1]
        )
        asked = terms | {"flagged": share}
        few = reader.get(f"{address}/operating-points", params=asked | {"points": 10}).json()
        assert (few["points"][few["of_flagged"]], few["exact"]) == (best, False)
        alone = reader.get(f"{address}/operating-point", params=asked).json()
        assert best == {name: alone[name] for name in best}


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("operating-point?flagged=1.5", "flagged"),
        ("operating-point?flagged=nan", "flagged"),
        ("operating-points?flagged=-1", "flagged"),
        ("operating-points?flagged=x", "flagged"),
        ("operating-point?flagged=.1&confidence=.9", "flagged"),
        ("operating-point?flagged=.1&fpr=.1", None),
    ],
)
def test_shares_of_the_rows_that_cannot_be(
    reader: httpx.Client, address: str, query: str, parameter: str | None
) -> None:
    answer = reader.get(f"{address}/{query}")
    assert answer.status_code == 422
    if parameter is not None:
        assert [each["parameter"] for each in answer.json()["errors"]] == [parameter]


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


def test_a_model_with_its_parts_in_one_answer(reader: httpx.Client, address: str) -> None:
    alone = reader.get(address).json()
    assert "included" not in alone
    terms = {"cost_false_positive": 1.0, "cost_false_negative": 30.0}
    asked: dict[str, dict[str, Any]] = {
        "metrics": {},
        "roc": {"max_points": 7, "band": "pointwise"},
        "operating-points": {"points": 11, **terms},
        "operating-point": {"fpr": 0.2, **terms},
    }
    for on in ("validation", "train"):
        parts = {
            name.replace("-", "_"): reader.get(f"{address}/{name}", params={"on": on, **query})
            for name, query in asked.items()
        }
        query = {name: value for each in asked.values() for name, value in each.items()}
        for include in (",".join(parts), [*parts]):
            found = reader.get(address, params={"include": include, "on": on, **query})
            expected = {name: part.json() for name, part in parts.items()}
            assert found.json() == {**alone, "included": {**expected, "absent": []}}
    plain = reader.get(address, params={"include": "roc"}).json()["included"]
    assert plain == {"roc": reader.get(f"{address}/roc").json(), "absent": []}


COMPUTED = [
    *("metrics", "roc", "roc?format=csv", "operating-point?fpr=0.1", "operating-points"),
    *("metric-estimates?metric=auc", "gains", "curves/gains", "bounds", "margins", "structure"),
    *("plot", "report", "partial-dependence?feature=age", "variable-dependence?feature=age"),
]


def test_what_is_computed_takes_a_turn(
    small: Service, reader: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.dependencies.COMPUTATION_WAIT_SECONDS", 0.01)
    asked = [*(f"{address}/{part}" for part in COMPUTED), f"{address}?include=roc"]
    with small.computing():
        for path in asked:
            refused(reader.get(path), 429, "too_many_computations")
        assert reader.get(address).status_code == 200
    assert {reader.get(path).status_code for path in asked} == {200}


def test_nothing_is_computed_in_a_transaction(
    small: Service,
    reader: httpx.Client,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    connections: list[int] = []
    pool: Any = small.context.db.engine.pool
    # Other parts of the service, such as its watcher of jobs, take connections at any time: only those of the request
    # that computes are counted. Threads that work for a request have its id.
    holders: dict[int, str | None] = {}
    takers: set[str | None] = set()

    def take(connection: Any, record: Any, proxy: Any) -> None:
        holders[id(record)] = request_id.get()
        takers.add(request_id.get())

    def give_back(connection: Any, record: Any) -> None:
        holders.pop(id(record), None)

    for name, listener in (("checkout", take), ("checkin", give_back)):
        event.listen(pool, name, listener)
        request.addfinalizer(partial(event.remove, pool, name, listener))

    def watch(name: str) -> None:
        compute = getattr(metrics, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            own = request_id.get()
            assert own in takers - {None}  # it has looked the model up
            connections.append(list(holders.values()).count(own))
            return compute(*args, **kwargs)

        monkeypatch.setattr(metrics, name, watched)

    for name in ("operating_point_on_curve", "operating_points_on_curve", "tpr_at_fpr_interval"):
        watch(name)
    include = "metrics,roc,operating_points,operating_point"
    with small.context.db.read() as session:
        session.connection()  # as a busy part of the service holds one
        for path in (
            f"{address}?include={include}&fpr=0.1",
            *(f"{address}/{part}" for part in (*COMPUTED[:5], "plot", "report")),
        ):
            before = len(connections)
            assert reader.get(path).status_code == 200
            if "roc" not in path.rpartition("/")[2]:
                assert len(connections) > before
    assert set(connections) == {0}


def test_a_part_that_a_model_lacks_is_named(small: Service, dataset_id: str) -> None:
    client = small.client(small.key())
    job = small.train(client, dataset_id, name="bare", validation={"method": "none"})
    address = f"/v1/models/{job['output']['id']}"
    alone = client.get(f"{address}/metrics").json()
    included = client.get(f"{address}?include=metrics,roc").json()["included"]
    assert included == {
        "absent": [
            {"part": part, "code": "no_curve", "detail": alone["detail"]}
            for part in ("metrics", "roc")
        ]
    }


@pytest.mark.parametrize(
    ("query", "parameter", "said"),
    [
        ("include=x", "include", "include must be one or more of metrics, roc, "),
        ("include=metrics,,roc", "include", "got ''"),
        ("include=", "include", "got ''"),
        ("include=metrics&include=ROC", "include", "got 'ROC'"),
        ("include=metrics&on=test", "on", "'validation' or 'train'"),
        ("on=train", "on", "on must come with include=metrics or roc or"),
        ("include=metrics,roc&fpr=.1", "fpr", "fpr must come with include=operating_point"),
        ("include=roc&max_points=1", "max_points", "greater than or equal to 2"),
        ("include=operating_points&cost_false_positive=1", "cost_false_negative", "missing"),
        ("include=operating_point&fpr=nan", "fpr", "less than or equal to 1"),
        ("include=roc&includ=metrics", "includ", "did you mean include?"),
    ],
)
def test_parts_that_cannot_be_read(
    reader: httpx.Client, address: str, query: str, parameter: str, said: str
) -> None:
    code = "unknown_parameter" if parameter == "includ" else "invalid"
    problem = refused(reader.get(f"{address}?{query}"), 422, code)
    assert [each["parameter"] for each in problem["errors"]] == [parameter]
    assert said in problem["errors"][0]["detail"]


def test_parts_of_nobody_and_of_others(small: Service, reader: httpx.Client, address: str) -> None:
    stranger = small.client(small.key("somebody-else"))
    for client, path in ((stranger, address), (reader, "/v1/models/none")):
        refused(client.get(f"{path}?include=metrics"), 404, "not_found")
    refused(reader.get(f"{address}?include=operating_point"), 422, "invalid_parameter")


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
    assert "95% confidence band" in words
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


@pytest.fixture(scope="module")
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


@pytest.fixture(scope="module")
def bounds(small: Service, client: httpx.Client) -> str:
    """Return the address of a linear model's bounds."""
    dataset = small.upload(client, table(400))
    job = small.train(client, dataset, algorithm=LINEAR, objective=WINDOW)
    return f"/v1/models/{job['output']['id']}/bounds"


@pytest.fixture(scope="module")
def margins(small: Service, client: httpx.Client) -> str:
    """Return the address of a boosted model's margins."""
    job = small.train(client, small.upload(client, table(400)))
    return f"/v1/models/{job['output']['id']}/margins"


def test_bounds_of_a_linear_model(client: httpx.Client, bounds: str) -> None:
    report = client.get(bounds).json()
    window = report["fpr_min"], report["fpr_max"]
    assert (*window, report["delta"]) == (0.0, 0.2, 0.05)  # the window that it was trained for
    learnt, held_out = report["bounds"]
    assert (learnt["name"], learnt["on"], learnt["applies"]) == ("theorem_9", "train", True)
    assert (held_out["name"], held_out["on"]) == ("held_out", "validation")
    assert learnt["vc_dimension"] == 7  # three columns, and whether each is missing
    assert held_out["vc_dimension"] is None
    for bound in report["bounds"]:
        expected = bound_partial_auc(
            bound["risk"],
            bound["positives"],
            bound["negatives"],
            *window,
            vc_dimension=bound["vc_dimension"],
        )
        assert bound["value"] == pytest.approx(expected.value)
        assert bound["epsilon"] == pytest.approx(expected.epsilon)
        assert bound["vacuous"] == (bound["value"] >= 1)
        # the curve as steps is not above that of the metrics
        metrics = client.get(bounds.replace("bounds", f"metrics?on={bound['on']}")).json()
        of_window = [area for area in metrics["pauc"] if area["fpr_max"] == 0.2]
        assert all(bound["risk"] >= 1 - area["value"] - 1e-9 for area in of_window)
    assert learnt["vacuous"]


def test_window_and_delta_are_the_callers(client: httpx.Client, bounds: str) -> None:
    narrow, wide = (
        client.get(f"{bounds}?fpr_max={high}&delta=0.5").json() for high in ("0.1", "1")
    )
    assert (narrow["fpr_max"], wide["fpr_max"], wide["delta"]) == (0.1, 1.0, 0.5)
    for close, far in zip(narrow["bounds"], wide["bounds"], strict=True):
        assert close["epsilon"] > far["epsilon"]


def test_where_nothing_is_known_it_says_why(small: Service, client: httpx.Client) -> None:
    dataset = small.upload(client, table(200))
    words = "".join(f"{'red' if k % 3 else 'blue'},{'yes' if k % 2 else 'no'}\n" for k in range(80))
    coloured = small.upload(client, f"colour,left\n{words}")
    for asked, name, reason in (
        (
            dataset,
            {"name": "rankboost"},
            "the VC dimension of the scores that rankboost can produce is unknown",
        ),
        (dataset, LINEAR | {"feature_map": "bins"}, "feature_map 'bins' is fitted on the rows"),
        (coloured, LINEAR, "the categories come from the rows: colour"),
    ):
        job = small.train(client, asked, algorithm=name)
        learnt, held_out = client.get(f"/v1/models/{job['output']['id']}/bounds").json()["bounds"]
        assert (learnt["value"], learnt["epsilon"], learnt["applies"]) == (None, None, False)
        assert learnt["vacuous"]
        assert learnt["reasons"] == [reason]
        assert held_out["value"] == pytest.approx(held_out["risk"] + held_out["epsilon"])


def test_bad_queries_are_refused_by_name(client: httpx.Client, bounds: str, margins: str) -> None:
    for address, wrong in ((bounds, WRONG_OF_BOUNDS), (margins, WRONG_OF_MARGINS)):
        for query, parameter in wrong.items():
            problem = refused(client.get(f"{address}?{query}"), 422, "invalid")
            assert [error["parameter"] for error in problem["errors"]] == [parameter], query


def test_the_report_of_margins(client: httpx.Client, margins: str) -> None:
    report = client.get(margins).json()
    assert (report["on"], report["theta"], report["delta"]) == ("train", 0.1, 0.05)
    thetas = [share["theta"] for share in report["distribution"]]
    fractions = [share["fraction"] for share in report["distribution"]]
    assert thetas == sorted(set(thetas))
    assert fractions == sorted(fractions)
    assert (thetas[0], fractions[-1]) == (report["margin"], 1.0)
    assert report["smooth_margin"] < report["margin"]
    assert [bound["name"] for bound in report["bounds"]] == BOUNDS
    for bound in report["bounds"]:
        assert bound["applies"] == (not bound["reasons"])
        if bound["value"] is not None:
            assert bound["value"] == pytest.approx(bound["margin_fraction"] + bound["epsilon"])
            assert bound["vacuous"] == (bound["value"] >= 1)
    losses = report["losses"]
    assert losses["total"] == len(losses["data"]) == report["rounds"]["total"]
    for loss in losses["data"]:
        squares = loss["f"] ** 2 - loss["f_skew"] ** 2
        assert squares == pytest.approx(4 * loss["f_tilde"], rel=1e-6)
    assert losses["data"][-1]["smooth_margin"] == pytest.approx(report["smooth_margin"])
    rounds = report["rounds"]
    assert rounds["total"] == len(rounds["data"])
    assert rounds["holds"] == sum(shown["holds"] for shown in rounds["data"])
    first = rounds["data"][0]
    limit = 2 / 3 * (1 - first["edge"]) * (1 - first["edge"] ** 2)
    assert first["most_tied"] == pytest.approx(limit)
    assert first["holds"] == (first["tied"] < limit)


def test_theta_and_delta_are_the_callers(client: httpx.Client, margins: str) -> None:
    plain = client.get(margins).json()
    asked = client.get(f"{margins}?theta=1&delta=0.5&max_rounds=2").json()
    assert (asked["theta"], asked["delta"]) == (1.0, 0.5)
    assert [shown["round"] for shown in asked["rounds"]["data"]] == [1, 2]
    assert asked["rounds"]["total"] == plain["rounds"]["total"]
    for before, after in zip(plain["bounds"], asked["bounds"], strict=True):
        if before["epsilon"] is not None and after["epsilon"] is not None:
            assert after["epsilon"] < before["epsilon"]


def test_where_eq_2_has_no_value_it_is_null(client: httpx.Client, margins: str) -> None:
    bound = client.get(f"{margins}?theta=0.0001").json()["bounds"][2]
    assert (bound["name"], bound["value"], bound["epsilon"]) == ("equation_2", None, None)
    assert bound["vacuous"]
    assert not bound["applies"]


def test_extremes_have_an_answer(client: httpx.Client, margins: str, bounds: str) -> None:
    for query in ("delta=5e-324", "fpr_min=0.5&fpr_max=0.50000001"):
        answer = client.get(f"{bounds}?{query}")
        assert answer.status_code == 200
        assert all(bound["vacuous"] for bound in answer.json()["bounds"])
    for query in ("theta=1e-6", "delta=1e-308", "theta=1e-6&delta=5e-324"):
        answer = client.get(f"{margins}?{query}")
        assert answer.status_code == 200
        assert all(bound["vacuous"] for bound in answer.json()["bounds"][:4])


def test_a_model_without_margins_says_why(small: Service, client: httpx.Client) -> None:
    dataset_id = small.upload(client, "a,left\n" + "1,no\n1,yes\n" * 20)
    job = small.train(client, dataset_id, validation={"method": "none"})
    answer = client.get(f"/v1/models/{job['output']['id']}/margins")
    refused(answer, 404, "no_margins", "combine weak rankers with values 0 and 1")
