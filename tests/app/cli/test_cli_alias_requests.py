"""Changes of protected aliases from a shell: requested, listed, approved, rejected, withdrawn; and break-glass."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import Result

from tests.app.live_service import Service
from tests.app.reports.alias_request_steps import Team, team

Run = Callable[..., Result]
LIVE = "churn@live"


@pytest.fixture
def us(service: Service) -> Team:
    """A protected alias. Made before the worker of `run` begins."""
    return team(service)


def test_a_change_is_requested_and_approved(us: Team, run: Run) -> None:
    approver = ("--key", us.service.key(scopes=["read", "approve"], name="Bob"))
    refused = run("alias", "churn", "live", us.second, code=1)
    assert "alias-requests" in refused.output
    words = ("alias-requests", "create", LIVE)
    made = json.loads(run(*words, us.second, "--reason", "Better", "--json").stdout)
    assert (made["state"], made["model_id"], made["reason"]) == ("open", us.second, "Better")
    assert made["id"] in run("alias-requests", "list").stdout
    assert made["artifact_sha256"] in run("alias-requests", "show", made["id"]).stdout
    run("alias-requests", "approve", made["id"], code=4)  # one's own
    done = run("alias-requests", "approve", made["id"], *approver)
    assert "revision 3" in done.stdout
    assert us.alias()["model_id"] == us.second
    assert made["id"] not in run("alias-requests", "list").output
    listed = json.loads(run("alias-requests", "list", "--all", "--json").stdout)
    assert [each["state"] for each in listed] == ["approved"]
    assert run("alias-requests", "list", "--state", "rejected").stdout == ""

    back = ("--restore", "1", "--reason", "Worse", "--json")
    rejected = json.loads(run(*words, *back).stdout)["id"]
    run("alias-requests", "reject", rejected, "--reason", "No", *approver)
    assert "No" in run("alias-requests", "show", rejected).stdout
    withdrawn = json.loads(run(*words, *back).stdout)["id"]
    assert "withdrawn" in run("alias-requests", "withdraw", withdrawn).stdout


def test_wrong_words_are_refused(us: Team, run: Run) -> None:
    words = ("alias-requests", "create", LIVE, "--reason", "x")
    for wrong in (
        (),
        (us.second, "--delete"),
        ("--delete", "--restore", "1"),
        ("--delete", "--fpr", "0.1"),
        (us.second, "--fpr", "0.1", "--no-guarantee"),
    ):
        assert run(*words, *wrong, code=2).stdout == "", wrong
    run("alias-requests", "create", "churn", us.second, "--reason", "x", code=2)
    run("alias-requests", "create", LIVE, us.second, code=2)
    run("alias-requests", "list", "--state", "none", code=2)
    assert us.ann.get("/v1/alias-requests").json()["data"] == []


def test_break_glass(us: Team, run: Run) -> None:
    assert (
        "not protected until" in run("break-glass", LIVE, "--reason", "now", "--hours", "2").stdout
    )
    assert us.alias()["break_glass_until"] is not None
    run("alias", "churn", "live", us.second, "--reason", "Back")
    assert us.alias()["history"][0]["break_glass"] is True
    run("break-glass", LIVE, "--end")
    assert us.alias()["break_glass_until"] is None
    for wrong in ((), ("--reason", "x", "--end")):
        run("break-glass", LIVE, *wrong, code=2)
    assert run("break-glass", LIVE, "--reason", "x", "--hours", "5", code=2).stdout == ""
