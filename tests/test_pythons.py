"""The tested versions of Python: those found on a machine; the image and the README name them, too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import pythons

NEXT = (3, sys.version_info.minor + 1)


def make_python(path: Path, told: str) -> None:
    """Write a command that tells a version as a Python would, or fails as a shim of pyenv does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{f'echo {told} {path}' if told else 'exit 127'}\n")
    path.chmod(0o755)


def test_the_newest_release_of_each_other_version_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pythons, "declared", lambda: {NEXT, (3, 99), (3, 98)})
    monkeypatch.setattr(pythons, "CACHE", tmp_path / "fetched")
    found = {
        f"bin/python3.{NEXT[1]}": f"3 {NEXT[1]} 1 final",
        f"shims/python3.{NEXT[1]}": "",
        "shims/python3.99": "3 99 0 candidate",
        "bin/python3.10": "3 10 9 final",
        "bin/python3": "3 98 0 final",  # not of one version by its name
        f"pyenv/versions/3.{NEXT[1]}.2/bin/python3": f"3 {NEXT[1]} 2 final",
        "pyenv/versions/2.7.18/bin/python3": "2 7 18 final",
    }
    for name, told in found.items():
        make_python(tmp_path / name, told)
    monkeypatch.setenv("PATH", f"{tmp_path / 'shims'}:{tmp_path / 'bin'}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    newest = tmp_path / f"pyenv/versions/3.{NEXT[1]}.2/bin/python3"
    assert pythons.find_pythons() == {NEXT: newest}


def test_what_is_declared_is_said_everywhere() -> None:
    declared = pythons.declared()
    oldest, newest = map(pythons.spelled, (min(declared), max(declared)))
    assert f"Python {oldest} to {newest}" in (pythons.ROOT / "README.md").read_text()
    assert f"Python {oldest} to {newest}" in (pythons.ROOT / "Dockerfile").read_text()
