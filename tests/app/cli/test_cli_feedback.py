"""The feedback loop from a shell: settings, outcomes, the monitor, alarms, and the nightly job of the examples."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.app.cli.conftest import told
from tests.app.feedback.simulator import Simulator, feedback
from tests.app.feedback.test_api_monitor import run_monitor, simulate, train
from tests.app.live_service import Service
from tests.long_form import long_form
from tests.sentences import Sentences

Run = Callable[..., Result]
ALIAS = "m@live"
NIGHTLY = Path(__file__).parents[3] / "examples" / "nightly_feedback.py"


@pytest.fixture
def alias(service: Service) -> str:
    """An alias of a model. Made before the worker of `run` begins."""
    train(service, service.client(service.key()))
    return ALIAS


@pytest.fixture
def fallen(service: Service, alias: str) -> Simulator:
    """The alias, whose ranking has become worse, with its alarm."""
    simulator = simulate(service)
    simulator.put_settings(feedback(days=3650))
    for number in range(1, 5):
        simulator.week(number, slope=2.0 if number < 3 else 0.5)
    run_monitor(service)
    return simulator


def test_settings_are_printed_edited_and_sent_back(alias: str, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "feedback.json"
    file.write_text("{}")
    assert "revision 1" in run("feedback", ALIAS, file).stderr
    found = json.loads(run("feedback", ALIAS).stdout)
    assert (found["days"], found["monitor"]) == (400, None)
    file.write_text(json.dumps(found | {"monitor": {"period": "day"}}))
    answer = run("feedback", ALIAS, file).stderr
    assert "revision 2" in answer
    assert "AUC" in answer
    assert json.loads(run("feedback", ALIAS).stdout)["monitor"]["period"] == "day"
    run("feedback", ALIAS, "--stop")
    run("feedback", ALIAS, code=3)


def test_bad_settings(
    alias: str, run: Run, service: Service, tmp_path: Path, sentences: Sentences
) -> None:
    file = tmp_path / "feedback.json"
    for text in ("{", "[]", '{"day": 3}', '{"days": 0}'):
        file.write_text(text)
        sentences(run("feedback", ALIAS, file, code=2).stderr.replace(str(file), "FILE"))
    file.write_text("{}")
    sentences(run("feedback", "m", file, code=2).stderr)
    sentences(run("feedback", ALIAS, file, "--stop", code=2).stderr)
    sentences(run("feedback", "m@other", file, code=3).stderr)
    run("feedback", ALIAS, file, "--key", service.key(scopes=["read"]), code=4)


def test_outcomes_are_sent_and_counted(run: Run, service: Service, tmp_path: Path) -> None:
    file = tmp_path / "outcomes.csv"
    file.write_text("id,label,event_at\nc1,true,2026-01-02\nc2,false,2026-01-02\n")
    told_counts = [int(number) for number in re.findall(r"\d+", run("outcomes", file).stdout)]
    assert told_counts[:4] == [2, 0, 2, 0]
    again = json.loads(run("outcomes", file, "--json").stdout)
    assert again["duplicates"] == 2
    file.write_text("id,label,event_at\nc1,true,never\n")
    assert told(run("outcomes", file, "--json", code=2))["errors"]
    run("outcomes", tmp_path / "absent.csv", code=2)
    run("outcomes", file, "--key", service.key(scopes=["read"]), code=4)


def test_the_monitor_exits_with_7_while_an_alarm_is_open(
    fallen: Simulator, run: Run, service: Service
) -> None:
    shown = run("monitor", ALIAS, code=7).stdout
    assert "2024-12-30" in shown
    found = json.loads(run("monitor", ALIAS, "--json", code=7).stdout)
    assert found["alarms"]
    listed = json.loads(run("alarms", "list", "--json").stdout)
    waiting = re.search(r"(\d+) items? needs? attention", run("overview").stderr)
    assert waiting is not None
    assert int(waiting[1]) == len(listed)
    assert [each["id"] for each in listed] == [each["id"] for each in found["alarms"]]
    assert listed[-1]["id"] in run("alarms", "list").stdout
    for each in listed:
        words = ("alarms", "acknowledge", each["id"], "--reason", "known")
        run(*words, code=2)  # no reference
        run(*words, "--reference", "other", code=2)
        run(*words, "--reference", "keep", "--key", service.key(scopes=["read"]), code=4)
        assert "acknowledged" in run(*words, "--reference", "renew").stdout
        run(*words, "--reference", "renew", code=1)
    assert run("alarms", "list").stdout == ""
    assert len(json.loads(run("alarms", "list", "--all", "--json").stdout)) == len(listed)
    run("monitor", ALIAS)
    run("monitor", "m@other", code=3)
    run("alarms", "acknowledge", "alm_1", "--reason", "x", "--reference", "keep", code=3)


def test_the_shadow_model(fallen: Simulator, run: Run, service: Service) -> None:
    assert run("shadow", ALIAS).stdout == ""
    fallen.put_settings(feedback(days=3650, shadow=fallen.served().model_id))
    assert "compared" in run("shadow", ALIAS).stdout
    assert json.loads(run("shadow", ALIAS, "--json").stdout)["comparison"] is None
    run("shadow", "m", code=2)


@long_form
def test_the_nightly_job_trains_a_challenger_once(
    fallen: Simulator,
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = service.client(service.key())
    outcomes = tmp_path / "outcomes.csv"
    outcomes.write_text("id,label,event_at\nc1,true,2026-01-02\n")
    monkeypatch.setenv("RANKWRIGHT_URL", service.url)
    monkeypatch.setenv("RANKWRIGHT_API_KEY", service.key())
    monkeypatch.setattr(sys, "argv", [str(NIGHTLY), ALIAS, str(outcomes)])

    def night() -> Any:
        with service.at_work(), pytest.raises(SystemExit) as ended:
            runpy.run_path(str(NIGHTLY), run_name="__main__")
        return ended.value.code

    assert night() == 7
    settings = client.get("/v1/models/m/aliases/live/feedback").json()
    assert settings["shadow"] == client.get("/v1/models/m:2").json()["id"]
    assert settings["monitor"]["period"] == "week"
    assert night() == 7
    assert "1 of them known before" in capsys.readouterr().out
    assert client.get("/v1/models", params={"name": "m"}).json()["data"][0]["version"] == 2
    for alarm in client.get("/v1/alarms").json()["data"]:
        answer = {"reason": "seen", "reference": "renew"}
        client.post(f"/v1/alarms/{alarm['id']}/acknowledge", json=answer)
    assert night() == 0
