"""The terminal plot puts dots where the curve runs."""

from __future__ import annotations

from rankwright.roc_plot import Line, RocPlot, to_terminal


def roc(fpr: list[float], tpr: list[float]) -> RocPlot:
    points = list(zip(fpr, tpr, strict=True))
    return RocPlot("a < b & c", [Line("AUC 0.9", points)], ["AUC 0.9"])


def canvas(text: str) -> list[str]:
    return [line[7:55].ljust(48, "⠀") for line in text.splitlines() if "┤" in line]


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
    assert dot(slope, 0.25, 0.5)


def test_terminal_plot_names_axes_title_and_legend() -> None:
    text = to_terminal(roc([0, 1], [0, 1]))
    assert text.startswith("a < b & c\n")
    assert "AUC 0.9" in text
    assert text.splitlines()[-1].split() == ["TPR", "0.0", "0.5", "1.0", "FPR"]
