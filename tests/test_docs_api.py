"""docs/errors.md describes the error codes that the application has."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def test_every_error_code_is_documented_and_no_other() -> None:
    sources = [
        path.read_text()
        for folder in ("app", "core", "workers")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    documented = re.findall(r"^### `(\w+)`$", (DOCS / "errors.md").read_text(), flags=re.MULTILINE)
    assert len(documented) == len(set(documented))
    raised = set().union(*map(error_codes, sources))
    # An output's code is made of its name: f"{self.code}_in_use".
    outputs = [f"{name}_{end}" for name in OUTPUTS for end in made_of_names(sources)]
    assert len(outputs) == 9
    raised |= set(outputs)
    assert len(raised) > 80
    assert raised - set(documented) == set()
    texts = {text for source in sources for text in re.findall(r'"(\w+)"', source)}
    # A limit's code is made of what it limits.
    texts |= {f"too_many_{text}" for text in texts} | set(outputs)
    assert set(documented) - texts == set()


def test_each_error_code_is_documented_under_a_status_that_it_has() -> None:
    statuses: dict[str, set[str]] = defaultdict(set)
    for operation in json.loads((ROOT / "app" / "http" / "error_codes.json").read_text()).values():
        for status, codes in operation.items():
            for code in codes:
                statuses[code].add(status)
    wrong = {}
    for section in (DOCS / "errors.md").read_text().split("\n## ")[1:]:
        title, *entries = re.split(r"^### ", section, flags=re.MULTILINE)
        for entry in entries:
            code = entry[1 : entry.index("`", 1)]
            named = set(re.findall(r"\b\d{3}\b", title.partition("\n")[0] + entry))
            if statuses[code] and not statuses[code] & named:
                wrong[code] = statuses[code]
    assert wrong == {}


OUTPUTS = ("evaluation", "comparison", "batch_score")


def made_of_names(sources: list[str]) -> list[str]:
    """Return the ends of the codes that are made of the name of an output."""
    return re.findall(r'code=f"\{self\.code\}_(\w+)"', "".join(sources))


def test_error_codes_are_found() -> None:
    source = """
class Full(ServiceError):
    code, status = "full", 503
class Empty(Full):
    code = "empty"
raise Full("x", code="very_full")
"""
    assert error_codes(source) == {"full", "empty", "very_full"}


def error_codes(source: str) -> set[str]:
    """Return the codes that classes of a module have, or that its calls pass as `code`."""
    if not re.search(r"\bcode\b", source):
        return set()
    values: list[ast.expr] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "code":
            values.append(node.value)
        elif isinstance(node, ast.Dict):
            values += [
                value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and key.value == "code"
            ]
        elif isinstance(node, ast.ClassDef):
            for line in node.body:
                if not isinstance(line, ast.Assign):
                    continue
                names, value = line.targets[0], line.value
                if isinstance(names, ast.Tuple) and isinstance(value, ast.Tuple):
                    names, value = names.elts[0], value.elts[0]
                if isinstance(names, ast.Name) and names.id == "code":
                    values.append(value)
    constants = [value.value for value in values if isinstance(value, ast.Constant)]
    return {value for value in constants if isinstance(value, str)}
