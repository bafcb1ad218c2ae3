"""Which media type an answer has: what the caller likes best of what can be made (RFC 9110, §12.5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from app.platform.errors import NotAcceptable

_SHOWN = 100


def choose(request: Request, offers: Sequence[str]) -> str:
    """Return the one of the offers that the Accept header prefers, the first among equals and where it says nothing.

    Raises NotAcceptable, naming the offers, where none of them will do.
    """
    accept = ",".join(request.headers.getlist("accept"))
    ranges = _ranges(accept)
    if not ranges:
        return offers[0]
    best = max(offers, key=lambda offer: _quality(offer, ranges))
    if _quality(best, ranges) > 0.0:
        return best
    raise NotAcceptable(
        f"Accept must allow one of {', '.join(offers)}, got {accept[:_SHOWN]!r}",
        errors=[{"header": "Accept", "detail": f"{offer} can be made"} for offer in offers],
    )


def _ranges(accept: str) -> dict[str, float]:
    """The media ranges with their qualities; parameters beside q say nothing here."""
    ranges: dict[str, float] = {}
    for entry in accept.split(","):
        name, *parameters = (part.strip().lower() for part in entry.split(";"))
        if name:
            said = (text.removeprefix("q=") for text in parameters if text.startswith("q="))
            ranges[name] = max(ranges.get(name, 0.0), _read_quality(next(said, "1")))
    return ranges


def _quality(offer: str, ranges: dict[str, float]) -> float:
    """What the most specific of the ranges says of a media type."""
    media_type = offer.partition(";")[0]
    for name in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if name in ranges:
            return ranges[name]
    return 0.0


def _read_quality(text: str) -> float:
    """From 0 to 1; what is no number counts as 0: such a range is not asked for."""
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0.0 <= quality <= 1.0 else 0.0
