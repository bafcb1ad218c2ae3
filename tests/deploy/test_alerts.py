"""deploy/monitoring: each alert fires and stays quiet as it should, by promtool; rules and dashboard use metrics and
runbooks that exist.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from jsonschema import Draft202012Validator

from docs.builder.pages import REPOSITORY
from tests.app.operations import test_docs_metrics
from tests.long_form import long_form

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "monitoring"
RULES = yaml.safe_load((FOLDER / "alerts.yml").read_text())
ALERTS = {
    rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule
}
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
DAY = 86400
ROUTE = 'method="GET",route="/v1/models/{ref}/score"'


class Case(NamedTuple):
    """Series by name, one value a minute; the minute at which they are looked at; and the labels that the alert has
    then, or None if it does not fire.
    """

    series: dict[str, str]
    minutes: int
    fires: dict[str, str] | None


def requests(failed: int, minutes: int) -> dict[str, str]:
    """Requests with status 200, `failed` in a thousand more with 503, and health checks that fail."""
    name = "rankwright_http_request_seconds_count"
    return {
        f'{name}{{method="GET",route="/v1/jobs",status="200"}}': f"0+{1000 - failed}x{minutes}",
        f'{name}{{method="GET",route="/v1/jobs",status="503"}}': f"0+{failed}x{minutes}",
        f'{name}{{method="GET",route="/health/staffed",status="503"}}': f"0+500x{minutes}",
    }


def scores(slow: int, minutes: int) -> dict[str, str]:
    """Scores of one row, `slow` in a hundred slower than 0.1 s."""
    name, labels = "rankwright_http_request_seconds", f'{ROUTE},status="200"'
    return {
        f'{name}_bucket{{{labels},le="0.1"}}': f"0+{100 - slow}x{minutes}",
        f"{name}_count{{{labels}}}": f"0+100x{minutes}",
    }


def constant(value: float, minutes: int = 120) -> str:
    """A value that stays."""
    return f"{value:g}x{minutes}"


def pair(
    name: str, bad: str, good: str, minutes: int, fires: dict[str, str] | None = None
) -> list[Case]:
    """One series that fires, and the same with other values that does not."""
    return [Case({name: bad}, minutes, fires or {}), Case({name: good}, minutes, None)]


def up(dependency: str, instance: str = "a") -> str:
    return f'rankwright_dependency_up{{dependency="{dependency}",instance="{instance}"}}'


OLDEST = "rankwright_queue_oldest_seconds"
NORMAL, LOW = (f'{OLDEST}{{kind="train",priority="{each}"}}' for each in ("normal", "low"))
API = 'up{job="rankwright",instance="a"}'
DISK = 'rankwright_disk_free_bytes{disk="blobs"}'
FAILED = 'rankwright_jobs_ended_total{kind="train",outcome="failed"}'
REFUSED = 'rankwright_permits_refused_total{limit="requests"}'
HITS, MISSES = (f'rankwright_model_cache_lookups_total{{result="{r}"}}' for r in ("hit", "miss"))
IN_USE, MOST = "rankwright_database_connections", "rankwright_database_connections_max"
WAITS = {NORMAL: constant(300)}
RUNS = {'rankwright_jobs{kind="train",state="running"}': constant(2)}
SUCCESS = "rankwright_{}_success_timestamp_seconds"
CASES: dict[str, list[Case]] = {
    "RankwrightErrorsFast": [
        Case(requests(20, 90), 80, {}),
        Case({name: values for name, values in requests(0, 90).items() if "/v1" in name}, 80, None),
        Case(requests(10, 90), 80, None),
    ],
    "RankwrightErrorsSlow": [
        Case(requests(8, 500), 490, {}),
        Case(requests(4, 500), 490, None),
    ],
    "RankwrightScoresSlowFast": [
        Case(scores(20, 90), 80, {}),
        Case(scores(10, 90), 80, None),
    ],
    "RankwrightScoresSlow": [
        Case(scores(8, 500), 490, {}),
        Case(scores(4, 500), 490, None),
    ],
    "RankwrightApiDown": [
        *pair(API, constant(0), constant(1), 10, {"job": "rankwright", "instance": "a"}),
        Case({'up{job="rankwright-workers"}': constant(1)}, 10, {"job": "rankwright"}),
    ],
    "RankwrightPermitsRefused": pair(REFUSED, "0+60x60", "0+1x60", 30, {"limit": "requests"}),
    "RankwrightModelsReloaded": [
        Case({HITS: "0+60x60", MISSES: "0+20x60"}, 50, {}),
        Case({HITS: "0x60", MISSES: "0 1x60"}, 5, None),  # a single look-up, after a start
    ],
    "RankwrightDatabaseDown": [
        Case({up("database"): constant(0)}, 5, {}),
        Case({up("database"): "1 1 0 1 1 1"}, 3, None),
        Case({up("database", "a"): constant(1), up("database", "b"): constant(0)}, 5, {}),
        Case({up("broker"): constant(0)}, 5, None),
    ],
    "RankwrightBrokerDown": pair(up("broker"), constant(0), constant(1), 5),
    "RankwrightBucketDown": pair(up("blob_store"), constant(0), constant(1), 5),
    "RankwrightProviderDown": pair(up("identity_provider"), constant(0), constant(1), 5),
    "RankwrightDataRefused": pair(up("disk"), constant(0), constant(1), 5),
    "RankwrightDatabaseConnections": [
        Case({IN_USE: constant(90), MOST: constant(100)}, 20, {}),
        Case({IN_USE: constant(70), MOST: constant(100)}, 20, None),
    ],
    "RankwrightDatabaseLarge": pair(
        "rankwright_database_size_bytes", constant(60e9), constant(40e9), 30
    ),
    "RankwrightDatabaseGrows": pair(
        "rankwright_database_size_bytes", "10e9+10e6x600", "10e9+1e6x600", 500
    ),
    "RankwrightDiskFull": pair(DISK, constant(9e8), constant(9e9), 10, {"disk": "blobs"}),
    "RankwrightNoWorkers": pair("rankwright_workers", constant(0), constant(1), 5),
    "RankwrightQueueSlow": [
        *pair(NORMAL, constant(700), constant(500), 10, {"kind": "train", "priority": "normal"}),
        Case({LOW: constant(3000)}, 10, None),
    ],
    "RankwrightQueueStuck": [
        Case({LOW: constant(4000)}, 10, {}),
        Case({NORMAL: constant(3000)}, 10, None),
    ],
    "RankwrightWorkersStuck": [
        Case(WAITS | {"rankwright_workers": constant(2)}, 10, {}),
        Case(WAITS | {"rankwright_workers": constant(2)} | RUNS, 10, None),
        Case(WAITS | {"rankwright_workers": constant(0)}, 10, None),
    ],
    "RankwrightLeasesExpired": pair("rankwright_leases_expired", constant(1), "0 1 1 0x20", 10),
    "RankwrightJobsFail": pair(FAILED, "0x10 1x20", "3x40", 20, {"kind": "train"}),
    "RankwrightNoDispatcher": pair("rankwright_dispatchers", constant(0), constant(1), 5),
    # time() begins at 0 in promtool's tests.
    "RankwrightCleanupFails": pair(
        SUCCESS.format("housekeeping"), constant(0, 500), constant(3600, 500), 400
    ),
    "RankwrightBackupOld": pair(
        SUCCESS.format("backup"), constant(0, 1700), constant(DAY / 2, 1700), 1650
    ),
    "RankwrightBreakGlass": [
        Case({"rankwright_break_glass": "0x3 1x10"}, 5, {}),
        Case({"rankwright_break_glass": "1x3 0x10"}, 8, None),
    ],
    "RankwrightWebhooksLate": [
        *pair("rankwright_webhooks_late_seconds", constant(400), "400x3 0x20", 10),
        Case({"rankwright_webhooks_late_seconds": constant(200)}, 10, None),
    ],
    "RankwrightWebhooksFail": [
        *pair('rankwright_webhooks{state="failing"}', constant(1), constant(0), 45),
        Case({'rankwright_webhooks{state="disabled"}': constant(1)}, 45, None),
    ],
    "RankwrightDecisionsLost": pair("rankwright_decisions_lost_total", "0x10 5x10", "5x30", 12),
    "RankwrightDecisionsWait": pair(
        "rankwright_decisions_log_bytes", constant(2e8), constant(1e8), 10
    ),
}


@pytest.fixture(scope="module")
def promtool() -> str:
    """The path of promtool. CI must have it: `make browser` installs it."""
    found = shutil.which("promtool")
    if found is None:
        why = "there is no promtool: `make browser` installs it"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    return found


def run(promtool: str, *arguments: str | Path) -> None:
    done = subprocess.run(
        [promtool, *arguments], capture_output=True, text=True, check=False, cwd=FOLDER
    )
    assert done.returncode == 0, done.stdout + done.stderr


def expected(rule: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    """The alert that promtool must find, with its texts filled in."""
    fill = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
    texts = {
        name: fill.sub(lambda match: labels[match[1]], text)
        for name, text in rule["annotations"].items()
    }
    return {"exp_labels": rule["labels"] | labels, "exp_annotations": texts}


@long_form
def test_each_alert_fires_when_it_should_and_only_then(promtool: str, tmp_path: Path) -> None:
    assert CASES.keys() == ALERTS.keys()
    tests: dict[str, list[dict[str, Any]]] = {"1m": [], "10m": []}  # by interval of evaluation
    for name, cases in CASES.items():
        assert {case.fires is None for case in cases} == {True, False}, name
        for case in cases:
            tests["1m" if case.minutes < 100 else "10m"].append(
                {
                    "name": f"{name} {'stays quiet' if case.fires is None else 'fires'}",
                    "interval": "1m",
                    "input_series": [{"series": s, "values": v} for s, v in case.series.items()],
                    "alert_rule_test": [
                        {
                            "eval_time": f"{case.minutes}m",
                            "alertname": name,
                            "exp_alerts": []
                            if case.fires is None
                            else [expected(ALERTS[name], case.fires)],
                        }
                    ],
                }
            )
    files = []
    for interval, those in tests.items():
        files.append(tmp_path / f"{interval}.yml")
        document = {"rule_files": [str(FOLDER / "alerts.yml")], "evaluation_interval": interval}
        files[-1].write_text(yaml.safe_dump(document | {"tests": those}))
    run(promtool, "test", "rules", *files)


def test_rules_and_configuration_are_valid(promtool: str) -> None:
    run(promtool, "check", "rules", "--lint-fatal", "alerts.yml")
    run(promtool, "check", "config", "--syntax-only", "prometheus.yml")


def test_each_alert_has_a_summary_a_severity_and_a_runbook_that_exists() -> None:
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    page = (ROOT / "docs" / "runbooks.md").read_text()
    for name, rule in ALERTS.items():
        assert rule["annotations"].keys() == {"summary", "runbook_url"}, name
        assert rule["labels"]["severity"] in {"warning", "critical"}, name
        file, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert file == f"{REPOSITORY}docs/runbooks.md"
        assert anchor in anchors, name
        assert f"| `{name}` |" in page, name
    assert set(re.findall(r"^\| `(Rankwright\w+)` \|", page, re.MULTILINE)) == ALERTS.keys()


def panels() -> Iterator[dict[str, Any]]:
    yield from (panel for panel in DASHBOARD["panels"] if panel["type"] != "row")


def expressions() -> list[str]:
    """All expressions of rules and dashboard."""
    of_rules = [rule["expr"] for group in RULES["groups"] for rule in group["rules"]]
    return of_rules + [target["expr"] for panel in panels() for target in panel["targets"]]


def test_the_dashboard_has_the_form_that_grafana_imports() -> None:
    schema = json.loads((Path(__file__).parent / "dashboard-schema.json").read_text())
    faults = [error.json_path for error in Draft202012Validator(schema).iter_errors(DASHBOARD)]
    assert faults == []
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    places: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        own = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not own & places, panel["title"]
        places |= own
    for panel in panels():
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)
    (variable,) = DASHBOARD["templating"]["list"]
    used = {panel["datasource"]["uid"] for panel in panels()}
    assert used == {f"${{{variable['name']}}}"}


def test_prometheus_can_read_every_expression(promtool: str, tmp_path: Path) -> None:
    rules = [{"record": f"x:{n}", "expr": each} for n, each in enumerate(expressions())]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
    run(promtool, "check", "rules", file)


def test_rules_and_dashboard_use_metrics_and_labels_of_the_service() -> None:
    """tests/app/operations/test_docs_metrics.py compares this table with what the service exports."""
    samples: dict[str, set[str]] = {}
    for name, row in test_docs_metrics.rows().items():
        for suffix in ("_bucket", "_sum", "_count") if row.type == "histogram" else ("",):
            samples[name + suffix] = row.labels | ({"le"} if suffix == "_bucket" else set())
    recorded = {rule["record"] for g in RULES["groups"] for rule in g["rules"] if "record" in rule}
    of_prometheus = {"job", "instance"}
    used = set()
    for expression in expressions():
        plain = re.sub(r'"[^"]*"', '""', expression)
        for name, matchers in re.findall(r"\b((?:rankwright|process)_\w+)(\{[^}]*\})?", plain):
            assert name in samples, f"{name} in {expression}"
            labels = set(re.findall(r"(\w+)(?:=|!=|=~|!~)\"", matchers))
            assert labels <= samples[name], f"{name}{matchers}"
            used.add(name)
        assert set(re.findall(r"\brankwright:\w+(?::\w+)*", plain)) <= recorded, expression
        for grouping in re.findall(r"\bby \(([^)]*)\)", plain):
            names = re.findall(r"\b((?:rankwright|process)_\w+)", plain)
            known = set.union(of_prometheus, *(samples[name] for name in names))
            assert {label.strip() for label in grouping.split(",")} <= known, expression
    assert used
