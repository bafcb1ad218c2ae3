"""Bounds on the partial AUC over HTTP: for linear scores and others, in the window asked for, and what is refused."""

from __future__ import annotations

import httpx
import pytest

from core.bounds import bound_partial_auc
from tests.app.live_service import Service, table
from tests.app.refusals import refused

LINEAR = {"name": "pauc_svm", "C": 1.0}
WINDOW = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.2}

WRONG = {
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


@pytest.fixture(scope="module")
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


@pytest.fixture(scope="module")
def address(small: Service, client: httpx.Client) -> str:
    """Where the bounds of a linear model are."""
    dataset = small.upload(client, table(400))
    job = small.train(client, dataset, algorithm=LINEAR, objective=WINDOW)
    return f"/v1/models/{job['model_id']}/bounds"


def test_bounds_of_a_linear_model(client: httpx.Client, address: str) -> None:
    report = client.get(address).json()
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
        metrics = client.get(address.replace("bounds", f"metrics?on={bound['on']}")).json()
        of_window = [area for area in metrics["pauc"] if area["fpr_max"] == 0.2]
        assert all(bound["risk"] >= 1 - area["value"] - 1e-9 for area in of_window)
    assert learnt["vacuous"]


def test_window_and_delta_are_the_callers(client: httpx.Client, address: str) -> None:
    narrow, wide = (
        client.get(f"{address}?fpr_max={high}&delta=0.5").json() for high in ("0.1", "1")
    )
    assert (narrow["fpr_max"], wide["fpr_max"], wide["delta"]) == (0.1, 1.0, 0.5)
    for close, far in zip(narrow["bounds"], wide["bounds"], strict=True):
        assert close["epsilon"] > far["epsilon"]


def test_where_nothing_is_known_it_says_why(small: Service, client: httpx.Client) -> None:
    dataset = small.upload(client, table(200))
    words = "".join(f"{'red' if k % 3 else 'blue'},{'yes' if k % 2 else 'no'}\n" for k in range(80))
    coloured = small.upload(client, f"colour,left\n{words}")
    for asked, name, reason in (
        (dataset, {"name": "rankboost"}, "no VC dimension is known of what rankboost may learn"),
        (dataset, LINEAR | {"feature_map": "bins"}, "feature_map 'bins' is learnt from the rows"),
        (coloured, LINEAR, "which categories there are follows from the rows: colour"),
    ):
        job = small.train(client, asked, algorithm=name)
        learnt, held_out = client.get(f"/v1/models/{job['model_id']}/bounds").json()["bounds"]
        assert (learnt["value"], learnt["epsilon"], learnt["applies"]) == (None, None, False)
        assert learnt["vacuous"]
        assert learnt["reasons"] == [reason]
        assert held_out["value"] == pytest.approx(held_out["risk"] + held_out["epsilon"])


def test_bad_queries_are_refused_by_name(client: httpx.Client, address: str) -> None:
    for query, parameter in WRONG.items():
        problem = refused(client.get(f"{address}?{query}"), 422, "invalid")
        assert [error["parameter"] for error in problem["errors"]] == [parameter], query
    for query in ("delta=5e-324", "fpr_min=0.5&fpr_max=0.50000001"):
        answer = client.get(f"{address}?{query}")
        assert answer.status_code == 200
        assert all(bound["vacuous"] for bound in answer.json()["bounds"])
