"""Evaluations and comparisons over HTTP: asked for, waited for, replayed, listed, refused, deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from app.evaluation import schemas
from tests.app.live_service import Service, table
from tests.app.refusals import everything, refused
from tests.long_form import long_form, rest
from tests.sentences import Sentences


@dataclass
class World:
    """Two models of one table, and a table that neither has seen."""

    service: Service
    client: httpx.Client
    old: str
    new: str

    def ask(self, kind: str, body: dict[str, Any], at: str = "", **more: Any) -> httpx.Response:
        """POST an evaluation or a comparison of what the world has, with these changes."""
        base: dict[str, dict[str, Any]] = {
            "evaluations": {"model": "churn"},
            "comparisons": {"models": ["churn", "plain"]},
        }
        asked = base[kind] | {"dataset_id": self.new} | body
        return self.client.post(f"/v1/{kind}{at}", json=asked, **more)

    def made(self, kind: str, **body: Any) -> dict[str, Any]:
        """The same, done."""
        answer = self.ask(kind, body)
        assert answer.status_code == 202, answer.text
        assert self.service.work() == 1
        found: dict[str, Any] = self.client.get(answer.headers["Location"]).json()
        return found


@pytest.fixture(scope="module")
def shared_world(start: Callable[..., Service]) -> World:
    service = start()
    client = service.client(service.key())
    old, new = service.upload(client), service.upload(client, table(200, 1), name="new")
    service.train(client, old)
    service.train(client, old, name="plain", algorithm={"name": "logistic"})
    return World(service, client, old, new)


@pytest.fixture
def world(shared_world: World) -> World:
    """The world of all tests, with nothing queued."""
    shared_world.service.work()
    return shared_world


def test_an_evaluation(world: World) -> None:
    answer = world.ask("evaluations", {"windows": [{"fpr_max": 0.1}], "level": 0.9})
    assert answer.status_code == 202
    accepted = answer.json()
    assert answer.headers["Location"] == f"/v1/evaluations/{accepted['id']}"
    assert (accepted["status"], accepted["metrics"], accepted["drift"]) == (
        "processing",
        None,
        None,
    )
    roc = f"/v1/evaluations/{accepted['id']}/roc"
    refused(world.client.get(roc), 404, "no_curve", accepted["job_id"])
    job = world.client.get(f"/v1/jobs/{accepted['job_id']}").json()
    assert (job["kind"], job["dataset_id"]) == ("evaluate", world.new)
    assert job["output"] == {"kind": "evaluation", "id": accepted["id"]}
    world.service.work()
    found = world.client.get(answer.headers["Location"]).json()
    assert found["status"] == "ready"
    assert found["windows"] == [{"fpr_min": 0.0, "fpr_max": 0.1}]
    auc = found["metrics"]["auc"]
    assert 0.5 < auc["low"] < auc["value"] < auc["high"] < 1
    assert [area["of"] for area in found["drift"]["areas"]] == ["auc", "pauc"]
    shown = world.client.get(roc, params={"max_points": 5, "band": "pointwise"}).json()
    assert shown["evaluation_id"] == found["id"]
    assert (len(shown["points"]), shown["exact"]) == (5, False)
    assert shown["band"] == {"kind": "pointwise", "level": 0.9}
    csv = world.client.get(roc, params={"format": "csv"})
    assert csv.text.splitlines()[:2] == ["fpr,tpr,threshold", "0.0,0.0,"]
    assert len(csv.text.splitlines()) == shown["total_points"] + 1


def test_a_comparison(world: World) -> None:
    found = world.made("comparisons", windows=[{"fpr_max": 1}, {"fpr_min": 0.1, "fpr_max": 0.5}])
    assert (found["status"], found["warnings"]) == ("ready", [])
    assert [model["name"] for model in found["models"]] == ["churn", "plain"]
    result = found["result"]
    assert result["n_tests"] == 2
    assert 0 <= result["p_value"] <= 1
    for window in result["windows"]:
        (difference,) = window["differences"]
        first, second = (value["value"] for value in window["values"])
        assert difference["value"] == pytest.approx(first - second)
        assert difference["p_value"] <= difference["adjusted_p_value"] <= 1
        better = difference["first"] if difference["value"] > 0 else difference["second"]
        is_sure = difference["adjusted_p_value"] <= 0.05
        assert window["winner"] == (better if is_sure else None)


def test_the_winner_is_surely_better_than_every_other_model() -> None:
    for p_values, winner in (
        ((0.01, 0.02, 0.9), "a"),
        ((0.01, 0.06, 0.9), None),
        ((0.01, 0.05, 0.01), "a"),
    ):
        areas = {"a": 0.9, "b": 0.8, "c": 0.7}
        pairs = [("b", "a"), ("a", "c"), ("b", "c")]
        window = schemas.ComparedWindow(
            fpr_min=0.0,
            fpr_max=1.0,
            values=[],
            p_value=0.5,
            differences=[
                schemas.ComparedPair(
                    first=first,
                    second=second,
                    value=areas[first] - areas[second],
                    low=-1.0,
                    high=1.0,
                    p_value=p_value,
                    adjusted_p_value=p_value,
                )
                for (first, second), p_value in zip(pairs, p_values, strict=True)
            ],
        )
        assert window.winner == winner


@long_form
def test_a_comparison_keeps_the_curves_on_its_rows(world: World) -> None:
    found = world.made("comparisons")
    curves = found["result"]["curves"]
    assert [curve["model_id"] for curve in curves] == [each["model_id"] for each in found["models"]]
    for curve in curves:
        evaluated = world.made("evaluations", model=curve["model_id"])
        asked = {"max_points": 100}
        roc = world.client.get(f"/v1/evaluations/{evaluated['id']}/roc", params=asked).json()
        assert len(curve["points"]) <= 100
        assert curve["points"] == [
            {name: one[name] for name in ("fpr", "tpr")} for one in roc["points"]
        ]
    assert roc["total_points"] > 100  # of the second model, whose scores all differ
    listed = world.client.get("/v1/comparisons", params={"limit": 1}).json()["data"]
    assert [(each["id"], each["result"]["curves"]) for each in listed] == [(found["id"], [])]
    assert listed[0]["result"] == found["result"] | {"curves": []}


def test_what_a_model_has_seen_of_the_rows_is_told(world: World) -> None:
    """By training, by validation, by equal rows under another name, or not at all."""
    service, client = world.service, world.client
    copied = table(200, 1).splitlines()[:100] + table(120, 0).splitlines()[1:]
    mixed = service.upload(client, "\n".join([*copied, ""]), name="copied")
    again = service.upload(client, name="old under another name")
    validation = {"method": "dataset", "dataset_id": world.new}
    evaluated = service.train(client, world.old, name="evaluated", validation=validation)["output"][
        "id"
    ]
    for model, dataset_id, seen in (
        ("churn", world.new, "new"),
        ("churn", again, "trained"),
        ("churn", mixed, "overlaps"),
        (evaluated, world.new, "validated"),
    ):
        asked = world.ask("evaluations", {"model": model, "dataset_id": dataset_id}).json()
        # Whether rows are equal is known once they have been read.
        early = seen if seen in ("trained", "validated") else None
        assert (asked["status"], asked["seen"]) == ("processing", early)
        service.work()
        found = client.get(f"/v1/evaluations/{asked['id']}").json()
        of_seen = [each for each in found["warnings"] if "may be too narrow" not in each]
        assert (found["seen"], bool(of_seen)) == (seen, seen != "new")
        compared = world.made("comparisons", models=[model, "plain"], dataset_id=dataset_id)
        assert compared["models"][0]["seen"] == seen


def test_what_is_not_known_of_the_rows_is_not_called_new(world: World) -> None:
    """The training table is gone."""
    service, client = world.service, world.client
    gone = service.upload(client, table(120, 9), name="gone")
    model = service.train(client, gone, name="orphan")["output"]["id"]
    assert client.delete(f"/v1/datasets/{gone}").status_code == 204
    assert world.made("evaluations", model=model)["seen"] is None
    compared = world.made("comparisons", models=[model, "plain"])
    assert [each["seen"] for each in compared["models"]] == [None, "new"]


@pytest.mark.parametrize("kind", ["evaluations", "comparisons"])
class TestBothKinds:
    """Create, read, list and delete, as a client does with both kinds."""

    def test_only_checked(self, world: World, kind: str) -> None:
        before = everything(world.service)
        with world.service.context.db.write():  # SQLite's only writer: a look waits for none
            answer = world.ask(kind, {}, "/validate")
        assert (answer.status_code, answer.json()) == (200, {"valid": True})
        bad = world.ask(kind, {"dataset_id": "ds_0"}, "/validate")
        refused(bad, 404, "not_found", "/dataset_id")
        assert everything(world.service) == before

    def test_listing(self, world: World, kind: str) -> None:
        made = world.made(kind)["id"]
        model = world.client.get("/v1/models/churn").json()["id"]
        for filters, some in (
            ({"model_id": model, "dataset_id": world.new}, True),
            ({"model_id": "mdl_" + "0" * 32}, False),
            ({"dataset_id": world.old}, False),
        ):
            listed = world.client.get(f"/v1/{kind}", params=filters).json()["data"]
            assert (made in [entry["id"] for entry in listed]) == some
            assert bool(listed) == some
        refused(world.client.get(f"/v1/{kind}?model_id=churn"), 422, "invalid", "mdl_", "churn")

    def test_deleting(self, world: World, kind: str) -> None:
        answer = world.ask(kind, {})
        path = answer.headers["Location"]
        refused(
            world.client.delete(path),
            409,
            f"{kind[:-1]}_in_use",
            answer.json()["job_id"],
        )
        world.client.post(f"/v1/jobs/{answer.json()['job_id']}/cancel")
        assert world.client.get(path).json()["status"] == "cancelled"
        assert world.client.delete(path).status_code == 204
        refused(world.client.delete(path), 404, "not_found")
        refused(world.client.get(f"/v1/{kind}/none"), 404, "not_found")

    def test_bad_requests(self, world: World, kind: str) -> None:
        for body, pointer, *named in (
            ({"windows": []}, "/windows", 1),
            ({"windows": [{"fpr_max": 0.01 * k} for k in range(1, 12)]}, "/windows", 10),
            ({"windows": [{"fpr_min": 0.5, "fpr_max": 0.5}]}, "/windows/0/fpr_max", 0.5),
            ({"windows": [{"fpr_min": 0.1}]}, "/windows/0/fpr_max"),
            ({"windows": [{"fpr_max": 1.5}]}, "/windows/0/fpr_max", 1),
            ({"windows": [{"fpr_max": 0.1}] * 2}, "/windows/1", "[0, 0.1]"),
            ({"windows": "all"}, "/windows"),
            ({"level": 0.4}, "/level", 0.5),
            ({"level": 1}, "/level", 0.999),
            ({"level": "0.9"}, "/level", "'0.9'"),
            ({"dataset": "x"}, "/dataset"),
            ({"dataset_id": "\x00"}, "/dataset_id"),
        ):
            problem = refused(world.ask(kind, body), 422, "invalid", *named)
            assert problem["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("kind", ["evaluations", *rest("comparisons")])
def test_waiting(world: World, kind: str) -> None:
    with world.service.at_work():
        answer = world.ask(kind, {}, headers={"Prefer": "wait=60"})
    assert (answer.status_code, answer.json()["status"]) == (201, "ready")
    assert answer.headers["Preference-Applied"] == "wait=60"


@pytest.mark.parametrize("kind", ["evaluations", *rest("comparisons")])
def test_the_same_key_makes_one(world: World, kind: str) -> None:
    headers = {"Idempotency-Key": f"nightly-{kind}"}
    first, again = (world.ask(kind, {}, headers=headers) for _ in range(2))
    assert first.json() == again.json()
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert world.service.work() == 1
    other = world.ask(kind, {"level": 0.8}, headers=headers)
    refused(other, 422, "idempotency_key_reused")


@pytest.mark.parametrize("kind", ["evaluations", *rest("comparisons")])
def test_datasets_that_do_not_fit(world: World, kind: str) -> None:
    upload = world.service.upload
    lines = table(40, 2).splitlines()
    narrow = "\n".join(",".join(line.split(",")[1:]) for line in lines)
    other = "\n".join(line.replace(",yes", ",si") for line in lines)
    for text, given, code, *named in (
        (narrow, {}, "unknown_column", "churn:1", 1, "'age'"),
        (other, {"positive": "si"}, "label_mismatch", "'si'"),
        ("\n".join(lines), {"categorical": "age"}, "unknown_column", "'age'"),
    ):
        dataset_id = upload(world.client, text, **given)
        problem = refused(world.ask(kind, {"dataset_id": dataset_id}), 422, code, *named)
        assert problem["errors"][0]["pointer"] == "/dataset_id"
    several = world.client.post(
        "/v1/datasets?kind=multilabel&labels=a,b",
        content="a,b,c\n" + "1,0,3\n0,1,4\n" * 20,
        headers={"Content-Type": "text/csv"},
    ).json()["id"]
    answer = world.ask(kind, {"dataset_id": several})
    refused(answer, 409, "dataset_not_ready")
    world.service.work()
    answer = world.ask(kind, {"dataset_id": several})
    refused(answer, 422, "wrong_kind", "bipartite")
    one = [lines[0], *(f"{i},1,1,{'no' if i else 'yes'}" for i in range(30))]
    failed = world.made(kind, dataset_id=upload(world.client, "\n".join(one)))
    assert failed["status"] == "failed"
    assert failed["error"]["code"] == "too_few_rows"


def test_a_figure_of_more_rows_than_there_are(world: World) -> None:
    answer = world.ask("comparisons", {"metrics": ["precision@200", "precision@201"]})
    problem = refused(answer, 422, "invalid_parameter", "needs 201 rows", "has 200")
    assert problem["errors"][0]["pointer"] == "/metrics/1"
    found = world.made("comparisons", metrics=["precision@200"])
    assert found["status"] == "ready", found["error"]


def test_a_comparison_at_a_review_capacity(world: World) -> None:
    """It counts positives, and does not change what the other metrics say."""
    alone = world.made("comparisons", metrics=["precision@15%", "average_precision"])
    made = world.made(
        "comparisons",
        metrics=["precision@15%", "average_precision"],
        capacity={"review": 3, "rows": 20},
    )
    assert (alone["capacity"], alone["result"]["capacity"]) == (None, None)
    assert made["capacity"] == {"review": 3, "rows": 20}
    assert made["result"]["metrics"] == alone["result"]["metrics"]
    found, precision = made["result"]["capacity"], alone["result"]["metrics"][0]
    assert found["metric"] == precision["metric"]
    for kind in ("values", "differences"):
        for count, share in zip(found[kind], precision[kind], strict=True):
            for name in ("value", "low", "high"):
                assert count[name] == pytest.approx(3 * share[name])
    # One test here, two there.
    pair, with_more = found["differences"][0], precision["differences"][0]
    assert pair["adjusted_p_value"] == pair["p_value"] == with_more["p_value"]
    listed = world.client.get("/v1/comparisons", params={"limit": 1}).json()["data"]
    assert listed[0]["capacity"] == made["capacity"]


def test_bad_capacities(world: World, sentences: Sentences) -> None:
    for capacity, pointer in (
        ({"review": 30}, "/capacity/rows"),
        ({"review": 0, "rows": 9}, "/capacity/review"),
        ({"review": 3, "rows": 2}, "/capacity"),
        ({"review": 1.5, "rows": 9}, "/capacity/review"),
        ({"review": "x", "rows": 9}, "/capacity/review"),
        ({"review": 1, "rows": 10**13}, "/capacity/rows"),
        ({"review": 1, "rows": 2, "days": 3}, "/capacity/days"),
        (7, "/capacity"),
    ):
        problem = refused(world.ask("comparisons", {"capacity": capacity}), 422, "invalid")
        assert [each["pointer"] for each in problem["errors"]] == [pointer]
        sentences(problem["errors"][0])


def test_bad_models(world: World) -> None:
    for kind, body, status, pointer, *named in (
        ("evaluations", {"model": "nobody"}, 404, "/model", "'nobody'"),
        ("evaluations", {"model": "a\x00"}, 422, "/model"),
        ("evaluations", {"model": ["churn"]}, 422, "/model"),
        ("comparisons", {"models": ["churn", "mdl_0"]}, 404, "/models/1", "'mdl_0'"),
        ("comparisons", {"models": ["churn"]}, 422, "/models", 2, 1),
        ("comparisons", {"models": ["churn"] * 21}, 422, "/models", 20),
        ("comparisons", {"models": ["churn", "churn:1"]}, 422, "/models/1", "churn:1"),
    ):
        code = "not_found" if status == 404 else "invalid"
        problem = refused(world.ask(kind, body), status, code, *named)
        assert problem["errors"][0]["pointer"] == pointer


def test_what_fits_is_told_before_a_job(world: World, sentences: Sentences) -> None:
    service, client = world.service, world.client
    unlike = service.upload(client, "age,left\n" + "1,a\n2,b\n" * 40, name="unlike", positive="a")
    other_label = service.upload(
        client, table().replace("yes", "on").replace("no\n", "off\n"), positive="on"
    )
    ids = [world.new, unlike, other_label]

    def told(**query: Any) -> list[tuple[str, bool, str | None]]:
        answer = client.get("/v1/fits", params={"model": "churn", "dataset_id": ids} | query)
        assert answer.status_code == 200, answer.text
        return [
            (each["dataset_id"], each["fits"], each["reason"]) for each in answer.json()["data"]
        ]

    for use in ("evaluation", "comparison"):
        (fits, features, labels) = told(use=use)
        assert fits == (world.new, True, None)
        assert features[:2] == (unlike, False)
        assert "lacks" in str(features[2])
        assert labels[:2] == (other_label, False)
        sentences(labels[2])
        # The same as the job's own check says.
        for dataset_id, fit, reason in (features, labels):
            answer = world.ask("evaluations", {"dataset_id": dataset_id})
            assert (answer.status_code, fit) == (422, False)
            assert str(reason) in answer.json()["detail"]
    assert [each[1] for each in told(use="scoring")] == [True, False, True]
    seen = client.get("/v1/models/churn").json()["dataset_id"]
    (new, old) = told(use="calibration", dataset_id=[world.new, seen])
    assert (new[1], old[1]) == (True, False)
    sentences(old[2])
    assert [each[0] for each in told(model=["churn", "plain"])] == [
        each for each in ids for _ in range(2)
    ]

    unread = client.post("/v1/datasets", content=table(), headers={"Content-Type": "text/csv"})
    (_, fit, reason) = told(dataset_id=unread.json()["id"])[0]
    assert not fit
    sentences(reason)
    many: tuple[tuple[dict[str, Any], str], ...] = (
        ({"model": ["churn"] * 201}, "model"),
        ({"dataset_id": ids * 67}, "dataset_id"),
    )
    for query, parameter in many:
        answer = client.get("/v1/fits", params={"model": "churn", "dataset_id": ids} | query)
        assert [each["parameter"] for each in answer.json()["errors"]] == [parameter]

    refused: tuple[tuple[dict[str, Any], int, str], ...] = (
        ({"model": "nobody"}, 404, "nobody"),
        ({"dataset_id": "ds_x"}, 404, "ds_x"),
        ({"use": "fun"}, 422, "use"),
        ({"model": []}, 422, "model"),
        ({"dataset_id": []}, 422, "dataset_id"),
        ({"model": ["churn"] * 201}, 422, "200"),
    )
    for query, status, words in refused:
        answer = client.get("/v1/fits", params={"model": "churn", "dataset_id": ids} | query)
        assert (answer.status_code, words in answer.text) == (status, True), query
        if status == 404:
            assert [each["parameter"] for each in answer.json()["errors"]] == [*query]
