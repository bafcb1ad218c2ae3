"""A program as one SELECT that SQLite, PostgreSQL and DuckDB read.

Columns and literals are cast to doubles: 0.1 is a decimal in two of the databases. A literal has an exponent, without
which DuckDB would read it as a decimal first. PostgreSQL and DuckDB order NaN above all numbers, and SQLite stores it
as NULL. SQLite orders text above all numbers, too, unless all of it is a number, but casts '2026-01-31' to 2026. So
`x <= MAX`, of a column that is not cast, is true for numbers only. A row with any other text, which the other
databases refuse, has no score.
"""

import math
import re
import sys
from collections.abc import Sequence

from .formats import FLOAT32_SUM
from .program import WHOLE, Column, Line, Program, Split, Tree, Unsupported

MAX_SIZE = 60 * 32
"""Most leaves and lines: DuckDB plans a query of more for seconds."""

_HEAD = """\
-- A ranker that rankwright has exported, for SQLite, PostgreSQL and DuckDB. Write the name of your table in the last
-- line. NULL and NaN are missing values, and so is a category that the model does not know. A row with text where a
-- number or boolean should stand has no score.
SELECT "rows".*,
"""


def write_sql(program: Program) -> bytes:
    if program.is_float32:
        raise Unsupported(FLOAT32_SUM)
    size = program.count_leaves() + len(program.lines)
    if size > MAX_SIZE:
        raise Unsupported(
            f"a query can have at most {MAX_SIZE:,} leaves and columns (60 trees of 32 leaves), got {size:,}"
        )
    for column in program.columns:
        if "\0" in "".join([column.name, *(column.words or ())]):
            raise Unsupported(
                f"SQL has no NUL character, which is in {column.name!r} or its categories"
            )
        if decimal := next(filter(re.compile(_DECIMAL).fullmatch, column.words or ()), None):
            raise Unsupported(
                f"the category {decimal!r} of {column.name!r} is a number that databases write in several ways, such "
                f"as {decimal + '0'!r}"
            )
    writer = _Writer(program)
    terms = [writer.line(t) if isinstance(t, Line) else writer.tree(t) for t in program.terms]
    score = _joined([_double(program.start), *terms], " + ")
    if program.divisor != 1.0:
        score = f"{score} / {_double(program.divisor)}"
    if program.end:
        score = f"{score} + {_double(program.end)}"
    if numbers := [k for k, column in enumerate(program.columns) if column.words is None]:
        unreadable = _joined([writer.is_unreadable(k) for k in numbers], " OR ")
        score = f"CASE WHEN {unreadable} THEN NULL\n  ELSE {score} END"
    return f'{_HEAD}  {score} AS "score"\nFROM "rows" AS "rows"\n'.encode()


class _Writer:
    def __init__(self, program: Program) -> None:
        self.columns, self.rules = program.columns, program.rules

    def tree(self, tree: Tree) -> str:
        """Nest the smaller child of each split: SQLite takes 23 CASEs within each other, and these are log2(leaves)."""
        n_leaves = [1] * len(tree.splits)
        for node in range(len(tree.splits) - 1, -1, -1):  # children come after their parents
            ends = tree.splits[node].above, tree.splits[node].below
            n_leaves[node] = sum(n_leaves[child] if child >= 0 else 1 for child in ends)

        def write(node: int) -> str:
            cases = []
            while node >= 0:
                condition, first, second = self._test(tree.splits[node])
                if first >= 0 and n_leaves[first] > (n_leaves[second] if second >= 0 else 1):
                    condition, first, second = f"({condition}) IS NOT TRUE", second, first
                cases.append(f" WHEN {condition} THEN {write(first)}")
                node = second
            value = _double(tree.values[~node])
            return f"CASE{''.join(cases)} ELSE {value} END" if cases else value

        return write(0 if tree.splits else -1)

    def line(self, line: Line) -> str:
        """The limits are part of the cases, so that no difference overflows: PostgreSQL raises an error then."""
        x, end = self._read(line.feature), line.limit * line.slope
        low, high = line.center - line.limit, line.center + line.limit
        value = f"({x} - {_double(line.center)}) * {_double(line.slope)}"
        cases = [f"WHEN {self._is_number(line.feature)} IS NOT TRUE THEN {_double(line.missing)}"]
        if math.isfinite(low):
            cases.append(f"WHEN {x} < {_double(low)} THEN {_double(-end)}")
        if math.isfinite(high):
            cases.append(f"WHEN {x} > {_double(high)} THEN {_double(end)}")
        return f"CASE {' '.join(cases)} ELSE {value} END"

    def _test(self, split: Split) -> tuple[str, int, int]:
        """Return a condition, the child of the rows that meet it, and that of all others, missing values included."""
        x = self._read(split.feature)
        ends = split.above, split.below
        if split.missing_above:
            ends = ends[::-1]
        if split.members is not None:
            words = self.columns[split.feature].words or ()
            chosen = set(split.members)
            texts = [
                _text(word) for k, word in enumerate(words) if (k in chosen) != split.missing_above
            ]
            return f"{x} IN ({', '.join(texts)})" if texts else _NEVER, *ends
        if split.missing_above and split.threshold == -math.inf:
            return _NEVER, *ends
        bounds = []
        if split.missing_above:
            bounds.append(f"{x} <= {_double(split.threshold)}")
        elif split.threshold > -math.inf:
            bounds.append(f"{x} > {_double(split.threshold)}")
        if split.feature < len(self.columns):
            bounds.append(self._is_number(split.feature))
        return " AND ".join(bounds or ["1 = 1"]), *ends

    def _is_number(self, feature: int) -> str:
        """Return the condition that a column has a number that is not missing."""
        column = self.columns[feature]
        x = self._read(feature) if column.kind == "boolean" else _name(column)
        ranges = [
            f"({self._read(feature)} < {_double(low)} OR {self._read(feature)} > {_double(high)})"
            for low, high in column.missing
        ]
        return f"({' AND '.join([f'{x} <= {_MAX}', *ranges])})"

    def is_unreadable(self, feature: int) -> str:
        """Return the condition that a column has neither a number nor a missing value; NULL if it is missing."""
        column = self.columns[feature]
        x = self._read(feature) if column.kind == "boolean" else _name(column)
        known = ", ".join(map(_text, dict.fromkeys([*column.missing_texts, "", "nan"])))
        return f"({x} <= {_MAX}) IS NOT TRUE AND LOWER({_tidy(column)}) NOT IN ({known})"

    def _read(self, feature: int) -> str:
        if feature >= len(self.columns):
            return self.tree(self.rules[feature - len(self.columns)])
        column: Column = self.columns[feature]
        if column.words is None and column.kind == "boolean":
            flags = " ".join(f"WHEN '{text}' THEN {_double(x)}" for text, x in _FLAGS.items())
            return f"CASE LOWER({_tidy(column)}) {flags} END"
        if column.words is None:
            return f"CAST({_name(column)} AS DOUBLE PRECISION)"
        text = _tidy(column)
        if {"true", "false"}.intersection(column.words):
            text = f"CASE LOWER({text}) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE {text} END"
        if any(re.fullmatch(WHOLE, word) for word in column.words):
            point = f"LTRIM(RTRIM({text}, '0'), '-0123456789') = '.'"
            text = f"CASE WHEN {point} THEN RTRIM(RTRIM({text}, '0'), '.') ELSE {text} END"
        return text


def _name(column: Column) -> str:
    name = column.name.replace('"', '""')
    return f'"rows"."{name}"'


def _tidy(column: Column) -> str:
    return f"TRIM(CAST({_name(column)} AS TEXT), ' \t')"


def _joined(terms: Sequence[str], operator: str) -> str:
    """Join in pairs: SQLite ends at 1,000 terms in a row, and DuckDB's time is quadratic in them."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    first, second = _joined(terms[:middle], operator), _joined(terms[middle:], operator)
    return f"({first}\n {operator}{second})"


def _double(value: float) -> str:
    digits = repr(value)
    return f"CAST({digits if 'e' in digits else digits + 'e0'} AS DOUBLE PRECISION)"


_DECIMAL = r"[+-]?[0-9]*\.[0-9]+|[+-]?[0-9]+\.[0-9]*|[+-]?[0-9.]+[eE][+-]?[0-9]+"
"""A word that may be a number with a fraction or an exponent."""
_FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
"""How databases write booleans as text."""
_NEVER = "1 = 0"
_MAX = _double(sys.float_info.max)


def _text(word: str) -> str:
    """Write a backslash as the first character of '\\\\', which is one or two of them: PostgreSQL reads it as an escape
    unless standard_conforming_strings is on.
    """
    quoted = word.replace("'", "''").replace("\\", r"' || SUBSTR('\\', 1, 1) || '")
    return f"'{quoted}'"
