"""A program as a Python file without dependencies."""

import json
from typing import Any

from core.probability import Calibration

from .program import Program

_HEAD = '''"""A ranker that rankwright has exported. It needs no other file and no package.

`score(row)` returns the score of a row, a dict from column names to numbers, strings, dates and None.{of_probability}
A missing value is None or NaN, and so is a category that the model does not know. A value that cannot be read raises
ValueError.
"""

import bisect
import datetime
import decimal
import json
import math
import re
import struct

MODEL = json.loads({model})
'''

_BODY = r'''
for column in MODEL["columns"]:
    if column["words"] is not None:
        column["words"] = {word: code for code, word in enumerate(column["words"])}
for tree in [*MODEL["terms"], *MODEL["rules"]]:
    for split in tree.get("splits", ()):
        split[2] = None if split[2] is None else frozenset(split[2])


def score(row):
    x = [_read(column, row[column["name"]]) for column in MODEL["columns"]]
    terms = [_walk(term, x) if "splits" in term else _line(term, x) for term in MODEL["terms"]]
    total = MODEL["start"]
    if MODEL["terms"] and not any("splits" in term for term in MODEL["terms"]) and None not in x:
        n = len(terms) - len(terms) % 8
        sums = [0.0] * 8
        for k, term in enumerate(terms[:n]):
            sums[k % 8] += term
        while len(sums) > 1:
            sums = [a + b for a, b in zip(sums[::2], sums[1::2])]
        total, terms = total + sums[0], terms[n:]
    for term in terms:
        total += term
        if MODEL["is_float32"]:
            total = struct.unpack("f", struct.pack("f", total))[0]
    return total / MODEL["divisor"] + MODEL["end"]


def _read(column, value):
    if value is None or value != value:
        return None
    if column["words"] is not None:
        return column["words"].get(_word(value))
    if isinstance(value, str) and value.strip(" \t").lower() in column["missing_texts"]:
        return None
    number = _number(column["kind"], value)
    if number is not None and any(low <= number <= high for low, high in column["missing"]):
        return None
    is_flag = column["kind"] == "boolean"
    if number is None or not math.isfinite(number) or (is_flag and number not in (0.0, 1.0)):
        raise ValueError(f"{column['name']} must be a {column['kind']} value, got {value!r}")
    return number


def _word(value):
    """Return how the categories are spelled: 2 for 2.0, and true for True."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    elif isinstance(value, decimal.Decimal):
        value = format(value.normalize(), "f")
    text = str(value).strip(" \t")
    if text.lower() in ("true", "false"):
        return text.lower()
    whole = re.fullmatch(r"(-?(?:0|[1-9][0-9]*))\.(?:0|00|0{4,})", text)
    text = whole[1] if whole else text
    return "0" if text == "-0" else text


def _number(kind, value):
    """Return a number, a boolean, or the seconds of a date since 1970; None for any other value."""
    if isinstance(value, str):
        value = value.strip(" \t")
        if kind == "datetime":
            value = datetime.datetime.fromisoformat(re.sub("[zZ]$", "+00:00", value))
        elif kind == "boolean" and value.lower() in ("true", "false"):
            return float(value.lower() == "true")
        elif not re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", value):
            return None
    if isinstance(value, datetime.date):
        if not isinstance(value, datetime.datetime):
            value = datetime.datetime(value.year, value.month, value.day)
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.timezone.utc)
        since = value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return since.days * 86400 + since.seconds + since.microseconds / 1e6
    return None if isinstance(value, bool) and kind != "boolean" else float(value)


def _walk(tree, x):
    node = 0 if tree["splits"] else -1
    while node >= 0:
        feature, threshold, members, is_above, above, below = tree["splits"][node]
        value = x[feature] if feature < len(x) else _walk(MODEL["rules"][feature - len(x)], x)
        if value is not None:
            is_above = value > threshold if members is None else value in members
        node = above if is_above else below
    return tree["values"][~node]


def _line(line, x):
    value = x[line["feature"]]
    if value is None:
        return line["missing"]
    return min(max(value - line["center"], -line["limit"]), line["limit"]) * line["slope"]
'''

_PROBABILITY = """

def probability(row):
    return _calibrate(score(row))


def _calibrate(score):
    if MODEL["method"] == "isotonic":
        n = len(MODEL["parameters"]) // 2
        knots, heights = MODEL["parameters"][:n], MODEL["parameters"][n:]
        at = bisect.bisect_right(knots, score) - 1
        if at < 0 or at >= n - 1:
            return heights[max(at, 0)]
        rise, run = heights[at + 1] - heights[at], knots[at + 1] - knots[at]
        return min(heights[at] + (score - knots[at]) * min(rise / run, 1e308), heights[at + 1])
    center, scale, below, above, intercept = MODEL["parameters"]
    z = min(max((score - center) / scale, -1e6), 1e6)
    odds = above * max(z, 0.0) + below * min(z, 0.0) + intercept
    odds += (above - below) * math.log1p(math.exp(-abs(z)))
    part = math.exp(-min(abs(odds), 36.0))
    return (1.0 if odds >= 0.0 else part) / (1.0 + part)
"""


def write_python(program: Program, calibration: Calibration | None) -> bytes:
    model: dict[str, Any] = {
        "columns": [column._asdict() for column in program.columns],
        "terms": [term._asdict() for term in program.terms],
        "rules": [rule._asdict() for rule in program.rules],
        "start": program.start,
        "divisor": program.divisor,
        "end": program.end,
        "is_float32": program.is_float32,
    }
    of_probability = ""
    if calibration is not None:
        model["method"] = calibration.method
        model["parameters"] = calibration.parameters.tolist()
        of_probability = "\n`probability(row)` returns the probability that it is positive."
    data = repr(json.dumps(model, separators=(",", ":")))
    text = _HEAD.format(model=data, of_probability=of_probability) + _BODY
    return (text if calibration is None else text + _PROBABILITY).encode()
