"""Every Python of this machine: train, save, load and score by the library, then the same and an evaluation over HTTP.

`make pythons` runs it. The Python of `.venv` runs all tests; here each other minor version from 3.11 on is asked
whether the service works at all: those on PATH, and those of pyenv. CI asks the newest alone. Each has an environment
of its own, with the pinned dependencies alone, in `.venv-pythons`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".venv-pythons"
OLDEST = (3, 11)
CLASSIFIER = "Programming Language :: Python :: "

Version = tuple[int, int]


def candidates() -> Iterator[Path]:
    """Name what may be a Python: on PATH, and below the root of pyenv."""
    for folder in os.get_exec_path():
        yield from (
            p
            for p in sorted(Path(folder).glob("python3.*"))
            if re.fullmatch(r"python3\.\d+", p.name)
        )
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(root.glob("versions/*/bin/python3"))


def find_pythons() -> dict[Version, Path]:
    """Find the newest release of each minor version that this process is not, by version."""
    ask = "import sys; print(*sys.version_info[:3], sys.version_info.releaselevel, sys.executable)"
    newest: dict[Version, tuple[int, Path]] = {}
    for python in candidates():
        # A shim of pyenv stands for a version that may not be chosen here: then it fails.
        try:
            told = subprocess.run(
                [python, "-I", "-c", ask], capture_output=True, text=True, check=False
            )
        except OSError:  # a link to what was removed
            continue
        if told.returncode:
            continue
        major, minor, micro, level, executable = told.stdout.strip().split(" ", 4)
        version, release = (int(major), int(minor)), int(micro)
        wanted = level == "final" and version >= OLDEST and version != sys.version_info[:2]
        if wanted and newest.get(version, (-1,))[0] < release:
            newest[version] = release, Path(executable)
    return {version: path for version, (_, path) in sorted(newest.items())}


def declared() -> set[Version]:
    """Read what pyproject.toml says is tested."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = [text.removeprefix(CLASSIFIER) for text in classifiers if text.startswith(CLASSIFIER)]
    return {(int(text.split(".")[0]), int(text.split(".")[1])) for text in named if "." in text}


def environment_of(version: Version, python: Path) -> Path:
    """Make the environment of a Python, unless it is there and of these locks; return its interpreter."""
    folder = ENVIRONMENTS / spelled(version)
    lock, stamp = (ROOT / "requirements.lock").read_text(), folder / "installed.lock"
    own = folder / "bin" / "python"
    if not stamp.is_file() or stamp.read_text() != lock:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        # What is imported is compiled then; the rest, most of it, never is.
        install: list[str | Path] = [
            own,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-compile",
            "--require-hashes",
        ]
        log = folder / "pip.log"
        with log.open("w") as file:
            done = subprocess.run(
                [*install, "--disable-pip-version-check", "-r", ROOT / "requirements.lock"],
                stderr=file,
                check=False,
            )
        if done.returncode:
            sys.exit(
                f"{log.read_text()}\nPython {spelled(version)}: requirements.lock cannot be installed"
            )
        stamp.write_text(lock)
    return own


def spelled(version: Version) -> str:
    """Spell a version."""
    return ".".join(map(str, version))


def main(which: str) -> None:
    """Run the smoke on all Pythons that are found or on the newest; say which, and exit with 1 where one fails."""
    found = find_pythons()
    if which == "newest":
        found = dict(list(found.items())[-1:])
    failed = []
    for version, python in found.items():
        print(f"Python {spelled(version)} ({python}):", flush=True)
        own = environment_of(version, python)
        smoke = [str(own), "-m", "tests.pythons", "smoke"]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "client")}
        ran = subprocess.run(smoke, cwd=ROOT, env=environment, check=False)
        if ran.returncode:
            failed.append(spelled(version))
    tried = {*found, sys.version_info[:2]}
    for version in sorted(declared() - tried):
        print(f"Python {spelled(version)}: not tried", flush=True)
    if failed:
        sys.exit(f"FAILED on Python {', '.join(failed)}")
    here = spelled(sys.version_info[:2])
    print(f"passed on Python {', '.join(map(spelled, found)) or 'none'}; {here} runs the tests")


def smoke() -> None:
    """Use the library and the service on the Python that runs this."""
    import numpy as np

    from core import RankBoost, load, save

    artifacts = sorted((ROOT / "tests" / "core" / "stored_artifacts").glob("*.rankwright"))
    assert artifacts, "there are stored artifacts"
    for path in artifacts:  # one of each algorithm and of what else is stored
        load(path.read_bytes())

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=300) > 0.5
    ranker = RankBoost(n_rounds=5).fit(X, y)
    scores = ranker.decision_function(X)
    assert (load(save(ranker)).decision_function(X) == scores).all(), "a loaded ranker scores alike"
    assert scores[y].mean() > scores[~y].mean(), "a ranker puts the positives above"
    print(
        f"  library: {len(artifacts)} stored artifacts load; trained, saved, loaded, scored alike"
    )

    with tempfile.TemporaryDirectory(prefix="rankwright-") as folder:
        table = Path(folder) / "rows.csv"
        lines = [
            f"{a:.4f},{b:.4f},{c:.4f},{int(label)}" for (a, b, c), label in zip(X, y, strict=True)
        ]
        table.write_text("\n".join(["a,b,c,y", *lines]) + "\n")
        over_http(Path(folder), table)


def over_http(folder: Path, table: Path) -> None:
    """Upload, train, score and evaluate by a service of its own."""
    from examples.demo import running_service

    quick = {"RANKWRIGHT_WARM_UP": "false"}  # what is not used here need not be compiled
    with running_service(folder / "state", quick) as client:
        dataset = client.upload(table, label="y", positive="1", progress=False)
        model = client.train(dataset, "rankboost", n_rounds=5, name="smoke", controls=False).wait()
        row = {"a": 1.5, "b": 0.0, "c": 0.0}
        one = client.models["smoke"].score_row(row).to_json()
        many = model.score([row, row])
        assert [each["score"] for each in many] == [one["score"]] * 2, (one, many)
        evaluation = client.evaluate(model, dataset)
        assert evaluation.data.status == "ready", evaluation
        print(f"  service: uploaded, trained {model.id}, scored and evaluated")


if __name__ == "__main__":
    smoke() if sys.argv[1:] == ["smoke"] else main(*sys.argv[1:] or ["all"])
