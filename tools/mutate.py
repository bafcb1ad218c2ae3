"""Break the code in many places, one at a time, and see whether a test fails. Run by hand; takes hours.

    python -m tools.mutate run after.json --places 300
    python -m tools.mutate run before.json --places 300 --tests COMMIT     # the same places, with the tests of a commit
    python -m tools.mutate run after.json --packages app/erasure app/jobs --places 40
    python -m tools.mutate compare before.json after.json

The places are drawn by a seed, as many from each package: a comparison, a sum, an `and`, a `not` or a whole number that
becomes another. Each is tried in a copy of the checkout, with the tests that `make check` would run, the nearest first.
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


def packages() -> list[str]:
    """Return the folders of all packages of the program."""
    folders = (path for part in ("core", "app") for path in sorted((ROOT / part).iterdir()))
    found = [path for path in folders if path.is_dir() and any(path.glob("*.py"))]
    return [str(path.relative_to(ROOT)) for path in found] + ["workers", "client/rankwright"]


def draw(chosen: list[str], n_places: int, seed: int) -> list[Place]:
    """Draw places, as many from each package; those of a package do not depend on the others."""
    drawn = []
    for package in chosen:
        files = sorted((ROOT / package).rglob("*.py"))
        every = [place for path in files for place in places_of(path)]
        rng = random.Random(f"{seed} {package}")
        drawn += rng.sample(every, min(-(-n_places // len(chosen)), len(every)))
    return drawn


def is_caught(place: Place, root: Path) -> bool:
    """Say whether a test fails while the place is changed."""
    path = root / place.path
    source = path.read_bytes()
    path.write_bytes(place.broken(source))
    words = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--timeout", "0"]
    environment = os.environ | {"PYTHONPATH": str(root / "client"), "BASE": "HEAD"}
    try:
        choose = [sys.executable, "-m", "tools.changed"]
        chosen = subprocess.run(
            choose, cwd=root, env=environment, capture_output=True, text=True, check=True
        )
        if not chosen.stdout.split():
            return False
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *chosen.stdout.split()],
            cwd=root,
            env=environment,
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


def run(file: Path, places: list[Place], tests: str | None) -> None:
    """Try the places, and write which are caught; what the file has already is not tried again."""
    caught: dict[str, bool] = json.loads(file.read_text()) if file.exists() else {}
    with tempfile.TemporaryDirectory(prefix="rankwright-mutate-") as name:
        root = Path(name) / "copy"
        subprocess.run(["git", "clone", "--quiet", ROOT, root], check=True)
        if tests is not None:
            for words in (["rm", "-rq", "tests"], ["checkout", "-q", tests, "--", "tests"]):
                subprocess.run(["git", *words], cwd=root, check=True)
            subprocess.run(["git", "commit", "-qm", "the tests of a commit"], cwd=root, check=True)
        for place in places:
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
    trying.add_argument("--packages", nargs="+", default=packages(), metavar="FOLDER")
    trying.add_argument("--seed", type=int, default=0)
    trying.add_argument("--tests", help="the commit whose tests are run; by default HEAD")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    words = parser.parse_args()
    if words.command == "run":
        run(words.file, draw(words.packages, words.places, words.seed), words.tests)
    else:
        compare(words.before, words.after)


if __name__ == "__main__":
    main()
