"""The client has all of /openapi.json: every object, every operation, every query parameter."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import rankwright
from rankwright import types
from rankwright.resources import (
    BatchScore,
    Comparison,
    Dataset,
    Evaluation,
    Job,
    Model,
)
from rankwright.transport import Request, Response

from tests.app.client.make_client import CLIENT, DOCUMENT, as_text, describe, modules
from tests.sentences import Sentences

ROOT = Path(__file__).resolve().parents[3]

# By the name of the operation: the method of the client, and what it is called with.
OPERATIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "live": ("health", ("live",)),
    "ready": ("health", ("ready",)),
    "staffed": ("health", ("staffed",)),
    "list_algorithms": ("algorithms", ()),
    "read_algorithm": ("algorithm", ("rankboost",)),
    "list_audit_entries": ("audit", ()),
    "read_overview": ("overview", ()),
    "read_fits": ("fits", (["m"], ["ds_1"])),
    "list_batch_scores": ("batch_scores.list", ()),
    "create_batch_score": ("score_batch", ("m", [{"a": 1}])),
    "delete_batch_score": ("batch_score.delete", ()),
    "read_batch_score": ("batch_scores.get", ("bat_1",)),
    "read_result": ("batch_score.result", ()),
    "read_drift": ("batch_score.drift", ()),
    "read_summary": ("batch_score.summary", ()),
    "list_comparisons": ("comparisons.list", ()),
    "create_comparison": ("compare", (["a", "b"], "ds_1")),
    "delete_comparison": ("comparison.delete", ()),
    "read_comparison": ("comparisons.get", ("cmp_1",)),
    "list_datasets": ("datasets.list", ()),
    "validate_table": ("datasets.check", ([{"a": 1}],)),
    "validate_job": ("jobs.check", ("ds_1",)),
    "validate_batch_score": ("batch_scores.check", ("m", [{"a": 1}])),
    "upload_dataset": ("upload", ([{"a": 1}],)),
    "delete_dataset": ("dataset.delete", ()),
    "read_dataset": ("datasets.get", ("ds_1",)),
    "put_pairs": ("dataset.put_pairs", ([{"better": 1}],)),
    "preview_dataset": ("dataset.preview", ()),
    "profile_dataset": ("dataset.profile_page", ()),
    "list_versions": ("dataset.versions", ()),
    "create_version": ("dataset.add_version", ([{"a": 1}],)),
    "list_uploads": ("uploads.list", ()),
    "open_upload": ("uploads.open", ()),
    "read_table_again": ("dataset.read_again", ()),
    "refresh_dataset": ("datasets.refresh", ("ds_1",)),
    "list_sources": ("datasets.sources", ()),
    "read_upload": ("uploads.get", ("up_1",)),
    "put_part": ("uploads.put_part", ("up_1", 1, [{"a": 1}])),
    "add_files": ("uploads.add_files", ("up_1", "sales")),
    "close_upload": ("uploads.close", ("up_1", 1)),
    "delete_upload": ("uploads.delete", ("up_1",)),
    "list_evaluations": ("evaluations.list", ()),
    "create_evaluation": ("evaluate", ("m", "ds_1")),
    "delete_evaluation": ("evaluation.delete", ()),
    "read_evaluation": ("evaluations.get", ("evl_1",)),
    "read_evaluation_metric_estimates": ("evaluation.metric_estimates", ("auc",)),
    "read_evaluation_gains": ("evaluation.gains", ()),
    "read_evaluation_list_curve": ("evaluation.curve", ("gains",)),
    "read_evaluation_groups": ("evaluation.groups_at", ()),
    "read_evaluation_operating_point": ("evaluation.operating_point", ()),
    "read_evaluation_roc": ("evaluation.roc", ()),
    "list_jobs": ("jobs.list", ()),
    "submit_job": ("train", ("ds_1",)),
    "read_job": ("jobs.get", ("job_1",)),
    "cancel_job": ("job.cancel", ()),
    "read_events": ("job.follow", ()),
    "retry_job": ("job.retry", ()),
    "list_keys": ("keys.list", ()),
    "create_key": ("keys.create", ("n", ["read"])),
    "revoke_key": ("keys.revoke", ("key_1",)),
    "read_key": ("keys.get", ("key_1",)),
    "rotate_key": ("keys.rotate", ("key_1",)),
    "list_quotas": ("quotas.list", ()),
    "read_quota": ("quotas.get", ("acme",)),
    "put_quota": ("quotas.set", ("acme",)),
    "read_owner_usage": ("quotas.usage", ("acme",)),
    "read_usage": ("usage", ()),
    "list_retention": ("retention.list", ()),
    "read_retention": ("retention.get", ("acme",)),
    "put_retention": ("retention.set", ("acme",)),
    "preview_retention": ("retention.preview", ("acme",)),
    "list_holds": ("holds.list", ()),
    "read_hold": ("holds.get", ("hld_1",)),
    "place_hold": ("holds.place", ("owner", "a case")),
    "release_hold": ("holds.release", ("hld_1", "closed")),
    "list_schedules": ("schedules.list", ()),
    "read_schedule": ("schedules.get", ("sch_1",)),
    "create_schedule": ("schedules.create", ("ds_1", "0 5 * * *")),
    "update_schedule": ("schedules.update", ("sch_1",)),
    "delete_schedule": ("schedules.delete", ("sch_1",)),
    "list_webhooks": ("webhooks.list", ()),
    "read_webhook": ("webhooks.get", ("wh_1",)),
    "create_webhook": ("webhooks.create", ("https://example.com/",)),
    "update_webhook": ("webhooks.update", ("wh_1",)),
    "delete_webhook": ("webhooks.delete", ("wh_1",)),
    "rotate_webhook": ("webhooks.rotate", ("wh_1",)),
    "ping_webhook": ("webhooks.ping", ("wh_1",)),
    "list_webhook_deliveries": ("webhooks.deliveries", ("wh_1",)),
    "replay_webhook_delivery": ("webhooks.replay", ("wh_1", "evt_1")),
    "read_me": ("me", ()),
    "list_trash": ("trash.list", ()),
    "restore_item": ("trash.restore", ("mdl_1",)),
    "delete_item": ("trash.delete", ("mdl_1",)),
    "list_erasures": ("erasures.list", ()),
    "create_erasure": ("erasures.create", ("c1",)),
    "read_erasure": ("erasures.get", ("ers_1",)),
    "list_alias_requests": ("alias_requests.list", ()),
    "create_alias_request": ("alias_requests.create", ("delete", "n", "a", "reason")),
    "read_alias_request": ("alias_requests.get", ("arq_1",)),
    "read_alias_request_evidence": ("alias_requests.evidence", ("arq_1",)),
    "approve_alias_request": ("alias_requests.approve", ("arq_1",)),
    "reject_alias_request": ("alias_requests.reject", ("arq_1", "reason")),
    "withdraw_alias_request": ("alias_requests.withdraw", ("arq_1",)),
    "start_break_glass": ("models.start_break_glass", ("n", "a", "reason")),
    "end_break_glass": ("models.end_break_glass", ("n", "a")),
    "list_alarms": ("alarms.list", ()),
    "read_alarm": ("alarms.get", ("alm_1",)),
    "acknowledge_alarm": ("alarms.acknowledge", ("alm_1", "reason", "keep")),
    "create_outcomes": ("send_outcomes", ([{"id": "c1", "label": True}],)),
    "read_monitor": ("models.monitor", ("n", "a")),
    "read_shadow": ("models.shadow", ("n", "a")),
    "list_views": ("views.list", ()),
    "put_view": ("views.save", ("models", "best", "sort=-auc")),
    "delete_view": ("views.delete", ("models", "best")),
    "list_models": ("models.list", ()),
    "list_aliases": ("models.aliases", ("n",)),
    "delete_alias": ("models.delete_alias", ("n", "a")),
    "read_alias": ("models.read_alias", ("n", "a")),
    "list_deleted_aliases": ("models.deleted_aliases", ("n",)),
    "list_alias_revisions": ("models.alias_revisions", ("n", "a")),
    "read_alias_evidence": ("models.alias_evidence", ("n", "a", 1)),
    "preview_alias": ("models.preview_alias", ("n", "a", "mdl_1")),
    "restore_alias": ("models.restore_alias", ("n", "a", 1)),
    "put_alias_protection": ("models.protect_alias", ("n", "a")),
    "put_alias": ("models.set_alias", ("n", "a", "mdl_1")),
    "read_reason_codes": ("models.read_reason_codes", ("n",)),
    "read_feedback": ("models.read_feedback", ("n", "a")),
    "put_feedback": ("models.set_feedback", ("n", "a")),
    "delete_feedback": ("models.delete_feedback", ("n", "a")),
    "create_decisions": ("send_decisions", ("n@a", [{"a": 1}])),
    "read_decision": ("read_decision", ("dec_1",)),
    "list_decision_files": ("decision_files", ()),
    "read_decision_file": ("download_decision_file", ("seg_1",)),
    "put_reason_codes": ("models.set_reason_codes", ("n", [])),
    "read_cohorts": ("models.read_cohorts", ("n", "a")),
    "delete_model": ("model.delete", ()),
    "read_model": ("model.read", ()),
    "read_artifact": ("model.download", ("artifact",)),
    "read_bounds": ("model.bounds", ()),
    "read_calibration": ("model.read_calibration", ()),
    "restore_calibration": ("model.restore_calibration", (1,)),
    "list_comments": ("model.comments", ()),
    "create_comment": ("model.add_comment", ("text",)),
    "delete_comment": ("model.delete_comment", ("cmt_1",)),
    "put_acknowledgement": ("evaluation.acknowledge", ("reason",)),
    "delete_acknowledgement": ("evaluation.withdraw_acknowledgement", ()),
    "put_calibration": ("model.recalibrate", ("ds_1",)),
    "read_checks": ("model.checks", ()),
    "read_scorecard": ("model.scorecard", ()),
    "read_bins": ("model.bins", ()),
    "read_points_cutoff": ("model.points_cutoff", ()),
    "read_rounding": ("model.rounding", ()),
    "score_points": ("model.points", ([{"a": 1}],)),
    "write_letters": ("model.letters", ([{"a": 1}],)),
    "preview_letters": ("model.preview_letters", ([{"a": 1}], [])),
    "read_baselines": ("model.baselines", ()),
    "explain_rows": ("model.explain", ([{"a": 1}],)),
    "read_metric_estimates": ("model.metric_estimates", ("auc",)),
    "read_gains": ("model.gains", ()),
    "read_list_curve": ("model.curve", ("gains",)),
    "read_importance": ("model.importance", ()),
    "read_leaderboard": ("model.leaderboard", ()),
    "read_margins": ("model.margins", ()),
    "read_metrics": ("model.read_metrics", ()),
    "read_groups": ("model.groups_at", ()),
    "read_operating_point": ("model.operating_point", ()),
    "read_operating_points": ("model.operating_points", ()),
    "read_out_of_fold": ("model.out_of_fold", ()),
    "read_partial_dependence": ("model.partial_dependence", ("a",)),
    "read_plot": ("model.download", ("plot",)),
    "rank_rows": ("model.rank", ([{"a": 1}],)),
    "read_report": ("model.report", ()),
    "read_roc": ("model.roc", ()),
    "score_row": ("model.score_row", ({"a": 1},)),
    "score_rows": ("model.score", ([{"a": 1}],)),
    "read_structure": ("model.structure", ()),
    "read_variable_dependence": ("model.variable_dependence", ("a",)),
}
NO_PART = {
    "metrics",  # for Prometheus
    # The client checks what is written by hand or comes from elsewhere: tables and jobs.
    *(f"validate_{of}" for of in ("reading", "version", "retry", "calibration", "evaluation")),
    *(f"validate_{of}" for of in ("decisions", "outcomes", "erasure")),
    *(f"validate_{of}" for of in ("comparison", "key", "rotation", "comment")),
    *(f"validate_{of}" for of in ("webhook", "refresh", "schedule")),
}
PAGED = {"limit", "after"}
DOWNLOADED = {"format", "max_points", "band", "on", "width", "kind"}
"""What `model.download` takes for every part of a model."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return describe()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_the_modules_are_those_of_the_description(document: dict[str, Any]) -> None:
    for file_name, text in modules(document).items():
        assert (CLIENT / file_name).read_text() == text, "run: make openapi"


def test_the_description_in_the_repository_is_the_services(document: dict[str, Any]) -> None:
    assert DOCUMENT.read_text() == as_text(document), "run: make openapi"


def test_examples_become_records_and_json_again(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        kind = getattr(types, name, None)
        if isinstance(kind, type):
            for example in schema.get("examples", []):
                record = kind.from_json(example)  # type: ignore[attr-defined]
                assert record.to_json() == example
                assert all(
                    getattr(record, field, None) is not None or value is None
                    for field, value in example.items()
                )


class Asked(Exception):
    """Ends a call with its first request."""


class Recorder:
    """A transport that answers with one thing until it is `begun`, and then keeps the first request of a call."""

    url = "http://nowhere"
    begun = False

    def do(self, step: Any) -> Response:
        if self.begun:
            raise Asked(step)
        return Response(
            200, {}, b'{"id": "x_1", "state": "running", "status": "ready", "job_id": "job_1"}'
        )

    def close(self) -> None:
        """Nothing is open."""


def first_request(name: str, arguments: tuple[Any, ...], /, **more: Any) -> Request:
    recorder: Any = Recorder()
    client = rankwright.Client("http://nowhere", transport=recorder)
    owners: dict[str, Any] = {
        "dataset": client.datasets.get("x_1"),
        "job": client.jobs.get("x_1"),
        "evaluation": client.evaluations.get("x_1"),
        "comparison": client.comparisons.get("x_1"),
        "batch_score": client.batch_scores.get("x_1"),
        "model": client.models["m"],
    }
    recorder.begun = True
    *owner, method = name.split(".")
    asked = client if not owner else owners.get(owner[0]) or getattr(client, owner[0])
    if method in (
        "set_alias",
        "delete_alias",
        "restore_alias",
        "protect_alias",
        "set_reason_codes",
        "set_feedback",
        "delete_feedback",
    ):
        more["revision"] = 1
    if method == "restore_calibration":
        more["revision"] = 2
    with pytest.raises(Asked) as caught:
        next(iter(getattr(asked, method)(*arguments, **more)))
    request = caught.value.args[0]
    assert isinstance(request, Request)
    return request


def test_every_operation_is_one_of_the_clients(document: dict[str, Any]) -> None:
    missing = []
    for method, path, operation in operations(document):
        name = operation["operationId"]
        if name in NO_PART:
            continue
        if name not in OPERATIONS:
            missing.append(name)
            continue
        request = first_request(*OPERATIONS[name])
        shape = re.sub(r"\{[^}]+\}", "[^/]+", path)
        assert (request.method, bool(re.fullmatch(shape, request.path))) == (method, True), name
    assert missing == []


def test_a_caller_can_name_every_request_that_creates(document: dict[str, Any]) -> None:
    for _, _, operation in operations(document):
        headers = {each["name"].lower() for each in operation.get("parameters", [])}
        if "idempotency-key" in headers:
            name, arguments = OPERATIONS[operation["operationId"]]
            request = first_request(name, arguments, idempotency_key="tonight")
            assert request.headers["Idempotency-Key"] == "tonight", name


def test_a_name_that_is_none_is_refused_by_type_checkers_too() -> None:
    with pytest.raises(AttributeError):
        rankwright.anything  # type: ignore[attr-defined]  # noqa: B018


def test_every_query_parameter_can_be_sent(document: dict[str, Any]) -> None:
    missing = []
    for _, _, operation in operations(document):
        name = operation["operationId"]
        if name in NO_PART or name in ("score_row", "validate_table"):  # which take any
            continue
        described = find_method(OPERATIONS[name][0])
        taken = set(inspect.signature(described).parameters)
        for parameter in operation.get("parameters", []):
            known = parameter["name"].removesuffix("_id")
            if parameter["in"] != "query":
                continue
            if not {parameter["name"], known} & taken and not (
                parameter["name"] in PAGED or parameter["name"] in DOWNLOADED
            ):
                missing.append(f"{name}: {parameter['name']}")
    assert missing == []


def find_method(name: str) -> Callable[..., Any]:
    *owner, method = name.split(".")
    kinds: dict[str, Any] = {
        "dataset": Dataset,
        "job": Job,
        "evaluation": Evaluation,
        "comparison": Comparison,
        "batch_score": BatchScore,
        "model": Model,
    }
    client = rankwright.Client("http://nowhere", "key")
    kind: Any = kinds.get(owner[0]) if owner else type(client)
    described = getattr(kind or type(getattr(client, owner[0])), method)
    found: Callable[..., Any] = described.describe
    return found


def test_it_needs_no_server() -> None:
    """No module of the client knows one of the service."""
    for module in (ROOT / "client" / "rankwright").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) (app|core|workers)\b", module.read_text(), re.M), (
            module
        )


@pytest.mark.parametrize(
    ("name", "arguments", "more", "target"),
    [
        ("datasets.page", (), {"name": "a", "limit": 5}, "/v1/datasets?name=a&limit=5"),
        ("jobs.page", (), {"kind": "ingest", "after": "x"}, "/v1/jobs?kind=ingest&after=x"),
        ("models.page", (), {"search": "ch"}, "/v1/models?search=ch"),
        ("models.page", (), {"tag": ["team:risk", "b"]}, "/v1/models?tag=team%3Arisk&tag=b"),
        (
            "jobs.page",
            (),
            {"created_after": datetime(2026, 1, 31, tzinfo=UTC)},
            "/v1/jobs?created_after=2026-01-31T00%3A00%3A00%2B00%3A00",
        ),
        ("models.alias_page", ("churn",), {}, "/v1/models/churn/aliases"),
        ("evaluations.page", (), {"model_id": "m"}, "/v1/evaluations?model_id=m"),
        ("comparisons.page", (), {"dataset_id": "ds"}, "/v1/comparisons?dataset_id=ds"),
        ("batch_scores.page", (), {"limit": 1}, "/v1/batch-scores?limit=1"),
        ("keys.page", (), {}, "/v1/keys"),
        ("audit_page", (), {"limit": 9}, "/v1/audit?limit=9"),
        ("dataset.version_page", (), {"limit": 2}, "/v1/datasets/x_1/versions?limit=2"),
        ("job.events", (), {"after": 3}, "/v1/jobs/x_1/events?after=3"),
        ("model.read", (), {}, "/v1/models/m"),
        (
            "model.read",
            (),
            {"include": ["metrics", "roc"]},
            "/v1/models/m?include=metrics&include=roc",
        ),
        ("model.refresh", (), {}, "/v1/models/m?include=metrics"),
        ("model.score_rows", ([{"a": 1}],), {}, "/v1/models/m/score"),
        ("jobs.submit", ({},), {}, "/v1/jobs"),
        ("jobs.check_request", ({},), {}, "/v1/jobs/validate"),
        ("metrics", (), {}, "/metrics"),
    ],
)
def test_pages_and_parts_ask_for_what_they_name(
    name: str, arguments: tuple[Any, ...], more: dict[str, Any], target: str
) -> None:
    assert first_request(name, arguments, **more).target() == target


def test_a_page_of_a_list_has_records_and_its_cursor() -> None:
    class Answers(Recorder):
        def do(self, step: Any) -> Response:
            told = {"data": [{"id": "ds_1", "name": "a"}], "has_more": True, "next": "c"}
            return Response(200, {}, json.dumps(told).encode())

    answers: Any = Answers()
    page = rankwright.Client("http://nowhere", transport=answers).datasets.page()
    assert ([each.name for each in page.data], page.has_more, page.next) == (["a"], True, "c")


def test_a_thing_by_its_id_asks_nothing_until_it_is_used() -> None:
    recorder: Any = Recorder()
    client = rankwright.Client("http://nowhere", transport=recorder)
    recorder.begun = True
    for things in (client.datasets, client.jobs, client.evaluations, client.comparisons):
        assert things["x_1"].id == "x_1"
    with pytest.raises(Asked) as caught:
        client.jobs["x_1"].cancel(keep=True)
    assert caught.value.args[0].target() == "/v1/jobs/x_1/cancel?keep=true"
    with pytest.raises(rankwright.ConfigurationError):
        client.jobs["../x"].cancel()


def test_fields_of_several_records_are_read_when_they_are_asked_for(sentences: Sentences) -> None:
    told = {"dataset_id": "ds_1", "columns": [{"name": "a", "leak": True}], "more": 1}
    profile = types.DatasetProfile.from_json(told)
    assert [(each.name, each.leak, each.auc) for each in profile.columns] == [("a", True, None)]
    assert profile.columns is profile.columns
    assert (profile.dataset_id, profile.rows, profile.warnings) == ("ds_1", None, None)
    assert profile.to_json() == told
    with pytest.raises(AttributeError, match="'more'"):
        profile.more  # type: ignore[attr-defined]  # noqa: B018
    with sentences.raises(TypeError):
        types.DatasetProfile.from_json({"columns": ["a"]}).columns  # noqa: B018
