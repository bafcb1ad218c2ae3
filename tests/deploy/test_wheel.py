"""The wheel and the sdist hold the whole program, and an installed wheel serves in any folder and for any user."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import httpx
import pytest
import rankwright
from rankwright import Client, types

from app import __version__
from app.platform import installation
from app.reports.plots import to_png
from core.version import VERSION
from tests.harness import csv_table, give_kernels
from tests.long_form import long_form
from tests.raising import raises
from tests.waiting import eventually, patience

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "core", "migrations", "workers")
CLIENT = "client/rankwright"
USER = 10001
TELL_INSTALLED = (
    "import json; from importlib import metadata;"
    "print(json.dumps([found.name for found in metadata.distributions()]))"
)
BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
)


def test_the_version_is_the_same_everywhere() -> None:
    """It stands in two files: that of the programs, and that of the client, which is installed without them."""
    assert __version__ == rankwright.__version__ == VERSION
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"rankwright=={VERSION}" in project["dependencies"]
    changes = "Unreleased" if "dev" in VERSION else VERSION
    assert f"## [{changes}]" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()


def tracked(*packages: str) -> list[str]:
    """Return the packages' files in git, with new files that are not ignored."""
    listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *packages]
    done = subprocess.run(["git", *listed], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this checkout has no history to say what belongs to it")
    return sorted(name for name in done.stdout.split("\0") if name and (ROOT / name).is_file())


def build(what: str, source: Path, target: Path) -> Path:
    """Have setuptools build the source's wheel or sdist, as `--no-build-isolation` does."""
    subprocess.run(
        [sys.executable, "-c", BUILD, f"build_{what}", str(target)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    return next(target.iterdir())


def contents(wheel: Path) -> dict[str, bytes]:
    """The files in a wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which processes have run: with bytecode and kernels beside the code."""
    folder = tmp_path_factory.mktemp("source")
    files = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
    for name in (*tracked(*PACKAGES, "client"), *files, "docs/openapi.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    for name in ("core/__pycache__/errors.cpython-311.pyc", "core/__pycache__/kernels/a.kernel"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def client_wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", source / "client", tmp_path_factory.mktemp("client"))


def test_a_wheel_holds_what_git_has(wheel: Path, client_wheel: Path) -> None:
    def held(wheel: Path) -> list[str]:
        return sorted(name for name in contents(wheel) if ".dist-info/" not in name)

    assert held(wheel) == tracked(*PACKAGES)
    made = {"client/rankwright/api.py", "client/rankwright/types.py"}
    assert {f"client/{name}" for name in held(client_wheel)} == {*tracked(CLIENT), *made}


@long_form
@pytest.mark.parametrize("folder", [".", "client"])
def test_a_wheel_from_the_sdist_is_the_same(
    source: Path, wheel: Path, client_wheel: Path, tmp_path: Path, folder: str
) -> None:
    sdist = build("sdist", source / folder, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    again = build("wheel", tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "wheel")
    assert contents(again) == contents(wheel if folder == "." else client_wheel)


def give_bytecode(packages: Path) -> None:
    """Compile what is installed, but for what this run of the tests has compiled already."""
    for name in tracked(*PACKAGES):
        known = ROOT / name
        compiled = Path(importlib.util.cache_from_source(str(known)))
        if known.suffix == ".py" and compiled.exists():
            installed = packages / name
            # Bytecode is valid for a source of this size and time.
            shutil.copystat(known, installed)
            target = Path(importlib.util.cache_from_source(str(installed)))
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(compiled, target)
    folders = [str(packages / name) for name in (*PACKAGES, "rankwright")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], check=True)


def as_user(uid: int, gid: int) -> list[str]:
    """The start of a command line that runs the rest as this user; it dies with the thread that started it.

    Only root may change the user: anybody else runs everything as themselves. The interpreter and the checkout may
    lie below a folder that only root may enter, so reading is allowed everywhere. Writing is not.
    """
    if os.getuid() != 0:
        return []
    read_all = "-all,+dac_read_search"
    return [
        "setpriv",
        f"--reuid={uid}",
        f"--regid={gid}",
        "--clear-groups",
        f"--inh-caps={read_all}",
        f"--ambient-caps={read_all}",
        f"--bounding-set={read_all}",
        "--no-new-privs",
        "--pdeathsig=KILL",
        "--",
    ]


class Installed:
    """Installed wheels that nobody may change, and somebody else's folder to run them in."""

    def __init__(self, wheels: list[Path], root: Path) -> None:
        self.root = root
        venv = root / "an environment"
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", "--symlinks", venv], check=True
        )
        self.packages = next((venv / "lib").glob("python*")) / "site-packages"
        libraries = next(path for path in sys.path if path.endswith("site-packages"))
        (self.packages / "libraries.pth").write_text(libraries + "\n")
        installing = ["install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        words = [*pip, "--python", str(venv / "bin" / "python"), *installing]
        subprocess.run([*words, *map(str, wheels)], check=True)
        give_bytecode(self.packages)
        self.command = venv / "bin" / "rankwright"
        self.folder = root / "somebody's folder"
        (self.folder / "app").mkdir(parents=True)
        for name in (
            "app/__init__.py",
            "core.py",
            "migrations.py",
            "workers.py",
            "numpy.py",
            "alembic.py",
        ):
            (self.folder / name).write_text("raise SystemExit('this is another program')\n")
        for path in sorted(root.rglob("*")):
            if not path.is_symlink():
                path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
        self.state = root / "state of the service"
        self.state.mkdir(mode=0o700)
        if os.getuid() == 0:
            os.chown(self.state, USER, USER)

    def words(self, *words: str) -> list[str]:
        """The command line as another user, who has no home."""
        return [*as_user(USER, USER), str(self.command), *words]

    @property
    def environment(self) -> dict[str, str]:
        """A bare one."""
        return {
            "PATH": os.environ["PATH"],
            "RANKWRIGHT_STATE_DIR": str(self.state),
            "RANKWRIGHT_WARM_UP": "false",
        }

    def run(self, *words: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, which comes soon; None takes a variable out."""
        given = (self.environment | variables).items()
        return subprocess.run(
            self.words(*words),
            cwd=self.folder,
            env={name: value for name, value in given if value is not None},
            timeout=patience(),
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(wheel: Path, client_wheel: Path) -> Iterator[Installed]:
    # Not in the folder of this run's user, into which another one may not look.
    root = Path(tempfile.mkdtemp(prefix="a place with spaces "))
    root.chmod(0o755)
    installed = Installed([wheel, client_wheel], root)
    # What this run of the tests has compiled already: the installed code is the same, and is read-only.
    give_kernels(installed.state / "kernels")
    yield installed
    for folder in [path for path in root.rglob("*") if path.is_dir()]:
        folder.chmod(0o755)
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def client(installed: Installed) -> Iterator[Client]:
    """The service that the wheel's `rankwright serve` runs."""
    log = installed.root / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            installed.words("serve", "--port", "0"),
            cwd=installed.folder,
            env=installed.environment,
            stdout=out,
            stderr=out,
        )

    def address() -> str | None:
        assert process.poll() is None, log.read_text()
        found = re.search(r"^ready at (\S+),", log.read_text(), re.MULTILINE)
        return found[1] if found else None

    try:
        url = eventually(address)
        with Client(url, state_dir=installed.state) as client:
            yield client
        process.terminate()
        assert process.wait(patience()) == 0, log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()
        process.wait()


@long_form
def test_the_service_of_an_installed_wheel(
    client: Client, installed: Installed, tmp_path: Path
) -> None:
    """A table becomes scores, though the folder is somebody else's and the code can be written by nobody."""
    table = tmp_path / "table.csv"
    table.write_bytes(csv_table(200))
    dataset = client.upload(table, label="y", positive="1", progress=False)
    model = client.train(dataset, "rankboost", n_rounds=20, name="model").wait()
    score = client.models["model"].score_row({f"x{j}": 0.5 for j in range(4)})
    assert isinstance(score, types.Score)
    assert isinstance(score.score, float)

    # The fonts are its own: the picture is the one that this checkout draws, letter by letter.
    drawn = model.download("plot", format="svg", width=400).decode()
    picture = model.download("plot", format="png", width=400)
    assert "<text" in drawn
    assert picture == to_png(drawn, 400)
    assert picture != to_png(re.sub(r"<text.*?</text>", "", drawn), 400)

    well = installed.run("doctor")
    assert (well.returncode, well.stderr) == (0, ""), well.stdout
    assert str(installed.state / "kernels") in well.stdout


NEEDED = ("httpx", "rich", "typer")
"""What the client depends on."""


@pytest.fixture(scope="module")
def alone(client_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python in an environment that has the client's wheel and what it needs, nothing else."""
    venv = tmp_path_factory.mktemp("the client alone") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", venv], check=True)
    packages = next((venv / "lib").glob("python*")) / "site-packages"
    left, taken = list(NEEDED), set()
    while left:
        name = left.pop()
        distribution = metadata.distribution(name)
        for file in distribution.files or ():
            top = file.parts[0]
            if top in ("..", "__pycache__") or (packages / top).exists():
                continue
            (packages / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())
        taken.add(name)
        for line in distribution.requires or ():
            needed = re.match(r"[\w.-]+", line)
            if needed and ";" not in line and needed[0] not in taken:
                left.append(needed[0])
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python"]
    install = ["install", "--quiet", "--no-index", str(client_wheel)]  # pip checks what is needed
    subprocess.run([*pip, str(venv / "bin" / "python"), *install], check=True)
    return venv / "bin" / "python"


@long_form
def test_the_client_alone(
    alone: Path, client: Client, installed: Installed, tmp_path: Path
) -> None:
    """From a folder of its own it asks the service that runs, by its command and by its module."""
    held = json.loads(
        subprocess.check_output([alone, "-c", TELL_INSTALLED], cwd=tmp_path, text=True)
    )
    assert "rankwright" in held
    assert not {"rankwright-server", "fastapi", "numpy", "sqlalchemy"} & set(held)
    key = (installed.state / "api-key").read_text().strip()
    environment = {"RANKWRIGHT_URL": client.url, "RANKWRIGHT_API_KEY": key, "LC_ALL": "C.UTF-8"}

    def run(*words: str, code: int = 0) -> str:
        command = [str(alone.parent / "rankwright"), *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    assert "Run the service" not in run("--help")
    assert "which is not installed" in run("serve", code=1)
    (tmp_path / "rows.csv").write_bytes(csv_table(200))
    dataset = run("upload", "rows.csv", "--label", "y").split()[0]
    assert "ROC of alone:1" in run("train", dataset, "--name", "alone", "--set", "n_rounds=5")
    assert run("score", "alone", "rows.csv").splitlines()[0] == "score,fpr,tpr,probability"
    program = (
        "import rankwright, sys\n"
        "with rankwright.Client() as client:\n"
        "    print(client.models['alone'].auc.value > 0.5, 'typer' in sys.modules)\n"
    )
    said = subprocess.check_output([alone, "-c", program], cwd=tmp_path, env=environment, text=True)
    assert said.split() == ["True", "False"]


@long_form
def test_both_together_have_all_commands(installed: Installed) -> None:
    said = installed.run("--help")
    assert (said.returncode, said.stderr) == (0, "")
    for words in ("Run the service", "Manage the service", "Use the service", "serve", "upload"):
        assert words in said.stdout
    version = installed.run("--version", RANKWRIGHT_BUILD="5e6c84d").stdout
    assert version == f"rankwright {__version__} (build 5e6c84d)\n"


@long_form
@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/console/sign-in"])
def test_its_pages(client: Client, path: str) -> None:
    page = httpx.get(client.url + path, timeout=patience())
    assert page.status_code == 200
    for address in set(re.findall(r'(?:src|href)="(/[^"]*static/[^"]+)"', page.text)):
        assert httpx.get(client.url + address, timeout=patience()).status_code == 200


MISSING = (
    "app/console/templates/train.html",
    "app/reports/fonts/Roboto-Regular.ttf",
    "migrations/versions/0200_tables.py",
)


@long_form
def test_what_is_missing_is_named_at_the_start(installed: Installed) -> None:
    aside = {installed.packages / name: installed.root / Path(name).name for name in MISSING}
    state = {"RANKWRIGHT_STATE_DIR": str(installed.state / "another")}
    folders = {path.parent for path in aside}
    try:
        for folder in folders:
            folder.chmod(0o755)
        for path, elsewhere in aside.items():
            path.rename(elsewhere)
        commands = ["serve", "--port", "0"], ["migrate"], ["doctor"]
        for words in commands:
            said = installed.run(*words, **state)
            assert said.returncode == 1
            assert f"incomplete: {', '.join(MISSING)} missing" in said.stdout + said.stderr
            assert "Traceback" not in said.stderr
    finally:
        for path, elsewhere in aside.items():
            elsewhere.rename(path)
        for folder in folders:
            folder.chmod(0o555)


def test_what_no_installer_has_listed_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "app", tmp_path / "app", ignore=shutil.ignore_patterns("*.py", "*.ttf"))
    monkeypatch.setattr(installation, "ROOT", tmp_path)
    fonts = [f"app/reports/fonts/Roboto-{name}.ttf" for name in ("Medium", "Regular")]
    with raises(installation.Incomplete, *fonts):
        installation.check_files.__wrapped__()


def one_sentence(said: subprocess.CompletedProcess[str]) -> str:
    """Return the message of a command that failed: a line without a traceback."""
    assert said.returncode == 1, said.stderr
    assert "Traceback" not in said.stderr
    (line,) = [line for line in said.stderr.splitlines() if line]
    return line


@long_form
def test_a_state_that_this_user_may_not_change(installed: Installed, sqlite_url: str) -> None:
    """Each command names the folder or file at once, in one sentence."""
    closed = installed.root / "closed"
    blobs = closed / "blobs" / "staging"
    blobs.mkdir(parents=True)
    database = closed / "rankwright.db"
    shutil.copy(sqlite_url.removeprefix("sqlite:///"), database)
    for path, mode in {blobs: 0o555, blobs.parent: 0o555, database: 0o444, closed: 0o555}.items():
        path.chmod(mode)
    at = {"RANKWRIGHT_STATE_DIR": str(closed), "RANKWRIGHT_BROKER_URL": "redis://127.0.0.1:9"}
    said = one_sentence(installed.run("serve", **at))
    assert f"{closed} must have" in said
    assert "0700" in said
    worker = installed.run("worker", **at)  # it logs the outage, and then why it ends
    assert (worker.returncode, "Traceback" in worker.stderr) == (1, False)
    assert f"the file {database} " in worker.stderr.splitlines()[-1]
    found = installed.run("doctor", **at)
    assert (found.returncode, found.stderr) == (1, "")
    assert f"the file {database} " in found.stdout
    assert f"read and write {closed}" in found.stdout
    assert "compiled at each start" in found.stdout
    another = installed.state / "another.db"
    shutil.copy(database, another)
    another.chmod(0o666)
    elsewhere = at | {"RANKWRIGHT_DATABASE_URL": f"sqlite:///{another}"}
    for command in ("dispatcher", "api"):
        said = one_sentence(installed.run(command, **elsewhere))
        assert f"{closed / 'blobs'} is not writable" in said
    assert f"{closed / 'blobs'} cannot be written" in installed.run("doctor", **elsewhere).stdout


@long_form
def test_a_current_folder_that_is_read_only(installed: Installed) -> None:
    said = one_sentence(installed.run("serve", RANKWRIGHT_STATE_DIR=None))
    assert f"{installed.folder / '.rankwright'} cannot be used" in said
    assert "Permission" in said
