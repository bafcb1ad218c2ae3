"""Break the program in many places, one at a time, and see whether a test fails: some hundred places an hour.

    python -m tools.mutate record reach.jsonl tests/app/erasure tests/app/jobs    # once: what each test reaches
    python -m tools.mutate run results.json reach.jsonl --packages app/erasure q=app/jobs/queue.py,app/jobs/watcher.py
    python -m tools.mutate run results.json reach.jsonl --survivors               # again, after tests have been added
    python -m tools.mutate report results.json

The places are drawn by a seed, as many from each package: a comparison, a sum, an `and`, a `not` or a whole number that
becomes another. They are tried in a copy of the last commit, with the recorded tests that reach the line, the quick and
the near ones first. A test that kills must pass without the fault.

One process imports everything. Each place gets a fork of it, in which the code of the functions is exchanged. Kernels,
and what is run as a module is imported, get a new process, and the tests that reach a line with the name of the thing.

If a survivor is equivalent, write why into the results: `"equivalent": "the sum has one sign"`.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing.sharedctypes import RawValue
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

from .reached import IMPORT, PROGRAM, Reach, Recorder, read

ROOT = Path(__file__).parents[1]
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
"""What an operator becomes."""
PROVIDER = "tests/identity_provider/node_modules"
"""What `make provider` installs; without it, tests of signing in are skipped."""
PYTEST = "-q", "-n0", "-p", "no:cacheprovider", "--timeout=0"


@dataclass(frozen=True)
class Place:
    """Text between two offsets of a file, and what stands there instead.

    lines: those of its statement, as bits.
    names: what the statement defines, and the classes around it.
    by_call: whether it is run when a function of Python is called.
    """

    path: str
    start: int
    end: int
    text: str
    lines: int
    names: tuple[str, ...]
    by_call: bool

    def broken(self, source: bytes) -> bytes:
        """Return the source with the place changed, and all that follows on its line."""
        lost = source.count(b"\n", self.start, self.end) - self.text.count("\n")
        text = "(" + self.text + "\n" * lost + ")"
        return source[: self.start] + text.encode() + source[self.end :]


def places_of(path: Path) -> Iterator[Place]:
    """Yield the places of a module."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: Any) -> tuple[int, int]:
        begin = starts[node.lineno - 1] + node.col_offset
        return begin, starts[node.end_lineno - 1] + node.end_col_offset

    def joined(left: ast.expr, op: ast.AST, right: ast.expr) -> str:
        return f"({text_of(left)}) {OTHER[type(op)]} ({text_of(right)})"

    def text_of(node: ast.expr) -> str:
        begin, end = span(node)
        return source[begin:end].decode()

    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    # The 1 of float64[::1], the type of an array in a kernel: with another step it takes the same arrays.
    steps = {node.step for node in ast.walk(tree) if isinstance(node, ast.Slice)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant() if node in steps:
                continue
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                text = joined(left, op, right)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OTHER:
                text = joined(left, op, right)
            case ast.BoolOp(op=op, values=[left, right]):
                text = joined(left, op, right)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                text = f"bool({text_of(operand)})"
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                text = str(value + 1)
            case _:
                continue
        around: list[Any] = [node]
        while around[-1] in parents:
            around.append(parents[around[-1]])
        statement = next(each for each in around if isinstance(each, ast.stmt))
        lines = (2 << node.end_lineno) - (1 << min(statement.lineno, node.lineno))
        name = str(path.relative_to(ROOT))
        yield Place(name, *span(node), text, lines, *use_of(statement, around))


def use_of(statement: ast.stmt, around: list[Any]) -> tuple[tuple[str, ...], bool]:
    """Return the names by which a statement is used, and whether it is run by a call."""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    names = [
        each.id
        for target in targets
        if target
        for each in ast.walk(target)
        if isinstance(each, ast.Name)
    ]
    names += [
        each.name
        for each in around
        if isinstance(each, ast.ClassDef) or (each is statement and hasattr(each, "name"))
    ]
    for each in around[around.index(statement) + 1 :]:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            if any("kernel" in ast.unparse(decorator) for decorator in each.decorator_list):
                return (each.name,), False
            return tuple(names), True
    return tuple(names), False


def exchanged(place: Place) -> dict[CodeType, CodeType]:
    """Return the code objects of a module, and those with the fault; none if the compiler sees no difference."""

    def codes(code: CodeType) -> Iterator[CodeType]:
        yield code
        for each in code.co_consts:
            if isinstance(each, CodeType):
                yield from codes(each)

    def parts(code: CodeType) -> tuple[object, ...]:
        constants = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
        return code.co_code, code.co_names, constants

    path = ROOT / place.path
    source = path.read_bytes()
    pair = [
        compile(each, path, "exec", dont_inherit=True) for each in (source, place.broken(source))
    ]
    swap = dict(zip(*map(codes, pair), strict=True))
    return swap if any(parts(old) != parts(new) for old, new in swap.items()) else {}


def draw(package: str, n_places: int, seed: int) -> list[Place]:
    """Draw places of a package: a folder, or `name=` with files."""
    paths = [ROOT / each for each in package.rpartition("=")[2].split(",")]
    files = [
        file
        for path in paths
        for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))
    ]
    every = [place for file in files for place in places_of(file)]
    random.Random(f"{seed} {package.partition('=')[0]}").shuffle(every)
    found: list[Place] = []
    for place in every:
        if len(found) < n_places:
            with suppress(SyntaxError):  # in a pattern of `match`
                found += [place] if exchanged(place) else []
    return found


class Verdict(NamedTuple):
    """Whether a place is killed, by which test, and how many of the tests that reach it were run."""

    status: str
    test: str = ""
    n_run: int = 0
    n_tests: int = 0

    @property
    def is_caught(self) -> bool:
        return self.status in ("killed", "timeout")


class Trial:
    """A plugin of pytest that tries places instead of running the tests once."""

    def __init__(
        self,
        words: argparse.Namespace,
        places: list[tuple[str, Place]],
        reach: dict[str, Reach],
    ) -> None:
        self._words, self._places, self._reach = words, places, reach
        self._items: dict[str, pytest.Item] = {}
        self._functions: defaultdict[str, list[FunctionType]] = defaultdict(list)
        self._is_sound: dict[str, bool] = {}
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that a test has failed."""
        self._failed |= report.failed

    def pytest_internalerror(self, excrepr: object) -> None:
        """Print an error of this file, too: the output of pytest is not shown."""
        print(excrepr, file=sys.stderr)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try all places."""
        self._items = {item.nodeid: item for item in session.items}
        for item in (self._items[name] for name in self._words.before):
            other = next(each for each in session.items if each.path != item.path)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=other)
        gc.unfreeze()
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                self._functions[each.__code__.co_filename].append(each)
        gc.freeze()
        for package, place in self._places:
            began = time.monotonic()
            verdict = self._confirmed(place)
            source = (ROOT / place.path).read_bytes()
            line, was = source.count(b"\n", 0, place.start) + 1, source[place.start : place.end]
            words = {
                "line": line,
                "was": was.decode(),
                "seconds": round(time.monotonic() - began, 1),
            }
            found = results(self._words.file)
            key = f"{place.path}:{place.start}:{place.text}"
            at_first = found.get(key, {}).get("at first", verdict.status)
            found[key] = {
                "package": package,
                "at first": at_first,
                **verdict._asdict(),
                **words,
                **asdict(place),
            }
            self._words.file.write_text(json.dumps(found, indent=1))
            print(
                package,
                f"{place.path}:{line}",
                place.text,
                words["seconds"],
                *verdict,
                file=sys.stderr,
                flush=True,
            )
        return True

    def _confirmed(self, place: Place) -> Verdict:
        """Try a place, again without a test that fails without the fault, too."""
        while True:
            swap = exchanged(place)
            with fault_in_file(place):
                verdict = self._attempt(place, swap)
            test = verdict.test
            if test in self._items and test not in self._is_sound:
                self._is_sound[test] = not self._fork([self._reach[test]], {}).is_caught
            if self._is_sound.get(test, True):
                return verdict

    def _attempt(self, place: Place, swap: dict[CodeType, CodeType]) -> Verdict:
        verdict = Verdict("not reached")
        if place.by_call:
            reaching = self._tests(lambda test: test.lines.get(place.path, 0) & place.lines)
            if reaching:
                verdict = self._fork(self._first(place, reaching), swap)._replace(
                    n_tests=len(reaching)
                )
            at_import = self._reach[IMPORT].lines.get(place.path, 0) & place.lines
            if verdict.is_caught or not at_import:
                return verdict
        uses = lines_with(tuple(place.names)).items()
        tests = self._tests(
            lambda test: any(test.lines.get(path, 0) & lines for path, lines in uses)
        )
        tests = tests or self._tests(lambda test: place.path in test.lines)
        return (
            self._start(self._first(place, tests))._replace(n_tests=len(tests))
            if tests
            else verdict
        )

    def _tests(self, reach: Callable[[Reach], object]) -> list[Reach]:
        known = (test for name, test in self._reach.items() if name in self._items)
        return [test for test in known if self._is_sound.get(test.name, True) and reach(test)]

    def _first(self, place: Place, tests: list[Reach]) -> list[Reach]:
        """Return tests within the budget, those of the place's package before others of the same length."""
        folder = f"/{Path(place.path).parent.name}/"

        def rank(test: Reach) -> tuple[float, str, float]:
            seconds = test.cost / (4 if folder in test.name else 1)
            return round(math.log2(seconds + 0.05)), test.name.partition("::")[0], seconds

        chosen: list[Reach] = []
        for test in sorted(tests, key=rank):
            if chosen and sum(each.seconds for each in chosen) + test.cost > self._words.budget:
                break
            chosen.append(test)
        return chosen

    def _fork(self, tests: list[Reach], swap: dict[CodeType, CodeType]) -> Verdict:
        """Run tests in a copy of this process until one fails; end it if one hangs."""
        begun = RawValue("i", 0)
        with warnings.catch_warnings(
            action="ignore"
        ):  # of the threads of BLAS, which it starts again
            pid = os.fork()
        if pid == 0:
            os.setsid()
            self._run([self._items[test.name] for test in tests], swap, begun)
        seen, until, ended = 0, time.monotonic() + 60, 0
        while not ended and time.monotonic() < until:
            time.sleep(0.02)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if begun.value != seen:
                seen = begun.value
                until = time.monotonic() + limit(20, tests[seen - 1])
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if not ended:
            os.waitpid(pid, 0)
            return Verdict("timeout", tests[begun.value - 1].name, begun.value)
        if status:
            return Verdict("killed", tests[begun.value - 1].name, begun.value)
        return Verdict("survived", "", len(tests))

    def _run(self, items: list[pytest.Item], swap: dict[CodeType, CodeType], begun: Any) -> None:
        status = 1
        try:
            for path in {code.co_filename for code in swap}:
                for function in self._functions[path]:
                    function.__code__ = swap.get(function.__code__, function.__code__)
            for item, following in zip(items, [*items[1:], None], strict=True):
                begun.value += 1
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    item.config.hook.pytest_runtest_teardown(item=item, nextitem=None)
                    break
            status = self._failed
        finally:
            os._exit(status)

    def _start(self, tests: list[Reach]) -> Verdict:
        """Run tests in a new process until one fails."""
        words = [sys.executable, "-m", "pytest", *PYTEST, "-x", *(test.name for test in tests)]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                output = process.communicate(timeout=limit(120, *tests))[0]
            except subprocess.TimeoutExpired:
                return Verdict("timeout", "", len(tests))
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", output, re.MULTILINE)
        name = failed[1] if failed else IMPORT
        return (
            Verdict("killed", name, len(tests))
            if process.returncode
            else Verdict("survived", "", len(tests))
        )


def limit(beside: float, *tests: Reach) -> float:
    """Return the seconds after which tests hang, by what was recorded and how busy the machine is."""
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return busy * (beside + 5 * sum(test.cost for test in tests))


@contextmanager
def fault_in_file(place: Place) -> Iterator[None]:
    """Have a fault in its file meanwhile, for new processes and later imports."""
    path = ROOT / place.path
    source, stat = path.read_bytes(), path.stat()
    path.write_bytes(place.broken(source))
    try:
        yield
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@cache
def lines_with(names: tuple[str, ...]) -> dict[str, int]:
    """Return the lines of the program that have one of the names."""
    word = re.compile(rf"\b(?:{'|'.join(names)})\b" if names else "(?!)")
    return {
        str(path.relative_to(ROOT)): sum(
            1 << number
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if word.search(line)
        )
        for folder in PROGRAM
        for path in Path(folder).rglob("*.py")
    }


def results(file: Path) -> dict[str, Any]:
    """Return what is known of places."""
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def run(words: argparse.Namespace) -> int:
    """Try places in a copy of the last commit: there, this is called again."""
    if not words.here:
        with tempfile.TemporaryDirectory(prefix="rankwright-mutate-") as folder:
            root = Path(folder) / "copy"
            subprocess.run(["git", "clone", "--quiet", ROOT, root], check=True)
            if (ROOT / PROVIDER).exists():
                (root / PROVIDER).symlink_to(ROOT / PROVIDER)
            paths = {str(path): str(path.absolute()) for path in (words.file, *words.reach)}
            again = [
                sys.executable,
                "-m",
                "tools.mutate",
                "run",
                "--here",
                *(paths.get(each, each) for each in sys.argv[2:]),
            ]
            environment = os.environ | {"PYTHONPATH": f"{root}:{root / 'client'}"}
            return subprocess.run(
                again, cwd=root, env=environment, stdout=subprocess.DEVNULL, check=False
            ).returncode
    found = results(words.file)
    if words.survivors:
        survivors = [each for each in found.values() if is_survivor(each)]
        fields = Place.__dataclass_fields__
        places = [
            (each["package"], Place(**{name: each[name] for name in fields})) for each in survivors
        ]
    else:
        drawn = [(each, draw(each, words.places, words.seed)) for each in words.packages]
        places = [(package.partition("=")[0], place) for package, of_it in drawn for place in of_it]
        places = [
            (package, place)
            for package, place in places
            if f"{place.path}:{place.start}:{place.text}" not in found
        ]
    reach = read(words.reach)
    short = {name: test for name, test in reach.items() if test.cost < words.longest}
    files = sorted({name.partition("::")[0] for name in short} - {IMPORT})
    with tempfile.TemporaryDirectory(prefix="rankwright-mutate-") as folder:
        trial = Trial(words, places, short)
        return pytest.main([*PYTEST, f"--basetemp={folder}/tests", *files], plugins=[trial])


def is_survivor(result: dict[str, Any]) -> bool:
    """Say whether a place is to be looked at."""
    return result["status"] in ("survived", "not reached") and "equivalent" not in result


def report(file: Path) -> None:
    """Print the numbers of each package, and the survivors."""
    found = results(file).values()
    print("package,places,killed at first,killed,survived,not reached,equivalent")
    for package, n_places in Counter(each["package"] for each in found).items():
        its = [each for each in found if each["package"] == package]
        status = Counter("equivalent" if "equivalent" in each else each["status"] for each in its)
        first = sum(each["at first"] in ("killed", "timeout") for each in its)
        rest = (status[each] for each in ("survived", "not reached", "equivalent"))
        print(package, n_places, first, status["killed"] + status["timeout"], *rest, sep=",")
    for each in filter(is_survivor, found):
        tests = f"{each['status']}, {each['n_run']} of {each['n_tests']} tests"
        print(f"{each['path']}:{each['line']}: {each['was']} -> {each['text']} ({tests})")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser(
        "record", help="run tests, and add to a file which lines each reaches"
    )
    recording.add_argument("file", type=Path)
    recording.add_argument("tests", nargs="+")
    trying = commands.add_parser("run", help="try places that the results have not yet")
    trying.add_argument("file", type=Path)
    trying.add_argument("reach", type=Path, nargs="+")
    trying.add_argument("--packages", nargs="+", default=[], metavar="FOLDER or NAME=FILE,FILE")
    trying.add_argument(
        "--survivors", action="store_true", help="try those that have survived again"
    )
    trying.add_argument("--places", type=int, default=100, help="of each package")
    trying.add_argument("--seed", type=int, default=0)
    trying.add_argument(
        "--budget", type=float, default=60.0, help="recorded seconds of the tests of a place"
    )
    trying.add_argument(
        "--longest", type=float, default=20.0, help="seconds of the longest test that is run"
    )
    trying.add_argument(
        "--before",
        nargs="+",
        default=[],
        help="tests whose fixtures of the session all places share",
    )
    trying.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    reporting = commands.add_parser("report", help="print how many are killed")
    reporting.add_argument("file", type=Path)
    words = parser.parse_args()
    if words.command == "record":
        return pytest.main([*PYTEST, *words.tests], plugins=[Recorder(words.file.absolute())])
    if words.command == "report":
        report(words.file)
        return 0
    return run(words)


if __name__ == "__main__":
    sys.exit(main())
