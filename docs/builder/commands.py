"""The reference of the command line: a page for each panel of `rankwright --help`, with an entry for each option."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

import click
import typer

from docs.builder.bounds import span, with_bounds
from docs.builder.markdown import (
    code,
    first_sentence,
    gap,
    heading,
    hidden,
    link,
    sentence,
    slug,
    table,
)

FOLDER = "reference/commands/"
INDEX = f"{FOLDER}index.md"
COMMON = ("url", "key", "as_json")
"""Options that most commands have, by the names of their parameters: they are described once."""

EXAMPLES: Mapping[str, list[str]] = json.loads(
    (Path(__file__).parent / "commands.json").read_text(encoding="utf-8")
)
"""A command line for each command."""

EXITS = {
    0: "The command succeeded.",
    1: "Another error, such as a conflict with the state of a resource.",
    2: "The command line, a file or a table is not valid, or the service rejected the input.",
    3: "There is no such resource.",
    4: "The key is missing or unknown, or it lacks a scope.",
    5: "The service cannot be reached, is overloaded, or has an internal error.",
    6: "The job failed, timed out or was cancelled.",
    7: "An alarm is open (`rankwright monitor`).",
    130: "You pressed Ctrl-C.",
}
"""What the exit codes mean; a test compares them with the client's."""


@dataclass(frozen=True)
class Command:
    """One command."""

    name: str
    """`rankwright keys create`."""
    panel: str
    item: Any
    context: Any

    @property
    def page(self) -> str:
        """The page that describes it."""
        return f"{FOLDER}{slug(self.panel)}.md"

    @property
    def anchor(self) -> str:
        """The anchor of its entry."""
        return slug(self.name.removeprefix("rankwright "))

    @property
    def parameters(self) -> list[Any]:
        """Its arguments and options, without those that are private."""
        found = self.item.get_params(self.context)
        return [
            each for each in found if each.name != "help" and not getattr(each, "hidden", False)
        ]


def find_commands() -> list[Command]:
    """Return all commands that are not hidden."""
    from app.cli import commands

    root: Any = typer.main.get_command(commands())  # a class of typer's copy of click
    return [*_commands("rankwright", "", root, click.Context(root, info_name="rankwright"))]


def _commands(name: str, panel: str, item: Any, context: Any) -> Iterator[Command]:
    if not hasattr(item, "list_commands"):
        yield Command(name, panel, item, context)
        return
    for each in item.list_commands(context):
        member = item.get_command(context, each)
        if member is not None and not member.hidden:
            inner = click.Context(member, info_name=each, parent=context)
            yield from _commands(f"{name} {each}", panel or member.rich_help_panel, member, inner)


def command_pages() -> dict[str, list[str]]:
    """Return every page about the command line."""
    commands = find_commands()
    pages: dict[str, list[str]] = {INDEX: [*_index(commands)]}
    for panel in dict.fromkeys(each.panel for each in commands):
        members = [each for each in commands if each.panel == panel]
        lines = [*heading(1, panel)]
        rows = [
            (
                link(f"`{each.name}`{{.whole}}", f"#{each.anchor}", ""),
                sentence(first_sentence(_help(each))),
            )
            for each in members
        ]
        lines += [*table(("Command", "Description"), *rows, kind="names")]
        for each in members:
            lines += [*_command(each)]
        pages[members[0].page] = lines
    return pages


def _index(commands: list[Command]) -> Iterator[str]:
    yield from heading(1, "Command line")
    yield "`rankwright COMMAND --help` shows what these pages say about a command."
    yield ""
    yield from code(
        "$ rankwright upload examples/data/bank-marketing.parquet --label subscribed --positive yes\n"
        "$ rankwright train bank-marketing --algorithm rankboost --name deposits\n"
        "$ rankwright score deposits age=41 job=services",
        "console",
    )
    for panel in dict.fromkeys(each.panel for each in commands):
        members = [each for each in commands if each.panel == panel]
        yield from heading(2, panel)
        rows = [
            (
                link(f"`{e.name}`{{.whole}}", f"{e.page}#{e.anchor}", INDEX),
                sentence(first_sentence(_help(e))),
            )
            for e in members
        ]
        yield from table(("Command", "Description"), *rows, kind="names")
    yield from heading(2, "Options of commands that call a service", "common-options")
    found = {
        each.name: each
        for command in commands
        for each in command.parameters
        if each.name in COMMON
    }
    for name in COMMON:
        if name in found:
            yield from _option(found[name], "common", "common")
    yield from heading(2, "Exit codes", "exit-codes")
    rows = [(f"`{number}`", text) for number, text in EXITS.items()]
    yield from table(("Exit code", "Meaning"), *rows, kind="names")


def _command(command: Command) -> Iterator[str]:
    yield from heading(
        2, f"`{command.name}`", command.anchor, "command", command.name.removeprefix("rankwright ")
    )
    yield from (_help(command) or gap("description", command.name), "")
    yield from code(usage(command), "text")
    examples = EXAMPLES.get(command.name, [])
    if examples:
        yield from ("<p class='caption'>Example</p>", "", '<div class="example" markdown>', "")
        yield from (*code("\n".join(f"$ {each}" for each in examples), "console"), "</div>", "")
    else:
        yield from (gap("example of a command", command.name), "")
    own = [each for each in command.parameters if each.name not in COMMON]
    arguments = [each for each in own if not _is_option(each)]
    if arguments:
        yield from ("<p class='caption'>Arguments</p>", "", '<div class="params" markdown>', "")
        for each in arguments:
            optional = "" if each.required else ", optional"
            yield f"`{str(each.name).upper()}`{{.param}} {_type(each)}{optional}"
            yield from (f":   {_text(each) or gap('argument', f'{command.name}: {each.name}')}", "")
        yield from ("</div>", "")
    options = [each for each in own if _is_option(each)]
    if options:
        yield from ("<p class='caption'>Options</p>", "")
        for each in options:
            yield from _option(each, command.name, command.anchor)
    shared = [f"`{each.opts[0]}`" for each in command.parameters if each.name in COMMON]
    if shared:
        yield f"It also has the {link('common options', f'{INDEX}#common-options', command.page)} {', '.join(shared)}."
        yield ""
    yield from (
        f"Exit codes: {link('see the table', f'{INDEX}#exit-codes', command.page)}.\n{{.errors}}",
        "",
    )


def usage(command: Command) -> str:
    """Return the usage line of a command."""
    pieces = [command.name]
    own = command.parameters
    pieces += [
        f"{each.opts[0]} {_metavar(each)}" for each in own if _is_option(each) and each.required
    ]
    if any(_is_option(each) and not each.required for each in own):
        pieces.append("[OPTIONS]")
    for each in own:
        if not _is_option(each):
            name = str(each.name).upper() + ("..." if each.nargs == -1 else "")
            pieces.append(name if each.required else f"[{name}]")
    return " ".join(pieces)


def _option(option: Any, command: str, anchor: str) -> Iterator[str]:
    name = option.opts[0].lstrip("-")
    shown = ", ".join(f"`{each}`" for each in option.opts)
    title = f"{shown} {hidden(command.removeprefix('rankwright '))}"
    yield from heading(5, title, f"{anchor}--{name}", "param")
    notes = [" or ".join([_type(option), *(f"`{each}`" for each in option.secondary_opts)])]
    notes.append("required" if option.required else "")
    notes.append("repeatable" if option.multiple else "")
    if option.default not in (None, False, [], ()):
        default = option.default.value if isinstance(option.default, Enum) else option.default
        notes.append(f"default `{default}`")
    if option.envvar:
        notes.append(f"from `{option.envvar}`")
    yield from (f"{', '.join(filter(None, notes))}\n{{.kind}}", "")
    yield from (sentence(_text(option)) or gap("option", f"{command}: {option.opts[0]}"), "")


def _is_option(parameter: Any) -> bool:
    return str(parameter.opts[0]).startswith("-")


def _metavar(option: Any) -> str:
    return str(option.name).upper()


def _type(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f"`{each.value}`" for each in kind)
    words = {"str": "string", "int": "integer", "float": "number", "bool": "flag", "Path": "path"}
    name = getattr(kind, "__name__", str(kind))
    return with_bounds(words.get(name, "string"), span(parameter.min, parameter.max))


def _text(parameter: Any) -> str:
    text = re.sub(r"\\(?=\[)", "", str(getattr(parameter, "help", None) or ""))
    return text.replace("<", "&lt;").replace("*", r"\*")


def _help(command: Command) -> str:
    return str(command.item.help or "").partition("\f")[0].strip()
