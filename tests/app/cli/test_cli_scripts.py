"""What a script that calls `rankwright` relies on: exit codes, errors as JSON, standard input, completion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import commands
from app.jobs import execution
from app.platform.errors import Invalid
from tests.app.cli.conftest import Run
from tests.app.live_service import Service, table
from tests.long_form import long_form, rest

ONE_FIT = ("--no-baselines", "--holdout", "0.25")


def error_of(said: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said)["error"]
    return found


def test_a_script_can_tell_failures_apart(
    service: Service, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "people.csv"
    path.write_text(table())
    bad = error_of(run("upload", path, "--label", "gone", "--json", code=2).stderr)
    assert bad["exit_code"] == 2
    assert "'gone'" in bad["detail"]
    assert bad["errors"][0]["column"] == "gone"
    dataset = run("upload", path, "--label", "left").output.split()[0]
    wrong = error_of(run("train", dataset, "--set", "n_rounds=0", "--json", code=2).stderr)
    assert (wrong["status"], wrong["errors"][0]["pointer"]) == (422, "/algorithm/n_rounds")
    for words in (("show", "nobody"), ("train", "nothing"), ("score", "nobody", "age=1")):
        assert error_of(run(*words, "--json", code=3).stderr)["exit_code"] == 3
    for key in ("rw_wrong", service.key(scopes=["score"])):
        refused = error_of(run("show", "churn", "--key", key, "--json", code=4).stderr)
        assert refused["status"] in (401, 403)
    away = run("show", "churn", "--url", "http://127.0.0.1:9", "--json", code=5)
    assert error_of(away.stderr)["exit_code"] == 5
    with monkeypatch.context() as patch:  # a job that is cancelled may end before

        def refuse(*_: object) -> None:
            raise Invalid("the rows are refused")

        patch.setattr(execution, "run", refuse)
        failed = error_of(run("train", dataset, "--json", code=6).stderr)
    assert (failed["exit_code"], "the rows are refused" in failed["detail"]) == (6, True)
    assert run("train", "--algorithm", code=2).stdout == ""
    for typed in (
        ("upload",),
        ("upload", tmp_path / "gone.csv"),
        ("train", dataset, "--priority", "x"),
    ):
        assert error_of(run(*typed, "--json", code=2).stderr)["exit_code"] == 2


@long_form
def test_a_job_has_all_that_a_request_can_say(service: Service, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(table())
    dataset = run("upload", path, "--label", "left").output.split()[0]
    options = (
        "--label-noise",
        0.1,
        "--priority",
        3,
        "--timeout-seconds",
        600,
        "--tag",
        "team=risk",
    )
    asked = ("--algorithm", "sampled_martirank", *ONE_FIT, *options, "--tag", "night=1")
    run("train", dataset, *asked)
    (job,) = service.client(service.key()).get("/v1/jobs").json()["data"]
    assert (job["label_noise"], job["priority"], job["timeout_seconds"]) == (0.1, 3, 600)
    assert job["tags"] == {"team": "risk", "night": "1"}
    for option, value in (("label-noise", 0.7), ("priority", 10**9), ("timeout", -1)):
        run("train", dataset, f"--{option}", value, code=2)
    assert "name=value" in run("train", dataset, "--tag", "risk", code=2).stderr


@pytest.mark.parametrize("head", [b"", *rest(b"\x1f\x8b")], ids=["plain", "gzip"])
def test_tables_come_by_standard_input(service: Service, run: Run, head: bytes) -> None:
    import gzip

    rows = table().encode()
    features = "\n".join(line.rpartition(",")[0] for line in table().splitlines()).encode()
    if head:
        rows, features = gzip.compress(rows), gzip.compress(features)
    address = {"RANKWRIGHT_URL": service.url, "RANKWRIGHT_API_KEY": service.key()}

    def pipe(data: bytes, *words: str) -> str:
        done = CliRunner(env=address).invoke(commands(), [*words], input=data)
        assert done.exit_code == 0, done.output
        return done.stdout

    dataset = pipe(rows, "upload", "-", "--label", "left", "--name", "people").split()[0]
    run("train", dataset, "--name", "churn", "--set", "n_rounds=3", *ONE_FIT)
    lines = pipe(features, "score", "churn", "-").splitlines()
    assert (len(lines), lines[0]) == (121, "score,fpr,tpr,probability")
    assert pipe(features, "score", "churn", "--file", "-").splitlines() == lines
    objects = [
        json.loads(line)
        for line in pipe(features, "score", "churn", "-", "--json").split("\n")
        if line
    ]
    assert [str(each["score"]) for each in objects] == [line.split(",")[0] for line in lines[1:]]
    keyed = "\n".join(
        f"{'key' if k == 0 else k},{line}" for k, line in enumerate(table(3).splitlines())
    )
    for more in ((), ("--top", "3")):  # at once, or by a job
        said = pipe(keyed.encode(), "score", "churn", "-", "--json", "--id", "key", *more)
        assert {json.loads(line)["id"] for line in said.splitlines()} == {"1", "2", "3"}
    one = run("score", "churn", "age=1", "income=2", "score 1=", "key=k7", "--id", "key")
    assert json.loads(one.stdout)["id"] == "k7"
    kept = pipe(rows, "score", "churn", "-", "--json", "--keep", "left", "--top", "2").splitlines()
    best = json.loads(kept[0])
    assert (len(kept), best["left"] in ("yes", "no"), best["score"]) == (
        *(2, True),
        max(each["score"] for each in objects),
    )


def test_scores_as_json_go_to_standard_output_alone(run: Run, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("age\n1\n")
    assert "--json prints" in run("score", "m", rows, "--json", "--output", "a.csv", code=2).stderr


def test_a_shell_can_complete_commands_and_options() -> None:
    for typed, expected in (("tra", "train"), ("train --label-n", "--label-noise")):
        words = f"rankwright {typed}"
        asked = {
            "_RANKWRIGHT_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        found = CliRunner(env=asked).invoke(commands(), [], prog_name="rankwright")
        assert expected in found.output.split()
