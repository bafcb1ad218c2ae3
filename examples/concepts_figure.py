"""Draw the two pictures of docs/concepts.md: `python -m examples.concepts_metric`.

`concepts-list.svg` shows twenty ranked rows and a cutoff. `concepts-roc.svg` shows the ROC curve of these rows,
the same cutoff and the window of a partial AUC.
"""

from __future__ import annotations

from pathlib import Path

METRICS = Path("docs/figures")
POSITIVE = (1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0)
"""Classes of the rows, the highest score first."""
FLAGGED, WINDOW = 5, 0.2
BLUE, GREY, RED, DARK, PALE, AMBER = (
    *("#1f6feb", "#c5ced6", "#c0392b"),
    *("#1c2733", "#52606d", "#f2b705"),
)


def _text(x: float, y: float, text: str, fill: str = PALE, more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{fill}" font-size="14" {more}>{text}</text>'


def _svg(width: int, height: int, title: str, lines: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="system-ui, sans-serif" role="img">'
    )
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{title}</title>", background, *lines, "</svg>", ""])


def draw_list() -> str:
    """Return the ranked list as SVG."""
    lines = [_text(20, 28, "Rows in the order of the ranker, highest score first", DARK)]
    for place, positive in enumerate(POSITIVE):
        x = 20 + 34 * place
        lines.append(
            f'<rect x="{x}" y="48" width="28" height="44" rx="4" fill="{BLUE if positive else GREY}"/>'
        )
    at = 20 + 34 * FLAGGED - 3
    caught = sum(POSITIVE[:FLAGGED])
    lines += [
        f'<path d="M{at} 40V122" stroke="{RED}" stroke-width="2"/>',
        _text(at - 8, 118, "flagged", RED, 'text-anchor="end"'),
        _text(at + 8, 118, "cutoff", RED),
        _text(
            20,
            150,
            f"Blue: positive. {caught} of {sum(POSITIVE)} positives are caught (TPR {caught / sum(POSITIVE):.2f}), "
            f"{FLAGGED - caught} of {len(POSITIVE) - sum(POSITIVE)} negatives is a false alarm (FPR "
            f"{(FLAGGED - caught) / (len(POSITIVE) - sum(POSITIVE)):.2f}).",
        ),
    ]
    return _svg(720, 170, "Twenty rows ranked by score, the first five flagged", lines)


def draw_roc() -> str:
    """Return the ROC curve of the same rows as SVG."""
    size, left, top = 320, 60, 30
    positives, negatives = sum(POSITIVE), len(POSITIVE) - sum(POSITIVE)

    def place(fpr: float, tpr: float) -> tuple[float, float]:
        return left + size * fpr, top + size * (1 - tpr)

    corners, caught, alarms = [(0.0, 0.0)], 0, 0
    for positive in POSITIVE:
        caught, alarms = caught + positive, alarms + 1 - positive
        corners.append((alarms / negatives, caught / positives))
    curve = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*corner) for corner in corners))
    start, end = place(0, 0), place(1, 0)
    inside = [corner for corner in corners if corner[0] <= WINDOW]
    window = [*inside, (WINDOW, inside[-1][1]), (WINDOW, 0.0)]
    shaded = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*corner) for corner in window))
    cutoff = place(*corners[FLAGGED])
    lines = [
        f'<polygon points="{curve} {end[0]:.1f},{end[1]:.1f}" fill="{BLUE}" fill-opacity="0.12"/>',
        f'<polygon points="{shaded}" fill="{AMBER}" fill-opacity="0.45"/>',
        f'<rect x="{left}" y="{top}" width="{size}" height="{size}" fill="none" stroke="#9aa5b1"/>',
        f'<path d="M{start[0]} {start[1]}L{left + size} {top}" stroke="#9aa5b1" stroke-dasharray="5 4"/>',
        f'<polyline points="{curve}" fill="none" stroke="{BLUE}" stroke-width="2.5"/>',
        f'<circle cx="{cutoff[0]:.1f}" cy="{cutoff[1]:.1f}" r="6" fill="#ffffff" stroke="{RED}" stroke-width="2.5"/>',
        _text(cutoff[0] + 12, cutoff[1] + 18, "cutoff", RED),
        _text(left + size / 2 - 70, top + size + 32, "False positive rate (FPR)"),
        _text(
            20,
            top + size / 2 + 70,
            "True positive rate (TPR)",
            PALE,
            'transform="rotate(-90 20 260)"',
        ),
        _text(left + size + 20, top + 40, "Blue area: AUC", DARK),
        _text(left + size + 20, top + 64, f"Yellow area: partial AUC on [0, {WINDOW}]", DARK),
        _text(left + size + 20, top + 88, "Dashed line: random order, AUC 0.5", DARK),
    ]
    return _svg(660, 400, "ROC curve of twenty rows, with its area, a window and a cutoff", lines)


if __name__ == "__main__":
    (METRICS / "concepts-list.svg").write_text(draw_list(), encoding="utf-8")
    (METRICS / "concepts-roc.svg").write_text(draw_roc(), encoding="utf-8")
