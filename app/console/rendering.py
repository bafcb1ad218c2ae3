"""The Jinja environment of the console, and the filters that format values in its templates."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import count as count_up
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup, escape

from app import measures
from app.console.words import PAGES, sentence, state, title
from app.http.static import StaticFiles
from app.platform.ids import time_of
from app.platform.templates import load_templates
from app.platform.text import (
    cross_validation_in_words,
    objective_in_words,
    validation_in_words,
)

if TYPE_CHECKING:
    from jinja2 import Environment
    from rankwright.types import Job

FOLDER = Path(__file__).parent
STATIC = StaticFiles(FOLDER / "static", "/console/static")
DASH = "–"
_TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)T(?P<time>\d\d:\d\d)(:00|(?P<seconds>:\d\d(\.\d+)?))?Z", re.ASCII
)


@cache
def environment() -> Environment:
    made = load_templates(FOLDER / "templates")
    made.filters.update(
        number=number,
        count=count,
        rows=rows,
        percent=percent,
        when=when,
        exact=exact,
        uploaded=uploaded,
        size=size,
        duration=duration,
        plain=plain,
        clock=clock,
        run_time=run_time,
        title=title,
        metric=measures.metric,
        objective=objective_in_words,
        validation=validation_in_words,
        folds=cross_validation_in_words,
        measures=measures.measures,
        state=state,
        p_value=p_value,
        points=points,
        linked=linked,
        sentence=sentence,
        segment=lambda text: quote(str(text), safe=""),
    )
    numbers = count_up(1)
    made.globals.update(
        static=STATIC.url,
        METRICS=measures.METRICS,
        QUESTIONS=measures.QUESTIONS,
        area_label=measures.area,
        # The id of an element that a page may have several times, also in fragments that are loaded later.
        new_id=lambda: f"u{next(numbers)}",
        service_time=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
    return made


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with `digits` decimals if it is between 0.001 and 1000; a dash for None, infinity and NaN.

    Where a comma is the decimal mark, 1.234 and 400.000 are whole numbers. So numbers of 1 and above have no three
    decimals, and those of 1000 and above have commas between thousands. decide.js has the same rule.

    Examples
    --------
    >>> [number(value) for value in (0.78912, 0.99996, 1.2345, 400.0, 1234.56, 400000.0, 8.2949e-05)]
    ['0.789', '1.00', '1.23', '400.00', '1,234.6', '400,000', '0.0000829']
    """
    if value is None or not math.isfinite(value):
        return DASH
    size = abs(value)
    if value == 0 or (size >= 1e-3 and float(f"{size:.{digits}f}") < 1.0):
        return f"{value:.{digits}f}"
    if size < 1e-3:  # as a script writes it: without an exponent down to a millionth
        exact = Decimal(f"{value:.{digits}g}")
        return f"{exact:f}" if size >= 1e-6 else f"{exact:g}".lower()
    if size >= 1e15:
        return f"{value:.{digits}g}"
    if size < 999.995:
        return f"{value:.{2 if digits == 3 else digits}f}"
    return f"{value:,.{1 if size < 9999.95 else 0}f}"


_ID = re.compile(rf"\b({'|'.join(PAGES)})_([0-9a-f]{{28}})([0-9a-f]{{4}})\b")


def linked(words: str, root: str) -> str:
    """Link ids of resources, shortened to their last characters. `root` is the path prefix of the service."""
    link = Markup('<a class="id" href="{}/console/{}/{}" title="{}">…{}</a>')
    parts: list[str] = []
    at = 0
    for found in _ID.finditer(words):
        parts.append(escape(words[at : found.start()]))
        parts.append(link.format(root, PAGES[found[1]], found[0], found[0], found[3]))
        at = found.end()
    return Markup("").join([*parts, escape(words[at:])])


def p_value(value: float | None) -> str:
    """Very small ones are "< 0.0001"; None is a dash."""
    if value is None or not math.isfinite(value):
        return DASH
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}" if value < 0.001 else f"{value:.3f}"


def points(value: float) -> str:
    """Round to a tenth, with a sign unless zero."""
    shown = f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")
    return "0.0" if shown[1:] == "0.0" else shown


def count(value: float | None) -> str:
    return DASH if value is None else f"{value:,.0f}"


def rows(value: float | None) -> str:
    """A share of a list may be a fraction of a row: "< 1"."""
    return "< 1" if value is not None and 0 < value < 1 else count(value)


def percent(fraction: float | None, digits: int = 1) -> str:
    """Return a fraction as a percentage."""
    return DASH if fraction is None else measures.percent(fraction, digits)


def plain(value: object) -> str:
    """Whole numbers have no decimal point, and times no letters."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and (found := _TIME.fullmatch(value)):
        return f"{found['day']} {found['time']}{found['seconds'] or ''}"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def when(moment: str | None) -> str:
    """Return a `<time>` relative to now ("3 minutes ago"), with the exact time as title; console.js updates it."""
    if moment is None:
        return DASH
    at = datetime.fromisoformat(moment).astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(timespec="milliseconds"), exact(moment), ago(at, datetime.now(UTC))
    )


def uploaded(dataset_id: str) -> str:
    """Use the id: it distinguishes datasets of the same name, also deleted ones."""
    at = datetime.fromtimestamp(time_of(dataset_id), UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def exact(moment: str) -> str:
    at = datetime.fromisoformat(moment).astimezone(UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(at: datetime, now: datetime) -> str:
    """Return the distance in the largest unit that it reaches; beyond 30 days, the day in UTC.

    What is past has whole units, as an age. What is to come is rounded: seven days less a second are "in 7 days".
    console.js has the same rule, which a test compares with this one.
    """
    seconds = (now - at).total_seconds()
    past, seconds = seconds >= 0, abs(seconds)
    if seconds < 60:
        return "just now" if past else "in less than a minute"
    minutes, hours, days = (
        math.floor(seconds / length + (0.0 if past else 0.5)) for length in (60, 3600, 86_400)
    )
    whole, unit = (
        (minutes, "minute") if minutes < 60 else (hours, "hour") if hours < 24 else (days, "day")
    )
    if unit == "day" and whole > 30:
        return at.astimezone(UTC).strftime("%Y-%m-%d")
    words = f"{whole} {unit}{'' if whole == 1 else 's'}"
    return f"{words} ago" if past else f"in {words}"


def date(seconds: float) -> str:
    """Return UTC to the minute; at midnight only the day."""
    try:
        at = datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
    except OverflowError:  # typed times may be outside the years 1 to 9999
        return f"{seconds:.6g} s"
    return at.isoformat(" ", "minutes")[: 10 if seconds % 86_400 == 0 else 16]


def clock(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%H:%M:%S")


def run_time(job: Job) -> str:
    if job.started_at is None or job.finished_at is None:
        return DASH
    started, ended = map(datetime.fromisoformat, (job.started_at, job.finished_at))
    return duration((ended - started).total_seconds())


def size(bytes_: float | None) -> str:
    if bytes_ is None:
        return DASH
    for unit in ("B", "kB", "MB", "GB"):
        if bytes_ < 1000:
            return f"{bytes_:.0f} {unit}" if unit == "B" else f"{bytes_:.1f} {unit}"
        bytes_ /= 1000
    return f"{bytes_:.1f} TB"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return DASH
    if 0 < seconds < 0.05:
        return "less than 0.1 s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
