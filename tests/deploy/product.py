"""What a deployment says to Rankwright, checked by Rankwright: commands and settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from app.cli import commands
from app.platform.settings import Settings

KNOWN = {f"RANKWRIGHT_{name.upper()}" for name in Settings.model_fields}
CONTENTS = {
    "blob": "[default]\naws_access_key_id = a\naws_secret_access_key = b\n",
    "ca.pem": "-----BEGIN CERTIFICATE-----\n",
    "secrets": f"{'k' * 43}=\n",
    "oidc": '[{"issuer": "https://login.example.com", "audience": "rankwright"}]',
    "roles": "[]",
    "audit": "0123456789abcdef" * 4,
}
"""Of files whose names begin so; others have a password."""


def parse(command: list[str]) -> None:
    """Parse a command line with the command line of the product. Raises an error of Typer for a wrong one."""
    assert command[0] == "rankwright", command
    found: Any = typer.main.get_command(commands())
    context = found.context_class(found, info_name="rankwright")
    words = command[1:]
    while isinstance(found, TyperGroup):
        _, found, words = found.resolve_command(context, words)
        context = found.context_class(found, info_name=found.name, parent=context)
    found.make_context(found.name, words)


def read_settings(variables: Mapping[str, str], folders: str, instead: Path) -> Settings:
    """Read the settings of a process whose files are in folders that match a pattern; other files have their place."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            for file in re.findall(rf"(?:{folders})([\w.-]+)", value):
                content = [text for start, text in CONTENTS.items() if file.startswith(start)]
                (instead / file).write_text(content[0] if content else "el/eph@nt\n")
            patch.setenv(name, re.sub(folders, f"{instead}/", value))
        return Settings()
