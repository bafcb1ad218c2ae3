"""Put the site together for Zensical, which `make docs` then builds: the pages of docs/, and the reference.

The reference of HTTP comes from openapi.json, and from the application the functions that answer. The reference of the
command line comes from the commands themselves. That of Python is written by mkdocstrings from the docstrings: here are
only the names. The notebook becomes a page with its outputs.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import typer

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "build" / "site"
REPOSITORY = "https://github.com/rankwright/rankwright/blob/main/"
"""Where a page links to that names a file of the repository which is no page."""
Json = Mapping[str, Any]


def main() -> None:
    """Write all pages."""
    for name in [name for name in os.environ if name.startswith("RANKWRIGHT_")]:
        del os.environ[name]  # the application below is of no deployment
    shutil.rmtree(TARGET, ignore_errors=True)
    shutil.copytree(ROOT / "docs", TARGET, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (TARGET / "reference").mkdir()
    pages = {
        "index.md": (ROOT / "README.md").read_text(encoding="utf-8"),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        "tutorials/notebook.md": "\n\n".join(_notebook()),
    }
    for name, text in pages.items():
        (TARGET / name).write_text(text, encoding="utf-8")
    for path in TARGET.rglob("*.md"):
        path.write_text(_with_links(path, path.read_text(encoding="utf-8")), encoding="utf-8")
    api = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))
    reference = {
        "http.md": _http(api),
        "schemas.md": _schemas(api["components"]["schemas"]),
        "commands.md": _commands(),
        "client.md": _client(),
        "estimators.md": _estimators(),
        "metrics.md": _metrics(),
        "packages.md": _other_packages(),
    }
    for name, lines in reference.items():
        (TARGET / "reference" / name).write_text("\n".join(lines), encoding="utf-8")


_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/notebook.ipynb": "tutorials/notebook.md",
}


def _with_links(path: Path, text: str) -> str:
    """Return a page whose links lead to pages of the site, and to the repository for what is no page."""
    written = {TARGET / new: ROOT / old for old, new in _MOVED.items()}
    source = written.get(path, ROOT / "docs" / path.relative_to(TARGET)).parent

    def turn(link: re.Match[str]) -> str:
        address, _, anchor = link[2].partition("#")
        if not address or "://" in address or address.startswith("mailto:"):
            return link[0]
        if (path.parent / address).is_file():  # written beside the page
            return link[0]
        target = (source / address).resolve()
        if not target.is_relative_to(ROOT):
            return link[0]
        inside = target.relative_to(ROOT)
        end = f"#{anchor}" if anchor else ""
        up = "../" * (len(path.relative_to(TARGET).parts) - 1)
        if str(inside) in _MOVED:
            return f"{link[1]}{up}{_MOVED[str(inside)]}{end}{link[3]}"
        if inside.parts[0] == "docs" and inside.suffix != ".py" and target.is_file():
            return f"{link[1]}{up}{'/'.join(inside.parts[1:])}{end}{link[3]}"
        return f"{link[1]}{REPOSITORY}{inside}{end}{link[3]}"

    return _LINK.sub(turn, text)


def _notebook() -> Iterator[str]:
    """Yield the cells of the notebook and their outputs; write its pictures beside the page."""
    notebook = json.loads((ROOT / "examples" / "notebook.ipynb").read_text(encoding="utf-8"))
    caption = ""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            caption = text.rpartition("\n")[2].partition(". ")[0].rstrip(".")
            yield text
            continue
        yield f"```python\n{text}\n```"
        for output in cell["outputs"]:
            yield _output(output, f"notebook-{cell['execution_count']}.png", caption)
    yield f"This page is [a notebook]({REPOSITORY}examples/notebook.ipynb)."


def _output(output: Json, picture: str, caption: str) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        (TARGET / "tutorials" / picture).write_bytes(base64.b64decode(data["image/png"]))
        return f"![{caption}]({picture})"
    if "text/html" in data:
        table = _STYLE.sub(r"\1", "".join(data["text/html"]))
        return "".join(line.strip() for line in table.splitlines())
    return f"```text\n{''.join(data.get('text/plain') or output['text']).rstrip()}\n```"


_STYLE = re.compile(r"<style.*?</style>|(<(?:table|tr)) [^>]*", re.DOTALL)
"""How pandas has its tables look: the site has its own way."""


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _table(*rows: Iterable[object]) -> Iterator[str]:
    """Yield a table whose first row is the head; nothing if there are no others."""
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    if len(lines) > 1:
        yield from (lines[0], re.sub(r"[^|]+", "---", lines[0]), *lines[1:], "")


def _http(api: Json) -> Iterator[str]:
    """Yield every route, by its tag."""
    schemas, answered = api["components"]["schemas"], _functions()
    yield from ("# HTTP: every route", "")
    yield "Made from openapi.json. Rules that hold for all routes: [HTTP: rules and errors](../api.md)."
    for tag in api["tags"]:
        yield from ("", f"## {tag['name'].capitalize()}", "", tag["description"], "")
        for path, methods in sorted(api["paths"].items()):
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    route = f"{method.upper()} {path}"
                    yield from _route(route, operation, answered.pop(route), schemas)
    yield from ("## Refusals", "", "What a status means, on every route.", "")
    refusals = {
        name.removeprefix("Problem").lower(): each["description"]
        for name, each in sorted(api["components"]["responses"].items())
    }
    yield from _table(
        ("status", "meaning"), *((f"`{name}`", meaning) for name, meaning in refusals.items())
    )
    yield "Each is a [Problem](schemas.md#problem) with one of the [error codes](../api.md#error-codes)."
    yield from ("", "## Routes that are not in openapi.json", "")
    yield from ("[Clients](../clients.md) describes those that other servers have, too.", "")
    rows = [(f"`{route}`", function) for route, function in sorted(answered.items())]
    yield from _table(("route", "answered by"), *rows)


def _functions() -> dict[str, str]:
    """Return for each route of the application the function that answers, and its file."""
    from starlette.routing import Route

    from app.main import create_app
    from app.platform.settings import Settings

    found = {}
    logging.disable()  # the application would say that its database has no tables
    with tempfile.TemporaryDirectory() as folder:
        for route in create_app(Settings(state_dir=Path(folder))).routes:
            if isinstance(route, Route) and not route.path.startswith(
                ("/console", "/docs", "/guide")
            ):
                endpoint = route.endpoint
                name = getattr(endpoint, "__name__", type(endpoint).__name__)
                file = endpoint.__module__.replace(".", "/") + ".py"
                for method in (route.methods or set()) - {"HEAD"}:
                    found[f"{method} {route.path}"] = f"`{name}` in [`{file}`]({REPOSITORY}{file})"
    return found


def _route(route: str, operation: Json, answered: str, schemas: Json) -> Iterator[str]:
    yield from (f"### {operation['summary']} {{#{operation['operationId']}}}", "")
    yield from (f"`{route}`", "", operation["description"], "", f"Answered by {answered}.", "")
    parameters = [
        (_name(each["name"], each.get("required")), each["in"], *_meaning(each, each["schema"]))
        for each in operation.get("parameters", ())
    ]
    yield from _table(("parameter", "in", "type", "meaning"), *parameters)
    if body := operation.get("requestBody", {}).get("content"):
        yield from (f"Body: {_shapes(body)}.", "")
        examples = filter(None, (_example(each, schemas) for each in body.values()))
        yield from _block(next(examples, None))
    answers = {
        status: answer for status, answer in operation["responses"].items() if "$ref" not in answer
    }
    rows = [
        (f"`{status}`", answer["description"], _shapes(answer.get("content", {})))
        for status, answer in sorted(answers.items())
    ]
    yield from _table(("answer", "meaning", "body"), *rows)
    refusals = sorted(operation["responses"].keys() - answers.keys())
    yield from (f"[Refusals](#refusals): {', '.join(f'`{status}`' for status in refusals)}.", "")


def _schemas(schemas: Json) -> Iterator[str]:
    """Yield every schema of a body or an answer, with its members."""
    yield from ("# HTTP: bodies and answers", "")
    yield from ("Made from openapi.json. Where they are used: [HTTP: every route](http.md).", "")
    for name, schema in sorted(schemas.items()):
        yield from (f"## {name}", "", schema.get("description", ""), "")
        rows = [
            (_name(member, member in schema.get("required", ())), *_meaning(each, each))
            for member, each in schema.get("properties", {}).items()
        ]
        yield from _table(("member", "type", "meaning"), *rows)
        if "examples" in schema:
            folded = [f"    {line}" for line in _block(schema["examples"][0])]
            yield from ('??? example "Example"', "", *folded)


def _example(content: Json, schemas: Json) -> object:
    """Return an example of a body: its own, or that of its schema; None if there is none."""
    schema = content["schema"]
    schema = schemas[_named(schema)] if "$ref" in schema else schema
    own = [each["value"] for each in content.get("examples", {}).values()]
    return next(iter([*own, *schema.get("examples", ())]), content.get("example"))


def _block(example: object) -> list[str]:
    if example is None:
        return []
    if isinstance(example, str):
        return ["```text", *example.splitlines(), "```", ""]
    lines = json.dumps(example, indent=2, ensure_ascii=False).splitlines()
    return ["```json", *lines, "```", ""]


def _whole(word: object) -> str:
    """Return a word of code that stays on one line (site.css)."""
    return f"`{word}`{{.whole}}"


def _name(name: str, required: object) -> str:
    return _whole(name) + (" (required)" if required else "")


def _meaning(described: Json, schema: Json) -> tuple[str, str]:
    """Return the type of a parameter or a member, and what it means."""
    text, default = described.get("description", ""), schema.get("default")
    if default is not None and "efault" not in text:
        text += f" Default: `{json.dumps(default)}`.".replace('"', "")
    return _type(schema), text


def _shapes(content: Json) -> str:
    """Return the types of a body, each with its media types."""
    media: dict[str, list[str]] = {}
    for name, each in content.items():
        media.setdefault(_type(each["schema"]), []).append(f"`{name}`")
    return "; ".join(f"{shape} as {', '.join(names)}" for shape, names in media.items())


def _named(schema: Json) -> str:
    return str(schema["$ref"].rpartition("/")[2])


_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
    "minLength": "characters: at least",
    "maxLength": "characters: at most",
}


def _type(schema: Json) -> str:
    if "$ref" in schema:
        name = _named(schema)
        return f"[{name}](schemas.md#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(map(_type, schema[several]))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum") or [schema["const"]]
        return " or ".join(map(_whole, values))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("format") == "binary":
        return "bytes"
    if isinstance(values := schema.get("additionalProperties"), dict):
        return f"object of {_type(values)}"
    if isinstance(kinds := schema.get("type"), list):
        return " or ".join(kinds)
    bounds = [
        f"{word} {schema[key]:,}".removesuffix(".0")
        for key, word in _BOUNDS.items()
        if key in schema
    ]
    return ", ".join([str(schema.get("format", schema.get("type", "any"))), *bounds])


def _commands() -> Iterator[str]:
    """Yield every command with its arguments and options."""
    from app.cli import commands

    root = typer.main.get_command(commands())
    yield from ("# Command line", "", "`rankwright COMMAND --help` says the same.")
    yield from _command("rankwright", root, click.Context(root, info_name="rankwright"), 1)


def _command(
    name: str, command: click.Command, context: click.Context, depth: int
) -> Iterator[str]:
    if hasattr(command, "list_commands"):
        for each in command.list_commands(context):
            member = command.get_command(context, each)
            if member is not None and not member.hidden:
                inner = click.Context(member, info_name=each, parent=context)
                yield from _command(f"{name} {each}", member, inner, depth + 1)
        return
    yield from ("", f"## {name}", "", command.help or "", "")
    rows = []
    for each in command.get_params(context):
        if each.name != "help":
            is_option = any(name.startswith("-") for name in each.opts)
            shown = ", ".join(each.opts) if is_option else str(each.name).upper()
            rows.append((f"`{shown}`", getattr(each, "help", None) or ""))
    yield from _table(("argument or option", "meaning"), *rows)


def _documented(names: list[str], level: int = 2) -> Iterator[str]:
    for name in names:
        yield from ("", f"::: {name}", "    options:", f"      heading_level: {level}")


def _client() -> Iterator[str]:
    yield from (
        "# Python client",
        "",
        "`AsyncClient` has the same operations. How to use it: [clients](../clients.md).",
    )
    yield from _documented(
        ["rankwright.client.Client", "rankwright.sklearn.RemoteRanker", "rankwright.errors"]
    )


def _estimators() -> Iterator[str]:
    import core
    from core.registry import ALGORITHMS

    yield from (
        "# Estimators",
        "",
        "All are scikit-learn estimators. Which for what: [algorithms](../algorithms.md).",
    )
    classes = (f"{each.__module__}.{each.__qualname__}" for each in ALGORITHMS.values())
    yield from _documented(list(dict.fromkeys((*classes, *_exports(core)))))


def _metrics() -> Iterator[str]:
    import core.metrics

    yield from ("# Metrics", "", "What `core.metrics` exports.")
    yield from _documented(_exports(core.metrics))


def _other_packages() -> Iterator[str]:
    from core import bounds, explain, probability, selection

    yield from ("# Explanations, probabilities, searches, bounds", "")
    yield "What these packages export may change with every minor version ([stability](../stability.md))."
    for package in (explain, probability, selection, bounds):
        yield from ("", f"## {package.__name__}")
        yield from _documented(_exports(package), level=3)


def _exports(package: ModuleType) -> list[str]:
    """Return the full names of the functions and classes that a package exports."""
    found = (getattr(package, name) for name in package.__all__)
    names = (
        f"{each.__module__}.{each.__qualname__}" for each in found if hasattr(each, "__qualname__")
    )
    return list(dict.fromkeys(names))


if __name__ == "__main__":
    main()
