"""`make clients`: what generators make of /openapi.json. They may warn of nothing; the Python client is imported, and
the smallest bodies are typed in TypeScript. Needs the package registries, and node for the second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from app.main import create_app
from app.platform.settings import Settings

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "docs" / "clients" / "openapi-python-client.yaml"
PYTHON_GENERATOR = "openapi-python-client==0.29.1"
TYPESCRIPT_GENERATOR, TYPESCRIPT = "openapi-typescript@7", "typescript@5"
WARNS = ("warning", "unsupported", "will not be generated", "skipping")

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
import type { components } from "./api";
type Body = components["schemas"];
export const job: Body["JobRequest"] = { dataset_id: "ds_x", algorithm: { name: "rankboost" } };
export const found: Body["JobRequest"] = {
  ...job, search: { method: "grid", space: { n_rounds: [50, 100] } }, objective: { metric: "pauc", fpr_max: 0.1 },
  validation: { method: "cross_validation" },
};
export const evaluation: Body["NewEvaluation"] = { model: "churn", dataset_id: "ds_x", windows: [{ fpr_max: 0.1 }] };
export const comparison: Body["NewComparison"] = { models: ["a", "b"], dataset_id: "ds_x" };
export const key: Body["NewKey"] = { name: "mine", scopes: ["read"] };
export const rotation: Body["Rotation"] = {};
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command; ends this one where it fails, with what it has said. Returns that."""
    done = subprocess.run(
        command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))} failed")
    return done.stdout


def check_silent(said: str, generator: str) -> None:
    """End with what a generator has said if it warns of anything."""
    if any(word in said.lower() for word in WARNS):
        sys.exit(f"{said}\n{generator} warns")


def make_python_client(folder: Path) -> None:
    """Generate the Python client and import all of it, by an environment of its own."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", PYTHON_GENERATOR, cwd=folder)
    generate = (folder / "venv" / "bin" / "openapi-python-client", "generate", "--meta", "none")
    files = ("--path", "openapi.json", "--output-path", "client", "--config", CONFIG)
    check_silent(run(*generate, *files, cwd=folder), PYTHON_GENERATOR)
    sys.stdout.write(run(python, "-c", IMPORT_ALL, cwd=folder))


def make_typescript_types(folder: Path) -> None:
    """Generate the types and check the smallest bodies by them."""
    said = run("npx", "--yes", TYPESCRIPT_GENERATOR, "openapi.json", "-o", "api.ts", cwd=folder)
    check_silent("\n".join(line for line in said.splitlines() if "npm warn" not in line), "npx")
    (folder / "minimal.ts").write_text(MINIMAL)
    run("npx", "--yes", "-p", TYPESCRIPT, "tsc", "--noEmit", "--strict", "minimal.ts", cwd=folder)
    sys.stdout.write("the smallest bodies are typed in TypeScript\n")


def main() -> None:
    """Make both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document = create_app(Settings(state_dir=folder / "state")).openapi()
        (folder / "openapi.json").write_text(json.dumps(document))
        make_python_client(folder)
        make_typescript_types(folder)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    main()
