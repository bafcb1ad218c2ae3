"""A model together with its metrics, curve and operating points (`include`), over HTTP."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from app.platform.logging import request_id
from core import metrics
from tests.app.live_service import Service
from tests.app.refusals import refused


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


def test_parts_that_cannot_be_read(reader: httpx.Client, address: str) -> None:
    for query, parameter, said in (
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
    ):
        code = "unknown_parameter" if parameter == "includ" else "invalid"
        problem = refused(reader.get(f"{address}?{query}"), 422, code)
        assert [each["parameter"] for each in problem["errors"]] == [parameter]
        assert said in problem["errors"][0]["detail"]


def test_parts_of_nobody_and_of_others(small: Service, reader: httpx.Client, address: str) -> None:
    stranger = small.client(small.key("somebody-else"))
    for client, path in ((stranger, address), (reader, "/v1/models/none")):
        refused(client.get(f"{path}?include=metrics"), 404, "not_found")
    refused(reader.get(f"{address}?include=operating_point"), 422, "invalid_parameter")
