"""Build a release into dist/ and check it from outside: `make release` (TAG=v0.3.0 also checks the tag).

dist/ then has the wheels and source archives of the server and the client, an SBOM (CycloneDX) of what the server
installs, the notes of this version from CHANGELOG.md, and SHA256SUMS. Nothing is sent anywhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
)
SBOM_TOOL = "cyclonedx-bom>=7,<8"
# What a stranger does first, by the installed client alone.
TOUR = """
import random
import rankwright

random.seed(0)
rows = []
for _ in range(400):
    amount, purpose = random.gauss(10, 3), random.choice(["car", "house"])
    bad = amount + 3 * (purpose == "car") + random.gauss(0, 3) > 13
    rows.append({"amount": amount, "purpose": purpose, "bad": "yes" if bad else "no"})
client = rankwright.Client()
data = client.upload(rows, name="applications", label="bad", positive="yes")
model = client.train(data, "logistic", name="bad").wait()
assert model.auc.value > 0.7, model.auc
answer = client.models["bad"].score_row(amount=15.0, purpose="car")
assert 0.0 < answer.probability < 1.0, answer
print(f"AUC {model.auc.value:.3f}, a score of {answer.score:.3f}")
"""


def main() -> None:
    """Build, describe and check the release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", default="", help="the tag of the release, such as v0.3.0")
    tag = parser.parse_args().tag
    version = _version()
    if tag and tag != f"v{version}":
        sys.exit(f"the tag must be v{version}, the version of core/version.py, got {tag}")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    (DIST / "NOTES.md").write_text(_notes(version), encoding="utf-8")
    for source in (ROOT, ROOT / "client"):
        for what in ("wheel", "sdist"):
            _run(sys.executable, "-c", BUILD, f"build_{what}", str(DIST), cwd=source)
    with tempfile.TemporaryDirectory() as name:
        _describe(Path(name), version)
        _try(Path(name), version)
    files = sorted(each for each in DIST.iterdir() if each.is_file())
    sums = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files]
    (DIST / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    sys.stdout.write("".join(sums))


def _version() -> str:
    found = re.search(
        r'^VERSION = "([^"]+)"$', (ROOT / "core/version.py").read_text(), re.MULTILINE
    )
    assert found is not None
    return found[1]


def _notes(version: str) -> str:
    """Return the part of the changelog about a version."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(
        rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.M | re.S
    )
    if found is None or not found[1].strip():
        sys.exit(f"CHANGELOG.md must have a part ## [{version}]")
    return found[1].strip() + "\n"


def _describe(folder: Path, version: str) -> None:
    """Write the SBOM of what the server installs."""
    python = _environment(folder / "sbom")
    _run(python, "-m", "pip", "install", "--quiet", SBOM_TOOL)
    target = DIST / f"rankwright-{version}.cdx.json"
    options = ["--output-reproducible", "--of", "JSON", "-o", str(target)]
    _run(python, "-m", "cyclonedx_py", "requirements", *options, str(ROOT / "requirements.lock"))
    parts = json.loads(target.read_text())["components"]
    assert {"fastapi", "numpy", "xlsxwriter"} <= {each["name"].lower() for each in parts}, target


def _try(folder: Path, version: str) -> None:
    """Install both wheels where nothing of this checkout is, start the service, and make the tour."""
    python = _environment(folder / "installed")
    locked = ["--require-hashes", "-r", str(ROOT / "requirements.lock")]
    _run(python, "-m", "pip", "install", "--quiet", *locked)
    wheels = map(str, DIST.glob("*.whl"))
    _run(python, "-m", "pip", "install", "--quiet", "--no-deps", *wheels)
    command = str(Path(python).parent / "rankwright")
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert version in shown.stdout, shown.stdout
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serving = subprocess.Popen([command, "serve", "--port", str(port)], cwd=folder)
    try:
        url = f"http://127.0.0.1:{port}"
        wait = (
            "import sys, time, httpx\n"
            "until = time.monotonic() + 120\n"
            "while True:\n"
            "    try:\n"
            "        if httpx.get(sys.argv[1] + '/health/ready').is_success: break\n"
            "    except httpx.TransportError: pass\n"
            "    assert time.monotonic() < until, 'the service does not start'\n"
            "    time.sleep(0.2)\n"
        )
        _run(python, "-c", wait, url, cwd=folder)
        _run(python, "-c", TOUR, cwd=folder, env=os.environ | {"RANKWRIGHT_URL": url})
    finally:
        serving.terminate()
        serving.wait(timeout=60)


def _environment(folder: Path) -> str:
    venv.create(folder, with_pip=True)
    return str(folder / "bin" / "python")


def _run(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=env, check=True)


if __name__ == "__main__":
    main()
