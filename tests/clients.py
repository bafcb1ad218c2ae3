"""`make clients`: what generators make of /openapi.json. They may warn of nothing, and the tours in docs/clients run.

The tour by openapi-typescript is type-checked first. Needs the package registries, and node for that.
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

CLIENTS = Path(__file__).parent.parent / "docs" / "clients"
CONFIG = "openapi-python-client.yaml"
PYTHON_GENERATOR = "openapi-python-client==0.29.1"
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
export const evaluation: Body["NewEvaluation"] = { model: "churn", dataset_id: "ds_x", windows: [{ fpr_max: 0.1 }] };
export const comparison: Body["NewComparison"] = { models: ["a", "b"], dataset_id: "ds_x" };
export const key: Body["NewKey"] = { name: "mine", scopes: ["read"] };
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


def main() -> None:
    """Run the tour by both clients against a service of our own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = folder / "state"
        state.mkdir()
        settings = Settings(state_dir=state)
        migrate.upgrade(settings.sqlalchemy_url)
        write_tables(folder)
        for tour in (run_python_tour, run_typescript_tour):
            with running(settings) as service, service.at_work():
                service.empty()
                (folder / "openapi.json").write_text(json.dumps(service.app.openapi()))
                tour(folder, RANKWRIGHT_URL=service.url, RANKWRIGHT_API_KEY=service.key())


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    main()
