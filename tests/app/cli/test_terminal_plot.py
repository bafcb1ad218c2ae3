"""The terminal plot puts dots where the curves run, and says what its axes are."""

from __future__ import annotations

import pytest
from rankwright import plots
from rankwright.plots import FPR, TPR, Axis, Line, Plot
from rankwright.terminal_plot import to_terminal


def roc(fpr: list[float], tpr: list[float]) -> Plot:
    points = list(zip(fpr, tpr, strict=True))
    return Plot("a < b & c", [Line("AUC 0.9", points)], ["AUC 0.9"])


def canvas(text: str) -> list[str]:
    return [line.partition("┤")[2].ljust(48, "⠀") for line in text.splitlines() if "┤" in line]


def dot(text: str, fpr: float, tpr: float) -> bool:
    """Is the dot nearest to (fpr, tpr) set?"""
    rows = canvas(text)
    row, column = round((1 - tpr) * (4 * len(rows) - 1)), round(fpr * 95)
    bits = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
    return bool((ord(rows[row // 4][column // 2]) - 0x2800) & bits[row % 4][column % 2])


def test_perfect_ranker_hugs_the_corner() -> None:
    text = to_terminal(roc([0, 0, 1], [0, 1, 1]))
    assert all(dot(text, 0.0, tpr / 20) for tpr in range(21))
    assert all(dot(text, fpr / 20, 1.0) for fpr in range(21))
    assert not dot(text, 0.21, 0.79)


def test_a_step_is_drawn_as_a_step_and_a_tie_as_a_slope() -> None:
    step = to_terminal(roc([0, 0.5, 0.5, 1], [0, 0, 1, 1]))
    assert dot(step, 0.5, 0.5)
    assert dot(step, 0.31, 0.0)
    assert not dot(step, 0.31, 0.62)
    slope = to_terminal(roc([0, 0.5, 1], [0, 1, 1]))
    assert dot(slope, 24 / 95, 48 / 95)


def test_terminal_plot_names_axes_title_and_legend() -> None:
    text = to_terminal(roc([0, 1], [0, 1]))
    assert text.splitlines()[0] == roc([], []).title
    assert "AUC 0.9" in text
    *_, ends, words = text.splitlines()
    assert ends.split() == ["0", "0.5", "1"]
    assert words.strip().partition(";")[::2] == (FPR, " dotted: random")
    assert f"\n{TPR}\n" in text


def test_every_kind_of_plot_has_its_own_axes() -> None:
    """Of a histogram both outlines, the second dashed; of others what chance does, where it is no diagonal."""
    spread = plots.histogram(
        [(-4.0, -2.0, 0.2), (-2.0, 0.0, 0.8)], [(-4.0, -2.0, 0.6), (-2.0, 0.0, 0.4)], "Scores"
    )
    text = to_terminal(spread)
    assert text.splitlines()[-2].split() == ["-4", "-2", "0"]
    assert text.splitlines()[-1].split("; ")[1:] == ["line: positives", "dashed: negatives"]
    tops = [
        float(row.split("┤")[0])
        for row in text.splitlines()
        if row.split("┤")[0].strip(" └─") and "┤" in row
    ]
    assert tops == pytest.approx([0.84, 0.42, 0.0])
    of = 1.05 * 0.8
    whole = [dot(text, 0.55 + k / 100, 0.8 / of) for k in range(40)]
    dashes = [dot(text, 0.02 + k / 100, 0.6 / of) for k in range(40)]
    assert all(whole)
    assert 10 < sum(dashes) < 30
    found = to_terminal(plots.precision_recall([(0.1, 0.9), (1.0, 0.3)], 0.25))
    assert found.rstrip().endswith("random (prevalence 0.25)")
    assert sum(dot(found, k / 95, 0.25) for k in range(96)) > 10
    assert not any(dot(found, k / 95, k / 95) for k in range(20))
    # Scores as far apart as numbers can be.
    far = plots.histogram([(-1.7e308, 1.7e308, 1.0)], [(-1.7e308, 1.7e308, 1.0)])
    assert to_terminal(far).splitlines()[-2].split() == ["-1.7e+308", "0", "1.7e+308"]
    assert len(far.x.ticks(5)) in range(2, 7)
    # What lies beyond an axis is drawn at its end, and an axis may be logarithmic.
    beyond = Plot("", [Line("", [(0.0, 0.0), (1.0, 2.0)])], x=Axis(0.01, 1.0, log=True))
    assert to_terminal(beyond).splitlines()[-2].split() == ["0.01", "0.1", "1"]
    assert dot(to_terminal(beyond), 1.0, 1.0)
