"""Make the modules that are not in the repository before anything is built; the rest is in pyproject.toml."""

import runpy
from pathlib import Path

from setuptools import setup

MAKE = Path(__file__).with_name("make_modules.py")
if MAKE.exists():  # a source archive has the modules
    runpy.run_path(str(MAKE), run_name="__main__")
setup()
