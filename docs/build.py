"""Put the site together for Zensical, which `make docs` then builds: the pages of docs/, and the reference.

The reference of HTTP comes from openapi.json, that of the command line from the commands themselves. That of Python is
written by mkdocstrings from the docstrings: here are only the names. The notebook becomes a page with its outputs.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
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
    shutil.rmtree(TARGET, ignore_errors=True)
    shutil.copytree(ROOT / "docs", TARGET, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (TARGET / "reference").mkdir()
    pages = {
        "index.md": (ROOT / "README.md").read_text(encoding="utf-8"),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        "tutorials/notebook.md": "\n\n".join(_notebook()),
        "reference/http.md": "\n".join(_http()),
        "reference/commands.md": "\n".join(_commands()),
        "reference/client.md": "\n".join(_client()),
        "reference/estimators.md": "\n".join(_estimators()),
        "reference/metrics.md": "\n".join(_metrics()),
    }
    for name, text in pages.items():
        (TARGET / name).write_text(text, encoding="utf-8")
    for path in TARGET.rglob("*.md"):
        path.write_text(_with_links(path, path.read_text(encoding="utf-8")), encoding="utf-8")


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


def _http() -> Iterator[str]:
    """Yield every route of openapi.json, by its tag."""
    api = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))
    by_tag: dict[str, list[tuple[str, str, Json]]] = {}
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            if method in ("get", "post", "put", "patch", "delete"):
                tag = (operation.get("tags") or ["other"])[0]
                by_tag.setdefault(tag, []).append((method.upper(), path, operation))
    yield from ("# HTTP: every route", "")
    yield "Made from openapi.json. Rules that hold for all of them: [HTTP: rules and errors](../api.md)."
    for tag, routes in sorted(by_tag.items()):
        yield from ("", f"## {tag}", "")
        for method, path, operation in routes:
            yield from (f"### `{method} {path}`", "", f"**{operation.get('summary', '')}**", "")
            yield from (operation.get("description", ""), "")
            yield from _parameters(operation)
            answers = ", ".join(f"`{code}`" for code in operation.get("responses", {}))
            yield from (f"Answers: {answers}", "")


def _parameters(operation: Json) -> Iterator[str]:
    parameters = operation.get("parameters") or []
    body = operation.get("requestBody")
    if parameters:
        yield from ("| parameter | in | type | default | meaning |", "|---|---|---|---|---|")
        for each in parameters:
            schema = each.get("schema", {})
            name = f"`{each['name']}`" + (" (required)" if each.get("required") else "")
            cells = (
                name,
                each["in"],
                _type(schema),
                schema.get("default", ""),
                each.get("description", ""),
            )
            yield "| " + " | ".join(_cell(cell) for cell in cells) + " |"
        yield ""
    if body:
        kinds = [
            f"`{media}`" + (f" ({name})" if (name := _type(content.get("schema", {}))) else "")
            for media, content in body["content"].items()
        ]
        yield from (f"Body: {', '.join(kinds)}", "")


def _type(schema: Json) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(filter(None, (_type(each) for each in schema[several])))
    if schema.get("enum"):
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("const", schema.get("type", "")))


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
    rows = [parameter for parameter in command.get_params(context) if parameter.name != "help"]
    yield from ("| argument or option | meaning |", "|---|---|")
    for each in rows:
        is_option = any(name.startswith("-") for name in each.opts)
        shown = ", ".join(each.opts) if is_option else str(each.name).upper()
        yield f"| `{shown}` | {_cell(getattr(each, 'help', None) or '')} |"


def _documented(names: list[str]) -> Iterator[str]:
    for name in names:
        yield from ("", f"::: {name}")


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
    from core.registry import ALGORITHMS

    yield from (
        "# Estimators",
        "",
        "All are scikit-learn estimators. Which for what: [algorithms](../algorithms.md).",
    )
    classes = dict.fromkeys(ALGORITHMS.values())
    yield from _documented([f"{each.__module__}.{each.__qualname__}" for each in classes])


def _metrics() -> Iterator[str]:
    import core.metrics

    yield from ("# Metrics", "", "What `core.metrics` exports.")
    found = (getattr(core.metrics, name) for name in core.metrics.__all__)
    names = [
        f"{each.__module__}.{each.__qualname__}" for each in found if hasattr(each, "__qualname__")
    ]
    yield from _documented(list(dict.fromkeys(names)))


if __name__ == "__main__":
    main()
