"""Reads docker-compose.yml as compose does, as far as ours goes: anchors, merge keys and `${…}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]

_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+)(?:(?P<rule>:[-?])(?P<word>[^}]*))?\})"
)


class VariableMissing(Exception):
    """`${NAME:?message}` and the environment has no NAME, or an empty one."""


@dataclass(frozen=True)
class Service:
    """One service of the file, ready to be started."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    user: str | None
    healthcheck: tuple[str, ...] | None
    replicas: int
    after: Mapping[str, str]


def load(path: Path, variables: Mapping[str, str]) -> Document:
    """The file's document with every `${…}` filled in from the variables, as from `.env`."""
    return filled(yaml.safe_load(path.read_text()), variables)


def filled(document: Document, variables: Mapping[str, str]) -> Document:
    """A document with every `${…}` filled in."""
    found: Document = _interpolate(document, variables)
    return found


def service(document: Document, name: str) -> Service:
    """One service of the document."""
    given = document["services"][name]
    health = given.get("healthcheck")
    return Service(
        name=name,
        command=tuple(given.get("command", ())),
        environment=given.get("environment", {}),
        user=given.get("user"),
        healthcheck=tuple(health["test"]) if health else None,
        replicas=int(given.get("deploy", {}).get("replicas", 1)),
        after={other: rule["condition"] for other, rule in given.get("depends_on", {}).items()},
    )


def _interpolate(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _interpolate(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_interpolate(item, variables) for item in value]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        found = variables.get(match["name"], "")
        if found or match["rule"] is None:
            return found
        if match["rule"] == ":?":
            raise VariableMissing(f"{match['name']} {match['word']}")
        return match["word"]

    return _VARIABLE.sub(fill, value)
