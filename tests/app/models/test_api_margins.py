"""Bounds and margins over HTTP."""

from __future__ import annotations

import httpx
import pytest

from core.bounds import bound_partial_auc
from tests.app.live_service import Service, table
from tests.app.refusals import refused

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


def test_rows_that_come_in_groups_have_no_bound(small: Service, client: httpx.Client) -> None:
    head, *lines = table(400).splitlines()
    grouped = "\n".join([f"{head},who", *(f"{line},{k // 4}" for k, line in enumerate(lines))])
    job = small.train(client, small.upload(client, grouped, group="who"), algorithm=LINEAR)
    for bound in client.get(f"/v1/models/{job['output']['id']}/bounds").json()["bounds"]:
        assert (bound["value"], bound["epsilon"], bound["applies"]) == (None, None, False)
        assert len(bound["reasons"]) == 1


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
    refused(answer, 404, "no_margins")
