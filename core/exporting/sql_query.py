"""A program as one SELECT that SQLite, PostgreSQL and DuckDB read.

Columns and literals are cast to doubles: 0.1 is a decimal in two of the databases. A literal has an exponent, without
which DuckDB would read it as a decimal first. PostgreSQL and DuckDB order NaN above all numbers, and SQLite stores it
as NULL. So `x <= MAX` is true for numbers only.
"""

import math
import sys
from collections.abc import Sequence

from .formats import FLOAT32_SUM
from .program import Column, Line, Program, Split, Tree, Unsupported

MAX_SIZE = 60 * 32
"""Most leaves and lines: DuckDB plans a query of more for seconds."""

_HEAD = """\
-- A ranker that rankwright has exported, for SQLite, PostgreSQL and DuckDB. Write the name of your table in the last
-- line. NULL and NaN are missing values, and so is a category that the model does not know.
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
    writer = _Writer(program)
    terms = [writer.line(t) if isinstance(t, Line) else writer.tree(t) for t in program.terms]
    score = _sum([_double(program.start), *terms])
    if program.divisor != 1.0:
        score = f"{score} / {_double(program.divisor)}"
    if program.end:
        score = f"{score} + {_double(program.end)}"
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
        text = (
            f"CASE WHEN {x} < {_double(low)} THEN {_double(-end)}" if math.isfinite(low) else "CASE"
        )
        if not math.isfinite(high):
            high = sys.float_info.max
        text += f" WHEN {x} <= {_double(high)} THEN ({x} - {_double(line.center)}) * {_double(line.slope)}"
        return f"{text} WHEN {x} <= {_MAX} THEN {_double(end)} ELSE {_double(line.missing)} END"

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
        bounds = [f"{x} <= {_double(split.threshold)}"]
        if not split.missing_above:
            bounds = [f"{x} <= {_MAX}"]
            if split.threshold > -math.inf:
                bounds.insert(0, f"{x} > {_double(split.threshold)}")
        column = self.columns[split.feature] if split.feature < len(self.columns) else None
        if column is not None and column.missing_low <= column.missing_high:
            low, high = _double(column.missing_low), _double(column.missing_high)
            bounds.append(f"({x} < {low} OR {x} > {high})")
        return " AND ".join(bounds), *ends

    def _read(self, feature: int) -> str:
        if feature >= len(self.columns):
            return self.tree(self.rules[feature - len(self.columns)])
        column: Column = self.columns[feature]
        name = column.name.replace('"', '""')
        kind = "DOUBLE PRECISION" if column.words is None else "TEXT"
        return f'CAST("rows"."{name}" AS {kind})'


def _sum(terms: Sequence[str]) -> str:
    """Add in pairs: SQLite ends at 1,000 terms in a row, and DuckDB's time is quadratic in them."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return f"({_sum(terms[:middle])}\n  + {_sum(terms[middle:])})"


def _double(value: float) -> str:
    digits = repr(value)
    return f"CAST({digits if 'e' in digits else digits + 'e0'} AS DOUBLE PRECISION)"


_NEVER = "1 = 0"
_MAX = _double(sys.float_info.max)


def _text(word: str) -> str:
    quoted = word.replace("'", "''")
    return f"'{quoted}'"
