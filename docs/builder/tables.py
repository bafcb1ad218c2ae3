"""Pages whose tables become entries that the search finds: settings, and error codes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from docs.builder.markdown import heading, link, sentence
from docs.builder.openapi import Api

ERRORS = "reference/errors.md"
_SETTING = re.compile(r"^\| *`(RANKWRIGHT_[A-Z_]+)` *\|")
_CELL = re.compile(r"(?<!\\)\|")


def cells(line: str) -> list[str]:
    """Return the cells of a row."""
    return [each.strip() for each in _CELL.split(line.strip().strip("|"))]


def with_settings(text: str) -> str:
    """Return the page of settings with an entry for each row of its tables: a heading, and what the row says."""
    lines = text.splitlines()
    new: list[str] = []
    head: list[str] = []
    for k, line in enumerate(lines):
        following = lines[k + 1 : k + 3]
        is_head = (
            len(following) == 2
            and re.match(r"^\|[\s:|-]+\|$", following[0])
            and _SETTING.match(following[1])
        )
        if line.startswith("|") and is_head:
            head = cells(line)
        elif head and re.match(r"^\|[\s:|-]+\|$", line):
            continue
        elif head and _SETTING.match(line):
            new += ["", *_setting(head, cells(line))]
        else:
            head = head if line.startswith("|") else []
            new.append(line)
    return "\n".join(new) + "\n"


def _setting(head: list[str], row: list[str]) -> Iterator[str]:
    named = dict(zip([each.lower() for each in head[1:]], row[1:], strict=False))
    name = row[0].strip("`")
    meaning = named.pop("meaning", None) or named.pop("description", None) or row[-1]
    allowed, default = named.get("allowed", ""), named.get("default", "")
    yield from heading(5, f"`{name}`", name.lower(), "param")
    notes = ", ".join(filter(None, (allowed, f"default {default}" if default.strip("`") else "")))
    if notes:
        yield from (f"{notes}\n{{.kind}}", "")
    yield from (sentence(meaning.replace("\\|", "|")), "")


# --- errors ---------------------------------------------------------------------------------------


@dataclass
class Raised:
    """Where the code raises an error."""

    title: str = ""
    status: str = ""
    details: list[str] = field(default_factory=list)
    """Sentences that it may have, with … for values."""


def error_page(api: Api, rules: str, sources: Iterator[Path]) -> Iterator[str]:
    """Yield the page of errors. `rules` is docs/api.md, whose table of error codes names the codes of each status."""
    yield from heading(1, "Errors")
    yield "A failed request returns `application/problem+json` (RFC 9457). `code` is stable, so compare it in programs."
    yield f"`detail` is for people. The body is a {link('`Problem`', api.address('Problem'), ERRORS)}."
    yield f"{link('Rules for all routes', 'api.md', ERRORS)} has an example."
    yield ""
    yield from heading(2, "Status codes", "status-codes")
    raised, listed = _raised(sources), _listed(rules)
    meanings = {
        name.removeprefix("Problem"): str(each["description"])
        for name, each in api.root["components"]["responses"].items()
    }
    known = {number for statuses, _ in listed.values() for number in _numbers(statuses)}
    for status in sorted(known | {each for each in meanings if each.isdigit()}):
        yield from heading(3, f"`{status}`", f"status-{status}", "status")
        yield from (meanings.get(status, sentence(HTTPStatus(int(status)).phrase)), "")
    yield from heading(2, "Error codes", "error-codes")
    for code, (statuses, reason) in sorted(listed.items()):
        found = raised.get(code, Raised())
        yield from heading(3, f"`{code}`", code, "code")
        own = [found.status] if found.status in _numbers(statuses) else _numbers(statuses)
        numbers = " or ".join(link(number, f"#status-{number}", "") for number in own)
        meaning = sentence(found.title or reason[:1].upper() + reason[1:])
        yield from (f"Status {numbers}. {meaning}" if numbers else meaning, "")
        if found.details:
            yield from (f"For example: “{found.details[0]}”", "")


def _numbers(statuses: str) -> list[str]:
    return re.findall(r"\b\d{3}\b", statuses)


def _listed(rules: str) -> dict[str, tuple[str, str]]:
    """Return status and reason of each code in the tables of the section on error codes."""
    section = rules[rules.index("## Error codes") :].split("\n## ", maxsplit=1)[0]
    found: dict[str, tuple[str, str]] = {}
    for line in section.splitlines():
        row = cells(line) if line.startswith("|") else []
        with_codes = [k for k, each in enumerate(row) if re.search(r"`[a-z_]+`", each)]
        if not with_codes:
            continue
        column = max(with_codes, key=lambda k: row[k].count("`"))
        others = [each for k, each in enumerate(row) if k != column]
        statuses = next((each for each in others if re.search(r"\d{3}", each)), "")
        reason = max((each for each in others if each != statuses), key=len, default="")
        for code in re.findall(r"`([a-z_]+)`", row[column]):
            found[code] = (statuses, reason)
    return found


def _raised(sources: Iterator[Path]) -> dict[str, Raised]:
    """Return for each code the title of its class, and sentences that the code raises it with."""
    found: dict[str, Raised] = {}
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                _of_class(node, found)
            if isinstance(node, ast.Call):
                code = next((k.value for k in node.keywords if k.arg == "code"), None)
                if (
                    isinstance(code, ast.Constant)
                    and node.args
                    and (text := _sentence_of(node.args[0]))
                ):
                    found.setdefault(str(code.value), Raised()).details.append(text)
    return found


def _of_class(node: ast.ClassDef, found: dict[str, Raised]) -> None:
    for line in node.body:
        match line:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                known = {
                    name.id: value.value
                    for name, value in zip(names, values, strict=False)
                    if isinstance(name, ast.Name) and isinstance(value, ast.Constant)
                }
                if "code" in known and "title" in known:
                    entry = found.setdefault(str(known["code"]), Raised())
                    entry.title, entry.status = str(known["title"]), str(known.get("status", ""))


def _sentence_of(node: ast.expr) -> str:
    """Return the text of a string; values within it are shown as …; empty for anything else."""
    text = ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    if isinstance(node, ast.JoinedStr):
        text = "".join(
            str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values
        )
    return text if text.count(" ") > 1 else ""
