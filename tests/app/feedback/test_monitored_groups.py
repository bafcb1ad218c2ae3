"""Selection rates and the calibration of the groups of protected columns, tested at the end of each period."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pytest

from app.feedback.monitor_schemas import scheduled_test_of
from app.feedback.scheduled_tests import TESTED, MonitorPlan, alpha_of
from app.platform.documents import MonitoredGroups, MonitorSettings
from app.platform.tables import MonitorTest
from tests.app.feedback.recording import FEEDBACK, UNDER, point, record, recorded, segments
from tests.app.feedback.simulator import DAY, MONDAY, WEEK, Simulator, draw, feedback, table
from tests.app.feedback.test_monitor import alarms, made_tests, run_monitor
from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.app.score_formats import FEATURES, answering, bodies
from tests.app.score_formats import draw as draw_rows
from tests.app.score_formats import headers as headers_of
from tests.app.workbench import OWNER, Workbench
from tests.raising import mentions

GROUPS: MonitoredGroups = {"columns": {"sex": ["m", "f", "x"]}, "favourable": "not_flagged"}
MONITOR: MonitorSettings = {"period": "week", "alpha": 0.05, "tolerance": {}}


@pytest.fixture
def simulator(bench: Workbench) -> Simulator:
    """An alias of a calibrated model that flags 30 % of the rows."""
    text = table(draw(np.random.default_rng(1), 4000))
    job = bench.work_on(
        bench.ready(text, label="y", positive="1", name="m"),
        name="m",
        algorithm={"name": "rankboost", "n_rounds": 5},
        validation={"method": "holdout", "fraction": 0.5},
    )
    assert job.state == "succeeded", job.error
    from app.models import aliases

    bench.db.writing(aliases.set_alias, OWNER, "m", "live", job.model_id, if_revision=None)
    return Simulator(bench.db, bench.blobs, OWNER, "m", flag_share=0.3)


def week(simulator: Simulator, number: int, *, gap: float = 0.0, extra: float = 0.0) -> None:
    """Record 2,000 decisions: those of f have an `a` higher by `gap`, and more positives than predicted by `extra`."""
    rows = draw(simulator.rng, 2000)
    is_f = simulator.rng.random(2000) < 0.4
    rows.a[is_f] += gap
    chance = 1.0 / (1.0 + np.exp(1.5 - 2.0 * rows.a - extra * is_f))
    rows.y[:] = simulator.rng.random(2000) < chance
    start = MONDAY + (number - 1) * WEEK
    sex = np.where(is_f, "f", "m").tolist()
    sex[:5] = ["x"] * 5
    ids = simulator.decide(start, rows, sex=sex)
    simulator.know(ids, rows.y.tolist(), start + WEEK + 10 * DAY)


def found_by(bench: Workbench, family: str) -> list[dict[str, Any]]:
    return [each.found for each in made_tests(bench.db, family)]


def groups_of(test: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["group"]: each for each in test["details"]["groups"]}


def test_a_difference_raises_an_alarm_and_equal_groups_none(
    bench: Workbench, simulator: Simulator
) -> None:
    """In the second week, the selection rates differ, and in the third the calibration does."""
    simulator.put_settings(feedback(monitor=MONITOR, protected=GROUPS))
    week(simulator, 1)
    week(simulator, 2, gap=1.0)
    week(simulator, 3, extra=1.5)
    run_monitor(bench)
    made = found_by(bench, "selection")
    assert [each["status"] for each in made[:2]] == ["passed", "alarm"]
    one = groups_of(made[1])["f"]
    assert one["rate"] / one["reference_rate"] == pytest.approx(one["ratio"])
    assert one["low"] < one["ratio"] < one["high"] < 0.8
    calibration = found_by(bench, "group_calibration")
    assert [each["status"] for each in calibration[:3]] == ["passed", "passed", "alarm"]
    one = groups_of(calibration[2])["f"]
    assert one["ratio"] > one["low"] > 1.0
    for first, second in (made[:2], calibration[:2]):
        assert groups_of(first)["f"]["low"] < 1.0 < groups_of(first)["f"]["high"]
        small = [groups_of(each)["x"] for each in (first, second)]
        assert [each["status"] for each in small] == ["waiting"] * 2
        assert [each["rows"] for each in small] == [5, 10]  # they are kept
    assert {each.family for each in alarms(bench.db)} >= {"selection", "group_calibration"}
    plan = MonitorPlan(MONITOR, GROUPS)
    assert made[0]["alpha_spent"] <= alpha_of("selection", plan) / 52 * (1 + 1e-9)
    with bench.db.read() as session:
        rows = [each for each in session.query(MonitorTest) if each.family == "selection"]
        words = scheduled_test_of(rows[1]).words
    assert "sex f" in words
    assert "below 0.8" in words


def test_without_the_column_or_flags_nothing_is_tested(
    bench: Workbench, simulator: Simulator
) -> None:
    simulator.put_settings(feedback(monitor=MONITOR, protected=GROUPS))
    simulator.flag_share = None
    week(simulator, 1)
    simulator.flag_share = 0.3
    simulator.week(2, 1000)  # without the column
    run_monitor(bench)
    states = [each["status"] for each in found_by(bench, "selection")[:2]]
    assert states == ["not_tested", "waiting"]


def test_all_families_share_alpha() -> None:
    plan = MonitorPlan(MONITOR, GROUPS)
    assert sum(alpha_of(each, plan) for each in TESTED) == pytest.approx(0.05)


# Recording.

RECORDED = {"columns": {"sex": ["male", "female"], "plan": ["x", "other"]}}


@pytest.fixture(scope="module")
def shared_service(shared: Service) -> Any:
    with answering(shared) as model_id:
        client = shared.client(shared.key())
        point(client, model_id, guarantee={"flagged": 0.3})
        record(client, protected=RECORDED)
        yield shared, client


ROW = {"age": 1.5, "balance": None, "plan": "x", "member": True, "since": "2024-02-15"}


def kept(service: Service, before: int) -> list[tuple[Any, Any]]:
    found = recorded(service, before)
    assert all("feature.sex" not in row for row in found)
    return [(row["protected.sex"], row["protected.plan"]) for row in found]


def test_a_protected_column_is_recorded_and_not_scored(
    shared_service: tuple[Service, httpx.Client],
) -> None:
    service, client = shared_service
    before = len(segments(service))
    query = {"age": "1.5", "balance": "", "plan": "x", "member": "true", "since": "2024-02-15"}
    plain = client.get(f"{UNDER}/score", params=query).json()
    one = client.get(f"{UNDER}/score", params=query | {"sex": "female"}).json()
    assert one["score"] == plain["score"]
    rows = [ROW | {"sex": sex} for sex in ("female", "male", None, "unlisted")]
    many = client.post(f"{UNDER}/score", json={"rows": rows}).json()
    assert many["scores"] == [plain["score"]] * 4
    columns = [*ROW, "sex"]
    data = [[*ROW.values(), "male"]]
    listed = client.post(f"{UNDER}/score", json={"columns": columns, "data": data}).json()
    assert listed["scores"] == [plain["score"]]
    explained = client.post(f"{UNDER}/explain", json={"rows": rows}).json()["explanations"]
    assert [each["score"] for each in explained] == [plain["score"]] * 4
    assert {"sex"}.isdisjoint(explained[0]["contributions"])
    assert client.post(f"{UNDER}/letters", json={"rows": rows}).status_code == 200
    expected: list[Any] = [None, "female", "female", "male", None, None, "male"]
    assert kept(service, before) == [(sex, "x") for sex in expected]
    decision = client.get(f"/v1/decisions/{one['decision_id']}").json()
    assert decision["protected"] == {"sex": "female", "plan": "x"}
    assert "sex" not in decision["features"]


def test_an_unlisted_value_is_warned_about(
    shared_service: tuple[Service, httpx.Client],
) -> None:
    _, client = shared_service
    found = client.post(f"{UNDER}/score", json={"rows": [ROW | {"sex": "Male"}]}).json()
    (warning,) = found["warnings"]
    assert (warning["code"], warning["feature"]) == ("unknown_categories", "sex")
    assert "model" not in warning["detail"]


@pytest.mark.parametrize("kind", ["csv", "csv, large", "batch", "instances", "open inference"])
def test_protected_columns_are_recorded_by_every_way_to_score(
    shared_service: tuple[Service, httpx.Client], kind: str
) -> None:
    service, client = shared_service
    before = len(segments(service))
    rows = draw_rows(2000 if "large" in kind else 20, seed=3)
    content_type, _, body = bodies(rows)["csv"]
    lines = body.decode().splitlines()
    sexes = ["male", "female"] * (len(rows) // 2)
    text = "\r\n".join(
        f"{line};{word}" for line, word in zip(lines, ["sex", *sexes], strict=True)
    ).encode()
    if kind.startswith("csv"):
        answer = client.post(f"{UNDER}/score", content=text, headers=headers_of(content_type))
    elif kind == "batch":
        answer = client.post(
            "/v1/batch-scores",
            params={"model": "churn@live"},
            content=text,
            headers={"Content-Type": content_type},
        )
        service.work()
    elif kind == "instances":
        records = [
            {name: row[name] for name in FEATURES} | {"sex": sex}
            for row, sex in zip(rows, sexes, strict=True)
        ]
        answer = client.post(f"{UNDER}:predict", json={"instances": records})
    else:
        sexes = ["female"]
        values = {"age": ("FP64", 0.5), "balance": ("FP64", 0.5), "plan": ("BYTES", "x")}
        values |= {"member": ("BOOL", True), "since": ("BYTES", "2024-02-15")}
        values |= {"sex": ("BYTES", "female")}
        inputs = [
            {"name": name, "shape": [1, 1], "datatype": datatype, "data": [value]}
            for name, (datatype, value) in values.items()
        ]
        answer = client.post("/oip/v2/models/churn@live/infer", json={"inputs": inputs})
        outputs = {each["name"]: each["data"] for each in answer.json()["outputs"]}
        (row,) = recorded(service, before)
        made = row["score"], row["decision_id"], row["flag"]
        assert made == tuple(outputs[name][0] for name in ("score", "decision_id", "review"))
    assert answer.is_success, answer.text
    assert [sex for sex, _ in kept(service, before)] == sexes


def test_other_references_do_not_take_protected_columns(
    shared_service: tuple[Service, httpx.Client],
) -> None:
    _, client = shared_service
    rows = {"rows": [ROW | {"sex": "male"}]}
    for operation in ("score", "explain"):
        answer = client.post(f"/v1/models/churn:1/{operation}", json=rows)
        error = refused(answer, 422, "unknown_feature")
        assert mentions(error["errors"][0]["detail"], "age")
    assert client.post(f"{UNDER}/rank", json=rows).status_code == 200


def test_earlier_decisions_may_have_protected_columns(
    shared_service: tuple[Service, httpx.Client],
) -> None:
    service, client = shared_service
    before = len(segments(service))
    body = (
        "id,at,score,age,balance,plan,member,since,sex\n"
        "c1,2026-11-01T12:00:00Z,0.5,1.5,,x,true,2024-02-15,female\n"
        "c2,2026-11-02T12:00:00Z,0.5,1.5,,x,true,2024-02-15,\n"
    )
    answer = client.post(
        "/v1/decisions",
        params={"model": "churn@live"},
        content=body,
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code == 202, answer.text
    service.work()
    assert kept(service, before) == [("female", "x"), (None, "x")]


@pytest.mark.parametrize(
    ("columns", "pointer"),
    [
        ({"sex": ["m"]}, "/protected/columns/sex"),
        ({"sex": ["m", "m"]}, "/protected/columns/sex"),
        ({"age": ["old", "young"]}, "/protected/columns/age"),
        ({}, "/protected/columns"),
        ({f"c{i}": list("abc") for i in range(11)}, "/protected/columns"),
        ({f"c{i}": list("abcd") for i in range(7)}, "/protected/columns"),
    ],
)
def test_bad_groups_are_refused(
    shared_service: tuple[Service, httpx.Client], columns: dict[str, Any], pointer: str
) -> None:
    _, client = shared_service
    headers = {"If-Match": client.get(FEEDBACK).headers["ETag"]}
    body = {"protected": {"columns": columns}}
    answer = client.put(FEEDBACK, json=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer
