"""Seams: nothing unarmed, and once what they are armed with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.platform import failpoints as faults

ROOT = Path(__file__).parents[3]


def test_a_seam_that_is_not_armed_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    faults.reach("claim")
    monkeypatch.setattr(faults, "_armed", faults.parse("join=raise"))
    faults.reach("claim")


def test_it_happens_once_at_the_nth_passing_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(faults, "_armed", faults.parse("claim=raise@2, adopt=full"))
    faults.reach("claim")
    assert caplog.messages == []
    with pytest.raises(faults.InjectedFault, match="fault at claim"):
        faults.reach("claim")
    faults.reach("claim")
    with pytest.raises(OSError, match="No space left on device"):
        faults.reach("adopt")
    assert caplog.messages == ["fault at claim: raise", "fault at adopt: full"]


def test_a_process_is_killed_at_a_seam() -> None:
    code = "from app.platform import failpoints as faults; faults.reach('fit'); faults.reach('join'); print('alive')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {faults.VARIABLE: "join=kill"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-9, "")
    assert "fault at join: kill" in done.stderr


@pytest.mark.parametrize("text", ["nowhere=kill", "claim", "claim=explode", "claim=kill@0", "="])
def test_nonsense_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=f"RANKWRIGHT_FAULTS must hold .*got {text!r}"):
        faults.parse(text)


def test_every_point_is_a_seam_in_the_code_and_the_other_way_round() -> None:
    sources = [path for folder in ("app", "workers") for path in (ROOT / folder).rglob("*.py")]
    reached = [
        point
        for path in sources
        for point in re.findall(r'faults\.reach\("(\w+)"\)', path.read_text())
    ]
    assert sorted(reached) == sorted(faults.POINTS)
