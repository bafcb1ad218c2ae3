"""A user of a deployment in containers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, Self

import httpx
from sklearn.datasets import load_breast_cancer

from tests.waiting import patience


class DeploymentFailed(AssertionError):
    """A request of a deployment failed; the message says which, and what it returned."""


def table() -> bytes:
    """The breast cancer data of scikit-learn as CSV, its label in the column `diagnosis`."""
    frame = load_breast_cancer(as_frame=True).frame
    frame["diagnosis"] = frame.pop("target").map({0: "malignant", 1: "benign"})
    csv: str = frame.to_csv(index=False)
    return csv.encode()


class Api(Protocol):
    """A container of the API, of whatever kind."""

    @property
    def address(self) -> str:
        """Return the API's published address."""

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run another command in the same container."""


class Caller:
    """A user of the deployment: with a key made in the API's container, at the address that the file publishes."""

    def __init__(self, api: Api) -> None:
        scopes = [word for scope in ("read", "train", "score") for word in ("--scope", scope)]
        made = api.execute(
            ["rankwright", "keys", "create", "--owner", "clinic", "--name", "test", *scopes]
        )
        if made.returncode != 0:
            raise DeploymentFailed(f"no key was made: {made.stderr}")
        self._http = httpx.Client(
            base_url=api.address,
            headers={"Authorization": f"Bearer {made.stdout.strip()}"},
            timeout=patience(),
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def ask(self, method: str, path: str, *, wait: int = 0, **given: Any) -> Any:
        """One request that must succeed; `wait` is how long the service may hold the answer, in seconds."""
        headers = given.pop("headers", {}) | ({"Prefer": f"wait={wait}"} if wait else {})
        try:
            answer = self._http.request(method, path, headers=headers, **given)
        except httpx.TransportError as error:
            raise DeploymentFailed(f"{method} {path}: {error}") from error
        if not answer.is_success:
            raise DeploymentFailed(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json()

    def upload(self) -> str:
        """Upload the table; returns the dataset's id once a worker has read it."""
        fields = {"name": "cancer", "label": "diagnosis", "positive": "malignant"}
        dataset = self.ask(
            "POST",
            "/v1/datasets",
            wait=30,
            params=fields,
            content=table(),
            headers={"Content-Type": "text/csv"},
        )
        if dataset["status"] != "ready":
            raise DeploymentFailed(f"the upload is not ready: {dataset}")
        identity: str = dataset["id"]
        return identity

    def train(self, dataset: str, rounds: int, *, wait: int) -> Any:
        """Hand in a job; returns it as it is after the wait."""
        algorithm = {"name": "rankboost", "n_rounds": rounds}
        body = {"dataset_id": dataset, "algorithm": algorithm}
        return self.ask("POST", "/v1/jobs", wait=wait, json=body)

    def job(self, job_id: str) -> Any:
        """The job as it is now."""
        return self.ask("GET", f"/v1/jobs/{job_id}")
