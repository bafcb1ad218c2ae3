"""Seams: nothing unarmed, and once what they are armed with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.platform import failpoints
from tests.raising import raises
from tests.sentences import Sentences

ROOT = Path(__file__).parents[3]


def test_a_seam_that_is_not_armed_is_passed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failpoints.reach("claim")
    monkeypatch.setattr(failpoints, "armed", failpoints.parse("join=raise"))
    failpoints.reach("claim")
    assert caplog.messages == []
    with raises(failpoints.FailpointError, "join"):
        failpoints.reach("join")


def test_it_happens_once_at_the_nth_passing_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sentences: Sentences
) -> None:
    monkeypatch.setattr(failpoints, "armed", failpoints.parse("claim=raise@2, adopt=full"))
    failpoints.reach("claim")
    assert caplog.messages == []
    with raises(failpoints.FailpointError, "claim"):
        failpoints.reach("claim")
    failpoints.reach("claim")
    with sentences.raises(OSError):
        failpoints.reach("adopt")
    assert caplog.messages == ["failpoint claim: raise", "failpoint adopt: full"]


def test_a_process_is_killed_at_a_seam() -> None:
    code = "from app.platform import failpoints; failpoints.reach('fit'); failpoints.reach('join'); print('alive')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {failpoints.VARIABLE: "join=kill"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-9, "")
    assert "failpoint join: kill" in done.stderr


@pytest.mark.parametrize("text", ["nowhere=kill", "claim", "claim=explode", "claim=kill@0", "="])
def test_nonsense_is_refused_by_name(text: str, sentences: Sentences) -> None:
    with sentences.raises(ValueError):
        failpoints.parse(text)


def test_every_point_is_a_seam_in_the_code_and_the_other_way_round() -> None:
    sources = [path for folder in ("app", "workers") for path in (ROOT / folder).rglob("*.py")]
    reached = [
        point
        for path in sources
        for point in re.findall(r'failpoints\.reach\("(\w+)"\)', path.read_text())
    ]
    assert sorted(reached) == sorted(failpoints.POINTS)
