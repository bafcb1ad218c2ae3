"""Build a release into dist/ and check it from outside: `make release` (TAG=v0.3.0 also checks the tag).

dist/ then has the wheels and source archives of the server and the client, an SBOM (CycloneDX) of what the server
installs, the notes of this version from CHANGELOG.md, and SHA256SUMS. With IMAGE=NAME, Docker or podman also builds
the image NAME:VERSION. The same tour is made with the wheels and with the image. Nothing is sent anywhere.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
)
SBOM_TOOL = "cyclonedx-bom>=7,<8"
# What a stranger does first, by the installed client alone.
TOUR = """
import os
import random
import time

import httpx
import rankwright

until = time.monotonic() + 180
while True:
    try:
        if httpx.get(os.environ["RANKWRIGHT_URL"] + "/health/ready").is_success:
            break
    except httpx.TransportError:
        pass
    assert time.monotonic() < until, "the service does not start"
    time.sleep(0.2)
assert httpx.get(os.environ["RANKWRIGHT_URL"] + "/guide/").is_success
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
    parser.add_argument("--image", default="", help="the image to build, without a tag")
    given = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("RANKWRIGHT_")]:
        del os.environ[name]  # the tours are made with services of their own
    engine = _engine() if given.image else ""
    tag, version = given.tag, _version()
    if tag and tag != f"v{version}":
        sys.exit(f"the tag must be v{version}, the version of core/version.py, got {tag}")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    (DIST / "NOTES.md").write_text(_notes(version), encoding="utf-8")
    with tempfile.TemporaryDirectory() as name, _guide():
        folder = Path(name)
        for source in (ROOT, ROOT / "client"):
            for what in ("wheel", "sdist"):
                _run(sys.executable, "-c", BUILD, f"build_{what}", str(DIST), cwd=source)
        _describe(folder, version)
        python = _install(folder / "installed")
        with _serving(python, version, folder) as service:
            _run(python, "-c", TOUR, cwd=folder, env=os.environ | service)
        if given.image:
            with _image(engine, f"{given.image}:{version}", version) as service:
                _run(python, "-c", TOUR, cwd=folder, env=os.environ | service)
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
    _run(
        python,
        "-m",
        "cyclonedx_py",
        "requirements",
        *options,
        str(ROOT / "requirements/runtime.lock"),
    )
    parts = json.loads(target.read_text())["components"]
    assert {"fastapi", "numpy", "xlsxwriter"} <= {each["name"].lower() for each in parts}, target


def _install(folder: Path) -> str:
    """Install both wheels where nothing of this checkout is; return the Python there."""
    python = _environment(folder)
    locked = ["--require-hashes", "-r", str(ROOT / "requirements/runtime.lock")]
    _run(python, "-m", "pip", "install", "--quiet", *locked)
    wheels = map(str, DIST.glob("*.whl"))
    _run(python, "-m", "pip", "install", "--quiet", "--no-deps", *wheels)
    return python


@contextmanager
def _guide() -> Iterator[None]:
    """Put the site of `make docs` where wheel and image take it from, and remove it afterwards."""
    folder = ROOT / "app" / "guide"
    # setuptools adds to what an earlier build left.
    left = (folder, ROOT / "build" / "lib", ROOT / "client" / "build")
    for each in left:
        shutil.rmtree(each, ignore_errors=True)
    try:
        # Its own page for a wrong address would work at the root of a host only.
        shutil.copytree(ROOT / "site", folder, ignore=shutil.ignore_patterns("404.html"))
        yield
    finally:
        for each in left:
            shutil.rmtree(each, ignore_errors=True)


@contextmanager
def _serving(python: str, version: str, folder: Path) -> Iterator[Mapping[str, str]]:
    """Run the service that was installed, and yield the variables by which a client finds it."""
    command = str(Path(python).parent / "rankwright")
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert version in shown.stdout, shown.stdout
    port = _free_port()
    serving = subprocess.Popen([command, "serve", "--port", str(port)], cwd=folder)
    try:
        yield {"RANKWRIGHT_URL": f"http://127.0.0.1:{port}"}  # the key lies in the folder
    finally:
        serving.terminate()
        try:
            serving.wait(timeout=60)
        except subprocess.TimeoutExpired:
            serving.kill()


@contextmanager
def _image(engine: str, name: str, version: str) -> Iterator[Mapping[str, str]]:
    """Build the image, run the service in it, and yield the variables by which a client finds it."""
    revision = _told("git", "rev-parse", "HEAD")
    _run(engine, "build", "--build-arg", f"BUILD={revision}", "--tag", name, str(ROOT))
    shown = _told(engine, "run", "--rm", name, "rankwright", "--version")
    assert version in shown, shown
    port = _free_port()
    published = ["--publish", f"127.0.0.1:{port}:8000"]
    serve = ["rankwright", "serve", "--host", "0.0.0.0"]  # noqa: S104  # inside the container
    container = _told(engine, "run", "--detach", *published, name, *serve)
    try:
        read = "until cat /var/lib/rankwright/api-key 2> /dev/null; do sleep 0.2; done"
        key = _told(engine, "exec", container, "timeout", "60", "sh", "-c", read)
        yield {"RANKWRIGHT_URL": f"http://127.0.0.1:{port}", "RANKWRIGHT_API_KEY": key}
    except BaseException:
        _run(engine, "logs", container)
        raise
    finally:
        _run(engine, "rm", "--force", "--volumes", container)


def _engine() -> str:
    """Return the engine of containers that answers here."""
    for program in ("docker", "podman"):
        if (
            shutil.which(program)
            and not subprocess.run([program, "info"], capture_output=True, check=False).returncode
        ):
            return program
    sys.exit("an image needs Docker or podman, and neither answers here")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _environment(folder: Path) -> str:
    venv.create(folder, with_pip=True)
    return str(folder / "bin" / "python")


def _told(*command: str) -> str:
    """Return the last line that a command prints."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def _run(*command: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=env, check=True)


if __name__ == "__main__":
    main()
