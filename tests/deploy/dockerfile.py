"""Reads the Dockerfile: the instructions of its last stage are what a container gets."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from string import Template


@dataclass(frozen=True)
class Instruction:
    """One instruction, its continuation lines joined, its `--flags` apart from its arguments."""

    name: str
    flags: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Copy:
    """Files of the checkout, and where the image has them."""

    sources: tuple[str, ...]
    target: str


@dataclass(frozen=True)
class Image:
    """The settings of the last stage for every container, and the instructions of all stages."""

    instructions: tuple[Instruction, ...]
    environment: dict[str, str]
    user: str
    workdir: str

    def all(self, name: str) -> list[Instruction]:
        """Every instruction of this name, in order."""
        return [one for one in self.instructions if one.name == name]

    def copies(self) -> list[Copy]:
        """The COPY instructions that take files of the checkout, of all stages."""
        return [
            Copy(tuple(paths), target)
            for one in self.all("COPY")
            if not any(flag.startswith("--from=") for flag in one.flags)
            for *paths, target in [one.text.split()]
        ]

    def owned_folders(self) -> dict[str, tuple[int, int]]:
        """The folders that `install -d -o UID -g GID PATH` makes: path → (uid, gid)."""
        made = re.compile(r"install -d -o (\d+) -g (\d+)(?: -m \d+)? (\S+)")
        return {
            path: (int(uid), int(gid))
            for run in self.all("RUN")
            for uid, gid, path in made.findall(run.text)
        }


def variables(instruction: Instruction) -> dict[str, str]:
    """Return the variables of an ENV or ARG instruction."""
    return dict(pair.split("=", 1) for pair in shlex.split(instruction.text))


def base_image(path: Path) -> str:
    """The image that the file builds on, if nobody says another."""
    (argument,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", path.read_text(), re.MULTILINE)
    return str(argument)


def read(path: Path) -> Image:
    """Parse the file as far as ours goes: no heredocs, no ONBUILD; build arguments have their defaults."""
    instructions = tuple(_instructions(path.read_text()))
    last = max(i for i, one in enumerate(instructions) if one.name == "FROM")
    environment: dict[str, str] = {}
    arguments: dict[str, str] = {}
    user, workdir = "root", "/"
    for one in instructions[last:]:
        if one.name == "ARG":
            arguments |= variables(one)
        elif one.name == "ENV":
            set_here = variables(one).items()
            environment |= {k: Template(v).safe_substitute(arguments) for k, v in set_here}
        elif one.name == "USER":
            user = one.text
        elif one.name == "WORKDIR":
            workdir = one.text
    return Image(instructions, environment, user, workdir)


def _instructions(text: str) -> list[Instruction]:
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    parsed = []
    for line in code.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, _, rest = line.strip().partition(" ")
        words = rest.split()
        flags = tuple(word for word in words if word.startswith("--"))
        if name in {"RUN", "CMD", "ENTRYPOINT"}:  # their dashes are the program's own
            flags = ()
        parsed.append(
            Instruction(name, flags, rest.strip() if not flags else " ".join(words[len(flags) :]))
        )
    return parsed
