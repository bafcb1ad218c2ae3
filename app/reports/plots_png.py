"""Pictures in pixels: our own SVG, rendered with fonts of our own, alike on every machine."""

from __future__ import annotations

from pathlib import Path

_FONTS = Path(__file__).parent / "fonts"


def to_png(svg: str, width: int) -> bytes:
    """Render an SVG picture, `width` pixels wide."""
    import resvg_py

    return resvg_py.svg_to_bytes(
        svg_string=svg,
        width=width,
        skip_system_fonts=True,
        font_dirs=[str(_FONTS)],
        font_family="Roboto",
        sans_serif_family="Roboto",
        background="#ffffff",
    )
