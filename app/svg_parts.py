"""Text, colours and frame of self-contained SVG pictures."""

import html
import re

INK, SOFT, FAINT, LINE = "#1c2733", "#52606d", "#9aa5b1", "#e4e7eb"

# Characters that XML 1.0 cannot contain.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# From few positives to many, in equal steps of lightness; a reader who cannot tell red from green can tell them apart.
_COLOURS = ((33, 102, 172), (146, 197, 222), (238, 228, 200), (244, 165, 130), (178, 24, 43))


def replace_unprintable(words: str) -> str:
    """Leave out characters that XML and HTML cannot contain."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", words)


def escape(words: str) -> str:
    return html.escape(replace_unprintable(words))


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: float,
    colour: str = INK,
    anchor: str = "start",
    weight: int = 400,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(words)}</text>'
    )


def start(width: float, height: float, title: str) -> str:
    """The background is white; `</svg>` ends the document."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="system-ui, sans-serif" role="img">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>'
    )


def shade(position: float) -> str:
    """From 0 (few positives) to 1 (many)."""
    step = position * (len(_COLOURS) - 1)
    low = min(int(step), len(_COLOURS) - 2)
    parts = (
        round(a + (b - a) * (step - low))
        for a, b in zip(_COLOURS[low], _COLOURS[low + 1], strict=True)
    )
    return "#" + "".join(f"{part:02x}" for part in parts)


def scale(x: float, y: float, low: str, middle: str, high: str, label: str) -> list[str]:
    """Draw all colours, with text at the ends, at the middle and beside."""
    steps = 40
    bar = [
        f'<rect x="{x + 5 * i:.1f}" y="{y}" width="5.3" height="10" '
        f'fill="{shade(i / (steps - 1))}"/>'
        for i in range(steps)
    ]
    marks = [
        text(x + 5 * steps * at, y + 24, words, size=11, colour=SOFT, anchor=anchor)
        for at, words, anchor in ((0.0, low, "start"), (0.5, middle, "middle"), (1.0, high, "end"))
    ]
    return [*bar, *marks, text(x + 5 * steps + 14, y + 10, label, size=11, colour=SOFT)]
