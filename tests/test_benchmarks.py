"""Every benchmark runs in its smallest form, measures something, and fails if there is nothing to measure."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import benchmarks
from benchmarks import portfolio
from benchmarks.__main__ import BENCHMARKS, LEFT_OUT
from tests.long_form import long_form
from tests.waiting import patience

FOLDER = Path(benchmarks.__file__).parent
WITHIN = [name for name, benchmark in BENCHMARKS.items() if benchmark.within]

QUICK = {"lists", "monotone", "reasons"}


def check_metrics(printed: str) -> None:
    """Check that a table has figures, and that none is NaN or infinite."""
    rows = [line for line in printed.splitlines() if line.startswith("|")]
    assert any(re.search(r"\d", line) for line in rows), printed
    assert not re.search(r"\bnan\b|\binf\b", printed), printed


def measure(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a benchmark prints in its smallest form."""
    monkeypatch.setattr(sys, "argv", [name, *BENCHMARKS[name].smallest])
    importlib.import_module(f"benchmarks.{name}").main()
    printed = capsys.readouterr().out
    check_metrics(printed)
    return printed


def test_the_stored_portfolio_has_only_settings_that_its_benchmark_fits() -> None:
    """But for those that were placed by hand, which are other families."""
    table = json.loads(files("core.selection").joinpath("portfolio.json").read_text())
    by_hand = [each for each in table["settings"] if each.get("placed") == "by hand"]
    settings = [each for each in table["settings"] if each not in by_hand]
    assert len(settings) == portfolio.N_SETTINGS
    for each in settings:
        if "parameters" in each:
            assert each == portfolio.as_entry(each["name"])
        else:
            assert each["name"] in portfolio.FEW_FAMILIES
    families = {each.get("name", each["algorithm"]) for each in table["families"]}
    assert {each["name"] for each in by_hand} <= families


def test_every_benchmark_is_in_the_list() -> None:
    found = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("__")}
    assert found == {*BENCHMARKS, *LEFT_OUT}
    text = (FOLDER.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"python -m benchmarks\.(\w+)", text)) <= found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else long_form) for name in WITHIN]
)
def test_the_smallest_form_measures(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Peers are not installed here: each benchmark measures our side alone, and names the missing peers."""
    measure(name, monkeypatch, capsys)


@long_form
def test_scores_are_measured_against_an_endpoint_that_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = measure("http_score", monkeypatch, capsys)
    plain = [line for line in printed.splitlines() if line.startswith("| plain |")]
    assert any(re.fullmatch(r"[\d.]+ µs", cell.strip()) for cell in "".join(plain).split("|"))


@long_form
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((name, it.smallest) for name, it in BENCHMARKS.items() if not it.within),
        (
            "console_pages",
            [
                "--interactions",
                "--models",
                "2",
                "--rows",
                "150",
                "--points",
                "500",
                "--columns",
                "30",
                "--fill",
                "20",
            ],
        ),
        (
            "scale",
            [
                "--workers",
                "1",
                "2",
                "--rows",
                "1500",
                "--features",
                "3",
                "--rounds",
                "3",
                "--systems",
                "stumps",
                "trees",
            ],
        ),
    ],
)
def test_the_smallest_form_of_what_takes_processes(name: str, arguments: list[str]) -> None:
    done = run(name, *arguments)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d", done.stdout)
    assert not re.search(r"\bnan\b", done.stdout)
    assert "| NO |" not in done.stdout  # two forms of a fit did not have the same bytes


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("coverage", ["--trials", "0"], "--trials: must be at least 1, got 0"),
        ("label_noise", ["--drawn"], "there is no table"),
        ("latency", ["--at-most", "1.2"], "--at-most needs --against"),
        ("latency", ["--against", "no-such-commit"], "git has no commit 'no-such-commit'"),
        ("latency", ["--tours", "0"], "--tours: must be at least 1, got 0"),
        ("overhead", ["--repeats", "0", "--pairs", "0"], "nothing would be measured"),
        ("scale", ["--workers", "1", "--rounds", "1"], "--rounds must be at least 2, got 1"),
    ],
)
def test_where_nothing_is_measured_it_ends_with_an_error(
    name: str,
    arguments: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code not in (0, None)
    assert words in capsys.readouterr().err


@long_form
def test_a_commit_that_is_faster_than_permitted_is_an_error() -> None:
    bound = ["--against", "HEAD", "--at-most", "1e-6"]
    done = run("latency", "--submits", "1", "--tours", "1", "--databases", "SQLite", *bound)
    assert done.returncode == 1
    assert "1e-06" in done.stderr


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    return subprocess.run(
        command, cwd=FOLDER.parent, capture_output=True, text=True, check=False, timeout=patience()
    )
