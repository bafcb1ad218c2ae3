"""Break the code in many places, one at a time, and see whether the tests of its room fail. Run by hand; takes hours.

    python -m tools.mutate run caught.json --places 300
    python -m tools.mutate run before.json --places 300 --tests COMMIT     # the same places, with the tests of a commit
    python -m tools.mutate compare before.json caught.json

The places are drawn by a seed from the rooms of `ROOMS`: a comparison, a sum, an `and`, a `not` or a whole number that
becomes another. Each is tried in a copy of the checkout, with the tests of its room, those that name its module first.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("core/metrics", "core/trees", "app/jobs", "app/access", "app/scoring")
SECONDS = 900
"""How long the tests of a place may take: some compile kernels. A place that makes them hang counts as caught."""

OTHER: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.And: "or",
    ast.Or: "and",
}


@dataclass(frozen=True)
class Place:
    """Text between two offsets of a file, and what stands there instead."""

    path: str
    start: int
    end: int
    text: str

    def broken(self, source: bytes) -> bytes:
        """Return the source with the place changed."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def places_of(path: Path) -> Iterator[Place]:
    """Yield the places of a module."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        return begin, starts[node.end_lineno - 1] + node.end_col_offset

    def written(node: ast.expr) -> str:
        begin, end = span(node)
        return source[begin:end].decode()

    name = str(path.relative_to(ROOT))
    tree = ast.parse(source)
    # The 1 of float64[::1], the type of an array in a kernel: with another step it takes the same arrays.
    steps = {node.step for node in ast.walk(tree) if isinstance(node, ast.Slice)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant() if node in steps:
                continue
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                text = f"({written(left)}) {OTHER[type(op)]} ({written(right)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OTHER:
                text = f"({written(left)}) {OTHER[type(op)]} ({written(right)})"
            case ast.BoolOp(op=op, values=[left, right]):
                text = f"({written(left)}) {OTHER[type(op)]} ({written(right)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                text = f"bool({written(operand)})"
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                text = str(value + 1)
            case _:
                continue
        yield Place(name, *span(node), f"({text})")


def draw(n_places: int, seed: int) -> list[Place]:
    """Draw places, as many from each room."""
    rng = random.Random(seed)
    drawn = []
    for room in ROOMS:
        files = sorted((ROOT / room).rglob("*.py"))
        every = [place for path in files for place in places_of(path)]
        drawn += rng.sample(every, min(n_places // len(ROOMS), len(every)))
    return drawn


def tests_of(place: Place, root: Path) -> list[str]:
    """Name the test files of the place's room: first those with the module's name in them."""
    path = Path(place.path)
    folder = root / "tests" / Path(*path.parts[:2])
    stem = path.stem.removeprefix("_")
    files = sorted(folder.rglob("test_*.py"))
    return [str(each) for each in sorted(files, key=lambda file: stem not in file.read_text())]


def is_caught(place: Place, root: Path) -> bool:
    """Say whether a test fails while the place is changed."""
    path = root / place.path
    source = path.read_bytes()
    path.write_bytes(place.broken(source))
    words = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--timeout", "0"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *tests_of(place, root)],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root / "client")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_bytes(source)
    return done.returncode != 0


def run(file: Path, n_places: int, seed: int, tests: str | None) -> None:
    """Try the places, and write which are caught; what the file has already is not tried again."""
    caught: dict[str, bool] = json.loads(file.read_text()) if file.exists() else {}
    with tempfile.TemporaryDirectory(prefix="rankwright-mutate-") as name:
        root = Path(name) / "copy"
        subprocess.run(["git", "clone", "--quiet", ROOT, root], check=True)
        if tests is not None:
            subprocess.run(
                ["git", "checkout", "--quiet", tests, "--", "tests"], cwd=root, check=True
            )
        for place in draw(n_places, seed):
            key = f"{place.path}:{place.start}:{place.text}"
            if key not in caught:
                caught[key] = is_caught(place, root)
                file.write_text(json.dumps(caught, indent=1))
                print(len(caught), "caught " if caught[key] else "MISSED ", key, flush=True)
    print(f"{sum(caught.values())} of {len(caught)} are caught")


def compare(before: Path, after: Path) -> None:
    """Print how many are caught in both files, and which are no longer; then the exit code is 1."""
    then, now = json.loads(before.read_text()), json.loads(after.read_text())
    both = then.keys() & now.keys()
    print(f"caught: {sum(then[key] for key in both)} then, {sum(now[key] for key in both)} now")
    lost = sorted(key for key in both if then[key] and not now[key])
    print(*lost, sep="\n")
    sys.exit(bool(lost))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    trying = commands.add_parser("run")
    trying.add_argument("file", type=Path)
    trying.add_argument("--places", type=int, default=300)
    trying.add_argument("--seed", type=int, default=0)
    trying.add_argument("--tests", help="the commit whose tests are run; by default HEAD")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    words = parser.parse_args()
    if words.command == "run":
        run(words.file, words.places, words.seed, words.tests)
    else:
        compare(words.before, words.after)


if __name__ == "__main__":
    main()
